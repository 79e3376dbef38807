/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creation, flush, close. Posting goes straight to the provider. */
#include <ndx/qp.h>

#include "adapter.h"
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "connection.h"
#include "ops.h"

/* Programs for ND post two SGEs on a queue pair that was created with one: grant more. */
#define LEAST_SGE 2u
#define RNR_TIMER_MAX 31u

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_qp_attr, NDX_QP_ATTR_SIZE_0_1, "call ndx_qp_attr_init() first");

static const struct ndx_qp_attr attr_defaults = {
	.receive_depth = 64,
	.initiator_depth = 64,
	.max_receive_sge = 1,
	.max_initiator_sge = 1,
	.no_receive_timeout_ms = 4000,
	.keepalive_ms = 30000,
	.rnr_timer = NDX_RNR_TIMER_DEFAULT,
};

void ndx_qp_attr_init_sized(struct ndx_qp_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status out_of_range(const char *what, uint32_t value, uint32_t least, uint32_t most)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: %s %u is not in %u..%u", what,
	            value, least, most);
}

static enum ndx_status check_limits(const struct ndx_adapter_info *info,
                                    const struct ndx_qp_attr *attr)
{
	if (attr->initiator_depth == 0 || attr->initiator_depth > info->max_initiator_queue_depth)
		return out_of_range("initiator_depth", attr->initiator_depth, 1,
		                    info->max_initiator_queue_depth);
	if (attr->srq == NULL &&
	    (attr->receive_depth == 0 || attr->receive_depth > info->max_receive_queue_depth))
		return out_of_range("receive_depth", attr->receive_depth, 1,
		                    info->max_receive_queue_depth);
	if (attr->max_initiator_sge > info->max_initiator_sge)
		return out_of_range("max_initiator_sge", attr->max_initiator_sge, 0,
		                    info->max_initiator_sge);
	if (attr->max_receive_sge > info->max_receive_sge)
		return out_of_range("max_receive_sge", attr->max_receive_sge, 0,
		                    info->max_receive_sge);
	if (attr->inline_size > info->max_inline_data_size)
		return out_of_range("inline_size", attr->inline_size, 0,
		                    info->max_inline_data_size);
	if (attr->no_receive_timeout_ms == 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: no_receive_timeout_ms is 0; use NDX_INFINITE for no "
		            "limit");
	return NDX_OK;
}

static enum ndx_status check_rnr_timer(const struct ndx_adapter_info *info,
                                       const struct ndx_qp_attr *attr)
{
	if (attr->rnr_timer == NDX_RNR_TIMER_DEFAULT)
		return NDX_OK;
	if (attr->rnr_timer > RNR_TIMER_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: rnr_timer %u is neither a code in 0..%u nor "
		            "NDX_RNR_TIMER_DEFAULT",
		            attr->rnr_timer, RNR_TIMER_MAX);
	if (!(info->capabilities & NDX_CAP_RNR_TIMER))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_qp_create: rnr_timer %u: %s has no such timer; leave it "
		            "NDX_RNR_TIMER_DEFAULT",
		            attr->rnr_timer, info->uri);
	return NDX_OK;
}

static enum ndx_status check_attr(const struct ndx_adapter *adapter, const struct ndx_qp_attr *attr)
{
	enum ndx_status st;

	if (attr->receive_cq == NULL || attr->initiator_cq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: attr->%s is NULL",
		            attr->receive_cq == NULL ? "receive_cq" : "initiator_cq");
	if (spi_cq(attr->receive_cq)->object.adapter != adapter ||
	    spi_cq(attr->initiator_cq)->object.adapter != adapter ||
	    (attr->srq != NULL && spi_srq(attr->srq)->object.adapter != adapter))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: a queue belongs to another adapter than %s",
		            adapter->info.uri);
	if (attr->srq != NULL && !(adapter->info.capabilities & NDX_CAP_SRQ))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_qp_create: %s has no shared receive queues", adapter->info.uri);
	st = check_rnr_timer(&adapter->info, attr);
	return st != NDX_OK ? st : check_limits(&adapter->info, attr);
}

static uint32_t grant_sge(uint32_t asked, uint32_t most)
{
	uint32_t least = LEAST_SGE < most ? LEAST_SGE : most;

	return asked > least ? asked : least;
}

enum ndx_status ndx_qp_create(struct ndx_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_qp **out)
{
	struct ndx_qp_attr grant = attr_defaults;
	struct ndx_spi_qp *qp = NULL;
	enum ndx_status st;

	if (adapter == NULL || attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: NULL argument");
	st = base_struct_in(&attr_layout, "ndx_qp_create", &grant, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(adapter, &grant);
	if (st != NDX_OK)
		return st;
	grant.size = sizeof(grant);
	grant.max_initiator_sge =
		grant_sge(grant.max_initiator_sge, adapter->info.max_initiator_sge);
	grant.max_receive_sge = grant_sge(grant.max_receive_sge, adapter->info.max_receive_sge);
	st = adapter->ops->qp_create(adapter->native, &grant, &qp);
	if (st != NDX_OK)
		return st;
	st = ops_complete_qp(qp);
	if (st != NDX_OK) {
		adapter->ops->qp_destroy(qp);
		return st != NDX_E_ABI_MISMATCH
		               ? st
		               : fail(st, 0,
		                      "ndx_qp_create: a queue pair of provider \"%s\" lacks a "
		                      "function of the data path; report it to the provider's "
		                      "author",
		                      adapter->info.provider);
	}
	qp->connector = NULL;
	qp->spent = false;
	qp->connector_id = 0;
	adapter_lock(adapter);
	spi_cq(grant.receive_cq)->object.refs++;
	spi_cq(grant.initiator_cq)->object.refs++;
	if (grant.srq != NULL)
		spi_srq(grant.srq)->object.refs++;
	adapter_unlock(adapter);
	adapter_add_object(adapter, &qp->object, CORE_QP);
	*out = &qp->pub;
	return NDX_OK;
}

enum ndx_status ndx_qp_flush(struct ndx_qp *qp)
{
	if (qp == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_flush: qp is NULL");
	if (!qp_flush(spi_qp(qp)))
		return fail(NDX_E_INTERNAL_ERROR, 0,
		            "ndx_qp_flush: the device did not hand the requests back in %u ms",
		            CORE_PROVIDER_PATIENCE_MS);
	return NDX_OK;
}

void ndx_qp_close(struct ndx_qp *qp)
{
	if (qp != NULL)
		qp_close(spi_qp(qp));
}
