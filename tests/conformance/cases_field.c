/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost work, hung or crashed when a connection ended.
 * docs/design/disconnect-elsewhere.md says what happened there, and where it is written down. Here:
 * libfabric, UCX.
 */
#include <signal.h>
#include <string.h>

#include "cases.h"
#include "ledger.h"
#include "peer.h"
#include "probe.h"
#include "traffic.h"

enum {
	MESSAGE = 64,
	DEPTH = 64, /* of both queues, as the fixture makes them */
	ROUNDS = 10,
	SHORT_DRAIN_MS = 30,
};

/* ---- libfabric #677: what becomes of what is outstanding? ---- */

struct collector {
	struct side *side;
	struct ledger ledger;
	size_t wanted;
	pthread_t thread;
	bool running;
};

static void *collect(void *arg)
{
	struct collector *o = arg;

	(void)ledger_await(&o->ledger, o->side, o->wanted);
	return NULL;
}

/* The thread that takes results ends when it has them all: it need not be stopped. */
static void collected(struct check *c, struct collector *o)
{
	if (o->running)
		(void)pthread_join(o->thread, NULL);
	o->running = false;
	ledger_complete(&o->ledger, o->side, o->wanted);
	check_that(c, o->ledger.failed == 0, "%zu requests failed", o->ledger.failed);
}

void case_field_libfabric_677_full_queues_at_the_end(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct collector o = {.wanted = (size_t)2 * DEPTH};
	uint64_t key = check_random(c);

	if (!p)
		return;
	o.side = &p->a;
	o.running = pthread_create(&o.thread, NULL, collect, &o) == 0;
	check_that(c, o.running, "no thread");
	receives_ok(&p->b, 0, DEPTH, 0, MESSAGE);
	receives_ok(&p->a, 0, DEPTH, 8192, MESSAGE);
	pattern_fill(p->a.buf, (size_t)DEPTH * MESSAGE, key);
	sends_ok(&p->a, DEPTH, DEPTH, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	collected(c, &o);
	check_that(c, o.ledger.ok == DEPTH && o.ledger.cancelled == DEPTH,
	           "%zu sends completed well and %zu receives were cancelled, not %d of each",
	           o.ledger.ok, o.ledger.cancelled, DEPTH);
	for (size_t i = 0; i < DEPTH; i++)
		expect_received(&p->b, i, MESSAGE);
	pattern_there(c, p->b.buf, (size_t)DEPTH * MESSAGE, key, "what was sent before the end");
}

/* ---- libfabric #776: the end has to be told to a peer that does nothing for it ---- */

static void answer_and_clean_up(struct check *c, struct side *first, struct side *second)
{
	enum ndx_status notified;

	side_start_notify(first);
	side_start_notify(second);
	side_start_disconnect(first);
	side_indicated(second, NDX_DISCONNECT_GRACEFUL); /* it has not called disconnect so far */
	side_start_disconnect(second);
	side_close_connector(second); /* in answer, and everything else with it */
	side_close_qp(second);
	side_close_mr(second);
	side_close_cqs(second);
	check_either(c, ndx_overlapped_status(&second->disc), NDX_OK, NDX_E_CANCELED,
	             "disconnect whose connector was closed");
	check_ends(c, &first->disc, NDX_OK, "disconnect");
	notified = ndx_overlapped_status(&first->notify);
	check_either(c, notified, NDX_OK, NDX_E_CANCELED, "notification of who began");
	if (notified == NDX_OK)
		side_indicated(first, NDX_DISCONNECT_GRACEFUL);
}

void case_field_libfabric_776_peer_learns_without_calling(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);

		if (!p)
			return;
		if (i % 2)
			answer_and_clean_up(c, &p->b, &p->a);
		else
			answer_and_clean_up(c, &p->a, &p->b);
		pair_close_all(c);
	}
}

/* ---- libfabric #4672: requests that never complete when the peer goes ---- */

/* Receives 0 .. 15, sends 16 .. 35, reads 36 .. 39, writes 40 .. 43. */
enum { OUTSTANDING = 44 };

static bool post_everything(struct side *s, const struct side *peer)
{
	receives_ok(s, 0, 16, 0, MESSAGE);
	sends_ok(s, 16, 20, 4096, MESSAGE);
	for (size_t i = 0; i < 4; i++) {
		if (peer)
			read_ok(s, 36 + i, 8192 + i * MESSAGE, MESSAGE, peer, 0, 0);
		else
			receive_ok(s, 36 + i, 8192 + i * MESSAGE, MESSAGE);
	}
	for (size_t i = 0; i < 4; i++) {
		if (peer)
			write_ok(s, 40 + i, 8192 + i * MESSAGE, MESSAGE, peer, 16384, 0);
		else
			send_ok(s, 40 + i, 8192 + i * MESSAGE, MESSAGE, 0);
	}
	return !check_over(s->c);
}

