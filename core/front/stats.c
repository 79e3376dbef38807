/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points that read the counters of adapters and queues. */
#include <ndx/stats.h>

#include <ndx/spi/log.h>
#include "base_struct.h"
#include "connection.h"

#define SET_SIZE "set `size` to sizeof(*stats)"

const char *ndx_disconnect_outcome_name(enum ndx_disconnect_outcome outcome)
{
	switch (outcome) {
	case NDX_OUTCOME_GRACEFUL:
		return "graceful";
	case NDX_OUTCOME_ABORTED:
		return "aborted";
	case NDX_OUTCOME_FLUSHED:
		return "flushed";
	case NDX_OUTCOME_TIMED_OUT:
		return "timed_out";
	}
	return "?";
}

static enum ndx_status null_argument(const char *call)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
}

static enum ndx_status not_counted(const char *call, const struct ndx_adapter *adapter)
{
	return fail(NDX_E_NOT_SUPPORTED, 0, "%s: the provider of %s does not count", call,
	            adapter->info.uri);
}

enum ndx_status ndx_adapter_get_stats(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_adapter_stats, NDX_ADAPTER_STATS_SIZE_0_1, SET_SIZE);
	struct ndx_adapter_stats now;

	if (adapter == NULL || stats == NULL)
		return null_argument("ndx_adapter_get_stats");
	adapter_lock(adapter);
	stats_of_adapter(adapter, &now);
	now.established = conn_count_up(adapter);
	adapter_unlock(adapter);
	return base_struct_out(&layout, "ndx_adapter_get_stats", stats, stats->size, &now);
}

enum ndx_status ndx_cq_get_stats(struct ndx_cq *cq, struct ndx_cq_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_cq_stats, NDX_CQ_STATS_SIZE_0_1, SET_SIZE);
	struct ndx_adapter *adapter;
	struct ndx_cq_stats now;
	enum ndx_status st;
	bool counted;

	if (cq == NULL || stats == NULL)
		return null_argument("ndx_cq_get_stats");
	st = base_struct_check_size(&layout, "ndx_cq_get_stats", stats->size);
	if (st != NDX_OK)
		return st;
	adapter = spi_cq(cq)->object.adapter;
	adapter_lock(adapter);
	counted = stats_of_cq(spi_cq(cq), &now);
	adapter_unlock(adapter);
	if (!counted)
		return not_counted("ndx_cq_get_stats", adapter);
	return base_struct_out(&layout, "ndx_cq_get_stats", stats, stats->size, &now);
}

enum ndx_status ndx_qp_get_stats(struct ndx_qp *qp, struct ndx_qp_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_qp_stats, NDX_QP_STATS_SIZE_0_1, SET_SIZE);
	struct ndx_adapter *adapter;
	struct ndx_qp_stats now;
	enum ndx_status st;
	bool counted;

	if (qp == NULL || stats == NULL)
		return null_argument("ndx_qp_get_stats");
	st = base_struct_check_size(&layout, "ndx_qp_get_stats", stats->size);
	if (st != NDX_OK)
		return st;
	adapter = spi_qp(qp)->object.adapter;
	adapter_lock(adapter);
	counted = stats_of_qp(spi_qp(qp), &now);
	adapter_unlock(adapter);
	if (!counted)
		return not_counted("ndx_qp_get_stats", adapter);
	return base_struct_out(&layout, "ndx_qp_get_stats", stats, stats->size, &now);
}
