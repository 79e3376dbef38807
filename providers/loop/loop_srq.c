/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: receives in the order of posting, for the queue pair that needs one
 * first. */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "loop.h"

static struct loop_srq *of_spi(struct ndx_spi_srq *srq)
{
	return container_of(srq, struct loop_srq, spi);
}

/* Each sender uses the receives that it can, and the one that has waited longest is first. */
static void serve_waiters(struct loop_srq *srq)
{
	struct ndxp_list *node;

	while (srq->posted > 0 && (node = ndxp_list_take(&srq->waiters)) != NULL)
		loop_data_pump(container_of(node, struct loop_conn, wait_node));
}

/* Lock held. */
static enum ndx_status receive_one(struct loop_srq *srq, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct loop_receive *receive;
	uint32_t length;

	if (count > srq->max_sge)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(sge, count, LOOP_MAX_TRANSFER, &length))
		return NDX_E_BUFFER_OVERFLOW;
	if (srq->posted == srq->depth)
		return NDX_E_NO_MORE_ENTRIES;
	receive = loop_srq_at(srq, srq->ring, srq->depth, srq->first + srq->posted);
	receive->base.context = context;
	receive->length = length;
	if (count > 0)
		memcpy(receive->sge, sge, count * sizeof(*sge));
	srq->posted++;
	serve_waiters(srq);
	return NDX_OK;
}

static enum ndx_status srq_receive(struct ndx_srq *pub, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct loop_srq *srq = loop_srq_of(pub);
	enum ndx_status st;

	loop_switch_lock(srq->adapter->sw);
	st = receive_one(srq, context, sge, count);
	loop_switch_unlock(srq->adapter->sw);
	return st;
}

static enum ndx_status srq_receive_list(struct ndx_srq *pub, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	struct loop_srq *srq = loop_srq_of(pub);
	enum ndx_status st = NDX_OK;
	size_t i = 0;

	loop_switch_lock(srq->adapter->sw);
	for (; i < count && st == NDX_OK; i += st == NDX_OK) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = receive_one(srq, r->context, r->sge, r->sge_count);
	}
	loop_switch_unlock(srq->adapter->sw);
	*posted = i;
	return st;
}

static const struct ndx_srq_ops srq_ops = {
	.size = sizeof(srq_ops),
	.receive = srq_receive,
	.receive_list = srq_receive_list,
};

enum ndx_status loop_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                                struct ndx_spi_srq **out)
{
	struct loop_srq *srq = calloc(1, sizeof(*srq));

	if (srq == NULL)
		goto no_memory;
	srq->spi.pub.ops = &srq_ops;
	srq->adapter = loop_adapter_of(adapter);
	srq->depth = attr->depth;
	srq->max_sge = attr->max_sge;
	srq->stride = sizeof(struct loop_receive) + srq->max_sge * sizeof(struct ndx_sge);
	srq->threshold = attr->threshold;
	srq->affinity = attr->affinity;
	ndxp_list_init(&srq->waiters);
	srq->ring = calloc(attr->depth, srq->stride);
	if (srq->ring == NULL)
		goto free_srq;
	*out = &srq->spi;
	return NDX_OK;
free_srq:
	free(srq);
no_memory:
	return fail(NDX_E_NO_MEMORY, 0, "shared receive queue of %u receives: out of memory",
	            attr->depth);
}

void loop_srq_destroy(struct ndx_spi_srq *spi)
{
	struct loop_srq *srq = of_spi(spi);

	free(srq->ring);
	free(srq);
}

/* Lock held. `*ring` returns the old ring, which the caller frees. */
static void use_ring(struct loop_srq *srq, char **ring, uint32_t depth)
{
	char *old = srq->ring;

	for (uint32_t i = 0; i < srq->posted; i++)
		memcpy(loop_srq_at(srq, *ring, depth, i),
		       loop_srq_at(srq, old, srq->depth, srq->first + i), srq->stride);
	srq->ring = *ring;
	srq->depth = depth;
	srq->first = 0;
	*ring = old;
}

enum ndx_status loop_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold)
{
	struct loop_srq *srq = of_spi(spi);
	enum ndx_status st = NDX_OK;
	char *ring = NULL;
	uint32_t posted;

	if (depth > 0) {
		ring = calloc(depth, srq->stride);
		if (ring == NULL)
			return fail(NDX_E_NO_MEMORY, 0,
			            "shared receive queue of %u receives: out of memory", depth);
	}
	loop_switch_lock(srq->adapter->sw);
	posted = srq->posted;
	if (depth > 0 && depth < posted) {
		st = NDX_E_BUFFER_OVERFLOW;
		goto unlock;
	}
	if (depth > 0)
		use_ring(srq, &ring, depth);
	if (threshold > 0)
		srq->threshold = threshold;
	loop_srq_check_threshold(srq);
unlock:
	loop_switch_unlock(srq->adapter->sw);
	free(ring);
	if (st != NDX_OK)
		return fail(st, 0, "shared receive queue: %u receives are posted, more than %u",
		            posted, depth);
	return NDX_OK;
}

enum ndx_status loop_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov)
{
	struct loop_srq *srq = of_spi(spi);
	bool possible;

	loop_switch_lock(srq->adapter->sw);
	possible = srq->threshold > 0;
	if (possible) {
		ndxp_ov_push(&srq->notifies, ov);
		loop_srq_check_threshold(srq);
	}
	loop_switch_unlock(srq->adapter->sw);
	if (!possible)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "shared receive queue: its threshold is 0, set one with modify");
	return NDX_PENDING;
}

void loop_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status)
{
	struct loop_srq *srq = of_spi(spi);

	loop_switch_lock(srq->adapter->sw);
	ndxp_ov_complete_all(&srq->notifies, status);
	loop_switch_unlock(srq->adapter->sw);
}

enum ndx_status loop_srq_affinity(struct ndx_spi_srq *spi, uint16_t *group, uint64_t *affinity)
{
	*group = 0;
	*affinity = loop_affinity(of_spi(spi)->affinity);
	return NDX_OK;
}
