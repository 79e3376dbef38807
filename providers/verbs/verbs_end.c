/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mechanics of the end. rdma_cm reports the same disconnect for a goodbye, for an abort, and
 * for a process that was killed. So the provider also writes into the memory of a peer that is NDX:
 * when all requests of this end have ended, it writes GOODBYE into the peer's mailbox, and only
 * then calls rdma_disconnect(). An end that aborts writes ABORTED, if it can. An end that sees a
 * disconnect and finds its mailbox empty probes the peer by a write of its own: a killed process
 * has no queue pair any more that would answer. A peer that answers is alive, and could not write
 * GOODBYE because requests that wait for this end's receives are ahead of it. If such requests are
 * ahead of the probe, too, the peer's RNR answers to them prove that it is alive.
 *
 * The rdma_disconnect() of each side is its goodbye; that of the second side is the answer to the
 * first. When the two cross, both sides have to call it once more.
 */
#include <errno.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "verbs_goodbye.h"
#include "verbs_mailbox.h"
#include "verbs_ofi.h"
#include "verbs_ofi_end.h"
#include "verbs_wr.h"

#define PROBE_MS 1000 /* a dead peer fails requests in half of that time */
#define PROBE_STEP 100u
#define MOMENT_MS 100
#define MOMENTS_MS 300 /* the same for many queue pairs, whose RNR answers are counted together */
#define PROBED_STEP 5
#define QUIET_MS 2000 /* for the device to flush the canceled requests */
#define TELL_MS 5u    /* for the delivery of ABORTED */
#define DETACH_MS 50u /* for the delivery of the goodbye of a queue pair that is closed */

static void wait_for(struct verbs_conn *conn, enum verbs_wait what, uint32_t ms)
{
	conn->wait = what;
	ndxp_timer_set(conn->adapter->spi.loop, &conn->timer, ms);
}

static void wait_no_more(struct verbs_conn *conn)
{
	conn->wait = VERBS_WAIT_NONE;
	ndxp_timer_cancel(conn->adapter->spi.loop, &conn->timer);
}

/* Write a field of the peer's mailbox. 0, or errno. */
static int write_field(struct verbs_conn *conn, enum verbs_control which, enum verbs_field where)
{
	const struct verbs_ctrl_write write = verbs_mailbox_write(conn, where);
	struct verbs_qp *qp = conn->qp;
	int err = EBUSY;

	ndxp_lock_acquire(&qp->base.lock);
	/* a goodbye means that all requests before it have ended */
	if (which != VERBS_GOODBYE || ndxp_queue_outstanding(&qp->base.initiator) == 0)
		err = verbs_wr_post_control(qp, which,
		                            which == VERBS_KEEPALIVE ? &qp->noop_write : &write);
	ndxp_lock_release(&qp->base.lock);
	return err;
}

/* ---- becoming quiet ---- */

/* Nothing is outstanding: separate the connection from the queue pair. */
static void detach_qp(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;

	conn->qp = NULL;
	wait_no_more(conn);
	verbs_watch_end(conn);
	verbs_flush_watch(qp, false);
	ndxp_lock_acquire(&qp->base.lock);
	qp->quieting = false;
	qp->conn = NULL;
	ndxp_lock_release(&qp->base.lock);
	verbs_qp_bring_down(qp);
}

static void go_quiet(struct verbs_conn *conn)
{
	if (conn->qp != NULL)
		detach_qp(conn);
	conn->state = VERBS_CONN_OVER;
	verbs_conn_report(conn, NDX_REPORT_QUIET, 0, NULL);
}

