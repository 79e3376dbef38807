/* SPDX-License-Identifier: BSD-2-Clause */
/* Native completion queues: which links use them, and how they are made and closed. ofi_cq_thread.c
 * chooses the thread that reads. */
#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "ofi.h"

#define NATIVE_SIZE 1024 /* advice: the queue grows */
#define MANY 8u     /* native queues of one consumer's queue from which on they are shared, ... */
#define SHARERS 16u /* ... by at most so many links, where sharing is restricted */

/* ---- create and destroy ---- */

/* A queue that does not grow has room for all that the queue pair may have in flight. */
static size_t native_size(const struct ofi_qp *qp)
{
	const uint32_t controls = ofi_backend_of(qp)->controls;

	if (controls == 0)
		return NATIVE_SIZE;
	return (size_t)qp->base.initiator.depth + qp->base.receive.depth + controls;
}

static enum ndx_status ncq_open(struct ofi_adapter *adapter, const struct ofi_cq *shared_by,
                                const struct ofi_qp *qp, struct ofi_ncq **out)
{
	struct fi_cq_attr attr = {
		.size = native_size(qp), .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct ofi_ncq *ncq = calloc(1, sizeof(*ncq));
	enum ndx_status st;
	int err;

	if (ncq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a native completion queue");
	ncq->adapter = adapter;
	ncq->shared = shared_by != NULL;
	ncq->shared_by = shared_by;
	ndxp_table_init(&ncq->links, ncq->buckets, OFI_NCQ_BUCKETS);
	ndxp_list_init(&ncq->ties);
	ndxp_list_init(&ncq->credit_pending);
	ndxp_list_init(&ncq->ack_list);
	err = -fi_cq_open(adapter->domain, &attr, &ncq->cq, NULL);
	if (err != 0) {
		st = fail(ofi_status_of(err), err, "fi_cq_open: %s; see ulimit -n",
		          fi_strerror(err));
		goto free_ncq;
	}
	err = -fi_control(&ncq->cq->fid, FI_GETWAIT, &ncq->watch.fd);
	if (err != 0) {
		st = fail(NDX_E_INTERNAL_ERROR, err, "fi_control(FI_GETWAIT): %s",
		          fi_strerror(err));
		goto close_cq;
	}
	st = ofi_ncq_watch(ncq);
	if (st != NDX_OK)
		goto close_cq;
	ndxp_list_add(&adapter->ncqs, &ncq->node);
	*out = ncq;
	return NDX_OK;

close_cq:
	(void)fi_close(&ncq->cq->fid);
free_ncq:
	free(ncq);
	return st;
}

void ofi_ncq_put(struct ofi_ncq *ncq)
{
	if (--ncq->refs > 0)
		return;
	ndxp_list_remove(&ncq->node);
	ofi_ncq_unwatch(ncq);
	(void)fi_close(&ncq->cq->fid);
	free(ncq);
}

static struct ofi_tie *find_tie(struct ofi_ncq *ncq, const struct ofi_cq *cq)
{
	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ofi_tie *tie = container_of(n, struct ofi_tie, of_ncq);

		if (tie->cq == cq)
			return tie;
	}
	return NULL;
}

static enum ndx_status tie_to(struct ofi_ncq *ncq, struct ofi_cq *cq)
{
	struct ofi_tie *tie = find_tie(ncq, cq);

	if (tie != NULL) {
		tie->refs++;
		return NDX_OK;
	}
	tie = calloc(1, sizeof(*tie));
	if (tie == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to attach a completion queue");
	tie->cq = cq;
	tie->ncq = ncq;
	tie->refs = 1;
	ndxp_lock_acquire(&cq->poll_lock);
	ofi_cq_unshare_fds(cq);
	ndxp_lock_acquire(&ncq->lock);
	ndxp_list_add(&cq->ties, &tie->of_cq);
	ndxp_list_add(&ncq->ties, &tie->of_ncq);
	ndxp_lock_release(&ncq->lock);
	ofi_cq_tied(cq, ncq);
	ndxp_lock_release(&cq->poll_lock);
	return NDX_OK;
}

static void untie_from(struct ofi_ncq *ncq, struct ofi_cq *cq)
{
	struct ofi_tie *tie = find_tie(ncq, cq);

	if (tie == NULL || --tie->refs > 0)
		return;
	ndxp_lock_acquire(&cq->poll_lock);
	ofi_cq_unshare_fds(cq);
	ofi_cq_untied(cq, ncq);
	ndxp_lock_acquire(&ncq->lock);
	ndxp_list_remove(&tie->of_cq);
	ndxp_list_remove(&tie->of_ncq);
	ndxp_lock_release(&ncq->lock);
	ndxp_lock_release(&cq->poll_lock);
	free(tie);
}

static struct ofi_cq *receive_cq(const struct ofi_qp *qp)
{
	return (struct ofi_cq *)(void *)qp->base.spi.attr.receive_cq;
}

static struct ofi_cq *initiator_cq(const struct ofi_qp *qp)
{
	return (struct ofi_cq *)(void *)qp->base.spi.attr.initiator_cq;
}

void ofi_ncq_untie(struct ofi_ncq *ncq, const struct ofi_qp *qp)
{
	untie_from(ncq, receive_cq(qp));
	untie_from(ncq, initiator_cq(qp));
	/* the queue that it was made for may be destroyed, and another one may get the same
	 * address */
	if (ncq->shared_by != NULL && find_tie(ncq, ncq->shared_by) == NULL)
		ncq->shared_by = NULL;
}

static bool may_share(const struct ofi_adapter *adapter, const struct ofi_cq *cq, bool reads)
{
	switch (adapter->share) {
	case OFI_SHARE_ALWAYS:
		return true;
	case OFI_SHARE_UNLESS_READS:
		return !reads && __atomic_load_n(&cq->native, __ATOMIC_RELAXED) >= MANY;
	case OFI_SHARE_NEVER:
		break;
	}
	return false;
}

static bool has_room(const struct ofi_ncq *ncq)
{
	return ncq->adapter->share == OFI_SHARE_ALWAYS || ncq->refs < SHARERS;
}

static struct ofi_ncq *find_shared(struct ofi_adapter *adapter, const struct ofi_cq *cq)
{
	for (struct ndxp_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (ncq->shared_by == cq && has_room(ncq))
			return ncq;
	}
	return NULL;
}

enum ndx_status ofi_ncq_get(struct ofi_adapter *adapter, const struct ofi_qp *qp, bool reads,
                            struct ofi_ncq **out)
{
	struct ofi_cq *shared_by =
		may_share(adapter, receive_cq(qp), reads) ? receive_cq(qp) : NULL;
	struct ofi_ncq *ncq = shared_by != NULL ? find_shared(adapter, shared_by) : NULL;
	enum ndx_status st = NDX_OK;

	if (ncq == NULL)
		st = ncq_open(adapter, shared_by, qp, &ncq);
	if (ncq == NULL)
		return st;
	ncq->refs++;
	st = tie_to(ncq, receive_cq(qp));
	if (st != NDX_OK)
		goto put_ncq;
	st = tie_to(ncq, initiator_cq(qp));
	if (st != NDX_OK)
		goto untie;
	*out = ncq;
	return NDX_OK;

untie:
	untie_from(ncq, receive_cq(qp));
put_ncq:
	ofi_ncq_put(ncq);
	return st;
}
