/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end that sends to a shared receive queue. It has no credit until it asks, and asks for all
 * messages that wait. It asks again when it has used all credits that it asked for, so one number
 * is enough to know whether an answer is due: how many messages it has asked for since the
 * connection began, modulo 2^16.
 */
#include "ofi.h"

static bool takes_receive(const struct ofi_tx *tx)
{
	return tx->base.type == NDX_REQUEST_SEND || (tx->ctrl_flags & OFI_CTRL_IS_WRITE);
}

static uint16_t count_waiting(const struct ofi_qp *qp)
{
	uint16_t count = 0;

	for (uint32_t i = qp->tx_next; i != qp->base.initiator.tail; i++) {
		const struct ofi_tx *tx = ofi_tx_at(qp, i);

		if (!tx->base.done && takes_receive(tx))
			count++;
	}
	return count;
}

bool ofi_srq_is_due(const struct ofi_qp *qp)
{
	/* a peer that grants more than it was asked for harms nothing */
	return (int16_t)(uint16_t)(qp->asked - ofi_backend_of(qp)->count_sent(qp)) > 0;
}

bool ofi_srq_ask(struct ofi_qp *qp)
{
	uint16_t count;

	if (ofi_srq_is_due(qp))
		return true;
	count = count_waiting(qp);
	if (ofi_backend_of(qp)->send_want(qp, count) != 0) {
		ofi_submit_later(qp);
		return false;
	}
	qp->asked = (uint16_t)(ofi_backend_of(qp)->count_sent(qp) + count);
	return true;
}
