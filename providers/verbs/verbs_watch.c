/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a connection is up: sends that wait for the peer's receives, and a peer that is silent.
 *
 * An adapter gives up a peer that does not answer. Software RoCE must not do that: it takes an RNR
 * answer for no answer. So software RoCE is told to retry without limit, and this file gives the
 * peer up.
 */
#include <errno.h>

#include <ndx/spi/log.h>
#include "verbs_conn.h"
#include "verbs_wr.h"

#define WATCH_LEAST 10u
#define WATCH_MOST 250u
#define QUIET_PART 4u      /* of keepalive_ms: a peer that is quiet for this part is probed */
#define NO_PACKET_MS 1000u /* no packet comes in: 15 retries without an answer */
#define STUCK_MS 3000u     /* a request of few bytes does not end, whatever else comes in; ... */
#define IDLE_MS 1000u      /* between two checks of an idle queue pair */
#define BYTES_PER_MS 1024u /* ... and one with bytes may take longer by this rate */

enum verdict {
	FINE,
	RNR_EXPIRED,
	GONE,
	GOODBYE_LOST,
	PEER_CLOSED,
	BROKEN,
	SILENT,
};

static const struct {
	int native;
	const char *cause;
} verdicts[] = {
	[RNR_EXPIRED] = {ETIMEDOUT, "the peer posted no receive in no_receive_timeout_ms"},
	[GONE] = {ETIMEDOUT, "the peer does not answer"},
	[BROKEN] = {ECONNABORTED, "a request of the peer failed here"},
	[SILENT] = {ETIMEDOUT, "the peer is silent"},
};

static uint32_t watch_ms(const struct verbs_conn *conn)
{
	const struct ndx_qp_attr *attr = &conn->qp->base.spi.attr;
	uint32_t ms = WATCH_MOST;

	if (attr->no_receive_timeout_ms / 8 < ms)
		ms = attr->no_receive_timeout_ms / 8;
	if (attr->keepalive_ms != 0 && attr->keepalive_ms / 2 < ms)
		ms = attr->keepalive_ms / 2;
	return ms < WATCH_LEAST ? WATCH_LEAST : ms;
}

/* base.lock held: has a request waited too long for a receive of the peer? */
static bool is_rnr_expired(struct verbs_conn *conn, uint32_t ms)
{
	const struct ndxp_queue *q = &conn->qp->base.initiator;
	const uint32_t limit = conn->qp->base.spi.attr.no_receive_timeout_ms;
	const struct verbs_req *oldest;

	oldest = (const struct verbs_req *)(const void *)ndxp_queue_at(q, q->head);
	if (ndxp_queue_outstanding(q) == 0 || !oldest->needs_receive ||
	    conn->watched_head != q->head) {
		conn->watched_head = q->head;
		conn->watched_ms = 0;
		return false;
	}
	conn->watched_ms += ms;
	return limit != NDX_INFINITE && !conn->peer.has_srq && conn->watched_ms >= limit;
}

/* base.lock held: has a peer that sends often, and is not asked, been silent for too long? */
static bool is_unheard(struct verbs_conn *conn, uint32_t ms, uint32_t limit)
{
	const struct verbs_qp *qp = conn->qp;
	const uint32_t heard = qp->base.initiator.head + qp->base.receive.head;

	if ((conn->oob.policy & NDX_PEER_IS_HEARD) == 0 || qp->srq != NULL)
		return false;
	if (heard != conn->heard)
		conn->silent_ms = 0;
	else
		conn->silent_ms += ms;
	conn->heard = heard;
	return conn->silent_ms >= limit;
}

/* base.lock held: has nothing come from the peer for so long that a probe is due? */
static bool is_quiet(struct verbs_conn *conn, uint32_t ms, uint32_t limit)
{
	const struct verbs_qp *qp = conn->qp;
	const uint32_t heard = qp->base.initiator.head + qp->base.receive.head;

	if (heard != conn->heard || ndxp_queue_outstanding(&qp->base.initiator) > 0)
		conn->quiet_ms = 0;
	else
		conn->quiet_ms += ms;
	conn->heard = heard;
	return conn->quiet_ms >= limit / QUIET_PART;
}

/* base.lock held: has the peer of an idle connection been silent for too long? If not, probe the
 * peer. */
static bool is_silent(struct verbs_conn *conn, uint32_t ms)
{
	const uint32_t limit = conn->qp->base.spi.attr.keepalive_ms;
	const uint32_t asked = conn->qp->controls_out & (1u << VERBS_KEEPALIVE);

	if (limit == 0)
		return false;
	if ((conn->oob.policy & NDX_PEER_NOT_ASKED) != 0)
		return is_unheard(conn, ms, limit);
	/* a peer that has granted no memory for the probe may break the connection because of it */
	if (conn->qp->noop_write.length == 0)
		return false;
	if (asked == 0 || ndxp_queue_outstanding(&conn->qp->base.initiator) > 0)
		conn->silent_ms = 0;
	else
		conn->silent_ms += ms;
	if (asked != 0 || !is_quiet(conn, ms, limit))
		return conn->silent_ms >= limit;
	(void)verbs_wr_post_control(conn->qp, VERBS_KEEPALIVE, &conn->qp->noop_write);
	conn->quiet_ms = 0;
	return false;
}

/* ---- software RoCE ---- */

/* How long the oldest request may take if its peer is alive; NDX_INFINITE: is_rnr_expired() limits
 * it. */
