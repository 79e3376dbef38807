/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost work, hung or crashed when a connection ended.
 * Here: which side waits for the other when one closes: libevpl, easyrdma.
 */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "ledger.h"
#include "peer.h"
#include "traffic.h"

enum {
	MESSAGE = 64,
	LATE_MS = 10000,  /* how long the peer of easyrdma #21 does nothing */
	GOODBYE_MS = 300, /* by how much a peer's goodbye comes late */
	SHORT_DRAIN_MS = 50,
	ENOUGH_DRAIN_MS = 1500, /* for what can be done at once, on a slow machine */
	ENOUGH_MS = 3000,
};

/* ---- libevpl #52: what is closed here is freed, then the event of its end comes ---- */

void case_field_libevpl_52_goodbye_comes_after_the_close(struct check *c)
{
	struct ndx_overlapped *own = calloc(2, sizeof(*own)); /* of the side that closes */
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[1].drain_ms = GOODBYE_MS;
	p = own ? pair_up_with(c, &attr[0], &attr[1]) : NULL;
	if (!p) {
		free(own);
		return;
	}
	ndx_overlapped_init(&own[0]);
	ndx_overlapped_init(&own[1]);
	side_start_notify(&p->b);
	sends_ok(&p->b, 0, 4, 0, MESSAGE); /* A has no receive: B's goodbye waits for its drain */
	check_status(c, ndx_connector_notify_disconnect(p->a.conn, &own[0]), NDX_PENDING,
	             "notify_disconnect");
	check_status(c, ndx_connector_disconnect(p->a.conn, &own[1]), NDX_PENDING, "disconnect");
	side_close_connector(&p->a);
	side_close_qp(&p->a);
	check_status(c, ndx_overlapped_status(&own[0]), NDX_E_CANCELED, "notify_disconnect");
	check_status(c, ndx_overlapped_status(&own[1]), NDX_E_CANCELED, "disconnect");
	memset(own, 0xa5, 2 * sizeof(*own)); /* as a program does that uses the memory again */
	memset(p->a.buf, 0xa5, p->a.attr.buffer);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	expect_run(&p->b, NDX_REQUEST_SEND, 0, 4, NDX_E_CANCELED);
	side_disconnect(&p->b, NDX_OK); /* now B's goodbye has been sent */
	side_close_connector(&p->b);
	side_close_qp(&p->b);
	/* a connection of the same adapter comes and goes: the late event is through, too */
	side_new_connector(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->a);
	side_new_qp(&p->b);
	(void)(pair_connect(p) && pair_disconnect(p));
	bytes_are(c, (const uint8_t *)own, 2 * sizeof(*own), 0xa5, "what was closed");
	bytes_are(c, p->a.buf, p->a.attr.buffer, 0xa5, "memory of the side that closed");
	pair_close_all(c);
	free(own);
}

/* ---- easyrdma #21: the close of one side waits for the close of the other ---- */

/* The listening side closes; the connecting one does nothing for ten seconds, then it closes. */
void case_field_easyrdma_21_peer_closes_ten_seconds_later(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t start = now_ms();
	struct ndx_result late;
	uint64_t waited;
	size_t got = 0;

	if (!p)
		return;
	receives_ok(&p->b, 0, 8, 0, MESSAGE);
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	send_ok(&p->a, 10, 8192, MESSAGE, 0);
	expect_received(&p->b, 0, MESSAGE);
	/* A's program neither polls nor calls from here on. That B's disconnect succeeds, and its
	   objects are closed, before A wakes up is what this case is about. */
	side_disconnect(&p->b, NDX_OK);
	side_close_connector(&p->b);
	side_close_qp(&p->b);
	expect_all_there(&p->b, 7, NDX_E_CANCELED);
	waited = now_ms() - start;
	if (check_over(c) ||
	    !check_that(c, waited < LATE_MS, "the close took %u ms", (unsigned)waited))
		return;
	(void)ndx_cq_wait_results(p->b.cq, &late, 1, (uint32_t)(LATE_MS - waited), &got);
	check_that(c, got == 0, "a result for the side that has closed");
	/* nothing was lost by it, and it is over for A, too */
	expect(&p->a, NDX_REQUEST_SEND, 10, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 0, 8, NDX_E_CANCELED);
	send_ok(&p->a, 11, 8192, MESSAGE, 0);
	expect(&p->a, NDX_REQUEST_SEND, 11, NDX_E_CANCELED);
	side_start_notify(&p->a);
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->a, NDX_OK);
}

/* The same when the peer is another program, whose only thread sits in a call of its own. */
void case_field_easyrdma_21_peer_does_not_poll(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 8, 0, MESSAGE);
	if (peer_start(&peer, p, PEER_BLOCKED, 0)) {
		side_start_notify(&p->b);
		sends_ok(&p->b, 10, PEER_DEPTH, 8192, MESSAGE);
		side_disconnect(&p->b, NDX_OK);
		expect_run(&p->b, NDX_REQUEST_SEND, 10, PEER_DEPTH, NDX_OK);
		expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 8, NDX_E_CANCELED);
		peer_disconnect(&peer); /* it wakes up, and its disconnect succeeds */
	}
	peer_end(&peer);
}

/* ---- easyrdma #23: a time limit on the disconnect cuts off what is still queued ---- */

/* Limits are short, the peer takes its messages late: all of them arrive. */
void case_field_easyrdma_23_short_limits_lose_nothing(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	uint64_t key = check_random(c);

	side_attr_init(&attr);
	attr.drain_ms = ENOUGH_DRAIN_MS;
	attr.disconnect_ms = ENOUGH_MS;
	attr.buffer = (size_t)1 << 20;
	p = pair_up(c, &attr);
	if (!p)
		return;
	pattern_fill(p->a.buf, (size_t)60 * 16384, key);
	receives_ok(&p->b, 0, 60, 0, 16384);
	sends_ok(&p->a, 0, 60, 0, 16384);
	side_disconnect(&p->a, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 60, NDX_OK);
	/* only now the peer looks */
	for (size_t i = 0; i < 60; i++)
		expect_received(&p->b, i, 16384);
	pattern_there(c, p->b.buf, (size_t)60 * 16384, key, "messages queued at the disconnect");
	side_disconnect(&p->b, NDX_OK);
}

/* And what the limit does cut off is reported: never OK without having arrived. */
void case_field_easyrdma_23_cancelled_sends_are_reported(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ledger ledger = {.count = 0};

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 10, 0, MESSAGE);
	sends_ok(&p->a, 0, 30, 0, MESSAGE);
	/* B may take longer to tell of its receives than the drain lasts */
	ledger_await(&ledger, &p->a, 10);
	side_disconnect(&p->a, NDX_OK);
	ledger_complete(&ledger, &p->a, 30);
	check_that(c, ledger.ok == 10 && ledger.cancelled == 20,
	           "10 receives, 30 sends: %zu completed well, %zu were cancelled", ledger.ok,
	           ledger.cancelled);
	for (size_t i = 0; i < 10; i++)
		expect_received(&p->b, i, MESSAGE);
	side_disconnect(&p->b, NDX_OK);
	expect_silence(&p->b);
}
