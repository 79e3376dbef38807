/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: operations that end later, and how their end is learnt. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

void case_overlapped_cancel_with_nothing_in_flight(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	check_status(c, ndx_mr_cancel(p->a.mr), NDX_OK, "mr_cancel");
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "connector_cancel");
	check_status(c, ndx_listener_cancel(p->listener), NDX_OK, "listener_cancel");
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}
