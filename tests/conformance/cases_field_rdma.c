/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost work, hung or crashed when a connection ended.
 * Here: what programs on raw verbs met: SPDK, Ceph, Mooncake, monarch.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "cases.h"
#include "ledger.h"
#include "peer.h"
#include "probe.h"
#include "shared.h"
#include "traffic.h"

enum {
	MESSAGE = 64,
	HELD = 8, /* requests that a service has taken and not answered */
	ROUNDS = 10,
	SHORT_DRAIN_MS = 30,
	SHORT_MS = 400,
};

/* A asks; B has taken the requests, and A has receives for the answers: 0 .. HELD - 1. */
static bool requests_held(struct pair *p)
{
	receives_ok(&p->a, 0, HELD, 0, MESSAGE);
	receives_ok(&p->b, 0, HELD, 0, MESSAGE);
	sends_ok(&p->a, 100, HELD, 8192, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 100, HELD, NDX_OK);
	for (size_t i = 0; i < HELD; i++)
		expect_received(&p->b, i, MESSAGE);
	return !check_over(p->c);
}

/* ---- SPDK #298: a service answers requests of a connection that has ended ---- */

void case_field_spdk_298_answers_after_the_end(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t key = check_random(c);

	if (!p || !requests_held(p))
		return;
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, HELD, NDX_E_CANCELED);
	pattern_fill(p->a.buf, p->a.attr.buffer, key); /* it is A's own again */
	for (size_t i = 0; i < HELD; i++) {            /* as a read of a disk is answered */
		write_ok(&p->b, 2 * i, 0, MESSAGE, &p->a, 16384, 0);
		send_ok(&p->b, 2 * i + 1, 0, MESSAGE, 0);
	}
	for (size_t i = 0; i < HELD; i++) {
		expect(&p->b, NDX_REQUEST_WRITE, 2 * i, NDX_E_CANCELED);
		expect(&p->b, NDX_REQUEST_SEND, 2 * i + 1, NDX_E_CANCELED);
	}
	expect_silence(&p->a);
	pattern_there(c, p->a.buf, p->a.attr.buffer, key, "memory after the end");
	side_disconnect(&p->b, NDX_OK);
}

/* ---- SPDK #851: the end comes from two paths, and each takes the queue pair down ---- */

struct service {
	struct side *side;
	struct probe told;
	struct probe gone;
	enum ndx_status started;
};

/* One path: the end is told. */
static void service_told(struct probe *probe)
{
	struct service *v = probe->arg;

	v->started = ndx_connector_disconnect(v->side->conn, &v->gone.ov);
}

static void taken_down_twice(struct check *c, struct pair *p, struct service *v)
{
	struct ledger ledger = {.count = 0};

	receives_ok(&p->b, HELD, HELD, 8192, MESSAGE);
	check_status(c, ndx_connector_notify_disconnect(p->b.conn, &v->told.ov), NDX_PENDING,
	             "notify_disconnect");
	side_start_disconnect(&p->a);
	/* the other: the last requests are answered, and the service closes behind them */
	for (size_t i = 0; i < HELD; i++)
		send_ok(&p->b, i, 0, MESSAGE, 0);
	side_close_qp(&p->b);
	ledger_complete(&ledger, &p->b, (size_t)2 * HELD);
	side_close_connector(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	probe_called(&v->told, 1, "indication");
	if (v->told.seen != NDX_OK)
		return; /* closed before it was told: the first path was not taken */
	check_status(c, v->started, NDX_PENDING, "disconnect from the indication");
	probe_called(&v->gone, 1, "disconnect");
	check_either(c, v->gone.seen, NDX_OK, NDX_E_CANCELED, "disconnect");
}

void case_field_spdk_851_taken_down_from_two_paths(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		struct service v = {.side = NULL};

		if (!p || !requests_held(p))
			return;
		v.side = &p->b;
		if (probe_begin(&v.gone, c, WAY_CALLBACK) &&
		    probe_begin_then(&v.told, c, service_told, &v))
			taken_down_twice(c, p, &v);
		pair_close_all(c);
		if (v.told.c)
			check_that(c, probe_calls(&v.told) <= 1 && probe_calls(&v.gone) <= 1,
			           "%u indications, %u disconnects", probe_calls(&v.told),
			           probe_calls(&v.gone));
		probe_end(&v.told);
		probe_end(&v.gone);
	}
}

/* ---- SPDK #1840: teardown waits for receives that never come back ---- */

