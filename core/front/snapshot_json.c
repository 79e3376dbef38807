/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot as JSON. docs/observability.md describes the members. */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base_sockaddr.h"

/* Records any failure; checked once, at the end. */
struct maker {
	bool failed;
};

static void put(struct maker *m, json_t *to, const char *key, json_t *value)
{
	if (json_object_set_new(to, key, value) != 0)
		m->failed = true;
}

static void append(struct maker *m, json_t *to, json_t *value)
{
	if (json_array_append_new(to, value) != 0)
		m->failed = true;
}

static void number(struct maker *m, json_t *to, const char *key, uint64_t value)
{
	put(m, to, key, json_integer((json_int_t)value));
}

/* A text of a peer or a file may not be UTF-8, and a truncated one may end within a character. */
static void text(struct maker *m, json_t *to, const char *key, const char *value)
{
	char plain[256];

	(void)snprintf(plain, sizeof(plain), "%s", value);
	for (char *p = plain; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
	}
	put(m, to, key, json_string(plain));
}

static void address(struct maker *m, json_t *to, const char *key,
                    const struct sockaddr_storage *value)
{
	char buffer[BASE_SOCKADDR_TEXT];

	if (value->ss_family == AF_UNSPEC)
		put(m, to, key, json_null());
	else
		text(m, to, key, base_sockaddr_text(value, buffer));
}

/* Write only counts that are not 0. */
static json_t *statuses(struct maker *m, const uint64_t *counts)
{
	json_t *to = json_object();

	for (int i = 0; i < NDX_STATS_STATUSES; i++) {
		if (counts[i] > 0)
			number(m, to, ndx_status_name((enum ndx_status) - i), counts[i]);
	}
	return to;
}

static json_t *work(struct maker *m, const struct ndx_work_stats *stats)
{
	json_t *to = json_object();

	number(m, to, "posted", stats->posted);
	number(m, to, "completed", stats->completed);
	number(m, to, "outstanding", stats->posted - stats->completed);
	number(m, to, "silent", stats->silent);
	number(m, to, "flushed", stats->by_status[-NDX_E_CANCELED]);
	put(m, to, "by_status", statuses(m, stats->by_status));
	return to;
}

static json_t *duration(struct maker *m, const struct ndx_duration_stats *stats)
{
	json_t *to = json_object();
	json_t *buckets = json_array();
	size_t used = NDX_STATS_BUCKETS;

	number(m, to, "count", stats->count);
	number(m, to, "min_ns", stats->min_ns);
	number(m, to, "mean_ns", stats->count > 0 ? stats->total_ns / stats->count : 0);
	number(m, to, "max_ns", stats->max_ns);
	while (used > 0 && stats->log2_us[used - 1] == 0)
		used--;
	for (size_t i = 0; i < used; i++)
		append(m, buckets, json_integer(stats->log2_us[i]));
	put(m, to, "log2_us", buckets);
	return to;
}

static void own_counters(struct maker *m, json_t *to, const struct snapshot_counters *own)
{
	json_t *counters = json_object();

	for (size_t i = 0; i < own->count; i++)
		number(m, counters, own->names[i], own->values[i]);
	put(m, to, "provider_counters", counters);
}

static json_t *objects(struct maker *m, const struct ndx_adapter_stats *stats)
{
	const struct {
		const char *name;
		const struct ndx_object_stats *objects;
	} kinds[] = {
		{"cqs", &stats->cqs},
		{"qps", &stats->qps},
		{"srqs", &stats->srqs},
		{"mrs", &stats->mrs},
		{"mws", &stats->mws},
		{"connectors", &stats->connectors},
		{"listeners", &stats->listeners},
	};
	json_t *to = json_object();

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		json_t *one = json_object();

		number(m, one, "now", kinds[i].objects->now);
		number(m, one, "ever", kinds[i].objects->ever);
		put(m, to, kinds[i].name, one);
	}
	return to;
}

static json_t *adapter(struct maker *m, const struct snapshot *s)
{
	const struct ndx_adapter_stats *stats = &s->stats;
	json_t *to = json_object();
	json_t *ends = json_object();

	text(m, to, "uri", s->info.uri);
	text(m, to, "provider", s->info.provider);
	text(m, to, "device", s->info.device);
	put(m, to, "objects", objects(m, stats));
	put(m, to, "initiator", work(m, &stats->initiator));
	put(m, to, "receive", work(m, &stats->receive));
	number(m, to, "rnr_waits", stats->rnr_waits);
	number(m, to, "rnr_wait_ns", stats->rnr_wait_ns);
	number(m, to, "high_water", stats->high_water);
	number(m, to, "established", stats->established);
	put(m, to, "connects", statuses(m, stats->connects));
	put(m, to, "accepts", statuses(m, stats->accepts));
	number(m, to, "requests", stats->requests);
	number(m, to, "requests_refused", stats->requests_refused);
	number(m, to, "rejects_passive", stats->rejects_passive);
	number(m, to, "rejects_active", stats->rejects_active);
	for (int i = 0; i < NDX_OUTCOMES; i++)
		put(m, ends, ndx_disconnect_outcome_name((enum ndx_disconnect_outcome)i),
		    duration(m, &stats->disconnects[i]));
	put(m, to, "disconnects", ends);
	number(m, to, "drain_timeouts", stats->drain_timeouts);
	own_counters(m, to, &s->own);
	return to;
}

