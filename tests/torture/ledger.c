/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger.h"

#include <string.h>

#include "model.h"
#include "stage.h"

enum { BATCH = 32, WAIT_MS = 2, INDEX_SHIFT = 8, ROUND_SHIFT = 24, ID_MASK = 0x3f };

static const char *const request_names[] = {"receive",    "send", "bind",
                                            "invalidate", "read", "write"};

const char *request_name(enum ndx_request_type type)
{
	return (unsigned)type < 6 ? request_names[type] : "request of no known kind";
}

void *context_of(const struct round *round, enum context_kind kind, uint32_t id, uint32_t index)
{
	uintptr_t value = (uintptr_t)kind | (uintptr_t)id << 2 | (uintptr_t)index << INDEX_SHIFT |
	                  (uintptr_t)(round->number & 0xffffff) << ROUND_SHIFT;

	return (void *)value; /* NOLINT(performance-no-int-to-ptr): never followed */
}

/* ---- a request that succeeded ---- */

static void window_result(struct end *e, const struct request *q, bool ok)
{
	(void)pthread_mutex_lock(&e->window_lock);
	if (q->type == NDX_REQUEST_BIND)
		e->window = ok ? WINDOW_BOUND : WINDOW_FREE;
	else if (!q->faulty)
		e->window = ok ? WINDOW_FREE : WINDOW_BOUND;
	(void)pthread_mutex_unlock(&e->window_lock);
}

static void let_go(struct end *e, const struct request *q)
{
	if (!q->window)
		return;
	(void)pthread_mutex_lock(&e->peer->window_lock);
	e->peer->window_users--;
	(void)pthread_mutex_unlock(&e->peer->window_lock);
}

static void succeeded(struct end *e, const struct request *q, uint32_t index)
{
	const char *name = request_name(q->type);

	if (e->initiator.failed && !model_may_succeed_behind(e, q))
		fail(e->round, e, "%s %u succeeded behind one that did not", name, index);
	if (q->late)
		fail(e->round, e, "%s %u succeeded, and was posted after the end", name, index);
	if (q->faulty)
		fail(e->round, e, "%s %u succeeded, and cannot work", name, index);
	if (q->has_message)
		e->sends_ok++;
	if (q->type == NDX_REQUEST_READ &&
	    !memory_was_read(e->peer, q->remote_at, e->memory.area[AREA_LOCAL] + q->at, q->length))
		fail(e->round, e, "read %u of %u bytes brought wrong data", index, q->length);
	if (q->type == NDX_REQUEST_WRITE &&
	    !memory_has_written(e->peer, q->remote_at, q->length, write_key(e, index)))
		fail(e->round, e, "write %u of %u bytes is done, and not in the peer's memory",
		     index, q->length);
	if (q->type == NDX_REQUEST_BIND || q->type == NDX_REQUEST_INVALIDATE)
		window_result(e, q, true);
	let_go(e, q);
}

/* One failure ends the connection: "everything else of the queue pair completes CANCELED". */
static void once(struct end *e, struct ledger *l, const struct request *q,
                 const struct ndx_result *r)
{
	if (r->status == NDX_E_CANCELED)
		return;
	if (l->broken)
		fail(e->round, e, "a %s failed behind one that did, and was not cancelled",
		     request_name(q->type));
	l->broken = true;
}

static void ended_badly(struct end *e, const struct request *q, const struct ndx_result *r)
{
	model_failure(e, q, r);
	once(e, &e->initiator, q, r);
	if (q->type == NDX_REQUEST_BIND || q->type == NDX_REQUEST_INVALIDATE)
		window_result(e, q, false);
	let_go(e, q);
	/* "A bind of it that has not begun completes NDX_E_CANCELED, and ends nothing." */
	if (q->type == NDX_REQUEST_BIND && r->status == NDX_E_CANCELED && e->mw == NULL)
		return;
	e->initiator.failed = true;
}

