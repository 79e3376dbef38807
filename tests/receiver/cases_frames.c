/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames arrive whole, in order, once; slots come back however they are let go. */
#include "rig.h"

#include <poll.h>
#include <pthread.h>

static bool immediates(const struct rig *r)
{
	return (r->info.capabilities & NDX_CAP_SEND_IMMEDIATE) != 0;
}

struct notes {
	uint32_t length[16];
	uint32_t sequence[16];
	uint32_t channel[16];
	uint32_t slot[16];
	uint32_t lost[16];
	uint32_t count; /* atomic */
};

static bool note(void *context, const struct ndx_frame *frame)
{
	struct notes *n = context;
	const uint32_t at = n->count;

	if (at < 16) {
		n->length[at] = frame->length;
		n->sequence[at] = frame->sequence;
		n->channel[at] = frame->channel;
		n->slot[at] = frame->slot;
		n->lost[at] = frame->lost;
		__atomic_store_n(&n->count, at + 1, __ATOMIC_RELEASE);
	}
	return true;
}

static void each_length_arrives_as_it_was_sent(void **state)
{
	static const uint32_t lengths[] = {1,        31, 32, 33, 1023, 1024, 1025, SLOT_SIZE - 1,
	                                   SLOT_SIZE};
	const uint32_t count = sizeof(lengths) / sizeof(lengths[0]);
	struct rig *r = *state;
	struct sink sink = {0};
	struct notes notes = {.count = 0};

	sink_attach(r, 0, &sink);
	r->attr.consumers[1] = (struct ndx_frame_consumer){note, &notes, NDX_CHANNEL_ANY};
	rig_start(r);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(rig_send(r, i, lengths[i]), NDX_OK);
	sink_await(&sink, count);
	assert_int_equal(sink.wrong, 0);
	/* Its consumer is the last one. */
	while (__atomic_load_n(&notes.count, __ATOMIC_ACQUIRE) < count)
		(void)poll(NULL, 0, 1);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(notes.length[i], lengths[i]);
		assert_int_equal(notes.slot[i], i);
		assert_int_equal(notes.lost[i], 0);
		assert_int_equal(notes.sequence[i], immediates(r) ? i : 0);
		assert_int_equal(notes.channel[i], immediates(r) ? i : 0);
	}
	assert_int_equal(rig_stats(r).errors[-NDX_E_CANCELED], 0);
}

static void many_rounds_of_the_ring_lose_nothing(void **state)
{
	const uint32_t frames = 100 * SLOTS;
	struct rig *r = *state;
	struct sink sink = {.length = 64};
	struct ndx_receiver_stats stats;
	struct ndx_sender_stats sent = {.size = sizeof(sent)};

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (uint32_t i = 0; i < frames; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	sink_await(&sink, frames);
	assert_int_equal(sink.wrong, 0);
	stats = rig_stats(r);
	assert_int_equal(stats.frames, frames);
	assert_int_equal(stats.bytes, 64 * frames);
	assert_int_equal(stats.lost + stats.repeated, 0);
	assert_int_equal(stats.sizes[6], frames);
	assert_int_equal(ndx_sender_get_stats(r->sender, &sent), NDX_OK);
	assert_int_equal(sent.frames, frames);
	assert_int_equal(sent.under_way, 0);
	assert_true(sent.most_under_way <= r->sender_attr.slot_count);
}

static void slots_come_back_in_any_order(void **state)
{
	static const uint32_t order[] = {2, 0, 3, 1, 6, 5, 4, 7};
	struct rig *r = *state;
	struct sink sink = {.keep = 8};
	uint32_t sent = 0;

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(rig_send(r, sent++, 100 + round), NDX_OK);
		sink_await(&sink, sent);
		for (uint32_t i = 0; i < 8; i++) {
			const struct ndx_frame *f = sink.frame[order[i]];

			assert_true(rig_check(f->data, f->length, sent - 8 + order[i]));
			ndx_frame_release(f);
		}
		__atomic_store_n(&sink.kept, 0, __ATOMIC_RELEASE);
	}
	assert_int_equal(sink.wrong, 0);
	rig_held(r, 0);
	assert_int_equal(rig_stats(r).posted, SLOTS);
}

