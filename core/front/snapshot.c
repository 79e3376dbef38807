/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots: copy everything with the adapter's lock held, then write without the lock. */
#include "snapshot.h"

#include <ndx/stats.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>

static void add_counter(void *arg, const char *name, uint64_t value)
{
	struct snapshot_counters *own = arg;

	if (own->count >= SNAPSHOT_COUNTERS)
		return;
	own->names[own->count] = name;
	own->values[own->count++] = value;
}

static void look_at_queues(struct ndx_adapter *adapter, struct snapshot *s)
{
	const struct ndx_provider_ops *ops = adapter->ops;

	if (ops->get_counters != NULL)
		ops->get_counters(adapter->native, NULL, add_counter, &s->own);
	for (struct ndx_spi_object *o = adapter->qps; o != NULL; o = o->next) {
		struct snapshot_qp *qp = &s->qps[s->qp_count++];
		struct ndx_spi_qp *spi = container_of(o, struct ndx_spi_qp, object);

		qp->id = o->id;
		qp->counted = stats_of_qp(spi, &qp->stats);
		if (ops->get_counters != NULL)
			ops->get_counters(adapter->native, spi, add_counter, &qp->own);
	}
	for (struct ndx_spi_object *o = adapter->cqs; o != NULL; o = o->next) {
		struct snapshot_cq *cq = &s->cqs[s->cq_count++];

		cq->id = o->id;
		cq->counted = stats_of_cq(container_of(o, struct ndx_spi_cq, object), &cq->stats);
	}
}

static void look_at_connections(struct ndx_adapter *adapter, struct snapshot *s)
{
	const uint64_t first = adapter->postmortem_total > CORE_POSTMORTEMS
	                               ? adapter->postmortem_total - CORE_POSTMORTEMS
	                               : 0;

	for (struct ndxp_list *n = adapter->connectors.next; n != &adapter->connectors;
	     n = n->next) {
		struct ndx_connector *c = container_of(n, struct ndx_connector, node);
		struct snapshot_connector *to = &s->connectors[s->connector_count++];

		conn_describe(c, &to->what);
		to->state = conn_state_name(c);
		to->closed = c->closed;
		to->reason = conn_reason(c);
	}
	for (struct ndxp_list *n = adapter->listeners.next; n != &adapter->listeners; n = n->next)
		listener_look(n, &s->listeners[s->listener_count++]);
	for (uint64_t n = first; n < adapter->postmortem_total; n++)
		s->postmortems[s->postmortem_count++].what =
			adapter->postmortems[n % CORE_POSTMORTEMS];
}

/* One entry more than needed, because calloc() of nothing may return NULL. */
static bool make_room(const struct ndx_adapter_stats *stats, struct snapshot *s)
{
	s->qps = calloc((size_t)stats->qps.now + 1, sizeof(*s->qps));
	s->cqs = calloc((size_t)stats->cqs.now + 1, sizeof(*s->cqs));
	s->connectors = calloc((size_t)stats->connectors.now + 1, sizeof(*s->connectors));
	s->listeners = calloc((size_t)stats->listeners.now + 1, sizeof(*s->listeners));
	return s->qps != NULL && s->cqs != NULL && s->connectors != NULL && s->listeners != NULL;
}

bool snapshot_take(struct ndx_adapter *adapter, struct snapshot *out)
{
	bool ok;

	memset(out, 0, sizeof(*out));
	out->info = adapter->info;
	adapter_lock(adapter);
	ok = make_room(&adapter->stats, out);
	if (ok) {
		stats_of_adapter(adapter, &out->stats);
		out->stats.established = conn_count_up(adapter);
		look_at_queues(adapter, out);
		look_at_connections(adapter, out);
	}
	adapter_unlock(adapter);
	if (!ok)
		snapshot_free(out);
	return ok;
}

void snapshot_free(struct snapshot *s)
{
	free(s->qps);
	free(s->cqs);
	free(s->connectors);
	free(s->listeners);
}

enum ndx_status ndx_adapter_snapshot(struct ndx_adapter *adapter, char **json)
{
	struct snapshot s;
	char *text;

	if (adapter == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_adapter_snapshot: NULL argument");
	if (!snapshot_take(adapter, &s))
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a snapshot");
	text = snapshot_json(&s);
	snapshot_free(&s);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a snapshot's text");
	*json = text;
	return NDX_OK;
}
