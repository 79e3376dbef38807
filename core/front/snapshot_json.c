/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot as JSON. docs/observability.md describes the members. */
#include "snapshot.h"

#include "base_json.h"
#include <ndx/spi/sockaddr.h>

static void address(struct base_json *j, json_t *to, const char *key,
                    const struct sockaddr_storage *value)
{
	char buffer[NDXP_SOCKADDR_TEXT];

	if (value->ss_family == AF_UNSPEC)
		base_json_put(j, to, key, json_null());
	else
		base_json_text(j, to, key, ndxp_sockaddr_text(value, buffer));
}

static json_t *work(struct base_json *j, const struct ndx_work_stats *stats)
{
	json_t *to = json_object();

	base_json_number(j, to, "posted", stats->posted);
	base_json_number(j, to, "completed", stats->completed);
	base_json_number(j, to, "outstanding", stats->posted - stats->completed);
	base_json_number(j, to, "silent", stats->silent);
	base_json_number(j, to, "flushed", stats->by_status[-NDX_E_CANCELED]);
	base_json_statuses(j, to, "by_status", stats->by_status);
	return to;
}

static json_t *duration(struct base_json *j, const struct ndx_duration_stats *stats)
{
	json_t *to = json_object();
	uint64_t buckets[NDX_STATS_BUCKETS];

	base_json_number(j, to, "count", stats->count);
	base_json_number(j, to, "min_ns", stats->min_ns);
	base_json_number(j, to, "mean_ns", stats->count > 0 ? stats->total_ns / stats->count : 0);
	base_json_number(j, to, "max_ns", stats->max_ns);
	for (size_t i = 0; i < NDX_STATS_BUCKETS; i++)
		buckets[i] = stats->log2_us[i];
	base_json_buckets(j, to, "log2_us", buckets);
	return to;
}

static void own_counters(struct base_json *j, json_t *to, const struct snapshot_counters *own)
{
	json_t *counters = json_object();

	for (size_t i = 0; i < own->count; i++)
		base_json_number(j, counters, own->names[i], own->values[i]);
	base_json_put(j, to, "provider_counters", counters);
}

static json_t *objects(struct base_json *j, const struct ndx_adapter_stats *stats)
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

		base_json_number(j, one, "now", kinds[i].objects->now);
		base_json_number(j, one, "ever", kinds[i].objects->ever);
		base_json_put(j, to, kinds[i].name, one);
	}
	return to;
}

static json_t *adapter(struct base_json *j, const struct snapshot *s)
{
	const struct ndx_adapter_stats *stats = &s->stats;
	json_t *to = json_object();
	json_t *ends = json_object();

	base_json_text(j, to, "uri", s->info.uri);
	base_json_text(j, to, "provider", s->info.provider);
	base_json_text(j, to, "device", s->info.device);
	base_json_put(j, to, "objects", objects(j, stats));
	base_json_put(j, to, "initiator", work(j, &stats->initiator));
	base_json_put(j, to, "receive", work(j, &stats->receive));
	base_json_number(j, to, "rnr_waits", stats->rnr_waits);
	base_json_number(j, to, "rnr_wait_ns", stats->rnr_wait_ns);
	base_json_number(j, to, "high_water", stats->high_water);
	base_json_number(j, to, "established", stats->established);
	base_json_statuses(j, to, "connects", stats->connects);
	base_json_statuses(j, to, "accepts", stats->accepts);
	base_json_number(j, to, "requests", stats->requests);
	base_json_number(j, to, "requests_refused", stats->requests_refused);
	base_json_number(j, to, "rejects_passive", stats->rejects_passive);
	base_json_number(j, to, "rejects_active", stats->rejects_active);
	for (int i = 0; i < NDX_OUTCOMES; i++)
		base_json_put(j, ends, ndx_disconnect_outcome_name((enum ndx_disconnect_outcome)i),
		              duration(j, &stats->disconnects[i]));
	base_json_put(j, to, "disconnects", ends);
	base_json_number(j, to, "drain_timeouts", stats->drain_timeouts);
	own_counters(j, to, &s->own);
	return to;
}

static json_t *queue_pair(struct base_json *j, const struct snapshot_qp *qp)
{
	json_t *to = json_object();

	base_json_number(j, to, "id", qp->id);
	own_counters(j, to, &qp->own);
	if (!qp->counted)
		return to;
	base_json_number(j, to, "connector", qp->stats.connector_id);
	base_json_number(j, to, "receive_cq", qp->stats.receive_cq_id);
	base_json_number(j, to, "initiator_cq", qp->stats.initiator_cq_id);
	base_json_number(j, to, "receive_depth", qp->stats.receive_depth);
	base_json_number(j, to, "initiator_depth", qp->stats.initiator_depth);
	base_json_put(j, to, "initiator", work(j, &qp->stats.initiator));
	base_json_put(j, to, "receive", work(j, &qp->stats.receive));
	base_json_number(j, to, "rnr_waits", qp->stats.rnr_waits);
	base_json_number(j, to, "rnr_wait_ns", qp->stats.rnr_wait_ns);
	return to;
}

