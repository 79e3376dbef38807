/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders: a ring of slots; a slot is in use until the peer has its frame. */
#include "sender.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/helpers.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "base_loop.h"
#include "receiver.h"

#define BATCH 16
#define SECOND_NS 1000000000ull
/* The receiver's thread may take the results of a shared queue, so the wait polls at intervals. */
#define SHARED_WAIT_MS 10u
/* Polling costs as much as posting. With free slots left, poll only this often, so that a failure
 * is still detected before the window is full. */
#define LOOK_NS 1000000u
#define SPINS 16

enum ndx_status sender_make_qp(struct ndx_sender *s)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	attr.receive_depth = 1;
	attr.initiator_depth = s->attr.slot_count;
	attr.max_initiator_sge = 1;
	attr.no_receive_timeout_ms = s->attr.no_receive_timeout_ms;
	attr.keepalive_ms = s->attr.keepalive_ms;
	return ndx_qp_create(s->end.adapter, &attr, &s->end.qp);
}

/* The context of a request: sender and slot. Never 0, which is the context of a probe. */
static uintptr_t context_of(const struct ndx_sender *s, uint32_t slot)
{
	return (uintptr_t)(s->number & UINT16_MAX) << 16 | (slot + 1);
}

/* Frames complete in posting order, so slots become free in the ring's order. */
static void count_result(struct ndx_sender *s, const struct ndx_result *result)
{
	const uintptr_t context = (uintptr_t)result->request_context;
	const uint32_t slot = (uint32_t)(context & UINT16_MAX) - 1;

	/* The result of a probe, or of a sender that was closed. */
	if (context == 0 || context != context_of(s, slot))
		return;
	s->under_way--;
	if (result->status == NDX_OK) {
		s->stats.frames++;
		s->stats.bytes += s->lengths[slot];
	} else if (s->stats.failed == NDX_OK) {
		s->stats.failed = result->status;
		(void)fail(result->status, result->native, "a frame could not be sent: %s",
		           ndx_status_text(result->status));
	}
}

static void count_results(struct ndx_sender *s, const struct ndx_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++)
		count_result(s, &results[i]);
}

/* Take the available results; returns their number. */
static size_t collect(struct ndx_sender *s)
{
	struct ndx_result results[BATCH];
	size_t all = 0;
	size_t n;

	do {
		n = ndx_cq_get_results(s->cq, results, BATCH);
		count_results(s, results, n);
		all += n;
	} while (n == BATCH);
	return all;
}

/* Poll for at most spin_us. True: results came. */
static bool spin(struct ndx_sender *s, uint64_t deadline_ns)
{
	const uint64_t end = ndxp_now_ns() + (uint64_t)s->attr.spin_us * 1000;
	const uint64_t until = end < deadline_ns ? end : deadline_ns;

	do {
		for (int i = 0; i < SPINS; i++) {
			if (collect(s) > 0)
				return true;
		}
	} while (ndxp_now_ns() < until);
	return false;
}

/* Wait for one result, until the deadline; returns at once if no frame is in flight. */
static enum ndx_status collect_one(struct ndx_sender *s, uint64_t deadline_ns)
{
	struct ndx_result results[BATCH];
	enum ndx_status st;
	uint32_t ms;
	size_t got;

	if (ndxp_now_ns() < deadline_ns && spin(s, deadline_ns))
		return NDX_OK;
	ms = ndxp_ms_until(deadline_ns);
	if (ms == 0)
		return NDX_PENDING;
	if (s->receiver != NULL && ms > SHARED_WAIT_MS)
		ms = SHARED_WAIT_MS;
	st = ndx_cq_wait_results(s->cq, results, BATCH, ms, &got);
	count_results(s, results, got);
	return st == NDX_PENDING && ndxp_now_ns() < deadline_ns ? NDX_OK : st;
}

static enum ndx_status usable(const struct ndx_sender *s, const char *call)
{
	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: sender is NULL", call);
	if (!s->connected)
		return fail(
			NDX_E_INVALID_DEVICE_STATE, 0,
			"%s: not connected: call ndx_sender_connect() or another way to connect "
			"first",
			call);
	return s->stats.failed;
}

/* Sleep, then spin, until the rate allows the next frame. */
static enum ndx_status keep_rate(struct ndx_sender *s, uint64_t deadline_ns)
{
	uint64_t now;

	if (s->attr.rate == 0)
		return NDX_OK;
	while ((now = ndxp_now_ns()) < s->due_ns) {
		const uint64_t ms = (s->due_ns - now) / 1000000;

		if (now >= deadline_ns)
			return NDX_PENDING;
		if (base_loop_in_callback())
			return fail(NDX_E_WOULD_BLOCK, 0,
			            "ndx_sender_acquire: the rate allows none yet, and this is a "
			            "callback");
		(void)collect(s);
		if (ms > 1)
			(void)poll(NULL, 0, ms < 10 ? (int)ms - 1 : 10);
	}
	return NDX_OK;
}

enum ndx_status ndx_sender_acquire(struct ndx_sender *s, uint32_t timeout_ms, void **buffer)
{
	const uint64_t now = ndxp_now_ns();
	const uint64_t deadline = ndxp_deadline(timeout_ms);
	enum ndx_status st = usable(s, "ndx_sender_acquire");

