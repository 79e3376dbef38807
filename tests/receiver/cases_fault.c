/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that do wrong, die or fall silent; the receiver counts, says why, and goes on or ends. */
#include "rig.h"

static bool immediates(const struct rig *r)
{
	return (r->info.capabilities & NDX_CAP_SEND_IMMEDIATE) != 0;
}

/* Twenty frames, every fifth of them spoilt. */
static struct ndx_receiver_stats spoil(struct rig *r, enum spoil_how how, uint64_t arrive)
{
	r->spoiler = (struct spoiler){.how = how, .every = 5};
	r->attr.pull = false;
	rig_start(r);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	rig_counted(r, arrive);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_RUNNING);
	/* Nothing more comes. */
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	assert_int_equal(rig_stats(r).frames, arrive);
	return rig_stats(r);
}

static void lost_frames_are_counted(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.any_order = true};

	if (!immediates(r))
		skip();
	sink_attach(r, 0, &sink);
	/* The last one that is lost cannot be missed: nothing comes after it. */
	assert_int_equal(spoil(r, SPOIL_DROP, 16).lost, 3);
	assert_int_equal(sink.wrong, 0);
}

static void repeated_numbers_are_counted(void **state)
{
	struct rig *r = *state;
	struct ndx_receiver_stats stats;
	struct sink sink = {0};

	if (!immediates(r))
		skip();
	sink_attach(r, 0, &sink);
	stats = spoil(r, SPOIL_REPEAT, 20);
	assert_int_equal(stats.repeated, 4);
	assert_int_equal(stats.lost, 3);
}

static void frames_without_immediate_are_counted(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	assert_int_equal(spoil(r, SPOIL_NO_IMMEDIATE, 20).no_immediate, immediates(r) ? 4 : 20);
	assert_int_equal(sink.wrong, 0);
}

static void frames_without_immediate_are_dropped_where_asked(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.any_order = true};

	if (!immediates(r))
		skip();
	sink_attach(r, 0, &sink);
	r->attr.need_immediate = true;
	assert_int_equal(spoil(r, SPOIL_NO_IMMEDIATE, 16).no_immediate, 4);
	assert_int_equal(sink.wrong, 0);
}

static void empty_frames_are_dropped(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.any_order = true};

	sink_attach(r, 0, &sink);
	if (!immediates(r))
		skip();
	assert_int_equal(spoil(r, SPOIL_EMPTY, 16).empty, 4);
	assert_int_equal(sink.wrong, 0);
	assert_int_equal(rig_stats(r).held, 0);
}

static void a_frame_too_long_ends_it_and_says_so(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	r->spoiler = (struct spoiler){.how = SPOIL_OVERSIZE, .every = 4};
	rig_start(r);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	assert_int_not_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_REQUEST);
	assert_int_equal(rig_cause(r).status, NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(rig_stats(r).oversize, 1);
	assert_int_equal(rig_stats(r).frames, 3);
	assert_int_equal(sink.wrong, 0);
	assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
}

static void a_peer_that_breaks_off_is_noticed_with_every_slot_held(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};

	sink_attach(r, 0, &sink);
	r->sender_attr.no_receive_timeout_ms = NDX_INFINITE;
	rig_start(r);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, SLOTS);
	assert_int_equal(rig_stats(r).posted, 0);
	assert_int_equal(ndx_qp_flush(ndx_sender_get_qp(r->sender)), NDX_OK);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_LOST);
	/* Slots that come back now have nowhere to go, until it begins anew. */
	sink_release(&sink);
	assert_int_equal(rig_stats(r).held, 0);
	assert_int_equal(rig_stats(r).posted, 0);
	assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_reset(r->sender), NDX_OK);
	sink.next = 0;
	__atomic_store_n(&sink.keep, 0, __ATOMIC_RELAXED);
	rig_join(r);
	assert_int_equal(rig_stats(r).posted, SLOTS);
	for (uint32_t i = 0; i < 2 * SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, 3 * SLOTS);
	assert_int_equal(sink.wrong, 0);
}

/* The receives that come back then are not consumers' doing. */
static void a_break_with_slots_posted_is_no_lack_of_slots(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	rig_start(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	sink_await(&sink, 1);
	assert_int_equal(ndx_qp_flush(ndx_sender_get_qp(r->sender)), NDX_OK);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_LOST);
	assert_string_equal(rig_cause(r).text, "the connection was lost");
	assert_int_equal(rig_stats(r).out_of_slots, 0);
	assert_int_equal(rig_stats(r).low_water, SLOTS - 1);
}

