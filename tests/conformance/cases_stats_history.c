/* SPDX-License-Identifier: BSD-2-Clause */
/* stats.*: histories, and snapshots. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64, ROUNDS = 100, LOOKS = 5 };

static size_t history(struct side *s, struct ndx_transition *list)
{
	size_t count = NDX_HISTORY_MAX;

	if (check_over(s->c) ||
	    !check_status(s->c, ndx_connector_get_history(s->conn, list, &count, NULL), NDX_OK,
	                  "ndx_connector_get_history"))
		return 0;
	for (size_t i = 1; i < count; i++) {
		check_that(s->c, list[i].time_ns >= list[i - 1].time_ns, "%s: time goes back",
		           s->name);
		check_that(s->c, strcmp(list[i].from, list[i - 1].to) == 0,
		           "%s: from %s after to %s", s->name, list[i].from, list[i - 1].to);
	}
	return count;
}

/* Where in the history this state was entered; fails if it was not. */
static size_t entered(struct side *s, const struct ndx_transition *list, size_t count,
                      const char *state)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].to, state) == 0)
			return i;
	}
	check_fail(s->c, "%s was never %s", s->name, state);
	return 0;
}

void case_stats_history_of_a_whole_life(struct check *c)
{
	static const char *const active[] = {"CONNECTING", "CONNECT_RESPONSE", "COMPLETING", "UP",
	                                     "CLOSED_OK"};
	static const char *const passive[] = {"AWAIT_REQUEST", "HAVE_REQUEST", "ACCEPTING", "UP",
	                                      "CLOSED_OK"};
	struct ndx_transition list[NDX_HISTORY_MAX];
	struct pair *p = pair_up(c, NULL);
	size_t count;

	if (!p || !pair_disconnect(p))
		return;
	count = history(&p->a, list);
	for (size_t i = 0; i + 1 < sizeof(active) / sizeof(active[0]); i++)
		check_that(c,
		           entered(&p->a, list, count, active[i]) <
		                   entered(&p->a, list, count, active[i + 1]),
		           "A was %s before %s", active[i + 1], active[i]);
	check_that(c, count > 0 && strcmp(list[0].from, "NEW") == 0, "A began %s",
	           count > 0 ? list[0].from : "never");
	count = history(&p->b, list);
	for (size_t i = 0; i + 1 < sizeof(passive) / sizeof(passive[0]); i++)
		check_that(c,
		           entered(&p->b, list, count, passive[i]) <
		                   entered(&p->b, list, count, passive[i + 1]),
		           "B was %s before %s", passive[i + 1], passive[i]);
	for (size_t i = 0; i < count; i++)
		check_that(c, list[i].status == NDX_OK && list[i].cause[0] == '\0',
		           "B: %s + %s failed: %s", list[i].from, list[i].event, list[i].cause);
}

void case_stats_history_tells_why_it_ended(struct check *c)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	struct pair *p = pair_up(c, NULL);
	size_t count;
	size_t at;

	if (!p)
		return;
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	count = history(&p->b, list);
	at = entered(&p->b, list, count, "ABORTING");
	if (check_over(c))
		return;
	check_that(c, list[at].status == NDX_E_CONNECTION_ABORTED && list[at].cause[0] != '\0',
	           "B aborts with %s and says \"%s\"", ndx_status_name(list[at].status),
	           list[at].cause);
	check_that(c, strcmp(list[count - 1].to, "CLOSED_BAD") == 0, "B ends %s",
	           list[count - 1].to);
}

void case_stats_history_of_a_refused_attempt(struct check *c)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	struct pair *p = pair_open(c, NULL, NULL);
	size_t count;

	if (!p)
		return;
	pair_ask(p);
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	count = history(&p->a, list);
	if (check_that(c, count == 2, "%zu transitions instead of 2", count))
		check_that(c, list[1].status == NDX_E_CONNECTION_REFUSED, "it ended with %s",
		           ndx_status_name(list[1].status));
	count = history(&p->b, list);
	check_that(c, count == 3 && strcmp(list[2].event, "REJECT") == 0, "B has %zu transitions",
	           count);
}

/* ---- snapshots ---- */

/* NULL when the check is over. */
static json_t *snapshot(struct check *c, struct ndx_adapter *adapter)
{
	json_error_t error;
	json_t *root = NULL;
	char *text = NULL;

	if (check_over(c) ||
	    !check_status(c, ndx_adapter_snapshot(adapter, &text), NDX_OK, "ndx_adapter_snapshot"))
		return NULL;
	check_that(c, text[strlen(text) - 1] == '\n', "it does not end with a newline");
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	check_that(c, root != NULL, "no JSON: %s in line %d", error.text, error.line);
	free(text);
	return root;
}

/* The element of an array with this number; NULL: there is none. */
static json_t *numbered(json_t *root, const char *array, uint64_t id)
{
	json_t *list = json_object_get(root, array);
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_integer_value(json_object_get(one, "id")) == (json_int_t)id)
			return one;
	}
	return NULL;
}

static json_int_t number(json_t *object, const char *side, const char *name)
{
	return json_integer_value(json_object_get(json_object_get(object, side), name));
}

