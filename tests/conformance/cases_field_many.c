/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost work, hung or crashed when a connection ended.
 * Here: many connections, batches and lives: aws-ofi-nccl, valkey, nbs, nixl.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cases.h"
#include "ledger.h"
#include "peer.h"
#include "probe.h"
#include "traffic.h"

enum { MESSAGE = 64, ROUNDS = 10 };

static uint64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int by_size(const void *one, const void *other)
{
	const uint64_t a = *(const uint64_t *)one;
	const uint64_t b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

/* Of times: one of them may be long, because others had the processor. Sorts them. */
static uint64_t median(uint64_t *times, size_t count)
{
	qsort(times, count, sizeof(*times), by_size);
	return times[count / 2];
}

/* ---- nbs #2690: a repost fails in the middle of a batch, the rest of the batch is lost ---- */

enum { BATCH = 16, AT_ONCE = 3 };

enum mishap { OWN_DISCONNECT, OWN_FLUSH, PEERS_FLUSH, REFUSED, MISHAPS };

/* Receives 0 .. 15 have taken messages; each result is followed by a receive 16 .. 31. */
struct batch {
	struct pair *p;
	struct ledger ledger;
	enum mishap mishap;
	size_t reposted;
	size_t taken; /* atomic: the case looks while callbacks count */
};

static size_t batch_taken(struct batch *b)
{
	return __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE);
}

/* What happens when the third result is looked at: B's queue pair goes, or refuses a receive. */
static void goes_wrong(struct batch *b)
{
	struct ndx_sge many[64];
	struct check *c = b->p->c;

	memset(many, 0, sizeof(many));
	if (b->mishap == OWN_DISCONNECT)
		side_start_disconnect(&b->p->b);
	else if (b->mishap == OWN_FLUSH)
		check_status(c, ndx_qp_flush(b->p->b.qp), NDX_OK, "flush in a batch");
	else if (b->mishap == PEERS_FLUSH)
		check_status(c, ndx_qp_flush(b->p->a.qp), NDX_OK, "flush at the peer");
	else
		check_status(c, ndx_qp_receive(b->p->b.qp, tag(&b->p->b, 40), many, 64),
		             NDX_E_DATA_OVERRUN, "receive of 64 pieces");
}

static void look_at(struct batch *b, const struct ndx_result *result)
{
	struct side *s = &b->p->b;
	size_t number = batch_taken(b);

	(void)ledger_enter(&b->ledger, s, result);
	(void)result_is(s, result, NDX_REQUEST_RECEIVE, number, NDX_OK);
	if (number == AT_ONCE - 1)
		goes_wrong(b);
	if (number != AT_ONCE - 1 || b->mishap != REFUSED)
		b->reposted += receive_ok(s, BATCH + number, 8192, MESSAGE);
	__atomic_store_n(&b->taken, number + 1, __ATOMIC_RELEASE);
}

/* Some at a time, so that the queue has the others when the third is looked at. */
static void take_some(struct batch *b)
{
	struct ndx_result results[AT_ONCE];
	size_t left = BATCH - batch_taken(b);
	size_t got;

	while (left > 0) {
		got = ndx_cq_get_results(b->p->b.cq, results, left < AT_ONCE ? left : AT_ONCE);
		if (got == 0)
			return;
		for (size_t i = 0; i < got; i++)
			look_at(b, &results[i]);
		left -= got;
	}
}

static void take_in_callback(struct probe *probe)
{
	struct batch *b = probe->arg;

	take_some(b);
	if (batch_taken(b) < BATCH && !check_over(probe->c))
		check_status(probe->c, ndx_cq_notify(b->p->b.cq, NDX_CQ_NOTIFY_ANY, &probe->ov),
		             NDX_PENDING, "cq_notify in a callback");
}

/* All sixteen are taken, by this thread or in callbacks. */
static void take_batch(struct batch *b, struct probe *probe)
{
	struct check *c = b->p->c;
	uint64_t until = now_ms() + WAIT_MS;
	unsigned calls = 0;

	if (probe)
		check_status(c, ndx_cq_notify(b->p->b.cq, NDX_CQ_NOTIFY_ANY, &probe->ov),
		             NDX_PENDING, "cq_notify");
	while (batch_taken(b) < BATCH && !check_over(c)) {
		if (probe)
			probe_called(probe, ++calls, "cq_notify");
		else
			take_some(b);
		check_that(c, now_ms() < until, "%zu of a batch of %d results came", batch_taken(b),
		           BATCH);
	}
}

