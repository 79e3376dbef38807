/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: create, grow, post, and the queue pairs that use them. */
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
	if (ndxp_srq_is_full(&srq->base) || (node = ndxp_list_take(&srq->spare)) == NULL)
		return NDX_E_NO_MORE_ENTRIES;
	shared = container_of(node, struct ofi_shared, node);
	shared->context = context;
	shared->number = srq->number++;
	shared->count = (uint32_t)count;
	if (count > 0)
		memcpy(shared->sge, sge, count * sizeof(*sge));
	ndxp_list_add(&srq->ready, &shared->node);
	srq->ready_count++;
	ndxp_srq_posted(&srq->base);
	return NDX_OK;
}

static enum ndx_status srq_receive_list(struct ndx_srq *pub, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	struct ofi_srq *srq = (struct ofi_srq *)(void *)pub;
	enum ndx_status st = NDX_OK;
	bool wanted;
	size_t i = 0;

	ndxp_lock_acquire(&srq->base.lock);
	for (; i < count && st == NDX_OK; i += st == NDX_OK) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = receive_one(srq, r->context, r->sge, r->sge_count);
	}
	wanted = i > 0 && !ndxp_list_empty(&srq->waiters);
	ndxp_lock_release(&srq->base.lock);
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
	enum ndx_status st = make_places(&qp->base.receive, qp);

	ndxp_list_init(&qp->taker.node);
	if (st != NDX_OK)
		return st;
	st = ndxp_srq_join(&srq->base, ndxp_cq_of(attr->receive_cq), &qp->taker.link);
	if (st != NDX_OK) /* ndxp_qp_fini() frees the places */
		return st;
	ndxp_lock_acquire(&srq->base.lock);
	srq->users++;
	ndxp_lock_release(&srq->base.lock);
	qp->taker.srq = srq;
	return NDX_OK;
}

void ofi_srq_leave(struct ofi_qp *qp)
{
	struct ofi_srq *srq = qp->taker.srq;

	if (srq == NULL)
		return;
	/* a thread that serves may be at the queue pair */
	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	ndxp_lock_acquire(&srq->base.lock);
	if (!ndxp_list_empty(&qp->taker.node)) {
		ndxp_list_remove(&qp->taker.node);
		srq->waiter_count--;
	}
	srq->users--;
	ndxp_lock_release(&srq->base.lock);
	ndxp_lock_release(&srq->adapter->srqs_lock);
	ndxp_srq_leave(&srq->base, qp->taker.link);
}

/* ---- create, destroy, grow ---- */

static enum ndx_status grow(struct ndxp_srq *base, uint32_t depth)
{
	struct ofi_srq *srq = container_of(base, struct ofi_srq, base);

	return srq->records < depth ? add_records(srq, depth - srq->records) : NDX_OK;
}

/* libfabric's queue grows by itself. */
static const struct ndxp_srq_ops base_ops = {.grow = grow};

enum ndx_status ofi_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                               struct ndx_spi_srq **out)
{
	struct ofi_srq *srq = calloc(1, sizeof(*srq));

	if (srq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a shared receive queue");
	ndxp_srq_init(&srq->base, &srq_ops, &base_ops, attr);
	srq->adapter = ofi_adapter_of(adapter);
	srq->max_sge = attr->max_sge;
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
	*out = &srq->base.spi;
	return NDX_OK;
}

void ofi_srq_destroy(struct ndx_spi_srq *spi)
{
	struct ofi_srq *srq = container_of(spi, struct ofi_srq, base.spi);

	ndxp_lock_acquire(&srq->adapter->srqs_lock);
	ndxp_list_remove(&srq->node);
	ndxp_lock_release(&srq->adapter->srqs_lock);
	free_records(srq);
	free(srq);
}