enum { MANY = 128 };

static struct pair *pair_of_many(struct check *c, uint32_t disconnect_ms)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.receive_depth = MANY;
	attr.cq_depth = 4;
	attr.drain_ms = SHORT_DRAIN_MS;
	attr.disconnect_ms = disconnect_ms;
	return pair_open(c, &attr, NULL);
}

void case_field_spdk_1840_every_receive_comes_back(struct check *c)
{
	struct pair *p;

	for (unsigned i = 0; i < 2 && !check_over(c); i++) {
		p = pair_of_many(c, 0);
		if (!p)
			return;
		receives_ok(&p->a, 0, MANY, 0, MESSAGE);
		receives_ok(&p->b, 0, MANY, 0, MESSAGE);
		pair_connect(p);
		side_start_notify(&p->b);
		if (i == 0)
			side_disconnect(&p->a, NDX_OK);
		else
			side_close_qp(&p->a);
		expect_all_there(&p->a, MANY, NDX_E_CANCELED);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, MANY, NDX_E_CANCELED);
		expect_silence(&p->b);
		pair_close_all(c);
	}
}

void case_field_spdk_1840_even_from_a_stopped_peer(struct check *c)
{
	struct pair *p = pair_of_many(c, SHORT_MS);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, MANY, 0, MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGSTOP);
		side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
		expect_all_there(&p->b, MANY, NDX_E_CANCELED);
	}
	peer_end(&peer);
}

/* ---- Ceph #25447: a queue pair is gone before what it had in shared queues is ---- */

enum { SIDES = 3 };

/* Results of a shared queue, each into the ledger of its side; until there are `count`. */
static void sort_results(struct check *c, struct ndx_cq *cq, struct pair **pairs,
                         struct ledger *ledgers, size_t count)
{
	struct ndx_result result;
	size_t got = 0;

	for (size_t n = 0; n < count && !check_over(c); n++) {
		struct pair *p = NULL;

		check_status(c, ndx_cq_wait_results(cq, &result, 1, WAIT_MS, &got), NDX_OK,
		             "results of a shared queue");
		for (size_t i = 0; i < SIDES; i++) {
			if (result.queue_pair_context == &pairs[i]->b) {
				p = pairs[i];
				ledger_enter(&ledgers[i], &p->b, &result);
			}
		}
		check_that(c, p != NULL, "a result of no queue pair");
	}
}

/* Pairs whose B sides share a completion queue, and receives if there is an SRQ. */
static bool open_sharing(struct check *c, struct pair **pairs, struct ndx_cq *cq,
                         struct ndx_srq *srq)
{
	struct side_attr attr[2];

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].cq = cq;
	attr[1].srq = srq;
	if (!pairs_open(c, pairs, SIDES, &attr[0], &attr[1]))
		return false;
	for (size_t i = 0; i < SIDES; i++)
		pair_connect(pairs[i]);
	return !check_over(c);
}

static void close_one_of_three(struct check *c, struct pair **pairs, struct ndx_cq *cq)
{
	struct ledger ledgers[SIDES];

	memset(ledgers, 0, sizeof(ledgers));
	for (size_t i = 0; i < SIDES; i++)
		receives_ok(&pairs[i]->b, 0, 16, 0, MESSAGE);
	for (size_t i = 0; i < SIDES; i++)
		sends_ok(&pairs[i]->a, 100, 8, 8192, MESSAGE);
	side_start_notify(&pairs[0]->a);
	side_close_qp(&pairs[0]->b); /* in the middle of it */
	side_indicated(&pairs[0]->a, NDX_DISCONNECT_GRACEFUL);
	sort_results(c, cq, pairs, ledgers, 32); /* 16 of the closed one, 8 of each other */
	check_that(c, ledgers[0].count == 16 && ledgers[0].failed == 0,
	           "%zu results of 16 requests of the closed queue pair", ledgers[0].count);
	for (size_t i = 1; i < SIDES; i++) {
		check_that(c, ledgers[i].ok == 8, "%zu of 8 messages beside the closed queue pair",
		           ledgers[i].ok);
		sends_ok(&pairs[i]->a, 200, 8, 8192, MESSAGE);
	}
	sort_results(c, cq, pairs, ledgers, 16);
	check_that(c, ledgers[1].ok == 16 && ledgers[2].ok == 16,
	           "%zu and %zu of 16 messages beside the closed queue pair", ledgers[1].ok,
	           ledgers[2].ok);
	check_that(c, ledgers[0].count == 16, "a result of a queue pair that is gone");
}

