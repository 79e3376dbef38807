/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that may not succeed, and those that are refused at once. */
#include <string.h>

#include "ledger.h"
#include "model.h"
#include "post.h"

enum { LENGTH = 16, WRONG = 0x5a5a5a5a, TOO_MANY = 64 };

/* Lock held: note a request that was accepted; `st` is what its post said. */
static void posted(struct end *e, struct request *q, enum ndx_status st)
{
	struct ledger *l = &e->initiator;

	if (st == NDX_E_NO_MORE_ENTRIES && l->posted - l->done >= e->plan->initiator_depth)
		return;
	if (st != NDX_OK)
		fail(e->round, e, "a %s that fails later was refused: %s", request_name(q->type),
		     ndx_status_name(st));
	q->after = now_ns();
	note(e->round, e, "post %s %u: %u bytes, wrong%s", request_name(q->type), l->posted,
	     q->length, q->late ? ", late" : "");
	l->room += q->length;
	__atomic_store_n(&l->posted, l->posted + 1, __ATOMIC_RELEASE);
}

/* Lock held: a record of a request that is to fail; NULL if there is no room. */
static struct request *wrong(struct end *e, enum ndx_request_type type, uint32_t length)
{
	struct ledger *l = &e->initiator;
	struct request *q = &l->requests[l->posted % REQUESTS];

	if (l->posted == REQUESTS || e->qp == NULL || l->shut || e->quiet ||
	    l->room + length > e->memory.size || end_phase(e) != PHASE_UP)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->type = type;
	q->at = l->room;
	q->length = length;
	q->faulty = true;
	q->late = __atomic_load_n(&e->ended_at, __ATOMIC_ACQUIRE) != 0;
	q->before = now_ns();
	return q;
}

void post_wrong_local(struct end *e)
{
	static const enum ndx_request_type types[] = {NDX_REQUEST_SEND, NDX_REQUEST_READ,
	                                              NDX_REQUEST_WRITE};
	enum ndx_request_type type = types[below(&e->random, 3)];
	struct ledger *l = &e->initiator;
	struct ndx_sge sge = {.length = LENGTH, .token = e->local_token ^ WRONG};
	uint64_t to =
		(uint64_t)(uintptr_t)
			e->peer->memory.area[type == NDX_REQUEST_READ ? AREA_READ : AREA_WRITE];
	struct request *q;
	void *context;

	(void)pthread_mutex_lock(&l->lock);
	q = wrong(e, type, LENGTH);
	if (q != NULL) {
		context = context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted);
		sge.buffer = e->memory.area[AREA_LOCAL] + q->at;
		if (type == NDX_REQUEST_SEND)
			posted(e, q, ndx_qp_send(e->qp, context, &sge, 1, 0));
		else if (type == NDX_REQUEST_READ)
			posted(e, q,
			       ndx_qp_read(e->qp, context, &sge, 1, to, e->peer->read_token, 0));
		else
			posted(e, q,
			       ndx_qp_write(e->qp, context, &sge, 1, to, e->peer->write_token, 0));
	}
	(void)pthread_mutex_unlock(&l->lock);
}

void post_wrong_remote(struct end *e, bool token)
{
	struct ledger *l = &e->initiator;
	bool read = chance(&e->random, 50);
	const struct memory *m = &e->peer->memory;
	/* the last area is the end of the region, also if there is but one */
	uint64_t to = (uint64_t)(uintptr_t)(m->area[AREA_WRITE] + m->size - LENGTH / 2);
	uint32_t key = e->peer->write_token;
	struct ndx_sge sge = {.length = LENGTH, .token = e->local_token};
	struct request *q;
	void *context;

	if (token) {
		key ^= WRONG;
		to = (uint64_t)(uintptr_t)m->area[AREA_WRITE];
	}
	(void)pthread_mutex_lock(&l->lock);
	q = wrong(e, read ? NDX_REQUEST_READ : NDX_REQUEST_WRITE, LENGTH);
	if (q != NULL) {
		context = context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted);
		sge.buffer = e->memory.area[AREA_LOCAL] + q->at;
		if (read)
			posted(e, q, ndx_qp_read(e->qp, context, &sge, 1, to, key, 0));
		else
			posted(e, q, ndx_qp_write(e->qp, context, &sge, 1, to, key, 0));
	}
	(void)pthread_mutex_unlock(&l->lock);
}

