/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/queue_pair.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

static enum ndx_status queue_init(struct ndxp_queue *q, struct ndxp_qp *qp, struct ndx_cq *cq,
                                  uint32_t depth, size_t stride)
{
	uint32_t size = 1;

	while (size < depth)
		size *= 2;
	q->qp = qp;
	q->depth = depth;
	q->mask = size - 1;
	q->stride = (uint32_t)stride;
	q->reqs = calloc(size, stride);
	if (q->reqs == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue of %u requests", depth);
	if (ndxp_cq_attach(ndxp_cq_of(cq), depth) != NDX_OK) {
		free(q->reqs);
		q->reqs = NULL;
		return NDX_E_NO_MEMORY;
	}
	q->cq = ndxp_cq_of(cq);
	return NDX_OK;
}

static void queue_fini(struct ndxp_queue *q)
{
	if (q->cq != NULL)
		ndxp_cq_detach(q->cq, q);
	free(q->reqs);
	q->reqs = NULL;
	q->cq = NULL;
}

enum ndx_status ndxp_qp_init(struct ndxp_qp *qp, const struct ndx_qp_ops *ops,
                             const struct ndx_qp_attr *attr, uint32_t max_transfer,
                             size_t initiator_stride, size_t receive_stride)
{
	size_t size = sizeof(qp->spi.attr);
	enum ndx_status st;

	qp->spi.pub.ops = ops;
	/* The core that grants may be older or newer than this build of the kit. */
	if (size > attr->size)
		size = attr->size;
	memcpy(&qp->spi.attr, attr, size);
	qp->spi.attr.size = size;
	qp->max_transfer = max_transfer;
	qp->state = NDXP_QP_IDLE;
	qp->reorder_exempt = -1;
	st = queue_init(&qp->initiator, qp, attr->initiator_cq, attr->initiator_depth,
	                initiator_stride);
	if (st != NDX_OK || attr->srq != NULL)
		return st;
	st = queue_init(&qp->receive, qp, attr->receive_cq, attr->receive_depth, receive_stride);
	if (st != NDX_OK)
		queue_fini(&qp->initiator);
	return st;
}

void ndxp_qp_fini(struct ndxp_qp *qp)
{
	queue_fini(&qp->initiator);
	queue_fini(&qp->receive);
}

static inline void fill_result(struct ndx_result *result, const struct ndxp_queue *q,
                               const struct ndxp_req *req)
{
	*result = (struct ndx_result){
		.status = req->status,
		.bytes_transferred = req->bytes,
		.queue_pair_context = q->qp->spi.attr.context,
		.request_context = req->context,
		.request_type = (enum ndx_request_type)req->type,
		.flags = req->result_flags,
		.immediate = req->immediate,
		.native = req->native,
	};
}

/* The completion queue's lock is held. */
static void emit(struct ndxp_queue *q, const struct ndxp_req *req)
{
	struct ndxp_cq_entry *entry = ndxp_cq_next(q->cq, q);

	fill_result(&entry->result, q, req);
	ndxp_cq_add(q->cq, entry);
}

/* A success without a place in the completion queue's stash: it is silent, or goes directly to the
 * thread that polls. False: it needs the stash. */
static inline bool bypass(struct ndxp_queue *q, const struct ndxp_req *req)
{
	struct ndx_result *result;

	if (req->op_flags & NDX_OP_SILENT_SUCCESS) {
		q->silent++;
		return true;
	}
	result = ndxp_cq_poll_entry(q->cq);
	if (result != NULL)
		fill_result(result, q, req);
	return result != NULL;
}

/* Only the first failure of a connected queue pair has its status: the failure ends the connection,
 * and all later requests are cancelled. */
static void only_once(struct ndxp_queue *q, struct ndxp_req *req)
{
	if (req->status == NDX_E_CANCELED || q->qp->state == NDXP_QP_IDLE)
		return;
	if (q->broken) {
		req->status = NDX_E_CANCELED;
		req->native = 0;
	}
	q->broken = true;
}

void ndxp_queue_retire(struct ndxp_queue *q)
{
	uint32_t slots = 0;
	bool locked = false;

	while (q->head != q->tail) {
		struct ndxp_req *req = ndxp_queue_at(q, q->head);

		if (!req->done)
			break;
		q->head++;
		if (req->status != NDX_OK) {
			only_once(q, req);
			q->failed[ndxp_status_index(req->status)]++;
		} else if (bypass(q, req)) {
			slots++;
			continue;
		}
		if (!locked)
			ndxp_lock_acquire(&q->cq->lock);
		locked = true;
		emit(q, req);
	}
	if (locked)
		ndxp_lock_release(&q->cq->lock);
	if (slots > 0)
		ndxp_queue_give_back(q, slots);
}

void ndxp_queue_cancel(struct ndxp_queue *q, enum ndx_status status)
{
	for (uint32_t i = q->head; i != q->tail; i++) {
		struct ndxp_req *req = ndxp_queue_at(q, i);

		if (req->done)
			continue;
		req->status = status;
		req->native = 0;
		req->done = true;
	}
	ndxp_queue_retire(q);
}

void ndxp_queue_get_stats(const struct ndxp_queue *q, struct ndx_work_stats *stats)
{
	uint64_t failed = 0;

	stats->posted = ((uint64_t)q->laps << 32) + q->tail;
	stats->completed = stats->posted - ndxp_queue_outstanding(q);
	stats->silent = q->silent;
	for (size_t i = 1; i < NDX_STATS_STATUSES; i++) {
		stats->by_status[i] = q->failed[i];
		failed += q->failed[i];
	}
	stats->by_status[0] = stats->completed - failed;
}

void ndxp_qp_get_stats(const struct ndxp_qp *qp, struct ndx_qp_stats *stats)
{
	ndxp_queue_get_stats(&qp->initiator, &stats->initiator);
	ndxp_queue_get_stats(&qp->receive, &stats->receive);
	stats->rnr_waits = qp->rnr_waits;
	stats->rnr_wait_ns = qp->rnr_wait_ns;
	if (qp->rnr_since != 0)
		stats->rnr_wait_ns += ndxp_now_ns() - qp->rnr_since;
}

void ndxp_qp_rnr_begin(struct ndxp_qp *qp)
{
	if (qp->rnr_since != 0)
		return;
	qp->rnr_waits++;
	qp->rnr_since = ndxp_now_ns();
}

void ndxp_qp_rnr_record(struct ndxp_qp *qp)
{
	qp->rnr_wait_ns += ndxp_now_ns() - qp->rnr_since;
	qp->rnr_since = 0;
}

uint32_t ndxp_qp_rnr_left_ms(const struct ndxp_qp *qp, uint64_t since_ns)
{
	const uint64_t limit = (uint64_t)qp->spi.attr.no_receive_timeout_ms * NDXP_NS_PER_MS;
	uint64_t waited;

	if (qp->spi.attr.no_receive_timeout_ms == NDX_INFINITE)
		return NDX_INFINITE;
	waited = ndxp_now_ns() - since_ns;
	return waited >= limit ? 0 : (uint32_t)((limit - waited - 1) / NDXP_NS_PER_MS + 1);
}