void case_field_ceph_25447_results_outlive_their_queue_pair(struct check *c)
{
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *pairs[SIDES];
		struct ndx_cq *cq = NULL;

		check_status(c, ndx_cq_create_depth(c->world->places[1].adapter, 4, &cq), NDX_OK,
		             "cq_create");
		if (cq && open_sharing(c, pairs, cq, NULL))
			close_one_of_three(c, pairs, cq);
		pair_close_all(c);
		ndx_cq_close(cq);
	}
}

/* The shared receives: the closed one's share is accounted for, the others have the rest. */
static void share_the_rest(struct check *c, struct pair **pairs, struct ndx_cq *cq,
                           struct ndx_srq *srq)
{
	struct ledger ledgers[SIDES];
	struct ndx_result result;
	size_t used;

	/* named by a side that stays: the results say which queue pair took them */
	shared_run(srq, &pairs[1]->b, 0, 32, 0, MESSAGE);
	memset(ledgers, 0, sizeof(ledgers));
	sends_ok(&pairs[0]->a, 100, 8, 8192, MESSAGE);
	side_start_notify(&pairs[0]->a);
	side_close_qp(&pairs[0]->b);
	side_indicated(&pairs[0]->a, NDX_DISCONNECT_GRACEFUL);
	for (used = 0; ndx_cq_get_results(cq, &result, 1) == 1; used++) {
		check_that(c, result.queue_pair_context == &pairs[0]->b,
		           "a result of another queue pair");
		check_that(c,
		           ledgers[1].seen[(const char *)result.request_context -
		                           pairs[1]->b.tags]++ == 0,
		           "a shared receive completed twice");
	}
	check_that(c, used <= 8, "%zu receives were used up for 8 messages", used);
	for (size_t i = 0; i < 32 - used && !check_over(c); i++) {
		struct pair *p = pairs[1 + i % 2];

		send_ok(&p->a, 200, 8192, MESSAGE, 0);
		expect(&p->a, NDX_REQUEST_SEND, 200, NDX_OK);
		if (!take(&p->b, cq, &result))
			return;
		p->b.held_at = p->b.held_count; /* one message, one result */
		check_that(c,
		           result.status == NDX_OK && result.queue_pair_context == &p->b &&
		                   ledgers[1].seen[(const char *)result.request_context -
		                                   pairs[1]->b.tags]++ == 0,
		           "shared receive %zu of %zu that were left: %s", i, 32 - used,
		           ndx_status_name(result.status));
	}
}

void case_field_ceph_25447_shared_receives_are_all_accounted_for(struct check *c)
{
	struct pair *pairs[SIDES];
	struct ndx_cq *cq = NULL;
	struct ndx_srq *srq = shared_open(c, 32, 0);

	check_status(c, ndx_cq_create_depth(c->world->places[1].adapter, 4, &cq), NDX_OK,
	             "cq_create");
	if (cq && srq && open_sharing(c, pairs, cq, srq))
		share_the_rest(c, pairs, cq, srq);
	pair_close_all(c);
	ndx_srq_close(srq);
	ndx_cq_close(cq);
}

/* ---- Mooncake #1903: posts from one thread while another takes the connection down ---- */

enum { POSTERS = 2, POSTS = 3000 }; /* all of them have a tag of their own */

struct poster {
	struct side *side;
	struct check *c;
	size_t first; /* tag */
	atomic_bool *stop;
	atomic_size_t *accepted;
	pthread_t thread;
	bool running;
};

static void *post_on(void *arg)
{
	struct poster *o = arg;
	enum ndx_status status;
	size_t after = 0;

	for (size_t n = 0; n < POSTS && after < 20 && !check_over(o->c);) {
		bool ended = atomic_load(o->stop);

		status = send_raw(o->side, o->first + n, 0, MESSAGE, 0);
		if (status == NDX_OK) {
			n++;
			after += ended; /* a few on the connection that is gone, too */
			(void)atomic_fetch_add(o->accepted, 1);
		} else if (status == NDX_E_NO_MORE_ENTRIES) {
			after += ended; /* no thread empties the queue any more */
			(void)sched_yield();
		} else {
			check_fail(o->c, "a post beside the teardown: %s", ndx_status_name(status));
		}
	}
	return NULL;
}