static uint32_t longest_ms(const struct verbs_conn *conn)
{
	const struct ndxp_queue *q = &conn->qp->base.initiator;
	const struct verbs_initiator *oldest;
	uint64_t bytes = 0;

	if (ndxp_queue_outstanding(q) == 0) /* only this end's goodbye is outstanding */
		return conn->peer_disconnected ? verbs_qp_patience() : STUCK_MS;
	oldest = (const struct verbs_initiator *)(const void *)ndxp_queue_at(q, q->head);
	if (oldest->req.needs_receive)
		return NDX_INFINITE;
	for (uint32_t i = 0; i < oldest->count; i++)
		bytes += oldest->sge[i].length;
	return STUCK_MS + (uint32_t)(bytes / BYTES_PER_MS);
}

/* base.lock held: is the peer gone that would have to answer the oldest request? */
static bool is_gone(struct verbs_conn *conn, uint32_t ms)
{
	const struct ndxp_queue *q = &conn->qp->base.initiator;
	const bool goodbye = (conn->qp->controls_out & (1u << VERBS_GOODBYE)) != 0;
	uint64_t packets;

	if (!conn->adapter->soft_roce)
		return false;
	if ((ndxp_queue_outstanding(q) == 0 && !goodbye) || conn->stuck_head != q->head) {
		conn->stuck_head = q->head;
		conn->stuck_ms = 0;
		conn->no_packet_ms = 0;
		return false;
	}
	conn->stuck_ms += ms;
	packets = verbs_counters_read(conn->adapter, VERBS_PACKETS);
	if (packets == 0 || packets != conn->packets)
		conn->no_packet_ms = 0;
	else
		conn->no_packet_ms += ms;
	conn->packets = packets;
	return conn->no_packet_ms >= NO_PACKET_MS || conn->stuck_ms >= longest_ms(conn);
}

/* An adapter reports a queue pair that a request of the peer has broken. Software RoCE only flushes
 * the posted requests; without any, the queue pair's state has to be queried. */
static bool is_broken(struct verbs_conn *conn, uint32_t ms)
{
	struct verbs_qp *qp = conn->qp;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!conn->adapter->soft_roce || ndxp_queue_outstanding(&qp->base.initiator) > 0 ||
	    ndxp_queue_outstanding(&qp->base.receive) > 0 || qp->killed || qp->native == NULL)
		conn->idle_ms = 0;
	else
		conn->idle_ms += ms;
	if (conn->idle_ms < IDLE_MS)
		return false;
	conn->idle_ms = 0;
	return ibv_query_qp(qp->native, &attr, IBV_QP_STATE, &init) == 0 &&
	       attr.qp_state == IBV_QPS_ERR;
}

/* ---- the timer ---- */

/* base.lock held: the verdict about the connection. */
static enum verdict check_conn(struct verbs_conn *conn, uint32_t ms)
{
	struct verbs_qp *qp = conn->qp;
	const bool rnr_expired = is_rnr_expired(conn, ms) && !conn->peer_disconnected;
	const bool gone = is_gone(conn, ms);
	const bool silent = is_silent(conn, ms);

	qp->rnr_expired = (rnr_expired || gone) && !conn->peer_disconnected;
	verbs_wr_post_sweep(qp);
	if (rnr_expired)
		return RNR_EXPIRED;
	if (gone && conn->peer_disconnected && ndxp_queue_outstanding(&qp->base.initiator) == 0)
		return GOODBYE_LOST;
	if (gone && qp->peer_state == VERBS_PEER_SAID_GOODBYE && qp->draining)
		return PEER_CLOSED;
	if (gone)
		return GONE;
	if (is_broken(conn, ms))
		return BROKEN;
	return silent ? SILENT : FINE;
}

/* Log the figures behind the verdict. */
static void log_verdict(const struct verbs_conn *conn, enum verdict verdict)
{
	const struct ndxp_queue *q = &conn->qp->base.initiator;

	log_warn(verdicts[verdict].native,
	         "verbs:%s: queue pair %u is given up: %s; %u requests in flight, the oldest waits "
	         "for %u ms (%u ms for a receive), %u ms without a packet to the device, "
	         "%u ms without an answer to keepalive",
	         conn->adapter->options.device, conn->qp->native->qp_num, verdicts[verdict].cause,
	         ndxp_queue_outstanding(q), conn->stuck_ms, conn->watched_ms, conn->no_packet_ms,
	         conn->silent_ms);
}

void verbs_watch_on_timer(void *arg)
{
	struct verbs_conn *conn = arg;
	struct verbs_qp *qp = conn->qp;
	enum verdict verdict;
	uint32_t ms;

	if (qp == NULL)
		return;
	ms = watch_ms(conn);
	/* unsignaled successes raise no event, and software RoCE may raise none for failures:
	 * poll */
	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	verdict = check_conn(conn, ms);
	ndxp_lock_release(&qp->base.lock);
	switch (verdict) {
	case FINE:
		ndxp_timer_set(conn->adapter->spi.loop, &conn->watchdog, ms);
		break;
	case GOODBYE_LOST:
		verbs_end_goodbye_lost(conn);
		break;
	case PEER_CLOSED:
		verbs_end_peer_closed(conn);
		break;
	case RNR_EXPIRED:
	case GONE:
	case BROKEN:
	case SILENT:
		log_verdict(conn, verdict);
		conn->lost = true;
		verbs_host(conn->adapter)
			->report(&conn->spi, NDX_REPORT_ABORT, verdicts[verdict].native,
		                 verdicts[verdict].cause);
		break;
	}
}

void verbs_watch_begin(struct verbs_conn *conn)
{
	conn->watched_ms = 0;
	conn->silent_ms = 0;
	conn->quiet_ms = 0;
	conn->stuck_ms = 0;
	conn->no_packet_ms = 0;
	conn->idle_ms = 0;
	ndxp_timer_set(conn->adapter->spi.loop, &conn->watchdog, watch_ms(conn));
}
