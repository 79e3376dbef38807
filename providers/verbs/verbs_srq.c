/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: create, grow, post, and the queue pairs that use them. */
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

	if (receive == NULL || ndxp_srq_is_full(&srq->base))
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
	ndxp_srq_posted(&srq->base);
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
	ndxp_lock_acquire(&srq->base.lock);
	st = post_receive(srq, context, sge, count);
	ndxp_lock_release(&srq->base.lock);
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
	if (receive == NULL || ndxp_srq_is_full(&srq->base))
		return NDX_E_NO_MORE_ENTRIES;
	receive->count = (uint32_t)entry->sge_count;
	if (receive->count > 0)
		memcpy(receive->sge, entry->sge, receive->count * sizeof(*entry->sge));
	srq->free = receive->req.next;
	ndxp_srq_posted(&srq->base);
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
		for (size_t i = batch->count; i-- > taken; srq->base.posted--)
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
	ndxp_lock_acquire(&srq->base.lock);
	for (size_t i = 0; i < count && st == NDX_OK && flushed == NDX_OK; i++) {
		if (verbs_wr_is_full(&batch))
			flushed = flush(srq, &batch, posted);
		if (flushed == NDX_OK)
			st = add_receive(srq, &batch, ndxp_receive_at(list, size, i));
	}
	if (flushed == NDX_OK)
		flushed = flush(srq, &batch, posted);
	ndxp_lock_release(&srq->base.lock);
	return flushed != NDX_OK ? flushed : st;
}

static const struct ndx_srq_ops srq_ops = {
	.size = sizeof(srq_ops),
	.receive = srq_receive,
	.receive_list = srq_receive_list,
};

/* ---- queue pairs ---- */

enum ndx_status verbs_srq_join(struct verbs_qp *qp, struct verbs_srq *srq)
{
	const enum ndx_status st = ndxp_srq_join(&srq->base, &qp->receive_cq->base, &qp->srq_link);

	if (st != NDX_OK)
		return st;
	verbs_cq_watch(qp->receive_cq, true); /* for the threshold */
	qp->srq = srq;
	return NDX_OK;
}

void verbs_srq_register(struct verbs_qp *qp)
{
	struct verbs_srq *srq = qp->srq;

	ndxp_lock_acquire(&srq->base.lock);
	ndxp_table_add(&srq->takers, &qp->taker, qp->native->qp_num);
	ndxp_lock_release(&srq->base.lock);
}

void verbs_srq_unregister(struct verbs_qp *qp)
{
	ndxp_lock_acquire(&qp->srq->base.lock);
	ndxp_table_remove(&qp->taker);
	ndxp_lock_release(&qp->srq->base.lock);
}

void verbs_srq_leave(struct verbs_qp *qp)
{
	ndxp_srq_leave(&qp->srq->base, qp->srq_link);
	verbs_cq_watch(qp->receive_cq, false);
	qp->srq = NULL;
}

/* ---- create, destroy, grow ---- */

static enum ndx_status reserve(struct ndxp_cq *cq, uint32_t count)
{
	return verbs_cq_reserve(container_of(cq, struct verbs_cq, base), count);
}

static void unreserve(struct ndxp_cq *cq, uint32_t count)
{
	verbs_cq_unreserve(container_of(cq, struct verbs_cq, base), count);
}

/* The native queue never shrinks, because that would free nothing for other objects. */
static enum ndx_status grow(struct ndxp_srq *base, uint32_t depth)
{
	struct verbs_srq *srq = container_of(base, struct verbs_srq, base);
	struct ibv_srq_attr attr = {.max_wr = depth};
	int err = srq->room < depth ? ibv_modify_srq(srq->native, &attr, IBV_SRQ_MAX_WR) : 0;

	if (err != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "ibv_modify_srq to %u receives: %s",
		            depth, strerror(err));
	srq->room = srq->room < depth ? depth : srq->room;
	return srq->records < depth ? add_records(srq, depth - srq->records) : NDX_OK;
}

static const struct ndxp_srq_ops base_ops = {
	.grow = grow,
	.reserve = reserve,
	.unreserve = unreserve,
};

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
	ndxp_srq_init(&srq->base, &srq_ops, &base_ops, attr);
	srq->adapter = adapter;
	srq->max_sge = attr->max_sge;
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
	*out = &srq->base.spi;
	return NDX_OK;

free_records:
	free_records(srq);
free_srq:
	free(srq);
	return st;
}

void verbs_srq_destroy(struct ndx_spi_srq *spi)
{
	struct verbs_srq *srq = container_of(spi, struct verbs_srq, base.spi);

	if (ibv_destroy_srq(srq->native) != 0)
		log_warn(errno, "ibv_destroy_srq: %s", strerror(errno));
	free_records(srq);
	free(srq);
}
