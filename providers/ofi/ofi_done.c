/* SPDX-License-Identifier: BSD-2-Clause */
/* What a native completion queue has, handed on to whom it belongs to; its lock is held. */
#include "ofi.h"

/* The peer lives: it has answered, or sent something. */
static void hear(const struct ofi_qp *qp)
{
	if (qp->link != NULL)
		qp->link->heard++;
}

static void hand_on(struct ofi_ncq *ncq, const struct fi_cq_data_entry *e)
{
	struct ofi_op *op = e->op_context;
	struct ofi_qp *qp;

	if (op == NULL) {
		if (e->flags & FI_REMOTE_CQ_DATA)
			ofi_word_in(ncq, e->data);
		return;
	}
	switch (op->kind) {
	case OFI_OP_TX:
		qp = op->owner;
		hear(qp);
		base_lock_acquire(&qp->base.lock);
		ofi_tx_done(qp, container_of(op, struct ofi_tx, op), 0);
		base_lock_release(&qp->base.lock);
		break;
	case OFI_OP_RX:
		qp = op->owner;
		hear(qp);
		ofi_flavour_of(qp)->received(qp, container_of(op, struct ofi_rx, op), e);
		break;
	case OFI_OP_FIRST:
		ncq->adapter->flavour->first(op->owner, e);
		break;
	case OFI_OP_WORD:
		ofi_word_done(op->owner, op->word, 0);
		break;
	case OFI_OP_SILENT:
		break;
	}
}

static void hand_on_error(const struct ofi_ncq *ncq, const struct fi_cq_err_entry *e)
{
	struct ofi_op *op = e->op_context;
	const int err = ncq->adapter->flavour->error_of(e);
	struct ofi_qp *qp;

	/* Without context: a write of the peer's that our own shutdown cut off. */
	if (op == NULL)
		return;
	switch (op->kind) {
	case OFI_OP_TX:
		qp = op->owner;
		base_lock_acquire(&qp->base.lock);
		ofi_tx_done(qp, container_of(op, struct ofi_tx, op), err);
		base_lock_release(&qp->base.lock);
		break;
	case OFI_OP_RX:
		qp = op->owner;
		base_lock_acquire(&qp->base.lock);
		ofi_rx_failed(qp, container_of(op, struct ofi_rx, op), err);
		base_lock_release(&qp->base.lock);
		break;
	case OFI_OP_WORD:
		ofi_word_done(op->owner, op->word, err);
		break;
	case OFI_OP_FIRST: /* what is behind it fails, too */
	case OFI_OP_SILENT:
		break;
	}
}

static ssize_t read_error(struct ofi_ncq *ncq)
{
	struct fi_cq_err_entry err = {0};
	const ssize_t n = fi_cq_readerr(ncq->cq, &err, 0);

	if (n > 0)
		hand_on_error(ncq, &err);
	return n;
}

ssize_t ofi_ncq_read(struct ofi_ncq *ncq)
{
	struct fi_cq_data_entry entries[OFI_BATCH];
	const ssize_t n = fi_cq_read(ncq->cq, entries, OFI_BATCH);

	for (ssize_t i = 0; i < n; i++)
		hand_on(ncq, &entries[i]);
	return n == -FI_EAVAIL ? read_error(ncq) : n;
}
