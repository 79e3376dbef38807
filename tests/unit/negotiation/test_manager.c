/* SPDX-License-Identifier: BSD-2-Clause */
/* Managed sessions: lives, failures, pauses, cancelling in each state, events. */
#include "manager_rig.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "closed_port.h"

/* A site with a server, and the attributes of its manager. */
static void begin_site(struct site *s, bool plain, struct ndx_session_manager_attr *attr)
{
	site_open(s, plain);
	site_serve(s, 0);
	site_manager_attr(s, attr);
}

/* Its manager, and a session with its own server. */
static uint64_t manage_one(struct site *s, const struct ndx_session_manager_attr *attr)
{
	const char *address = s->address;

	site_manage(s, attr);
	return site_add(s, &address, 1);
}

/* All of that, and the session is up. */
static void one(struct site *s, bool plain, uint64_t *id)
{
	struct ndx_session_manager_attr attr;

	begin_site(s, plain, &attr);
	*id = manage_one(s, &attr);
	site_await(s, NDX_MANAGED_UP, 1);
}

static void arguments_are_checked(void **state)
{
	struct ndx_session_manager_attr attr;
	struct ndx_session_manager *manager = NULL;
	const struct ndx_session_queue_pair pair = {.connector = NULL};
	struct ndx_session_attr session;
	const char *address = "127.0.0.1:1";
	struct site other;
	struct site s;

	(void)state;
	site_open(&s, true);
	site_open(&other, true);
	site_manager_attr(&s, &attr);
	attr.negotiation = NULL;
	assert_int_equal(ndx_session_manager_create(&attr, &manager), NDX_E_INVALID_PARAMETER);
	says("negotiation is NULL");
	site_manager_attr(&s, &attr);
	attr.backoff_most_ms = attr.backoff_ms - 1;
	assert_int_equal(ndx_session_manager_create(&attr, &manager), NDX_E_INVALID_PARAMETER);
	says("backoff_ms");
	site_manager_attr(&s, &attr);
	attr.max_connecting = 0;
	assert_int_equal(ndx_session_manager_create(&attr, &manager), NDX_E_INVALID_PARAMETER);
	assert_null(manager);
	site_manager_attr(&s, &attr);
	attr.max_sessions = 1;
	site_manage(&s, &attr);
	ndx_session_attr_init(&session);
	session.servers = &address;
	session.server_count = 1;
	session.variant = other.variant;
	assert_int_equal(ndx_session_manager_add(s.manager, &session, NULL, NULL),
	                 NDX_E_INVALID_PARAMETER);
	says("another framework");
	session.variant = s.variant;
	session.memory.length = 1;
	assert_int_equal(ndx_session_manager_add(s.manager, &session, NULL, NULL),
	                 NDX_E_INVALID_PARAMETER);
	says("provide");
	session.memory.length = 0;
	session.queue_pairs = &pair;
	session.queue_pair_count = 1;
	assert_int_equal(ndx_session_manager_add(s.manager, &session, NULL, NULL),
	                 NDX_E_INVALID_PARAMETER);
	says("queue_pairs must be unset");
	session.queue_pairs = NULL;
	session.queue_pair_count = 0;
	address = "nowhere";
	assert_int_equal(ndx_session_manager_add(s.manager, &session, NULL, NULL),
	                 NDX_E_INVALID_ADDRESS);
	address = "127.0.0.1:1";
	(void)site_add(&s, &address, 1);
	assert_int_equal(ndx_session_manager_add(s.manager, &session, NULL, NULL),
	                 NDX_E_INSUFFICIENT_RESOURCES);
	assert_int_equal(ndx_session_manager_cancel(s.manager, 77), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_session_manager_report(s.manager, 1, 1, NDX_E_CONNECTION_ABORTED),
	                 NDX_E_INVALID_DEVICE_STATE);
	site_close(&s);
	site_close(&other);
}

