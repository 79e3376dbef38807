/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: counters and histories. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

/* Counters of an adapter, of a queue, and of a queue pair. */
enum ndx_status example_counters(struct ndx_adapter *adapter, struct ndx_cq *cq, struct ndx_qp *qp)
{
	struct ndx_adapter_stats all = {.size = sizeof(all)};
	struct ndx_cq_stats queue = {.size = sizeof(queue)};
	struct ndx_qp_stats pair = {.size = sizeof(pair)};
	enum ndx_status st = ndx_adapter_get_stats(adapter, &all);

	if (st == NDX_OK)
		st = ndx_cq_get_stats(cq, &queue);
	if (st == NDX_OK)
		st = ndx_qp_get_stats(qp, &pair);
	if (st == NDX_OK)
		printf("%u connections, %" PRIu64 " results, %" PRIu64 " sends and the like\n",
		       all.established, queue.results, pair.initiator.posted);
	return st;
}

/* What a connection went through, oldest first. */
enum ndx_status example_history(struct ndx_connector *connector)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	uint64_t total;
	enum ndx_status st = ndx_connector_get_history(connector, list, &count, &total);

	if (st != NDX_OK)
		return st;
	printf("connector#%u, %" PRIu64 " transitions\n", ndx_connector_get_id(connector), total);
	for (size_t i = 0; i < count; i++)
		printf("%s -> %s by %s: %s\n", list[i].from, list[i].to, list[i].event,
		       list[i].cause);
	return NDX_OK;
}

/* Everything about an adapter as JSON. */
enum ndx_status example_snapshot(struct ndx_adapter *adapter)
{
	char *json;
	enum ndx_status st = ndx_adapter_snapshot(adapter, &json);

	if (st != NDX_OK)
		return st;
	puts(json);
	free(json);
	printf("one outcome of a disconnect is called %s\n",
	       ndx_disconnect_outcome_name((enum ndx_disconnect_outcome)0));
	return NDX_OK;
}