/* Silent requests in front of one that has a result have succeeded. */
static void presume(struct end *e, uint32_t until, const char *when)
{
	struct ledger *l = &e->initiator;

	for (; l->done < until; l->done++) {
		const struct request *q = &l->requests[l->done];

		if ((q->flags & NDX_OP_SILENT_SUCCESS) == 0)
			fail(e->round, e, "%s %u has no result when %s", request_name(q->type),
			     l->done, when);
		if (l->failed && !model_may_succeed_behind(e, q))
			fail(e->round, e, "silent %s %u behind a failure has no result when %s",
			     request_name(q->type), l->done, when);
		succeeded(e, q, l->done);
	}
}

static void judge_initiator(struct end *e, uint32_t index, const struct ndx_result *r)
{
	struct ledger *l = &e->initiator;
	const struct request *q;

	if (index >= l->posted)
		fail(e->round, e, "a result of initiator request %u, which was not posted", index);
	q = &l->requests[index];
	if (index < l->done)
		fail(e->round, e, "%s %u completed twice, or behind a later one",
		     request_name(q->type), index);
	presume(e, index, "a later one has");
	if (q->type != r->request_type)
		fail(e->round, e, "%s %u completed as a %s", request_name(q->type), index,
		     request_name(r->request_type));
	if (r->status == NDX_OK && (q->flags & NDX_OP_SILENT_SUCCESS) != 0)
		fail(e->round, e, "silent %s %u succeeded aloud", request_name(q->type), index);
	if (r->status == NDX_OK)
		succeeded(e, q, index);
	else
		ended_badly(e, q, r);
	l->done++;
}

/* ---- receives ---- */

/* Those of verbs do not say what was solicited: a native completion does not. */
static bool results_tell(const struct ndx_adapter_info *info)
{
	return (info->capabilities & NDX_CAP_NOTIFY_SOLICITED) != 0 &&
	       strcmp(info->provider, "verbs") != 0;
}

static void judge_message(struct end *e, const uint8_t *at, uint32_t room,
                          const struct ndx_result *r)
{
	struct end *from = e->peer;
	uint32_t number = e->received;
	bool tells = results_tell(&side_of(e)->info);
	bool written = (r->flags & NDX_RESULT_WRITTEN) != 0;
	bool solicited = (r->flags & NDX_RESULT_SOLICITED) != 0;
	bool immediate = (r->flags & NDX_RESULT_IMMEDIATE) != 0;
	const struct message *m = &from->messages[number];
	uint32_t used;

	if (number >= __atomic_load_n(&from->message_count, __ATOMIC_ACQUIRE))
		fail(e->round, e, "message %u was received, and not sent", number);
	if (r->bytes_transferred != m->length)
		fail(e->round, e, "message %u of %u bytes came with %u", number, m->length,
		     r->bytes_transferred);
	if (written != m->written || immediate != m->has_immediate ||
	    (immediate && r->immediate != m->immediate))
		fail(e->round, e, "message %u came with flags %x and immediate %x, not %x", number,
		     r->flags, r->immediate, m->immediate);
	if (solicited != m->solicited && (tells || solicited))
		fail(e->round, e, "message %u came %ssolicited", number, solicited ? "" : "not ");
	used = m->written ? 0 : m->length;
	if (pattern_match(at, used, message_key(from, number)) != used)
		fail(e->round, e, "message %u has wrong data at %zu of %u", number,
		     pattern_match(at, used, message_key(from, number)), used);
	if (!bytes_are(at + used, room - used, MEMORY_FILL))
		fail(e->round, e, "message %u wrote behind its end", number);
	__atomic_store_n(&e->received, number + 1, __ATOMIC_RELEASE);
}

static void receive_failed(struct end *e, const struct request *q, const struct ndx_result *r)
{
	model_failure(e, q, r);
	once(e, &e->receive, q, r);
	e->receive.failed = true;
}

static void judge_receive(struct end *e, uint32_t index, const struct ndx_result *r)
{
	struct ledger *l = &e->receive;
	const struct request *q;

	if (index >= l->posted || index != l->done)
		fail(e->round, e, "receive %u of %u completed when it was %u's turn", index,
		     l->posted, l->done);
	q = &l->requests[index];
	if (r->status == NDX_OK && l->failed)
		fail(e->round, e, "receive %u succeeded behind one that did not", index);
	if (r->status == NDX_OK)
		judge_message(e, e->memory.area[AREA_RECEIVE] + q->at, q->length, r);
	else
		receive_failed(e, q, r);
	l->done++;
}

