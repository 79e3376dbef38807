/* SPDX-License-Identifier: BSD-2-Clause */
/* The receives of a shared queue that a queue pair holds, until they become results or go back. */
#include "ofi.h"
#include "ofi_receive.h"

/* ---- out of the queue ---- */

/* Lock held: the queue pair waits until the queue has receives again. */
static void join_waiters(struct ofi_srq *srq, struct ofi_qp *qp)
{
	if (!ndxp_list_empty(&qp->taker.node))
		return;
	ndxp_list_add(&srq->waiters, &qp->taker.node);
	srq->waiter_count++;
}

/* Lock held. Half of the queue at most, if there are other queue pairs: a peer that is stopped
 * keeps what it has got. */
static uint32_t share_of(const struct ofi_srq *srq)
{
	const uint32_t parts = srq->waiter_count + 1 > 2 ? srq->waiter_count + 1 : 2;

	return srq->users < 2 ? srq->ready_count : (srq->ready_count + parts - 1) / parts;
}

/* Take receives out of the queue, into the list `taken`. */
static uint32_t take_ready(struct ofi_qp *qp, uint32_t most, bool its_turn, struct ndxp_list *taken)
{
	struct ofi_srq *srq = qp->taker.srq;
	uint32_t count = 0;

	ndxp_lock_acquire(&srq->base.lock);
	/* Others were first. If the queue has receives, a thread is about to serve those that
	 * wait. */
	if (its_turn || ndxp_list_empty(&srq->waiters))
		count = share_of(srq);
	if (count > most)
		count = most;
	for (uint32_t i = 0; i < count; i++) {
		struct ndxp_list *node = ndxp_list_take(&srq->ready);

		if (node == srq->returned)
			srq->returned = NULL;
		ndxp_list_add(taken, node);
	}
	srq->ready_count -= count;
	/* With a share that is too small the queue pair goes on when a message arrives. */
	if (count < most && (count == 0 || srq->ready_count == 0))
		join_waiters(srq, qp);
	ndxp_lock_release(&srq->base.lock);
	return count;
}

/* The memory may have been deregistered since the receive was posted. */
static void fill_place(struct ofi_qp *qp, struct ofi_shared *shared)
{
	struct ofi_rx *rx = (struct ofi_rx *)(void *)ndxp_queue_take(
		&qp->base.receive, shared->context, NDX_REQUEST_RECEIVE, 0);

	rx->shared = shared;
	if (ofi_rx_fill(qp, rx, shared->sge, shared->count))
		return;
	rx->poisoned = true;
	rx->iov_count = 0;
}

uint32_t ofi_srq_hold(struct ofi_qp *qp, uint32_t most, bool its_turn)
{
	struct ndxp_list taken;
	struct ndxp_list *node;
	uint32_t count;

	ndxp_list_init(&taken);
	count = take_ready(qp, most, its_turn, &taken);
	while ((node = ndxp_list_take(&taken)) != NULL)
		fill_place(qp, container_of(node, struct ofi_shared, node));
	return count;
}

/* ---- back to the queue ---- */

static uint64_t number_of(struct ndxp_list *node)
{
	return container_of(node, struct ofi_shared, node)->number;
}

/* Lock held: to its place in the order of posting. What a connection returns at its end comes in
 * that order, so the search begins where the latest one has ended: the end of a connection passes
 * each receive of the queue once at most, not once for each receive that it returns. */
static void put_in_order(struct ofi_srq *srq, struct ofi_shared *shared)
{
	struct ndxp_list *at = srq->returned != NULL ? srq->returned : srq->ready.next;

	while (at != &srq->ready && number_of(at) < shared->number)
		at = at->next;
	while (at->prev != &srq->ready && number_of(at->prev) > shared->number)
		at = at->prev;
	ndxp_list_add(at, &shared->node);
	srq->returned = &shared->node;
	srq->ready_count++;
}

static void put_back(struct ofi_srq *srq, struct ofi_shared *shared)
{
	bool wanted;

	ndxp_lock_acquire(&srq->base.lock);
	put_in_order(srq, shared);
	wanted = !ndxp_list_empty(&srq->waiters);
	ndxp_lock_release(&srq->base.lock);
	/* this thread has a queue pair's lock, so it cannot serve others */
	if (wanted)
		ndxp_loop_post(srq->adapter->spi.loop, &srq->adapter->serve);
}

/* Places are free again when no earlier one is in use. */
static void free_places(struct ndxp_queue *q)
{
	while (q->head != q->tail && ndxp_queue_at(q, q->head)->done)
		q->head++;
	__atomic_store_n(&q->freed, q->head, __ATOMIC_RELEASE);
}

/* ---- results ---- */

/* As of a queue pair with receives of its own, only the first failure has its status; but the
 * others go back to the queue, and have no result. */
static void push_result(struct ofi_qp *qp, const struct ofi_rx *rx, enum ndx_status status,
                        int native)
{
	struct ofi_srq *srq = qp->taker.srq;
	struct ndxp_srq_link *link = qp->taker.link;
	const struct ndx_result result = ndxp_srq_result(&qp->base, &rx->base, status, native);

	qp->taker.counts.tail++;
	qp->taker.counts.head++;
	if (status != NDX_OK)
		qp->taker.counts.failed[ndxp_status_index(status)]++;
	ndxp_lock_acquire(&srq->base.lock);
	ndxp_srq_pass(&srq->base, link);
	ndxp_list_add(&srq->spare, &rx->shared->node);
	ndxp_lock_release(&srq->base.lock);
	ndxp_srq_push(&srq->base, link, &result);
}

void ofi_srq_done(struct ofi_qp *qp, struct ofi_rx *rx, enum ndx_status status, int native)
{
	if (status == NDX_E_CANCELED)
		put_back(qp->taker.srq, rx->shared);
	else
		push_result(qp, rx, status, native);
	rx->shared = NULL;
	rx->base.done = true;
	free_places(&qp->base.receive);
}

void ofi_srq_return_all(struct ofi_qp *qp)
{
	struct ndxp_queue *q = &qp->base.receive;

	qp->taker.wanted = 0;
	for (uint32_t i = q->head; i != q->tail; i++) {
		struct ofi_rx *rx = ofi_rx_at(qp, i);

		if (rx->base.done)
			continue;
		rx->native = false;
		rx->base.done = true;
		put_back(qp->taker.srq, rx->shared);
		rx->shared = NULL;
	}
	free_places(q);
	qp->rx_next = q->tail;
}
