/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues. The slot of a receive becomes free when its result is taken, so every
 * completion queue with results of a shared queue has room for all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "verbs_srq.h"
#include "verbs_wr.h"

/* Records that were allocated together. */
struct block {
	struct block *next;
	char records[];
};

static struct verbs_srq *srq_of(struct ndx_spi_srq *srq)
{
	return (struct verbs_srq *)(void *)srq;
}

/* ---- records ---- */

/* Lock held, or no other thread knows the queue yet. */
static enum ndx_status add_records(struct verbs_srq *srq, uint32_t count)
{
	const size_t list = srq->max_sge * sizeof(struct ndx_sge);
	const size_t stride = (sizeof(struct verbs_receive) + list + 15) / 16 * 16;
	struct block *block = calloc(1, sizeof(*block) + 16 + count * stride);
	char *at;

	if (block == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM,
		            "no memory for a shared receive queue of %u receives",
		            srq->records + count);
	at = block->records + (16 - (uintptr_t)block->records % 16) % 16;
	for (uint32_t i = 0; i < count; i++, at += stride) {
		struct verbs_req *req = (struct verbs_req *)(void *)at;

		req->kind = VERBS_SHARED;
		req->srq = srq;
		verbs_srq_free_record(srq, req);
	}
	block->next = srq->blocks;
	srq->blocks = block;
	srq->records += count;
	return NDX_OK;
}

static void free_records(struct verbs_srq *srq)
{
	while (srq->blocks != NULL) {
		struct block *block = srq->blocks;

		srq->blocks = block->next;
		free(block);
	}
}

/* Lock held: receives in the device, and results that were not taken yet. */
static uint32_t in_use(const struct verbs_srq *srq)
{
	uint32_t count = srq->posted;

	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		const struct verbs_srq_link *link = container_of(n, struct verbs_srq_link, node);

		count += link->results.tail -
		         __atomic_load_n(&link->results.freed, __ATOMIC_ACQUIRE);
	}
	return count;
}

/* ---- posting ---- */

/* Lock held. */
static enum ndx_status post_receive(struct verbs_srq *srq, void *context, const struct ndx_sge *sge,
                                    size_t count)
{
	struct verbs_receive *receive = (struct verbs_receive *)(void *)srq->free;
	struct ibv_sge list[VERBS_MAX_SGE];
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)receive, .sg_list = list};
	struct ibv_recv_wr *bad;
	int err;

	if (receive == NULL || in_use(srq) >= srq->depth)
		return NDX_E_NO_MORE_ENTRIES;
	receive->count = (uint32_t)count;
	if (count > 0)
		memcpy(receive->sge, sge, count * sizeof(*sge));
	wr.num_sge = verbs_wr_list(list, sge, count);
	err = ibv_post_srq_recv(srq->native, &wr, &bad);
	if (err != 0)
		return err == ENOMEM ? NDX_E_NO_MORE_ENTRIES : NDX_E_INTERNAL_ERROR;
	srq->free = receive->req.next;
	ndxp_req_begin(&receive->req.base, context, NDX_REQUEST_RECEIVE, 0);
	srq->posted++;
	return NDX_OK;
}

static enum ndx_status srq_receive(struct ndx_srq *pub, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct verbs_srq *srq = verbs_srq_of(pub);
	enum ndx_status st;
	uint32_t length;

	if (count > srq->max_sge)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(sge, count, srq->adapter->max_transfer, &length))
		return NDX_E_BUFFER_OVERFLOW;
	ndxp_lock_acquire(&srq->lock);
	st = post_receive(srq, context, sge, count);
	ndxp_lock_release(&srq->lock);
	return st;
}

/* Lock held: add a receive to the batch. */
static enum ndx_status add_receive(struct verbs_srq *srq, struct verbs_receive_batch *batch,
                                   const struct ndx_receive *entry)
{
	struct verbs_receive *receive = (struct verbs_receive *)(void *)srq->free;
	uint32_t length;

	if (entry->sge_count > srq->max_sge)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(entry->sge, entry->sge_count, srq->adapter->max_transfer, &length))
		return NDX_E_BUFFER_OVERFLOW;
	if (receive == NULL || in_use(srq) >= srq->depth)
		return NDX_E_NO_MORE_ENTRIES;
	receive->count = (uint32_t)entry->sge_count;
	if (receive->count > 0)
		memcpy(receive->sge, entry->sge, receive->count * sizeof(*entry->sge));
	srq->free = receive->req.next;
	srq->posted++;
	ndxp_req_begin(&receive->req.base, entry->context, NDX_REQUEST_RECEIVE, 0);
	verbs_wr_add_receive(batch, receive, receive->sge, receive->count);
	return NDX_OK;
}