void case_stats_snapshot_holds_the_numbers(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats stats = {.size = sizeof(stats)};
	json_t *root;
	json_t *qp;
	json_t *connector;

	if (!p)
		return;
	if (ndx_qp_get_stats(p->a.qp, &stats) == NDX_E_NOT_SUPPORTED) {
		check_skip(c, "the provider does not count");
		return;
	}
	receives_ok(&p->b, 0, 3, 0, MESSAGE);
	sends_ok(&p->a, 10, 3, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 10, 3, NDX_OK);
	root = snapshot(c, p->a.adapter);
	qp = numbered(root, "qps", stats.id);
	connector = numbered(root, "connectors", ndx_connector_get_id(p->a.conn));
	check_that(c, qp != NULL, "queue pair %u is missing", stats.id);
	check_that(c, number(qp, "initiator", "posted") == 3, "it posted %lld",
	           (long long)number(qp, "initiator", "posted"));
	check_that(c, number(qp, "initiator", "outstanding") == 0, "something is outstanding");
	check_that(c,
	           json_integer_value(json_object_get(qp, "connector")) ==
	                   (json_int_t)ndx_connector_get_id(p->a.conn),
	           "its connector is another");
	check_that(c, connector != NULL, "the connector is missing");
	check_that(c, json_array_size(json_object_get(connector, "history")) >= 4,
	           "its history has %zu entries",
	           json_array_size(json_object_get(connector, "history")));
	if (connector != NULL) {
		const char *state = json_string_value(json_object_get(connector, "state"));

		check_that(c, state != NULL && strcmp(state, "UP") == 0, "it is %s", state);
		check_that(c, json_is_string(json_object_get(connector, "peer")),
		           "its peer is unknown");
	}
	json_decref(root);
}

void case_stats_snapshot_remembers_what_failed(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint32_t id;
	json_t *root;

	if (!p)
		return;
	id = ndx_connector_get_id(p->a.conn);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	side_close_connector(&p->a);
	root = snapshot(c, p->a.adapter);
	if (root != NULL) {
		check_that(c, numbered(root, "connectors", id) == NULL, "it is still there");
		check_that(c, numbered(root, "failed", id) != NULL, "it is forgotten");
	}
	json_decref(root);
}

struct watcher {
	struct side *s;
	uint32_t stop; /* atomic */
	uint32_t seen; /* atomic */
};

/* Looks all the time; counters only grow. */
static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct check *c = w->s->c;
	struct ndx_qp_stats stats = {.size = sizeof(stats)};
	struct ndx_cq_stats cq = {.size = sizeof(cq)};
	uint64_t posted = 0;
	uint64_t results = 0;

	while (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) == 0 && !check_over(c)) {
		json_decref(snapshot(c, w->s->adapter));
		check_status(c, ndx_qp_get_stats(w->s->qp, &stats), NDX_OK, "ndx_qp_get_stats");
		check_status(c, ndx_cq_get_stats(w->s->cq, &cq), NDX_OK, "ndx_cq_get_stats");
		check_that(c, stats.initiator.posted >= posted, "posts go back");
		check_that(c, cq.results >= results && cq.taken <= cq.results, "results go back");
		posted = stats.initiator.posted;
		results = cq.results;
		(void)__atomic_fetch_add(&w->seen, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

void case_stats_snapshots_beside_traffic(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_qp_stats stats = {.size = sizeof(stats)};
	struct watcher w = {0};
	uint64_t rounds = 0;
	pthread_t thread;

	if (!p)
		return;
	if (ndx_qp_get_stats(p->a.qp, &stats) == NDX_E_NOT_SUPPORTED) {
		check_skip(c, "the provider does not count");
		return;
	}
	w.s = &p->a;
	if (!check_that(c, pthread_create(&thread, NULL, watch, &w) == 0, "no thread"))
		return;
	while ((rounds < ROUNDS || __atomic_load_n(&w.seen, __ATOMIC_RELAXED) < LOOKS) &&
	       message_passes(&p->a, &p->b, MESSAGE) && message_passes(&p->b, &p->a, MESSAGE))
		rounds++;
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELEASE);
	(void)pthread_join(thread, NULL);
	check_status(c, ndx_qp_get_stats(p->a.qp, &stats), NDX_OK, "ndx_qp_get_stats");
	check_that(c, stats.initiator.posted == rounds && stats.receive.posted == rounds,
	           "%llu sends, %llu receives of %llu", (unsigned long long)stats.initiator.posted,
	           (unsigned long long)stats.receive.posted, (unsigned long long)rounds);
}

static void look(struct ndx_overlapped *ov)
{
	struct side *s = ov->context;
	struct ndx_qp_stats stats = {.size = sizeof(stats)};
	struct ndx_transition list[NDX_HISTORY_MAX];
	enum ndx_status st = ndx_qp_get_stats(s->qp, &stats);

	check_either(s->c, st, NDX_OK, NDX_E_NOT_SUPPORTED, "ndx_qp_get_stats");
	json_decref(snapshot(s->c, s->adapter));
	(void)history(s, list);
	(void)ndx_overlapped_status(&s->ov);
}

void case_stats_may_be_asked_for_in_a_callback(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ask = {.callback = look};

	if (!p)
		return;
	ask.context = &p->a;
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ask), NDX_PENDING, "cq_notify");
	/* when this returns the callback has */
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
}