void post_wrong_invalidate(struct end *e)
{
	struct ledger *l = &e->initiator;
	struct request *q;

	(void)pthread_mutex_lock(&l->lock);
	(void)pthread_mutex_lock(&e->window_lock);
	q = e->mw != NULL && e->window == WINDOW_FREE ? wrong(e, NDX_REQUEST_INVALIDATE, 0) : NULL;
	if (q != NULL)
		posted(e, q,
		       ndx_qp_invalidate(e->qp,
		                         context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted),
		                         e->mw, 0));
	(void)pthread_mutex_unlock(&e->window_lock);
	(void)pthread_mutex_unlock(&l->lock);
}

/* ---- refused at once ---- */

static void refused(struct end *e, const char *what, enum ndx_status got, enum ndx_status want)
{
	if (got != want)
		fail(e->round, e, "%s: %s, not %s", what, ndx_status_name(got),
		     ndx_status_name(want));
}

void post_nonsense(struct end *e)
{
	struct ndx_sge many[TOO_MANY];
	struct ndx_sge big = {.buffer = e->memory.area[AREA_LOCAL], .length = UINT32_MAX};
	uint32_t kind = below(&e->random, 4);

	memset(many, 0, sizeof(many));
	(void)pthread_mutex_lock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->receive.lock);
	if (e->qp != NULL && end_phase(e) == PHASE_UP) {
		if (kind == 0)
			refused(e, "a send with a flag of a bind",
			        ndx_qp_send(e->qp, NULL, NULL, 0, NDX_OP_ALLOW_READ),
			        NDX_E_INVALID_PARAMETER);
		else if (kind == 1)
			refused(e, "a send with 64 pieces",
			        ndx_qp_send(e->qp, NULL, many, TOO_MANY, 0), NDX_E_DATA_OVERRUN);
		else if (kind == 2 && side_of(e)->info.max_transfer_length < UINT32_MAX)
			refused(e, "a send of 4 GiB", ndx_qp_send(e->qp, NULL, &big, 1, 0),
			        NDX_E_BUFFER_OVERFLOW);
		else if (kind == 3 && !end_has_srq(e))
			refused(e, "a receive with 64 pieces",
			        ndx_qp_receive(e->qp, NULL, many, TOO_MANY), NDX_E_DATA_OVERRUN);
	}
	(void)pthread_mutex_unlock(&e->receive.lock);
	(void)pthread_mutex_unlock(&e->initiator.lock);
}

void post_unconnected(struct end *e)
{
	(void)pthread_mutex_lock(&e->initiator.lock);
	if (e->qp != NULL)
		refused(e, "a send on a queue pair that was never connected",
		        ndx_qp_send(e->qp, NULL, NULL, 0, 0), NDX_E_CONNECTION_INVALID);
	(void)pthread_mutex_unlock(&e->initiator.lock);
}

/* ---- after the end ---- */

/* Lock held: a send of nothing. */
static void send_nothing(struct end *e)
{
	struct ledger *l = &e->initiator;
	struct request *q = &l->requests[l->posted % REQUESTS];

	if (l->posted == REQUESTS || e->qp == NULL)
		return;
	memset(q, 0, sizeof(*q));
	q->type = NDX_REQUEST_SEND;
	q->flags = chance(&e->random, 30) ? NDX_OP_SILENT_SUCCESS : 0;
	q->late = true;
	q->before = now_ns();
	refused(e, "a send when the connection has ended",
	        ndx_qp_send(e->qp, context_of(e->round, CONTEXT_INITIATOR, e->id, l->posted), NULL,
	                    0, q->flags),
	        NDX_OK);
	q->after = now_ns();
	__atomic_store_n(&l->posted, l->posted + 1, __ATOMIC_RELEASE);
}

static void receive_nothing(struct end *e)
{
	struct ledger *l = &e->receive;
	struct request *q = &l->requests[l->posted % REQUESTS];

	if (l->posted == REQUESTS || e->qp == NULL || end_has_srq(e))
		return;
	memset(q, 0, sizeof(*q));
	q->type = NDX_REQUEST_RECEIVE;
	q->at = l->room;
	q->late = true;
	q->before = now_ns();
	refused(e, "a receive when the connection has ended",
	        ndx_qp_receive(e->qp, context_of(e->round, CONTEXT_RECEIVE, e->id, l->posted), NULL,
	                       0),
	        NDX_OK);
	q->after = now_ns();
	__atomic_store_n(&l->posted, l->posted + 1, __ATOMIC_RELEASE);
}

void post_into_the_void(struct end *e)
{
	(void)pthread_mutex_lock(&e->initiator.lock);
	e->initiator.shut = false;
	send_nothing(e);
	(void)pthread_mutex_unlock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->receive.lock);
	e->receive.shut = false;
	receive_nothing(e);
	(void)pthread_mutex_unlock(&e->receive.lock);
	note(e->round, e, "posted when it was over");
	ledger_close(e, "it was posted after the end");
}
