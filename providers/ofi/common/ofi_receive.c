/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives that come back from libfabric. The lock of the queue pair is held. */
#include "ofi.h"

void ofi_rx_returned(struct ofi_qp *qp, struct ofi_rx *rx)
{
	rx->native = false;
	qp->rx_native--;
	if (qp->rx_credited > 0)
		qp->rx_credited--;
}

void ofi_rx_done(struct ofi_qp *qp, struct ofi_rx *rx, enum ndx_status status, int native)
{
	if (rx->shared != NULL)
		ofi_srq_done(qp, rx, status, native);
	else
		ndxp_req_done(&qp->base.receive, &rx->base, status, native);
}

void ofi_rx_break(struct ofi_qp *qp, const struct ofi_rx *rx, enum ndx_status status, int native)
{
	if (status == NDX_E_ACCESS_VIOLATION && rx->poisoned)
		ofi_qp_break_with(qp, native,
		                  "a message came for memory that must not be written: %s",
		                  ofi_denied_text((enum ofi_denied)rx->denied));
	else if (status == NDX_E_CANCELED)
		ofi_qp_break(qp, native, ofi_link_lost);
	else
		ofi_qp_break(qp, native,
		             status == NDX_E_BUFFER_OVERFLOW
		                     ? "a message was longer than its receive"
		                     : "a receive failed in libfabric");
}

void ofi_rx_failed(struct ofi_qp *qp, struct ofi_rx *rx, int err)
{
	enum ndx_status status = ofi_request_status(err);

	if (!rx->native)
		return;
	if (qp->recalling && status == NDX_E_CANCELED) {
		/* the receive will be posted again, so the peer's credit stays valid */
		rx->native = false;
		qp->rx_native--;
		return;
	}
	ofi_rx_returned(qp, rx);
	/* not connected: the receive waits for the next attempt */
	if (qp->base.state == NDXP_QP_IDLE)
		return;
	if (rx->poisoned && status == NDX_E_BUFFER_OVERFLOW)
		status = NDX_E_ACCESS_VIOLATION;
	if (rx->verdict != NDX_OK) {
		status = rx->verdict;
		err = 0;
	}
	if (!qp->releasing)
		ofi_rx_break(qp, rx, status, err);
	ofi_rx_done(qp, rx, status, err);
}
