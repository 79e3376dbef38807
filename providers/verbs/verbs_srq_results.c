/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of a shared receive queue. A native completion names the receive by address, like every
 * completion, and the queue pair that has taken it by QP number.
 */
#include "verbs_srq.h"

void verbs_srq_check_threshold(struct verbs_srq *srq)
{
	if (srq->posted < srq->threshold)
		ndxp_ov_complete_all(&srq->notifies, NDX_OK);
}

struct verbs_qp *verbs_srq_taker(struct verbs_srq *srq, uint32_t number)
{
	struct ndxp_table_node *node;

	ndxp_lock_acquire(&srq->lock);
	node = ndxp_table_first(&srq->takers, number);
	ndxp_lock_release(&srq->lock);
	return node != NULL ? container_of(node, struct verbs_qp, taker) : NULL;
}

void verbs_srq_drop(struct verbs_srq *srq, struct verbs_req *req)
{
	ndxp_lock_acquire(&srq->lock);
	verbs_srq_free_record(srq, req);
	srq->posted--;
	verbs_srq_check_threshold(srq);
	ndxp_lock_release(&srq->lock);
}

void verbs_srq_done(struct verbs_qp *qp, struct verbs_req *req, enum ndx_status status, int native)
{
	struct verbs_srq_link *link = qp->srq_link;
	struct verbs_srq *srq = qp->srq;
	const struct ndx_result result = {
		.status = status,
		.bytes_transferred = req->base.bytes,
		.queue_pair_context = qp->base.spi.attr.context,
		.request_context = req->base.context,
		.request_type = NDX_REQUEST_RECEIVE,
		.flags = req->base.result_flags,
		.immediate = req->base.immediate,
		.native = native,
	};

	/* the queue pair's own receive queue has no records, but its statistics count */
	qp->base.receive.tail++;
	qp->base.receive.head++;
	if (status != NDX_OK)
		qp->base.receive.failed[ndxp_status_index(status)]++;
	/*
	 * The slot passes from the receive to the result in one step, and before the result is
	 * pushed: the slot of a result that a consumer has taken must be free.
	 */
	ndxp_lock_acquire(&srq->lock);
	link->results.tail++;
	verbs_srq_free_record(srq, req);
	srq->posted--;
	ndxp_lock_release(&srq->lock);
	ndxp_cq_push(&link->cq->base, &link->results, &result);
	ndxp_lock_acquire(&srq->lock);
	verbs_srq_check_threshold(srq);
	ndxp_lock_release(&srq->lock);
}
