/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose calls do not block: overlapped objects, cancel, close. */
#include "async_rig.h"

#include <poll.h>

#include <ndx/spi/container_of.h>

enum { ROUNDS = 20 };

static void each_call_completes_its_object(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_OK);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_CONNECTED);
	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++) {
		assert_int_equal(ndx_session_execute_overlapped(s, (enum ndx_stage)stage, &ov),
		                 NDX_PENDING);
		completes(&ov, NDX_OK);
	}
	ndx_session_close(s);
	server_stop(&server);
}

/* What fails at once leaves the object and the session as they were. */
static void a_call_that_cannot_begin_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped other = {.status = NDX_E_CANCELED};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(NULL, &ov), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_run_overlapped(s, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, &other),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("call ndx_session_connect() first");
	assert_int_equal(ndx_overlapped_status(&other), NDX_E_CANCELED);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_OK);
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_READY, &other),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("stage info is next");
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, NULL),
	                 NDX_E_INVALID_PARAMETER);
	/* That did not begin the stage. */
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_INFO), NDX_OK);
	ndx_session_close(s);
	server_stop(&server);
}

static void one_call_at_a_time(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped second = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
	assert_int_equal(ndx_session_run_overlapped(s, &second), NDX_E_INVALID_DEVICE_STATE);
	says("another call on session");
	assert_int_equal(ndx_session_run(s), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	ndx_session_cancel(s);
	/* No function of the plugin was running. */
	assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
}

static void a_failure_is_the_status(void **state)
{
	struct rig *r = *state;
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, REFUSING, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_E_NOT_FOUND);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_FAILED);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_non_null(strstr(e.text, "the server refuses"));
	ndx_session_close(s);
	server_stop(&server);
}

static void a_cancel_ends_it_wherever_it_is(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (unsigned round = 0; round < 60; round++) {
		struct ndx_overlapped ov = {0};
		struct ndx_session *s;
		struct server server;
		enum ndx_status st;

		server_start(&server, conducts[round % 3], r->variant);
		s = session_with(r, server.address);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		if (round % 2 == 1)
			await_served(&server);
		ndx_session_cancel(s);
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		if (st != NDX_E_CANCELED && !(round % 3 == 2 && st == NDX_OK))
			fail_msg("round %u: %s", round, ndx_status_name(st));
		ndx_session_close(s);
		server_stop(&server);
	}
}

/* Close completes what is in flight before it returns. */
static void a_close_ends_the_call(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (unsigned round = 0; round < 60; round++) {
		struct ndx_overlapped ov = {0};
		struct ndx_session *s;
		struct server server;

		server_start(&server, conducts[round % 3], r->variant);
		s = session_with(r, server.address);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		if (round % 2 == 1)
			await_served(&server);
		ndx_session_close(s);
		if (ov.status != NDX_E_CANCELED)
			assert_true(round % 3 == 2);
		assert_int_not_equal(ndx_overlapped_status(&ov), NDX_PENDING);
		server_stop(&server);
	}
}

static void a_plugins_transport_blocks_nobody(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;

	for (int silent = 0; silent < 2; silent++) {
		server_start(&server, silent ? SLOW_TO_SPEAK : GOOD, r->variant);
		s = bus_session(r, &v, &server);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		if (silent)
			ndx_session_cancel(s);
		completes(&ov, silent ? NDX_E_CANCELED : NDX_OK);
		ndx_session_close(s);
		assert_int_equal(bus.opened, 0);
		ndx_variant_close(v);
		server_stop(&server);
	}
}

static void a_cancel_while_connecting_closes_the_transport(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = bus_session(r, &v, &server);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_served(&server);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(bus.opened, 0);
	ndx_session_close(s);
	ndx_variant_close(v);
	server_stop(&server);
}

static unsigned count_cancelled(const struct ndx_session *s, enum ndx_history_kind kind)
{
	struct ndx_history_entry entries[64];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += entries[i].kind == kind && entries[i].status == NDX_E_CANCELED;
	return n;
}