/* Lock held: give the batch to the device, and begin a new one. */
static enum ndx_status flush(struct verbs_srq *srq, struct verbs_receive_batch *batch,
                             size_t *posted)
{
	struct ibv_recv_wr *bad = batch->wr;
	size_t taken = batch->count;
	int err = 0;

	if (batch->count > 0)
		err = ibv_post_srq_recv(srq->native, batch->wr, &bad);
	if (err != 0) {
		taken = (size_t)(bad - batch->wr);
		for (size_t i = batch->count; i-- > taken; srq->posted--)
			verbs_srq_free_record(srq,
			                      (struct verbs_req *)(uintptr_t)batch->wr[i].wr_id);
	}
	*posted += taken;
	batch->count = 0;
	batch->sges = 0;
	if (err == 0)
		return NDX_OK;
	return err == ENOMEM ? NDX_E_NO_MORE_ENTRIES : NDX_E_INTERNAL_ERROR;
}

static enum ndx_status srq_receive_list(struct ndx_srq *pub, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	struct verbs_srq *srq = verbs_srq_of(pub);
	enum ndx_status flushed = NDX_OK;
	enum ndx_status st = NDX_OK;
	struct verbs_receive_batch batch;

	batch.count = 0;
	batch.sges = 0;
	ndxp_lock_acquire(&srq->lock);
	for (size_t i = 0; i < count && st == NDX_OK && flushed == NDX_OK; i++) {
		if (verbs_wr_is_full(&batch))
			flushed = flush(srq, &batch, posted);
		if (flushed == NDX_OK)
			st = add_receive(srq, &batch, ndxp_receive_at(list, size, i));
	}
	if (flushed == NDX_OK)
		flushed = flush(srq, &batch, posted);
	ndxp_lock_release(&srq->lock);
	return flushed != NDX_OK ? flushed : st;
}

static const struct ndx_srq_ops srq_ops = {
	.size = sizeof(srq_ops),
	.receive = srq_receive,
	.receive_list = srq_receive_list,
};

/* ---- queue pairs ---- */

static struct verbs_srq_link *find_link(const struct verbs_srq *srq, const struct verbs_cq *cq)
{
	for (struct ndxp_list *n = srq->links.next; n != &srq->links; n = n->next) {
		struct verbs_srq_link *link = container_of(n, struct verbs_srq_link, node);

		if (link->cq == cq)
			return link;
	}
	return NULL;
}

/* Reserve room for `more` results. */
static enum ndx_status reserve_results(struct verbs_srq_link *link, uint32_t more)
{
	enum ndx_status st = verbs_cq_reserve(link->cq, more);

	if (st != NDX_OK)
		return st;
	st = ndxp_cq_attach(&link->cq->base, more);
	if (st != NDX_OK)
		verbs_cq_unreserve(link->cq, more);
	else
		link->results.depth += more;
	return st;
}

/* links_lock held. */
static struct verbs_srq_link *new_link(struct verbs_srq *srq, struct verbs_cq *cq,
                                       enum ndx_status *st)
{
	struct verbs_srq_link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		*st = fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
		return NULL;
	}
	link->cq = cq;
	*st = reserve_results(link, srq->depth);
	if (*st != NDX_OK) {
		free(link);
		return NULL;
	}
	ndxp_lock_acquire(&srq->lock);
	ndxp_list_add(&srq->links, &link->node);
	ndxp_lock_release(&srq->lock);
	verbs_cq_watch(cq, true); /* for the threshold */
	return link;
}

enum ndx_status verbs_srq_join(struct verbs_qp *qp, struct verbs_srq *srq)
{
	enum ndx_status st = NDX_OK;
	struct verbs_srq_link *link;

	ndxp_lock_acquire(&srq->links_lock);
	link = find_link(srq, qp->receive_cq);
	if (link == NULL)
		link = new_link(srq, qp->receive_cq, &st);
	if (link != NULL) {
		link->users++;
		qp->srq = srq;
		qp->srq_link = link;
	}
	ndxp_lock_release(&srq->links_lock);
	return st;
}

void verbs_srq_register(struct verbs_qp *qp)
{
	struct verbs_srq *srq = qp->srq;

	ndxp_lock_acquire(&srq->lock);
	ndxp_table_add(&srq->takers, &qp->taker, qp->native->qp_num);
	ndxp_lock_release(&srq->lock);
}

void verbs_srq_unregister(struct verbs_qp *qp)
{
	ndxp_lock_acquire(&qp->srq->lock);
	ndxp_table_remove(&qp->taker);
	ndxp_lock_release(&qp->srq->lock);
}

