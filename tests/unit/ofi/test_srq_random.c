/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random schedules with a shared receive queue: several connections send, end in every way, and
 * begin anew. Each receive is used once or stays; messages that wait find the receives that there
 * are; what is left at the end of a round comes in the order of posting; no message that its sender
 * has seen succeed is lost.
 */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 600,
	STEPS = 60,
	SLOTS = 24,    /* receives; the depth is smaller at times */
	IN_FLIGHT = 8, /* sends of one connection */
	DRAIN_MS = 20, /* a close waits so long for sends that have no receive */
};

struct flow {
	bool up;
	unsigned sent;
	unsigned succeeded;
	unsigned received;
};

struct round {
	struct lanes l;
	struct flow flow[LANES];
	unsigned lanes;
	uint32_t depth;
	bool posted[SLOTS];
	uint64_t order[SLOTS]; /* of posting */
	uint64_t posts;
	unsigned count; /* receives that are posted */
	uint64_t random;
};

static unsigned draw(struct round *r, unsigned below)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (unsigned)(r->random >> 33) % below;
}

static void post(struct round *r)
{
	unsigned slot = draw(r, SLOTS);

	if (r->count >= r->depth)
		return;
	while (r->posted[slot])
		slot = (slot + 1) % SLOTS;
	memset(r->l.p->b.memory + (size_t)slot * 64, 0xee, 64);
	lanes_post(&r->l, slot);
	r->posted[slot] = true;
	r->order[slot] = r->posts++;
	r->count++;
}

/* What message number `n` of a lane has. */
static void label(unsigned char *at, unsigned which, unsigned n)
{
	memset(at, 0, 64);
	memcpy(at, &which, sizeof(which));
	memcpy(at + sizeof(which), &n, sizeof(n));
}

static void send_one(struct round *r, unsigned which)
{
	struct flow *flow = &r->flow[which];
	const size_t at = ((size_t)which * IN_FLIGHT + flow->sent % IN_FLIGHT) * 64;

	if (!flow->up || flow->sent - flow->succeeded == IN_FLIGHT)
		return;
	label(r->l.p->a.memory + at, which, flow->sent);
	pair_send(&r->l.lane[which].a, flow->sent++, at, 64, 0);
}

/* A result of the passive side. */
static void account(struct round *r, unsigned which, const struct ndx_result *result)
{
	const size_t slot = (uintptr_t)result->request_context;
	unsigned char expected[64];

	assert_int_equal(result->request_type, NDX_REQUEST_RECEIVE);
	assert_int_equal(result->status, NDX_OK);
	assert_ptr_equal(result->queue_pair_context, &r->l.lane[which].b);
	assert_true(slot < SLOTS && r->posted[slot]);
	label(expected, which, r->flow[which].received++);
	assert_memory_equal(r->l.p->b.memory + slot * 64, expected, 64);
	r->posted[slot] = false;
	r->count--;
}

static void poll_lane(struct round *r, unsigned which)
{
	struct flow *flow = &r->flow[which];
	struct ndx_result result;

	while (ndx_cq_get_results(r->l.lane[which].b.cq, &result, 1) > 0)
		account(r, which, &result);
	while (ndx_cq_get_results(r->l.lane[which].a.cq, &result, 1) > 0) {
		assert_true(result.status == NDX_OK || result.status == NDX_E_CANCELED);
		flow->succeeded += result.status == NDX_OK;
	}
}

static void begin_lane(struct round *r, unsigned which)
{
	lanes_connect(&r->l, which);
	r->flow[which] = (struct flow){.up = true};
}

/* Close one side but for its completion queue. */
static void close_half(struct pair_side *side)
{
	ndx_connector_close(side->connector);
	side->connector = NULL;
	ndx_qp_close(side->qp);
	side->qp = NULL;
}

/* All messages of the lane arrive, and with them those of other lanes that are in the way. */
static void await_sends(struct round *r, unsigned which)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (r->flow[which].succeeded < r->flow[which].sent && pair_now() < end) {
		post(r);
		for (unsigned i = 0; i < r->lanes; i++) {
			if (r->flow[i].up)
				poll_lane(r, i);
		}
	}
	assert_int_equal(r->flow[which].succeeded, r->flow[which].sent);
}

/* One of the ways to end a connection. */
static void end_somehow(struct round *r, unsigned which)
{
	struct pair *lane = &r->l.lane[which];

	switch (draw(r, 5)) {
	case 0:
		assert_int_equal(ndx_qp_flush(lane->a.qp), NDX_OK);
		break;
	case 1:
		assert_int_equal(ndx_qp_flush(lane->b.qp), NDX_OK);
		break;
	case 2:
		close_half(&lane->b);
		break;
	case 3:
		await_sends(r, which);
		pair_disconnect(lane);
		break;
	default:
		await_sends(r, which);
		break;
	}
}

static bool some_wait(const struct round *r)
{
	for (unsigned i = 0; i < r->lanes; i++) {
		if (r->flow[i].up && r->flow[i].received < r->flow[i].sent)
			return true;
	}
	return false;
}

/* Whatever has happened: while there are receives, messages that wait find them, without another
 * one being posted. */
