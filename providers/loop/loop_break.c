/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection breaks, and the reports to the core. */
#include "loop.h"

void loop_data_stop_waiting(struct loop_conn *conn)
{
	ndxp_list_remove(&conn->wait_node);
	conn->wait = LOOP_WAIT_NONE;
	conn->wait_since_ns = 0;
}

void loop_end_report(struct loop_conn *conn, uint32_t bits, const char *cause)
{
	conn->adapter->spi.host->report(&conn->spi, bits, 0, cause);
}

void loop_end_check_drained(struct loop_conn *conn)
{
	if (!conn->draining)
		return;
	if (conn->qp != NULL && ndxp_queue_outstanding(&conn->qp->base.initiator) > 0)
		return;
	conn->draining = false;
	loop_end_report(conn, NDX_REPORT_DRAINED, NULL);
}

/* Stop this side: no data moves any more, and posts wait in order until conn_abort cancels them. */
static void stop_conn(struct loop_conn *conn, const char *cause)
{
	conn->state = LOOP_CONN_BROKEN;
	conn->peer = NULL;
	conn->draining = false;
	loop_data_stop_waiting(conn);
	if (conn->qp != NULL)
		conn->qp->base.state = NDXP_QP_CLOSING;
	if (cause != NULL)
		loop_end_report(conn, NDX_REPORT_ABORT, cause);
}

void loop_end_break(struct loop_conn *conn, const char *own_cause, const char *peers_cause)
{
	struct loop_conn *peer = conn->peer;

	stop_conn(conn, own_cause);
	if (peer != NULL)
		stop_conn(peer, peers_cause);
}
