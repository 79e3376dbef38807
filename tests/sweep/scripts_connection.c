/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripts of how a connection begins and does not. */
#include <pthread.h>
#include <string.h>

#include "sweep.h"

/* What a negotiation would do: describe both sides, and agree. */
SWEEP_SCRIPT(connect)
{
	if (!sweep_pair(r) || !step_private_data(r->active, "welcome") ||
	    !step_private_data(r->passive, "hello"))
		return;
	/* 3 in, 2 out meet 4 in, 1 out */
	if (!step_limits(r->active, 1, 2) || !step_limits(r->passive, 2, 1) ||
	    !step_addresses(r->active) || !step_addresses(r->passive))
		return;
	(void)sweep_disconnect(r);
}

/* The passive side refuses; the same connector asks again, with success. */
SWEEP_SCRIPT(reject)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	struct op *request;
	struct op *asked;

	if (!sweep_equip(p) || !sweep_equip(a) || !step_listen(p) || !step_connector(p))
		return;
	request = step_request(p);
	if (request == NULL || !step_connector(a))
		return;
	asked = step_connect(a, "please", 6);
	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return;
	if (!step_private_data(p, "please") || !step_reject(p, "no", 2) ||
	    !step_wait(r, asked, NDX_E_CONNECTION_REFUSED) || !step_private_data(a, "no"))
		return;
	ndx_connector_close(p->connector);
	p->connector = NULL;
	if (!step_connector(p))
		return;
	request = step_request(p);
	asked = request != NULL ? step_connect(a, "again", 5) : NULL;
	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return;
	request = step_accept(p, NULL, 0);
	if (request == NULL || !step_wait_either(r, asked, NDX_OK, request))
		return;
	asked = step_complete(a);
	if (asked == NULL || !step_wait_either(r, asked, NDX_OK, request) ||
	    !step_wait(r, request, NDX_OK))
		return;
	(void)sweep_disconnect(r);
}

/* The active side refuses the answer. */
SWEEP_SCRIPT(decline)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	struct op *request;
	struct op *asked;
	struct op *accepted;

	if (!sweep_equip(p) || !sweep_equip(a) || !step_listen(p) || !step_connector(p))
		return;
	request = step_request(p);
	if (request == NULL || !step_connector(a))
		return;
	asked = step_connect(a, NULL, 0);
	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return;
	accepted = step_accept(p, "there", 5);
	if (accepted == NULL || !step_wait_either(r, asked, NDX_OK, accepted))
		return;
	if (!step_reject(a, "sorry", 5))
		return;
	(void)step_wait(r, accepted, NDX_E_CONNECTION_REFUSED);
}

/* A request that is taken, then the side that asked gives up. */
static bool ask_and_cancel(struct run *r)
{
	struct op *request = step_request(r->passive);
	struct op *asked = request != NULL ? step_connect(r->active, NULL, 0) : NULL;

	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return false;
	(void)ndx_connector_cancel(r->active->connector);
	return step_wait(r, asked, NDX_E_CANCELED);
}

/* ... and the side that was asked. */
static bool ask_and_be_left(struct run *r)
{
	struct op *request = step_request(r->passive);
	struct op *asked = request != NULL ? step_connect(r->active, NULL, 0) : NULL;
	struct op *accepted;

	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return false;
	accepted = step_accept(r->passive, NULL, 0);
	if (accepted == NULL)
		return false;
	(void)ndx_connector_cancel(r->passive->connector);
	/* whether the answer was on its way already is a matter of chance */
	return step_wait(r, accepted, NDX_E_CANCELED) &&
	       sweep_check(r, sweep_await(r, asked, NULL) != NDX_PENDING,
	                   "connect waits for a peer that gave up");
}

/* Whatever is in flight is cancelled, on either side, at every stage. */
SWEEP_SCRIPT(cancel)
{
	struct side *p = r->passive;
	struct op *request;

	if (!sweep_equip(p) || !sweep_equip(r->active) || !step_listen(p) || !step_connector(p) ||
	    !step_connector(r->active))
		return;
	request = step_request(p);
	if (request == NULL)
		return;
	(void)ndx_listener_cancel(p->listener);
	if (!step_wait(r, request, NDX_E_CANCELED) || !ask_and_cancel(r))
		return;
	ndx_connector_close(p->connector);
	p->connector = NULL;
	if (step_connector(p))
		(void)ask_and_be_left(r);
}

/* ---- helpers ---- */

struct answering {
	struct run *r;
	enum ndx_status status;
	struct ndx_connector *made;
};

/* What failed once is done once more, so that a peer that asks has an answer. */
static void *answer(void *arg)
{
	struct answering *answering = arg;
	struct ndx_connector *const untouched = answering->made;
	struct side *p = answering->r->passive;

	for (int i = 0; i < 2; i++) {
		answering->status = ndx_accept_from(p->adapter, p->listener, p->qp, "hi", 2,
		                                    SWEEP_PATIENCE_MS, &answering->made);
		if (answering->status == NDX_OK || answering->status == NDX_E_CANCELED ||
		    answering->made != untouched)
			break;
	}
	return NULL;
}

static void judge_helpers(struct run *r, enum ndx_status asked, enum ndx_status answered)
{
	(void)sweep_check(r, asked <= 0 && answered <= 0, "connect_to %s, accept_from %s",
	                  ndx_status_name(asked), ndx_status_name(answered));
	(void)sweep_check(r, (asked == NDX_OK && answered == NDX_OK) || faults_struck(r),
	                  "connect_to %s, accept_from %s although nothing was made to fail",
	                  ndx_status_name(asked), ndx_status_name(answered));
	r->failed = asked != NDX_OK || answered != NDX_OK;
}

/* Both helpers block, so one of them has a thread of its own. They are not called again. */
SWEEP_SCRIPT(helpers)
{
	struct ndx_connector *const untouched = (void *)r;
	struct side *a = r->active;
	struct side *p = r->passive;
	struct answering answering = {.r = r, .made = untouched};
	struct ndx_connector *made = untouched;
	pthread_t thread;
	enum ndx_status st;

	if (!sweep_equip(p) || !sweep_equip(a) || !step_listen(p))
		return;
	if (pthread_create(&thread, NULL, answer, &answering) != 0) {
		sweep_wrong(r, "no thread");
		return;
	}
	st = ndx_connect_to(a->adapter, a->qp, (const struct sockaddr *)&r->where, r->where_len,
	                    NULL, 0, SWEEP_PATIENCE_MS, &made);
	/* a peer that gives up half-way does not end the wait of the one that answers */
	sweep_join(r, thread, st != NDX_OK);
	(void)sweep_check(r,
	                  (made == untouched) == (st != NDX_OK) &&
	                          (answering.made == untouched) == (answering.status != NDX_OK),
	                  "a helper failed and wrote to its out parameter");
	a->connector = st == NDX_OK ? made : NULL;
	p->connector = answering.status == NDX_OK ? answering.made : NULL;
	judge_helpers(r, st, answering.status);
	if (r->failed)
		return;
	st = ndx_disconnect(a->connector, SWEEP_PATIENCE_MS);
	(void)sweep_check(r, st == NDX_OK, "ndx_disconnect: %s", ndx_status_name(st));
}
