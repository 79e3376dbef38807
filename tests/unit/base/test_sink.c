/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports that call a function, and objects that a callback or a sink hands on to another port. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ndx/spi/system.h>
#include "base_ov.h"
#include "loop_rig.h"

#define MOST 8
#define ROUNDS 1000
#define OWNER 5

static struct ndx_port *sink;
static struct ndx_port *queue;

/* What the sink and the callbacks have seen, in order. */
static struct {
	struct ndx_overlapped *ov[MOST];
	enum ndx_status status[MOST];
	pthread_t thread[MOST];
	uint32_t count;
} seen;

static void note(struct ndx_overlapped *ov)
{
	const uint32_t at = __atomic_fetch_add(&seen.count, 1, __ATOMIC_ACQ_REL);

	if (at >= MOST)
		return;
	seen.ov[at] = ov;
	seen.status[at] = ndx_overlapped_status(ov);
	seen.thread[at] = pthread_self();
}

static void pass_on(struct ndx_overlapped *ov)
{
	note(ov);
	ndx_port_post(queue, ov);
}

static void drop(struct ndx_overlapped *ov)
{
	memset(ov, 0xff, sizeof(*ov));
	free(ov);
}

static int make(void **state)
{
	memset(&seen, 0, sizeof(seen));
	return make_loop(state) == 0 && ndx_port_create_sink(note, &sink) == NDX_OK &&
	                       ndx_port_create(&queue) == NDX_OK
	               ? 0
	               : -1;
}

static int clean(void **state)
{
	ndx_port_close(queue);
	ndx_port_close(sink);
	return drop_loop(state);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Wait until the loop has delivered everything that was queued. */
static void await_loop(void)
{
	ndxp_loop_call(loop, nothing, NULL);
}

static void the_completing_thread_calls_the_sink(void **state)
{
	struct ndx_overlapped ov = {.port = sink};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
		assert_int_equal(ndx_overlapped_wait(&ov, 0), NDX_E_INVALID_PARAMETER);
		assert_int_equal(seen.count, i);
		base_ov_complete(&ov, NDX_E_CANCELED, 7, 9);
		assert_int_equal(seen.count, i + 1);
		assert_ptr_equal(seen.ov[i], &ov);
		assert_int_equal(seen.status[i], NDX_E_CANCELED);
		assert_true(pthread_equal(seen.thread[i], pthread_self()));
		assert_int_equal(ov.information, 7);
		assert_int_equal(ov.native, 9);
	}
}

static void a_sink_may_free_the_object(void **state)
{
	struct ndx_port *port = NULL;

	(void)state;
	assert_int_equal(ndx_port_create_sink(drop, &port), NDX_OK);
	for (int i = 0; i < ROUNDS; i++) {
		struct ndx_overlapped *ov = calloc(1, sizeof(*ov));

		assert_non_null(ov);
		ov->port = port;
		assert_int_equal(base_ov_begin(ov, loop), NDX_OK);
		if (i % 2 == 0)
			base_ov_complete(ov, NDX_OK, 0, 0);
		else
			base_ov_complete_behind(ov, OWNER, NDX_OK, 0, 0);
	}
	await_loop();
	ndx_port_close(port);
}

static void a_sink_hands_objects_on_in_order(void **state)
{
	struct ndx_overlapped ovs[MOST];
	struct ndx_overlapped *got[MOST];
	struct ndx_port *port = NULL;

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	assert_int_equal(ndx_port_create_sink(pass_on, &port), NDX_OK);
	for (size_t i = 0; i < MOST; i++) {
		ovs[i].port = port;
		assert_int_equal(base_ov_begin(&ovs[i], loop), NDX_OK);
	}
	for (size_t i = 0; i < MOST; i++)
		base_ov_complete(&ovs[i], NDX_OK, (uint32_t)i, 0);
	assert_int_equal(ndx_overlapped_status(&ovs[0]), NDX_PENDING);
	assert_int_equal(ndx_port_get(queue, got, MOST, 0), MOST);
	for (size_t i = 0; i < MOST; i++) {
		assert_ptr_equal(got[i], &ovs[i]);
		assert_int_equal(got[i]->information, i);
		assert_int_equal(ndx_overlapped_status(got[i]), NDX_OK);
	}
	ndx_port_close(port);
}

