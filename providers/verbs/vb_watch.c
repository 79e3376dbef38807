/* SPDX-License-Identifier: BSD-2-Clause */
/* While a connection is up: sends that wait for the peer's receives, and a peer that is silent. */
#include <errno.h>

#include "vb.h"

#define WATCH_LEAST 10u
#define WATCH_MOST 250u

static void report(struct vb_conn *conn, int native, const char *cause)
{
	vb_host(conn->adapter)->report(&conn->spi, NDX_REPORT_ABORT, native, cause);
}

static uint32_t watch_ms(const struct vb_conn *conn)
{
	const struct ndx_qp_attr *attr = &conn->qp->base.spi.attr;
	uint32_t ms = WATCH_MOST;

	if (attr->no_receive_timeout_ms / 8 < ms)
		ms = attr->no_receive_timeout_ms / 8;
	if (attr->keepalive_ms != 0 && attr->keepalive_ms / 2 < ms)
		ms = attr->keepalive_ms / 2;
	return ms < WATCH_LEAST ? WATCH_LEAST : ms;
}

/* Under base.lock: has a request waited too long for a receive of the peer's? */
static bool is_late(struct vb_conn *conn, uint32_t ms)
{
	const struct base_queue *q = &conn->qp->base.initiator;
	const uint32_t limit = conn->qp->base.spi.attr.no_receive_timeout_ms;
	const struct vb_req *oldest;

	oldest = (const struct vb_req *)(const void *)base_queue_at(q, q->head);
	if (base_queue_outstanding(q) == 0 || !oldest->needs_receive ||
	    conn->watched_head != q->head) {
		conn->watched_head = q->head;
		conn->watched_ms = 0;
		return false;
	}
	conn->watched_ms += ms;
	return limit != NDX_INFINITE && !conn->peer.has_srq && conn->watched_ms >= limit;
}

/* Under base.lock: is a peer that has nothing else to do silent for too long? Else it is asked. */
static bool is_silent(struct vb_conn *conn, uint32_t ms)
{
	static const struct vb_note nothing;
	const uint32_t limit = conn->qp->base.spi.attr.keepalive_ms;
	const uint32_t asked = conn->qp->controls_out & (1u << VB_KEEPALIVE);

	if (limit == 0)
		return false;
	if (asked == 0 || base_queue_outstanding(&conn->qp->base.initiator) > 0)
		conn->silent_ms = 0;
	else
		conn->silent_ms += ms;
	if (asked == 0)
		(void)vb_post_control(conn->qp, VB_KEEPALIVE, &nothing);
	return conn->silent_ms >= limit;
}

void vb_watch_on_timer(void *arg)
{
	struct vb_conn *conn = arg;
	struct vb_qp *qp = conn->qp;
	uint32_t ms;
	bool silent;
	bool late;

	if (qp == NULL)
		return;
	ms = watch_ms(conn);
	base_lock_acquire(&qp->base.lock);
	late = is_late(conn, ms) && !conn->peer_said;
	qp->late = late;
	silent = is_silent(conn, ms);
	base_lock_release(&qp->base.lock);
	if (late)
		report(conn, IBV_WC_RNR_RETRY_EXC_ERR, "the peer posted no receive in time");
	else if (silent)
		report(conn, ETIMEDOUT, "the peer is silent");
	else
		base_timer_set(conn->adapter->spi.loop, &conn->watchdog, ms);
}

void vb_watch_begin(struct vb_conn *conn)
{
	conn->watched_ms = 0;
	conn->silent_ms = 0;
	base_timer_set(conn->adapter->spi.loop, &conn->watchdog, watch_ms(conn));
}

void vb_watch_end(struct vb_conn *conn)
{
	base_timer_cancel(conn->adapter->spi.loop, &conn->watchdog);
}
