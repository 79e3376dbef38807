/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing everything, in an order that no program would choose. */
#include <poll.h>

#include "end.h"
#include "ledger.h"
#include "model.h"
#include "setup.h"
#include "stage.h"

enum kind {
	CLOSE_QP,
	CLOSE_CONNECTOR,
	CLOSE_REGION,
	CLOSE_WINDOW,
	CLOSE_CQ,
	CLOSE_SRQ,
	CLOSE_SRQ_REGION,
	CLOSE_LISTENER,
	CLOSE_ADAPTER,
};

struct item {
	enum kind kind;
	struct end *e;
	struct side *s;
	uint32_t which;
};

struct list {
	struct item items[2 * CONNS_MAX * (3 + AREAS) + 2 * (CQS_MAX + 4)];
	uint32_t count;
};

static void add(struct list *list, enum kind kind, struct end *e, struct side *s, uint32_t which)
{
	list->items[list->count++] = (struct item){kind, e, s, which};
}

static void collect(struct list *list, struct round *round, uint32_t side)
{
	struct side *s = &round->sides[side];

	for (uint32_t i = 0; i < round->plan.conns; i++) {
		struct end *e = &round->conns[i].ends[side];

		add(list, CLOSE_QP, e, s, 0);
		add(list, CLOSE_CONNECTOR, e, s, 0);
		add(list, CLOSE_WINDOW, e, s, 0);
		for (uint32_t area = 0; area < AREAS; area++)
			add(list, CLOSE_REGION, e, s, area);
	}
	for (uint32_t i = 0; i < s->plan->cqs; i++)
		add(list, CLOSE_CQ, NULL, s, i);
	add(list, CLOSE_SRQ, NULL, s, 0);
	add(list, CLOSE_SRQ_REGION, NULL, s, 0);
	add(list, CLOSE_LISTENER, NULL, s, 0);
	add(list, CLOSE_ADAPTER, NULL, s, 0);
}

static void shuffle(struct list *list, uint64_t *random)
{
	for (uint32_t i = list->count; i > 1; i--) {
		uint32_t other = below(random, i);
		struct item item = list->items[i - 1];

		list->items[i - 1] = list->items[other];
		list->items[other] = item;
	}
}

/* The results on this queue will not be seen. */
static void go_blind(struct side *s, uint32_t which)
{
	for (uint32_t i = 0; i < s->round->plan.conns; i++) {
		struct end *e = &s->round->conns[i].ends[s->index];

		(void)pthread_mutex_lock(&e->initiator.lock);
		e->initiator.blind = e->initiator.blind || e->plan->initiator_cq == which;
		(void)pthread_mutex_unlock(&e->initiator.lock);
		(void)pthread_mutex_lock(&e->receive.lock);
		e->receive.blind = e->receive.blind || e->plan->receive_cq == which;
		(void)pthread_mutex_unlock(&e->receive.lock);
	}
}

static void close_cq(struct side *s, uint32_t which)
{
	struct cq *cq = &s->cqs[which];

	while (ledger_poll(s, which, UINT32_MAX) > 0)
		continue;
	go_blind(s, which);
	note(s->round, NULL, "close cq %u of %c", which, s->index == SIDE_A ? 'A' : 'B');
	(void)pthread_mutex_lock(&cq->lock);
	ndx_cq_close(cq->cq);
	cq->cq = NULL;
	if (op_flying(&cq->notify) && op_must_have_ended(&cq->notify, "its queue was closed")) {
		if (cq->notify.status != NDX_OK && (cq->notify.status != NDX_E_CANCELED || cq->due))
			fail(s->round, NULL, "a notification of a queue completed %s",
			     ndx_status_name(cq->notify.status));
	}
	(void)pthread_mutex_unlock(&cq->lock);
}

