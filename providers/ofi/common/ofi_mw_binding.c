/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bindings of windows: planned when a request is posted, made and ended when its turn comes. The
 * lock of the queue pair is held unless a comment says otherwise.
 */
#include "ofi.h"

void ofi_mw_plan(struct ofi_mw *mw, struct ofi_tx *tx)
{
	ndxp_lock_acquire(&mw->adapter->regions.lock);
	tx->mw = mw;
	ndxp_mw_posted(&mw->state, tx->base.type);
	if (mw->state.planned)
		mw->spi.remote_token = tx->key;
	ndxp_lock_release(&mw->adapter->regions.lock);
}

void ofi_mw_run_out(struct ofi_tx *tx)
{
	struct ofi_mw *mw = tx->mw;

	tx->mw = NULL;
	if (mw == NULL)
		return;
	ndxp_lock_acquire(&mw->adapter->regions.lock);
	(void)ndxp_mw_ended(&mw->state);
	ndxp_lock_release(&mw->adapter->regions.lock);
}

void ofi_mw_skip(struct ofi_tx *tx)
{
	if (tx->base.type == NDX_REQUEST_BIND || tx->base.type == NDX_REQUEST_INVALIDATE)
		ofi_mw_run_out(tx);
}

/* Make the key in libfabric, and add it to the table. A binding without rights or bytes needs
 * none. */
static int make_key(struct ofi_qp *qp, const struct ofi_tx *tx, struct ofi_mw *mw)
{
	const struct iovec *memory = &tx->iov[0];
	uint32_t rights = 0;
	int err = 0;

	if (tx->base.op_flags & NDX_OP_ALLOW_READ)
		rights |= OFI_GRANT_READ;
	if (tx->base.op_flags & NDX_OP_ALLOW_WRITE)
		rights |= OFI_GRANT_WRITE;
	if (rights != 0 && memory->iov_len > 0)
		err = -fi_mr_reg(mw->adapter->domain, memory->iov_base, memory->iov_len,
		                 ofi_mr_access(rights), 0, tx->key, 0, &mw->mr, NULL);
	if (mw->mr == NULL || err != 0)
		return err;
	mw->key.grant =
		(struct ofi_grant){(uintptr_t)memory->iov_base, memory->iov_len, tx->key, rights};
	mw->key.only = qp->own_id;
	ofi_key_add(&mw->adapter->keys, &mw->key);
	return 0;
}

static enum ndx_status bind_now(struct ofi_qp *qp, const struct ofi_tx *tx, struct ofi_mw *mw)
{
	struct ofi_mr_table *table = &mw->adapter->regions;
	enum ndx_status st = NDX_OK;
	struct ofi_mr *region;

	ndxp_lock_acquire(&table->lock);
	/* the region may have been deregistered before the request's turn */
	region = ofi_mr_find(table, tx->tokens[0]);
	if (region == NULL)
		st = NDX_E_ACCESS_VIOLATION;
	else if (mw->state.bound)
		st = NDX_E_INVALID_DEVICE_REQUEST;
	else if (make_key(qp, tx, mw) != 0) /* no memory, or another region has the key by chance */
		st = NDX_E_INSUFFICIENT_RESOURCES;
	if (st == NDX_OK) {
		mw->state.bound = true;
		mw->region = region;
		ndxp_list_add(&region->windows, &mw->of_mr);
		ndxp_list_add(&qp->windows, &mw->of_qp);
		__atomic_store_n(&region->bound, region->bound + 1, __ATOMIC_RELEASE);
	}
	ndxp_lock_release(&table->lock);
	return st;
}

void ofi_mw_revoke(struct ofi_mw *mw)
{
	const uint32_t token = mw->key.grant.token;

	if (mw->going)
		return;
	mw->going = true;
	ofi_key_remove(&mw->adapter->keys, &mw->key, &mw->revoke.users);
	mw->revoke.forget = token;
	mw->revoke.mr = mw->mr;
	mw->revoke.bound = &mw->region->bound;
	mw->mr = NULL;
	ofi_revoke_begin(&mw->revoke);
}

/* NDX_PENDING: the request ends when the binding has ended. */
static enum ndx_status unbind_now(struct ofi_mw *mw)
{
	enum ndx_status st = NDX_PENDING;

	ndxp_lock_acquire(&mw->adapter->regions.lock);
	if (!mw->state.bound)
		st = NDX_E_INVALID_DEVICE_REQUEST;
	else
		mw->awaited = true;
	if (st == NDX_PENDING)
		ofi_mw_revoke(mw);
	ndxp_lock_release(&mw->adapter->regions.lock);
	return st;
}

bool ofi_mw_run(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const bool bind = tx->base.type == NDX_REQUEST_BIND;
	enum ndx_status st;

	if (qp->invalidating != NULL || qp->tx_next != qp->base.initiator.head)
		return false;
	/* the window was closed before the request's turn: that is an invalidate, too */
	if (tx->mw == NULL)
		st = bind ? NDX_E_CANCELED : NDX_OK;
	else
		st = bind ? bind_now(qp, tx, tx->mw) : unbind_now(tx->mw);
	if (st == NDX_PENDING) {
		qp->invalidating = tx->mw;
		return false;
	}
	ofi_mw_run_out(tx);
	ndxp_req_done(&qp->base.initiator, &tx->base, st, 0);
	if (st == NDX_OK || st == NDX_E_CANCELED)
		return true;
	ofi_qp_break(qp, 0, "a bind or invalidate failed");
	return false;
}

void ofi_mw_leave_qp(struct ofi_qp *qp)
{
	struct ndxp_list *node;

	ndxp_lock_acquire(&qp->adapter->regions.lock);
	while ((node = ndxp_list_take(&qp->windows)) != NULL)
		ofi_mw_revoke(container_of(node, struct ofi_mw, of_qp));
	ndxp_lock_release(&qp->adapter->regions.lock);
}