/* Results that were not taken stay, and use no slot any more. */
void verbs_srq_leave(struct verbs_qp *qp)
{
	struct verbs_srq *srq = qp->srq;
	struct verbs_srq_link *link = qp->srq_link;
	uint32_t depth;

	ndxp_lock_acquire(&srq->links_lock);
	if (--link->users == 0) {
		ndxp_lock_acquire(&srq->lock);
		ndxp_list_remove(&link->node);
		ndxp_lock_release(&srq->lock);
		depth = link->results.depth;
		ndxp_cq_detach(&link->cq->base, &link->results);
		verbs_cq_unreserve(link->cq, depth);
		verbs_cq_watch(link->cq, false);
		free(link);
	}
	ndxp_lock_release(&srq->links_lock);
	qp->srq = NULL;
}

/* ---- create and destroy ---- */

enum ndx_status verbs_srq_create(struct ndx_spi_adapter *spi, const struct ndx_srq_attr *attr,
                                 struct ndx_spi_srq **out)
{
	struct verbs_adapter *adapter = verbs_adapter_of(spi);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = attr->depth, .max_sge = attr->max_sge}};
	enum ndx_status st = verbs_is_there(adapter, "create a shared receive queue");
	struct verbs_srq *srq;

	if (st != NDX_OK)
		return st;
	srq = calloc(1, sizeof(*srq));
	if (srq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a shared receive queue");
	srq->spi.pub.ops = &srq_ops;
	srq->adapter = adapter;
	srq->depth = attr->depth;
	srq->max_sge = attr->max_sge;
	/* The control thread reports the threshold: the affinity is of no use. */
	srq->threshold = attr->threshold;
	ndxp_list_init(&srq->links);
	ndxp_table_init(&srq->takers, srq->buckets, VERBS_SRQ_BUCKETS);
	st = add_records(srq, attr->depth);
	if (st != NDX_OK)
		goto free_srq;
	init.srq_context = srq;
	srq->native = ibv_create_srq(adapter->pd, &init);
	if (srq->native == NULL) {
		st = fail(verbs_refusal(adapter, errno), errno,
		          "ibv_create_srq for %u receives: %s", attr->depth, strerror(errno));
		goto free_records;
	}
	srq->room = attr->depth;
	*out = &srq->spi;
	return NDX_OK;

free_records:
	free_records(srq);
free_srq:
	free(srq);
	return st;
}

void verbs_srq_destroy(struct ndx_spi_srq *spi)
{
	struct verbs_srq *srq = srq_of(spi);

	if (ibv_destroy_srq(srq->native) != 0)
		log_warn(errno, "ibv_destroy_srq: %s", strerror(errno));
	free_records(srq);
	free(srq);
}

/* links_lock held. */
static enum ndx_status grow_depth(struct verbs_srq *srq, uint32_t depth)
{
	struct ibv_srq_attr attr = {.max_wr = depth};
	enum ndx_status st = NDX_OK;
	int err;

	for (struct ndxp_list *n = srq->links.next; st == NDX_OK && n != &srq->links; n = n->next) {
		struct verbs_srq_link *link = container_of(n, struct verbs_srq_link, node);

		if (link->results.depth < depth)
			st = reserve_results(link, depth - link->results.depth);
	}
	if (st != NDX_OK)
		return st;
	ndxp_lock_acquire(&srq->lock);
	err = srq->room < depth ? ibv_modify_srq(srq->native, &attr, IBV_SRQ_MAX_WR) : 0;
	if (err == 0) {
		srq->room = srq->room < depth ? depth : srq->room;
		if (srq->records < depth)
			st = add_records(srq, depth - srq->records);
	}
	ndxp_lock_release(&srq->lock);
	if (err != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "ibv_modify_srq to %u receives: %s",
		            depth, strerror(err));
	return st;
}

/* The native queue never shrinks, because that would free nothing for other objects. */
enum ndx_status verbs_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold)
{
	struct verbs_srq *srq = srq_of(spi);
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
		verbs_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (st != NDX_OK)
		st = fail(st, 0, "shared receive queue: %u receives are posted, more than %u",
		          posted, depth);
unlock:
	ndxp_lock_release(&srq->links_lock);
	return st;
}

enum ndx_status verbs_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov)
{
	struct verbs_srq *srq = srq_of(spi);
	bool possible;

	ndxp_lock_acquire(&srq->lock);
	possible = srq->threshold > 0;
	if (possible) {
		ndxp_ov_push(&srq->notifies, ov);
		verbs_srq_check_threshold(srq);
	}
	ndxp_lock_release(&srq->lock);
	if (!possible)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "shared receive queue: its threshold is 0, set one with modify");
	return NDX_PENDING;
}

void verbs_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status)
{
	struct verbs_srq *srq = srq_of(spi);

	ndxp_lock_acquire(&srq->lock);
	ndxp_ov_complete_all(&srq->notifies, status);
	ndxp_lock_release(&srq->lock);
}
