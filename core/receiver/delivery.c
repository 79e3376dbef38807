/* SPDX-License-Identifier: BSD-2-Clause */
/* From results to frames to consumers, on the receiving thread. */
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/stats.h>
#include "receiver.h"

static void on_indicated(struct ndx_overlapped *ov)
{
	struct ndx_receiver *r = ov->context;

	(void)__atomic_or_fetch(&r->events, RECEIVER_INDICATED, __ATOMIC_RELEASE);
	loop_poke(r->loop);
}

void receiver_begin(struct ndx_receiver *r)
{
	r->events = 0;
	r->parting = false;
	r->probing = false;
	r->expected = 0;
	r->last_ns = ndxp_now_ns();
	r->batch = loop_batch(r->loop);
	count_up(&r->counters.connections, 1);
	ndx_overlapped_init(&r->notify);
	r->notify.callback = on_indicated;
	r->notify.context = r;
}

/* Count and log a receive that failed. */
static void on_failure(struct ndx_receiver *r, const struct ndx_result *result)
{
	const unsigned at = 0U - (unsigned)result->status;

	if (result->status >= 0 || at >= NDX_STATS_STATUSES)
		return;
	count_up(&r->counters.errors[at], 1);
	if (result->status == NDX_E_CANCELED)
		return;
	if (result->status == NDX_E_BUFFER_OVERFLOW)
		count_up(&r->counters.oversize, 1);
	receiver_because(
		r, NDX_RECEIVER_END_REQUEST, result->status, result->native,
		"a receive failed: %s%s", ndx_status_text(result->status),
		result->status == NDX_E_BUFFER_OVERFLOW ? "; the frame is longer than a slot" : "");
}

/* Detect gaps and repetitions in the sequence. */
static void follow(struct ndx_receiver *r, struct ndx_frame *frame)
{
	const uint32_t wrap = r->attr.sequence_wrap;
	const uint32_t at = frame->sequence % wrap;
	const uint32_t ahead = at >= r->expected ? at - r->expected : at + wrap - r->expected;

	if (ahead > wrap / 2) {
		count_up(&r->counters.repeated, 1);
		return;
	}
	if (ahead > 0) {
		frame->lost = ahead;
		count_up(&r->counters.lost, ahead);
	}
	r->expected = at + 1 < wrap ? at + 1 : 0;
}

/* Fill in the frame from its result. False: the result has no frame, and was counted. */
static bool fill_frame(struct ndx_receiver *r, struct slot *slot, const struct ndx_result *result,
                       uint64_t now_ns)
{
	const bool written = (result->flags & NDX_RESULT_WRITTEN) != 0;
	struct ndx_frame *f = &slot->frame;

	if (result->bytes_transferred == 0) {
		count_up(&r->counters.empty, 1);
		return false;
	}
	if (written != r->slab->by_write) {
		count_up(&r->counters.misplaced, 1);
		return false;
	}
	if (result->bytes_transferred > r->slab->size) {
		count_up(&r->counters.oversize, 1);
		return false;
	}
	*f = (struct ndx_frame){
		.data = slot->memory,
		.length = result->bytes_transferred,
		.slot = slot->index,
		.flags = written ? NDX_FRAME_WRITTEN : 0,
		.time_ns = now_ns,
	};
	if (result->flags & NDX_RESULT_IMMEDIATE) {
		f->flags |= NDX_FRAME_IMMEDIATE;
		f->immediate = result->immediate;
		f->sequence = frame_sequence(result->immediate);
		f->channel = (uint8_t)result->immediate;
		follow(r, f);
		return true;
	}
	count_up(&r->counters.no_immediate, 1);
	return !r->attr.need_immediate;
}

/* The slot, or a copy of the frame if few slots are posted. */
static struct slot *spare(struct ndx_receiver *r, struct slot *slot)
{
	struct slot *copy;
	bool missed;