/* Cancel all requests, and report QUIET when they have come back. */
static void end_now(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;

	if (verbs_flush_begin(qp)) {
		go_quiet(conn);
		return;
	}
	/*
	 * A device that is gone flushes nothing. A callback that closes the queue pair cannot wait
	 * for a busy device; without its queue pair the device accesses no memory.
	 */
	if (__atomic_load_n(&conn->adapter->removed, __ATOMIC_RELAXED) || ndxp_loop_is_hurried()) {
		verbs_qp_destroy_native(qp);
		go_quiet(conn);
		return;
	}
	if (qp->srq != NULL)
		wait_for(conn, VERBS_WAIT_RECEIVES, VERBS_SHARED_MS);
	else
		wait_for(conn, VERBS_WAIT_QUIET, QUIET_MS);
	verbs_flush_watch(qp, true);
	ndxp_lock_acquire(&qp->base.lock);
	qp->quieting = true;
	verbs_complete_check(qp);
	ndxp_lock_release(&qp->base.lock);
}

/* ---- aborting ---- */

/*
 * With ABORTED written the peer need not probe, and cannot take the disconnect for a goodbye. The
 * wait is short: the peer may be gone, or requests that wait for its receives may be ahead. Nothing
 * is written if either side has said goodbye, or if the peer is known to be gone: many connections
 * may have lost the same peer. True: ABORTED is in flight.
 */
static bool send_abort(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;
	bool broken;
	int err;

	if (qp == NULL || conn->state != VERBS_CONN_UP ||
	    (!conn->peer.is_ndx && conn->ofi == NULL) || conn->oob.on || conn->disc_sent ||
	    conn->peer_disconnected || conn->lost ||
	    __atomic_load_n(&conn->adapter->removed, __ATOMIC_RELAXED))
		return false;
	ndxp_lock_acquire(&qp->base.lock);
	broken = qp->broken;
	qp->base.state = NDXP_QP_DEAD;
	qp->draining = false;
	ndxp_lock_release(&qp->base.lock);
	if (broken)
		return false;
	err = conn->ofi != NULL ? verbs_ofi_write(conn, VERBS_ABORTED)
	                        : write_field(conn, VERBS_ABORTED, VERBS_FIELD_ABORTED);
	return err == 0 && verbs_flush_needs_control(qp, VERBS_ABORTED, TELL_MS);
}

/* ABORTED has arrived, or cannot. */
static void end_abort(struct verbs_conn *conn)
{
	wait_no_more(conn);
	if (conn->qp != NULL)
		(void)verbs_flush_begin(conn->qp);
	if (!conn->disc_sent) {
		conn->disc_sent = true;
		if (!conn->oob.on)
			(void)rdma_disconnect(conn->id);
	}
	if (conn->oob.on)
		verbs_host(conn->adapter)->oob_send(&conn->spi, NDX_OOB_ABORT);
	if (conn->qp == NULL)
		go_quiet(conn);
	else
		end_now(conn);
}

/* ---- goodbyes ---- */

void verbs_end_goodbye_lost(struct verbs_conn *conn)
{
	verbs_goodbye_send(conn, false);
}

/* The mailbox is empty: find out whether the peer is alive. */
static void probe_peer(struct verbs_conn *conn, enum verbs_control how, enum verbs_wait what)
{
	const int err = write_field(conn, how, VERBS_FIELD_PROBED);

	verbs_flush_watch(conn->qp, true);
	conn->probed_ms = 0;
	conn->not_ready = verbs_counters_read(conn->adapter, VERBS_NOT_READY);
	if (err == 0)
		wait_for(conn, what, PROBE_STEP);
	else
		verbs_conn_report(conn, NDX_REPORT_ABORT, err, "the peer left without a goodbye");
}

static void on_probe_answer(struct verbs_conn *conn, uint32_t done)
{
	if (conn->wait == VERBS_WAIT_ANSWER && (done & (1u << VERBS_KEEPALIVE))) {
		wait_for(conn, VERBS_WAIT_MOMENT, MOMENT_MS);
	} else if (conn->wait == VERBS_WAIT_PROBE && (done & (1u << VERBS_PROBE))) {
		wait_no_more(conn);
		verbs_goodbye_received(conn);
	}
}

void verbs_conn_oob_received(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	switch (message) {
	case NDX_OOB_GOODBYE:
		conn->peer_disconnected = true;
		verbs_goodbye_received(conn);
		break;
	case NDX_OOB_ABORT:
		verbs_conn_report(conn, NDX_REPORT_ABORT, ECONNABORTED,
		                  "the peer broke the connection");
		break;
	case NDX_OOB_LOST:
		verbs_conn_report(conn, NDX_REPORT_ABORT, ECONNRESET,
		                  "the out-of-band stream to the peer ended without a goodbye");
		break;
	}
}

