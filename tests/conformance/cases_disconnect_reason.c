/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.*: the thread that takes a cancelled result can ask at once why the connection ended.
 */
#include <pthread.h>
#include <signal.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

enum { RECEIVES = 4, ROUNDS = 20, MESSAGE = 64 };

/* Take results by polling, until the first one that was cancelled; ask for the reason before
 * anything else. */
static bool first_cancelled_says(struct side *s, enum ndx_disconnect_reason want)
{
	const uint64_t end = now_ms() + WAIT_MS;
	struct ndx_result result = {.status = NDX_OK};
	enum ndx_disconnect_reason got;

	while (result.status != NDX_E_CANCELED && now_ms() < end)
		(void)ndx_cq_get_results(s->cq, &result, 1);
	got = ndx_connector_get_disconnect_reason(s->conn);
	if (!check_status(s->c, result.status, NDX_E_CANCELED, "first result that is no success"))
		return false;
	if (got == NDX_DISCONNECT_UNKNOWN && !has_capability(s, NDX_CAP_DISCONNECT_REASON))
		return true;
	return check_that(s->c, got == want,
	                  "with the first cancelled result at %s the reason is %s, not %s", s->name,
	                  ndx_disconnect_reason_name(got), ndx_disconnect_reason_name(want));
}

/* Connected, with receives at both sides. NULL: the check is over. */
static struct pair *pair_that_receives(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !receives_ok(&p->a, 0, RECEIVES, 0, MESSAGE) ||
	    !receives_ok(&p->b, 0, RECEIVES, 0, MESSAGE) || !pair_connect(p))
		return NULL;
	return p;
}

static void *flush(void *arg)
{
	struct side *s = arg;

	(void)ndx_qp_flush(s->qp);
	return NULL;
}

/* Flush in a thread while this one takes results. */
static void flush_against(struct check *c, bool own)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_that_receives(c);
		pthread_t thread;

		if (!p ||
		    !check_that(c, pthread_create(&thread, NULL, flush, own ? &p->a : &p->b) == 0,
		                "thread"))
			return;
		first_cancelled_says(&p->a, NDX_DISCONNECT_ABORTED);
		(void)pthread_join(thread, NULL);
		pair_close_all(c);
	}
}

void case_disconnect_reason_is_there_with_results_of_a_flush(struct check *c)
{
	flush_against(c, true);
}

void case_disconnect_reason_is_there_when_the_peer_flushed(struct check *c)
{
	flush_against(c, false);
}

void case_disconnect_reason_is_there_when_the_peer_was_killed(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, RECEIVES, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGKILL);
		first_cancelled_says(&p->b, NDX_DISCONNECT_ABORTED);
	}
	peer_end(&peer);
}

void case_disconnect_reason_is_there_when_it_was_graceful(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_that_receives(c);

		if (!p || !side_start_disconnect(&p->a))
			return;
		first_cancelled_says(i % 2 == 0 ? &p->b : &p->a, NDX_DISCONNECT_GRACEFUL);
		check_ends(c, &p->a.disc, NDX_OK, "disconnect");
		pair_close_all(c);
	}
}
