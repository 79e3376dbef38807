/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the control path, and the sums of the counters of the queues. */
#include <string.h>

#include "adapter.h"
#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/stats.h>

static struct ndx_object_stats *objects_of(struct ndx_adapter_stats *stats, enum core_kind kind)
{
	switch (kind) {
	case CORE_CQ:
		return &stats->cqs;
	case CORE_QP:
		return &stats->qps;
	case CORE_SRQ:
		return &stats->srqs;
	case CORE_MR:
		return &stats->mrs;
	case CORE_MW:
		return &stats->mws;
	case CORE_CONNECTOR:
		return &stats->connectors;
	case CORE_LISTENER:
		break;
	}
	return &stats->listeners;
}

uint32_t stats_count_new(struct ndx_adapter *adapter, enum core_kind kind)
{
	struct ndx_object_stats *objects = objects_of(&adapter->stats, kind);

	objects->now++;
	return ++objects->ever;
}

static void add_work(struct ndx_work_stats *to, const struct ndx_work_stats *work)
{
	to->posted += work->posted;
	to->completed += work->completed;
	to->silent += work->silent;
	for (size_t i = 0; i < NDX_STATS_STATUSES; i++)
		to->by_status[i] += work->by_status[i];
}

static void add_qp(struct ndx_adapter_stats *to, const struct ndx_qp_stats *qp)
{
	add_work(&to->initiator, &qp->initiator);
	add_work(&to->receive, &qp->receive);
	to->rnr_waits += qp->rnr_waits;
	to->rnr_wait_ns += qp->rnr_wait_ns;
}

/* Requests in flight when a queue pair is destroyed count as cancelled. */
static void cancel_rest(struct ndx_work_stats *work)
{
	work->by_status[-NDX_E_CANCELED] += work->posted - work->completed;
	work->completed = work->posted;
}

void stats_count_gone(struct ndx_adapter *adapter, enum core_kind kind,
                      struct ndx_spi_object *object)
{
	struct ndx_qp_stats qp;
	struct ndx_cq_stats cq;

	objects_of(&adapter->stats, kind)->now--;
	if (kind == CORE_QP && stats_of_qp(container_of(object, struct ndx_spi_qp, object), &qp)) {
		cancel_rest(&qp.initiator);
		cancel_rest(&qp.receive);
		add_qp(&adapter->stats, &qp);
	}
	if (kind == CORE_CQ && stats_of_cq(container_of(object, struct ndx_spi_cq, object), &cq) &&
	    cq.high_water > adapter->stats.high_water)
		adapter->stats.high_water = cq.high_water;
}

bool stats_of_qp(struct ndx_spi_qp *qp, struct ndx_qp_stats *stats)
{
	const struct ndx_provider_ops *ops = qp->object.adapter->ops;

	if (ops->qp_get_stats == NULL)
		return false;
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->id = qp->object.id;
	stats->connector_id = qp->connector_id;
	stats->receive_cq_id = spi_cq(qp->attr.receive_cq)->object.id;
	stats->initiator_cq_id = spi_cq(qp->attr.initiator_cq)->object.id;
	stats->receive_depth = qp->attr.srq == NULL ? qp->attr.receive_depth : 0;
	stats->initiator_depth = qp->attr.initiator_depth;
	ops->qp_get_stats(qp, stats);
	return true;
}

bool stats_of_cq(struct ndx_spi_cq *cq, struct ndx_cq_stats *stats)
{
	const struct ndx_provider_ops *ops = cq->object.adapter->ops;

	if (ops->cq_get_stats == NULL)
		return false;
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->id = cq->object.id;
	ops->cq_get_stats(cq, stats);
	return true;
}

void stats_of_adapter(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats)
{
	struct ndx_qp_stats qp;
	struct ndx_cq_stats cq;

	*stats = adapter->stats;
	stats->size = sizeof(*stats);
	stats->time_ns = ndxp_now_ns();
	for (struct ndx_spi_object *o = adapter->qps; o != NULL; o = o->next) {
		if (stats_of_qp(container_of(o, struct ndx_spi_qp, object), &qp))
			add_qp(stats, &qp);
	}
	for (struct ndx_spi_object *o = adapter->cqs; o != NULL; o = o->next) {
		if (stats_of_cq(container_of(o, struct ndx_spi_cq, object), &cq) &&
		    cq.high_water > stats->high_water)
			stats->high_water = cq.high_water;
	}
}

void stats_add_duration(struct ndx_duration_stats *to, uint64_t ns)
{
	to->log2_us[ndxp_stats_bucket(ns / 1000)]++;
	if (to->count == 0 || ns < to->min_ns)
		to->min_ns = ns;
	if (ns > to->max_ns)
		to->max_ns = ns;
	to->total_ns += ns;
	to->count++;
}