/* One of each kind, which have to end in this order. */
static void completions_behind_callbacks_keep_their_order(void **state)
{
	struct ndx_overlapped ovs[] = {
		{.callback = note}, {.port = sink}, {.port = sink},
		{.callback = note}, {.port = sink},
	};
	const size_t count = sizeof(ovs) / sizeof(ovs[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(base_ov_begin(&ovs[i], loop), NDX_OK);
	for (size_t i = 0; i < count; i++)
		base_ov_complete_behind(&ovs[i], OWNER, NDX_OK, 0, 0);
	await_loop();
	assert_int_equal(seen.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(seen.ov[i], &ovs[i]);
		assert_int_equal(seen.status[i], NDX_OK);
		assert_false(pthread_equal(seen.thread[i], pthread_self()));
	}
}

/* ---- ended inside a callback ---- */

static struct ndx_overlapped inner;
static uint32_t seen_inside;

static void end_inner(void *arg)
{
	(void)arg;
	base_ov_complete_behind(&inner, OWNER, NDX_E_CANCELED, 0, 0);
	base_loop_hurry(loop, UINTPTR_MAX, OWNER);
}

static void call_inside(struct ndx_overlapped *ov)
{
	(void)ov;
	ndxp_loop_call(loop, end_inner, NULL);
	seen_inside = seen.count;
}

static void a_call_inside_a_callback_returns_after_the_sink(void **state)
{
	struct ndx_overlapped outer = {.callback = call_inside};

	(void)state;
	inner = (struct ndx_overlapped){.port = sink};
	seen_inside = 0;
	assert_int_equal(base_ov_begin(&inner, loop), NDX_OK);
	assert_int_equal(base_ov_begin(&outer, loop), NDX_OK);
	base_ov_complete(&outer, NDX_OK, 0, 0);
	await_loop();
	assert_int_equal(seen_inside, 1);
	assert_ptr_equal(seen.ov[0], &inner);
	assert_int_equal(seen.status[0], NDX_E_CANCELED);
}

/* ---- threads ---- */

static uint32_t called;

static void count_call(struct ndx_overlapped *ov)
{
	(void)ov;
	__atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

static void *complete_many(void *arg)
{
	struct ndx_overlapped ov = {.port = arg};

	for (int i = 0; i < ROUNDS; i++) {
		if (base_ov_begin(&ov, loop) != NDX_OK)
			return NULL;
		base_ov_complete(&ov, NDX_OK, 0, 0);
	}
	return NULL;
}

static void several_threads_complete_into_one_sink(void **state)
{
	struct ndx_port *port = NULL;
	pthread_t threads[2];

	(void)state;
	called = 0;
	assert_int_equal(ndx_port_create_sink(count_call, &port), NDX_OK);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, complete_many, port), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(called, 2 * ROUNDS);
	ndx_port_close(port);
}

/* ---- the calls of a port ---- */

static void the_calls_of_a_port_have_their_answers(void **state)
{
	struct ndx_overlapped ov = {.status = NDX_E_REMOTE_ERROR};
	struct ndx_overlapped *got = &ov;
	struct ndx_port *port = NULL;

	(void)state;
	assert_int_equal(ndx_port_get_fd(sink), -1);
	assert_int_equal(ndx_port_get(sink, &got, 1, NDX_INFINITE), 0);
	assert_ptr_equal(got, &ov);
	ndx_port_post(sink, &ov);
	assert_int_equal(seen.count, 1);
	assert_ptr_equal(seen.ov[0], &ov);
	assert_int_equal(seen.status[0], NDX_E_REMOTE_ERROR);
	ndx_port_post(sink, NULL);
	assert_int_equal(seen.count, 1);
	assert_int_equal(ndx_port_create_sink(NULL, &port), NDX_E_INVALID_PARAMETER);
	assert_null(port);
	assert_int_equal(ndx_port_create_sink(note, NULL), NDX_E_INVALID_PARAMETER);
}

static void a_sink_needs_no_descriptor(void **state)
{
	struct ndx_port *port = NULL;
	struct rlimit before;
	struct rlimit none;
	enum ndx_status st;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	st = ndx_port_create_sink(note, &port);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(st, NDX_OK);
	ndx_port_close(port);
}

/* ---- callbacks ---- */

static void a_callback_may_post_its_own_object(void **state)
{
	struct ndx_overlapped ov = {.callback = pass_on};
	struct ndx_overlapped *got = NULL;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
		base_ov_complete(&ov, NDX_E_CANCELED, i, 0);
		assert_int_equal(ndx_port_get(queue, &got, 1, NDX_INFINITE), 1);
		assert_ptr_equal(got, &ov);
		assert_int_equal(ndx_overlapped_status(got), NDX_E_CANCELED);
		assert_int_equal(got->information, i);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_completing_thread_calls_the_sink),
		TEST(a_sink_may_free_the_object),
		TEST(a_sink_hands_objects_on_in_order),
		TEST(completions_behind_callbacks_keep_their_order),
		TEST(a_call_inside_a_callback_returns_after_the_sink),
		TEST(several_threads_complete_into_one_sink),
		TEST(the_calls_of_a_port_have_their_answers),
		TEST(a_sink_needs_no_descriptor),
		TEST(a_callback_may_post_its_own_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
