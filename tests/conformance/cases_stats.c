/* SPDX-License-Identifier: BSD-2-Clause */
/* stats.*: counters and histories say what was done, no more and no less. */
#include <string.h>
#include <sched.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64 };

/* The counters of a side's queue pair; skips where a provider has none. */
static bool qp_stats(struct side *s, struct ndx_qp_stats *out)
{
	enum ndx_status st;

	if (check_over(s->c))
		return false;
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	st = ndx_qp_get_stats(s->qp, out);
	if (st == NDX_E_NOT_SUPPORTED)
		check_skip(s->c, "the provider does not count");
	return check_status(s->c, st, NDX_OK, "ndx_qp_get_stats");
}

static bool cq_stats(struct side *s, struct ndx_cq *cq, struct ndx_cq_stats *out)
{
	enum ndx_status st;

	if (check_over(s->c))
		return false;
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	st = ndx_cq_get_stats(cq, out);
	if (st == NDX_E_NOT_SUPPORTED)
		check_skip(s->c, "the provider does not count");
	return check_status(s->c, st, NDX_OK, "ndx_cq_get_stats");
}

/* What both sides' adapters count; each adapter once. */
struct sums {
	struct ndx_adapter_stats a;
	struct ndx_adapter_stats b; /* the same as `a` if the adapter is */
};

static bool sums_take(struct check *c, struct sums *out)
{
	if (check_over(c))
		return false;
	memset(out, 0, sizeof(*out));
	out->a.size = sizeof(out->a);
	out->b.size = sizeof(out->b);
	return check_status(c, ndx_adapter_get_stats(c->world->places[0].adapter, &out->a), NDX_OK,
	                    "ndx_adapter_get_stats") &&
	       check_status(c, ndx_adapter_get_stats(c->world->places[1].adapter, &out->b), NDX_OK,
	                    "ndx_adapter_get_stats");
}

static bool grew(struct check *c, uint64_t before, uint64_t after, uint64_t by, const char *what)
{
	return check_that(c, after - before == by, "%s: from %llu to %llu instead of by %llu", what,
	                  (unsigned long long)before, (unsigned long long)after,
	                  (unsigned long long)by);
}

static bool is(struct check *c, uint64_t got, uint64_t want, const char *what)
{
	return check_that(c, got == want, "%s is %llu instead of %llu", what,
	                  (unsigned long long)got, (unsigned long long)want);
}

/* The statuses of a side add up to what has completed. */
static void adds_up(struct check *c, const struct ndx_work_stats *work, const char *what)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < NDX_STATS_STATUSES; i++)
		sum += work->by_status[i];
	is(c, sum, work->completed, what);
	check_that(c, work->completed <= work->posted, "%s: more completed than posted", what);
}

void case_stats_count_what_was_done(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats a;
	struct ndx_qp_stats b;
	struct ndx_cq_stats cq;

	if (!p)
		return;
	receives_ok(&p->b, 0, 20, 0, MESSAGE);
	sends_ok(&p->a, 100, 12, 0, MESSAGE);
	for (size_t i = 0; i < 4; i++)
		write_ok(&p->a, 200 + i, 0, MESSAGE, &p->b, 32768, NDX_OP_SILENT_SUCCESS);
	write_ok(&p->a, 210, 0, MESSAGE, &p->b, 32768, 0);
	expect_run(&p->a, NDX_REQUEST_SEND, 100, 12, NDX_OK);
	expect(&p->a, NDX_REQUEST_WRITE, 210, NDX_OK);
	for (size_t i = 0; i < 12; i++)
		expect_received(&p->b, i, MESSAGE);
	if (!qp_stats(&p->a, &a) || !qp_stats(&p->b, &b) || !cq_stats(&p->a, p->a.cq, &cq))
		return;
	is(c, a.initiator.posted, 17, "A's posted requests");
	is(c, a.initiator.completed, 17, "those that completed");
	is(c, a.initiator.by_status[0], 17, "those that succeeded");
	is(c, a.initiator.silent, 4, "those that did so silently");
	is(c, a.receive.posted, 0, "A's posted receives");
	is(c, b.receive.posted, 20, "B's posted receives");
	is(c, b.receive.completed, 12, "those that completed");
	is(c, b.initiator.posted, 0, "B's posted requests");
	is(c, cq.results, 13, "results at A");
	is(c, cq.taken, 13, "results that A took");
	is(c, cq.by_status[0], 13, "good results at A");
	is(c, cq.waiting, 0, "results that wait at A");
	is(c, a.connector_id, ndx_connector_get_id(p->a.conn), "the number of A's connector");
	is(c, a.initiator_cq_id, cq.id, "the number of A's queue");
	check_that(c, a.id != b.id || !c->world->shared, "two queue pairs have one number");
	check_that(c, cq.high_water > 0 && cq.high_water <= 13, "high water %u", cq.high_water);
	check_that(c, cq.polls > 0, "A polled, and nobody noticed");
	adds_up(c, &a.initiator, "A's requests by status");
	adds_up(c, &b.receive, "B's receives by status");
}