static json_t *completion_queue(struct base_json *j, const struct snapshot_cq *cq)
{
	json_t *to = json_object();

	base_json_number(j, to, "id", cq->id);
	if (!cq->counted)
		return to;
	base_json_number(j, to, "depth", cq->stats.depth);
	base_json_number(j, to, "reserved", cq->stats.reserved);
	base_json_number(j, to, "waiting", cq->stats.waiting);
	base_json_number(j, to, "high_water", cq->stats.high_water);
	base_json_number(j, to, "polls", cq->stats.polls);
	base_json_number(j, to, "results", cq->stats.results);
	base_json_number(j, to, "taken", cq->stats.taken);
	base_json_number(j, to, "notifications", cq->stats.notifications);
	base_json_statuses(j, to, "by_status", cq->stats.by_status);
	base_json_text(j, to, "failed", ndx_status_name(cq->stats.failed));
	return to;
}

static json_t *history(struct base_json *j, const struct conn_history *h)
{
	const uint64_t first = h->total > NDX_HISTORY_MAX ? h->total - NDX_HISTORY_MAX : 0;
	json_t *to = json_array();

	for (uint64_t n = first; n < h->total; n++) {
		const struct ndx_transition *t = &h->last[n % NDX_HISTORY_MAX];
		json_t *one = json_object();

		base_json_number(j, one, "number", n + 1);
		base_json_number(j, one, "time_ns", t->time_ns);
		base_json_text(j, one, "from", t->from);
		base_json_text(j, one, "event", t->event);
		base_json_text(j, one, "to", t->to);
		if (t->status != NDX_OK)
			base_json_text(j, one, "status", ndx_status_name(t->status));
		if (t->native != 0)
			base_json_put(j, one, "native", json_integer(t->native));
		if (t->cause[0] != '\0')
			base_json_text(j, one, "cause", t->cause);
		base_json_append(j, to, one);
	}
	return to;
}

static json_t *connector(struct base_json *j, const struct snapshot_connector *c)
{
	json_t *to = json_object();

	base_json_number(j, to, "id", c->what.id);
	base_json_number(j, to, "qp", c->what.qp_id);
	base_json_text(j, to, "side", c->what.passive ? "passive" : "active");
	if (c->state != NULL) {
		base_json_text(j, to, "state", c->state);
		base_json_put(j, to, "closed", json_boolean(c->closed));
		base_json_text(j, to, "reason", ndx_disconnect_reason_name(c->reason));
	}
	address(j, to, "local", &c->what.local);
	address(j, to, "peer", &c->what.peer);
	base_json_number(j, to, "transitions", c->what.history.total);
	base_json_put(j, to, "history", history(j, &c->what.history));
	return to;
}

static json_t *listener(struct base_json *j, const struct listener_view *l)
{
	json_t *to = json_object();

	base_json_number(j, to, "id", l->id);
	base_json_put(j, to, "listening", json_boolean(l->listening));
	if (l->listening)
		address(j, to, "local", &l->local);
	base_json_number(j, to, "backlog", l->backlog);
	base_json_number(j, to, "waiting", l->waiting);
	base_json_number(j, to, "wanted", l->wanted);
	return to;
}

static json_t *all(struct base_json *j, const struct snapshot *s)
{
	json_t *root = json_object();
	json_t *list = json_array();

	base_json_text(j, root, "ndx", ndx_version());
	base_json_number(j, root, "snapshot", 1);
	base_json_number(j, root, "time_ns", s->stats.time_ns);
	base_json_put(j, root, "adapter", adapter(j, s));
	for (size_t i = 0; i < s->cq_count; i++)
		base_json_append(j, list, completion_queue(j, &s->cqs[i]));
	base_json_put(j, root, "cqs", list);
	list = json_array();
	for (size_t i = 0; i < s->qp_count; i++)
		base_json_append(j, list, queue_pair(j, &s->qps[i]));
	base_json_put(j, root, "qps", list);
	list = json_array();
	for (size_t i = 0; i < s->listener_count; i++)
		base_json_append(j, list, listener(j, &s->listeners[i]));
	base_json_put(j, root, "listeners", list);
	list = json_array();
	for (size_t i = 0; i < s->connector_count; i++)
		base_json_append(j, list, connector(j, &s->connectors[i]));
	base_json_put(j, root, "connectors", list);
	list = json_array();
	for (size_t i = 0; i < s->postmortem_count; i++)
		base_json_append(j, list, connector(j, &s->postmortems[i]));
	base_json_put(j, root, "failed", list);
	return root;
}

char *snapshot_json(const struct snapshot *s)
{
	struct base_json j = {.failed = false};

	return base_json_finish(&j, all(&j, s));
}
