/* SPDX-License-Identifier: BSD-2-Clause */
/* The receives of a shared receive queue, in the order of posting. */
#include "loop.h"

struct loop_receive *loop_srq_at(const struct loop_srq *srq, char *ring, uint32_t depth,
                                 uint32_t index)
{
	return (struct loop_receive *)(void *)(ring + (size_t)(index % depth) * srq->stride);
}

struct loop_receive *loop_srq_first(struct loop_srq *srq)
{
	return srq->posted > 0 ? loop_srq_at(srq, srq->ring, srq->depth, srq->first) : NULL;
}

/* One event completes all notifications. */
void loop_srq_check_threshold(struct loop_srq *srq)
{
	if (srq->posted < srq->threshold)
		ndxp_ov_complete_all(&srq->notifies, NDX_OK);
}

void loop_srq_drop_first(struct loop_srq *srq)
{
	srq->first = (srq->first + 1) % srq->depth;
	srq->posted--;
	loop_srq_check_threshold(srq);
}
