/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mechanics of the end. A goodbye is a control message whose delivery is confirmed. This end
 * sends it when none of its requests is in flight: then the loss of the link loses nothing, and the
 * peer needs nothing more from this end but the goodbye. libfabric's shutdown comes last, and only
 * frees resources.
 */
#include <errno.h>

#include "ofi.h"

static void report_bits(struct ofi_conn *conn, uint32_t bits, int native, const char *cause)
{
	ofi_host(conn->adapter)->report(&conn->spi, bits, native, cause);
}

void ofi_conn_drain(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct ofi_qp *qp = conn->link != NULL ? conn->link->qp : NULL;

	if (qp == NULL) {
		report_bits(conn, NDX_REPORT_DRAINED, 0, NULL);
		return;
	}
	ndxp_lock_acquire(&qp->base.lock);
	qp->base.state = NDXP_QP_CLOSING;
	qp->draining = true;
	if (qp->verbs.gone || qp->verbs.leaving)
		ofi_cancel_waiting(qp);
	ofi_submit(qp);
	ofi_check_drained(qp);
	/* no request of the consumer's follows, and the peer may be waiting to disconnect */
	if (!qp->broken)
		(void)ofi_ack_now(qp);
	ndxp_lock_release(&qp->base.lock);
}

void ofi_conn_cancel_initiator(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct ofi_qp *qp = conn->link != NULL ? conn->link->qp : NULL;
	bool hurry;

	if (qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	ofi_cancel_waiting(qp);
	ndxp_lock_release(&qp->base.lock);
	/* This thread may be late, too: acknowledge what has arrived at its own queue pairs, which
	 * may be the peer's, and read the completions of requests that have ended in time. */
	ofi_ncqs_acknowledge(conn->adapter);
	ofi_ncq_catch_up(conn->link->ncq);
	ndxp_lock_acquire(&qp->base.lock);
	hurry = qp->tx_native > 0 && conn->adapter->backend->limit_requests != NULL;
	if (ndxp_queue_outstanding(&qp->base.initiator) > 0 && !hurry)
		ofi_qp_break(qp, 0, "requests that the stack has taken did not end in time");
	ofi_check_drained(qp);
	ndxp_lock_release(&qp->base.lock);
	if (!hurry)
		return;
	ndxp_lock_acquire(&conn->link->ncq->lock);
	conn->adapter->backend->limit_requests(conn->link);
	ndxp_lock_release(&conn->link->ncq->lock);
}

void ofi_conn_send_disc(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct ofi_link *link = conn->link;
	int err = ENOTCONN;

	if (link != NULL) {
		ndxp_lock_acquire(&link->ncq->lock);
		err = ofi_link_send_ctrl(link, OFI_CTRL_DISC, 0, &link->disc_op);
		ndxp_lock_release(&link->ncq->lock);
	}
	if (err != 0)
		report_bits(conn, NDX_REPORT_ABORT, err, "the goodbye could not be sent");
}

static void end_conn(struct ofi_conn *conn)
{
	struct ofi_link *link = conn->link;

	if (link != NULL && link->qp != NULL) {
		ndxp_lock_acquire(&link->qp->base.lock);
		link->qp->base.state = NDXP_QP_DEAD;
		ndxp_lock_release(&link->qp->base.lock);
	}
	if (link != NULL)
		ofi_link_end(link);
	else
		report_bits(conn, NDX_REPORT_QUIET, 0, NULL);
}

void ofi_conn_finish(struct ndx_spi_conn *spi)
{
	end_conn(ofi_conn_of(spi));
}

void ofi_conn_abort(struct ndx_spi_conn *spi)
{
	end_conn(ofi_conn_of(spi));
}

enum ndx_status ofi_conn_detach(struct ndx_spi_conn *spi)
{
	struct ofi_link *link = ofi_conn_of(spi)->link;

	if (link == NULL || link->qp == NULL)
		return NDX_OK;
	ndxp_lock_acquire(&link->qp->base.lock);
	link->qp->base.state = NDXP_QP_DEAD;
	ndxp_lock_release(&link->qp->base.lock);
	return link->adapter->backend->detach(link);
}