static void held_slots_stop_the_peer_and_lose_nothing(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};
	struct ndx_receiver_stats stats;
	void *buffer;

	sink_attach(r, 0, &sink);
	r->sender_attr.no_receive_timeout_ms = NDX_INFINITE;
	rig_start(r);
	for (uint32_t i = 0; i < SLOTS + r->sender_attr.slot_count; i++)
		assert_int_equal(rig_send(r, i, 500), NDX_OK);
	sink_await(&sink, SLOTS);
	assert_int_equal(ndx_sender_acquire(r->sender, rig_hold_ms, &buffer), NDX_PENDING);
	stats = rig_stats(r);
	assert_int_equal(stats.frames, SLOTS);
	assert_int_equal(stats.posted, 0);
	assert_int_equal(stats.held, SLOTS);
	assert_int_equal(stats.low_water, 0);
	assert_int_equal(stats.out_of_slots, 1);
	assert_true(stats.out_of_slots_ns > 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(rig_check(sink.frame[i]->data, 500, i));
	__atomic_store_n(&sink.keep, 0, __ATOMIC_RELAXED);
	sink_release(&sink);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	sink_await(&sink, SLOTS + r->sender_attr.slot_count);
	assert_int_equal(sink.wrong, 0);
}

static void slots_held_too_long_are_reported(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};
	enum ndx_status st = NDX_OK;

	sink_attach(r, 0, &sink);
	r->sender_attr.no_receive_timeout_ms = rig_hold_ms;
	rig_start(r);
	/* One that waits: with another one behind it, that one might come too late. */
	for (uint32_t i = 0; i < SLOTS + 1; i++)
		assert_int_equal(rig_send(r, i, 500), NDX_OK);
	sink_await(&sink, SLOTS);
	st = ndx_sender_flush(r->sender, WAIT_MS);
	assert_int_equal(st, NDX_E_IO_TIMEOUT);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_LOST);
	assert_non_null(strstr(rig_cause(r).text, "no slot was posted"));
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(rig_check(sink.frame[i]->data, 500, i));
	sink_release(&sink);
}

static void slow_consumers_get_copies(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS + 4};
	struct ndx_receiver_stats stats;
	uint32_t copies = 0;

	sink_attach(r, 0, &sink);
	r->attr.copy_below = 4;
	r->attr.copy_count = 10;
	rig_start(r);
	for (uint32_t i = 0; i < SLOTS + 4; i++)
		assert_int_equal(rig_send(r, i, 300), NDX_OK);
	sink_await(&sink, SLOTS + 4);
	stats = rig_stats(r);
	for (uint32_t i = 0; i < SLOTS + 4; i++) {
		assert_true(rig_check(sink.frame[i]->data, 300, i));
		copies += (sink.frame[i]->flags & NDX_FRAME_COPIED) != 0;
	}
	assert_true(copies >= 7);
	assert_int_equal(stats.copied, copies);
	assert_int_equal(stats.held, SLOTS + 4);
	assert_true(stats.posted >= 3);
	sink_release(&sink);
	rig_held(r, 0);
	assert_int_equal(rig_stats(r).posted, SLOTS);
}

static void copies_run_out_too(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = SLOTS};

	sink_attach(r, 0, &sink);
	r->attr.copy_below = SLOTS;
	r->attr.copy_count = 2;
	rig_start(r);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(rig_send(r, i, 300), NDX_OK);
	sink_await(&sink, 8);
	assert_int_equal(rig_stats(r).copied, 2);
	assert_int_equal(rig_stats(r).copies_missed, 6);
	assert_int_equal(sink.wrong, 0);
	sink_release(&sink);
}

static bool refuse(void *context, const struct ndx_frame *frame)
{
	(void)frame;
	(void)__atomic_add_fetch((uint32_t *)context, 1, __ATOMIC_RELAXED);
	return false;
}

static void a_chain_of_consumers_each_gets_its_channels(void **state)
{
	struct rig *r = *state;
	struct sink first = {.keep = 4};
	struct sink last = {.keep = 4};
	uint32_t refused = 0;
	uint32_t of_channel = 0;

	sink_attach(r, 0, &first);
	r->attr.consumers[1] = (struct ndx_frame_consumer){refuse, &refused, NDX_CHANNEL_ANY};
	r->attr.consumers[2] =
		(struct ndx_frame_consumer){refuse, &of_channel, immediates(r) ? 3 : 1};
	sink_attach(r, 3, &last);
	rig_start(r);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&last, 10);
	assert_int_equal(first.wrong + last.wrong, 0);
	assert_int_equal(refused, 10);
	assert_int_equal(of_channel, immediates(r) ? 1 : 0);
	assert_int_equal(rig_stats(r).consumer_errors[1], 10);
	assert_int_equal(rig_stats(r).consumer_errors[2], of_channel);
	assert_int_equal(rig_stats(r).consumer_errors[0], 0);
	assert_ptr_equal(first.frame[2], last.frame[2]);
	sink_release(&first);
	rig_held(r, 4);
	assert_true(rig_check(last.frame[2]->data, 64, 2));
	sink_release(&last);
	rig_held(r, 0);
}

