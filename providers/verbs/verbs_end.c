/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mechanics of the end. rdma_cm's disconnect is the same for a goodbye, an abort and a process that
 * was killed. So an NDX peer is also told in memory: when all our requests have ended, a word is
 * written into its mailbox, and only then rdma_disconnect is called. Who aborts writes another
 * word, if it can. Who hears of a disconnect and finds no word asks by a write of its own: an end
 * that was killed has no queue pair any more that would answer. One that answers is alive and could
 * not send the word: requests that wait for our receives stand before it. If such requests stand
 * before our question as well, that they are turned away is the answer.
 *
 * Either side's rdma_disconnect is its goodbye; that of the second is the answer to the first. When
 * two cross, both have to call it once more.
 */
#include <errno.h>
#include <sched.h>

#include "base_linux.h"
#include "base_log.h"
#include "verbs_mailbox.h"
#include "verbs_wr.h"

#define PROBE_MS 1000 /* a dead peer fails requests in half of that */
#define ASKED_STEP 100u
#define MOMENT_MS 100
#define MOMENTS_MS 300 /* likewise, for many queue pairs: their requests are counted together */
/* So we are there for the peer's probe for longer than it waits, if nothing stands before it. */
#define PROBED_MS 1300
#define PROBED_STEP 5
#define QUIET_MS 2000 /* for the device to hand back what was cancelled */
#define KILL_MS 50u   /* we wait for that in place */
#define TELL_MS 5u    /* likewise, for the word that this is no goodbye */
#define SHARED_MS 5u  /* for a receive that a message was being written to */

static void report(struct verbs_conn *conn, uint32_t bits, int native, const char *cause)
{
	verbs_host(conn->adapter)->report(&conn->spi, bits, native, cause);
}

static void wait_for(struct verbs_conn *conn, enum verbs_wait what, uint32_t ms)
{
	conn->wait = what;
	base_timer_set(conn->adapter->spi.loop, &conn->timer, ms);
}

static void wait_no_more(struct verbs_conn *conn)
{
	conn->wait = VERBS_WAIT_NONE;
	base_timer_cancel(conn->adapter->spi.loop, &conn->timer);
}

/* Write into the peer's mailbox. 0, or errno. */
static int write_word(struct verbs_conn *conn, enum verbs_control which, enum verbs_word where)
{
	const struct verbs_ctrl_write write = verbs_mailbox_write(conn, where);
	struct verbs_qp *qp = conn->qp;
	int err = EBUSY;

	base_lock_acquire(&qp->base.lock);
	/* A goodbye says that all before it has ended. */
	if (which != VERBS_GOODBYE || base_queue_outstanding(&qp->base.initiator) == 0)
		err = verbs_wr_post_control(qp, which,
		                            which == VERBS_KEEPALIVE ? &qp->touch : &write);
	base_lock_release(&qp->base.lock);
	return err;
}

static void watch(struct verbs_qp *qp, bool on)
{
	if (qp->attended == on)
		return;
	qp->attended = on;
	verbs_cq_watch(qp->initiator_cq, on);
	verbs_cq_watch(qp->receive_cq, on);
}

/* The end waits for what completes from now on. */
static void attend(struct verbs_qp *qp)
{
	watch(qp, true);
	verbs_cq_attend(qp->initiator_cq);
	if (qp->receive_cq != qp->initiator_cq)
		verbs_cq_attend(qp->receive_cq);
}

/* ---- going quiet ---- */

/* Nothing is outstanding: part from the queue pair. */
static void part(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;

	conn->qp = NULL;
	wait_no_more(conn);
	verbs_watch_end(conn);
	watch(qp, false);
	base_lock_acquire(&qp->base.lock);
	qp->quieting = false;
	qp->conn = NULL;
	base_lock_release(&qp->base.lock);
	verbs_qp_bring_down(qp);
}