static void close_srq(struct side *s)
{
	struct ndx_srq *srq;

	(void)pthread_mutex_lock(&s->srq.lock);
	srq = s->srq.srq;
	s->srq.srq = NULL;
	(void)pthread_mutex_unlock(&s->srq.lock);
	ndx_srq_close(srq);
}

/* All queue pairs that take receives from it may still be there: then it is a fault of memory. */
static void close_srq_region(struct side *s)
{
	for (uint32_t i = 0; i < s->round->plan.conns; i++) {
		struct end *e = &s->round->conns[i].ends[s->index];

		if (end_has_srq(e))
			model_abortive_begins(e, FINISH_CLOSE_MEMORY);
	}
	ndx_mr_close(s->srq.mr);
	s->srq.mr = NULL;
}

static void close_item(const struct item *item)
{
	switch (item->kind) {
	case CLOSE_QP:
		end_close_qp(item->e);
		break;
	case CLOSE_CONNECTOR:
		end_close_connector(item->e);
		break;
	case CLOSE_REGION:
		end_close_region(item->e, (enum area)item->which);
		break;
	case CLOSE_WINDOW:
		end_close_window(item->e);
		break;
	case CLOSE_CQ:
		close_cq(item->s, item->which);
		break;
	case CLOSE_SRQ:
		close_srq(item->s);
		break;
	case CLOSE_SRQ_REGION:
		close_srq_region(item->s);
		break;
	case CLOSE_LISTENER:
		ndx_listener_close(item->s->listener);
		item->s->listener = NULL;
		break;
	case CLOSE_ADAPTER:
		ndx_adapter_close(item->s->own);
		item->s->own = NULL;
		break;
	}
}

/* What the others are like after each close. */
static void watch_all(struct round *round)
{
	for (uint32_t i = 0; i < round->plan.conns; i++) {
		for (uint32_t side = 0; side < SIDES; side++) {
			struct end *e = &round->conns[i].ends[side];

			if (!side_is_mine(side_of(e)))
				continue;
			memory_watch(e);
			end_look(e);
		}
	}
}

struct closing {
	struct round *round;
	const struct item *item;
};

static void close_and_watch(void *arg)
{
	const struct closing *closing = arg;

	close_item(closing->item);
	watch_all(closing->round);
}

static bool is_told(struct end *e)
{
	end_look(e);
	return !op_flying(&e->notify) && !op_flying(&e->part);
}

/* What was closed in a callback and has one itself is told when that has returned. */
static bool all_told(struct round *round)
{
	bool told = true;

	for (uint32_t side = 0; side < SIDES; side++) {
		if (!side_is_mine(&round->sides[side]))
			continue;
		for (uint32_t i = 0; i < round->plan.conns; i++)
			told = is_told(&round->conns[i].ends[side]) && told;
		for (uint32_t i = 0; i < round->plan.sides[side].cqs; i++) {
			struct op *op = &round->sides[side].cqs[i].notify;

			if (op_ended(op) && op->status != NDX_OK && op->status != NDX_E_CANCELED)
				fail(round, NULL, "a notification of a queue completed %s",
				     ndx_status_name(op->status));
			told = !op_flying(op) && told;
		}
	}
	return told;
}

void teardown(struct round *round)
{
	uint64_t random = round->plan.teardown;
	struct list list = {.count = 0};
	struct stage stage;

	for (uint32_t side = 0; side < SIDES; side++) {
		if (side_is_mine(&round->sides[side]))
			collect(&list, round, side);
	}
	shuffle(&list, &random);
	stage_open(&stage, round, below(&random, SIDES));
	for (uint32_t i = 0; i < list.count; i++) {
		struct closing closing = {round, &list.items[i]};

		if (list.items[i].kind == CLOSE_ADAPTER) /* which blocks */
			close_and_watch(&closing);
		else
			stage_run(&stage, close_and_watch, &closing);
	}
	stage_close(&stage);
	while (!all_told(round)) { /* or the round takes too long */
		trace_stop_if_failing(round);
		(void)poll(NULL, 0, 1);
	}
}
