/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanics of the end: drain, goodbye, finish, abort. The rules are the core's. */
#include "loop.h"

void loop_end_decouple(struct loop_conn *conn)
{
	loop_data_stop_waiting(conn);
	if (conn->qp == NULL)
		return;
	conn->qp->conn = NULL;
	conn->qp = NULL;
	/* the peer's send that waits for a receive of this queue pair now waits for the peer's
	 * disconnect */
	if (conn->peer != NULL && conn->peer->wait != LOOP_WAIT_NONE)
		loop_data_pump(conn->peer);
}

void loop_conn_drain(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	if (conn->state == LOOP_CONN_UP) {
		if (conn->qp != NULL)
			conn->qp->base.state = NDXP_QP_CLOSING;
		conn->draining = true;
		loop_end_check_drained(conn);
	}
	loop_switch_unlock(conn->adapter->sw);
}

void loop_conn_cancel_initiator(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	if (conn->state == LOOP_CONN_UP) {
		loop_data_stop_waiting(conn);
		if (conn->qp != NULL)
			loop_qp_cancel_initiator(conn->qp);
		conn->draining = true;
		loop_end_check_drained(conn);
	}
	loop_switch_unlock(conn->adapter->sw);
}

/*
 * A goodbye is delivered as soon as it is sent. Without a peer there is no goodbye to deliver:
 * either the core is about to see ABORT, or the core's timer ends the wait.
 */
void loop_conn_send_disc(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	if (conn->state == LOOP_CONN_UP && conn->peer != NULL) {
		loop_end_report(conn->peer, NDX_REPORT_PEER_DISC, NULL);
		loop_end_report(conn, NDX_REPORT_DISC_ACKED, NULL);
	}
	loop_switch_unlock(conn->adapter->sw);
}

/* Cancel the queue pair's requests, receives last, and separate it from the connection. */
static void flush_qp(struct loop_conn *conn)
{
	if (conn->qp == NULL)
		return;
	loop_qp_cancel_initiator(conn->qp);
	ndxp_queue_cancel(&conn->qp->base.receive, NDX_E_CANCELED);
	conn->qp->base.state = NDXP_QP_DEAD;
	loop_end_decouple(conn);
}

static void end_conn(struct loop_conn *conn)
{
	flush_qp(conn);
	loop_data_stop_waiting(conn);
	conn->draining = false;
	conn->state = LOOP_CONN_OVER;
	loop_end_report(conn, NDX_REPORT_QUIET, NULL);
}

void loop_conn_finish(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	/* the peer has both goodbyes, too, so it needs no more from this side */
	if (conn->peer != NULL) {
		conn->peer->peer = NULL;
		conn->peer = NULL;
	}
	end_conn(conn);
	loop_switch_unlock(conn->adapter->sw);
}

void loop_conn_abort(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	if (conn->state == LOOP_CONN_UP)
		loop_end_break(conn, NULL, "the peer aborted the connection");
	end_conn(conn);
	loop_switch_unlock(conn->adapter->sw);
}

enum ndx_status loop_conn_detach(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	flush_qp(conn);
	loop_switch_unlock(conn->adapter->sw);
	return NDX_OK;
}