static void repost_fails(struct check *c, enum mishap mishap, bool in_callback)
{
	struct batch b = {.p = pair_up(c, NULL), .mishap = mishap};
	struct probe one;

	if (!b.p || (in_callback && !probe_begin_then(&one, c, take_in_callback, &b)))
		return;
	receives_ok(&b.p->b, 0, BATCH, 0, MESSAGE);
	sends_ok(&b.p->a, 0, BATCH, 0, MESSAGE);
	expect_run(&b.p->a, NDX_REQUEST_SEND, 0, BATCH, NDX_OK);
	if (!check_over(c))
		take_batch(&b, in_callback ? &one : NULL);
	if (mishap == REFUSED) {
		sends_ok(&b.p->a, 100, BATCH - 1, 0, MESSAGE);
		ledger_await(&b.ledger, &b.p->b, (size_t)2 * BATCH - 1);
	} else {
		ledger_await(&b.ledger, &b.p->b, (size_t)2 * BATCH);
		check_that(c, b.ledger.ok == BATCH && b.ledger.cancelled == BATCH,
		           "%zu receives completed well and %zu were cancelled, not %d of each",
		           b.ledger.ok, b.ledger.cancelled, BATCH);
	}
	ledger_complete(&b.ledger, &b.p->b, (size_t)BATCH + b.reposted);
	check_that(c, b.ledger.failed == 0, "%zu receives failed", b.ledger.failed);
	pair_close_all(c);
	if (in_callback)
		probe_end(&one);
}

void case_field_nbs_2690_repost_fails_inside_a_batch(struct check *c)
{
	for (unsigned i = 0; i < 2 * MISHAPS && !check_over(c); i++)
		repost_fails(c, (enum mishap)(i % MISHAPS), i >= MISHAPS);
}

/* ---- aws-ofi-nccl #1275: one thread closes both ends, one after the other ---- */

enum { PAIRS = 100, SLOWER = 5 };

/* Each call returns before the next is made: no other thread can do anything for this connection.
 */
static void close_in_turn(struct side *first, struct side *second, bool disconnects)
{
	struct check *c = first->c;

	if (disconnects) {
		check_status(c, ndx_disconnect(first->conn, WAIT_MS), NDX_OK, "disconnect first");
		check_status(c, ndx_disconnect(second->conn, WAIT_MS), NDX_OK, "disconnect second");
	}
	side_close_qp(first);
	side_close_connector(first);
	side_close_qp(second);
	side_close_connector(second);
}

/* Both ends are asked to part before either is waited for. */
static void close_at_once(struct side *first, struct side *second)
{
	side_start_disconnect(first);
	side_start_disconnect(second);
	check_ends(first->c, &first->disc, NDX_OK, "disconnect");
	check_ends(first->c, &second->disc, NDX_OK, "disconnect");
	side_close_qp(first);
	side_close_connector(first);
	side_close_qp(second);
	side_close_connector(second);
}

enum { CLOSES, DISCONNECTS, AT_ONCE_BOTH, WAYS };

static void close_pairs(struct check *c, struct pair **pairs)
{
	uint64_t times[WAYS][PAIRS];
	size_t count[WAYS] = {0};
	uint64_t middle[WAYS];

	for (size_t i = 0; i < PAIRS && !check_over(c); i++) {
		bool turned = check_chance(c, 50);
		struct side *first = turned ? &pairs[i]->b : &pairs[i]->a;
		struct side *second = pair_other(pairs[i], first);
		size_t way = i % WAYS;
		uint64_t start = now_us();

		if (way == AT_ONCE_BOTH)
			close_at_once(first, second);
		else
			close_in_turn(first, second, way == DISCONNECTS);
		times[way][count[way]++] = now_us() - start;
	}
	if (check_over(c))
		return;
	for (size_t i = 0; i < WAYS; i++)
		middle[i] = median(times[i], count[i]);
	for (size_t i = 0; i < AT_ONCE_BOTH; i++)
		check_that(c, middle[i] <= SLOWER * middle[AT_ONCE_BOTH],
		           "%s both ends one after the other takes one thread %llu us, at once "
		           "%llu us",
		           i == CLOSES ? "closing" : "disconnecting", (unsigned long long)middle[i],
		           (unsigned long long)middle[AT_ONCE_BOTH]);
}

