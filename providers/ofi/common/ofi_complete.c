/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of a native queue go to the objects that they belong to. The queue's lock is held. */
#include <ndx/spi/reorder.h>
#include "ofi.h"

/* More than a queue pair has, unless FI_VERBS_RX_SIZE exceeds its 384; further receives are not
 * held. */
#define HELD 512u

/* Note a sign of life: the peer has answered, or has sent something. */
static void note_sign_of_life(const struct ofi_qp *qp)
{
	if (qp->link != NULL)
		qp->link->signs_of_life++;
}

static void peeked(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	if (qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	link->adapter->backend->peeked(qp);
	ndxp_lock_release(&qp->base.lock);
}

/* The queue pair of an OFI_OP_WANT. NULL: it has left the link, and may be gone. The device returns
 * the receive only when the endpoint is shut down, which may be later. */
static struct ofi_qp *qp_of_want(const struct ofi_op *op)
{
	const struct ofi_link *link = op->owner;

	return link->qp;
}

static void dispatch_completion(struct ofi_ncq *ncq, const struct fi_cq_data_entry *e)
{
	struct ofi_op *op = e->op_context;
	struct ofi_qp *qp;

	if (op == NULL) {
		if (e->flags & FI_REMOTE_CQ_DATA)
			ofi_ctrl_received(ncq, e->data);
		return;
	}
	switch (op->kind) {
	case OFI_OP_TX:
		qp = op->owner;
		note_sign_of_life(qp);
		ndxp_lock_acquire(&qp->base.lock);
		ofi_tx_done(qp, container_of(op, struct ofi_tx, op), 0);
		ndxp_lock_release(&qp->base.lock);
		break;
	case OFI_OP_RX:
		qp = op->owner;
		note_sign_of_life(qp);
		ofi_backend_of(qp)->received(qp, container_of(op, struct ofi_rx, op), e);
		break;
	case OFI_OP_SHARED:
		qp = op->owner;
		note_sign_of_life(qp);
		ofi_backend_of(qp)->received_shared(qp, container_of(op, struct ofi_rx, op), e);
		break;
	case OFI_OP_WANT:
		qp = qp_of_want(op);
		if (qp == NULL)
			break;
		note_sign_of_life(qp);
		ofi_backend_of(qp)->wanted(qp, e);
		break;
	case OFI_OP_FIRST:
		ncq->adapter->backend->first(op->owner, e);
		break;
	case OFI_OP_CTRL:
		ofi_ctrl_done(op->owner, op->type, 0);
		break;
	case OFI_OP_PEEK:
		peeked(op->owner);
		break;
	case OFI_OP_SILENT:
		break;
	}
}

static void dispatch_error(const struct ofi_ncq *ncq, const struct fi_cq_err_entry *e)
{
	struct ofi_op *op = e->op_context;
	const int err = ncq->adapter->backend->error_of(e);
	struct ofi_qp *qp;

	/* without a context: a write of the peer that the own shutdown has cut off */
	if (op == NULL)
		return;
	switch (op->kind) {
	case OFI_OP_TX:
		qp = op->owner;
		ndxp_lock_acquire(&qp->base.lock);
		ofi_tx_done(qp, container_of(op, struct ofi_tx, op), err);
		ndxp_lock_release(&qp->base.lock);
		break;
	case OFI_OP_RX:
	case OFI_OP_SHARED:
		qp = op->owner;
		ndxp_lock_acquire(&qp->base.lock);
		ofi_rx_failed(qp, container_of(op, struct ofi_rx, op), err);
		ndxp_lock_release(&qp->base.lock);
		break;
	case OFI_OP_WANT:
		qp = qp_of_want(op);
		if (qp == NULL)
			break;
		ndxp_lock_acquire(&qp->base.lock);
		ofi_backend_of(qp)->want_failed(qp, err);
		ndxp_lock_release(&qp->base.lock);
		break;
	case OFI_OP_CTRL:
		ofi_ctrl_done(op->owner, op->type, err);
		break;
	case OFI_OP_FIRST: /* the requests behind it fail, too */
	case OFI_OP_PEEK:
	case OFI_OP_SILENT:
		break;
	}
}

static ssize_t read_error(struct ofi_ncq *ncq)
{
	struct fi_cq_err_entry err = {0};
	const ssize_t n = fi_cq_readerr(ncq->cq, &err, 0);

	if (n > 0)
		dispatch_error(ncq, &err);
	return n;
}

/* ---- software RoCE ---- */

/* Completions of receives that have to wait for those of earlier requests. */
struct held {
	struct ofi_ncq *ncq;
	struct fi_cq_data_entry entries[HELD];
	unsigned count;
};

static bool is_receive(const struct fi_cq_data_entry *e)
{
	const struct ofi_op *op = e->op_context;

	return op != NULL &&
	       (op->kind == OFI_OP_RX || op->kind == OFI_OP_SHARED || op->kind == OFI_OP_WANT);
}

/* A failure stays in the queue until all held receives are passed on. */
static int read_some(void *arg)
{
	struct held *held = arg;
	const unsigned room = HELD - held->count;
	struct fi_cq_data_entry entries[OFI_BATCH];
	ssize_t n;

	if (room == 0)
		return -FI_EAVAIL;
	n = fi_cq_read(held->ncq->cq, entries, room < OFI_BATCH ? room : OFI_BATCH);
	for (ssize_t i = 0; i < n; i++) {
		if (is_receive(&entries[i]))
			held->entries[held->count++] = entries[i];
		else
			dispatch_completion(held->ncq, &entries[i]);
	}
	return n == -FI_EAGAIN ? 0 : (int)n;
}

/* libfabric has the requests before tx_next. */
static bool oldest_submitted(const struct ndxp_qp *base, uint32_t *index)
{
	const struct ofi_qp *qp = (const struct ofi_qp *)(const void *)base;

	*index = base->initiator.head;
	return (int32_t)(qp->tx_next - *index) > 0;
}

static ssize_t read_software(struct ofi_ncq *ncq)
{
	struct held held;
	int n;

	held.ncq = ncq;
	held.count = 0;
	n = read_some(&held);
	for (unsigned i = 0; i < held.count; i++) {
		const struct ofi_op *op = held.entries[i].op_context;
		struct ofi_qp *qp = op->owner;

		if (op->kind == OFI_OP_WANT) {
			qp = qp_of_want(op);
			if (qp == NULL)
				continue;
		}
		ndxp_reorder_await(&qp->base, oldest_submitted, read_some, &held);
		dispatch_completion(ncq, &held.entries[i]);
	}
	return n == 0 ? -FI_EAGAIN : n;
}

static ssize_t read_hardware(struct ofi_ncq *ncq)
{
	struct fi_cq_data_entry entries[OFI_BATCH];
	const ssize_t n = fi_cq_read(ncq->cq, entries, OFI_BATCH);

	for (ssize_t i = 0; i < n; i++)
		dispatch_completion(ncq, &entries[i]);
	return n;
}

ssize_t ofi_ncq_read(struct ofi_ncq *ncq)
{
	const ssize_t n = ncq->adapter->software ? read_software(ncq) : read_hardware(ncq);

	return n == -FI_EAVAIL ? read_error(ncq) : n;
}
