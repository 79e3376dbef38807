/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of a shared receive queue. A native completion names the receive by address, like every
 * completion, and the queue pair that has taken it by QP number.
 */
#include "verbs_srq.h"

struct verbs_qp *verbs_srq_taker(struct verbs_srq *srq, uint32_t number)
{
	struct ndxp_table_node *node;

	ndxp_lock_acquire(&srq->base.lock);
	node = ndxp_table_first(&srq->takers, number);
	ndxp_lock_release(&srq->base.lock);
	return node != NULL ? container_of(node, struct verbs_qp, taker) : NULL;
}

void verbs_srq_drop(struct verbs_srq *srq, struct verbs_req *req)
{
	ndxp_lock_acquire(&srq->base.lock);
	verbs_srq_free_record(srq, req);
	srq->base.posted--;
	ndxp_srq_check_threshold(&srq->base);
	ndxp_lock_release(&srq->base.lock);
}

void verbs_srq_done(struct verbs_qp *qp, struct verbs_req *req, enum ndx_status status, int native)
{
	struct ndxp_srq_link *link = qp->srq_link;
	struct verbs_srq *srq = qp->srq;
	const struct ndx_result result = ndxp_srq_result(&qp->base, &req->base, status, native);

	/* the queue pair's own receive queue has no records, but its statistics count */
	qp->base.receive.tail++;
	qp->base.receive.head++;
	if (status != NDX_OK)
		qp->base.receive.failed[ndxp_status_index(status)]++;
	ndxp_lock_acquire(&srq->base.lock);
	ndxp_srq_pass(&srq->base, link);
	verbs_srq_free_record(srq, req);
	ndxp_lock_release(&srq->base.lock);
	ndxp_srq_push(&srq->base, link, &result);
}
