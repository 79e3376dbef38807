/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: bound and invalidated in the order of the queue pair's requests. */
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "loop.h"

static struct loop_mw *loop_mw_of(struct ndx_spi_mw *mw)
{
	return container_of(mw, struct loop_mw, spi);
}

enum ndx_status loop_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out)
{
	struct loop_mw *mw = calloc(1, sizeof(*mw));

	if (mw == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "memory window: out of memory");
	mw->adapter = loop_adapter_of(adapter);
	ndxp_list_init(&mw->of_mr);
	ndxp_list_init(&mw->of_qp);
	*out = &mw->spi;
	return NDX_OK;
}

/* Requests that were posted and have not run must not use the window's memory. */
static void leave_requests(struct loop_mw *mw)
{
	struct ndxp_list *node = mw->adapter->pending.next;

	for (; node != &mw->adapter->pending; node = node->next) {
		struct loop_req *req = container_of(node, struct loop_req, pending);

		if (req->mw == mw)
			req->mw = NULL;
	}
}

void loop_mw_destroy(struct ndx_spi_mw *spi)
{
	struct loop_mw *mw = loop_mw_of(spi);

	loop_switch_lock(mw->adapter->sw);
	loop_mw_unbind(mw);
	leave_requests(mw);
	loop_switch_unlock(mw->adapter->sw);
	free(mw);
}

void loop_mw_unbind(struct loop_mw *mw)
{
	if (!mw->state.bound)
		return;
	loop_key_remove(&mw->key);
	ndxp_list_remove(&mw->of_mr);
	ndxp_list_remove(&mw->of_qp);
	ndxp_mw_unbound(&mw->state);
}

enum ndx_status loop_mw_check_bind(struct loop_adapter *adapter, const struct loop_mr *mr,
                                   const struct loop_mw *mw, const void *buffer, size_t length,
                                   uint32_t flags, uint32_t *token)
{
	if (mr == NULL || mw == NULL || mr->adapter != adapter || mw->adapter != adapter)
		return NDX_E_INVALID_PARAMETER;
	if (mw->state.planned)
		return NDX_E_DEVICE_BUSY;
	if (!loop_key_admits(adapter, mr->local.token, (uintptr_t)buffer, length,
	                     (flags & NDX_OP_ALLOW_WRITE) != 0 ? LOOP_LOCAL_WRITE : LOOP_LOCAL_READ,
	                     NULL))
		return NDX_E_ACCESS_VIOLATION;
	return loop_key_new_token(adapter, token);
}

void loop_mw_plan(struct loop_adapter *adapter, struct loop_req *req, struct loop_mw *mw)
{
	req->mw = mw;
	ndxp_mw_posted(&mw->state, req->base.type);
	if (mw->state.planned)
		mw->spi.remote_token = req->remote_token;
	ndxp_list_add(&adapter->pending, &req->pending);
}

void loop_mw_forget(struct loop_req *req)
{
	struct loop_mw *mw = req->mw;

	ndxp_list_remove(&req->pending);
	if (mw == NULL)
		return;
	req->mw = NULL;
	(void)ndxp_mw_ended(&mw->state);
}

static uint32_t window_rights(uint8_t flags)
{
	uint32_t rights = 0;

	if ((flags & NDX_OP_ALLOW_READ) != 0)
		rights |= LOOP_REMOTE_READ;
	if ((flags & NDX_OP_ALLOW_WRITE) != 0)
		rights |= LOOP_REMOTE_WRITE;
	return rights;
}

static enum ndx_status bind_now(struct loop_qp *qp, const struct loop_req *req, struct loop_mw *mw)
{
	/* the region may have been deregistered before the request ran */
	struct loop_mr *mr = loop_mr_find(qp->adapter, req->region_token);

	if (mr == NULL)
		return NDX_E_ACCESS_VIOLATION;
	if (mw->state.bound)
		return NDX_E_INVALID_DEVICE_REQUEST;
	mw->key.token = req->remote_token;
	mw->key.start = (uintptr_t)req->remote_address;
	mw->key.length = req->window_length;
	mw->key.rights = window_rights(req->base.op_flags);
	mw->key.only = qp;
	loop_key_add(qp->adapter, &mw->key);
	ndxp_list_add(&mr->windows, &mw->of_mr);
	ndxp_list_add(&qp->windows, &mw->of_qp);
	mw->state.bound = true;
	return NDX_OK;
}

enum ndx_status loop_mw_run(struct loop_qp *qp, struct loop_req *req)
{
	struct loop_mw *mw = req->mw;
	bool bind = req->base.type == NDX_REQUEST_BIND;
	enum ndx_status st = NDX_OK;

	/* the window was closed before the request ran: that is an invalidate, too */
	if (mw == NULL)
		st = bind ? NDX_E_CANCELED : NDX_OK;
	else if (bind)
		st = bind_now(qp, req, mw);
	else if (!mw->state.bound)
		st = NDX_E_INVALID_DEVICE_REQUEST;
	else
		loop_mw_unbind(mw);
	loop_mw_forget(req);
	return st;
}
