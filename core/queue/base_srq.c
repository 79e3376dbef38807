/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/shared_receive_queue.h>

#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/log.h>
#include <ndx/spi/overlapped_list.h>

static struct ndxp_srq *of(struct ndx_spi_srq *srq)
{
	return (struct ndxp_srq *)(void *)srq;
}

void ndxp_srq_init(struct ndxp_srq *srq, const struct ndx_srq_ops *pub,
                   const struct ndxp_srq_ops *ops, const struct ndx_srq_attr *attr)
{
	srq->spi.pub.ops = pub;
	srq->ops = ops;
	srq->depth = attr->depth;
	srq->threshold = attr->threshold;
	ndxp_list_init(&srq->links);
}

/* ---- queue pairs ---- */

/* links_lock held, so no other thread changes the list. */
static struct ndxp_srq_link *find_link(const struct ndxp_srq *srq, const struct ndxp_cq *cq)
{
	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		struct ndxp_srq_link *link = container_of(n, struct ndxp_srq_link, node);

		if (link->cq == cq)
			return link;
	}
	return NULL;
}

/* links_lock held: reserve room for `more` results. */
static enum ndx_status reserve_results(const struct ndxp_srq *srq, struct ndxp_srq_link *link,
                                       uint32_t more)
{
	enum ndx_status st = NDX_OK;

	if (srq->ops->reserve != NULL)
		st = srq->ops->reserve(link->cq, more);
	if (st != NDX_OK)
		return st;
	st = ndxp_cq_attach(link->cq, more);
	if (st == NDX_OK)
		link->results.depth += more;
	else if (srq->ops->reserve != NULL)
		srq->ops->unreserve(link->cq, more);
	return st;
}

/* links_lock held. NULL: `*st` says why. */
static struct ndxp_srq_link *make_link(struct ndxp_srq *srq, struct ndxp_cq *cq,
                                       enum ndx_status *st)
{
	struct ndxp_srq_link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		*st = fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
		return NULL;
	}
	link->cq = cq;
	*st = reserve_results(srq, link, srq->depth);
	if (*st != NDX_OK) {
		free(link);
		return NULL;
	}
	ndxp_lock_acquire(&srq->lock);
	ndxp_list_add(&srq->links, &link->node);
	ndxp_lock_release(&srq->lock);
	return link;
}

enum ndx_status ndxp_srq_join(struct ndxp_srq *srq, struct ndxp_cq *cq, struct ndxp_srq_link **out)
{
	enum ndx_status st = NDX_OK;
	struct ndxp_srq_link *link;

	ndxp_lock_acquire(&srq->links_lock);
	link = find_link(srq, cq);
	if (link == NULL)
		link = make_link(srq, cq, &st);
	if (link != NULL) {
		link->users++;
		*out = link;
	}
	ndxp_lock_release(&srq->links_lock);
	return st;
}

/* links_lock held. */
static void drop_link(struct ndxp_srq *srq, struct ndxp_srq_link *link)
{
	const uint32_t depth = link->results.depth;

	ndxp_lock_acquire(&srq->lock);
	ndxp_list_remove(&link->node);
	ndxp_lock_release(&srq->lock);
	ndxp_cq_detach(link->cq, &link->results);
	if (srq->ops->unreserve != NULL)
		srq->ops->unreserve(link->cq, depth);
	free(link);
}

void ndxp_srq_leave(struct ndxp_srq *srq, struct ndxp_srq_link *link)
{
	ndxp_lock_acquire(&srq->links_lock);
	if (--link->users == 0)
		drop_link(srq, link);
	ndxp_lock_release(&srq->links_lock);
}

/* ---- receives and results ---- */

/* Lock held: receives, and results that were not taken yet. */
static uint32_t count_in_use(const struct ndxp_srq *srq)
{
	uint32_t count = srq->posted;

	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		const struct ndxp_srq_link *link = container_of(n, struct ndxp_srq_link, node);

		count += link->results.tail -
		         __atomic_load_n(&link->results.freed, __ATOMIC_ACQUIRE);
	}
	return count;
}

bool ndxp_srq_is_full(struct ndxp_srq *srq)
{
	if (srq->in_use >= srq->depth)
		srq->in_use = count_in_use(srq);
	return srq->in_use >= srq->depth;
}

struct ndx_result ndxp_srq_result(const struct ndxp_qp *qp, const struct ndxp_req *req,
                                  enum ndx_status status, int native)
{
	return (struct ndx_result){
		.status = status,
		.bytes_transferred = req->bytes,
		.queue_pair_context = qp->spi.attr.context,
		.request_context = req->context,
		.request_type = NDX_REQUEST_RECEIVE,
		.flags = req->result_flags,
		.immediate = req->immediate,
		.native = native,
	};
}

void ndxp_srq_check_threshold(struct ndxp_srq *srq)
{
	if (srq->posted < srq->threshold)
		ndxp_ov_complete_all(&srq->notifies, NDX_OK);
}

void ndxp_srq_push(struct ndxp_srq *srq, struct ndxp_srq_link *link,
                   const struct ndx_result *result)
{
	ndxp_cq_push(link->cq, &link->results, result);
	ndxp_lock_acquire(&srq->lock);
	ndxp_srq_check_threshold(srq);
	ndxp_lock_release(&srq->lock);
}

/* ---- operations of a provider's table ---- */

/* links_lock held. What was reserved stays when a later step fails: the next call uses the room. */
static enum ndx_status grow(struct ndxp_srq *srq, uint32_t depth)
{
	enum ndx_status st = NDX_OK;

	for (struct ndxp_list *n = srq->links.next; st == NDX_OK && n != &srq->links; n = n->next) {
		struct ndxp_srq_link *link = container_of(n, struct ndxp_srq_link, node);

		if (link->results.depth < depth)
			st = reserve_results(srq, link, depth - link->results.depth);
	}
	if (st != NDX_OK)
		return st;
	ndxp_lock_acquire(&srq->lock);
	st = srq->ops->grow(srq, depth);
	ndxp_lock_release(&srq->lock);
	return st;
}

enum ndx_status ndxp_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold)
{
	struct ndxp_srq *srq = of(spi);
	enum ndx_status st = NDX_OK;
	uint32_t posted;

	ndxp_lock_acquire(&srq->links_lock);
	if (depth > srq->depth)
		st = grow(srq, depth);
	if (st != NDX_OK)
		goto unlock;
	ndxp_lock_acquire(&srq->lock);
	posted = srq->posted;
	if (depth > 0 && depth < posted) {
		st = NDX_E_BUFFER_OVERFLOW;
	} else {
		if (depth > 0)
			srq->depth = depth;
		if (threshold > 0)
			srq->threshold = threshold;
		ndxp_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (st != NDX_OK)
		st = fail(st, 0, "shared receive queue: %u receives are posted, more than %u",
		          posted, depth);
unlock:
	ndxp_lock_release(&srq->links_lock);
	return st;
}

enum ndx_status ndxp_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov)
{
	struct ndxp_srq *srq = of(spi);
	bool possible;

	ndxp_lock_acquire(&srq->lock);
	possible = srq->threshold > 0;
	if (possible) {
		ndxp_ov_push(&srq->notifies, ov);
		ndxp_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (!possible)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "shared receive queue: its threshold is 0, set one with modify");
	return NDX_PENDING;
}

void ndxp_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status)
{
	struct ndxp_srq *srq = of(spi);

	ndxp_lock_acquire(&srq->lock);
	ndxp_ov_complete_all(&srq->notifies, status);
	ndxp_lock_release(&srq->lock);
}
