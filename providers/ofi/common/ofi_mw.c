/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows. A bind gives part of a region a key of its own, for the peer of one connection. A
 * bind or invalidate begins when all earlier requests have ended, so that none succeeds behind a
 * failure. An invalidate ends when the peer has forgotten the token and none of its requests uses
 * it (ofi_revoke.c); later requests wait for that.
 */
#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi.h"

#define TOKEN_TRIES 16

static struct ofi_mw *mw_of(struct ndx_spi_mw *mw)
{
	return container_of(mw, struct ofi_mw, spi);
}

/* ---- requests ---- */

/* The objects are opaque to the application: its pointers are those of the SPI's heads. */
static enum ndx_status check_bind(struct ofi_adapter *adapter, const struct ndx_spi_mr *mr,
                                  struct ofi_mw *mw, const void *buffer, size_t length,
                                  uint32_t flags, uint32_t *token)
{
	const uint32_t right = flags & NDX_OP_ALLOW_WRITE ? OFI_RIGHT_RECEIVE : OFI_RIGHT_SOURCE;
	bool planned;

	if (mr == NULL || mw == NULL || mr->object.native != &adapter->spi ||
	    mw->spi.object.native != &adapter->spi)
		return NDX_E_INVALID_PARAMETER;
	ndxp_lock_acquire(&adapter->regions.lock);
	planned = mw->state.planned;
	ndxp_lock_release(&adapter->regions.lock);
	if (planned)
		return NDX_E_DEVICE_BUSY;
	if (!ofi_mr_allows(&adapter->regions, buffer, length, mr->local_token, right))
		return NDX_E_ACCESS_VIOLATION;
	*token = 0;
	for (int i = 0; i < TOKEN_TRIES && *token == 0; i++) {
		if (ndxp_random(token, sizeof(*token)) != NDX_OK)
			break;
	}
	return *token != 0 ? NDX_OK : NDX_E_INSUFFICIENT_RESOURCES;
}

static struct ofi_tx *init_tx(struct ndxp_req *req, uint32_t token)
{
	struct ofi_tx *tx = (struct ofi_tx *)(void *)req;

	tx->verdict = NDX_OK;
	tx->remote = false;
	tx->native = false;
	tx->unacked = false;
	tx->ctrl_flags = 0;
	tx->length = 0;
	tx->iov_count = 0;
	tx->key = token;
	return tx;
}

enum ndx_status ofi_mw_bind(struct ndx_qp *handle, void *context, struct ndx_mr *mr_front,
                            struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)handle;
	const struct ndx_spi_mr *mr = (const struct ndx_spi_mr *)(const void *)mr_front;
	struct ofi_mw *mw = (struct ofi_mw *)(void *)mw_front;
	struct ndxp_req *req;
	struct ofi_tx *tx;
	uint32_t token = 0;
	enum ndx_status st = NDX_OK;

	ndxp_lock_acquire(&qp->base.lock);
	/* after the end of the connection every request is canceled */
	if (qp->base.state == NDXP_QP_UP)
		st = check_bind(qp->adapter, mr, mw, buffer, length, flags, &token);
	if (st == NDX_OK)
		st = ndxp_mw_admit(&qp->base, NDX_REQUEST_BIND, context, flags, &req);
	if (st == NDX_OK) {
		tx = init_tx(req, token);
		tx->iov_count = 1;
		tx->iov[0] = (struct iovec){buffer, length};
		tx->tokens[0] = mr->local_token;
		ofi_mw_plan(mw, tx);
		ofi_submit(qp);
	}
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

enum ndx_status ofi_mw_invalidate(struct ndx_qp *handle, void *context, struct ndx_mw *mw_front,
                                  uint32_t flags)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)handle;
	struct ofi_mw *mw = (struct ofi_mw *)(void *)mw_front;
	struct ndxp_req *req;
	enum ndx_status st;

	if (mw == NULL || mw->spi.object.native != &qp->adapter->spi)
		return NDX_E_INVALID_PARAMETER;
	ndxp_lock_acquire(&qp->base.lock);
	st = ndxp_mw_admit(&qp->base, NDX_REQUEST_INVALIDATE, context, flags, &req);
	if (st == NDX_OK) {
		ofi_mw_plan(mw, init_tx(req, 0));
		ofi_submit(qp);
	}
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