/* The connection ends, and another is made, of objects that are all new. */
static void a_connection_that_aborts_is_made_anew(void **state)
{
	struct ndx_managed_event e;
	struct site s;
	uint64_t id;

	(void)state;
	one(&s, false, &id);
	e = site_event(&s, id, 0);
	assert_int_equal(e.kind, NDX_MANAGED_EVENT_UP);
	assert_int_equal(e.life, 1);
	assert_string_equal(e.server, s.address);
	assert_ptr_equal(e.context, &s);
	for (unsigned life = 1; life < 4; life++) {
		site_abort(&s);
		e = site_event(&s, id, 2 * life - 1);
		assert_int_equal(e.kind, NDX_MANAGED_EVENT_DOWN);
		assert_int_equal(e.status, NDX_E_CONNECTION_ABORTED);
		assert_int_equal(e.life, life);
		e = site_event(&s, id, 2 * life);
		assert_int_equal(e.kind, NDX_MANAGED_EVENT_UP);
		assert_int_equal(e.life, life + 1);
	}
	assert_int_equal(s.provided, 4);
	assert_int_equal(site_stats(&s).lives, 4);
	assert_int_equal(site_stats(&s).lost, 3);
	assert_int_equal(ndx_session_manager_cancel(s.manager, id), NDX_OK);
	site_await(&s, NDX_MANAGED_OVER, 1);
	assert_int_equal(s.reclaimed, 4);
	assert_int_equal(site_event(&s, id, 7).kind, NDX_MANAGED_EVENT_DOWN);
	assert_int_equal(site_event(&s, id, 8).kind, NDX_MANAGED_EVENT_CANCELED);
	assert_int_equal(ndx_session_manager_remove(s.manager, id), NDX_OK);
	assert_int_equal(site_stats(&s).sessions, 0);
	site_close(&s);
}

static void a_peer_that_ends_gracefully_may_be_the_end(void **state)
{
	struct ndx_session_manager_attr attr;
	struct site s;
	uint64_t id;

	(void)state;
	begin_site(&s, false, &attr);
	attr.end_with_peer = true;
	id = manage_one(&s, &attr);
	site_await(&s, NDX_MANAGED_UP, 1);
	site_unserve(&s); /* its program closes the connectors */
	assert_int_equal(site_event(&s, id, 1).kind, NDX_MANAGED_EVENT_DOWN);
	assert_int_equal(site_event(&s, id, 1).status, NDX_OK);
	assert_int_equal(site_event(&s, id, 2).kind, NDX_MANAGED_EVENT_ENDED);
	site_await(&s, NDX_MANAGED_OVER, 1);
	site_close(&s);
}

/* The plugin has queue pairs of its own: nothing but the transport tells that the server is gone.
 */
