/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: what an object is like now. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Print the state of a queue pair and of a region. */
enum ndx_status example_query(struct ndx_qp *qp, struct ndx_mr *mr)
{
	struct ndx_qp_attr attr;
	struct ndx_qp_info info = {.size = sizeof(info)};
	struct ndx_mr_info region = {.size = sizeof(region)};
	enum ndx_status st;

	ndx_qp_attr_init(&attr);
	st = ndx_qp_query(qp, &attr, &info);
	if (st == NDX_OK)
		st = ndx_mr_query(mr, &region);
	if (st != NDX_OK)
		return st;
	printf("qp#%u: %s, %u receives granted, %s\n", info.id, ndx_qp_state_name(info.state),
	       attr.receive_depth, info.failure_cause);
	printf("mr#%u: %s, %zu bytes\n", region.id, ndx_mr_state_name(region.state), region.length);
	return NDX_OK;
}