static void go_quiet(struct verbs_conn *conn)
{
	if (conn->qp != NULL)
		part(conn);
	conn->state = VERBS_CONN_OVER;
	report(conn, NDX_REPORT_QUIET, 0, NULL);
}

/*
 * True if nothing is outstanding any more. Mostly the device is done at once. Whether a message has
 * begun to come into a receive of a shared queue is not known: reset at once, the queue pair would
 * take it along. (There is an event for that, but not on every device.)
 */
static bool kill_qp(struct verbs_qp *qp)
{
	const uint64_t deadline = base_deadline(KILL_MS);
	const uint64_t settled = qp->srq != NULL ? base_deadline(SHARED_MS) : 0;
	bool quiet = false;
	uint64_t now;

	base_lock_acquire(&qp->base.lock);
	verbs_qp_kill(qp);
	base_lock_release(&qp->base.lock);
	do {
		verbs_qp_poll(qp);
		base_lock_acquire(&qp->base.lock);
		quiet = verbs_qp_is_quiet(qp);
		base_lock_release(&qp->base.lock);
		now = base_now_ns();
		if (!quiet) /* the device may be software, and need the processor */
			(void)sched_yield();
	} while ((!quiet && now < deadline) || now < settled);
	return quiet;
}

/* Cancel what there is; go quiet when it has come back. */
static void end_now(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;

	if (kill_qp(qp)) {
		go_quiet(conn);
		return;
	}
	/*
	 * A device that is gone hands back nothing. A callback that closes the queue pair cannot
	 * wait for a busy device; without its queue pair the device accesses no memory.
	 */
	if (__atomic_load_n(&conn->adapter->removed, __ATOMIC_RELAXED) || base_loop_is_hurried()) {
		verbs_qp_destroy_native(qp);
		go_quiet(conn);
		return;
	}
	wait_for(conn, VERBS_WAIT_QUIET, QUIET_MS);
	attend(qp);
	base_lock_acquire(&qp->base.lock);
	qp->quieting = true;
	verbs_complete_check(qp);
	base_lock_release(&qp->base.lock);
}

/* ---- goodbyes ---- */

/* Ours: a request to disconnect, or the answer to the peer's. */
static void say(struct verbs_conn *conn, bool bare)
{
	if (conn->disc_said)
		return;
	conn->disc_said = true;
	if (conn->oob.on) {
		verbs_host(conn->adapter)->oob_send(&conn->spi, NDX_OOB_GOODBYE);
		return;
	}
	conn->disc_bare = bare && conn->peer.is_ndx && !conn->peer_closed;
	conn->bare_until = base_deadline(PROBED_MS);
	if (rdma_disconnect(conn->id) != 0)
		report(conn, NDX_REPORT_ABORT, errno, "the goodbye could not be sent");
	else if (conn->peer_reported)
		report(conn, NDX_REPORT_DISC_ACKED, 0, NULL);
}

void verbs_end_unheard(struct verbs_conn *conn)
{
	say(conn, false);
}

/* That the peer disconnected, or that it meant well by it, is now known to the data path. */
static void set_peer_state(struct verbs_conn *conn, enum verbs_peer_state how)
{
	if (conn->qp == NULL)
		return;
	base_lock_acquire(&conn->qp->base.lock);
	conn->qp->peer_state = how;
	base_lock_release(&conn->qp->base.lock);
}

/* The peer's, which is also the answer to ours if we were first, or at the same time. */
static void heard(struct verbs_conn *conn)
{
	uint32_t bits = NDX_REPORT_PEER_DISC;

	if (conn->peer_reported)
		return;
	conn->peer_reported = true;
	set_peer_state(conn, VERBS_PEER_SAID_GOODBYE);
	if (conn->disc_said && !conn->oob.on) {
		if (conn->id != NULL)
			(void)rdma_disconnect(conn->id); /* they may have crossed */
		bits |= NDX_REPORT_DISC_ACKED;
	}
	report(conn, bits, 0, NULL);
}

