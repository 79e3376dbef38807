/* SPDX-License-Identifier: BSD-2-Clause */
#include "null_provider.h"

#include <ndx/spi/container_of.h>
#include <ndx/spi/post.h>

/* ---- null provider ---- */

static enum ndx_status null_send(struct ndx_qp *handle, void *context, const struct ndx_sge *sge,
                                 size_t count, uint32_t flags)
{
	struct ndxp_qp *qp = ndxp_qp_of(handle);
	struct ndxp_req *req;
	uint32_t length;
	enum ndx_status st;

	ndxp_lock_acquire(&qp->lock);
	st = ndxp_admit_initiator(qp, NDX_REQUEST_SEND, context, sge, count, flags, NDXP_SEND_FLAGS,
	                          qp->spi.attr.max_initiator_sge, &length, &req);
	if (st == NDX_OK)
		ndxp_req_done(&qp->initiator, req, NDX_OK, 0);
	ndxp_lock_release(&qp->lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

static size_t null_get_results(struct ndx_cq *handle, struct ndx_result *results, size_t count)
{
	return ndxp_cq_take(ndxp_cq_of(handle), results, count);
}

static const struct ndx_qp_ops null_qp_ops = {.send = null_send};
static const struct ndx_cq_ops null_cq_ops = {.get_results = null_get_results};

bool null_open(struct null_path *path)
{
	struct ndx_qp_attr attr;

	*path = (struct null_path){0};
	if (ndxp_cq_init(&path->cq, &null_cq_ops, 2 * NULL_DEPTH) != NDX_OK)
		return false;
	attr = (struct ndx_qp_attr){
		.size = sizeof(attr),
		.receive_cq = &path->cq.spi.pub,
		.initiator_cq = &path->cq.spi.pub,
		.receive_depth = NULL_DEPTH,
		.initiator_depth = NULL_DEPTH,
		.max_receive_sge = 4,
		.max_initiator_sge = 4,
	};
	if (ndxp_qp_init(&path->qp, &null_qp_ops, &attr, UINT32_C(1) << 30, sizeof(struct ndxp_req),
	                 sizeof(struct ndxp_req)) != NDX_OK) {
		ndxp_cq_fini(&path->cq);
		return false;
	}
	path->qp.state = NDXP_QP_UP;
	return true;
}

void null_close(struct null_path *path)
{
	ndxp_qp_fini(&path->qp);
	ndxp_cq_fini(&path->cq);
}

/* ---- stub ---- */

static enum ndx_status stub_send(struct ndx_qp *handle, void *context, const struct ndx_sge *sge,
                                 size_t count, uint32_t flags)
{
	struct stub_path *path = container_of(handle, struct stub_path, qp);

	(void)sge;
	(void)count;
	(void)flags;
	if (path->posted - path->taken == NULL_DEPTH)
		return NDX_E_NO_MORE_ENTRIES;
	path->ring[path->posted++ % NULL_DEPTH] = context;
	return NDX_OK;
}

static size_t stub_get_results(struct ndx_cq *handle, struct ndx_result *results, size_t count)
{
	struct stub_path *path = container_of(handle, struct stub_path, cq);
	size_t n = 0;

	for (; n < count && path->taken != path->posted; n++)
		results[n] = (struct ndx_result){
			.request_context = path->ring[path->taken++ % NULL_DEPTH],
			.request_type = NDX_REQUEST_SEND,
		};
	return n;
}

static const struct ndx_qp_ops stub_qp_ops = {.send = stub_send};
static const struct ndx_cq_ops stub_cq_ops = {.get_results = stub_get_results};

void stub_open(struct stub_path *path)
{
	*path = (struct stub_path){.cq = {&stub_cq_ops}, .qp = {&stub_qp_ops}};
}