static void without_a_connector_the_transport_tells(void **state)
{
	struct ndx_session_manager_attr attr;
	struct ndx_managed_event e;
	struct site s;
	uint16_t port;
	uint64_t id;

	(void)state;
	begin_site(&s, true, &attr);
	attr.attempts = 100000; /* the server comes back when the machine lets it */
	id = manage_one(&s, &attr);
	site_await(&s, NDX_MANAGED_UP, 1);
	port = site_port(&s);
	site_unserve(&s);
	e = site_event(&s, id, 1);
	assert_int_equal(e.kind, NDX_MANAGED_EVENT_DOWN);
	assert_int_equal(e.status, NDX_E_CONNECTION_ABORTED);
	assert_non_null(strstr(e.text, "the transport"));
	site_serve(&s, port);
	for (int ms = 0; ms < WAIT_MS && site_count(&s, NDX_MANAGED_EVENT_UP) < 2; ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(site_count(&s, NDX_MANAGED_EVENT_UP), 2);
	site_close(&s);
}

static void a_report_ends_the_life_that_it_names(void **state)
{
	struct site s;
	uint64_t id;

	(void)state;
	one(&s, true, &id);
	assert_int_equal(ndx_session_manager_report(s.manager, id, 1, NDX_OK),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_manager_report(s.manager, id, 1, NDX_E_IO_TIMEOUT), NDX_OK);
	assert_int_equal(site_event(&s, id, 1).status, NDX_E_IO_TIMEOUT);
	assert_int_equal(site_event(&s, id, 2).life, 2);
	assert_int_equal(ndx_session_manager_report(s.manager, id, 1, NDX_E_IO_TIMEOUT),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("life 1");
	assert_int_equal(site_stats(&s).up, 1);
	site_close(&s);
}

/* The pauses double, each shortened by half at most; then the manager gives up. */
static void it_gives_up_after_so_many_failures(void **state)
{
	struct ndx_session_manager_attr attr;
	struct ndx_managed_entry entry;
	char gone[CLOSED_PORT_TEXT];
	const char *address = gone;
	const int fd = closed_port(gone);
	size_t count = 1;
	struct site s;
	uint64_t id;

	(void)state;
	site_open(&s, true);
	site_manager_attr(&s, &attr);
	attr.attempts = 6;
	site_manage(&s, &attr);
	id = site_add(&s, &address, 1);
	for (unsigned i = 0; i < 6; i++) {
		const struct ndx_managed_event e = site_event(&s, id, i);
		const unsigned pause = 10u << i < 100 ? 10u << i : 100;

		assert_int_equal(e.kind, NDX_MANAGED_EVENT_FAILED);
		assert_int_equal(e.status, NDX_E_CONNECTION_REFUSED);
		assert_int_equal(e.layer, NDX_LAYER_TRANSPORT);
		assert_int_equal(e.failures, i + 1);
		assert_true(i == 5 ? e.pause_ms == 0
		                   : e.pause_ms <= pause && e.pause_ms >= pause / 2);
	}
	assert_int_equal(site_event(&s, id, 6).kind, NDX_MANAGED_EVENT_GAVE_UP);
	site_await(&s, NDX_MANAGED_OVER, 1);
	assert_int_equal(ndx_session_manager_list(s.manager, &entry, &count, NULL), NDX_OK);
	assert_int_equal(entry.state, NDX_MANAGED_OVER);
	assert_int_equal(entry.attempts, 6);
	assert_int_equal(entry.status, NDX_E_CONNECTION_REFUSED);
	assert_non_null(strstr(entry.text, gone));
	site_close(&s);
	(void)close(fd);
}

/* A server that takes sessions and drops them at once is paused for like one that is away. */
static void a_short_life_counts_as_a_failure(void **state)
{
	struct ndx_session_manager_attr attr;
	struct site s;
	uint64_t id;

	(void)state;
	begin_site(&s, true, &attr);
	attr.stable_ms = WAIT_MS;
	attr.attempts = 3;
	id = manage_one(&s, &attr);
	for (unsigned life = 1; life <= 3; life++) {
		assert_int_equal(site_event(&s, id, 2 * life - 2).kind, NDX_MANAGED_EVENT_UP);
		assert_int_equal(
			ndx_session_manager_report(s.manager, id, life, NDX_E_CONNECTION_ABORTED),
			NDX_OK);
		assert_int_equal(site_event(&s, id, 2 * life - 1).failures, life);
	}
	assert_int_equal(site_event(&s, id, 6).kind, NDX_MANAGED_EVENT_GAVE_UP);
	site_close(&s);
}

/* The backup is asked in the same attempt, so without a pause. */
static void the_backup_is_asked_in_the_same_attempt(void **state)
{
	struct ndx_session_manager_attr attr;
	char gone[CLOSED_PORT_TEXT];
	const char *addresses[2] = {gone};
	const int fd = closed_port(gone);
	struct site s;
	uint64_t id;

	(void)state;
	begin_site(&s, false, &attr);
	site_manage(&s, &attr);
	addresses[1] = s.address;
	id = site_add(&s, addresses, 2);
	assert_int_equal(site_event(&s, id, 0).kind, NDX_MANAGED_EVENT_UP);
	assert_string_equal(site_event(&s, id, 0).server, s.address);
	assert_int_equal(site_stats(&s).attempts, 1);
	site_close(&s);
	(void)close(fd);
}

static void the_keys_of_a_former_life_are_refused(void **state)
{
	struct ndx_session_manager_attr attr;
	struct site s;
	uint64_t id;

	(void)state;
	begin_site(&s, false, &attr);
	s.token = 5;
	s.same_token = true;
	id = manage_one(&s, &attr);
	assert_int_equal(site_event(&s, id, 0).kind, NDX_MANAGED_EVENT_UP);
	site_abort(&s);
	assert_int_equal(site_event(&s, id, 1).kind, NDX_MANAGED_EVENT_DOWN);
	assert_int_equal(site_event(&s, id, 2).kind, NDX_MANAGED_EVENT_FAILED);
	assert_int_equal(site_event(&s, id, 2).status, NDX_E_INVALID_CONFIG);
	assert_non_null(strstr(site_event(&s, id, 2).text, "register it anew"));
	pthread_mutex_lock(&s.lock);
	s.same_token = false;
	s.token++;
	pthread_mutex_unlock(&s.lock);
	site_await(&s, NDX_MANAGED_UP, 1);
	site_close(&s);
}

static void a_program_that_provides_nothing_has_failed_attempts(void **state)
{
	struct ndx_session_manager_attr attr;
	const char *address = "127.0.0.1:1";
	struct site s;
	uint64_t id;

	(void)state;
	site_open(&s, false);
	site_manager_attr(&s, &attr);
	attr.attempts = 2;
	site_manage(&s, &attr);
	s.refuse = NDX_E_NO_MEMORY;
	id = site_add(&s, &address, 1);
	assert_int_equal(site_event(&s, id, 0).status, NDX_E_NO_MEMORY);
	assert_int_equal(site_event(&s, id, 2).kind, NDX_MANAGED_EVENT_GAVE_UP);
	assert_int_equal(s.provided, 0);
	site_close(&s);
}

/* A socket that accepts and says nothing. */
static int silent_port(char text[CLOSED_PORT_TEXT])
{
	const int fd = closed_port(text);

	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

static void each_state_can_be_cancelled(void **state)
{
	struct ndx_session_manager_attr attr;
	char silent[CLOSED_PORT_TEXT];
	char gone[CLOSED_PORT_TEXT];
	const char *const quiet = silent;
	const char *const away = gone;
	const int fds[2] = {silent_port(silent), closed_port(gone)};
	struct ndx_session_manager_stats stats;
	struct site s;
	uint64_t ids[3];

	(void)state;
	site_open(&s, false);
	site_manager_attr(&s, &attr);
	attr.max_connecting = 1;
	attr.backoff_ms = WAIT_MS;
	attr.backoff_most_ms = WAIT_MS;
	site_manage(&s, &attr);
	ids[0] = site_add(&s, &away, 1);
	site_await(&s, NDX_MANAGED_WAITING, 1);
	assert_int_equal(site_event(&s, ids[0], 0).kind, NDX_MANAGED_EVENT_FAILED);
	ids[1] = site_add(&s, &quiet, 1);
	site_await(&s, NDX_MANAGED_CONNECTING, 1);
	ids[2] = site_add(&s, &quiet, 1);
	site_await(&s, NDX_MANAGED_QUEUED, 1);
	assert_int_equal(ndx_session_manager_remove(s.manager, ids[2]), NDX_E_DEVICE_BUSY);
	assert_int_equal(ndx_session_manager_cancel(s.manager, ids[2]), NDX_OK);
	assert_int_equal(site_event(&s, ids[2], 0).kind, NDX_MANAGED_EVENT_CANCELED);
	assert_int_equal(ndx_session_manager_cancel(s.manager, ids[0]), NDX_OK);
	assert_int_equal(site_event(&s, ids[0], 1).kind, NDX_MANAGED_EVENT_CANCELED);
	(void)poll(NULL, 0, 20); /* so that the attempt waits for the server's answer */
	assert_int_equal(ndx_session_manager_cancel(s.manager, ids[1]), NDX_OK);
	assert_int_equal(ndx_session_manager_cancel(s.manager, ids[1]), NDX_OK);
	assert_int_equal(site_event(&s, ids[1], 0).kind, NDX_MANAGED_EVENT_CANCELED);
	site_await(&s, NDX_MANAGED_OVER, 3);
	stats = site_stats(&s);
	assert_int_equal(stats.canceled, 3);
	assert_int_equal(stats.attempts, 2);
	assert_int_equal(s.count, 4);
	site_close(&s);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* A close has a time-out; nothing is lost when the time is over. */
static void a_close_waits_as_long_as_it_may(void **state)
{
	struct site s;
	uint64_t id;

	(void)state;
	one(&s, true, &id);
	__atomic_store_n(&s.hold, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_manager_close(s.manager, 30), NDX_PENDING);
	assert_int_equal(ndx_session_manager_close(s.manager, 0), NDX_PENDING);
	__atomic_store_n(&s.hold, 0, __ATOMIC_SEQ_CST);
	site_close(&s);
}

/* The callbacks may call the manager; a close in one of them does not wait for itself. */
static void a_callback_may_cancel_and_begin_the_close(void **state)
{
	struct ndx_session_manager_attr attr;
	struct site s;
	uint64_t id;

	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		begin_site(&s, false, &attr);
		s.cancels = closes == 0;
		s.closes = closes == 1;
		id = manage_one(&s, &attr);
		assert_int_equal(site_event(&s, id, 0).kind, NDX_MANAGED_EVENT_UP);
		assert_int_equal(site_event(&s, id, 1).kind, NDX_MANAGED_EVENT_DOWN);
		assert_int_equal(site_event(&s, id, 2).kind, NDX_MANAGED_EVENT_CANCELED);
		site_await(&s, NDX_MANAGED_OVER, 1);
		site_close(&s);
	}
}

/* ---- events in a queue ---- */

static void events_can_be_waited_for_with_poll(void **state)
{
	struct ndx_session_manager_attr attr;
	struct ndx_overlapped *done = NULL;
	struct ndx_overlapped other = {0};
	struct ndx_overlapped ov = {0};
	struct ndx_managed_event e = {0};
	struct ndx_port *port;
	struct pollfd p = {.events = POLLIN};
	const char *address;
	struct site s;
	uint64_t id;

	(void)state;
	begin_site(&s, true, &attr);
	attr.max_events = 2;
	site_manage(&s, &attr);
	assert_int_equal(ndx_port_create(&port), NDX_OK);
	ov.port = port;
	p.fd = ndx_port_get_fd(port);
	assert_int_equal(ndx_session_manager_get_event(s.manager, &e, &ov), NDX_PENDING);
	assert_int_equal(ndx_session_manager_get_event(s.manager, &e, &other),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(poll(&p, 1, 0), 0);
	address = s.address;
	id = site_add(&s, &address, 1);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(ndx_port_get(port, &done, 1, 0), 1);
	assert_ptr_equal(done, &ov);
	assert_int_equal(ov.status, NDX_OK);
	assert_int_equal(e.kind, NDX_MANAGED_EVENT_UP);
	assert_int_equal(e.id, id);
	/* Three events, of which two are kept. */
	assert_int_equal(ndx_session_manager_report(s.manager, id, 1, NDX_E_IO_TIMEOUT), NDX_OK);
	assert_int_equal(site_event(&s, id, 2).kind, NDX_MANAGED_EVENT_UP);
	assert_int_equal(ndx_session_manager_report(s.manager, id, 2, NDX_E_IO_TIMEOUT), NDX_OK);
	assert_int_equal(site_event(&s, id, 4).kind, NDX_MANAGED_EVENT_UP);
	assert_int_equal(site_stats(&s).events_lost, 2);
	assert_int_equal(ndx_session_manager_get_event(s.manager, &e, &ov), NDX_OK);
	assert_int_equal(e.kind, NDX_MANAGED_EVENT_DOWN);
	assert_int_equal(e.life, 2);
	assert_int_equal(ndx_session_manager_get_event(s.manager, &e, &ov), NDX_OK);
	assert_int_equal(e.life, 3);
	/* A request is cancelled. */
	assert_int_equal(ndx_session_manager_get_event(s.manager, &e, &other), NDX_PENDING);
	ndx_session_manager_cancel_event(s.manager);
	assert_int_equal(ndx_overlapped_wait(&other, 0), NDX_E_CANCELED);
	site_close(&s);
	ndx_port_close(port);
}

/* ---- two ends that connect to each other ---- */

/* Both serve, both connect, at the same time: two connections. */
static void two_ends_that_connect_to_each_other_get_two_connections(void **state)
{
	struct ndx_session_manager_attr attr;
	struct site ends[2];
	const char *addresses[2] = {ends[0].address, ends[1].address};

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_site(&ends[i], false, &attr);
		site_manage(&ends[i], &attr);
	}
	for (int i = 0; i < 20; i++)
		for (int k = 0; k < 2; k++)
			(void)site_add(&ends[k], &addresses[1 - k], 1);
	for (int k = 0; k < 2; k++) {
		struct ndx_session_manager_stats stats;

		site_await(&ends[k], NDX_MANAGED_UP, 20);
		stats = site_stats(&ends[k]);
		assert_int_equal(stats.attempts, 20);
		assert_int_equal(stats.failed, 0);
	}
	/* Each end loses its own, and gets it again. */
	for (int k = 0; k < 2; k++)
		site_abort(&ends[k]);
	for (int k = 0; k < 2; k++) {
		while (site_stats(&ends[k]).lives < 40)
			(void)poll(NULL, 0, 1);
		site_await(&ends[k], NDX_MANAGED_UP, 20);
	}
	for (int k = 0; k < 2; k++)
		assert_int_equal(ndx_session_manager_close(ends[k].manager, WAIT_MS), NDX_OK);
	for (int k = 0; k < 2; k++) {
		ends[k].manager = NULL;
		site_close(&ends[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(a_connection_that_aborts_is_made_anew),
		cmocka_unit_test(a_peer_that_ends_gracefully_may_be_the_end),
		cmocka_unit_test(without_a_connector_the_transport_tells),
		cmocka_unit_test(a_report_ends_the_life_that_it_names),
		cmocka_unit_test(it_gives_up_after_so_many_failures),
		cmocka_unit_test(a_short_life_counts_as_a_failure),
		cmocka_unit_test(the_backup_is_asked_in_the_same_attempt),
		cmocka_unit_test(the_keys_of_a_former_life_are_refused),
		cmocka_unit_test(a_program_that_provides_nothing_has_failed_attempts),
		cmocka_unit_test(each_state_can_be_cancelled),
		cmocka_unit_test(a_close_waits_as_long_as_it_may),
		cmocka_unit_test(a_callback_may_cancel_and_begin_the_close),
		cmocka_unit_test(events_can_be_waited_for_with_poll),
		cmocka_unit_test(two_ends_that_connect_to_each_other_get_two_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
