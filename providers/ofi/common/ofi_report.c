/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports to the core about a queue pair. The lock of the queue pair is held. */
#include <errno.h>

#include "ofi.h"

const char ofi_link_lost[] =
	"the link ended without a goodbye: the peer's process has ended or was killed, a request "
	"of the peer failed (see the peer's log), or the network is lost";

void ofi_qp_break(struct ofi_qp *qp, int native, const char *cause)
{
	if (qp->broken || qp->conn == NULL || qp->base.state == NDXP_QP_IDLE || qp->verbs.gone)
		return;
	qp->broken = true;
	/* libfabric cancels the receives of a lost link: that errno does not say why */
	if (native == ECANCELED)
		native = ECONNRESET;
	ofi_host(qp->adapter)->report(&qp->conn->spi, NDX_REPORT_ABORT, native, cause);
}

void ofi_check_drained(struct ofi_qp *qp)
{
	if (!qp->draining || qp->broken || ndxp_queue_outstanding(&qp->base.initiator) > 0)
		return;
	qp->draining = false;
	ofi_host(qp->adapter)->report(&qp->conn->spi, NDX_REPORT_DRAINED, 0, NULL);
}
