/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a shared queue for the connections whose peers have asked for them. */
#include "ofi.h"

void ofi_srq_tell(struct ofi_qp *qp)
{
	if (!qp->open || qp->broken)
		return;
	ofi_post_receives(qp);
	if (qp->rx_next != qp->base.receive.tail || !ofi_announce_all(qp))
		ofi_submit_later(qp);
}

static bool may_hold(const struct ofi_qp *qp)
{
	return qp->ep != NULL && qp->open && !qp->broken && !qp->peer_disc && !qp->recalling &&
	       qp->base.state != NDXP_QP_DEAD;
}

/* Take what the peer wants, as far as the queue and the ring allow, and tell the peer. */
static void supply(struct ofi_qp *qp, bool its_turn)
{
	const struct ndxp_queue *q = &qp->base.receive;
	const uint32_t room = q->depth - ndxp_queue_outstanding(q);
	uint32_t count = qp->taker.wanted < room ? qp->taker.wanted : room;

	if (count == 0 || !may_hold(qp))
		return;
	count = ofi_srq_hold(qp, count, its_turn);
	if (count == 0)
		return;
	qp->taker.wanted -= count;
	qp->taker.most_held = ndxp_queue_outstanding(q);
	ofi_srq_tell(qp);
}

const char *ofi_srq_want(struct ofi_qp *qp, uint32_t count)
{
	if (qp->taker.srq == NULL)
		return "WANT for receives that are not shared";
	if (qp->taker.wanted > 0)
		return "WANT before all is granted that the last one asked for";
	qp->taker.wanted = count;
	supply(qp, false);
	return NULL;
}

void ofi_srq_arrived(struct ofi_qp *qp)
{
	if (qp->rx_next != qp->base.receive.tail)
		ofi_srq_tell(qp);
	/* not for each single message: a grant costs a control message */
	if (qp->taker.wanted > 0 &&
	    ndxp_queue_outstanding(&qp->base.receive) <= qp->taker.most_held / 2)
		supply(qp, false);
}

void ofi_srq_recalled(struct ofi_qp *qp)
{
	supply(qp, false);
}

/* NULL: no queue pair waits, or there is nothing for it. */
static struct ofi_qp *next_waiter(struct ofi_srq *srq)
{
	struct ndxp_list *node = NULL;

	ndxp_lock_acquire(&srq->base.lock);
	if (srq->ready_count > 0)
		node = ndxp_list_take(&srq->waiters);
	if (node != NULL)
		srq->waiter_count--;
	ndxp_lock_release(&srq->base.lock);
	return node != NULL ? container_of(node, struct ofi_qp, taker.node) : NULL;
}

/* srqs_lock held: no queue pair leaves. */
static void serve(struct ofi_srq *srq)
{
	struct ofi_qp *qp;

	while ((qp = next_waiter(srq)) != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		supply(qp, true);
		ndxp_lock_release(&qp->base.lock);
	}
}

void ofi_srq_serve(struct ofi_srq *srq)
{
	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	serve(srq);
	ndxp_lock_release(&srq->adapter->srqs_lock);
}

void ofi_srq_serve_all(void *arg)
{
	struct ofi_adapter *adapter = arg;

	ndxp_lock_acquire(&adapter->srqs_lock);
	for (struct ndxp_list *n = adapter->srqs.next; n != &adapter->srqs; n = n->next)
		serve(container_of(n, struct ofi_srq, node));
	ndxp_lock_release(&adapter->srqs_lock);
}
