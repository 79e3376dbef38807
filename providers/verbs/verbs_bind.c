/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that bind and invalidate windows. Each bind changes eight bits of the window's key.
 */
#include <endian.h>

#include "verbs_wr.h"

/* base.lock and windows_lock held: post the request. */
static enum ndx_status post_window_request(struct verbs_qp *qp, struct verbs_mw *mw,
                                           struct ndxp_req *base, struct ibv_send_wr *wr)
{
	struct verbs_req *req = (struct verbs_req *)(void *)base;
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = (uintptr_t)req;
	wr->send_flags = IBV_SEND_SIGNALED;
	/* software RoCE runs such a request ahead of sends that it retries, and then a second
	 * time */
	if ((base->op_flags & NDX_OP_READ_FENCE) || qp->adapter->soft_roce)
		wr->send_flags |= IBV_SEND_FENCE;
	err = ibv_post_send(qp->native, wr, &bad);
	if (err != 0)
		return verbs_wr_undo(&qp->base.initiator, err);
	req->mw = mw;
	req->kind = VERBS_WINDOW;
	req->needs_receive = false;
	req->signaled = true;
	req->in_mailbox = false;
	qp->unsignaled = 0;
	req->bad_invalidate = wr->opcode == IBV_WR_LOCAL_INV && !mw->state.planned;
	((struct verbs_initiator *)(void *)base)->count = 0;
	ndxp_mw_posted(&mw->state, base->type);
	return NDX_OK;
}

struct bind {
	struct verbs_mr *mr;
	void *buffer;
	size_t length;
	uint32_t flags;
};

static enum ndx_status check_bind(const struct verbs_mw *mw, const struct bind *bind)
{
	const struct verbs_mr *mr = bind->mr;
	const uintptr_t at = (uintptr_t)bind->buffer;
	uintptr_t start;

	if (mw->native == NULL)
		return NDX_E_INSUFFICIENT_RESOURCES;
	if (mw->state.planned)
		return NDX_E_DEVICE_BUSY;
	if (mr->native == NULL || ((bind->flags & NDX_OP_ALLOW_WRITE) && !mr->writable))
		return NDX_E_ACCESS_VIOLATION;
	start = mr->start;
	if (at < start || bind->length > mr->native->length ||
	    at - start > mr->native->length - bind->length)
		return NDX_E_ACCESS_VIOLATION;
	return NDX_OK;
}

static enum ndx_status post_bind(struct verbs_qp *qp, struct verbs_mw *mw, const struct bind *bind,
                                 struct ndxp_req *req)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw->native,
	                    .rkey = ibv_inc_rkey(mw->native->rkey),
	                    .bind_info = {.mr = bind->mr->native,
	                                  .addr = (uintptr_t)bind->buffer,
	                                  .length = bind->length}},
	};
	enum ndx_status st;

	if (bind->flags & NDX_OP_ALLOW_READ)
		wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (bind->flags & NDX_OP_ALLOW_WRITE)
		wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	st = post_window_request(qp, mw, req, &wr);
	if (st != NDX_OK)
		return st;
	mw->native->rkey = wr.bind_mw.rkey;
	mw->spi.remote_token = htobe32(wr.bind_mw.rkey);
	mw->qp = qp;
	mw->mr = bind->mr;
	return NDX_OK;
}

enum ndx_status verbs_qp_bind(struct ndx_qp *pub, void *context, struct ndx_mr *mr_front,
                              struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	struct verbs_mw *mw = (struct verbs_mw *)(void *)mw_front;
	const struct bind bind = {.mr = (struct verbs_mr *)(void *)mr_front,
	                          .buffer = buffer,
	                          .length = length,
	                          .flags = flags};
	struct ndxp_req *req;
	enum ndx_status st;

	if (mw == NULL || bind.mr == NULL || mw->adapter != qp->adapter ||
	    bind.mr->adapter != qp->adapter)
		return NDX_E_INVALID_PARAMETER;
	ndxp_lock_acquire(&qp->base.lock);
	ndxp_lock_acquire(&qp->adapter->windows_lock);
	st = check_bind(mw, &bind);
	if (st == NDX_OK)
		st = ndxp_mw_admit(&qp->base, NDX_REQUEST_BIND, context, flags, &req);
	if (st == NDX_OK)
		st = post_bind(qp, mw, &bind, req);
	ndxp_lock_release(&qp->adapter->windows_lock);
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

/* A window that will not be bound when the request runs: a key that the device never had makes the
 * request fail. */
static enum ndx_status post_invalidate(struct verbs_qp *qp, struct verbs_mw *mw,
                                       struct ndxp_req *req)
{
	const uint32_t key = mw->native != NULL ? mw->native->rkey : 0;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = mw->state.planned ? key : key ^ 0xff,
	};

	return post_window_request(qp, mw, req, &wr);
}

enum ndx_status verbs_qp_invalidate(struct ndx_qp *pub, void *context, struct ndx_mw *mw_front,
                                    uint32_t flags)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	struct verbs_mw *mw = (struct verbs_mw *)(void *)mw_front;
	struct ndxp_req *req;
	enum ndx_status st;

	if (mw == NULL || mw->adapter != qp->adapter)
		return NDX_E_INVALID_PARAMETER;
	ndxp_lock_acquire(&qp->base.lock);
	ndxp_lock_acquire(&qp->adapter->windows_lock);
	st = ndxp_mw_admit(&qp->base, NDX_REQUEST_INVALIDATE, context, flags, &req);
	if (st == NDX_OK)
		st = post_invalidate(qp, mw, req);
	ndxp_lock_release(&qp->adapter->windows_lock);
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}
