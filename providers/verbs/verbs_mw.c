/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of type 2 and their state. Requests bind and invalidate them, in the order of the
 * queue pair's requests (verbs_bind.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "verbs.h"

static struct verbs_mw *mw_of(struct ndx_spi_mw *mw)
{
	return (struct verbs_mw *)(void *)mw;
}

/* ---- create and destroy ---- */

enum ndx_status verbs_mw_create(struct ndx_spi_adapter *spi, struct ndx_spi_mw **out)
{
	struct verbs_adapter *adapter = verbs_adapter_of(spi);
	struct verbs_mw *mw = calloc(1, sizeof(*mw));

	if (mw == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a memory window");
	mw->adapter = adapter;
	mw->native = ibv_alloc_mw(adapter->pd, IBV_MW_TYPE_2);
	if (mw->native == NULL) {
		const int err = errno;

		free(mw);
		return fail(verbs_refusal(adapter, err), err, "ibv_alloc_mw: %s", strerror(err));
	}
	mw->key = mw->native->rkey;
	ndxp_lock_acquire(&adapter->windows_lock);
	ndxp_list_add(&adapter->windows, &mw->node);
	ndxp_lock_release(&adapter->windows_lock);
	*out = &mw->spi;
	return NDX_OK;
}

/* windows_lock held. */
static void free_window(struct verbs_mw *mw)
{
	ndxp_list_remove(&mw->node);
	if (mw->native != NULL && ibv_dealloc_mw(mw->native) != 0)
		log_warn(errno, "ibv_dealloc_mw: %s", strerror(errno));
	free(mw);
}

/* A request in flight names the window, so the last pending request frees it. */
void verbs_mw_destroy(struct ndx_spi_mw *spi)
{
	struct verbs_mw *mw = mw_of(spi);
	struct verbs_adapter *adapter = mw->adapter;

	ndxp_lock_acquire(&adapter->windows_lock);
	mw->closed = true;
	if (mw->state.pending == 0)
		free_window(mw);
	ndxp_lock_release(&adapter->windows_lock);
}

/* windows_lock held: no request invalidates the window any more, so the native window is
 * replaced. */
static void unbind_window(struct verbs_mw *mw)
{
	if (mw->native != NULL && ibv_dealloc_mw(mw->native) != 0)
		log_warn(errno, "ibv_dealloc_mw: %s", strerror(errno));
	mw->native = ibv_alloc_mw(mw->adapter->pd, IBV_MW_TYPE_2);
	if (mw->native != NULL)
		mw->key = mw->native->rkey;
	ndxp_mw_unbound(&mw->state);
	mw->state.planned = false; /* the requests that are pending name another native window */
	mw->qp = NULL;
	mw->mr = NULL;
}

void verbs_mw_leave_qp(struct verbs_qp *qp)
{
	struct verbs_adapter *adapter = qp->adapter;

	ndxp_lock_acquire(&adapter->windows_lock);
	for (struct ndxp_list *n = adapter->windows.next; n != &adapter->windows; n = n->next) {
		struct verbs_mw *mw = container_of(n, struct verbs_mw, node);

		if (mw->qp == qp && mw->state.bound)
			unbind_window(mw);
	}
	ndxp_lock_release(&adapter->windows_lock);
}

bool verbs_mw_leave_mr(struct verbs_mr *mr, bool force)
{
	struct verbs_adapter *adapter = mr->adapter;
	bool busy = false;

	ndxp_lock_acquire(&adapter->windows_lock);
	for (struct ndxp_list *n = adapter->windows.next; n != &adapter->windows; n = n->next) {
		struct verbs_mw *mw = container_of(n, struct verbs_mw, node);

		if (mw->mr != mr || !(mw->state.bound || mw->state.planned))
			continue;
		if (force)
			unbind_window(mw);
		else
			busy = true;
	}
	ndxp_lock_release(&adapter->windows_lock);
	return !busy;
}

/* ---- requests ---- */

bool verbs_mw_done(struct verbs_req *req, bool ok)
{
	struct verbs_mw *mw = req->mw;
	struct verbs_adapter *adapter = mw->adapter;
	bool last;
	bool open;

	req->mw = NULL;
	req->kind = VERBS_INITIATOR;
	ndxp_lock_acquire(&adapter->windows_lock);
	open = !mw->closed;
	if (ok)
		mw->state.bound = req->base.type == NDX_REQUEST_BIND;
	last = ndxp_mw_ended(&mw->state);
	/* later binds have changed native->rkey since, so it is the device's key only now */
	if (last && ok && mw->native != NULL)
		mw->key = mw->native->rkey;
	else if (last && mw->native != NULL)
		mw->native->rkey = mw->key;
	if (last && !open)
		free_window(mw);
	ndxp_lock_release(&adapter->windows_lock);
	return open;
}