static void frames_can_be_pulled(void **state)
{
	struct rig *r = *state;
	const struct ndx_frame *frames[SLOTS];
	struct pollfd set = {.events = POLLIN};
	size_t got = 7;
	uint32_t n = 0;

	r->attr.pull = true;
	rig_start(r);
	set.fd = ndx_receiver_get_fd(r->receiver);
	assert_int_equal(poll(&set, 1, 0), 0);
	assert_int_equal(ndx_receiver_pull(r->receiver, frames, SLOTS, 10, &got), NDX_PENDING);
	assert_int_equal(got, 0);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	assert_int_equal(poll(&set, 1, (int)WAIT_MS), 1);
	while (n < 12) {
		assert_int_equal(ndx_receiver_pull(r->receiver, frames, 5, WAIT_MS, &got), NDX_OK);
		assert_in_range(got, 1, 5);
		for (size_t i = 0; i < got; i++) {
			assert_true(rig_check(frames[i]->data, 64, n++));
			ndx_frame_release(frames[i]);
		}
	}
	assert_int_equal(poll(&set, 1, 0), 0);
	assert_int_equal(rig_send(r, n, 64), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	/* What was queued can still be pulled; then it is over. */
	assert_int_equal(ndx_receiver_pull(r->receiver, frames, SLOTS, WAIT_MS, &got), NDX_OK);
	assert_int_equal(got, 1);
	ndx_frame_release(frames[0]);
	assert_int_equal(ndx_receiver_pull(r->receiver, frames, SLOTS, WAIT_MS, &got),
	                 NDX_E_CANCELED);
	assert_int_equal(poll(&set, 1, 0), 1);
}

static void written_frames_lie_where_they_belong(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.length = 200};
	struct ndx_memory_description memory;

	if (!(r->info.capabilities & NDX_CAP_WRITE_IMMEDIATE))
		skip();
	sink_attach(r, 0, &sink);
	r->attr.mode = NDX_RECEIVER_WRITE;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	assert_int_equal(ndx_receiver_get_memory(r->receiver, &memory), NDX_OK);
	assert_int_equal(memory.length, SLOTS * SLOT_SIZE);
	rig_join(r);
	assert_int_equal(ndx_sender_set_memory(r->sender, &memory, SLOT_SIZE, SLOTS + 1),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_sender_set_memory(r->sender, &memory, SLOT_SIZE, SLOTS), NDX_OK);
	for (uint32_t i = 0; i < 5 * SLOTS; i++) {
		assert_int_equal(rig_send(r, i, 200), NDX_OK);
		sink_await(&sink, i + 1);
	}
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	assert_int_equal(sink.wrong, 0);
	assert_int_equal(rig_stats(r).overwritten, 0);
	assert_int_equal(rig_stats(r).lost, 0);
	/* A peer that does not wait overwrites a frame that is held: that is counted. */
	__atomic_store_n(&sink.keep, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < SLOTS + 1; i++) {
		assert_int_equal(rig_send(r, 5 * SLOTS + i, 200), NDX_OK);
		assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	}
	sink_await(&sink, 6 * SLOTS);
	while (rig_stats(r).overwritten == 0)
		(void)poll(NULL, 0, 1);
	assert_int_equal(rig_stats(r).overwritten, 1);
	sink_release(&sink);
}

/* Two receivers on one connection; the sink of the second one is `there`. */
static struct ndx_receiver *begin_duplex(struct rig *r, struct sink *here, struct sink *there)
{
	struct ndx_connector *connectors[2];
	struct ndx_receiver *other = NULL;
	struct ndx_receiver_attr attr;

	sink_attach(r, 0, here);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	attr = r->attr;
	attr.adapter = r->adapters[1];
	attr.consumers[0].context = there;
	assert_int_equal(ndx_receiver_create(&attr, &other), NDX_OK);
	assert_int_equal(ndx_receiver_prepare(r->receiver), NDX_OK);
	rig_connect_qps(r, ndx_receiver_get_qp(r->receiver), ndx_receiver_get_qp(other),
	                connectors);
	assert_int_equal(ndx_receiver_start(r->receiver, connectors[0]), NDX_OK);
	assert_int_equal(ndx_receiver_start(other, connectors[1]), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_receiver_prepare(other), NDX_OK);
	assert_int_equal(ndx_receiver_start(other, connectors[1]), NDX_OK);
	return other;
}

static struct ndx_sender *sender_of(struct rig *r, struct ndx_receiver *receiver)
{
	struct ndx_sender *sender = NULL;

	r->sender_attr.receiver = receiver;
	assert_int_equal(ndx_sender_create(&r->sender_attr, &sender), NDX_OK);
	return sender;
}

