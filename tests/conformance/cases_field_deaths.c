/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost work, hung or crashed when a connection ended.
 * Here: what peers that were killed leave behind for the next one: modelexpress.
 */
#include <signal.h>
#include <time.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

enum { DEATHS = 50, SAMPLES = 9, SLOWER = 5 };

/* When a peer is killed. */
enum step {
	STEP_STARTING, /* at any time since it was started */
	STEP_ASKING,   /* its request is there */
	STEP_ANSWERED, /* the answer is under way */
	STEP_UP,
	STEP_STREAMING, /* its messages are arriving */
	STEP_PARTING,   /* it was asked to disconnect */
	STEPS
};

struct host {
	struct pair *p;
	bool asking;    /* B waits for a request, or has one that was not looked at */
	unsigned stale; /* requests of the dead that B was given */
};

static uint64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* B waits for the next request, with a new connector and a new queue pair. */
static bool host_asks(struct host *h)
{
	struct side *b = &h->p->b;

	if (h->asking)
		return true; /* the last one was killed before B had its request */
	if (!side_new_connector(b) || !side_new_qp(b))
		return false;
	(void)discard(b); /* of the queue pair before */
	h->asking =
		receives_ok(b, 0, PEER_DEPTH, 0, PEER_MESSAGE) &&
		check_status(b->c,
	                     ndx_listener_get_connection_request(h->p->listener, b->conn, &b->ov),
	                     NDX_PENDING, "get_connection_request");
	return h->asking;
}

/* B takes requests until one of them becomes a connection: those of the dead do not. */
static bool host_accepts(struct host *h)
{
	struct check *c = h->p->c;
	enum ndx_status status = NDX_PENDING;

	while (status != NDX_OK && host_asks(h) &&
	       check_ends(c, &h->p->b.ov, NDX_OK, "get_connection_request")) {
		h->asking = false;
		status = check_result_of(c, side_accept(&h->p->b, NULL, 0), &h->p->b.ov);
		h->stale += status != NDX_OK;
		check_that(c,
		           status == NDX_OK || status == NDX_E_CONNECTION_ABORTED ||
		                   status == NDX_E_CONNECTION_REFUSED,
		           "accept: %s", ndx_status_name(status));
	}
	return !check_over(c);
}

/* One peer lives until `step`. */
static void one_dies(struct host *h, enum step step, uint32_t start_ms)
{
	struct check *c = h->p->c;
	struct side *b = &h->p->b;
	struct ndx_result result;
	struct peer peer;

	if (!host_asks(h) ||
	    !peer_launch(&peer, h->p, step == STEP_STREAMING ? PEER_STREAM : PEER_IDLE, 0))
		return;
	if (step == STEP_STARTING) {
		/* until its request is there, or not so long */
		(void)ndx_overlapped_wait(&b->ov, check_below(c, start_ms + 1));
	} else if (step == STEP_ASKING || step == STEP_ANSWERED) {
		check_ends(c, &b->ov, NDX_OK, "get_connection_request");
		h->asking = false;
		if (step == STEP_ANSWERED)
			check_status(c, side_accept(b, NULL, 0), NDX_PENDING, "accept");
	} else if (host_accepts(h)) {
		if (step == STEP_STREAMING)
			(void)take(b, b->rcq, &result);
		if (step == STEP_PARTING)
			peer_ask_to_disconnect(&peer);
	}
	peer_end(&peer);
}

/* How long A takes to be connected to the same listener, and parts again. */
static uint64_t one_connects(struct host *h)
{
	struct pair *p = h->p;
	struct check *c = p->c;
	uint64_t start;

	/* the queue pair of the last peer is closed before the time counts */
	if (!host_asks(h) || !side_new_connector(&p->a) || !side_new_qp(&p->a))
		return 0;
	start = now_us();
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect");
	do {
		if (!host_asks(h) || !check_ends(c, &p->b.ov, NDX_OK, "get_connection_request"))
			return 0;
		h->asking = false;
		check_status(c, side_accept(&p->b, NULL, 0), NDX_PENDING, "accept");
		/* either this was A's request, or it was one of the dead, which fails by itself */
		while (ndx_overlapped_wait(&p->a.ov, 1) == NDX_PENDING &&
		       ndx_overlapped_status(&p->b.ov) == NDX_PENDING)
			check_that(c, now_us() - start < WAIT_MS * UINT64_C(1000),
			           "connecting takes %d ms", WAIT_MS);
		h->stale += ndx_overlapped_status(&p->a.ov) == NDX_PENDING;
	} while (!check_over(c) && ndx_overlapped_status(&p->a.ov) == NDX_PENDING);
	pair_complete(p);
	start = now_us() - start;
	send_ok(&p->a, 0, 0, PEER_MESSAGE, 0);
	expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	expect_received(&p->b, 0, PEER_MESSAGE);
	pair_disconnect(p);
	return start;
}

/* The fastest of some: what other processes take from this one is not looked for. */
static uint64_t connects(struct host *h)
{
	uint64_t fastest = UINT64_MAX;

	for (size_t i = 0; i < SAMPLES; i++) {
		const uint64_t took = one_connects(h);

		fastest = took < fastest ? took : fastest;
	}
	return fastest;
}

void case_field_modelexpress_575_the_next_connects_as_fast(struct check *c)
{
	struct host h = {.p = pair_open(c, NULL, NULL)};
	struct peer first;
	uint64_t before;
	uint64_t after;
	uint64_t start = now_us();

	if (!h.p || !peer_start(&first, h.p, PEER_IDLE, 0)) {
		if (h.p)
			peer_end(&first);
		return;
	}
	start = now_us() - start; /* how long a peer takes from its start to its connection */
	peer_disconnect(&first);
	peer_end(&first);
	before = connects(&h);
	for (unsigned i = 0; i < DEATHS && !check_over(c); i++)
		one_dies(&h, (enum step)check_below(c, STEPS), (uint32_t)(start / 1000));
	after = connects(&h);
	check_that(c, after <= SLOWER * before,
	           "connecting takes %llu us after %d peers were killed, %llu us before",
	           (unsigned long long)after, DEATHS, (unsigned long long)before);
	check_that(c, h.stale <= DEATHS, "%u requests of %d peers that were killed", h.stale,
	           DEATHS);
}