void case_field_aws_ofi_nccl_1275_one_thread_closes_both_ends(struct check *c)
{
	struct pair *pairs[PAIRS];
	struct side_attr attr;

	side_attr_init(&attr);
	attr.buffer = 4096;
	if (!pairs_open(c, pairs, PAIRS, &attr, NULL))
		return;
	for (size_t i = 0; i < PAIRS; i++) {
		pair_connect(pairs[i]);
		receives_ok(&pairs[i]->a, 0, 8, 0, MESSAGE);
		receives_ok(&pairs[i]->b, 0, 8, 0, MESSAGE);
	}
	close_pairs(c, pairs);
	for (size_t i = 0; i < PAIRS; i++) {
		expect_all_there(&pairs[i]->a, 8, NDX_E_CANCELED);
		expect_all_there(&pairs[i]->b, 8, NDX_E_CANCELED);
	}
}

/* ---- valkey #4534: connections are freed in completions, where others are pending still ---- */

enum { STORM = 64, NEIGHBOUR = 7 };

struct storm;

/* One end; its operations have objects that are freed when they complete. */
struct guest {
	struct storm *storm;
	struct side *side;
	size_t index; /* 2 * pair + (side B) */
	bool closed;  /* in callbacks of its side's adapter only */
};

struct storm {
	struct check *c;
	struct guest guests[2 * STORM];
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t changed;
	bool begun; /* the calls that begin it have returned */
	unsigned completed;
	unsigned closed;
};

/* No call may be under way on what is closed. */
static void storm_await(struct storm *storm)
{
	(void)pthread_mutex_lock(&storm->lock);
	while (!storm->begun)
		(void)pthread_cond_wait(&storm->changed, &storm->lock);
	(void)pthread_mutex_unlock(&storm->lock);
}

static void storm_count(struct storm *storm, unsigned *what)
{
	(void)pthread_mutex_lock(&storm->lock);
	(*what)++;
	(void)pthread_cond_signal(&storm->changed);
	(void)pthread_mutex_unlock(&storm->lock);
}

static void close_guest(struct guest *g)
{
	if (g->closed)
		return;
	g->closed = true;
	side_close_connector(g->side);
	side_close_qp(g->side);
	storm_count(g->storm, &g->storm->closed);
}

/* A callback for the end, or for a result, closes another connection of its side, then its own. */
static void storms(struct ndx_overlapped *ov)
{
	struct guest *g = ov->context;
	struct storm *storm = g->storm;

	memset(ov, 0xee, sizeof(*ov));
	free(ov);
	storm_await(storm);
	close_guest(&storm->guests[(g->index + (size_t)2 * NEIGHBOUR) % ((size_t)2 * STORM)]);
	close_guest(g);
	storm_count(storm, &storm->completed);
}

/* A notification of its end, or of its queue, is pending from now on. */
static unsigned storm_ask(struct guest *g, bool of_end)
{
	struct ndx_overlapped *ov = calloc(1, sizeof(*ov));
	enum ndx_status st;

	if (!ov) {
		check_fail(g->storm->c, "no memory");
		return 0;
	}
	ov->callback = storms;
	ov->context = g;
	st = of_end ? ndx_connector_notify_disconnect(g->side->conn, ov)
	            : ndx_cq_notify(g->side->cq, NDX_CQ_NOTIFY_ANY, ov);
	if (check_status(g->storm->c, st, NDX_PENDING, of_end ? "notify_disconnect" : "cq_notify"))
		return 1;
	if (st != NDX_PENDING)
		free(ov);
	return 0;
}

static unsigned storm_prepare(struct storm *storm, struct pair **pairs)
{
	unsigned pending = 0;

	for (size_t i = 0; i < (size_t)2 * STORM && !check_over(storm->c); i++) {
		struct guest *g = &storm->guests[i];

		*g = (struct guest){storm, i % 2 ? &pairs[i / 2]->b : &pairs[i / 2]->a, i, false};
		receives_ok(g->side, 0, 4, 0, MESSAGE);
		pending += storm_ask(g, true);
		pending += storm_ask(g, false);
	}
	return pending;
}

