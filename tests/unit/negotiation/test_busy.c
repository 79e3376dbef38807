/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose calls do not block, while functions of plugins occupy the threads. */
#include "async_rig.h"

#include <poll.h>

#include <ndx/spi/system.h>

static struct pool *pool_of(const struct ndx_session *s)
{
	return &s->driver.engine->pool;
}

/* The pool gets no further thread. */
static void limit_pool(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->most = pool->threads;
	pthread_mutex_unlock(&pool->lock);
}

static void a_cancel_does_not_wait_for_the_plugin(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = busy_session(r, server.address, &ov);
	ndx_session_cancel(s);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	completes(&ov, NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
}

/* The busy session has the only thread. */
static void a_session_that_waits_for_a_thread_ends(void **state)
{
	struct rig *r = *state;

	for (int cancel = 0; cancel < 2; cancel++) {
		struct ndx_overlapped busy_ov = {0};
		struct ndx_overlapped ov = {0};
		struct ndx_negotiation_server *good;
		struct ndx_session *busy;
		struct ndx_session *s;
		struct server server;
		char address[32];
		const char *servers[1] = {address};

		good = many_server(r, address);
		server_start(&server, GOOD, r->variant);
		busy = busy_session(r, server.address, &busy_ov);
		limit_pool(pool_of(busy));
		s = rig_session(r, servers, 1, WAIT_MS, cancel ? WAIT_MS : 100);
		assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
		completes(&ov, NDX_OK);
		assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, &ov),
		                 NDX_PENDING);
		if (cancel) {
			(void)poll(NULL, 0, 20);
			ndx_session_cancel(s);
			assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
		} else {
			completes(&ov, NDX_E_IO_TIMEOUT);
		}
		__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
		completes(&busy_ov, NDX_OK);
		ndx_session_close(s);
		ndx_session_close(busy);
		server_stop(&server);
		ndx_negotiation_server_close(good);
	}
}

/* ---- a plugin's transport whose next operation waits for a thread ---- */

/* What waits, as the operation of the transport that precedes. */
enum waiting { CONNECT, HELLO, WELCOME, CALL, ANSWER, LAST_WORDS, EACH };

struct times {
	uint32_t connect_ms;
	uint32_t stage_ms;
	uint32_t session_ms;
};

static const struct times brief = {100, 100, 400};

struct queue {
	struct rig *rig;
	struct server busy_server;
	struct server server;
	struct ndx_session *busy; /* has the only thread */
	struct ndx_overlapped busy_ov;
	struct ndx_session *s; /* waits */
	struct ndx_variant *variant;
	struct ndx_overlapped ov;
};

/* A task waits for a thread, or the call has ended. */
static void await_queued(struct pool *pool, const struct ndx_overlapped *ov)
{
	unsigned queued = 0;

	while (queued == 0 && ndx_overlapped_status(ov) == NDX_PENDING) {
		pthread_mutex_lock(&pool->lock);
		queued = pool->queued;
		pthread_mutex_unlock(&pool->lock);
		(void)poll(NULL, 0, 1);
	}
}

static void start_waiting(struct queue *q)
{
	assert_int_equal(ndx_session_run_overlapped(q->s, &q->ov), NDX_PENDING);
}

/* The busy session's function gets the thread between two operations of the other session. */
static void start_between(struct queue *q, enum waiting waiting, int late_ms)
{
	const uint64_t end = ndxp_deadline(AWAIT_MS);

	__atomic_store_n(&bus.hold, (int)waiting, __ATOMIC_SEQ_CST);
	start_waiting(q);
	while (__atomic_load_n(&bus.held, __ATOMIC_SEQ_CST) == 0 && ndxp_now_ns() < end) {
		if (ndx_overlapped_status(&q->ov) != NDX_PENDING)
			fail_msg("the call has ended before operation %d: %s", (int)waiting,
			         ndx_status_name(ndx_overlapped_status(&q->ov)));
		(void)poll(NULL, 0, 1);
	}
	await(&bus.held);
	limit_pool(pool_of(q->s));
	__atomic_store_n(&stuck, 1, __ATOMIC_SEQ_CST);
	q->busy = session_with(q->rig, q->busy_server.address);
	assert_int_equal(ndx_session_run_overlapped(q->busy, &q->busy_ov), NDX_PENDING);
	await_queued(pool_of(q->busy), &q->busy_ov);
	(void)poll(NULL, 0, late_ms);
	__atomic_store_n(&bus.hold, 0, __ATOMIC_SEQ_CST);
	await_value(&stuck, 2);
}

