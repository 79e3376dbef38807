/* SPDX-License-Identifier: BSD-2-Clause */
#include "post.h"

#include <string.h>

#include "ledger.h"

enum { SGES = 4, SCRIBBLE = 0x77, SHORT = 1 };

static uint32_t load(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static bool has(const struct end *e, enum ndx_capability bit)
{
	return (side_of(e)->info.capabilities & bit) != 0;
}

/* `length` bytes, cut into up to `limit` pieces side by side; how many. */
static size_t cut(uint64_t *random, struct ndx_sge *sge, uint32_t limit, uint8_t *at,
                  uint32_t length, uint32_t token)
{
	uint32_t count = 1 + below(random, limit < SGES ? limit : SGES);
	uint32_t done = 0;

	if (length == 0 && chance(random, 50))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = i + 1 == count ? length - done : below(random, length - done + 1);

		sge[i].buffer = at + done;
		sge[i].length = part;
		sge[i].token = token;
		done += part;
	}
	return count;
}

/* Lock held: the next record, or NULL if the round has had enough of them. */
static struct request *next_record(struct end *e, struct ledger *l, enum ndx_request_type type)
{
	struct request *q = &l->requests[l->posted % REQUESTS];

	if (l->posted == REQUESTS)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->type = type;
	q->at = l->room;
	q->late = __atomic_load_n(&e->ended_at, __ATOMIC_ACQUIRE) != 0;
	q->before = now_ns();
	return q;
}

/* Lock held: what a post returned. True if it was accepted. */
static bool taken(struct end *e, struct ledger *l, struct request *q, enum ndx_status st)
{
	bool receive = q->type == NDX_REQUEST_RECEIVE;
	uint32_t depth = receive ? e->plan->receive_depth : e->plan->initiator_depth;
	uint32_t outstanding = l->posted - l->done;

	if (st == NDX_OK) {
		q->after = now_ns();
		note(e->round, e, "post %s %u: %u bytes, flags %x%s%s", request_name(q->type),
		     l->posted, q->length, q->flags, q->faulty ? ", wrong" : "",
		     q->late ? ", late" : "");
		__atomic_store_n(&l->posted, l->posted + 1, __ATOMIC_RELEASE);
		return true;
	}
	if (st != NDX_E_NO_MORE_ENTRIES)
		fail(e->round, e, "a %s of %u bytes, flags %x, was refused: %s",
		     request_name(q->type), q->length, q->flags, ndx_status_name(st));
	if (outstanding < depth)
		fail(e->round, e, "a %s was refused as the queue is full: %u of %u outstanding",
		     request_name(q->type), outstanding, depth);
	return false;
}

/* ---- receives ---- */

static bool receive_of(struct end *e, uint64_t *random, uint32_t length)
{
	struct ledger *l = &e->receive;
	struct ndx_sge sge[SGES];
	struct request *q;
	bool posted = false;
	size_t count;

	(void)pthread_mutex_lock(&l->lock);
	q = next_record(e, l, NDX_REQUEST_RECEIVE);
	if (q != NULL && e->qp != NULL && !l->shut && !e->quiet &&
	    l->room + length <= e->memory.size) {
		q->length = length;
		count = cut(random, sge, e->plan->sge, e->memory.area[AREA_RECEIVE] + q->at, length,
		            e->receive_token);
		posted = taken(
			e, l, q,
			ndx_qp_receive(e->qp,
		                       context_of(e->round, CONTEXT_RECEIVE, e->id, l->posted), sge,
		                       count));
		if (posted)
			l->room += length;
	}
	(void)pthread_mutex_unlock(&l->lock);
	return posted;
}

bool post_receive(struct end *e, uint64_t *random)
{
	return receive_of(e, random, e->conn->plan->message);
}

void post_short_receive(struct end *e)
{
	(void)receive_of(e, &e->random, SHORT);
}

