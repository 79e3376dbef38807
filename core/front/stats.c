/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points that read the counters of adapters and queues. */
#include <ndx/stats.h>

#include "base_log.h"
#include "connection.h"

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

static enum ndx_status check_size(const char *call, size_t size, size_t least)
{
	if (size >= least)
		return NDX_OK;
	return fail(NDX_E_INVALID_PARAMETER, 0,
	            "%s: stats->size is %zu, must be at least %zu; set it to sizeof(*stats)", call,
	            size, least);
}

static enum ndx_status outcome_of(const char *call, const struct ndx_adapter *adapter, bool counted)
{
	if (counted)
		return NDX_OK;
	return fail(NDX_E_NOT_SUPPORTED, 0, "%s: the provider of %s does not count", call,
	            adapter->info.uri);
}

enum ndx_status ndx_adapter_get_stats(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats)
{
	enum ndx_status st;

	if (adapter == NULL || stats == NULL)
		return null_argument("ndx_adapter_get_stats");
	st = check_size("ndx_adapter_get_stats", stats->size, sizeof(*stats));
	if (st != NDX_OK)
		return st;
	adapter_lock(adapter);
	stats_of_adapter(adapter, stats);
	stats->established = conn_count_up(adapter);
	adapter_unlock(adapter);
	return NDX_OK;
}

enum ndx_status ndx_cq_get_stats(struct ndx_cq *cq, struct ndx_cq_stats *stats)
{
	struct ndx_adapter *adapter;
	enum ndx_status st;
	bool counted;

	if (cq == NULL || stats == NULL)
		return null_argument("ndx_cq_get_stats");
	st = check_size("ndx_cq_get_stats", stats->size, sizeof(*stats));
	if (st != NDX_OK)
		return st;
	adapter = spi_cq(cq)->object.adapter;
	adapter_lock(adapter);
	counted = stats_of_cq(spi_cq(cq), stats);
	adapter_unlock(adapter);
	return outcome_of("ndx_cq_get_stats", adapter, counted);
}

enum ndx_status ndx_qp_get_stats(struct ndx_qp *qp, struct ndx_qp_stats *stats)
{
	struct ndx_adapter *adapter;
	enum ndx_status st;
	bool counted;

	if (qp == NULL || stats == NULL)
		return null_argument("ndx_qp_get_stats");
	st = check_size("ndx_qp_get_stats", stats->size, sizeof(*stats));
	if (st != NDX_OK)
		return st;
	adapter = spi_qp(qp)->object.adapter;
	adapter_lock(adapter);
	counted = stats_of_qp(spi_qp(qp), stats);
	adapter_unlock(adapter);
	return outcome_of("ndx_qp_get_stats", adapter, counted);
}
