/* SPDX-License-Identifier: BSD-2-Clause */
#include "model.h"

#include <string.h>

#include "ledger.h"

/*
 * A timer may run out a little before our clock says so. A queue pair that is closed waits for the
 * peer's goodbye for 100 ms ("at most 100 ms later; the rest happens in the background"), and what
 * is left of the drain.
 */
enum { TIMER_SLACK_MS = 2, CLOSE_PATIENCE_MS = 100, SLOW_MACHINE_MS = 10000 };

static uint64_t load(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void set_once(uint64_t *at, uint64_t value)
{
	uint64_t nothing = 0;

	(void)__atomic_compare_exchange_n(at, &nothing, value, false, __ATOMIC_ACQ_REL,
	                                  __ATOMIC_ACQUIRE);
}

void model_graceful_begins(struct end *e)
{
	set_once(&e->conn->graceful[e->side].from, now_ns());
}

void model_graceful_done(struct end *e)
{
	set_once(&e->conn->graceful[e->side].to, now_ns());
}

void model_abortive_begins(struct end *e, enum finish how)
{
	(void)__atomic_fetch_or(&e->conn->faults[e->side], 1u << how, __ATOMIC_ACQ_REL);
	set_once(&e->conn->abortive[e->side].from, now_ns());
}

/* It has done its work, and no other operation had begun by then. */
void model_abortive_done(struct end *e)
{
	struct conn *c = e->conn;
	uint64_t now = now_ns();

	set_once(&c->abortive[e->side].to, now);
	if (load(&c->graceful[0].from) == 0 && load(&c->graceful[1].from) == 0)
		set_once(&c->doomed, now);
}

void model_peer_dies(struct end *e)
{
	struct conn *c = e->conn;
	uint64_t now = now_ns();

	set_once(&c->abortive[e->side].from, now);
	set_once(&e->round->killed_at, now);
}

void model_peer_is_dead(struct end *e)
{
	struct conn *c = e->conn;
	uint64_t now = now_ns();

	if (load(&c->graceful[0].from) == 0 && load(&c->graceful[1].from) == 0)
		set_once(&c->doomed, now);
}

void model_ended(struct end *e)
{
	set_once(&e->ended_at, now_ns());
}

bool model_untouched(const struct conn *c)
{
	for (uint32_t i = 0; i < SIDES; i++) {
		if (load(&c->graceful[i].from) != 0 || load(&c->abortive[i].from) != 0)
			return false;
	}
	return true;
}

static bool aborting(const struct conn *c)
{
	return load(&c->abortive[0].from) != 0 || load(&c->abortive[1].from) != 0;
}

/* When the first side began to end it in order; 0: none has. */
static uint64_t graceful_since(const struct conn *c)
{
	uint64_t one = load(&c->graceful[0].from);
	uint64_t other = load(&c->graceful[1].from);

	if (one == 0 || (other != 0 && other < one))
		return other;
	return one;
}

static bool waited(uint64_t since, uint32_t ms)
{
	return since != 0 &&
	       now_ns() - since + TIMER_SLACK_MS * UINT64_C(1000000) >= ms * UINT64_C(1000000);
}

/* Has one of the timers that end a connection had the time to run out? */
static bool timed_out(const struct conn *c)
{
	uint32_t drain = c->ends[0].round->plan.drain_ms;
	uint32_t least = drain < CLOSE_PATIENCE_MS ? drain : CLOSE_PATIENCE_MS;

	return waited(graceful_since(c), least);
}

/* ---- requests ---- */

/*
 * "Own send, write, read, posted before disconnect: runs to its end: NDX_OK. If it cannot end
 * within drain_timeout: NDX_E_CANCELED." "Anything posted after disconnect was called, or after the
 * peer's goodbye came: accepted, then NDX_E_CANCELED." "Receives that no message took:
 * NDX_E_CANCELED." "Everything, after an abort: NDX_E_CANCELED."
 */
static bool may_be_cancelled(const struct end *e, const struct request *q)
{
	uint64_t since = graceful_since(e->conn);

	if (q->late || aborting(e->conn))
		return true;
	if (since == 0)
		return false;
	if (q->type == NDX_REQUEST_RECEIVE || q->after >= since)
		return true;
	return waited(since, e->round->plan.drain_ms);
}

static bool has_fault(const struct end *e, enum finish fault)
{
	return (__atomic_load_n(&e->conn->faults[e->side], __ATOMIC_ACQUIRE) & 1u << fault) != 0;
}

static bool is_access(const struct request *q)
{
	return q->type == NDX_REQUEST_READ || q->type == NDX_REQUEST_WRITE;
}

static bool violation_explained(const struct end *e, const struct request *q)
{
	if (q->faulty || has_fault(e, FINISH_CLOSE_MEMORY))
		return true;
	return is_access(q) && has_fault(e->peer, FINISH_CLOSE_MEMORY);
}

static bool remote_error_explained(const struct end *e, const struct request *q)
{
	if (q->faulty)
		return (side_of(e)->info.capabilities & NDX_CAP_REMOTE_ACCESS_STATUS) == 0;
	return q->type != NDX_REQUEST_RECEIVE && (has_fault(e->peer, FINISH_CLOSE_MEMORY) ||
	                                          has_fault(e->peer, FINISH_SHORT_RECEIVE));
}

/* A failure with a cause of its own: does anything explain it? */
static bool explained(const struct end *e, const struct request *q, enum ndx_status status)
{
	bool receive = q->type == NDX_REQUEST_RECEIVE;

	if (status == NDX_E_ACCESS_VIOLATION)
		return violation_explained(e, q);
	if (status == NDX_E_REMOTE_ERROR)
		return remote_error_explained(e, q);
	if (status == NDX_E_BUFFER_OVERFLOW)
		return receive && has_fault(e, FINISH_SHORT_RECEIVE);
	if (status == NDX_E_DATA_OVERRUN)
		return q->type == NDX_REQUEST_SEND && has_fault(e->peer, FINISH_SHORT_RECEIVE);
	/* "Windows that are still bound to it are dead." */
	if (status == NDX_E_INVALID_DEVICE_REQUEST)
		return q->type == NDX_REQUEST_INVALIDATE &&
		       (q->faulty || has_fault(e, FINISH_CLOSE_MEMORY));
	if (status == NDX_E_IO_TIMEOUT)
		return !receive &&
		       (has_fault(e, FINISH_NO_RECEIVE) || load(&e->round->killed_at) != 0);
	return false;
}

/*
 * "After a failure other than CANCELED the connection is ended and everything else of the queue
 * pair completes CANCELED." A request of the own side fails before the goodbye of its side, unless
 * the drain of a device has given it up ("the goodbye leaves without it"); a receive may also fail
 * when both sides have said goodbye.
 */
static bool is_doom(const struct end *e, const struct request *q)
{
	if (q->type == NDX_REQUEST_RECEIVE)
		return graceful_since(e->conn) == 0;
	return !model_may_end_later(e);
}

void model_failure(struct end *e, const struct request *q, const struct ndx_result *r)
{
	if (r->status == NDX_E_CANCELED) {
		if (!may_be_cancelled(e, q))
			fail(e->round, e,
			     "a %s was cancelled (native %d), and nothing that was done explains "
			     "it",
			     request_name(q->type), r->native);
		return;
	}
	/* a receive may still be used when the connection has begun to end */
	if ((q->late && q->type != NDX_REQUEST_RECEIVE) || !explained(e, q, r->status))
		fail(e->round, e,
		     "a %s completed %s (native %d), and nothing that was done does that",
		     request_name(q->type), ndx_status_name(r->status), r->native);
	if (is_doom(e, q))
		set_once(&e->conn->doomed, now_ns());
}

/*
 * "Everything, after an abort: NDX_E_CANCELED, but for what was done before." A bind is done at its
 * own side, so it may have been while earlier requests were still under way.
 */
bool model_may_succeed_behind(const struct end *e, const struct request *q)
{
	return q->type == NDX_REQUEST_BIND && (aborting(e->conn) || timed_out(e->conn));
}

/*
 * A device gives no single request back. One that waits for a receive, and all behind it, come back
 * when the queue pair is taken down: when both sides have said goodbye (docs/design/verbs.md).
 */
bool model_may_end_later(const struct end *e)
{
	return strcmp(side_of(e)->info.provider, "verbs") == 0 &&
	       waited(graceful_since(e->conn), e->round->plan.drain_ms);
}

/* ---- the end ---- */

/*
 * "A disconnect takes at most drain_timeout + disconnect_timeout, whatever the peer does"; nor does
 * the indication of a peer that was killed take longer. `since`: when it was asked for.
 */
static void in_time_after_death(struct end *e, uint64_t since, const char *what)
{
	struct round *round = e->round;
	uint64_t killed = load(&round->killed_at);
	uint64_t limit = round->plan.drain_ms + round->plan.disconnect_ms + SLOW_MACHINE_MS;
	uint64_t took;

	if (killed == 0 || !plan_dies(&round->plan) || !side_is_mine(side_of(e)))
		return;
	took = now_ns() - (since > killed ? since : killed);
	if (took > limit * UINT64_C(1000000))
		fail(round, e, "%s took %llu ms after the peer died", what,
		     (unsigned long long)(took / 1000000));
	if (took > load(&round->known_after))
		__atomic_store_n(&round->known_after, took, __ATOMIC_RELEASE);
}

void model_disconnected(struct end *e, enum ndx_status status)
{
	struct conn *c = e->conn;
	uint64_t doomed = load(&c->doomed);

	if (e->outcome != NDX_PENDING && e->outcome != status)
		fail(e->round, e, "disconnect completed %s, and again %s",
		     ndx_status_name(e->outcome), ndx_status_name(status));
	e->outcome = status;
	in_time_after_death(e, load(&c->graceful[e->side].from), "disconnect");
	if (status == NDX_OK && doomed != 0)
		fail(e->round, e, "disconnect completed NDX_OK on a connection that was aborted");
	if (status == NDX_OK)
		return;
	if (status != NDX_E_CONNECTION_ABORTED)
		fail(e->round, e, "disconnect completed %s", ndx_status_name(status));
	if (!aborting(c) && !timed_out(c))
		fail(e->round, e, "disconnect failed, and nobody has aborted the connection");
}

static void judge_reason(struct end *e, enum ndx_disconnect_reason reason)
{
	struct conn *c = e->conn;
	bool tells = (side_of(e)->info.capabilities & NDX_CAP_DISCONNECT_REASON) != 0;
	const char *name = ndx_disconnect_reason_name(reason);

	if (reason == NDX_DISCONNECT_UNKNOWN && !tells && !model_untouched(c))
		return;
	if (reason == NDX_DISCONNECT_GRACEFUL && graceful_since(c) != 0)
		return;
	if (reason == NDX_DISCONNECT_ABORTED && (aborting(c) || timed_out(c)))
		return;
	fail(e->round, e, "the connection is said to have ended %s, and nobody did that", name);
}

void model_notified(struct end *e, uint32_t information)
{
	if (e->notified) {
		if (information != (uint32_t)e->reason)
			fail(e->round, e, "notify_disconnect says %s, after %s",
			     ndx_disconnect_reason_name((enum ndx_disconnect_reason)information),
			     ndx_disconnect_reason_name(e->reason));
		return;
	}
	e->notified = true;
	in_time_after_death(e, 0, "the indication");
	judge_reason(e, (enum ndx_disconnect_reason)information);
	e->reason = (enum ndx_disconnect_reason)information;
	model_ended(e);
}

void model_reason(struct end *e, enum ndx_disconnect_reason reason)
{
	if (reason == NDX_DISCONNECT_NONE && e->notified)
		fail(e->round, e, "no reason for the end of a connection after its indication");
	if (reason != NDX_DISCONNECT_NONE)
		judge_reason(e, reason);
	/* "How the connection ended so far": what began in order may be aborted yet */
	if (reason != NDX_DISCONNECT_NONE && e->notified && e->reason != reason &&
	    reason != NDX_DISCONNECT_ABORTED)
		fail(e->round, e, "the reason is %s, the indication said %s",
		     ndx_disconnect_reason_name(reason), ndx_disconnect_reason_name(e->reason));
}

/* ---- what one side knows of the other ---- */

/* "Requests that completed NDX_OK did arrive." */
static void balance(struct end *from, struct end *to)
{
	uint32_t received = __atomic_load_n(&to->received, __ATOMIC_ACQUIRE);

	if (from->initiator.blind)
		return;
	if (from->sends_ok > received && !to->receive.blind)
		fail(from->round, from, "%u messages completed well, the peer received %u",
		     from->sends_ok, received);
}

/* The receiver was killed: its memory tells. */
static void balance_dead(struct end *from, struct end *to)
{
	for (uint32_t k = 0; k < from->sends_ok && !end_has_srq(to); k++) {
		const struct message *m = &from->messages[k];
		const uint8_t *at = to->memory.area[AREA_RECEIVE] + to->receive.requests[k].at;

		if (!m->written && !to->memory.painted[AREA_RECEIVE] &&
		    pattern_match(at, m->length, message_key(from, k)) != m->length)
			fail(from->round, from,
			     "message %u completed well and is not in the killed peer's memory", k);
	}
}

void model_balance(struct conn *c)
{
	struct round *round = c->ends[0].round;

	for (uint32_t i = 0; i < SIDES; i++) {
		struct end *from = &c->ends[i];
		struct end *to = &c->ends[1 - i];
		bool known = side_is_mine(side_of(to)) ||
		             __atomic_load_n(&round->child_done, __ATOMIC_ACQUIRE) != 0;

		if (side_is_mine(side_of(from)) && !side_is_mine(side_of(to)) &&
		    load(&round->killed_at) != 0)
			balance_dead(from, to);
		else if (known && (side_is_mine(side_of(from)) || load(&round->killed_at) == 0))
			balance(from, to);
	}
}
