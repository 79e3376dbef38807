/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the transport, of the session and of the connection that share it. */
#include "oob_rig.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "connection.h"
#include "server.h"

static int counted = -1; /* atomic: a descriptor */
static int aborts;       /* atomic: that were sent there */

/* In place of the C library's, for the whole program. */
ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	const uint8_t *bytes = buf;

	if (fd == __atomic_load_n(&counted, __ATOMIC_SEQ_CST) && n == FRAME_HEADER &&
	    bytes[5] == FRAME_GOODBYE && bytes[7] == FRAME_ABORTED)
		(void)__atomic_add_fetch(&aborts, 1, __ATOMIC_SEQ_CST);
	return sendto(fd, buf, n, flags, NULL, 0);
}

/* Without the transport no side can say goodbye: that is an abort at once, on both sides. */
static void the_servers_end_is_an_abort(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		rig_run(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		ndx_negotiation_server_close(r.server);
		r.server = NULL;
		indicated(&r.a, NDX_DISCONNECT_ABORTED);
		indicated(&r.b, NDX_DISCONNECT_ABORTED);
		start_disconnect(&r.a);
		disconnected(&r.a, NDX_E_CONNECTION_ABORTED);
		rig_down(&r);
	}
}

static void an_abort_is_reported(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	assert_int_equal(ndx_qp_flush(r.a.qp), NDX_OK);
	indicated(&r.b, NDX_DISCONNECT_ABORTED);
	rig_down(&r);
	rig_run(&r);
	assert_int_equal(ndx_qp_flush(r.b.qp), NDX_OK);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	rig_down(&r);
}

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static unsigned connects(const struct ndx_session *s)
{
	struct ndx_history_entry entries[64];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += entries[i].kind == NDX_HISTORY_CONNECT;
	return n;
}

/* The connection goes on over another transport, as long as stage ready has not ended. */
static void a_lost_transport_is_replaced(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	__atomic_store_n(&stuck, 1, __ATOMIC_SEQ_CST);
	rig_up(&r);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	await_value(&stuck, 2);
	watch(&r.a);
	watch(&r.b);
	cut_transport(r.session, SHUT_RDWR);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	assert_int_equal(connects(r.session), 2);
	disconnect_both(&r.a, &r.b);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
}

static void *close_session(void *session)
{
	ndx_session_close(session);
	return NULL;
}

/* While the plugin ends the session, goodbyes of the connection pass. */
static void goodbyes_pass_while_the_plugin_ends(void **state)
{
	pthread_t thread;
	struct rig r;

	(void)state;
	rig_run(&r);
	__atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, close_session, r.session), 0);
	r.session = NULL;
	await_value(&ending, 2);
	disconnect_both(&r.b, &r.a);
	assert_int_equal(__atomic_load_n(&ending, __ATOMIC_SEQ_CST), 2);
	__atomic_store_n(&ending, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rig_down(&r);
}

static const char *latest_event(const struct end *e)
{
	static struct ndx_transition last;
	size_t count = 1;

	assert_int_equal(ndx_connector_get_history(e->connector, &last, &count, NULL), NDX_OK);
	return count == 1 ? last.event : "";
}

/* The client connects its queue pair; the server does not yet, and the transport is lost. The
 * transport is replaced before the server does what ends the connecting. */
static void a_lost_transport_is_replaced_while_connecting(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	managed = true;
	held_stage = NDX_STAGE_INFO;
	rig_up(&r);
	managed = false;
	__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	await(&r.informed);
	while (strcmp(latest_event(&r.a), "CONNECT_PEER") != 0)
		(void)poll(NULL, 0, 1);
	cut_transport(r.session, SHUT_RD);
	while (connects(r.session) < 2)
		(void)poll(NULL, 0, 1);
	assert_string_equal(latest_event(&r.a), "CONNECT_PEER");
	__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	rig_down(&r);
	held_stage = NDX_STAGE_READY;
}

/* What was connected may be gone before the session that did it. */
static void the_connection_may_go_first(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	disconnect_both(&r.a, &r.b);
	ndx_connector_close(r.a.connector);
	r.a.connector = NULL;
	ndx_qp_close(r.a.qp);
	r.a.qp = NULL;
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
}

static void a_cancelled_session_takes_its_connection_along(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	ndx_session_cancel(r.session);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_E_CANCELED);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	ndx_session_close(r.session);
	r.session = NULL;
	indicated(&r.b, NDX_DISCONNECT_ABORTED);
	rig_down(&r);
}

