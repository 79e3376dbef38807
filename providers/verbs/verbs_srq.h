/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include "verbs.h"

#define VERBS_SRQ_BUCKETS 64u

struct verbs_srq {
	struct ndx_spi_srq spi;
	struct verbs_adapter *adapter;
	struct ibv_srq *native;
	uint32_t max_sge;
	/* Taken to change links or depth; before verbs_cq.poll_lock. */
	struct ndxp_lock links_lock;
	struct ndxp_lock lock; /* a leaf, but for the locks of base_ov.h */
	/* guarded by lock: */
	struct ndxp_list links;
	struct ndxp_table takers; /* queue pairs, by QP number */
	struct ndxp_table_node *buckets[VERBS_SRQ_BUCKETS];
	struct block *blocks;
	struct verbs_req *free;
	uint32_t records;
	uint32_t room;   /* depth of the native queue */
	uint32_t depth;  /* may be less than room */
	uint32_t posted; /* receives without a completion yet */
	uint32_t threshold;
	struct ndxp_ov_list notifies;
};

/* A completion queue for results of the shared queue's receives. */
struct verbs_srq_link {
	struct ndxp_list node;
	struct verbs_cq *cq;
	struct ndxp_queue results; /* slots that results use: tail - freed */
	unsigned users;            /* count of queue pairs */
};

static inline struct verbs_srq *verbs_srq_of(struct ndx_srq *srq)
{
	return (struct verbs_srq *)(void *)srq;
}

enum ndx_status verbs_srq_create(struct ndx_spi_adapter *spi, const struct ndx_srq_attr *attr,
                                 struct ndx_spi_srq **out);
void verbs_srq_destroy(struct ndx_spi_srq *spi);
enum ndx_status verbs_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold);
enum ndx_status verbs_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov);
void verbs_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status);
/* A queue pair begins to use the queue, or ends to. In between, verbs_srq_register() and
 * verbs_srq_unregister() make its native queue pair known by QP number. */
enum ndx_status verbs_srq_join(struct verbs_qp *qp, struct verbs_srq *srq);
void verbs_srq_leave(struct verbs_qp *qp);
void verbs_srq_register(struct verbs_qp *qp);
void verbs_srq_unregister(struct verbs_qp *qp);

/* ---- results (verbs_srq_results.c) ---- */

/* Lock held. */
static inline void verbs_srq_free_record(struct verbs_srq *srq, struct verbs_req *req)
{
	req->next = srq->free;
	srq->free = req;
}

/* Lock held: complete the notifications of the threshold if the threshold is reached. */
void verbs_srq_check_threshold(struct verbs_srq *srq);
/* The queue pair that has taken a receive; NULL: it is destroyed. The result is valid while the
 * poll_lock of its receive completion queue is held. */
struct verbs_qp *verbs_srq_taker(struct verbs_srq *srq, uint32_t number);
/* base.lock of `qp` held: the receive that `qp` has taken becomes a result. */
void verbs_srq_done(struct verbs_qp *qp, struct verbs_req *req, enum ndx_status status, int native);
/* The receive becomes no result, because the queue pair that has taken it is destroyed. */
void verbs_srq_drop(struct verbs_srq *srq, struct verbs_req *req);

#endif