void verbs_end_on_disconnected(struct verbs_conn *conn, int status)
{
	bool writes; /* the peer writes into the mailbox, and this end can read it */
	bool killed; /* the queue pair is being detached: it cannot probe any more */

	if (conn->peer_disconnected)
		return;
	if (status != 0) {
		verbs_conn_report(conn, NDX_REPORT_ABORT, -status,
		                  "the peer does not answer the goodbye");
		return;
	}
	conn->peer_disconnected = true;
	verbs_goodbye_set_peer_state(conn, VERBS_PEER_DISCONNECTED);
	if (conn->wait == VERBS_WAIT_ABORTED) { /* the peer does not read its mailbox any more */
		end_abort(conn);
		return;
	}
	killed = conn->qp != NULL && verbs_flush_has_begun(conn->qp);
	if (conn->ofi != NULL && conn->qp != NULL && !killed) {
		verbs_ofi_end_closed(conn);
		return;
	}
	writes = conn->peer.is_ndx && conn->qp != NULL;
	if (writes &&
	    verbs_mailbox_has(conn, VERBS_FIELD_ABORTED)) /* may be written behind a goodbye */
		verbs_conn_report(conn, NDX_REPORT_ABORT, ECONNABORTED,
		                  "the peer broke the connection");
	else if (!writes || killed || verbs_mailbox_has(conn, VERBS_FIELD_GOODBYE))
		verbs_goodbye_received(conn);
	else
		probe_peer(conn, VERBS_KEEPALIVE, VERBS_WAIT_ANSWER);
}

