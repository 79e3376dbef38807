/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.*: a peer that dies, stops or goes silent; side B is here, the peer is a process. */
#include <signal.h>
#include <string.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

enum {
	SHORT_MS = 400, /* a disconnect time-out that a case can wait for */
	DRAIN_MS = 200,
	KEEPALIVE_MS = 400,
	ANSWER_MS = 1000, /* the same, of a peer that has to answer within it */
	OUTAGE_MS = 150,
};

/* A listener and side B, for a peer. */
static struct pair *pair_for_peer(struct check *c, uint32_t keepalive_ms)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	attr.disconnect_ms = SHORT_MS;
	attr.keepalive_ms = keepalive_ms;
	return pair_open(c, &attr, NULL);
}

/* Where the stack cannot tell death from goodbye, the disconnect may succeed. */
static void parts_after_loss(struct side *b)
{
	enum ndx_status status;

	if (check_over(b->c))
		return;
	status = check_result_of(b->c, ndx_connector_disconnect(b->conn, &b->disc), &b->disc);
	check_either(b->c, status, NDX_E_CONNECTION_ABORTED,
	             b->notify.information == NDX_DISCONNECT_UNKNOWN ? NDX_OK
	                                                             : NDX_E_CONNECTION_ABORTED,
	             "disconnect after a loss");
}

/* The connection is known to be lost: indication, cancelled receives, a disconnect that fails. */
static void loss_is_reported(struct side *b, size_t receives)
{
	side_start_notify(b);
	side_indicated(b, NDX_DISCONNECT_ABORTED);
	expect_run(b, NDX_REQUEST_RECEIVE, 0, receives, NDX_E_CANCELED);
	parts_after_loss(b);
	expect_silence(b);
}

void case_disconnect_peer_killed_while_idle(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGKILL);
		loss_is_reported(&p->b, 4);
	}
	peer_end(&peer);
}

/* A program may end with everything open: it ends well, and its peer learns of it. */
void case_disconnect_peer_leaves_with_everything_open(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_LEAVER, 0)) {
		peer_leaves(&peer);
		loss_is_reported(&p->b, 4);
	}
	peer_end(&peer);
}

void case_disconnect_peer_killed_while_it_sends(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct ndx_result result = {.status = NDX_OK};
	struct peer peer;
	size_t taken = 0;

	if (!p)
		return;
	receives_ok(&p->b, 0, 64, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_STREAM, 0)) {
		side_start_notify(&p->b);
		while (taken < 300 && take(&p->b, p->b.cq, &result) && result.status == NDX_OK) {
			receive_ok(&p->b, taken % 64, 0, PEER_MESSAGE);
			taken++;
		}
		check_status(c, result.status, NDX_OK, "receives before the end");
		peer_signal(&peer, SIGKILL);
		while (take(&p->b, p->b.cq, &result) && result.status == NDX_OK)
			continue;
		check_status(c, result.status, NDX_E_CANCELED, "receive after the end");
		side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
		parts_after_loss(&p->b);
	}
	peer_end(&peer);
}

void case_disconnect_peer_killed_while_we_send(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;
	struct ndx_result result;
	size_t posted = 0;
	size_t done = 0;
	size_t cancelled = 0;

	if (!p)
		return;
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		while (posted < 64 && send_ok(&p->b, posted, 0, PEER_MESSAGE, 0))
			posted++;
		peer_signal(&peer, SIGKILL);
		for (; done < posted && take(&p->b, p->b.cq, &result); done++) {
			cancelled += result.status != NDX_OK;
			check_that(c, cancelled == 0 || result.status != NDX_OK,
			           "a send succeeded behind one that failed");
		}
		side_start_notify(&p->b);
		side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
		parts_after_loss(&p->b);
		expect_silence(&p->b);
	}
	peer_end(&peer);
}

void case_disconnect_peer_killed_during_it(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGSTOP); /* so that the goodbye stays unanswered */
		side_start_disconnect(&p->b);
		check_pending(c, &p->b.disc, "disconnect from a stopped peer");
		peer_signal(&peer, SIGKILL);
		check_ends(c, &p->b.disc, NDX_E_CONNECTION_ABORTED, "disconnect");
		expect_all_there(&p->b, 4, NDX_E_CANCELED);
	}
	peer_end(&peer);
}

