/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of shared receive queues. */
#include <ndx/srq.h>

#include "adapter.h"
#include <ndx/spi/log.h>
#include "base_ov.h"
#include "base_struct.h"
#include "front.h"
#include "ops.h"

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_srq_attr, NDX_SRQ_ATTR_SIZE_0_1, "call ndx_srq_attr_init() first");

static const struct ndx_srq_attr attr_defaults = {
	.size = sizeof(attr_defaults), .depth = 64, .max_sge = 1};

void ndx_srq_attr_init_sized(struct ndx_srq_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status check_attr(const struct ndx_adapter_info *info,
                                  const struct ndx_srq_attr *attr)
{
	if (!(info->capabilities & NDX_CAP_SRQ))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_srq_create: %s has no shared receive queues", info->uri);
	if (attr->depth == 0 || attr->depth > info->max_shared_receive_queue_depth)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_srq_create: depth %u is not in 1..%u of %s", attr->depth,
		            info->max_shared_receive_queue_depth, info->uri);
	if (attr->max_sge == 0 || attr->max_sge > info->max_receive_sge ||
	    attr->threshold > attr->depth || attr->group != 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_srq_create: max_sge %u not in 1..%u, threshold %u beyond depth "
		            "%u, or group %u not 0",
		            attr->max_sge, info->max_receive_sge, attr->threshold, attr->depth,
		            attr->group);
	return NDX_OK;
}

enum ndx_status ndx_srq_create(struct ndx_adapter *adapter, const struct ndx_srq_attr *attr,
                               struct ndx_srq **out)
{
	struct ndx_srq_attr own = attr_defaults;
	struct ndx_spi_srq *srq = NULL;
	enum ndx_status st = NDX_OK;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_srq_create: NULL argument");
	if (attr != NULL)
		st = base_struct_in(&attr_layout, "ndx_srq_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&adapter->info, &own);
	if (st != NDX_OK)
		return st;
	own.size = sizeof(own);
	st = adapter->ops->srq_create(adapter->native, &own, &srq);
	if (st != NDX_OK)
		return st;
	st = ops_complete_srq(srq);
	if (st != NDX_OK) {
		adapter->ops->srq_destroy(srq);
		return st != NDX_E_ABI_MISMATCH
		               ? st
		               : fail(st, 0,
		                      "ndx_srq_create: a queue of provider \"%s\" lacks a function "
		                      "of the data path; report it to the provider's author",
		                      adapter->info.provider);
	}
	adapter_add_object(adapter, &srq->object, CORE_SRQ);
	*out = &srq->pub;
	return NDX_OK;
}

void ndx_srq_close(struct ndx_srq *srq)
{
	struct ndx_adapter *adapter;

	if (srq == NULL)
		return;
	adapter = spi_srq(srq)->object.adapter;
	(void)ndx_srq_cancel(srq);
	adapter_lock(adapter);
	adapter->handles--;
	adapter_unlock(adapter);
	srq_put(spi_srq(srq));
}

enum ndx_status ndx_srq_modify(struct ndx_srq *srq, uint32_t depth, uint32_t threshold)
{
	struct ndx_adapter *adapter;

	if (srq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_srq_modify: srq is NULL");
	adapter = spi_srq(srq)->object.adapter;
	if (depth > adapter->info.max_shared_receive_queue_depth ||
	    threshold > adapter->info.max_shared_receive_queue_depth)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_srq_modify: depth %u or threshold %u beyond %u of %s", depth,
		            threshold, adapter->info.max_shared_receive_queue_depth,
		            adapter->info.uri);
	return adapter->ops->srq_modify(spi_srq(srq), depth, threshold);
}

enum ndx_status ndx_srq_notify(struct ndx_srq *srq, struct ndx_overlapped *ov)
{
	struct ndx_adapter *adapter;
	enum ndx_status st;

	if (srq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_srq_notify: srq is NULL");
	adapter = spi_srq(srq)->object.adapter;
	st = base_ov_begin_call(ov, adapter->loop, "ndx_srq_notify");
	if (st != NDX_OK)
		return st;
	st = adapter->ops->srq_notify(spi_srq(srq), ov);
	if (st != NDX_PENDING)
		base_ov_abandon(ov);
	return st;
}

enum ndx_status ndx_srq_cancel(struct ndx_srq *srq)
{
	struct ndx_adapter *adapter;

	if (srq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_srq_cancel: srq is NULL");
	adapter = spi_srq(srq)->object.adapter;
	adapter->ops->srq_cancel(spi_srq(srq), NDX_E_CANCELED);
	adapter_flush_callbacks(adapter);
	return NDX_OK;
}

enum ndx_status ndx_srq_get_notify_affinity(struct ndx_srq *srq, uint16_t *group,
                                            uint64_t *affinity)
{
	struct ndx_adapter *adapter;
	struct affinity found = {0};
	enum ndx_status st;

	if (srq == NULL || group == NULL || affinity == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_srq_get_notify_affinity: NULL argument");
	adapter = spi_srq(srq)->object.adapter;
	if (!(adapter->info.capabilities & NDX_CAP_NOTIFY_AFFINITY) ||
	    adapter->ops->srq_affinity == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_srq_get_notify_affinity: %s does not know",
		            adapter->info.uri);
	st = adapter->ops->srq_affinity(spi_srq(srq), &found.group, &found.mask);
	if (st == NDX_OK) {
		*group = found.group;
		*affinity = found.mask;
	}
	return st;
}
