/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers that do not poll, or not always, while their peer writes to their memory, and while
 * their connections come and go. Completions are delivered when the native queue's descriptor
 * becomes readable, never by a tick of the control thread. The tests count ticks and judge no time.
 */
#include "pair.h"

#include <sched.h>
#include <stdlib.h>

/* Longer than the control thread needs to classify a stream of wake-ups as one without a cause. */
#define LONG_MS 1200u
#define LONG_WRITES 24000u
#define COUNTED 1000u /* the number of writes during which ticks are counted */
#define ROUNDS 2000u
#define WARM 500u
#define BLOCK 100u
#define FEW_ENDS 4u
#define MANY_ENDS 128u

/* Poll for a result, without any call that tells the control thread that the consumer waits. */
static void poll_result(struct pair_side *side, enum ndx_request_type type)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result = {.status = NDX_PENDING};
	size_t got = 0;

	for (unsigned i = 0; got == 0 && (i % 64 != 0 || pair_now() < end); i++)
		got = ndx_cq_get_results(side->cq, &result, 1);
	assert_int_equal(got, 1);
	assert_int_equal(result.request_type, type);
	assert_int_equal(result.status, NDX_OK);
}

/* Wait until the peer's write is in memory, without polling the queue. */
static void wait_for_byte(const struct pair_side *side, unsigned char value)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (__atomic_load_n(side->memory, __ATOMIC_ACQUIRE) != value) {
		assert_true(pair_now() < end);
		(void)sched_yield();
	}
}

/* Write a byte to the start of the peer's memory. */
static void post_write(struct pair_side *from, const struct pair_side *to, unsigned char value)
{
	const struct ndx_sge sge = pair_sge(from, 8, 1);

	from->memory[8] = value;
	assert_int_equal(ndx_qp_write(from->qp, NULL, &sge, 1, (uintptr_t)to->memory,
	                              ndx_mr_get_remote_token(to->mr), 0),
	                 NDX_OK);
}

static void write_bytes(struct pair *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		post_write(&p->a, &p->b, 1);
		poll_result(&p->a, NDX_REQUEST_WRITE);
	}
}

static uint64_t count_ticks(const struct pair_side *side)
{
	return pair_counter(side, false, "ticks");
}

static void connect_both(struct pair *p)
{
	pair_make(p);
	pair_connect(p);
}

static void disconnect_both(struct pair *p)
{
	pair_disconnect(p);
	pair_drop(p);
}

/* ---- targets ---- */

/* Write for LONG_MS, at least LONG_WRITES times; then count the target's ticks during more
 * writes. */
static uint64_t ticks_after_long(struct pair *p)
{
	const uint64_t end = pair_now() + LONG_MS;
	uint64_t before;

	for (unsigned i = 0; i < LONG_WRITES || pair_now() < end; i += 100)
		write_bytes(p, 100);
	before = count_ticks(&p->b);
	write_bytes(p, COUNTED);
	return count_ticks(&p->b) - before;
}

static void a_target_that_sleeps_is_always_served_by_event(void **state)
{
	struct pair *p = *state;
	static struct ndx_overlapped asleep; /* static: outlives a case that fails */
	struct ndx_result result;

	connect_both(p);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	assert_int_equal(ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, &asleep), NDX_PENDING);
	assert_true(ticks_after_long(p) < COUNTED / 10);
	assert_int_equal(ndx_cq_cancel(p->b.cq), NDX_OK);
	disconnect_both(p);
}

static void a_target_that_never_polls_is_always_served_by_event(void **state)
{
	struct pair *p = *state;

	connect_both(p);
	assert_true(ticks_after_long(p) < COUNTED / 10);
	disconnect_both(p);
}

static void a_poll_now_and_then_does_not_bring_ticks_back(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;
	uint64_t before;

	connect_both(p);
	write_bytes(p, WARM);
	before = count_ticks(&p->b);
	for (unsigned i = 0; i < COUNTED / 50; i++) {
		assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
		write_bytes(p, 50);
	}
	assert_true(count_ticks(&p->b) - before < COUNTED / 50 / 2);
	disconnect_both(p);
}

/* Each side waits in its memory for the peer's write, then takes the result of its own write. */
static void ping_pong(struct pair *p, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		const unsigned char value = (unsigned char)(i % 100 + 1);

		post_write(&p->a, &p->b, value);
		wait_for_byte(&p->b, value);
		poll_result(&p->a, NDX_REQUEST_WRITE);
		post_write(&p->b, &p->a, value);
		wait_for_byte(&p->a, value);
		poll_result(&p->b, NDX_REQUEST_WRITE);
	}
}