	copy = slab_copy(r->slab, slot, slot->frame.length, r->attr.copy_below, &missed);
	if (missed)
		count_up(&r->counters.copies_missed, 1);
	if (copy == NULL)
		return slot;
	copy->frame = slot->frame;
	copy->frame.data = copy->memory;
	copy->frame.flags |= NDX_FRAME_COPIED;
	count_up(&r->counters.copied, 1);
	return copy;
}

static void call_consumers(struct ndx_receiver *r, const struct ndx_frame *frame)
{
	for (int i = 0; i < NDX_RECEIVER_CONSUMERS; i++) {
		const struct ndx_frame_consumer *c = &r->attr.consumers[i];

		if (c->fn == NULL)
			break;
		if (c->channel != NDX_CHANNEL_ANY && c->channel != frame->channel)
			continue;
		if (!c->fn(c->context, frame))
			count_up(&r->counters.consumer_errors[i], 1);
	}
}

/* Give the frame to its consumers. Returns the frame, with its reference, if the frame is to be
 * queued; NULL otherwise. */
static const struct ndx_frame *deliver(struct ndx_receiver *r, struct slot *slot,
                                       const struct ndx_result *result, uint64_t now_ns)
{
	const struct ndx_frame *frame;

	if (!fill_frame(r, slot, result, now_ns)) {
		ndx_frame_release(&slot->frame);
		return NULL;
	}
	count_up(&r->counters.gaps[ndxp_stats_bucket((now_ns - r->last_ns) / 1000)], 1);
	r->last_ns = now_ns;
	if (r->attr.copy_below > 0)
		slot = spare(r, slot);
	frame = &slot->frame;
	count_up(&r->counters.frames, 1);
	count_up(&r->counters.bytes, frame->length);
	count_up(&r->counters.sizes[ndxp_stats_bucket(frame->length)], 1);
	call_consumers(r, frame);
	if (r->pull.ring != NULL)
		return frame;
	ndx_frame_release(frame);
	return NULL;
}

/* Deliver what came with these results. */
static void deliver_all(struct ndx_receiver *r, struct slot **slots,
                        const struct ndx_result *results, size_t count, uint64_t now_ns)
{
	const struct ndx_frame *queued[LOOP_BATCH_MAX];
	const bool consumed = r->attr.consumers[0].fn != NULL;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (slots[i] != NULL)
			queued[n] = deliver(r, slots[i], &results[i], now_ns);
		else if (results[i].status != NDX_OK)
			on_failure(r, &results[i]);
		if (slots[i] == NULL || queued[n] == NULL)
			continue;
		n++;
		/* A slow consumer of the next frame does not delay this frame. */
		if (consumed) {
			pull_push(&r->pull, queued, n);
			n = 0;
		}
	}
	if (n > 0)
		pull_push(&r->pull, queued, n);
}

size_t receiver_poll(struct ndx_receiver *r)
{
	struct slab_verdicts verdicts = {0};
	struct ndx_result results[LOOP_BATCH_MAX];
	struct slot *slots[LOOP_BATCH_MAX];
	const size_t n = ndx_cq_get_results(r->cq, results, r->batch);
	uint64_t now;

	if (n == 0)
		return 0;
	now = ndxp_now_ns();
	slab_take(r->slab, results, n, r->attr.sequence_wrap, now, slots, &verdicts);
	if (verdicts.overwritten > 0)
		count_up(&r->counters.overwritten, verdicts.overwritten);
	if (verdicts.misplaced > 0)
		count_up(&r->counters.misplaced, verdicts.misplaced);
	deliver_all(r, slots, results, n, now);
	return n;
}

bool receiver_arm(struct ndx_receiver *r)
{
	count_up(&r->counters.sleeps, 1);
	return ndx_cq_notify(r->cq, NDX_CQ_NOTIFY_ANY, NULL) == NDX_OK;
}

void receiver_woken(struct ndx_receiver *r)
{
	count_up(&r->counters.wakeups, 1);
}
