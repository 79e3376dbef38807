/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting to the device. */
#ifndef VERBS_WR_H
#define VERBS_WR_H

#include "verbs.h"

/* The device does not see an empty entry, which may have any token. */
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

/* A list of requests goes to the device in parts of at most this many requests and entries. */
#define VERBS_LIST 32u
#define VERBS_LIST_SGES 64u

/* Receives that go to the device with one call. */
struct verbs_receive_batch {
	size_t count;
	size_t sges;
	struct ibv_recv_wr wr[VERBS_LIST];
	struct ibv_sge sge[VERBS_LIST_SGES];
};

static inline bool verbs_wr_is_full(const struct verbs_receive_batch *batch)
{
	return batch->count == VERBS_LIST || batch->sges + VERBS_MAX_SGE > VERBS_LIST_SGES;
}
/* There is room. The record is the receive's. */
void verbs_wr_add_receive(struct verbs_receive_batch *batch, const void *record,
                          const struct ndx_sge *sge, size_t count);

/* base.lock held. For software RoCE keep the list, to find out later why a request failed. For a
 * peer on ofi:verbs count the messages, because the goodbye tells their number. */
void verbs_wr_keep_books(struct verbs_qp *qp, struct verbs_initiator *own,
                         const struct ndx_sge *sge, size_t count, uint32_t flags);
/* The device has refused the request. */
void verbs_wr_unkeep_books(struct verbs_qp *qp, const struct verbs_initiator *own);
/* Copy the bytes of a list; returns their number. */
uint32_t verbs_wr_gather(char *bytes, const struct ndx_sge *sge, size_t count);
/* base.lock held: take back the slot of a request that the device refused. */
enum ndx_status verbs_wr_undo(struct ndxp_queue *q, int err);
/* Fill the native list; returns its length. */
int verbs_wr_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count);
/* base.lock held. 0, or errno. */
int verbs_wr_post_receive(struct verbs_qp *qp, struct verbs_receive *receive);
/* base.lock held: post a control request; a no-op if one of this kind is in flight. 0, or errno. */
int verbs_wr_post_control(struct verbs_qp *qp, enum verbs_control which,
                          const struct verbs_ctrl_write *write);
/* base.lock held: make the device complete all that was posted. */
void verbs_wr_post_sweep(struct verbs_qp *qp);

#endif
