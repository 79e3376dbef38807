/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests on their way to the device. */
#ifndef VERBS_WR_H
#define VERBS_WR_H

#include "verbs.h"

/* An empty piece may have any token: the device does not see it. */
static inline __attribute__((always_inline)) int
verbs_wr_copy_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count)
{
	int n = 0;

	for (size_t i = 0; i < count; i++) {
		if (from[i].length == 0)
			continue;
		to[n++] = (struct ibv_sge){.addr = (uintptr_t)from[i].buffer,
		                           .length = from[i].length,
		                           .lkey = from[i].token};
	}
	return n;
}

/* Under base.lock: take back the slot of a request that the device refused. */
enum ndx_status verbs_wr_undo(struct base_queue *q, int err);
/* The native list; returns its length. */
int verbs_wr_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count);
/* Under base.lock. 0, or errno. */
int verbs_wr_post_receive(struct verbs_qp *qp, struct verbs_receive *receive);
/* Under base.lock: post a request of our own; no-op if it is under way. 0, or errno. */
int verbs_wr_post_control(struct verbs_qp *qp, enum verbs_control which,
                          const struct verbs_ctrl_write *write);
/* Under base.lock: have the device tell of all that was posted. */
void verbs_wr_post_sweep(struct verbs_qp *qp);

#endif