/* A client that goes no further than stage info: the server's end is given up in its time. */
static void a_peer_that_never_connects_is_given_up(void **state)
{
	struct ndx_negotiation_server_stats stats = {0};
	struct rig r;

	(void)state;
	stage_ms = 200;
	managed = true;
	rig_up(&r);
	stage_ms = 0;
	managed = false;
	assert_int_equal(ndx_session_connect(r.session), NDX_OK);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_INFO), NDX_OK);
	for (int ms = 0; ms < WAIT_MS && stats.failed == 0; ms++) {
		(void)poll(NULL, 0, 1);
		stats.size = sizeof(stats);
		assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
	}
	assert_int_equal(stats.failed, 1);
	rig_down(&r);
}

/* ---- a time-out of the server at the moment when the connection ends ---- */

struct moment {
	struct ndx_session *theirs;
	int idle;    /* atomic: the server's session has nothing to do */
	int reached; /* atomic */
	uint32_t pending;
};

/* On the server's thread, as the next. */
static void look_whether_idle(void *arg)
{
	struct moment *m = arg;

	__atomic_store_n(&m->idle, client_of(m->theirs)->idle, __ATOMIC_SEQ_CST);
}

/* What the connection has queued has not run yet. */
static void expire_when_the_connection_ends(void *arg)
{
	struct moment *m = arg;
	struct driver *d = &m->theirs->driver;

	__atomic_store_n(&m->reached, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < AWAIT_MS && __atomic_load_n(&d->oob_ended, __ATOMIC_ACQUIRE) == 0;
	     ms++)
		(void)poll(NULL, 0, 1);
	m->pending = __atomic_load_n(&d->oob_pending, __ATOMIC_ACQUIRE);
	d->timer.fn(d->timer.arg);
}

static void *run_moment(void *moment)
{
	struct moment *m = moment;

	ndxp_loop_call(m->theirs->driver.engine->loop, expire_when_the_connection_ends, m);
	return NULL;
}

/* The session is finished only when the connection's last word was sent. */
static void the_servers_time_out_does_not_lose_an_abort(void **state)
{
	struct moment m = {0};
	pthread_t thread;
	struct rig r;

	(void)state;
	stage_ms = 300;
	rig_run(&r);
	stage_ms = 0;
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	m.theirs = r.theirs;
	while (__atomic_load_n(&m.idle, __ATOMIC_SEQ_CST) == 0)
		ndxp_loop_call(r.theirs->driver.engine->loop, look_whether_idle, &m);
	__atomic_store_n(&counted, r.theirs->driver.fd, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, run_moment, &m), 0);
	await(&m.reached);
	assert_int_equal(ndx_qp_flush(r.b.qp), NDX_OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(m.pending, OOB_ABORT);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	wait_closed(&r);
	assert_int_equal(__atomic_load_n(&aborts, __ATOMIC_SEQ_CST), 1);
	__atomic_store_n(&counted, -1, __ATOMIC_SEQ_CST);
	rig_down(&r);
}

/* Of the two objects of the queue pair the server's program gives one. */
static void a_queue_pair_with_one_object_is_refused(void **state)
{
	static const char *const texts[] = {"gave no connector beside its queue pair",
	                                    "gave no queue pair beside its connector"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ndx_session_error e = {.size = sizeof(e)};
		struct rig r;

		lacks_connector = i == 0;
		lacks_qp = i == 1;
		rig_up(&r);
		assert_int_equal(ndx_session_run(r.session), NDX_E_REMOTE_ERROR);
		assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
		if (strstr(e.text, texts[i]) == NULL)
			fail_msg("%s", e.text);
		wait_closed(&r); /* the program has opened, and gets its objects back */
		assert_int_equal(r.theirs_error.status, NDX_E_INVALID_PARAMETER);
		rig_down(&r);
	}
	lacks_connector = lacks_qp = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_servers_end_is_an_abort),
		cmocka_unit_test(an_abort_is_reported),
		cmocka_unit_test(a_lost_transport_is_replaced),
		cmocka_unit_test(goodbyes_pass_while_the_plugin_ends),
		cmocka_unit_test(a_lost_transport_is_replaced_while_connecting),
		cmocka_unit_test(the_connection_may_go_first),
		cmocka_unit_test(a_peer_that_never_connects_is_given_up),
		cmocka_unit_test(a_cancelled_session_takes_its_connection_along),
		cmocka_unit_test(the_servers_time_out_does_not_lose_an_abort),
		cmocka_unit_test(a_queue_pair_with_one_object_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