static void serve_all(struct round *r)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (r->count > 0 && some_wait(r) && pair_now() < end) {
		for (unsigned i = 0; i < r->lanes; i++) {
			if (r->flow[i].up)
				poll_lane(r, i);
		}
	}
	assert_true(r->count == 0 || !some_wait(r));
}

static void end_lane(struct round *r, unsigned which)
{
	struct pair *lane = &r->l.lane[which];

	end_somehow(r, which);
	/* a close would wait for sends that have no receive */
	if (r->flow[which].succeeded < r->flow[which].sent)
		assert_int_equal(ndx_qp_flush(lane->a.qp), NDX_OK);
	close_half(&lane->b);
	close_half(&lane->a);
	poll_lane(r, which);
	assert_true(r->flow[which].succeeded <= r->flow[which].received);
	assert_true(r->flow[which].received <= r->flow[which].sent);
	pair_drop(lane);
	r->flow[which].up = false;
	if (draw(r, 2) == 0)
		serve_all(r);
}

static void change_depth(struct round *r)
{
	const uint32_t depth = 1 + draw(r, SLOTS);
	const enum ndx_status st = ndx_srq_modify(r->l.srq, depth, 1 + draw(r, depth));

	/* results that were not taken do not count, and `count` has them */
	assert_true(st == NDX_OK || (st == NDX_E_BUFFER_OVERFLOW && r->count > depth));
	if (st == NDX_OK)
		r->depth = depth;
}

static void step(struct round *r)
{
	const unsigned which = draw(r, r->lanes);
	const unsigned what = draw(r, 100);

	if (what < 40)
		send_one(r, which);
	else if (what < 70)
		post(r);
	else if (what < 92 && r->flow[which].up)
		poll_lane(r, which);
	else if (what < 92)
		return;
	else if (what < 95)
		change_depth(r);
	else if (r->flow[which].up)
		end_lane(r, which);
	else
		begin_lane(r, which);
}

static size_t oldest_slot(const struct round *r)
{
	size_t oldest = SLOTS;

	for (size_t i = 0; i < SLOTS; i++) {
		if (r->posted[i] && (oldest == SLOTS || r->order[i] < r->order[oldest]))
			oldest = i;
	}
	return oldest;
}

/* What lane 0 receives is in the oldest receives, in their order. */
static void take_oldest(struct round *r)
{
	struct ndx_result result;

	while (ndx_cq_get_results(r->l.lane[0].b.cq, &result, 1) > 0) {
		assert_int_equal((uintptr_t)result.request_context, oldest_slot(r));
		account(r, 0, &result);
	}
}

/* One more connection uses all receives that are left. It sends as much as it can: a message at a
 * time would cost the sleeps of both ends. */
static void use_the_rest(struct round *r)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	const unsigned count = r->count;
	struct flow *flow = &r->flow[0];
	struct ndx_result result;

	begin_lane(r, 0);
	while (flow->succeeded < count && pair_now() < end) {
		if (flow->sent < count)
			send_one(r, 0);
		take_oldest(r);
		if (ndx_cq_get_results(r->l.lane[0].a.cq, &result, 1) == 0)
			continue;
		assert_int_equal(result.status, NDX_OK);
		flow->succeeded++;
	}
	assert_int_equal(flow->succeeded, count);
	/* an acknowledgement of the network may be quicker than the receive's result */
	while (r->count > 0 && pair_now() < end)
		take_oldest(r);
	assert_int_equal(r->count, 0);
	pair_disconnect(&r->l.lane[0]);
	assert_int_equal(ndx_cq_get_results(r->l.lane[0].b.cq, &result, 1), 0);
}

static void run_round(struct pair *p, uint64_t seed)
{
	struct round r = {.random = seed | 1};

	for (unsigned i = 0; i < 8; i++)
		(void)draw(&r, 2);
	r.lanes = 1 + draw(&r, LANES);
	r.depth = 1 + draw(&r, SLOTS);
	lanes_open(&r.l, p, r.depth, 0);
	for (unsigned i = 0; i < r.lanes; i++)
		begin_lane(&r, i);
	for (unsigned i = 0; i < STEPS; i++)
		step(&r);
	for (unsigned i = 0; i < r.lanes; i++) {
		if (r.flow[i].up)
			end_lane(&r, i);
	}
	use_the_rest(&r);
	lanes_close(&r.l);
}

/* $SRQ_SEED and $SRQ_ROUNDS repeat what failed. */
static void each_receive_is_used_once_or_stays(void **state)
{
	struct pair *p = *state;
	const char *seed_text = getenv("SRQ_SEED");
	const char *rounds_text = getenv("SRQ_ROUNDS");
	const uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 0) : pair_now();
	const unsigned long rounds = rounds_text != NULL ? strtoul(rounds_text, NULL, 0) : ROUNDS;

	print_message("SRQ_SEED=%llu\n", (unsigned long long)seed);
	p->drain_ms = DRAIN_MS;
	for (unsigned long i = 0; i < rounds; i++)
		run_round(p, (seed + i) * UINT64_C(0x9e3779b97f4a7c15));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_receive_is_used_once_or_stays),
	};

	return cmocka_run_group_tests(tests, pair_up, pair_down);
}
