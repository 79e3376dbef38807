/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs_goodbye.h"

#include <errno.h>

#include <ndx/spi/system.h>
#include "verbs_ofi.h"

void verbs_goodbye_send(struct verbs_conn *conn, bool bare)
{
	if (conn->disc_sent)
		return;
	conn->disc_sent = true;
	if (conn->oob.on) {
		verbs_host(conn->adapter)->oob_send(&conn->spi, NDX_OOB_GOODBYE);
		return;
	}
	conn->disc_without_goodbye =
		bare && (conn->peer.is_ndx || conn->ofi != NULL) && !conn->peer_closed;
	conn->probe_until = ndxp_deadline(VERBS_PROBED_MS);
	if (rdma_disconnect(conn->id) != 0)
		verbs_conn_report(conn, NDX_REPORT_ABORT, errno, "the goodbye could not be sent");
	else if (conn->peer_reported)
		verbs_conn_report(conn, NDX_REPORT_DISC_ACKED, 0, NULL);
}

void verbs_goodbye_set_peer_state(struct verbs_conn *conn, enum verbs_peer_state how)
{
	if (conn->qp == NULL)
		return;
	ndxp_lock_acquire(&conn->qp->base.lock);
	conn->qp->peer_state = how;
	ndxp_lock_release(&conn->qp->base.lock);
}

void verbs_goodbye_received(struct verbs_conn *conn)
{
	uint32_t bits = NDX_REPORT_PEER_DISC;

	if (conn->peer_reported)
		return;
	conn->peer_reported = true;
	verbs_goodbye_set_peer_state(conn, VERBS_PEER_SAID_GOODBYE);
	if (conn->ofi != NULL && conn->ofi->goodbye_done && !conn->disc_sent) {
		bits |= NDX_REPORT_DISC_ACKED;
	} else if (conn->disc_sent && !conn->oob.on) {
		if (conn->id != NULL)
			(void)rdma_disconnect(conn->id); /* the two may have crossed */
		bits |= NDX_REPORT_DISC_ACKED;
	}
	verbs_conn_report(conn, bits, 0, NULL);
}

/*
 * A device cannot cancel single requests. They stay, and are flushed when the queue pair is
 * destroyed, at the very end. A request that finds its receive before then has arrived.
 */
void verbs_conn_cancel_initiator(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	struct verbs_qp *qp = conn->qp;
	bool broken = false;

	verbs_watch_end(conn);
	if (qp != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		qp->draining = false;
		broken = qp->broken;
		ndxp_lock_release(&qp->base.lock);
	}
	if (!broken) /* otherwise ABORT was reported already */
		verbs_conn_report(conn, NDX_REPORT_DRAINED, 0, NULL);
}
