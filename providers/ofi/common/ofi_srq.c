/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: create, change, post. The slot of a receive becomes free when its result
 * is taken, so every completion queue with results of a shared queue has room for all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "ofi.h"

/* Records that were allocated together. */
struct ofi_srq_block {
	struct ofi_srq_block *next;
	_Alignas(8) char records[];
};

static struct ofi_srq *of_spi(struct ndx_spi_srq *srq)
{
	return (struct ofi_srq *)(void *)srq;
}

/* ---- records ---- */

/* Lock held, or no other thread knows the queue yet. */
static enum ndx_status add_records(struct ofi_srq *srq, uint32_t count)
{
	const size_t stride = sizeof(struct ofi_shared) + srq->max_sge * sizeof(struct ndx_sge);
	struct ofi_srq_block *block = calloc(1, sizeof(*block) + count * stride);

	if (block == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM,
		            "no memory for a shared receive queue of %u receives",
		            srq->records + count);
	for (uint32_t i = 0; i < count; i++) {
		struct ofi_shared *shared =
			(struct ofi_shared *)(void *)(block->records + i * stride);

		ndxp_list_add(&srq->spare, &shared->node);
	}
	block->next = srq->blocks;
	srq->blocks = block;
	srq->records += count;
	return NDX_OK;
}

static void free_records(struct ofi_srq *srq)
{
	while (srq->blocks != NULL) {
		struct ofi_srq_block *block = srq->blocks;

		srq->blocks = block->next;
		free(block);
	}
}

/* ---- posting ---- */

/* Lock held: receives, and results that were not taken yet. */
static uint32_t count_in_use(const struct ofi_srq *srq)
{
	uint32_t count = srq->posted;

	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		const struct ofi_srq_link *link = container_of(n, struct ofi_srq_link, node);

		count += link->results.tail -
		         __atomic_load_n(&link->results.freed, __ATOMIC_ACQUIRE);
	}
	return count;
}

/* Lock held. Results that are taken are counted only when the queue seems full. */
static bool is_full(struct ofi_srq *srq)
{
	if (srq->in_use >= srq->depth)
		srq->in_use = count_in_use(srq);
	return srq->in_use >= srq->depth;
}

/* Lock held. */
static enum ndx_status receive_one(struct ofi_srq *srq, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct ofi_shared *shared;
	struct ndxp_list *node;
	uint32_t length;

	if (count > srq->max_sge)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(sge, count, srq->adapter->max_transfer, &length))
		return NDX_E_BUFFER_OVERFLOW;
	if (is_full(srq) || (node = ndxp_list_take(&srq->spare)) == NULL)
		return NDX_E_NO_MORE_ENTRIES;
	shared = container_of(node, struct ofi_shared, node);
	shared->context = context;
	shared->number = srq->number++;
	shared->count = (uint32_t)count;
	if (count > 0)
		memcpy(shared->sge, sge, count * sizeof(*sge));
	ndxp_list_add(&srq->ready, &shared->node);
	srq->ready_count++;
	srq->posted++;
	srq->in_use++;
	return NDX_OK;
}

static enum ndx_status srq_receive_list(struct ndx_srq *pub, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	struct ofi_srq *srq = (struct ofi_srq *)(void *)pub;
	enum ndx_status st = NDX_OK;
	bool wanted;
	size_t i = 0;

	ndxp_lock_acquire(&srq->lock);
	for (; i < count && st == NDX_OK; i += st == NDX_OK) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = receive_one(srq, r->context, r->sge, r->sge_count);
	}
	wanted = i > 0 && !ndxp_list_empty(&srq->waiters);
	ndxp_lock_release(&srq->lock);
	if (wanted)
		ofi_srq_serve(srq);
	*posted = i;
	return st;
}

static enum ndx_status srq_receive(struct ndx_srq *pub, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	const struct ndx_receive one = {.context = context, .sge = sge, .sge_count = count};
	size_t posted = 0;

	return srq_receive_list(pub, &one, sizeof(one), 1, &posted);
}

static const struct ndx_srq_ops srq_ops = {
	.size = sizeof(srq_ops),
	.receive = srq_receive,
	.receive_list = srq_receive_list,
};

/* ---- queue pairs ---- */

static struct ofi_srq_link *find_link(const struct ofi_srq *srq, const struct ndxp_cq *cq)
{
	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		struct ofi_srq_link *link = container_of(n, struct ofi_srq_link, node);

		if (link->cq == cq)
			return link;
	}
	return NULL;
}

/* links_lock held: reserve room for `more` results. */
static enum ndx_status reserve_results(struct ofi_srq_link *link, uint32_t more)
{
	const enum ndx_status st = ndxp_cq_attach(link->cq, more);

	if (st == NDX_OK)
		link->results.depth += more;
	return st;
}

/* links_lock held. */
static struct ofi_srq_link *make_link(struct ofi_srq *srq, struct ndxp_cq *cq)
{
	struct ofi_srq_link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		(void)fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
		return NULL;
	}
	link->cq = cq;
	if (reserve_results(link, srq->depth) != NDX_OK) {
		free(link);
		return NULL;
	}
	ndxp_lock_acquire(&srq->lock);
	ndxp_list_add(&srq->links, &link->node);
	ndxp_lock_release(&srq->lock);
	return link;
}

/* links_lock held. Results that were not taken stay, and use no slot any more. */
static void drop_link(struct ofi_srq *srq, struct ofi_srq_link *link)
{
	if (--link->users > 0)
		return;
	ndxp_lock_acquire(&srq->lock);
	ndxp_list_remove(&link->node);
	ndxp_lock_release(&srq->lock);
	ndxp_cq_detach(link->cq, &link->results);
	free(link);
}

