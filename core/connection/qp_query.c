/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a queue pair, put together from its connector, its counters and its provider. */
#include <ndx/query.h>

#include <stdio.h>

#include "connection.h"

/* The connector of the queue pair's connection or latest attempt, if it still exists. */
static struct ndx_connector *find_connector(const struct ndx_spi_qp *qp)
{
	const struct ndx_adapter *adapter = qp->object.adapter;

	if (qp->connector != NULL)
		return qp->connector;
	for (struct ndxp_list *n = adapter->connectors.next; n != &adapter->connectors;
	     n = n->next) {
		struct ndx_connector *c = container_of(n, struct ndx_connector, node);

		/* after a failed attempt the connector may have got another queue pair */
		if (c->id == qp->connector_id && c->qp_id == qp->object.id)
			return c;
	}
	return NULL;
}

/* What was kept of the connector; NULL: nothing. */
static const struct conn_postmortem *find_postmortem(const struct ndx_spi_qp *qp)
{
	const struct ndx_adapter *adapter = qp->object.adapter;
	const uint64_t total = adapter->postmortem_total;
	const uint64_t first = total > CORE_POSTMORTEMS ? total - CORE_POSTMORTEMS : 0;

	for (uint64_t n = total; n > first; n--) {
		const struct conn_postmortem *p = &adapter->postmortems[(n - 1) % CORE_POSTMORTEMS];

		if (p->id == qp->connector_id && p->qp_id == qp->object.id)
			return p;
	}
	return NULL;
}

static enum ndx_qp_state state_of(const struct ndx_spi_qp *qp)
{
	const struct ndx_connector *c = qp->connector;

	if (c == NULL)
		return qp->spent ? NDX_QP_DISCONNECTED : NDX_QP_UNCONNECTED;
	if (c->phase != CONN_UP)
		return NDX_QP_CONNECTING;
	if (disconnect_is_over(&c->machine))
		return NDX_QP_DISCONNECTED;
	return disconnect_get_state(&c->machine) == DISCONNECT_STATE_UP ? NDX_QP_CONNECTED
	                                                                : NDX_QP_DISCONNECTING;
}

/* The latest failure in the history, and the state at its end. */
static void read_history(const struct conn_history *h, struct ndx_qp_info *info)
{
	const uint64_t first = h->total > NDX_HISTORY_MAX ? h->total - NDX_HISTORY_MAX : 0;

	if (h->total > 0)
		info->connector_state = h->last[(h->total - 1) % NDX_HISTORY_MAX].to;
	for (uint64_t n = h->total; n > first; n--) {
		const struct ndx_transition *t = &h->last[(n - 1) % NDX_HISTORY_MAX];

		if (t->status == NDX_OK || t->status == NDX_E_CANCELED)
			continue;
		info->failure = t->status;
		info->failure_native = t->native;
		info->failure_ns = t->time_ns;
		(void)snprintf(info->failure_cause, sizeof(info->failure_cause), "%s", t->cause);
		return;
	}
}

static void read_connection(const struct ndx_spi_qp *qp, struct ndx_qp_info *info)
{
	struct ndx_connector *c = find_connector(qp);
	const struct conn_postmortem *p = c == NULL ? find_postmortem(qp) : NULL;
	struct conn_postmortem now;

	if (c != NULL) {
		conn_describe(c, &now);
		p = &now;
		info->reason = conn_reason(c);
		if (c->peer_known && c->phase != CONN_FAILED && c->phase != CONN_NEW) {
			info->inbound_read_limit = c->native->inbound_read_limit;
			info->outbound_read_limit = c->native->outbound_read_limit;
		}
	}
	if (p == NULL)
		return;
	info->local = p->local;
	info->peer = p->peer;
	read_history(&p->history, info);
	if (c != NULL)
		info->connector_state = conn_state_name(c);
}

void qp_query(struct ndx_spi_qp *qp, struct ndx_qp_info *info)
{
	const struct ndx_provider_ops *ops = qp->object.adapter->ops;
	struct ndx_qp_stats stats;

	*info = (struct ndx_qp_info){
		.size = sizeof(*info),
		.id = qp->object.id,
		.state = state_of(qp),
		.connector_id = qp->connector_id,
		.initiator_outstanding = NDX_QP_NOT_COUNTED,
		.receive_outstanding = NDX_QP_NOT_COUNTED,
	};
	if (stats_of_qp(qp, &stats)) {
		info->initiator_outstanding = stats.initiator.posted - stats.initiator.completed;
		info->receive_outstanding = stats.receive.posted - stats.receive.completed;
	}
	read_connection(qp, info);
	if (ops->qp_query != NULL)
		ops->qp_query(qp, info);
}
