/* SPDX-License-Identifier: BSD-2-Clause */
/* Overlapped objects, ports, and the loop that runs callbacks, timers, jobs and descriptors. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include "base_loop.h"
#include "base_ov.h"

#define ROUNDS 3000

static struct ndx_loop *loop;

static int make_loop(void **state)
{
	(void)state;
	return base_loop_create("ndx-test", &loop) == NDX_OK ? 0 : -1;
}

static int drop_loop(void **state)
{
	(void)state;
	base_loop_destroy(loop, NULL, NULL);
	return 0;
}

static void *complete_it(void *arg)
{
	base_ov_complete(arg, NDX_E_CANCELED, 7, 9);
	return NULL;
}

static void wait_returns_what_another_thread_completes_with(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS / 10; i++) {
		/* Fresh memory each time: the completer must not touch it after the waiter left. */
		struct ndx_overlapped *ov = calloc(1, sizeof(*ov));
		pthread_t t;

		assert_int_equal(base_ov_begin(ov, loop), NDX_OK);
		assert_int_equal(ndx_overlapped_status(ov), NDX_PENDING);
		assert_int_equal(pthread_create(&t, NULL, complete_it, ov), 0);
		assert_int_equal(ndx_overlapped_wait(ov, NDX_INFINITE), NDX_E_CANCELED);
		assert_int_equal(ov->information, 7);
		assert_int_equal(ov->native, 9);
		free(ov);
		assert_int_equal(pthread_join(t, NULL), 0);
	}
}

static void wait_gives_up_when_time_is_over(void **state)
{
	struct ndx_overlapped ov = {0};
	uint64_t before = ndxp_now_ns();

	(void)state;
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&ov, 20), NDX_PENDING);
	assert_true(ndxp_now_ns() - before >= 20000000);
	assert_int_equal(ndx_overlapped_wait(&ov, 0), NDX_PENDING);
	base_ov_complete(&ov, NDX_OK, 0, 0);
	assert_int_equal(ndx_overlapped_wait(&ov, 0), NDX_OK);
}