/* A device may have room for less, and one receive more is the provider's. */
static enum ndx_status make_places(struct ndxp_queue *q, struct ofi_qp *qp)
{
	const uint32_t room = qp->adapter->max_depth - 1;

	q->qp = &qp->base;
	q->depth = room < OFI_SRQ_HELD ? room : OFI_SRQ_HELD;
	q->mask = OFI_SRQ_HELD - 1;
	q->stride = sizeof(struct ofi_rx);
	q->reqs = calloc(OFI_SRQ_HELD, q->stride);
	if (q->reqs == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
	return NDX_OK;
}

enum ndx_status ofi_srq_join(struct ofi_qp *qp)
{
	const struct ndx_qp_attr *attr = &qp->base.spi.attr;
	struct ofi_srq *srq = (struct ofi_srq *)(void *)attr->srq;
	struct ndxp_cq *cq = ndxp_cq_of(attr->receive_cq);
	enum ndx_status st = make_places(&qp->base.receive, qp);
	struct ofi_srq_link *link;

	ndxp_list_init(&qp->taker.node);
	if (st != NDX_OK)
		return st;
	ndxp_lock_acquire(&srq->links_lock);
	link = find_link(srq, cq);
	if (link == NULL)
		link = make_link(srq, cq);
	if (link != NULL)
		link->users++;
	ndxp_lock_release(&srq->links_lock);
	if (link == NULL) /* ndxp_qp_fini() frees the places */
		return NDX_E_NO_MEMORY;
	ndxp_lock_acquire(&srq->lock);
	srq->users++;
	ndxp_lock_release(&srq->lock);
	qp->taker.srq = srq;
	qp->taker.link = link;
	return NDX_OK;
}

void ofi_srq_leave(struct ofi_qp *qp)
{
	struct ofi_srq *srq = qp->taker.srq;

	if (srq == NULL)
		return;
	/* a thread that serves may be at the queue pair */
	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	ndxp_lock_acquire(&srq->lock);
	if (!ndxp_list_empty(&qp->taker.node)) {
		ndxp_list_remove(&qp->taker.node);
		srq->waiter_count--;
	}
	srq->users--;
	ndxp_lock_release(&srq->lock);
	ndxp_lock_release(&srq->adapter->srqs_lock);
	ndxp_lock_acquire(&srq->links_lock);
	drop_link(srq, qp->taker.link);
	ndxp_lock_release(&srq->links_lock);
}

/* ---- create, destroy, change ---- */

enum ndx_status ofi_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                               struct ndx_spi_srq **out)
{
	struct ofi_srq *srq = calloc(1, sizeof(*srq));

	if (srq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a shared receive queue");
	srq->spi.pub.ops = &srq_ops;
	srq->adapter = ofi_adapter_of(adapter);
	srq->depth = attr->depth;
	srq->max_sge = attr->max_sge;
	/* A notification comes from whichever thread reads: the affinity is of no use. */
	srq->threshold = attr->threshold;
	ndxp_list_init(&srq->links);
	ndxp_list_init(&srq->spare);
	ndxp_list_init(&srq->ready);
	ndxp_list_init(&srq->waiters);
	if (add_records(srq, attr->depth) != NDX_OK) {
		free(srq);
		return NDX_E_NO_MEMORY;
	}
	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	ndxp_list_add(&srq->adapter->srqs, &srq->node);
	ndxp_lock_release(&srq->adapter->srqs_lock);
	*out = &srq->spi;
	return NDX_OK;
}

void ofi_srq_destroy(struct ndx_spi_srq *spi)
{
	struct ofi_srq *srq = of_spi(spi);

	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	ndxp_list_remove(&srq->node);
	ndxp_lock_release(&srq->adapter->srqs_lock);
	free_records(srq);
	free(srq);
}

/* links_lock held. */
static enum ndx_status grow_depth(struct ofi_srq *srq, uint32_t depth)
{
	enum ndx_status st = NDX_OK;

	for (struct ndxp_list *n = srq->links.next; st == NDX_OK && n != &srq->links; n = n->next) {
		struct ofi_srq_link *link = container_of(n, struct ofi_srq_link, node);

		if (link->results.depth < depth)
			st = reserve_results(link, depth - link->results.depth);
	}
	if (st != NDX_OK)
		return st;
	ndxp_lock_acquire(&srq->lock);
	if (srq->records < depth)
		st = add_records(srq, depth - srq->records);
	ndxp_lock_release(&srq->lock);
	return st;
}

enum ndx_status ofi_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold)
{
	struct ofi_srq *srq = of_spi(spi);
	enum ndx_status st = NDX_OK;
	uint32_t posted;

	ndxp_lock_acquire(&srq->links_lock);
	if (depth > srq->depth)
		st = grow_depth(srq, depth);
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
		ofi_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (st != NDX_OK)
		st = fail(st, 0, "shared receive queue: %u receives are posted, more than %u",
		          posted, depth);
unlock:
	ndxp_lock_release(&srq->links_lock);
	return st;
}

enum ndx_status ofi_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov)
{
	struct ofi_srq *srq = of_spi(spi);
	bool possible;

	ndxp_lock_acquire(&srq->lock);
	possible = srq->threshold > 0;
	if (possible) {
		ndxp_ov_push(&srq->notifies, ov);
		ofi_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (!possible)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "shared receive queue: its threshold is 0, set one with modify");
	return NDX_PENDING;
}

void ofi_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status)
{
	struct ofi_srq *srq = of_spi(spi);

	ndxp_lock_acquire(&srq->lock);
	ndxp_ov_complete_all(&srq->notifies, status);
	ndxp_lock_release(&srq->lock);
}