/* One connection gets a message or is ended; the rest is done by callbacks. */
static void storm_run(struct storm *storm, struct pair **pairs)
{
	unsigned pending = storm_prepare(storm, pairs);
	bool disconnect = check_chance(storm->c, 50);
	size_t first = check_below(storm->c, STORM);
	struct timespec until;
	bool late = check_over(storm->c);

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_MS / 1000;
	if (disconnect)
		side_start_disconnect(&pairs[first]->a);
	else
		send_ok(&pairs[first]->a, 10, 0, MESSAGE, 0);
	(void)pthread_mutex_lock(&storm->lock);
	storm->begun = true;
	(void)pthread_cond_broadcast(&storm->changed);
	while (!late && (storm->closed < 2 * STORM || storm->completed < pending))
		late = pthread_cond_timedwait(&storm->changed, &storm->lock, &until) != 0;
	check_that(storm->c, !late, "%u of %d ends were closed, %u of %u operations completed",
	           storm->closed, 2 * STORM, storm->completed, pending);
	(void)pthread_mutex_unlock(&storm->lock);
}

void case_field_valkey_4534_connections_close_each_other_in_completions(struct check *c)
{
	struct storm *storm = calloc(1, sizeof(*storm));
	struct pair *pairs[STORM];
	struct side_attr attr;

	side_attr_init(&attr);
	attr.buffer = 4096;
	for (unsigned round = 0; storm && round < 3 && !check_over(c); round++) {
		struct pair *p;

		memset(storm, 0, sizeof(*storm));
		storm->c = c;
		(void)pthread_mutex_init(&storm->lock, NULL);
		(void)pthread_cond_init(&storm->changed, NULL);
		if (!pairs_open(c, pairs, STORM, &attr, NULL))
			break;
		for (size_t i = 0; i < STORM; i++)
			pair_connect(pairs[i]);
		storm_run(storm, pairs);
		pair_close_all(c);
		/* the adapter serves the next one */
		p = pair_up(c, NULL);
		(void)(p && message_passes(&p->a, &p->b, MESSAGE) && pair_disconnect(p));
		pair_close_all(c);
	}
	free(storm);
}

/* ---- aws-ofi-nccl #907: one side aborts, the other closes, and nothing is under way ---- */

struct aborter {
	struct side *side;
	pthread_barrier_t *start;
};

static void *abort_it(void *arg)
{
	struct aborter *a = arg;

	(void)pthread_barrier_wait(a->start);
	check_status(a->side->c, ndx_qp_flush(a->side->qp), NDX_OK, "flush");
	return NULL;
}

/* Both at once: each call comes back, whichever is first. */
static void abort_beside(struct check *c, struct side *aborts, struct side *closes,
                         bool disconnects)
{
	pthread_barrier_t start;
	struct aborter aborter = {aborts, &start};
	pthread_t thread;

	if (!check_that(c, pthread_barrier_init(&start, NULL, 2) == 0, "no barrier"))
		return;
	if (check_that(c, pthread_create(&thread, NULL, abort_it, &aborter) == 0, "no thread")) {
		(void)pthread_barrier_wait(&start);
		if (disconnects)
			side_start_disconnect(closes);
		else
			side_close_qp(closes);
		(void)pthread_join(thread, NULL);
	}
	(void)pthread_barrier_destroy(&start);
	if (disconnects)
		check_either(c, check_result_of(c, NDX_PENDING, &closes->disc), NDX_OK,
		             NDX_E_CONNECTION_ABORTED, "disconnect beside the peer's abort");
	side_start_disconnect(aborts);
	check_either(c, check_result_of(c, NDX_PENDING, &aborts->disc), NDX_OK,
	             NDX_E_CONNECTION_ABORTED, "disconnect after the own abort");
}