/* A receive that all queue pairs of the side share; `e` is the one that took it. */
static void judge_shared(struct end *e, uint32_t index, const struct ndx_result *r)
{
	struct srq *srq = &side_of(e)->srq;
	const struct request any = {.type = NDX_REQUEST_RECEIVE};
	struct srq_entry *entry = &srq->entries[index];

	(void)pthread_mutex_lock(&srq->lock);
	if (index >= srq->posted || entry->taken)
		fail(e->round, e, "shared receive %u completed twice, or was never posted", index);
	entry->taken = true;
	srq->done++;
	(void)pthread_mutex_unlock(&srq->lock);
	if (r->status == NDX_OK && e->receive.failed)
		fail(e->round, e, "shared receive %u succeeded behind one that did not", index);
	if (r->status == NDX_OK)
		judge_message(e, srq->base + entry->at, srq->slot, r);
	else
		receive_failed(e, &any, r);
}

/* ---- results ---- */

static struct end *end_of(struct side *s, const struct ndx_result *r)
{
	for (uint32_t i = 0; i < s->round->plan.conns; i++) {
		struct end *e = &s->round->conns[i].ends[s->index];

		if (r->queue_pair_context == e)
			return e;
	}
	fail(s->round, NULL, "a result of a queue pair that is none: %p", r->queue_pair_context);
}

static void judge(struct side *s, const struct ndx_result *r)
{
	struct end *e = end_of(s, r);
	uintptr_t context = (uintptr_t)r->request_context;
	enum context_kind kind = (enum context_kind)(context & 3);
	uint32_t id = (uint32_t)(context >> 2 & ID_MASK);
	uint32_t index = (uint32_t)(context >> INDEX_SHIFT & 0xffff);
	struct ledger *l = kind == CONTEXT_INITIATOR ? &e->initiator : &e->receive;

	note(s->round, e, "%s %u: %s, %u bytes, flags %x", request_name(r->request_type), index,
	     ndx_status_name(r->status), r->bytes_transferred, r->flags);
	if (id != (kind == CONTEXT_SRQ ? e->side : e->id) || index >= REQUESTS ||
	    context >> ROUND_SHIFT != (s->round->number & 0xffffff))
		fail(s->round, e, "a result with a context that is not of this round or end: %p",
		     r->request_context);
	(void)pthread_mutex_lock(&l->lock);
	if (l->shut)
		fail(s->round, e, "a result came when all of them had come");
	if (kind == CONTEXT_INITIATOR)
		judge_initiator(e, index, r);
	else if (kind == CONTEXT_RECEIVE)
		judge_receive(e, index, r);
	else
		judge_shared(e, index, r);
	(void)pthread_mutex_unlock(&l->lock);
}

static bool fires(const struct side *s, const struct cq *cq, const struct ndx_result *r)
{
	if (cq->armed == NDX_CQ_NOTIFY_ANY)
		return true;
	if (cq->armed == NDX_CQ_NOTIFY_ERRORS)
		return false;
	return r->status != NDX_OK || (r->flags & NDX_RESULT_SOLICITED) != 0 ||
	       (s->info.capabilities & NDX_CAP_NOTIFY_SOLICITED) == 0;
}

/* Lock of the queue held: what was taken in one call. */
static void judge_batch(struct side *s, struct cq *cq, const struct ndx_result *results, size_t got)
{
	for (size_t i = 0; i < got; i++) {
		if (op_flying(&cq->notify) && cq->must_fire && fires(s, cq, &results[i]))
			cq->due = true;
		judge(s, &results[i]);
	}
	/* "A result that was added since the last ndx_cq_get_results() fires it at once." */
	if (cq->due && cq->notify.plain && op_flying(&cq->notify)) {
		op_must_have_ended(&cq->notify, "a result is there that has to complete it");
		cq->due = false;
		cq->empty = false;
	}
}