static void post_beside_the_end(struct check *c, struct pair *p, bool flush)
{
	struct poster posters[POSTERS];
	struct ledger ledger = {.count = 0};
	atomic_bool stop = false;
	atomic_size_t accepted = 0;
	size_t least = check_below(c, 200);

	for (size_t i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){&p->a, c, i * POSTS, &stop, &accepted, 0, false};
		posters[i].running =
			pthread_create(&posters[i].thread, NULL, post_on, &posters[i]) == 0;
		check_that(c, posters[i].running, "no thread");
	}
	/* B receives only so many: with the rest the queue is full when the end comes */
	while (!check_over(c) && atomic_load(&accepted) < least && ledger.ok < 64)
		(void)ledger_take(&ledger, &p->a);
	if (flush)
		check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	side_start_disconnect(&p->a);
	while (!check_over(c) && ndx_overlapped_status(&p->a.disc) == NDX_PENDING)
		(void)ledger_take(&ledger, &p->a);
	check_ends(c, &p->a.disc, flush ? NDX_E_CONNECTION_ABORTED : NDX_OK, "disconnect");
	atomic_store(&stop, true);
	for (size_t i = 0; i < POSTERS; i++) {
		if (posters[i].running)
			(void)pthread_join(posters[i].thread, NULL);
	}
	ledger_await(&ledger, &p->a, atomic_load(&accepted));
	ledger_complete(&ledger, &p->a, atomic_load(&accepted));
	check_that(c, ledger.failed == 0 && ledger.ok <= 64,
	           "%zu posts failed otherwise than cancelled, %zu succeeded for 64 receives",
	           ledger.failed, ledger.ok);
}

void case_field_mooncake_1903_posts_beside_the_teardown(struct check *c)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	for (unsigned i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, &attr);

		if (!p)
			return;
		receives_ok(&p->b, 0, 64, 0, MESSAGE);
		post_beside_the_end(c, p, i % 2 == 1);
		pair_close_all(c);
	}
}

/* ---- monarch #4719: results of a dead queue pair, and a new one in its place ---- */

/* Receives 0 .. 7, of which four are used, and sends 8 .. 11. The results are not taken. */
static void leave_results(struct pair *p)
{
	struct ledger at_b = {.count = 0};

	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	receives_ok(&p->b, 0, 4, 0, MESSAGE);
	sends_ok(&p->a, 8, 4, 8192, MESSAGE);
	sends_ok(&p->b, 100, 4, 8192, MESSAGE);
	ledger_await(&at_b, &p->b, 8);
	check_that(p->c, at_b.ok == 8, "%zu of 8 requests of B completed well", at_b.ok);
	side_close_qp(&p->a);
	side_close_connector(&p->a);
}

static void results_of_generations(struct check *c, struct ndx_cq *cq)
{
	struct ledger ledgers[SIDES];
	struct pair *pairs[SIDES];
	struct side_attr attr[2];
	struct ndx_result results[SIDES * 12 + 1];
	size_t taken;

	memset(ledgers, 0, sizeof(ledgers));
	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].cq = cq;
	/* each is made when the one before is closed, and may get what that had */
	for (size_t i = 0; i < SIDES; i++) {
		pairs[i] = pair_up_with(c, &attr[0], &attr[1]);
		if (!pairs[i])
			return;
		leave_results(pairs[i]);
	}
	taken = ndx_cq_get_results(cq, results, sizeof(results) / sizeof(results[0]));
	check_that(c, taken == (size_t)SIDES * 12, "%zu results of %d requests", taken, SIDES * 12);
	for (size_t n = 0; n < taken; n++) {
		for (size_t i = 0; i < SIDES; i++) {
			if (results[n].queue_pair_context == &pairs[i]->a)
				ledger_enter(&ledgers[i], &pairs[i]->a, &results[n]);
		}
	}
	for (size_t i = 0; i < SIDES; i++)
		check_that(c, ledgers[i].ok == 8 && ledgers[i].cancelled == 4,
		           "queue pair %zu: %zu of 8 completed well, %zu of 4 were cancelled", i,
		           ledgers[i].ok, ledgers[i].cancelled);
}

void case_field_monarch_4719_results_keep_their_queue_pair(struct check *c)
{
	for (unsigned round = 0; round < ROUNDS && !check_over(c); round++) {
		struct ndx_cq *cq = NULL;

		if (check_status(c, ndx_cq_create_depth(c->world->places[0].adapter, 4, &cq),
		                 NDX_OK, "cq_create"))
			results_of_generations(c, cq);
		pair_close_all(c);
		ndx_cq_close(cq);
	}
}