/* One after the other, without a look at what the first has done. */
static void abort_before(struct check *c, struct side *aborts, struct side *closes,
                         bool disconnects)
{
	check_status(c, ndx_qp_flush(aborts->qp), NDX_OK, "flush");
	if (disconnects) {
		side_start_notify(closes);
		side_disconnect(closes, NDX_E_CONNECTION_ABORTED);
		side_indicated(closes, NDX_DISCONNECT_ABORTED);
	} else {
		side_close_qp(closes);
		side_close_connector(closes);
	}
	side_disconnect(aborts, NDX_E_CONNECTION_ABORTED);
}

void case_field_aws_ofi_nccl_907_one_side_aborts_the_other_closes(struct check *c)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.disconnect_ms = 6 * WAIT_MS; /* so that no timer ends what was not reported */
	for (unsigned i = 0; i < 4 * ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, &attr);
		struct side *aborts;

		if (!p)
			return;
		aborts = check_chance(c, 50) ? &p->a : &p->b;
		if (i % 4 < 2)
			abort_beside(c, aborts, pair_other(p, aborts), i % 2);
		else
			abort_before(c, aborts, pair_other(p, aborts), i % 2);
		expect_silence(aborts);
		pair_close_all(c);
	}
}

/* ---- nixl #2027: a handle of the old registration is used after connecting again ---- */

enum { LIVES = 6 };

/* The next life of the connection: same listener, same memory, registered once more. */
static bool live_again(struct pair *p)
{
	struct check *c = p->c;

	return pair_disconnect(p) && side_new_connector(&p->a) && side_new_connector(&p->b) &&
	       side_new_qp(&p->a) && side_new_qp(&p->b) && pair_connect(p) && !check_over(c);
}

/* B's memory under a new registration. */
static bool register_again(struct pair *p)
{
	side_close_mr(&p->b);
	return check_status(p->c,
	                    ndx_mr_register_new(p->b.adapter, p->b.buf, p->b.attr.buffer,
	                                        p->b.attr.access, &p->b.mr),
	                    NDX_OK, "mr_register_new");
}

static enum ndx_status write_by(struct side *s, size_t number, uint8_t *to, uint32_t token)
{
	struct ndx_sge one = sge(s, 0, MESSAGE);

	return ndx_qp_write(s->qp, tag(s, number), &one, 1, (uint64_t)(uintptr_t)to, token, 0);
}

static void old_life_is_refused(struct pair *p, uint32_t token)
{
	struct check *c = p->c;
	struct ndx_result result;

	memset(p->b.buf, 0xee, MESSAGE);
	check_status(c, write_by(&p->a, 2, p->b.buf, token), NDX_OK, "write by an old token");
	if (take(&p->a, p->a.cq, &result))
		check_either(c, result.status, NDX_E_ACCESS_VIOLATION, NDX_E_REMOTE_ERROR,
		             "write by a token of an earlier life");
	bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory behind a token of an earlier life");
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
}

void case_field_nixl_2027_tokens_of_an_earlier_life(struct check *c)
{
	uint32_t tokens[LIVES] = {0};
	struct pair *p = pair_up(c, NULL);

	for (size_t life = 0; p && life < LIVES && !check_over(c); life++) {
		tokens[life] = ndx_mr_get_remote_token(p->b.mr);
		memset(p->a.buf, (int)life + 1, MESSAGE);
		check_status(c, write_by(&p->a, 1, p->b.buf, tokens[life]), NDX_OK, "write");
		expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
		bytes_are(c, p->b.buf, MESSAGE, (uint8_t)(life + 1), "what was written");
		/* now and then the region is registered anew before the goodbye, else after it */
		if (life % 2 == 0)
			(void)(register_again(p) && live_again(p));
		else
			(void)(live_again(p) && register_again(p));
	}
	for (size_t life = 0; p && life < LIVES && !check_over(c); life++) {
		old_life_is_refused(p, tokens[life]);
		side_new_connector(&p->a);
		side_new_connector(&p->b);
		side_new_qp(&p->a);
		side_new_qp(&p->b);
		discard(&p->a);
		discard(&p->b);
		pair_connect(p);
		check_status(c, write_by(&p->a, 3, p->b.buf, ndx_mr_get_remote_token(p->b.mr)),
		             NDX_OK, "write by the token of today");
		expect(&p->a, NDX_REQUEST_WRITE, 3, NDX_OK);
	}
}