void verbs_end_on_work(void *arg)
{
	struct verbs_conn *conn = arg;
	struct verbs_qp *qp = conn->qp;
	uint32_t done;
	bool quiet;

	if (conn->dead || qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	done = conn->controls_done;
	conn->controls_done = 0;
	quiet = qp->quieting && verbs_qp_is_quiet(qp);
	ndxp_lock_release(&qp->base.lock);
	if ((done & (1u << VERBS_GOODBYE)) != 0 && conn->ofi != NULL) {
		verbs_ofi_end_goodbye_done(conn);
	} else if (done & (1u << VERBS_GOODBYE)) {
		conn->disc_without_goodbye = false;
		verbs_goodbye_send(conn, false);
	}
	if (conn->ofi != NULL)
		verbs_ofi_end_check(conn);
	on_probe_answer(conn, done);
	verbs_prove_on_done(conn, done);
	if (conn->wait == VERBS_WAIT_ABORTED && (done & (1u << VERBS_ABORTED)))
		end_abort(conn);
	else if (quiet)
		go_quiet(conn);
}

/* Has a peer sent RNR answers since the last check? Software RoCE counts them. */
static bool is_turned_away(struct verbs_conn *conn)
{
	const uint64_t before = conn->not_ready;

	conn->not_ready = verbs_counters_read(conn->adapter, VERBS_NOT_READY);
	return conn->not_ready != before;
}

/*
 * base.lock held: is a request ahead of the probe that may have to wait? A peer would have answered
 * other requests; an adapter does not show which request waits, so there each counts.
 */
static bool is_behind(const struct verbs_conn *conn)
{
	const enum verbs_control how =
		conn->wait == VERBS_WAIT_PROBE ? VERBS_PROBE : VERBS_KEEPALIVE;
	const struct ndxp_queue *q = &conn->qp->base.initiator;

	for (uint32_t i = q->head; (int32_t)(conn->qp->controls_at[how] - i) > 0; i++) {
		const struct verbs_req *req =
			(const struct verbs_req *)(const void *)ndxp_queue_at(q, i);

		if (!req->base.done && (req->needs_receive || !conn->adapter->soft_roce))
			return true;
	}
	return false;
}

/*
 * A probe with no request ahead is unanswered: the peer is gone. Behind requests that wait a probe
 * tells nothing; but an adapter would have failed those by now if the peer were gone. Software RoCE
 * retries without limit.
 */
static void on_probe_timeout(struct verbs_conn *conn)
{
	const bool turned_away = is_turned_away(conn);
	uint32_t limit = PROBE_MS;
	bool behind;

	ndxp_lock_acquire(&conn->qp->base.lock);
	behind = is_behind(conn);
	ndxp_lock_release(&conn->qp->base.lock);
	if (behind)
		limit += verbs_qp_patience();
	conn->probed_ms += PROBE_STEP;
	if (behind && turned_away && conn->probed_ms > MOMENTS_MS) {
		wait_no_more(conn);
		verbs_goodbye_received(conn);
	} else if (conn->probed_ms < limit) {
		wait_for(conn, conn->wait, PROBE_STEP);
	} else {
		wait_no_more(conn);
		if (behind && !conn->adapter->soft_roce)
			verbs_goodbye_received(conn);
		else
			verbs_conn_report(conn, NDX_REPORT_ABORT, 0,
			                  "the peer left without a goodbye");
	}
}

static bool is_broken(struct verbs_qp *qp)
{
	bool broken;

	ndxp_lock_acquire(&qp->base.lock);
	broken = qp->broken;
	ndxp_lock_release(&qp->base.lock);
	return broken;
}

/*
 * The peer has seen a disconnect and an empty mailbox: it will probe, and the queue pair has to
 * answer. A queue pair that has failed answers no probe.
 */
static bool may_be_asked(const struct verbs_conn *conn)
{
	if (!conn->disc_without_goodbye || ndxp_now_ns() >= conn->probe_until ||
	    is_broken(conn->qp))
		return false;
	return conn->ofi != NULL ? !verbs_ofi_has(conn, NDXP_RC_PROBED)
	                         : !verbs_mailbox_has(conn, VERBS_FIELD_PROBED);
}

/* Does this end wait to find out whether the peer's disconnect was a goodbye? */
static bool is_asking(const struct verbs_conn *conn)
{
	return conn->wait == VERBS_WAIT_ANSWER || conn->wait == VERBS_WAIT_MOMENT ||
	       conn->wait == VERBS_WAIT_PROBE;
}

void verbs_end_on_timer(void *arg)
{
	struct verbs_conn *conn = arg;

	switch (conn->wait) {
	case VERBS_WAIT_NONE:
		break;
	case VERBS_WAIT_MOMENT:
		probe_peer(conn, VERBS_PROBE, VERBS_WAIT_PROBE);
		break;
	case VERBS_WAIT_ANSWER:
	case VERBS_WAIT_PROBE:
		on_probe_timeout(conn);
		break;
	case VERBS_WAIT_PROBED:
		if (may_be_asked(conn))
			wait_for(conn, VERBS_WAIT_PROBED, PROBED_STEP);
		else
			end_now(conn);
		break;
	case VERBS_WAIT_ABORTED:
		end_abort(conn);
		break;
	case VERBS_WAIT_RECEIVES:
		if (verbs_flush_read(conn->qp))
			go_quiet(conn);
		else
			wait_for(conn, VERBS_WAIT_QUIET, QUIET_MS);
		break;
	case VERBS_WAIT_QUIET:
		log_error(0,
		          "the device does not return canceled requests in %d ms; the queue pair "
		          "is destroyed",
		          QUIET_MS);
		verbs_qp_destroy_native(conn->qp);
		go_quiet(conn);
		break;
	}
}

/* ---- what the core asks for ---- */

void verbs_conn_drain(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	struct verbs_qp *qp = conn->qp;
	bool waits;

	if (qp == NULL) {
		verbs_conn_report(conn, NDX_REPORT_DRAINED, 0, NULL);
		return;
	}
	ndxp_lock_acquire(&qp->base.lock);
	if (qp->base.state == NDXP_QP_UP)
		qp->base.state = NDXP_QP_CLOSING;
	qp->draining = true;
	verbs_wr_post_sweep(qp);
	ndxp_lock_release(&qp->base.lock);
	verbs_flush_watch(qp, true);
	ndxp_lock_acquire(&qp->base.lock);
	verbs_complete_check(qp);
	waits = ndxp_queue_outstanding(&qp->base.initiator) > 0;
	ndxp_lock_release(&qp->base.lock);
	if (waits && conn->ofi != NULL && conn->ofi->leaving)
		verbs_conn_cancel_initiator(spi);
}

/* The peer has closed its queue pair after its goodbye, so no request in flight will be
 * answered. */
void verbs_end_peer_closed(struct verbs_conn *conn)
{
	conn->peer_closed = true;
	verbs_conn_cancel_initiator(&conn->spi);
}

void verbs_conn_send_disc(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	if (conn->qp != NULL)
		verbs_flush_watch(conn->qp, true);
	if (conn->ofi != NULL && conn->qp != NULL) {
		verbs_ofi_end_say_goodbye(conn);
		return;
	}
	if (!conn->peer.is_ndx || conn->qp == NULL ||
	    write_field(conn, VERBS_GOODBYE, VERBS_FIELD_GOODBYE) != 0)
		verbs_goodbye_send(conn, true);
}

void verbs_conn_finish(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	verbs_watch_end(conn);
	conn->probe_until = ndxp_deadline(VERBS_PROBED_MS);
	if (conn->ofi != NULL && conn->id != NULL && !conn->disc_sent) {
		conn->disc_sent = true;
		(void)rdma_disconnect(conn->id); /* both ends have said goodbye */
	}
	if (conn->qp == NULL)
		go_quiet(conn);
	else if (may_be_asked(conn))
		wait_for(conn, VERBS_WAIT_PROBED, PROBED_STEP);
	else
		end_now(conn);
}

/* First ABORTED, then the queue pair, so that it does not answer the peer's probe, then the
 * disconnect. */
void verbs_conn_abort(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	wait_no_more(conn);
	verbs_watch_end(conn);
	if (!send_abort(conn)) {
		end_abort(conn);
		return;
	}
	wait_for(conn, VERBS_WAIT_ABORTED, TELL_MS);
	verbs_flush_watch(conn->qp, true);
}

/* Is the first `ms` of the detach not over? */
static bool may_wait(struct verbs_conn *conn, uint32_t ms)
{
	if (conn->detach_ns == 0)
		conn->detach_ns = ndxp_now_ns();
	return ndxp_now_ns() - conn->detach_ns < ms * NDXP_NS_PER_MS;
}

/*
 * NDX_PENDING while the goodbye is in flight, until the canceled requests have come back, while the
 * peer may probe, which is VERBS_PROBED_MS, and while this end probes. That usually takes
 * MOMENT_MS. But each of two probes may be answered at the last moment, after PROBE_MS, or
 * verbs_qp_patience() later behind own requests: 3.1 s, and 4.4 s if the peer disconnects just
 * before this end would have been done. The core does not wait for so long.
 */
enum ndx_status verbs_conn_detach(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	if (conn->qp == NULL)
		return NDX_OK;
	if (!conn->disc_sent && verbs_flush_needs_control(conn->qp, VERBS_GOODBYE, DETACH_MS) &&
	    may_wait(conn, DETACH_MS))
		return NDX_PENDING;
	if (!conn->disc_sent) {
		verbs_end_on_work(conn);
		verbs_goodbye_send(conn, conn->ofi == NULL || !conn->ofi->goodbye_done);
	}
	if (may_be_asked(conn) || is_asking(conn))
		return NDX_PENDING;
	if (!verbs_flush_begin(conn->qp)) {
		if (!ndxp_loop_is_hurried())
			return NDX_PENDING;
		return fail(NDX_E_DEVICE_BUSY, 0, "the device does not return requests in time");
	}
	detach_qp(conn);
	if (conn->peer_disconnected) /* whether it was a goodbye or not: no queue pair is left to
	                              * probe with
	                              */
		verbs_goodbye_received(conn);
	return NDX_OK;
}