/* `late_ms`: the operation that precedes ends so much later. */
static void queue_up(struct queue *q, struct rig *r, enum waiting waiting,
                     const struct times *times, int late_ms)
{
	memset(q, 0, sizeof(*q));
	q->rig = r;
	server_start(&q->busy_server, GOOD, r->variant);
	server_start(&q->server, waiting == LAST_WORDS ? SLOW_TO_SPEAK : GOOD, r->variant);
	bus = (struct bus){0};
	q->s = bus_session(r, &q->variant, &q->server);
	q->s->attr.attempts = 1;
	q->s->attr.connect_timeout_ms = times->connect_ms;
	q->s->attr.stage_timeout_ms = times->stage_ms;
	q->s->attr.session_timeout_ms = times->session_ms;
	if (waiting != CONNECT) {
		start_between(q, waiting, late_ms);
		return;
	}
	q->busy = busy_session(r, q->busy_server.address, &q->busy_ov);
	limit_pool(pool_of(q->busy));
	start_waiting(q);
}

static void queue_end(struct queue *q)
{
	assert_int_equal(__atomic_load_n(&stuck, __ATOMIC_SEQ_CST), 2);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	completes(&q->busy_ov, NDX_OK);
	ndx_session_close(q->s);
	ndx_session_close(q->busy);
	assert_int_equal(bus.opened, 0);
	ndx_variant_close(q->variant);
	server_stop(&q->server);
	server_stop(&q->busy_server);
}

static void explains(const struct ndx_session *s, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
}

static void whatever_waits_for_a_thread_ends_in_time(void **state)
{
	/* Not the cause: on a slow machine the operation that precedes may have used the time. */
	static const char *const texts[EACH] = {
		[CONNECT] = "all threads for functions of plugins are busy",
		[HELLO] = "the session's time, 400 ms, is over while connecting: time is over: ",
		[WELCOME] = "the session's time, 400 ms, is over while connecting: time is over: ",
		[CALL] = "all threads for functions of plugins are busy",
		[ANSWER] = "time is over: ",
		[LAST_WORDS] = "nothing came from the peer",
	};

	for (int waiting = CONNECT; waiting < EACH; waiting++) {
		struct queue q;

		queue_up(&q, *state, (enum waiting)waiting, &brief, 0);
		completes(&q.ov, NDX_E_IO_TIMEOUT);
		explains(q.s, texts[waiting]);
		queue_end(&q);
	}
}

/* The time is over before the operation begins to wait. */
static void what_begins_to_wait_too_late_ends_at_once(void **state)
{
	static const enum waiting late[] = {HELLO, WELCOME, ANSWER};

	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		struct queue q;

		queue_up(&q, *state, late[i], &brief, 200);
		completes(&q.ov, NDX_E_IO_TIMEOUT);
		explains(q.s, "time is over: the plugin has used it up");
		queue_end(&q);
	}
}

/* Only the close of a transport is waited for. */
static void whatever_waits_for_a_thread_is_cancelled(void **state)
{
	for (int waiting = CONNECT; waiting < EACH; waiting++) {
		const bool closes = waiting == HELLO || waiting == WELCOME;
		struct times times = {WAIT_MS, WAIT_MS, 1000};
		struct queue q;

		if (waiting == LAST_WORDS)
			times.stage_ms = brief.stage_ms;
		queue_up(&q, *state, (enum waiting)waiting, &times, 0);
		await_queued(pool_of(q.s), &q.ov);
		ndx_session_cancel(q.s);
		if (!closes)
			assert_int_not_equal(ndx_overlapped_status(&q.ov), NDX_PENDING);
		completes(&q.ov, waiting == LAST_WORDS ? NDX_E_IO_TIMEOUT : NDX_E_CANCELED);
		queue_end(&q);
	}
}

static void whatever_waits_for_a_thread_is_closed(void **state)
{
	for (int waiting = CONNECT; waiting < EACH; waiting++) {
		struct queue q;

		queue_up(&q, *state, (enum waiting)waiting, &brief, 0);
		ndx_session_close(q.s);
		q.s = NULL;
		assert_int_not_equal(ndx_overlapped_status(&q.ov), NDX_PENDING);
		queue_end(&q);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_cancel_does_not_wait_for_the_plugin),
		T(a_session_that_waits_for_a_thread_ends),
		T(whatever_waits_for_a_thread_ends_in_time),
		T(what_begins_to_wait_too_late_ends_at_once),
		T(whatever_waits_for_a_thread_is_cancelled),
		T(whatever_waits_for_a_thread_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