static json_t *queue_pair(struct maker *m, const struct snapshot_qp *qp)
{
	json_t *to = json_object();

	number(m, to, "id", qp->id);
	own_counters(m, to, &qp->own);
	if (!qp->counted)
		return to;
	number(m, to, "connector", qp->stats.connector_id);
	number(m, to, "receive_cq", qp->stats.receive_cq_id);
	number(m, to, "initiator_cq", qp->stats.initiator_cq_id);
	number(m, to, "receive_depth", qp->stats.receive_depth);
	number(m, to, "initiator_depth", qp->stats.initiator_depth);
	put(m, to, "initiator", work(m, &qp->stats.initiator));
	put(m, to, "receive", work(m, &qp->stats.receive));
	number(m, to, "rnr_waits", qp->stats.rnr_waits);
	number(m, to, "rnr_wait_ns", qp->stats.rnr_wait_ns);
	return to;
}

static json_t *completion_queue(struct maker *m, const struct snapshot_cq *cq)
{
	json_t *to = json_object();

	number(m, to, "id", cq->id);
	if (!cq->counted)
		return to;
	number(m, to, "depth", cq->stats.depth);
	number(m, to, "reserved", cq->stats.reserved);
	number(m, to, "waiting", cq->stats.waiting);
	number(m, to, "high_water", cq->stats.high_water);
	number(m, to, "polls", cq->stats.polls);
	number(m, to, "results", cq->stats.results);
	number(m, to, "taken", cq->stats.taken);
	number(m, to, "notifications", cq->stats.notifications);
	put(m, to, "by_status", statuses(m, cq->stats.by_status));
	text(m, to, "failed", ndx_status_name(cq->stats.failed));
	return to;
}

static json_t *history(struct maker *m, const struct conn_history *h)
{
	const uint64_t first = h->total > NDX_HISTORY_MAX ? h->total - NDX_HISTORY_MAX : 0;
	json_t *to = json_array();

	for (uint64_t n = first; n < h->total; n++) {
		const struct ndx_transition *t = &h->last[n % NDX_HISTORY_MAX];
		json_t *one = json_object();

		number(m, one, "number", n + 1);
		number(m, one, "time_ns", t->time_ns);
		text(m, one, "from", t->from);
		text(m, one, "event", t->event);
		text(m, one, "to", t->to);
		if (t->status != NDX_OK)
			text(m, one, "status", ndx_status_name(t->status));
		if (t->native != 0)
			put(m, one, "native", json_integer(t->native));
		if (t->cause[0] != '\0')
			text(m, one, "cause", t->cause);
		append(m, to, one);
	}
	return to;
}

static json_t *connector(struct maker *m, const struct snapshot_connector *c)
{
	json_t *to = json_object();

	number(m, to, "id", c->what.id);
	number(m, to, "qp", c->what.qp_id);
	text(m, to, "side", c->what.passive ? "passive" : "active");
	if (c->state != NULL) {
		text(m, to, "state", c->state);
		put(m, to, "closed", json_boolean(c->closed));
		text(m, to, "reason", ndx_disconnect_reason_name(c->reason));
	}
	address(m, to, "local", &c->what.local);
	address(m, to, "peer", &c->what.peer);
	number(m, to, "transitions", c->what.history.total);
	put(m, to, "history", history(m, &c->what.history));
	return to;
}

static json_t *listener(struct maker *m, const struct listener_view *l)
{
	json_t *to = json_object();

	number(m, to, "id", l->id);
	put(m, to, "listening", json_boolean(l->listening));
	if (l->listening)
		address(m, to, "local", &l->local);
	number(m, to, "backlog", l->backlog);
	number(m, to, "waiting", l->waiting);
	number(m, to, "wanted", l->wanted);
	return to;
}

static json_t *all(struct maker *m, const struct snapshot *s)
{
	json_t *root = json_object();
	json_t *list = json_array();

	text(m, root, "ndx", ndx_version());
	number(m, root, "snapshot", 1);
	number(m, root, "time_ns", s->stats.time_ns);
	put(m, root, "adapter", adapter(m, s));
	for (size_t i = 0; i < s->cq_count; i++)
		append(m, list, completion_queue(m, &s->cqs[i]));
	put(m, root, "cqs", list);
	list = json_array();
	for (size_t i = 0; i < s->qp_count; i++)
		append(m, list, queue_pair(m, &s->qps[i]));
	put(m, root, "qps", list);
	list = json_array();
	for (size_t i = 0; i < s->listener_count; i++)
		append(m, list, listener(m, &s->listeners[i]));
	put(m, root, "listeners", list);
	list = json_array();
	for (size_t i = 0; i < s->connector_count; i++)
		append(m, list, connector(m, &s->connectors[i]));
	put(m, root, "connectors", list);
	list = json_array();
	for (size_t i = 0; i < s->grave_count; i++)
		append(m, list, connector(m, &s->graves[i]));
	put(m, root, "failed", list);
	return root;
}

char *snapshot_json(const struct snapshot *s)
{
	struct maker m = {.failed = false};
	json_t *root = all(&m, s);
	char *dump = m.failed ? NULL : json_dumps(root, JSON_INDENT(2));
	char *out = NULL;
	size_t len;

	json_decref(root);
	if (dump == NULL)
		return NULL;
	len = strlen(dump);
	out = malloc(len + 2);
	if (out != NULL) {
		memcpy(out, dump, len);
		memcpy(out + len, "\n", 2);
	}
	free(dump);
	return out;
}