void case_disconnect_peer_stopped_fails_in_time(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;
	uint64_t start;
	uint64_t took;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGSTOP);
		start = now_ms();
		side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
		took = now_ms() - start;
		check_that(c, took >= SHORT_MS - 50 && took < SHORT_MS + DRAIN_MS + WAIT_MS / 2,
		           "a disconnect with a time-out of %d ms took %u", SHORT_MS,
		           (unsigned)took);
		expect_all_there(&p->b, 4, NDX_E_CANCELED);
	}
	peer_end(&peer);
}

void case_disconnect_peer_stopped_with_work_in_flight(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;
	uint64_t start;
	size_t count;

	if (!p)
		return;
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGSTOP);
		for (count = 0; count < 8; count++)
			send_ok(&p->b, count, 0, PEER_MESSAGE, 0);
		start = now_ms();
		side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
		check_that(c, now_ms() - start < SHORT_MS + DRAIN_MS + WAIT_MS / 2,
		           "the disconnect took %u ms", (unsigned)(now_ms() - start));
		check_that(c, discard(&p->b) == count, "not every send has its result");
		expect_silence(&p->b);
	}
	peer_end(&peer);
}

void case_disconnect_closing_towards_a_stopped_peer_ends_in_time(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;
	uint64_t start;

	if (!p)
		return;
	receives_ok(&p->b, 8, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGSTOP);
		sends_ok(&p->b, 0, 8, 0, PEER_MESSAGE);
		start = now_ms();
		side_close_qp(&p->b);
		side_close_connector(&p->b);
		check_that(c, now_ms() - start < DRAIN_MS + WAIT_MS / 2, "closing took %u ms",
		           (unsigned)(now_ms() - start));
		check_that(c, discard(&p->b) == 12, "not every request has its result");
	}
	peer_end(&peer);
}

void case_disconnect_short_outage_does_no_harm(struct check *c)
{
	struct pair *p = pair_for_peer(c, 0);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 8, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_ECHO, 0)) {
		peer_signal(&peer, SIGSTOP);
		pattern_fill(p->b.buf + 8192, (size_t)8 * PEER_MESSAGE, 9);
		sends_ok(&p->b, 16, 8, 8192, PEER_MESSAGE);
		side_start_notify(&p->b);
		for (uint64_t until = now_ms() + OUTAGE_MS; now_ms() < until;)
			check_pending(c, &p->b.notify, "notification during the outage");
		peer_signal(&peer, SIGCONT);
		for (size_t i = 0; i < 16; i++) {
			struct ndx_result result = {.status = NDX_PENDING};

			(void)take(&p->b, p->b.cq, &result);
			check_status(c, result.status, NDX_OK, "work across the outage");
		}
		pattern_there(c, p->b.buf, (size_t)8 * PEER_MESSAGE, 9, "echo across the outage");
		peer_disconnect(&peer);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		side_disconnect(&p->b, NDX_OK);
	}
	peer_end(&peer);
}

void case_disconnect_keepalive_notices_a_stopped_peer(struct check *c)
{
	struct pair *p = pair_for_peer(c, KEEPALIVE_MS);
	struct peer peer;
	uint64_t start;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		side_start_notify(&p->b);
		peer_signal(&peer, SIGSTOP);
		start = now_ms();
		side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
		check_that(c, now_ms() - start < 4 * KEEPALIVE_MS + WAIT_MS / 2,
		           "with a keepalive of %d ms it took %u ms", KEEPALIVE_MS,
		           (unsigned)(now_ms() - start));
		expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 4, NDX_E_CANCELED);
		side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	}
	peer_end(&peer);
}

void case_disconnect_keepalive_lets_a_living_peer_idle(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.keepalive_ms = ANSWER_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	for (uint64_t until = now_ms() + (uint64_t)ANSWER_MS * 5 / 2; now_ms() < until;) {
		if (!check_pending(c, &p->a.notify, "notification of an idle connection"))
			return;
	}
	check_pending(c, &p->b.notify, "notification of an idle connection");
	message_passes(&p->a, &p->b, 64);
	side_disconnect(&p->a, NDX_OK);
}