static void a_consumer_that_polls_results_and_memory_is_served_by_event(void **state)
{
	struct pair *p = *state;
	uint64_t before;

	connect_both(p);
	ping_pong(p, WARM);
	before = count_ticks(&p->a) + count_ticks(&p->b);
	ping_pong(p, ROUNDS);
	assert_true(count_ticks(&p->a) + count_ticks(&p->b) - before < ROUNDS / 4);
	disconnect_both(p);
}

/* ---- consumers that poll ---- */

/* Both sides poll without a pause. */
static void echo(struct pair *p, unsigned messages)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS * 2;
	struct ndx_result result;

	for (unsigned i = 0; i < messages; i++) {
		unsigned left = 2;

		pair_receive(&p->b, i, 0, 64);
		pair_send(&p->a, i, 0, 64, 0);
		while (left > 0) {
			left -= (unsigned)ndx_cq_get_results(p->a.cq, &result, 1);
			left -= (unsigned)ndx_cq_get_results(p->b.cq, &result, 1);
		}
		assert_true(pair_now() < end);
	}
}

/* The fewest wake-ups of all blocks: on a busy machine the consumer's thread may not run for some
 * time, and then counts as one that has stopped polling. */
static uint64_t fewest_wakeups(struct pair *p)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < ROUNDS; i += BLOCK) {
		const uint64_t before = pair_counter(&p->b, false, "native_wakeups");
		uint64_t wakeups;

		echo(p, BLOCK);
		wakeups = pair_counter(&p->b, false, "native_wakeups") - before;
		least = wakeups < least ? wakeups : least;
	}
	return least;
}

/* The control thread leaves the queue to a polling consumer, and serves it by event soon after the
 * consumer has stopped. */
static void a_queue_is_left_to_a_consumer_that_polls(void **state)
{
	struct pair *p = *state;
	uint64_t before;

	connect_both(p);
	echo(p, WARM);
	assert_true(fewest_wakeups(p) < BLOCK / 4);
	before = count_ticks(&p->b);
	write_bytes(p, COUNTED);
	assert_true(count_ticks(&p->b) - before < COUNTED / 10);
	disconnect_both(p);
}

/* ---- connections ---- */

static void connect_one(struct pair *base, struct pair *one)
{
	struct pair_side *sides[2] = {&one->a, &one->b};

	*one = *base;
	for (unsigned i = 0; i < 2; i++) {
		struct ndx_qp_attr attr = base->attr;

		attr.receive_cq = sides[i]->cq;
		attr.initiator_cq = sides[i]->cq;
		sides[i]->ov = (struct ndx_overlapped){0};
		assert_int_equal(ndx_qp_create(sides[i]->adapter, &attr, &sides[i]->qp), NDX_OK);
		assert_int_equal(
			ndx_connector_create(sides[i]->adapter, NULL, &sides[i]->connector),
			NDX_OK);
	}
	pair_connect(one);
}

static void disconnect_pair(struct pair *one)
{
	struct pair_side *sides[2] = {&one->a, &one->b};

	pair_disconnect(one);
	for (unsigned i = 0; i < 2; i++) {
		ndx_connector_close(sides[i]->connector);
		ndx_qp_close(sides[i]->qp);
	}
}

/* Connect `count` pairs, with a poll between any two, and disconnect them one by one. */
static uint64_t ticks_of_ends(struct pair *p, unsigned count)
{
	struct pair *ends = calloc(count, sizeof(*ends));
	const uint64_t before = count_ticks(&p->a) + count_ticks(&p->b);
	struct ndx_result result;

	assert_non_null(ends);
	for (unsigned i = 0; i < count; i++) {
		(void)ndx_cq_get_results(p->a.cq, &result, 1);
		(void)ndx_cq_get_results(p->b.cq, &result, 1);
		connect_one(p, &ends[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		(void)ndx_cq_get_results(p->a.cq, &result, 1);
		(void)ndx_cq_get_results(p->b.cq, &result, 1);
		disconnect_pair(&ends[i]);
	}
	free(ends);
	return count_ticks(&p->a) + count_ticks(&p->b) - before;
}

static void a_consumer_that_polls_now_and_then_does_not_wait_for_ticks(void **state)
{
	struct pair *p = *state;

	connect_both(p);
	echo(p, WARM);
	assert_true(ticks_of_ends(p, FEW_ENDS) <= 4 * FEW_ENDS);
	echo(p, WARM);
	assert_true(ticks_of_ends(p, MANY_ENDS) <= MANY_ENDS);
	disconnect_both(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_target_that_sleeps_is_always_served_by_event),
		CASE(a_target_that_never_polls_is_always_served_by_event),
		CASE(a_poll_now_and_then_does_not_bring_ticks_back),
		CASE(a_consumer_that_polls_results_and_memory_is_served_by_event),
		CASE(a_queue_is_left_to_a_consumer_that_polls),
		CASE(a_consumer_that_polls_now_and_then_does_not_wait_for_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