/* No word: is there anybody? */
static void ask(struct verbs_conn *conn, enum verbs_control how, enum verbs_wait what)
{
	const int err = write_word(conn, how, VERBS_WORD_PROBED);

	attend(conn->qp);
	conn->asked_ms = 0;
	conn->not_ready = verbs_counters_read(conn->adapter, VERBS_NOT_READY);
	if (err == 0)
		wait_for(conn, what, ASKED_STEP);
	else
		report(conn, NDX_REPORT_ABORT, err, "the peer left without a goodbye");
}

static void answered(struct verbs_conn *conn, uint32_t done)
{
	if (conn->wait == VERBS_WAIT_ANSWER && (done & (1u << VERBS_KEEPALIVE))) {
		wait_for(conn, VERBS_WAIT_MOMENT, MOMENT_MS);
	} else if (conn->wait == VERBS_WAIT_PROBE && (done & (1u << VERBS_PROBE))) {
		wait_no_more(conn);
		heard(conn);
	}
}

void verbs_conn_oob_received(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	switch (message) {
	case NDX_OOB_GOODBYE:
		conn->peer_said = true;
		heard(conn);
		break;
	case NDX_OOB_ABORT:
		report(conn, NDX_REPORT_ABORT, ECONNABORTED, "the peer broke the connection");
		break;
	case NDX_OOB_LOST:
		report(conn, NDX_REPORT_ABORT, ECONNRESET,
		       "the out-of-band stream to the peer ended without a goodbye");
		break;
	}
}

void verbs_end_on_disconnected(struct verbs_conn *conn, int status)
{
	bool writes; /* words, and we can read them */

	if (conn->peer_said)
		return;
	if (status != 0) {
		report(conn, NDX_REPORT_ABORT, -status, "the peer does not answer the goodbye");
		return;
	}
	conn->peer_said = true;
	set_peer_state(conn, VERBS_PEER_DISCONNECTED);
	writes = conn->peer.is_ndx && conn->qp != NULL;
	if (writes && verbs_mailbox_has(conn, VERBS_WORD_ABORTED)) /* perhaps behind a goodbye */
		report(conn, NDX_REPORT_ABORT, ECONNABORTED, "the peer broke the connection");
	else if (!writes || verbs_mailbox_has(conn, VERBS_WORD_GOODBYE))
		heard(conn);
	else
		ask(conn, VERBS_KEEPALIVE, VERBS_WAIT_ANSWER);
}

void verbs_end_on_work(void *arg)
{
	struct verbs_conn *conn = arg;
	struct verbs_qp *qp = conn->qp;
	uint32_t done;
	bool quiet;

	if (conn->dead || qp == NULL)
		return;
	base_lock_acquire(&qp->base.lock);
	done = conn->controls_done;
	conn->controls_done = 0;
	quiet = qp->quieting && verbs_qp_is_quiet(qp);
	base_lock_release(&qp->base.lock);
	if (done & (1u << VERBS_GOODBYE)) {
		conn->disc_bare = false;
		say(conn, false);
	}
	answered(conn, done);
	if (quiet)
		go_quiet(conn);
}

/* Does somebody answer, since we last looked, that he has no receive yet? Software RoCE counts. */
static bool is_turned_away(struct verbs_conn *conn)
{
	const uint64_t before = conn->not_ready;

	conn->not_ready = verbs_counters_read(conn->adapter, VERBS_NOT_READY);
	return conn->not_ready != before;
}

/*
 * base.lock held: does a request stand before our question that may have to wait? Others the peer
 * would have answered, but an adapter tells of them all.
 */
