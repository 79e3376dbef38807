/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include <ndx/spi/shared_receive_queue.h>
#include "verbs.h"

#define VERBS_SRQ_BUCKETS 64u

struct verbs_srq {
	struct ndxp_srq base;
	struct verbs_adapter *adapter;
	struct ibv_srq *native;
	uint32_t max_sge;
	/* guarded by base.lock: */
	struct ndxp_table takers; /* queue pairs, by QP number */
	struct ndxp_table_node *buckets[VERBS_SRQ_BUCKETS];
	struct block *blocks;
	struct verbs_req *free;
	uint32_t records;
	uint32_t room; /* depth of the native queue; base.depth may be less */
};

static inline struct verbs_srq *verbs_srq_of(struct ndx_srq *srq)
{
	return (struct verbs_srq *)(void *)srq;
}

enum ndx_status verbs_srq_create(struct ndx_spi_adapter *spi, const struct ndx_srq_attr *attr,
                                 struct ndx_spi_srq **out);
void verbs_srq_destroy(struct ndx_spi_srq *spi);
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

/* The queue pair that has taken a receive; NULL: it is destroyed. The result is valid while the
 * poll_lock of its receive completion queue is held. */
struct verbs_qp *verbs_srq_taker(struct verbs_srq *srq, uint32_t number);
/* base.lock of `qp` held: the receive that `qp` has taken becomes a result. */
void verbs_srq_done(struct verbs_qp *qp, struct verbs_req *req, enum ndx_status status, int native);
/* The receive becomes no result, because the queue pair that has taken it is destroyed. */
void verbs_srq_drop(struct verbs_srq *srq, struct verbs_req *req);

#endif
