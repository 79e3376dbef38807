/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for the device: for completions that no consumer polls for, for a control request at the
 * end of a connection, and for the requests that a queue pair in ERR flushes. The control thread
 * serves all connections of the adapter, so it looks once, and events or a timer let it look again.
 * Only in a callback it waits in place: no event is handled before the callback has returned.
 */
#include <sched.h>

#include <ndx/spi/system.h>
#include "verbs_conn.h"

#define KILL_MS 50u /* the longest wait in place for flushed requests */

void verbs_flush_watch(struct verbs_qp *qp, bool on)
{
	if (qp->watched_cqs != on) {
		qp->watched_cqs = on;
		verbs_cq_watch(qp->initiator_cq, on);
		verbs_cq_watch(qp->receive_cq, on);
	}
	if (!on)
		return;
	verbs_cq_attend(qp->initiator_cq);
	if (qp->receive_cq != qp->initiator_cq)
		verbs_cq_attend(qp->receive_cq);
}

bool verbs_flush_has_begun(struct verbs_qp *qp)
{
	bool killed;

	ndxp_lock_acquire(&qp->base.lock);
	killed = qp->killed;
	ndxp_lock_release(&qp->base.lock);
	return killed;
}

bool verbs_flush_read(struct verbs_qp *qp)
{
	bool quiet;

	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	quiet = verbs_qp_is_quiet(qp);
	ndxp_lock_release(&qp->base.lock);
	return quiet;
}

bool verbs_flush_begin(struct verbs_qp *qp)
{
	const uint64_t deadline = ndxp_loop_is_hurried() ? ndxp_deadline(KILL_MS) : 0;
	bool quiet;

	ndxp_lock_acquire(&qp->base.lock);
	verbs_qp_kill(qp);
	ndxp_lock_release(&qp->base.lock);
	quiet = verbs_flush_read(qp);
	while (!quiet && ndxp_now_ns() < deadline) {
		(void)sched_yield(); /* the device may be software, and need the processor */
		quiet = verbs_flush_read(qp);
	}
	return quiet;
}

static bool is_out(struct verbs_qp *qp, enum verbs_control which)
{
	bool out;

	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	out = (qp->controls_out & (1u << which)) != 0;
	ndxp_lock_release(&qp->base.lock);
	return out;
}

bool verbs_flush_needs_control(struct verbs_qp *qp, enum verbs_control which, uint32_t ms)
{
	const uint64_t deadline = ndxp_deadline(ms);
	bool out = is_out(qp, which);

	if (!ndxp_loop_is_hurried())
		return out;
	while (out && ndxp_now_ns() < deadline) {
		(void)sched_yield();
		out = is_out(qp, which);
	}
	return false;
}
