/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for the device at the end of a connection: for a control request, and for the requests that
 * a queue pair in ERR flushes. The control thread serves all connections of the adapter, so it
 * looks once, and events or a timer let it look again. Only in a callback it waits in place: no
 * event is handled before the callback has returned.
 */
#include <sched.h>

#include "base_linux.h"
#include "verbs_conn.h"

#define KILL_MS 50u /* the longest wait in place for flushed requests */

bool verbs_flush_has_begun(struct verbs_qp *qp)
{
	bool killed;

	base_lock_acquire(&qp->base.lock);
	killed = qp->killed;
	base_lock_release(&qp->base.lock);
	return killed;
}

bool verbs_flush_read(struct verbs_qp *qp)
{
	bool quiet;

	verbs_qp_poll(qp);
	base_lock_acquire(&qp->base.lock);
	quiet = verbs_qp_is_quiet(qp);
	base_lock_release(&qp->base.lock);
	return quiet;
}

bool verbs_flush_begin(struct verbs_qp *qp)
{
	const uint64_t deadline = base_loop_is_hurried() ? base_deadline(KILL_MS) : 0;
	bool quiet;

	base_lock_acquire(&qp->base.lock);
	verbs_qp_kill(qp);
	base_lock_release(&qp->base.lock);
	quiet = verbs_flush_read(qp);
	while (!quiet && base_now_ns() < deadline) {
		(void)sched_yield(); /* the device may be software, and need the processor */
		quiet = verbs_flush_read(qp);
	}
	return quiet;
}

static bool is_out(struct verbs_qp *qp, enum verbs_control which)
{
	bool out;

	verbs_qp_poll(qp);
	base_lock_acquire(&qp->base.lock);
	out = (qp->controls_out & (1u << which)) != 0;
	base_lock_release(&qp->base.lock);
	return out;
}

bool verbs_flush_needs_control(struct verbs_qp *qp, enum verbs_control which, uint32_t ms)
{
	const uint64_t deadline = base_deadline(ms);
	bool out = is_out(qp, which);

	if (!base_loop_is_hurried())
		return out;
	while (out && base_now_ns() < deadline) {
		(void)sched_yield();
		out = is_out(qp, which);
	}
	return false;
}