	if (st != NDX_OK)
		return st;
	if (buffer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_sender_acquire: buffer is NULL");
	if (s->under_way >= s->attr.window || now - s->looked_ns >= LOOK_NS) {
		s->looked_ns = now;
		(void)collect(s);
	}
	if (s->under_way >= s->attr.window)
		s->stats.waits++;
	while (s->stats.failed == NDX_OK && s->under_way >= s->attr.window) {
		st = collect_one(s, deadline);
		if (st != NDX_OK)
			return st;
	}
	if (s->stats.failed != NDX_OK)
		return s->stats.failed;
	st = keep_rate(s, deadline);
	if (st != NDX_OK)
		return st;
	s->acquired = true;
	*buffer = s->memory + (size_t)s->next * s->attr.slot_size;
	return NDX_OK;
}

/* The request for one frame. */
struct shot {
	struct ndx_sge sge;
	uint32_t immediate;
	uint32_t sequence; /* the slot at the peer, in mode WRITE */
};

static enum ndx_status fire_on(struct ndx_sender *s, struct ndx_qp *qp, const struct shot *shot)
{
	void *context = (void *)context_of(s, s->next);
	uint64_t to;

	if (s->attr.mode == NDX_RECEIVER_WRITE) {
		to = s->attr.peer_address +
		     (uint64_t)(shot->sequence % s->attr.peer_slot_count) * s->attr.peer_slot_size;
		return ndx_qp_write_immediate(qp, context, &shot->sge, 1, to, s->attr.peer_token,
		                              shot->immediate, 0);
	}
	if (s->can_send_immediate)
		return ndx_qp_send_immediate(qp, context, &shot->sge, 1, shot->immediate, 0);
	return ndx_qp_send(qp, context, &shot->sge, 1, 0);
}

static enum ndx_status fire(struct ndx_sender *s, const struct shot *shot)
{
	struct ndx_receiver *r = s->receiver;
	enum ndx_status st;

	if (r == NULL)
		return fire_on(s, s->end.qp, shot);
	ndxp_lock_acquire(&r->tx_lock);
	st = r->tx_qp == NULL ? NDX_E_CONNECTION_INVALID : fire_on(s, r->tx_qp, shot);
	ndxp_lock_release(&r->tx_lock);
	if (st == NDX_E_CONNECTION_INVALID)
		return fail(st, 0, "ndx_sender_post: the receiver is not connected");
	return st;
}

static void advance(struct ndx_sender *s)
{
	const uint64_t now = s->attr.rate > 0 ? ndxp_now_ns() : 0;

	s->acquired = false;
	s->posted++;
	s->sequence = (s->sequence + 1) % s->attr.sequence_wrap;
	if (s->attr.rate == 0)
		return;
	/* A sender that is late does not send a burst to catch up. */
	s->due_ns = (s->due_ns > now ? s->due_ns : now) + SECOND_NS / s->attr.rate;
}

enum ndx_status ndx_sender_post(struct ndx_sender *s, uint32_t length, uint32_t channel)
{
	struct shot shot;
	enum ndx_status st = usable(s, "ndx_sender_post");

	if (st != NDX_OK)
		return st;
	if (!s->acquired)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_post: call ndx_sender_acquire() first");
	if (length == 0 || length > s->attr.slot_size || channel > UINT8_MAX)
		return fail(
			NDX_E_INVALID_PARAMETER, 0,
			"ndx_sender_post: length %u is not in 1..%u, or channel %u not in 0..255",
			length, s->attr.slot_size, channel);
	shot.sge.buffer = s->memory + (size_t)s->next * s->attr.slot_size;
	shot.sge.length = length;
	shot.sge.token = ndx_mr_get_local_token(s->mr);
	shot.sequence = s->sequence;
	shot.immediate = s->sequence << 8 | channel;
	s->lengths[s->next] = shot.sge.length;
	st = fire(s, &shot);
	if (st != NDX_OK)
		return st;
	s->next = (s->next + 1) % s->attr.slot_count;
	if (++s->under_way > s->stats.most_under_way)
		s->stats.most_under_way = s->under_way;
	advance(s);
	return NDX_OK;
}

enum ndx_status ndx_sender_send(struct ndx_sender *s, const void *data, uint32_t length,
                                uint32_t channel, uint32_t timeout_ms)
{
	void *buffer;
	enum ndx_status st = ndx_sender_acquire(s, timeout_ms, &buffer);

	if (st != NDX_OK)
		return st;
	if (data == NULL || length > s->attr.slot_size)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_sender_send: data is NULL, or length %u is not in 1..%u", length,
		            s->attr.slot_size);
	memcpy(buffer, data, length);
	return ndx_sender_post(s, length, channel);
}

enum ndx_status ndx_sender_flush(struct ndx_sender *s, uint32_t timeout_ms)
{
	const uint64_t deadline = ndxp_deadline(timeout_ms);
	enum ndx_status st = usable(s, "ndx_sender_flush");

	if (st != NDX_OK)
		return st;
	(void)collect(s);
	while (s->under_way > 0 && st == NDX_OK)
		st = collect_one(s, deadline);
	return s->stats.failed != NDX_OK ? s->stats.failed : s->under_way == 0 ? NDX_OK : st;
}

enum ndx_status ndx_sender_get_stats(struct ndx_sender *s, struct ndx_sender_stats *stats)
{
	static const struct base_struct layout = BASE_STRUCT(
		struct ndx_sender_stats, NDX_SENDER_STATS_SIZE_0_1, "set `size` to sizeof(*stats)");
	struct ndx_sender_stats now;

	if (s == NULL || stats == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_sender_get_stats: NULL argument");
	if (s->connected)
		(void)collect(s);
	now = s->stats;
	now.under_way = s->under_way;
	return base_struct_out(&layout, "ndx_sender_get_stats", stats, stats->size, &now);
}