void case_field_libfabric_4672_nothing_is_lost_at_an_abort(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		struct ledger ledger = {.count = 0};

		if (!p)
			return;
		receives_ok(&p->b, 0, 8, 0, MESSAGE); /* for fewer than are sent */
		if (!post_everything(&p->a, &p->b))
			return;
		check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
		ledger_await(&ledger, &p->a, OUTSTANDING);
		ledger_complete(&ledger, &p->a, OUTSTANDING);
		check_that(c, ledger.failed == 0,
		           "%zu requests have another status than OK and "
		           "CANCELED",
		           ledger.failed);
		side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
		ledger_complete(&ledger, &p->a, OUTSTANDING);
		pair_close_all(c);
	}
}

void case_field_libfabric_4672_nothing_is_lost_when_the_peer_dies(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ledger ledger = {.count = 0};
	struct peer peer;

	if (!p)
		return;
	if (peer_start(&peer, p, PEER_IDLE, 0) && post_everything(&p->b, NULL)) {
		peer_signal(&peer, SIGKILL);
		ledger_await(&ledger, &p->b, OUTSTANDING);
		ledger_complete(&ledger, &p->b, OUTSTANDING);
	}
	peer_end(&peer);
}

/* ---- libfabric #9123: the end is told twice when it has two causes ---- */

static void post_bad_send(struct side *s)
{
	struct ndx_sge one = sge(s, 0, MESSAGE);

	one.token ^= 0x5a5a5a5a;
	check_status(s->c, ndx_qp_send(s->qp, tag(s, 1), &one, 1, 0), NDX_OK,
	             "send with a wrong token");
}

/* A request of A fails, which ends the connection, and both sides end it at the same time. */
static void two_causes(struct check *c, struct pair *p, struct probe told[2], bool error_first)
{
	struct side *sides[2] = {&p->a, &p->b};
	struct ndx_overlapped again;

	ndx_overlapped_init(&again);
	for (size_t i = 0; i < 2; i++)
		check_status(c, ndx_connector_notify_disconnect(sides[i]->conn, &told[i].ov),
		             NDX_PENDING, "notify_disconnect");
	if (error_first)
		post_bad_send(&p->a);
	side_start_disconnect(&p->b);
	if (!error_first)
		post_bad_send(&p->a);
	side_start_disconnect(&p->a);
	for (size_t i = 0; i < 2 && !check_over(c); i++) {
		check_either(c, check_result_of(c, NDX_PENDING, &sides[i]->disc), NDX_OK,
		             NDX_E_CONNECTION_ABORTED, "disconnect");
		probe_called(&told[i], 1, "indication");
		check_either(c, told[i].seen, NDX_OK, NDX_E_CANCELED, "indication");
		if (told[i].seen != NDX_OK)
			continue;
		check_async(c, ndx_connector_notify_disconnect(sides[i]->conn, &again), &again,
		            NDX_OK, "notify_disconnect once more");
		check_that(c, again.information == told[i].ov.information,
		           "the end was told with another reason: %u, not %u", again.information,
		           told[i].ov.information);
	}
}

void case_field_libfabric_9123_one_end_is_indicated_once(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		struct probe told[2];

		memset(told, 0, sizeof(told));
		if (p && probe_begin(&told[0], c, WAY_CALLBACK) &&
		    probe_begin(&told[1], c, WAY_CALLBACK))
			two_causes(c, p, told, i % 2 == 0);
		pair_close_all(c);
		for (size_t j = 0; j < 2; j++) {
			if (told[j].c)
				check_that(c, probe_calls(&told[j]) == 1,
				           "the end was told %u "
				           "times",
				           probe_calls(&told[j]));
			probe_end(&told[j]);
		}
	}
}

/* ---- libfabric #10405: what to call when, and what follows for certain ---- */

void case_field_libfabric_10405_giving_up_at_every_stage(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	receive_ok(&p->a, 1, 0, MESSAGE);
	/* not answered: there is nothing to disconnect, cancel abandons it */
	pair_ask(p);
	check_status(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), NDX_E_CONNECTION_INVALID,
	             "disconnect while the connection is asked for");
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->a.ov), NDX_E_CANCELED, "connect");
	check_either(c, check_result_of(c, side_accept(&p->b, NULL, 0), &p->b.ov),
	             NDX_E_CONNECTION_ABORTED, NDX_E_CONNECTION_REFUSED, "accept");
	/* answered, not completed: the same; close abandons it */
	side_new_connector(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->b);
	(void)(pair_ask(p) && pair_answer(p));
	check_status(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), NDX_E_CONNECTION_INVALID,
	             "disconnect before complete_connect");
	side_close_connector(&p->a);
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
	/* the queue pair is as it was, and its receive is still there */
	side_new_connector(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->b);
	pair_connect(p);
	send_ok(&p->b, 2, 0, MESSAGE, 0);
	expect_received(&p->a, 1, MESSAGE);
	pair_disconnect(p);
}