static bool is_behind(const struct verbs_conn *conn)
{
	const enum verbs_control how =
		conn->wait == VERBS_WAIT_PROBE ? VERBS_PROBE : VERBS_KEEPALIVE;
	const struct base_queue *q = &conn->qp->base.initiator;

	for (uint32_t i = q->head; (int32_t)(conn->qp->controls_at[how] - i) > 0; i++) {
		const struct verbs_req *req =
			(const struct verbs_req *)(const void *)base_queue_at(q, i);

		if (!req->base.done && (req->needs_receive || !conn->adapter->soft_roce))
			return true;
	}
	return false;
}

/*
 * With no request before it, our question is unanswered: there is nobody. Behind requests that wait
 * it cannot be asked; but if there were nobody, an adapter would have given them up in its time.
 * Software RoCE tries for ever.
 */
static void unanswered(struct verbs_conn *conn)
{
	const bool turned_away = is_turned_away(conn);
	uint32_t limit = PROBE_MS;
	bool behind;

	base_lock_acquire(&conn->qp->base.lock);
	behind = is_behind(conn);
	base_lock_release(&conn->qp->base.lock);
	if (behind)
		limit += verbs_qp_patience();
	conn->asked_ms += ASKED_STEP;
	if (behind && turned_away && conn->asked_ms > MOMENTS_MS) {
		wait_no_more(conn);
		heard(conn);
	} else if (conn->asked_ms < limit) {
		wait_for(conn, conn->wait, ASKED_STEP);
	} else {
		wait_no_more(conn);
		if (behind && !conn->adapter->soft_roce)
			heard(conn);
		else
			report(conn, NDX_REPORT_ABORT, 0, "the peer left without a goodbye");
	}
}

static bool is_broken(struct verbs_qp *qp)
{
	bool broken;

	base_lock_acquire(&qp->base.lock);
	broken = qp->broken;
	base_lock_release(&qp->base.lock);
	return broken;
}

/*
 * The peer heard a disconnect without a word: the peer asks, and the queue pair has to answer. A
 * queue pair that has failed answers nobody.
 */
static bool may_be_asked(const struct verbs_conn *conn)
{
	return conn->disc_bare && !verbs_mailbox_has(conn, VERBS_WORD_PROBED) &&
	       base_now_ns() < conn->bare_until && !is_broken(conn->qp);
}

/* Whether the peer, which has disconnected, meant well by it is about to be known. */
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
		ask(conn, VERBS_PROBE, VERBS_WAIT_PROBE);
		break;
	case VERBS_WAIT_ANSWER:
	case VERBS_WAIT_PROBE:
		unanswered(conn);
		break;
	case VERBS_WAIT_PROBED:
		if (may_be_asked(conn))
			wait_for(conn, VERBS_WAIT_PROBED, PROBED_STEP);
		else
			end_now(conn);
		break;
	case VERBS_WAIT_QUIET:
		log_error(0,
		          "the device does not hand back cancelled requests in %d ms; the queue "
		          "pair is destroyed",
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

	if (qp == NULL) {
		report(conn, NDX_REPORT_DRAINED, 0, NULL);
		return;
	}
	base_lock_acquire(&qp->base.lock);
	if (qp->base.state == BASE_QP_UP)
		qp->base.state = BASE_QP_CLOSING;
	qp->draining = true;
	verbs_wr_post_sweep(qp);
	base_lock_release(&qp->base.lock);
	attend(qp);
	base_lock_acquire(&qp->base.lock);
	verbs_complete_check(qp);
	base_lock_release(&qp->base.lock);
}

/*
 * A device cannot take single requests back. They stay, and come back cancelled when the queue pair
 * goes, at the very end; one that still finds its receive until then has arrived.
 */
void verbs_conn_cancel_initiator(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	struct verbs_qp *qp = conn->qp;
	bool broken = false;

	verbs_watch_end(conn);
	if (qp != NULL) {
		base_lock_acquire(&qp->base.lock);
		qp->draining = false;
		broken = qp->broken;
		base_lock_release(&qp->base.lock);
	}
	if (!broken) /* else the abort is reported already */
		report(conn, NDX_REPORT_DRAINED, 0, NULL);
}

