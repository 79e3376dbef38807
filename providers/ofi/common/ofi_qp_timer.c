/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a queue pair: set while a send waits for a receive of the peer, and when libfabric
 * has no memory for a request. The lock of the queue pair is held. */
#include <ndx/spi/system.h>
#include "ofi.h"

#define RETRY_MS 10u
#define LOOKS 8u /* after LOOKS * LOOKS ms without credits, poll LOOKS times less often */

void ofi_await_credits(struct ofi_qp *qp, uint32_t left_ms)
{
	const uint64_t soon = qp->base.rnr_since + (uint64_t)LOOKS * LOOKS * NDXP_NS_PER_MS;
	const uint32_t look = ofi_backend_of(qp)->credit_ms;
	uint32_t ms = left_ms;

	if (look > 0 && ms > LOOKS * look)
		ms = ndxp_now_ns() < soon ? look : LOOKS * look;
	else if (look > 0 && ms > look)
		ms = look;
	if (ms == NDX_INFINITE)
		return;
	qp->timer_set = true;
	ndxp_timer_set(qp->adapter->spi.loop, &qp->timer, ms);
}

void ofi_rnr_begin(struct ofi_qp *qp)
{
	if (qp->base.rnr_since != 0)
		return;
	ndxp_qp_rnr_begin(&qp->base);
	if (!qp->timer_set)
		ofi_await_credits(qp, qp->peer_shared ? NDX_INFINITE
		                                      : qp->base.spi.attr.no_receive_timeout_ms);
}

void ofi_submit_later(struct ofi_qp *qp)
{
	/* the timer may be set for a send that waits, and for much later */
	if (!qp->retrying)
		ndxp_timer_set(qp->adapter->spi.loop, &qp->timer, RETRY_MS);
	qp->timer_set = true;
	qp->retrying = true;
}