void case_stats_flushed_requests_are_counted(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats b;

	if (!p)
		return;
	receives_ok(&p->b, 0, 10, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	side_disconnect(&p->b, NDX_OK);
	sends_ok(&p->b, 100, 3, 0, MESSAGE);
	expect_all_there(&p->b, 13, NDX_E_CANCELED);
	if (!qp_stats(&p->b, &b))
		return;
	is(c, b.receive.completed, 10, "completed receives");
	is(c, b.receive.by_status[-NDX_E_CANCELED], 10, "flushed receives");
	is(c, b.initiator.by_status[-NDX_E_CANCELED], 3, "flushed requests");
	adds_up(c, &b.receive, "receives by status");
}

void case_stats_failures_are_counted_by_status(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats b;
	struct ndx_cq_stats cq;

	if (!p)
		return;
	receive_ok(&p->b, 0, 0, MESSAGE / 2);
	receive_ok(&p->b, 1, 0, MESSAGE);
	(void)send_raw(&p->a, 100, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_E_BUFFER_OVERFLOW);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	if (!qp_stats(&p->b, &b) || !cq_stats(&p->b, p->b.rcq, &cq))
		return;
	is(c, b.receive.by_status[-NDX_E_BUFFER_OVERFLOW], 1, "receives that were too short");
	is(c, b.receive.by_status[-NDX_E_CANCELED], 1, "flushed receives");
	is(c, b.receive.by_status[0], 0, "good receives");
	is(c, cq.by_status[-NDX_E_BUFFER_OVERFLOW], 1, "results of receives that were too short");
}

void case_stats_rnr_waits_are_counted(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats first;
	struct ndx_qp_stats later;

	if (!p)
		return;
	/* before a message of B, A may not know yet how many receives B has posted */
	receives_ok(&p->a, 100, 1, 0, MESSAGE);
	sends_ok(&p->b, 100, 1, 0, MESSAGE);
	expect_run(&p->b, NDX_REQUEST_SEND, 100, 1, NDX_OK);
	expect_received(&p->a, 100, MESSAGE);
	sends_ok(&p->a, 0, 2, 0, MESSAGE);
	if (!qp_stats(&p->a, &first))
		return;
	if (first.rnr_waits == 0) {
		check_skip(c, "the adapter does not know what its peer has posted");
		return;
	}
	expect_silence(&p->b);
	receives_ok(&p->b, 0, 2, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 2, NDX_OK);
	if (!qp_stats(&p->a, &later))
		return;
	check_that(c, later.rnr_wait_ns - first.rnr_wait_ns >= (uint64_t)QUIET_MS * 1000000 / 2,
	           "only %llu ns of waiting",
	           (unsigned long long)(later.rnr_wait_ns - first.rnr_wait_ns));
	if (!qp_stats(&p->a, &first))
		return;
	is(c, first.rnr_wait_ns, later.rnr_wait_ns, "the wait that is over");
}

void case_stats_high_water_is_the_most_that_waited(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	const uint64_t until = now_ms() + WAIT_MS;
	struct ndx_cq_stats cq = {0};

	if (!p)
		return;
	receives_ok(&p->b, 0, 10, 0, MESSAGE);
	sends_ok(&p->a, 100, 10, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 100, 10, NDX_OK);
	/* without a thread that polls */
	while (cq_stats(&p->b, p->b.rcq, &cq) && cq.waiting < 10 && now_ms() < until)
		(void)sched_yield();
	is(c, cq.waiting, 10, "results that wait at B");
	is(c, cq.high_water, 10, "the most that waited");
	for (size_t i = 0; i < 10; i++)
		expect_received(&p->b, i, MESSAGE);
	message_passes(&p->a, &p->b, MESSAGE);
	if (!cq_stats(&p->b, p->b.rcq, &cq))
		return;
	is(c, cq.high_water, 10, "the most that ever waited");
	is(c, cq.waiting, 0, "results that wait");
	is(c, cq.taken, 11, "results that were taken");
}

void case_stats_notifications_are_counted(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_cq_stats before;
	struct ndx_cq_stats after;

	if (!p || !cq_stats(&p->b, p->b.rcq, &before))
		return;
	receive_ok(&p->b, 0, 0, MESSAGE);
	check_status(c, ndx_cq_notify(p->b.rcq, NDX_CQ_NOTIFY_ANY, &p->b.ov), NDX_PENDING,
	             "cq_notify");
	send_ok(&p->a, 0, 0, MESSAGE, 0);
	check_ends(c, &p->b.ov, NDX_OK, "notification");
	if (cq_stats(&p->b, p->b.rcq, &after))
		grew(c, before.notifications, after.notifications, 1, "notifications");
}

void case_stats_sums_outlive_queue_pairs(struct check *c)
{
	struct sums before;
	struct sums after;
	struct ndx_qp_stats probe;
	struct pair *p;
	uint64_t posted;

	if (!sums_take(c, &before))
		return;
	p = pair_up(c, NULL);
	if (!p || !qp_stats(&p->a, &probe))
		return;
	receives_ok(&p->b, 0, 5, 0, MESSAGE);
	sends_ok(&p->a, 10, 3, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 10, 3, NDX_OK);
	pair_disconnect(p);
	side_close_connector(&p->a);
	side_close_connector(&p->b);
	side_close_qp(&p->a);
	side_close_qp(&p->b);
	if (!sums_take(c, &after))
		return;
	posted = after.b.receive.posted - before.b.receive.posted;
	is(c, posted, 5, "receives that were posted");
	grew(c, before.b.receive.completed, after.b.receive.completed, 5, "completed receives");
	grew(c, before.b.receive.by_status[-NDX_E_CANCELED],
	     after.b.receive.by_status[-NDX_E_CANCELED], 2, "flushed receives");
	grew(c, before.a.initiator.by_status[0], after.a.initiator.by_status[0], 3, "good sends");
	is(c, after.a.qps.now, before.a.qps.now, "queue pairs that are there");
	grew(c, before.a.qps.ever, after.a.qps.ever, c->world->shared ? 2 : 1,
	     "queue pairs ever made");
}

void case_stats_attempts_are_counted_by_outcome(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sums before;
	struct sums after;

	if (!p || !sums_take(c, &before))
		return;
	pair_ask(p);
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	side_new_connector(&p->b);
	if (!pair_connect(p) || !sums_take(c, &after))
		return;
	grew(c, before.b.requests, after.b.requests, 2, "requests");
	grew(c, before.b.rejects_passive, after.b.rejects_passive, 1, "rejects");
	grew(c, before.a.connects[-NDX_E_CONNECTION_REFUSED],
	     after.a.connects[-NDX_E_CONNECTION_REFUSED], 1, "refused connects");
	grew(c, before.a.connects[0], after.a.connects[0], 1, "connects");
	grew(c, before.b.accepts[0], after.b.accepts[0], 1, "accepts");
	grew(c, before.a.established, after.a.established, c->world->shared ? 2 : 1, "connections");
}

void case_stats_disconnects_are_counted_by_outcome(struct check *c)
{
	const int ends = c->world->shared ? 2 : 1;
	struct sums before;
	struct sums between;
	struct sums after;
	const struct ndx_duration_stats *d;
	struct pair *p;

	if (!sums_take(c, &before))
		return;
	p = pair_up(c, NULL);
	if (!p || !pair_disconnect(p) || !sums_take(c, &between))
		return;
	d = &between.a.disconnects[NDX_OUTCOME_GRACEFUL];
	grew(c, before.a.disconnects[NDX_OUTCOME_GRACEFUL].count, d->count, (uint64_t)ends,
	     "graceful disconnects");
	check_that(c, d->min_ns > 0 && d->min_ns <= d->max_ns && d->max_ns <= d->total_ns,
	           "durations from %llu to %llu ns, %llu altogether", (unsigned long long)d->min_ns,
	           (unsigned long long)d->max_ns, (unsigned long long)d->total_ns);
	p = pair_up(c, NULL);
	if (!p)
		return;
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	if (!sums_take(c, &after))
		return;
	grew(c, between.a.disconnects[NDX_OUTCOME_FLUSHED].count,
	     after.a.disconnects[NDX_OUTCOME_FLUSHED].count, 1, "flushes");
	grew(c, between.b.disconnects[NDX_OUTCOME_ABORTED].count,
	     after.b.disconnects[NDX_OUTCOME_ABORTED].count, 1, "aborts");
	grew(c, between.a.disconnects[NDX_OUTCOME_GRACEFUL].count,
	     after.a.disconnects[NDX_OUTCOME_GRACEFUL].count, 0, "graceful disconnects");
}

void case_stats_calls_refuse_what_they_cannot_fill(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_adapter_stats all = {.size = sizeof(all) - 1};
	struct ndx_cq_stats cq = {.size = 0};
	struct ndx_qp_stats qp = {.size = 8};
	size_t count = 1;

	if (!p)
		return;
	check_status(c, ndx_adapter_get_stats(p->a.adapter, &all), NDX_E_INVALID_PARAMETER,
	             "adapter: size too small");
	check_status(c, ndx_cq_get_stats(p->a.cq, &cq), NDX_E_INVALID_PARAMETER,
	             "queue: size too small");
	check_status(c, ndx_qp_get_stats(p->a.qp, &qp), NDX_E_INVALID_PARAMETER,
	             "queue pair: size too small");
	check_status(c, ndx_qp_get_stats(NULL, &qp), NDX_E_INVALID_PARAMETER, "no queue pair");
	check_status(c, ndx_cq_get_stats(p->a.cq, NULL), NDX_E_INVALID_PARAMETER, "nowhere");
	check_status(c, ndx_adapter_snapshot(p->a.adapter, NULL), NDX_E_INVALID_PARAMETER,
	             "no place for a snapshot");
	check_status(c, ndx_connector_get_history(p->a.conn, NULL, &count, NULL),
	             NDX_E_INVALID_PARAMETER, "no list");
	check_that(c, ndx_connector_get_id(NULL) == 0, "nobody has a number");
}