size_t ledger_poll(struct side *s, uint32_t which, size_t limit)
{
	struct cq *cq = &s->cqs[which];
	struct ndx_result results[BATCH];
	size_t room = limit < BATCH ? limit : BATCH;
	size_t got = 0;

	(void)pthread_mutex_lock(&cq->lock);
	if (cq->cq != NULL && room > 0) {
		got = ndx_cq_get_results(cq->cq, results, room);
		cq->empty = got < room;
		judge_batch(s, cq, results, got);
	}
	(void)pthread_mutex_unlock(&cq->lock);
	return got;
}

void ledger_wait(struct side *s, uint32_t which)
{
	struct cq *cq = &s->cqs[which];
	struct ndx_result results[BATCH];
	size_t got = 0;
	enum ndx_status st;

	if (stage_inside() || pthread_mutex_trylock(&cq->lock) != 0)
		return;
	if (cq->cq != NULL && !op_flying(&cq->notify)) {
		cq->slept = true;
		st = ndx_cq_wait_results(cq->cq, results, BATCH, WAIT_MS, &got);
		if (st != NDX_OK && st != NDX_PENDING)
			fail(s->round, NULL, "ndx_cq_wait_results: %s", ndx_status_name(st));
		if ((st == NDX_OK) != (got > 0))
			fail(s->round, NULL, "ndx_cq_wait_results: %s and %zu results",
			     ndx_status_name(st), got);
		cq->empty = got < BATCH;
		judge_batch(s, cq, results, got);
	}
	(void)pthread_mutex_unlock(&cq->lock);
}

void ledger_drain(struct end *e)
{
	struct side *s = side_of(e);

	while (ledger_poll(s, e->plan->receive_cq, BATCH) == BATCH)
		continue;
	while (ledger_poll(s, e->plan->initiator_cq, BATCH) == BATCH)
		continue;
}

void ledger_close(struct end *e, const char *when)
{
	struct ledger *l = &e->initiator;

	ledger_drain(e);
	(void)pthread_mutex_lock(&l->lock);
	if (!l->blind)
		presume(e, l->posted, when);
	l->shut = true;
	(void)pthread_mutex_unlock(&l->lock);
	l = &e->receive;
	(void)pthread_mutex_lock(&l->lock);
	if (!l->blind && l->done < l->posted)
		fail(e->round, e, "receive %u of %u has no result when %s", l->done, l->posted,
		     when);
	l->shut = true;
	(void)pthread_mutex_unlock(&l->lock);
}

bool ledger_is_even(struct end *e)
{
	bool even = true;

	(void)pthread_mutex_lock(&e->initiator.lock);
	for (uint32_t i = e->initiator.done; i < e->initiator.posted; i++) {
		const struct request *q = &e->initiator.requests[i];

		if (e->initiator.failed || (q->flags & NDX_OP_SILENT_SUCCESS) == 0)
			even = e->initiator.blind;
	}
	(void)pthread_mutex_unlock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->receive.lock);
	if (e->receive.done < e->receive.posted && !e->receive.blind)
		even = false;
	(void)pthread_mutex_unlock(&e->receive.lock);
	return even;
}

void ledger_peer_has_ended(struct end *peer, uint64_t at)
{
	struct ledger *l = &peer->initiator;

	/* crossed callbacks must not wait for each other's locks */
	if (!side_is_mine(side_of(peer)) || (stage_inside() && peer->round->plan.threads > 1))
		return;
	ledger_drain(peer);
	(void)pthread_mutex_lock(&l->lock);
	for (uint32_t i = l->done; i < l->posted && !l->blind; i++) {
		const struct request *q = &l->requests[i];

		if (model_may_end_later(peer))
			break;
		if (q->after < at && (l->failed || (q->flags & NDX_OP_SILENT_SUCCESS) == 0))
			fail(peer->round, peer,
			     "%s %u has not ended, and the disconnect of the peer has succeeded",
			     request_name(q->type), i);
	}
	(void)pthread_mutex_unlock(&l->lock);
}