bool post_shared_receive(struct side *s, uint64_t *random)
{
	struct srq *srq = &s->srq;
	struct ndx_sge sge[SGES];
	struct srq_entry *entry;
	enum ndx_status st = NDX_E_NO_MORE_ENTRIES;
	size_t count;

	(void)pthread_mutex_lock(&srq->lock);
	if (srq->srq != NULL && srq->posted < REQUESTS &&
	    (srq->posted + 1) * srq->slot <= s->round->plan.area) {
		entry = &srq->entries[srq->posted];
		entry->at = srq->posted * srq->slot;
		entry->taken = false;
		count = cut(random, sge, 1, srq->base + entry->at, srq->slot, srq->token);
		st = ndx_srq_receive(srq->srq,
		                     context_of(s->round, CONTEXT_SRQ, s->index, srq->posted), sge,
		                     count);
		if (st != NDX_OK && st != NDX_E_NO_MORE_ENTRIES)
			fail(s->round, NULL, "a shared receive was refused: %s",
			     ndx_status_name(st));
		if (st != NDX_OK && srq->posted - srq->done < s->plan->srq_depth)
			fail(s->round, NULL,
			     "a shared receive was refused as the queue is full: %u of %u",
			     srq->posted - srq->done, s->plan->srq_depth);
		if (st == NDX_OK)
			__atomic_store_n(&srq->posted, srq->posted + 1, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&srq->lock);
	return st == NDX_OK;
}

/* ---- messages ---- */

/* A receive of the peer's waits for one more message; takes it, if they are shared. */
static bool claim(struct end *e)
{
	struct srq *srq = &side_of(e->peer)->srq;
	uint32_t claimed;

	if (!end_has_srq(e->peer))
		return load(&e->peer->receive.posted) > e->sent;
	claimed = load(&srq->claimed);
	do {
		if (claimed >= load(&srq->posted))
			return false;
	} while (!__atomic_compare_exchange_n(&srq->claimed, &claimed, claimed + 1, false,
	                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

static void unclaim(struct end *e)
{
	if (end_has_srq(e->peer))
		(void)__atomic_fetch_sub(&side_of(e->peer)->srq.claimed, 1, __ATOMIC_ACQ_REL);
}

static uint32_t common_flags(struct end *e, uint32_t length, bool may_be_inline)
{
	uint32_t flags = 0;

	if (chance(&e->random, 25))
		flags |= NDX_OP_SILENT_SUCCESS;
	if (chance(&e->random, 10) && e->round->plan.fences)
		flags |= NDX_OP_READ_FENCE;
	if (may_be_inline && length <= e->plan->inline_size && chance(&e->random, 30))
		flags |= NDX_OP_INLINE;
	return flags;
}

static uint32_t some_length(struct end *e)
{
	uint32_t most = e->conn->plan->message;

	if (chance(&e->random, 10))
		return 0;
	if (chance(&e->random, 10))
		return most;
	return below(&e->random, (most < 96 || chance(&e->random, 10) ? most : 96) + 1);
}

/* An inline request has copied its bytes: they are ours again. */
static void scribble(struct end *e, const struct request *q)
{
	if (q->flags & NDX_OP_INLINE)
		memset(e->memory.area[AREA_LOCAL] + q->at, SCRIBBLE, q->length);
}

static void describe(struct end *e, struct message *m, uint32_t length)
{
	memset(m, 0, sizeof(*m));
	m->length = length;
	m->solicited = chance(&e->random, 15);
	m->has_immediate = has(e, NDX_CAP_SEND_IMMEDIATE) && chance(&e->random, 25);
	if (m->has_immediate)
		m->immediate = (uint32_t)random_next(&e->random);
}

/* Lock held. */
static bool send_one(struct end *e, struct request *q)
{
	struct ledger *l = &e->initiator;
	struct message *m = &e->messages[e->sent];
	struct ndx_sge sge[SGES];
	uint8_t *at = e->memory.area[AREA_LOCAL] + q->at;
	void *context = context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted);
	enum ndx_status st;
	size_t count;

	describe(e, m, q->length);
	q->message = e->sent;
	q->has_message = true;
	q->flags = common_flags(e, q->length, true) | (m->solicited ? NDX_OP_SOLICIT_EVENT : 0u);
	pattern_fill(at, q->length, message_key(e, e->sent));
	count = cut(&e->random, sge, q->flags & NDX_OP_INLINE ? SGES : e->plan->sge, at, q->length,
	            q->flags & NDX_OP_INLINE ? 0 : e->local_token);
	__atomic_store_n(&e->message_count, e->sent + 1, __ATOMIC_RELEASE);
	if (m->has_immediate)
		st = ndx_qp_send_immediate(e->qp, context, sge, count, m->immediate, q->flags);
	else
		st = ndx_qp_send(e->qp, context, sge, count, q->flags);
	if (!taken(e, l, q, st))
		return false;
	scribble(e, q);
	l->room += q->length;
	e->sent++;
	return true;
}

static bool may_post(const struct end *e)
{
	return e->qp != NULL && !e->initiator.shut && !e->quiet && end_phase(e) == PHASE_UP;
}

bool post_message(struct end *e)
{
	struct ledger *l = &e->initiator;
	uint32_t length = some_length(e);
	struct request *q;
	bool posted = false;

	if (e->sent == MESSAGES || (e->plan->polite && !claim(e)))
		return false;
	(void)pthread_mutex_lock(&l->lock);
	q = next_record(e, l, NDX_REQUEST_SEND);
	if (q != NULL && may_post(e) && l->room + length <= e->memory.size) {
		q->length = length;
		posted = send_one(e, q);
	}
	(void)pthread_mutex_unlock(&l->lock);
	if (!posted && e->plan->polite)
		unclaim(e);
	return posted;
}

/* ---- reads and writes ---- */

static bool use_window(struct end *e, uint32_t *token)
{
	struct end *p = e->peer;
	bool bound;

	if (e->round->plan.process || !chance(&e->random, 40))
		return false;
	(void)pthread_mutex_lock(&p->window_lock);
	bound = p->window == WINDOW_BOUND;
	if (bound) {
		p->window_users++;
		*token = p->window_token;
	}
	(void)pthread_mutex_unlock(&p->window_lock);
	return bound;
}

static void unuse_window(struct end *e, const struct request *q)
{
	if (!q->window)
		return;
	(void)pthread_mutex_lock(&e->peer->window_lock);
	e->peer->window_users--;
	(void)pthread_mutex_unlock(&e->peer->window_lock);
}

/* Lock held. */
static bool read_one(struct end *e, struct request *q, uint32_t token)
{
	struct ledger *l = &e->initiator;
	struct ndx_sge sge[SGES];
	uint32_t limit = side_of(e)->info.max_read_sge;
	size_t count;

	q->remote_at = below(&e->random, e->memory.size - q->length + 1);
	q->flags = common_flags(e, q->length, false);
	count = cut(&e->random, sge, e->plan->sge < limit ? e->plan->sge : limit,
	            e->memory.area[AREA_LOCAL] + q->at, q->length, e->local_token);
	if (!taken(e, l, q,
	           ndx_qp_read(
			   e->qp, context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted), sge,
			   count,
			   (uint64_t)(uintptr_t)(e->peer->memory.area[AREA_READ] + q->remote_at),
			   token, q->flags)))
		return false;
	l->room += q->length;
	return true;
}

/* Lock held. With immediate data it is a message, too. */
static bool write_one(struct end *e, struct request *q, uint32_t token, bool immediate)
{
	struct ledger *l = &e->initiator;
	struct message *m = &e->messages[e->sent % MESSAGES];
	struct ndx_sge sge[SGES];
	uint8_t *at = e->memory.area[AREA_LOCAL] + q->at;
	void *context = context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted);
	uint64_t to;
	enum ndx_status st;
	size_t count;

	q->remote_at = __atomic_fetch_add(&e->write_room, q->length, __ATOMIC_ACQ_REL);
	to = (uint64_t)(uintptr_t)(e->peer->memory.area[AREA_WRITE] + q->remote_at);
	q->flags = common_flags(e, q->length, true);
	pattern_fill(at, q->length, write_key(e, l->posted));
	count = cut(&e->random, sge, q->flags & NDX_OP_INLINE ? SGES : e->plan->sge, at, q->length,
	            q->flags & NDX_OP_INLINE ? 0 : e->local_token);
	if (immediate) {
		describe(e, m, q->length);
		m->written = true;
		m->has_immediate = true;
		m->immediate = (uint32_t)random_next(&e->random);
		q->has_message = true;
		q->message = e->sent;
		q->flags |= m->solicited ? NDX_OP_SOLICIT_EVENT : 0u;
		__atomic_store_n(&e->message_count, e->sent + 1, __ATOMIC_RELEASE);
		st = ndx_qp_write_immediate(e->qp, context, sge, count, to, token, m->immediate,
		                            q->flags);
	} else {
		st = ndx_qp_write(e->qp, context, sge, count, to, token, q->flags);
	}
	if (!taken(e, l, q, st))
		return false;
	scribble(e, q);
	l->room += q->length;
	e->sent += immediate;
	return true;
}

bool post_access(struct end *e)
{
	struct ledger *l = &e->initiator;
	uint32_t length = some_length(e);
	bool read = chance(&e->random, 40);
	bool immediate = !read && has(e, NDX_CAP_WRITE_IMMEDIATE) && chance(&e->random, 25) &&
	                 e->sent < MESSAGES && claim(e);
	uint32_t token = read ? e->peer->read_token : e->peer->write_token;
	struct request *q;
	bool posted = false;

	(void)pthread_mutex_lock(&l->lock);
	q = next_record(e, l, read ? NDX_REQUEST_READ : NDX_REQUEST_WRITE);
	if (q != NULL && may_post(e) && l->room + length <= e->memory.size &&
	    (read || e->write_room + length <= e->memory.size)) {
		q->length = length;
		q->window = !read && use_window(e, &token);
		posted = read ? read_one(e, q, token) : write_one(e, q, token, immediate);
		if (!posted)
			unuse_window(e, q);
	}
	(void)pthread_mutex_unlock(&l->lock);
	if (immediate && !posted)
		unclaim(e);
	return posted;
}

/* ---- windows ---- */

/* Lock of the ledger and of the window held: to post, or not. */
static bool move_window(struct end *e, struct request *q)
{
	struct ledger *l = &e->initiator;
	void *context = context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted);
	struct ndx_mr *mr = e->mr[AREA_WRITE];

	q->flags = common_flags(e, 0, false);
	if (e->window == WINDOW_FREE && mr != NULL) {
		q->type = NDX_REQUEST_BIND;
		q->flags |= NDX_OP_ALLOW_WRITE;
		if (!taken(e, l, q,
		           ndx_qp_bind(e->qp, context, mr, e->mw, e->memory.area[AREA_WRITE],
		                       e->memory.size, q->flags)))
			return false;
		e->window = WINDOW_BINDING;
		e->window_token = ndx_mw_get_remote_token(e->mw);
		return true;
	}
	if (e->window != WINDOW_BOUND || e->window_users > 0)
		return false;
	q->type = NDX_REQUEST_INVALIDATE;
	if (!taken(e, l, q, ndx_qp_invalidate(e->qp, context, e->mw, q->flags)))
		return false;
	e->window = WINDOW_UNBINDING;
	return true;
}

bool post_window(struct end *e)
{
	struct ledger *l = &e->initiator;
	struct request *q;
	bool posted = false;

	if (e->mw == NULL)
		return false;
	(void)pthread_mutex_lock(&l->lock);
	q = next_record(e, l, NDX_REQUEST_BIND);
	if (q != NULL && may_post(e)) {
		(void)pthread_mutex_lock(&e->window_lock);
		posted = move_window(e, q);
		(void)pthread_mutex_unlock(&e->window_lock);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return posted;
}
