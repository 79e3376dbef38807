/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs_ofi_end.h"

#include <errno.h>

#include <ndx/spi/system.h>
#include "verbs_goodbye.h"
#include "verbs_ofi.h"

#define LOOK_LEAST 2u  /* ms between two looks for the goodbye: at first, ... */
#define LOOK_MOST 50u  /* ... and when nothing has come for long */
#define CAUSE_MS 100u  /* for the cause of a failure behind the peer's disconnect, ... */
#define CAUSE_STEP 16u /* ... in looks of at most this distance */

static void look_in(struct verbs_conn *conn, uint32_t ms)
{
	conn->ofi->look_ms = ms;
	ndxp_timer_set(conn->adapter->spi.loop, &conn->ofi->look, ms);
}

/* The peer closes its queue pair, posts no receive any more, and waits for this end's goodbye. */
static void on_ofi_leaving(struct verbs_conn *conn)
{
	bool draining;

	conn->ofi->leaving = true;
	ndxp_lock_acquire(&conn->qp->base.lock);
	draining = conn->qp->draining;
	ndxp_lock_release(&conn->qp->base.lock);
	if (draining)
		verbs_conn_cancel_initiator(&conn->spi);
}

void verbs_ofi_end_check(struct verbs_conn *conn)
{
	const uint64_t goodbye =
		conn->qp != NULL && conn->state == VERBS_CONN_UP ? verbs_ofi_goodbye(conn) : 0;

	if (goodbye == 0)
		return;
	verbs_goodbye_received(conn);
	if ((goodbye & NDXP_RC_LEAVING) != 0 && !conn->ofi->leaving)
		on_ofi_leaving(conn);
}

static bool has_requests(struct verbs_qp *qp)
{
	bool any;

	ndxp_lock_acquire(&qp->base.lock);
	any = ndxp_queue_outstanding(&qp->base.initiator) > 0;
	ndxp_lock_release(&qp->base.lock);
	return any;
}

/*
 * Both may have said goodbye; or the peer has; or this end had to disconnect without a goodbye, and
 * the peer has found it alive. In all other cases the peer has aborted. The disconnect may overtake
 * the completion with the cause, so requests in flight get a moment.
 */
void verbs_ofi_end_closed(struct verbs_conn *conn)
{
	const uint32_t next = conn->ofi->look_ms * 2;

	verbs_qp_poll(conn->qp);
	verbs_ofi_end_check(conn);
	if (conn->peer_reported)
		return;
	if (conn->ofi->cut_ns == 0)
		conn->ofi->cut_ns = ndxp_deadline(CAUSE_MS);
	if (conn->disc_sent && verbs_ofi_has(conn, NDXP_RC_PROBED))
		verbs_goodbye_received(conn);
	else if (has_requests(conn->qp) && ndxp_now_ns() < conn->ofi->cut_ns)
		look_in(conn, next < CAUSE_STEP ? next : CAUSE_STEP);
	else
		verbs_conn_report(conn, NDX_REPORT_ABORT, ECONNABORTED,
		                  "the peer closed the link without a goodbye");
}

static void on_look(void *arg)
{
	struct verbs_conn *conn = arg;
	uint32_t next = conn->ofi->look_ms * 2;

	if (conn->dead || conn->qp == NULL || conn->state != VERBS_CONN_UP)
		return;
	if (conn->ofi->cut_ns != 0) {
		if (!conn->peer_reported)
			verbs_ofi_end_closed(conn);
		return;
	}
	verbs_qp_poll(conn->qp);
	verbs_ofi_end_check(conn);
	if (conn->ofi->goodbye_done)
		verbs_ofi_ring(conn);
	look_in(conn, next < LOOK_MOST ? next : LOOK_MOST);
}

void verbs_ofi_end_look(struct verbs_conn *conn)
{
	ndxp_timer_cancel(conn->adapter->spi.loop, &conn->ofi->look);
	conn->ofi->look = (struct ndxp_timer){.fn = on_look, .arg = conn};
	look_in(conn, LOOK_LEAST);
}

void verbs_ofi_end_goodbye_done(struct verbs_conn *conn)
{
	conn->ofi->goodbye_done = true;
	if (conn->peer_reported) {
		verbs_conn_report(conn, NDX_REPORT_DISC_ACKED, 0, NULL);
		return;
	}
	verbs_ofi_ring(conn);
	look_in(conn, LOOK_LEAST);
}

void verbs_ofi_end_say_goodbye(struct verbs_conn *conn)
{
	if (conn->peer_disconnected)
		verbs_goodbye_send(conn, false);
	else if (verbs_ofi_write(conn, VERBS_GOODBYE) != 0)
		verbs_goodbye_send(conn, true);
}
