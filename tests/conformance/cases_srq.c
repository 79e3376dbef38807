/* SPDX-License-Identifier: BSD-2-Clause */
/* srq.*: shared receive queues. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

void case_srq_depth_is_refused_beyond_its_limit(struct check *c)
{
	const struct place *place = &c->world->places[0];
	uint32_t most = place->info.max_shared_receive_queue_depth;
	struct ndx_srq *none = (struct ndx_srq *)c;
	struct ndx_srq *srq = none;

	check_that(c, most > 0, "an adapter with SRQs says that they have no depth");
	check_status(c, ndx_srq_create(place->adapter, 0, 1, 0, 0, 0, &srq),
	             NDX_E_INVALID_PARAMETER, "srq_create with depth 0");
	if (most < UINT32_MAX)
		check_status(c, ndx_srq_create(place->adapter, most + 1, 1, 0, 0, 0, &srq),
		             NDX_E_INVALID_PARAMETER, "srq_create beyond the limit");
	check_that(c, srq == none, "the output of a failed call was touched");
	if (check_status(c, ndx_srq_create(place->adapter, most, 1, 0, 0, 0, &srq), NDX_OK,
	                 "srq_create at the limit"))
		ndx_srq_close(srq);
}