/* After its goodbye the peer has closed its queue pair: nobody will answer what is under way. */
void verbs_end_peer_closed(struct verbs_conn *conn)
{
	conn->peer_closed = true;
	verbs_conn_cancel_initiator(&conn->spi);
}

void verbs_conn_send_disc(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	if (conn->qp != NULL)
		attend(conn->qp);
	if (!conn->peer.is_ndx || conn->qp == NULL ||
	    write_word(conn, VERBS_GOODBYE, VERBS_WORD_GOODBYE) != 0)
		say(conn, true);
}

void verbs_conn_finish(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	verbs_watch_end(conn);
	conn->bare_until = base_deadline(PROBED_MS);
	if (conn->qp == NULL)
		go_quiet(conn);
	else if (may_be_asked(conn))
		wait_for(conn, VERBS_WAIT_PROBED, PROBED_STEP);
	else
		end_now(conn);
}

/* What was posted is on its way: it should not go down with the queue pair. */
static void await_control(struct verbs_qp *qp, enum verbs_control which, uint32_t ms)
{
	const uint64_t deadline = base_deadline(ms);
	bool under_way;

	do {
		verbs_qp_poll(qp);
		base_lock_acquire(&qp->base.lock);
		under_way = (qp->controls_out & (1u << which)) != 0;
		base_lock_release(&qp->base.lock);
		if (under_way)
			(void)sched_yield();
	} while (under_way && base_now_ns() < deadline);
}

/*
 * So the peer need not ask, and cannot take it for a goodbye. Not for long: it may be gone, or the
 * word stands behind requests that wait for its receives. Not at all if either side has said
 * goodbye, or there is nobody: many connections may have lost the same peer.
 */
static void tell_abort(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;
	bool broken;

	if (qp == NULL || conn->state != VERBS_CONN_UP || !conn->peer.is_ndx || conn->oob.on ||
	    conn->disc_said || conn->peer_said || conn->lost ||
	    __atomic_load_n(&conn->adapter->removed, __ATOMIC_RELAXED))
		return;
	base_lock_acquire(&qp->base.lock);
	broken = qp->broken;
	qp->base.state = BASE_QP_DEAD;
	qp->draining = false;
	base_lock_release(&qp->base.lock);
	if (!broken && write_word(conn, VERBS_ABORTED, VERBS_WORD_ABORTED) == 0)
		await_control(qp, VERBS_ABORTED, TELL_MS);
}

/* The word, then the queue pair, so that it does not answer the peer's probe; then the disconnect.
 */
void verbs_conn_abort(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	wait_no_more(conn);
	verbs_watch_end(conn);
	tell_abort(conn);
	if (conn->qp != NULL)
		(void)kill_qp(conn->qp);
	if (!conn->disc_said) {
		conn->disc_said = true;
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

/*
 * Not while the peer may ask us, which is PROBED_MS, nor while we ask it. That mostly takes
 * MOMENT_MS; but each of two questions may be answered at the last moment, after PROBE_MS, or
 * verbs_qp_patience() later behind own requests: 3.1 s, and 4.4 s if the peer disconnects when we
 * were about to go. The core does not wait for so long.
 */
enum ndx_status verbs_conn_detach(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	if (conn->qp == NULL)
		return NDX_OK;
	if (!conn->disc_said) {
		await_control(conn->qp, VERBS_GOODBYE, KILL_MS);
		verbs_end_on_work(conn);
		say(conn, true);
	}
	if (may_be_asked(conn) || is_asking(conn))
		return NDX_PENDING;
	if (!kill_qp(conn->qp))
		return fail(NDX_E_DEVICE_BUSY, 0, "the device does not hand back requests in time");
	part(conn);
	if (conn->peer_said) /* whatever it meant: there is nobody left who could ask */
		heard(conn);
	return NDX_OK;
}