/* The end is not waited for: everything is closed at once, and the next connection made. */
void case_field_libfabric_10405_closing_without_waiting(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	for (unsigned i = 0; i < (unsigned)2 * ROUNDS && p && !check_over(c); i++) {
		struct ledger ledger = {.count = 0};

		if (!pair_connect(p) || !message_passes(&p->a, &p->b, MESSAGE))
			return;
		receives_ok(&p->a, 0, 8, 0, MESSAGE);
		side_start_notify(&p->b);
		side_start_disconnect(&p->a);
		side_close_connector(&p->a);
		check_either(c, ndx_overlapped_status(&p->a.disc), NDX_OK, NDX_E_CANCELED,
		             "disconnect after the close");
		side_close_qp(&p->a);
		ledger_complete(&ledger, &p->a, 8);
		check_that(c, ledger.cancelled == 8, "%zu of 8 receives were cancelled",
		           ledger.cancelled);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		side_disconnect(&p->b, NDX_OK);
		side_new_connector(&p->a);
		side_new_connector(&p->b);
		side_new_qp(&p->a);
		side_new_qp(&p->b);
	}
}

/* However the connection goes down: each call has its end, and only one. */
void case_field_libfabric_10405_every_call_has_its_end(struct check *c)
{
	for (unsigned i = 0; i < (unsigned)2 * ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		bool aborts = check_chance(c, 50);

		if (!p)
			return;
		sends_ok(&p->a, 0, check_below(c, 4), 0, MESSAGE);
		receives_ok(&p->b, 0, 4, 0, MESSAGE);
		side_start_notify(&p->a);
		side_start_notify(&p->b);
		side_start_disconnect(&p->a);
		if (aborts)
			check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
		else
			side_close_qp(&p->b);
		check_either(c, check_result_of(c, NDX_PENDING, &p->a.disc), NDX_OK,
		             aborts ? NDX_E_CONNECTION_ABORTED : NDX_OK, "disconnect");
		check_either(c, ndx_overlapped_status(&p->a.notify), NDX_OK, NDX_E_CANCELED,
		             "notification at A");
		check_either(c, check_result_of(c, NDX_PENDING, &p->b.notify), NDX_OK,
		             NDX_E_CANCELED, "notification at B");
		pair_close_all(c);
	}
}

/* ---- UCX #4491: a flush that hangs because the end was told before it ---- */

struct flusher {
	struct side *side;
	enum ndx_status flushed;
	size_t there; /* results when it had returned */
};

static void flush_in_callback(struct probe *probe)
{
	struct flusher *f = probe->arg;
	struct ndx_result results[DEPTH];
	size_t got;

	f->flushed = ndx_qp_flush(f->side->qp);
	while ((got = ndx_cq_get_results(f->side->cq, results, DEPTH)) > 0)
		f->there += got;
}

static void flushed_at_the_indication(struct check *c, struct pair *p)
{
	struct flusher f = {.side = &p->a, .flushed = NDX_PENDING};
	struct probe told;

	if (!probe_begin_then(&told, c, flush_in_callback, &f))
		return;
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	sends_ok(&p->a, 8, 8, 0,
	         MESSAGE); /* no receive is posted for them: the drain is not over */
	check_status(c, ndx_connector_notify_disconnect(p->a.conn, &told.ov), NDX_PENDING,
	             "notify_disconnect");
	side_start_disconnect(&p->b);
	probe_called(&told, 1, "indication");
	check_status(c, f.flushed, NDX_OK, "flush when the end is told");
	check_that(c, f.there == 16, "%zu of 16 results were there after the flush", f.there);
	check_either(c, check_result_of(c, NDX_PENDING, &p->b.disc), NDX_OK,
	             NDX_E_CONNECTION_ABORTED, "disconnect at B");
	check_either(
		c, check_result_of(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), &p->a.disc),
		NDX_OK, NDX_E_CONNECTION_ABORTED, "disconnect at A");
	pair_close_all(c);
	probe_end(&told);
}

void case_field_ucx_4491_flush_when_the_end_is_indicated(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);

		if (p)
			flushed_at_the_indication(c, p);
	}
}

void case_field_ucx_4491_flush_after_the_end(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	side_start_notify(&p->a);
	side_disconnect(&p->b, NDX_OK);
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->a, NDX_OK);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush after both disconnects");
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush after both disconnects");
	expect_all_there(&p->a, 8, NDX_E_CANCELED);
	/* what is over stays as it was */
	side_disconnect(&p->a, NDX_OK);
	side_disconnect(&p->b, NDX_OK);
}
