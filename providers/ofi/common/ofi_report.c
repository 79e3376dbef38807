/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports to the core about a queue pair. The lock of the queue pair is held. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "ofi.h"

const char ofi_link_lost[] =
	"the link ended without a goodbye: the peer's process has ended or was killed, a request "
	"of the peer failed (see the peer's log), or the network is lost";

/* The same, while the peer could send nothing: it may have waited too long to send. */
static const char link_starved[] =
	"the link ended without a goodbye: the peer's process has ended or was killed, a request "
	"of the peer failed (see the peer's log), or the network is lost; no receive was posted: "
	"perhaps the peer's send waited for its no_receive_timeout_ms";

const char *ofi_denied_text(enum ofi_denied denied)
{
	static const char *const texts[] = {
		[OFI_DENIED_TOKEN] = "its token is of no region: it never was, or was revoked",
		[OFI_DENIED_REVOKED] = "the region was deregistered meanwhile",
		[OFI_DENIED_RIGHT] = "the region or window lacks the right",
		[OFI_DENIED_BOUNDS] = "it is not all inside the region or window",
		[OFI_DENIED_PEER] = "its token grants nothing: it never did, or was revoked",
	};

	return texts[denied];
}

static bool is_starved(const struct ofi_qp *qp)
{
	return qp->base.state == NDXP_QP_UP && qp->taker.srq == NULL &&
	       ndxp_queue_outstanding(&qp->base.receive) == 0;
}

void ofi_qp_break(struct ofi_qp *qp, int native, const char *cause)
{
	if (qp->broken || qp->conn == NULL || qp->base.state == NDXP_QP_IDLE || qp->verbs.gone)
		return;
	qp->broken = true;
	/* libfabric cancels the receives of a lost link: that errno does not say why */
	if (native == ECANCELED)
		native = ECONNRESET;
	if (cause == ofi_link_lost && is_starved(qp))
		cause = link_starved;
	ofi_host(qp->adapter)->report(&qp->conn->spi, NDX_REPORT_ABORT, native, cause);
}

void ofi_qp_break_with(struct ofi_qp *qp, int native, const char *format, ...)
{
	va_list args;

	/* a text that was reported stays as it is */
	if (qp->broken || qp->conn == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(qp->conn->cause, sizeof(qp->conn->cause), format, args);
	va_end(args);
	ofi_qp_break(qp, native, qp->conn->cause);
}

void ofi_check_drained(struct ofi_qp *qp)
{
	if (!qp->draining || qp->broken || ndxp_queue_outstanding(&qp->base.initiator) > 0)
		return;
	qp->draining = false;
	ofi_host(qp->adapter)->report(&qp->conn->spi, NDX_REPORT_DRAINED, 0, NULL);
}