/* Its window never fills, and still it hears that its frames were lost. */
static void a_sender_with_room_is_told_the_end(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};
	enum ndx_status st = NDX_OK;
	void *buffer;

	sink_attach(r, 0, &sink);
	r->sender_attr.slot_count = 4 * SLOTS;
	r->sender_attr.spin_us = 0;
	r->sender_attr.no_receive_timeout_ms = NDX_INFINITE;
	rig_start(r);
	for (uint32_t i = 0; i < SLOTS + 4; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, SLOTS);
	assert_int_equal(ndx_qp_flush(ndx_sender_get_qp(r->sender)), NDX_OK);
	for (const uint64_t end = rig_now_ms() + WAIT_MS; st == NDX_OK && rig_now_ms() < end;)
		st = ndx_sender_acquire(r->sender, 0, &buffer);
	assert_int_not_equal(st, NDX_OK);
	assert_int_not_equal(st, NDX_PENDING);
	sink_release(&sink);
}

static void the_own_queue_pair_in_error_is_noticed(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};
	struct ndx_qp *qp;

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, SLOTS);
	qp = ndx_receiver_get_qp(r->receiver);
	assert_int_equal(ndx_qp_flush(qp), NDX_OK);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_LOST);
	assert_int_equal(ndx_qp_flush(qp), NDX_OK); /* a late peer still has it */
	sink_release(&sink);
	assert_int_equal(rig_stats(r).posted, 0);
	assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_reset(r->sender), NDX_OK);
	sink.next = 0;
	__atomic_store_n(&sink.keep, 0, __ATOMIC_RELAXED);
	rig_join(r);
	for (uint32_t i = 0; i < 2 * SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, 3 * SLOTS);
	assert_int_equal(sink.wrong, 0);
}

static void silence_ends_it_where_asked(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	/* A slow machine needs some of it to connect and to send. */
	r->attr.idle_timeout_ms = 2000;
	rig_start(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_IDLE);
	assert_int_equal(rig_cause(r).status, NDX_E_IO_TIMEOUT);
	assert_non_null(strstr(rig_cause(r).text, "2000 ms"));
	assert_int_equal(rig_stats(r).frames, 1);
}

static void a_living_peer_answers_probes(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	void *buffer;

	sink_attach(r, 0, &sink);
	r->attr.probe_ms = 50;
	r->attr.probe_timeout_ms = WAIT_MS;
	rig_start(r);
	/* Several probes long. */
	assert_int_equal(ndx_sender_acquire(r->sender, 0, &buffer), NDX_OK);
	for (int i = 0; i < 50; i++) {
		struct ndx_result none;
		size_t got;
		struct ndx_cq *cq;

		assert_int_equal(ndx_cq_create_depth(r->adapters[1], 1, &cq), NDX_OK);
		assert_int_equal(ndx_cq_wait_results(cq, &none, 1, 10, &got), NDX_PENDING);
		ndx_cq_close(cq);
	}
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_RUNNING);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	sink_await(&sink, 1);
}

/* Its answers are among the sender's results, which are not taken here. */
static void a_sender_that_does_nothing_is_no_dead_peer(void **state)
{
	struct rig *r = *state;
	struct ndx_sender_attr attr;
	struct ndx_sender *idle;
	struct ndx_cq *cq;
	struct ndx_result none;
	struct sink sink = {0};
	size_t got;

	sink_attach(r, 0, &sink);
	r->attr.probe_ms = 20;
	r->attr.probe_timeout_ms = 100;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	ndx_sender_attr_init(&attr);
	attr.receiver = r->receiver;
	assert_int_equal(ndx_sender_create(&attr, &idle), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	rig_join(r);
	/* Many probes long. */
	assert_int_equal(ndx_cq_create_depth(r->adapters[1], 1, &cq), NDX_OK);
	assert_int_equal(ndx_cq_wait_results(cq, &none, 1, 600, &got), NDX_PENDING);
	ndx_cq_close(cq);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_RUNNING);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	sink_await(&sink, 1);
	ndx_sender_close(idle);
}

const struct CMUnitTest fault_cases[] = {
	CASE(lost_frames_are_counted),
	CASE(repeated_numbers_are_counted),
	CASE(frames_without_immediate_are_counted),
	CASE(frames_without_immediate_are_dropped_where_asked),
	CASE(empty_frames_are_dropped),
	CASE(a_frame_too_long_ends_it_and_says_so),
	CASE(a_peer_that_breaks_off_is_noticed_with_every_slot_held),
	CASE(a_break_with_slots_posted_is_no_lack_of_slots),
	CASE(a_sender_with_room_is_told_the_end),
	CASE(the_own_queue_pair_in_error_is_noticed),
	CASE(silence_ends_it_where_asked),
	CASE(a_living_peer_answers_probes),
	CASE(a_sender_that_does_nothing_is_no_dead_peer),
};
const size_t fault_case_count = sizeof(fault_cases) / sizeof(fault_cases[0]);