static void object_in_flight_is_refused_and_untouched(void **state)
{
	struct ndx_overlapped ov = {0};

	(void)state;
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	assert_int_equal(base_ov_begin(&ov, loop), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	base_ov_complete(&ov, NDX_OK, 3, 0);
	assert_int_equal(ov.information, 3);
	assert_int_equal(base_ov_begin(NULL, loop), NDX_E_INVALID_PARAMETER);
}

static void operation_that_fails_at_once_leaves_no_trace(void **state)
{
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped before = ov;

	(void)state;
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	base_ov_abandon(&ov);
	assert_memory_equal(&ov, &before, sizeof(ov));
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	base_ov_complete(&ov, NDX_E_REMOTE_ERROR, 3, 4);
	before = ov;
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	base_ov_abandon(&ov);
	assert_memory_equal(&ov, &before, sizeof(ov));
	assert_int_equal(ndx_overlapped_status(&ov), NDX_E_REMOTE_ERROR);
}

struct seen {
	struct ndx_overlapped ov;
	int calls;
	bool on_loop;
	enum ndx_status inside;
	enum ndx_status waited;
};

static void on_done(struct ndx_overlapped *ov)
{
	struct seen *seen = ov->context;
	struct ndx_overlapped other = {0};

	seen->calls++;
	seen->on_loop = base_loop_current(loop);
	seen->inside = ndx_overlapped_status(ov);
	assert_int_equal(base_ov_begin(&other, loop), NDX_OK);
	seen->waited = ndx_overlapped_wait(&other, 1000);
	base_ov_complete(&other, NDX_OK, 0, 0);
	/* The object is free again inside its own callback. */
	if (seen->calls < 3) {
		assert_int_equal(base_ov_begin(ov, loop), NDX_OK);
		base_ov_complete(ov, NDX_OK, 0, 0);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

static void callback_runs_on_the_loop_and_may_reuse_its_object(void **state)
{
	struct seen seen = {.ov = {.callback = on_done}};

	(void)state;
	seen.ov.context = &seen;
	assert_int_equal(base_ov_begin(&seen.ov, loop), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&seen.ov, 0), NDX_E_INVALID_PARAMETER);
	base_ov_complete(&seen.ov, NDX_OK, 0, 0);
	/* A call from outside also waits for the callbacks that were queued before it; each of
	 * these queues the next one. */
	for (int i = 0; i < 3; i++)
		ndxp_loop_call(loop, nothing, NULL);
	assert_int_equal(seen.calls, 3);
	assert_true(seen.on_loop);
	assert_int_equal(seen.inside, NDX_OK);
	assert_int_equal(seen.waited, NDX_E_WOULD_BLOCK);
}

static void port_hands_out_in_order_and_its_descriptor_follows(void **state)
{
	struct ndx_overlapped ovs[5] = {{0}};
	struct ndx_overlapped *got[5];
	struct ndx_port *port;
	struct pollfd p = {.events = POLLIN};

	(void)state;
	assert_int_equal(ndx_port_create(&port), NDX_OK);
	p.fd = ndx_port_get_fd(port);
	assert_int_equal(ndx_port_get(port, got, 5, 1), 0);
	for (int i = 0; i < 5; i++) {
		ovs[i].port = port;
		assert_int_equal(base_ov_begin(&ovs[i], loop), NDX_OK);
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	for (int i = 0; i < 5; i++)
		base_ov_complete(&ovs[i], NDX_OK, (uint32_t)i, 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ndx_overlapped_status(&ovs[4]), NDX_PENDING);
	assert_int_equal(ndx_port_get(port, got, 2, NDX_INFINITE), 2);
	assert_ptr_equal(got[0], &ovs[0]);
	assert_ptr_equal(got[1], &ovs[1]);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ndx_port_get(port, got, 5, 0), 3);
	assert_ptr_equal(got[2], &ovs[4]);
	assert_int_equal(poll(&p, 1, 0), 0);
	ndx_port_close(port);
}

struct port_work {
	struct ndx_port *port;
	struct ndx_overlapped *ovs;
};

static void *feed(void *arg)
{
	struct port_work *w = arg;

	for (int i = 0; i < ROUNDS; i++)
		base_ov_complete(&w->ovs[i], NDX_OK, (uint32_t)i, 0);
	return NULL;
}

static void port_loses_nothing_between_threads(void **state)
{
	struct port_work w = {.ovs = calloc(ROUNDS, sizeof(*w.ovs))};
	struct ndx_overlapped *got[7];
	uint32_t next = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(ndx_port_create(&w.port), NDX_OK);
	for (int i = 0; i < ROUNDS; i++) {
		w.ovs[i].port = w.port;
		assert_int_equal(base_ov_begin(&w.ovs[i], loop), NDX_OK);
	}
	assert_int_equal(pthread_create(&t, NULL, feed, &w), 0);
	while (next < ROUNDS) {
		size_t n = ndx_port_get(w.port, got, 7, 10000);

		assert_true(n > 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(got[i]->information, next++);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	ndx_port_close(w.port);
	free(w.ovs);
}

/* Throw back what comes. */
static void *play(void *arg)
{
	struct ndx_port *const *ports = arg;
	struct ndx_overlapped *got;
	unsigned left = ROUNDS;

	do {
		(void)ndx_port_get(ports[0], &got, 1, NDX_INFINITE);
		got->information++;
		ndx_port_post(ports[1], got);
	} while (--left > 0);
	return NULL;
}

/* No descriptor was asked for; each sleeps while the other one has it. */
static void port_wakes_a_sleeping_thread(void **state)
{
	struct ndx_overlapped ball = {0};
	struct ndx_port *ports[2];
	struct ndx_overlapped *got;
	pthread_t t;

	(void)state;
	assert_int_equal(ndx_port_create(&ports[0]), NDX_OK);
	assert_int_equal(ndx_port_create(&ports[1]), NDX_OK);
	assert_int_equal(pthread_create(&t, NULL, play, ports), 0);
	ndx_port_post(ports[0], &ball);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		assert_int_equal(ndx_port_get(ports[1], &got, 1, NDX_INFINITE), 1);
		assert_ptr_equal(got, &ball);
		assert_int_equal(ball.information, i);
		if (i < ROUNDS)
			ndx_port_post(ports[0], got);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	ndx_port_close(ports[0]);
	ndx_port_close(ports[1]);
}

struct order {
	int at;
	int seen[4];
	uint32_t fired;
};

struct step {
	struct order *order;
	int number;
};

static void note(void *arg)
{
	struct step *s = arg;

	s->order->seen[s->order->at++] = s->number;
	__atomic_fetch_add(&s->order->fired, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&s->order->fired, 1);
}

static void await(uint32_t *word, uint32_t value)
{
	uint32_t now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value)
		ndxp_futex_wait(word, now, UINT64_MAX);
}

/* On the loop's thread, so that none fires in between, however long that takes; and again, should
 * it have taken so long that their order is another one. */
static void set_timers(void *arg)
{
	static const uint32_t ms[4] = {30, 10, 20, 5};
	struct ndxp_timer *timers = arg;

	do {
		for (int i = 0; i < 4; i++)
			ndxp_timer_set(loop, &timers[i], ms[i]);
	} while (timers[1].deadline_ns >= timers[2].deadline_ns ||
	         timers[2].deadline_ns >= timers[0].deadline_ns);
	ndxp_timer_cancel(loop, &timers[3]);
}

static void timers_fire_by_deadline_not_by_order_of_setting(void **state)
{
	struct order order = {0};
	struct step steps[4];
	struct ndxp_timer timers[4] = {{0}};

	(void)state;
	for (int i = 0; i < 4; i++) {
		steps[i] = (struct step){&order, i};
		timers[i].fn = note;
		timers[i].arg = &steps[i];
	}
	ndxp_loop_call(loop, set_timers, timers);
	await(&order.fired, 3);
	ndxp_loop_call(loop, nothing, NULL);
	assert_int_equal(order.seen[0], 1);
	assert_int_equal(order.seen[1], 2);
	assert_int_equal(order.seen[2], 0);
	assert_int_equal(order.at, 3);
}

static void timer_may_be_set_again_before_it_fires(void **state)
{
	struct order order = {0};
	struct step step = {&order, 1};
	struct ndxp_timer timer = {.fn = note, .arg = &step};

	(void)state;
	for (int i = 0; i < 100; i++)
		ndxp_timer_set(loop, &timer, (uint32_t)(60000 - i));
	ndxp_timer_set(loop, &timer, 1);
	await(&order.fired, 1);
	ndxp_loop_call(loop, nothing, NULL);
	assert_int_equal(order.at, 1);
}

struct count {
	struct ndxp_job job;
	uint32_t runs;
	uint32_t due;
};

static void run_due(void *arg)
{
	struct count *c = arg;

	c->runs += __atomic_exchange_n(&c->due, 0, __ATOMIC_ACQ_REL);
}

static void *post_many(void *arg)
{
	struct count *c = arg;

	for (int i = 0; i < ROUNDS; i++) {
		__atomic_fetch_add(&c->due, 1, __ATOMIC_RELEASE);
		ndxp_loop_post(loop, &c->job);
	}
	return NULL;
}

static void no_posted_job_is_lost(void **state)
{
	struct count c = {.job = {.fn = run_due}};
	pthread_t t[3];

	(void)state;
	c.job.arg = &c;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, post_many, &c), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	ndxp_loop_call(loop, nothing, NULL);
	assert_int_equal(c.runs, 3 * ROUNDS);
}

struct pipe_watch {
	struct ndxp_watch watch;
	uint32_t events;
	int fds[2];
};

static void on_readable(void *arg, uint32_t events)
{
	struct pipe_watch *w = arg;

	(void)events;
	__atomic_fetch_add(&w->events, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&w->events, 1);
}

static void remove_watch(void *arg)
{
	struct pipe_watch *w = arg;

	ndxp_watch_remove(loop, &w->watch);
}

static void oneshot_watch_is_silent_until_rearmed(void **state)
{
	struct pipe_watch w = {.watch = {.fn = on_readable}};

	(void)state;
	assert_int_equal(pipe(w.fds), 0);
	w.watch.fd = w.fds[0];
	w.watch.arg = &w;
	assert_int_equal(ndxp_watch_add(loop, &w.watch, EPOLLIN, true), NDX_OK);
	assert_int_equal(write(w.fds[1], "x", 1), 1);
	await(&w.events, 1);
	ndxp_loop_call(loop, nothing, NULL);
	assert_int_equal(__atomic_load_n(&w.events, __ATOMIC_ACQUIRE), 1);
	ndxp_watch_rearm(loop, &w.watch, EPOLLIN);
	await(&w.events, 2);
	ndxp_loop_call(loop, remove_watch, &w);
	(void)close(w.fds[0]);
	(void)close(w.fds[1]);
}

static struct step last_step;

static void call_destroy(void *arg)
{
	base_loop_destroy(arg, note, &last_step);
}

static void loop_can_be_destroyed_from_its_own_thread(void **state)
{
	static struct order order;
	struct ndx_loop *mine;
	struct ndxp_job job = {.fn = call_destroy};

	(void)state;
	last_step = (struct step){&order, 1};
	assert_int_equal(base_loop_create("ndx-own", &mine), NDX_OK);
	job.arg = mine;
	ndxp_loop_post(mine, &job);
	await(&order.fired, 1);
	assert_int_equal(order.at, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait_returns_what_another_thread_completes_with),
		cmocka_unit_test(wait_gives_up_when_time_is_over),
		cmocka_unit_test(object_in_flight_is_refused_and_untouched),
		cmocka_unit_test(operation_that_fails_at_once_leaves_no_trace),
		cmocka_unit_test(callback_runs_on_the_loop_and_may_reuse_its_object),
		cmocka_unit_test(port_hands_out_in_order_and_its_descriptor_follows),
		cmocka_unit_test(port_loses_nothing_between_threads),
		cmocka_unit_test(port_wakes_a_sleeping_thread),
		cmocka_unit_test(timers_fire_by_deadline_not_by_order_of_setting),
		cmocka_unit_test(timer_may_be_set_again_before_it_fires),
		cmocka_unit_test(no_posted_job_is_lost),
		cmocka_unit_test(oneshot_watch_is_silent_until_rearmed),
		cmocka_unit_test(loop_can_be_destroyed_from_its_own_thread),
	};

	return cmocka_run_group_tests(tests, make_loop, drop_loop);
}
