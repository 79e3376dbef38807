/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripts of how a connection ends. */
#include "sweep.h"

/* Receives that were not filled end with the connection. */
static bool with_receives(struct run *r)
{
	return sweep_pair(r) && step_receive(r->active, 0, 64) && step_receive(r->passive, 0, 64) &&
	       step_receive(r->passive, 64, 64);
}

/* One side leaves, the other one learns of it and follows. */
SWEEP_SCRIPT(leave)
{
	struct op *told;
	struct op *gone;

	if (!with_receives(r))
		return;
	told = step_notify_disconnect(r->passive);
	gone = told != NULL ? step_disconnect(r->active) : NULL;
	if (gone == NULL || !step_wait(r, told, NDX_OK) || !step_wait(r, gone, NDX_OK))
		return;
	if (step_wait(r, step_disconnect(r->passive), NDX_OK)) {
		(void)step_results(r->active, 1, NDX_E_CANCELED);
		(void)step_results(r->passive, 2, NDX_E_CANCELED);
	}
}

/* Both leave at once. */
SWEEP_SCRIPT(cross)
{
	struct op *one;
	struct op *other;

	if (!with_receives(r))
		return;
	one = step_disconnect(r->active);
	other = step_disconnect(r->passive);
	if (one != NULL && other != NULL && step_wait(r, one, NDX_OK))
		(void)step_wait(r, other, NDX_OK);
}

/* The end is left to close; the peer hears of it. */
static void close_and_tell(struct run *r, bool qp)
{
	struct op *told;
	enum ndx_status st;

	if (!with_receives(r))
		return;
	told = step_notify_disconnect(r->passive);
	if (told == NULL)
		return;
	if (qp) {
		ndx_qp_close(r->active->qp);
		r->active->qp = NULL;
	} else {
		ndx_connector_close(r->active->connector);
		r->active->connector = NULL;
	}
	st = sweep_await(r, told, NULL);
	(void)sweep_check(r, st == NDX_OK, "notify_disconnect: %s", ndx_status_name(st));
}

SWEEP_SCRIPT(close_qp)
{
	close_and_tell(r, true);
}

SWEEP_SCRIPT(close_connector)
{
	close_and_tell(r, false);
}

SWEEP_SCRIPT(flush)
{
	struct op *told;

	if (!with_receives(r))
		return;
	told = step_notify_disconnect(r->passive);
	if (told == NULL || !step_flush(r->active))
		return;
	(void)step_results(r->active, 1, NDX_E_CANCELED);
	if (!step_wait(r, told, NDX_OK))
		return;
	/* aborted on both sides: there is no good end any more */
	told = step_disconnect(r->active);
	if (told != NULL)
		(void)sweep_check(r, sweep_await(r, told, NULL) == NDX_E_CONNECTION_ABORTED,
		                  "a disconnect behind a flush is not ABORTED");
}