/* ---- the end of a binding ---- */

/* Complete the invalidate that waited for the revoke, if it still waits. */
static void end_invalidate(struct ofi_qp *qp, const struct ofi_mw *mw)
{
	struct ofi_tx *tx;

	ndxp_lock_acquire(&qp->base.lock);
	if (qp->invalidating == mw) {
		qp->invalidating = NULL;
		tx = ofi_tx_at(qp, qp->tx_next);
		qp->tx_next++;
		ofi_mw_run_out(tx);
		ndxp_req_done(&qp->base.initiator, &tx->base, NDX_OK, 0);
		ofi_submit(qp);
		ofi_check_drained(qp);
	}
	ndxp_lock_release(&qp->base.lock);
}

/* Control thread: no request of the peer uses the key, and none will. */
static void on_revoked(struct ofi_revoke *revoke)
{
	struct ofi_mw *mw = container_of(revoke, struct ofi_mw, revoke);
	struct ofi_adapter *adapter = mw->adapter;
	struct ofi_mr *region = mw->region;
	bool awaited;

	ndxp_lock_acquire(&adapter->regions.lock);
	awaited = mw->awaited;
	mw->awaited = false;
	mw->going = false;
	ndxp_mw_unbound(&mw->state);
	ndxp_list_remove(&mw->of_mr);
	ndxp_list_remove(&mw->of_qp);
	__atomic_store_n(&region->bound, region->bound - 1, __ATOMIC_RELEASE);
	ndxp_lock_release(&adapter->regions.lock);
	/* a thread that waited for the count may have freed the region: only the address is used */
	ndxp_futex_wake(&region->bound, 1);
	if (!awaited)
		return;
	/* several queue pairs may have an invalidate of the window, and they do not know of each
	 * other */
	ndxp_lock_acquire(&adapter->qps_lock);
	for (struct ndxp_list *n = adapter->qps.next; n != &adapter->qps; n = n->next)
		end_invalidate(container_of(n, struct ofi_qp, node), mw);
	ndxp_lock_release(&adapter->qps_lock);
}

/* ---- create and destroy ---- */

enum ndx_status ofi_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out)
{
	struct ofi_mw *mw;

	if (!ofi_adapter_of(adapter)->backend->windows)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ofi:%s: libfabric has no call for memory windows",
		            ofi_adapter_of(adapter)->backend->device);
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a window");
	mw->adapter = ofi_adapter_of(adapter);
	ndxp_list_init(&mw->of_mr);
	ndxp_list_init(&mw->of_qp);
	mw->revoke.adapter = mw->adapter;
	mw->revoke.ended = on_revoked;
	mw->revoke.going = &mw->revoking;
	*out = &mw->spi;
	return NDX_OK;
}

/* Requests that were posted and have not begun must not use the window's memory. */
static void leave_requests(struct ofi_qp *qp, const struct ofi_mw *mw)
{
	const struct ndxp_queue *q = &qp->base.initiator;

	ndxp_lock_acquire(&qp->base.lock);
	for (uint32_t i = q->head; i != q->tail; i++) {
		struct ofi_tx *tx = ofi_tx_at(qp, i);
		const bool begun = i == qp->tx_next && qp->invalidating != NULL;

		if (!tx->base.done && !begun && tx->mw == mw)
			ofi_mw_skip(tx);
	}
	ndxp_lock_release(&qp->base.lock);
}

void ofi_mw_destroy(struct ndx_spi_mw *spi)
{
	struct ofi_mw *mw = mw_of(spi);
	struct ofi_adapter *adapter = mw->adapter;

	ndxp_lock_acquire(&adapter->qps_lock);
	for (struct ndxp_list *n = adapter->qps.next; n != &adapter->qps; n = n->next)
		leave_requests(container_of(n, struct ofi_qp, node), mw);
	ndxp_lock_release(&adapter->qps_lock);
	ndxp_lock_acquire(&adapter->regions.lock);
	if (mw->state.bound)
		ofi_mw_revoke(mw);
	ndxp_lock_release(&adapter->regions.lock);
	ofi_revoke_wait(adapter, &mw->revoking);
	free(mw);
}