static void data_flow_both_ways_over_one_connection(void **state)
{
	struct rig *r = *state;
	struct sink here = {.length = 700};
	struct sink there = {.length = 900};
	struct ndx_receiver *other = begin_duplex(r, &here, &there);
	struct ndx_sender *back = sender_of(r, r->receiver);
	struct ndx_sender *forth = sender_of(r, other);
	struct ndx_sender_stats stats = {.size = sizeof(stats)};
	uint8_t frame[900];

	for (uint32_t i = 0; i < 1000; i++) {
		rig_fill(frame, 700, i);
		assert_int_equal(ndx_sender_send(forth, frame, 700, 0, WAIT_MS), NDX_OK);
		rig_fill(frame, 900, i);
		assert_int_equal(ndx_sender_send(back, frame, 900, 0, WAIT_MS), NDX_OK);
	}
	sink_await(&here, 1000);
	sink_await(&there, 1000);
	assert_int_equal(__atomic_load_n(&here.wrong, __ATOMIC_ACQUIRE), 0);
	assert_int_equal(__atomic_load_n(&there.wrong, __ATOMIC_ACQUIRE), 0);
	ndx_sender_close(back);
	/* The results of its last frames are still there, and belong to no sender. */
	back = sender_of(r, r->receiver);
	rig_fill(frame, 900, 1000);
	assert_int_equal(ndx_sender_send(back, frame, 900, 0, WAIT_MS), NDX_OK);
	assert_int_equal(ndx_sender_flush(back, WAIT_MS), NDX_OK);
	assert_int_equal(ndx_sender_get_stats(back, &stats), NDX_OK);
	assert_int_equal(stats.frames, 1);
	assert_int_equal(stats.bytes, 900);
	assert_int_equal(stats.under_way, 0);
	ndx_sender_close(back);
	ndx_sender_close(forth);
	ndx_receiver_close(other);
	rig_await(r, NDX_RECEIVER_ENDED);
}

static void a_sender_inherits_nothing_of_the_one_before(void **state)
{
	const uint32_t too_many = 5;
	struct rig *r = *state;
	struct sink here = {0};
	struct sink there = {.keep = SLOTS};
	struct ndx_sender_stats stats = {.size = sizeof(stats)};
	struct ndx_receiver *other;
	struct ndx_sender *sender;
	uint8_t frame[64];

	r->attr.no_receive_timeout_ms = NDX_INFINITE;
	r->sender_attr.close_timeout_ms = 20;
	other = begin_duplex(r, &here, &there);
	sender = sender_of(r, r->receiver);
	for (uint32_t i = 0; i < SLOTS + too_many; i++) {
		rig_fill(frame, sizeof(frame), i);
		assert_int_equal(ndx_sender_send(sender, frame, sizeof(frame), 0, WAIT_MS), NDX_OK);
		if (i + 1 == SLOTS)
			assert_int_equal(ndx_sender_flush(sender, WAIT_MS), NDX_OK);
	}
	sink_await(&there, SLOTS);
	/* There is no room for the rest: it is given up, which ends the connection in its turn. */
	ndx_sender_close(sender);
	sender = sender_of(r, r->receiver);
	sink_release(&there);
	rig_await(r, NDX_RECEIVER_FAILED);
	assert_int_equal(ndx_sender_flush(sender, WAIT_MS), NDX_OK);
	assert_int_equal(ndx_sender_get_stats(sender, &stats), NDX_OK);
	assert_int_equal(stats.under_way, 0);
	assert_int_equal(stats.failed, NDX_OK);
	ndx_sender_close(sender);
	ndx_receiver_close(other);
}

static void a_frame_costs_no_allocation(void **state)
{
	const uint32_t frames = 200;
	struct rig *r = *state;
	struct sink sink = {0};
	uint64_t before;

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (uint32_t i = 0; i < frames; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, frames);
	before = rig_allocations();
	for (uint32_t i = frames; i < 2 * frames; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, 2 * frames);
	/* libfabric keeps lists of its own; what matters is that it is not once a frame. */
	if (strcmp(rig_uris[0], "loop") == 0)
		assert_int_equal(rig_allocations(), before);
	else
		assert_in_range(rig_allocations() - before, 0, frames / 10);
}

const struct CMUnitTest frame_cases[] = {
	CASE(each_length_arrives_as_it_was_sent),
	CASE(many_rounds_of_the_ring_lose_nothing),
	CASE(slots_come_back_in_any_order),
	CASE(held_slots_stop_the_peer_and_lose_nothing),
	CASE(slots_held_too_long_are_reported),
	CASE(slow_consumers_get_copies),
	CASE(copies_run_out_too),
	CASE(a_chain_of_consumers_each_gets_its_channels),
	CASE(frames_can_be_pulled),
	CASE(written_frames_lie_where_they_belong),
	CASE(data_flow_both_ways_over_one_connection),
	CASE(a_sender_inherits_nothing_of_the_one_before),
	CASE(a_frame_costs_no_allocation),
};
const size_t frame_case_count = sizeof(frame_cases) / sizeof(frame_cases[0]);