/* The first attempt has failed; the pause begins before the loop thread runs the next job. */
static void await_entry(const struct ndx_session *s)
{
	uint64_t total = 0;

	for (int ms = 0; ms < AWAIT_MS && total == 0; ms++) {
		size_t count = 0;

		assert_int_equal(ndx_session_get_history(s, NULL, &count, &total), NDX_OK);
		(void)poll(NULL, 0, 1);
	}
	assert_int_not_equal(total, 0);
}

static void the_history_has_what_was_cancelled(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_served(&server);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_CONNECT), 1);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_BACKOFF), 0);
	ndx_session_close(s);
	server_stop(&server);
	/* The server does not listen any more. */
	s = session_with(r, server.address);
	s->attr.backoff_ms = s->attr.backoff_most_ms = WAIT_MS;
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_entry(s);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_CONNECT), 0);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_BACKOFF), 1);
	ndx_session_close(s);
}

/* ---- a thread that wakes late ---- */

static _Thread_local bool drowsy; /* this thread takes its time after a wait */
static int woken;                 /* atomic: it has been woken, and the call has ended */

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	const struct session_call *call = container_of(cond, struct session_call, turn);
	const int error = __real_pthread_cond_wait(cond, mutex);

	if (!drowsy || !call->done)
		return error;
	(void)pthread_mutex_unlock(mutex);
	__atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
	(void)poll(NULL, 0, 100);
	(void)pthread_mutex_lock(mutex);
	return error;
}

static void *run_drowsily(void *session)
{
	enum ndx_status st;

	drowsy = true;
	st = ndx_session_execute(session, NDX_STAGE_INFO);
	__atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
	return (void *)(intptr_t)st;
}

/* The call is in progress until its thread has the status. True: the thread had to wait for that.
 */
static bool end_late(struct rig *r)
{
	struct ndx_session *s;
	struct server server;
	pthread_t thread;
	enum ndx_status second;
	void *st;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	__atomic_store_n(&woken, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_drowsily, s), 0);
	await(&woken);
	second = ndx_session_execute(s, NDX_STAGE_VALIDATE);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	if (second != NDX_OK) {
		assert_int_equal(second, NDX_E_INVALID_DEVICE_STATE);
		assert_int_equal(ndx_session_execute(s, NDX_STAGE_VALIDATE), NDX_OK);
	}
	ndx_session_close(s);
	server_stop(&server);
	return second != NDX_OK;
}

/* On a busy machine the call may have ended before its thread waits; that is no failure. */
static void a_call_ends_with_its_thread(void **state)
{
	bool late = false;

	for (int i = 0; i < ROUNDS && !late; i++)
		late = end_late(*state);
	assert_true(late);
}

struct early {
	struct ndx_session *session;
	struct ndx_overlapped ov;
	enum ndx_status after;
};

/* On the sessions' thread: what the call has queued has not run yet. */
static void start_and_cancel(void *arg)
{
	struct early *e = arg;

	if (ndx_session_connect_overlapped(e->session, &e->ov) == NDX_PENDING)
		ndx_session_cancel(e->session);
	e->after = ndx_overlapped_status(&e->ov);
}

static void a_cancel_ends_a_call_that_has_not_begun(void **state)
{
	struct rig *r = *state;
	struct early e = {0};
	struct server server;

	server_start(&server, SILENT, r->variant);
	e.session = session_with(r, server.address);
	ndxp_loop_call(e.session->driver.engine->loop, start_and_cancel, &e);
	assert_int_equal(e.after, NDX_E_CANCELED);
	assert_int_equal(server.served, 0);
	ndx_session_close(e.session);
	server_stop(&server);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(each_call_completes_its_object),
		T(a_call_that_cannot_begin_changes_nothing),
		T(one_call_at_a_time),
		T(a_failure_is_the_status),
		T(a_cancel_ends_it_wherever_it_is),
		T(a_close_ends_the_call),
		T(a_plugins_transport_blocks_nobody),
		T(a_cancel_while_connecting_closes_the_transport),
		T(the_history_has_what_was_cancelled),
		T(a_call_ends_with_its_thread),
		T(a_cancel_ends_a_call_that_has_not_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
