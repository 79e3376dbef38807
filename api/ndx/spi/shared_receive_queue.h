/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider-independent half of a shared receive queue: depth, threshold, and room for results
 * in completion queues.
 *
 * A receive uses a slot of the shared queue from the post until its result is taken. The queue
 * pairs that take receives may have several completion queues, and any of them may get all results,
 * so each has room for as many results as the shared queue has slots. A link stands for one such
 * completion queue.
 *
 * The provider keeps the records of receives. A result is made in three steps: with the lock held,
 * ndxp_srq_pass() and the provider's own release of the record; then ndxp_srq_push().
 */
#ifndef NDX_SPI_SHARED_RECEIVE_QUEUE_H
#define NDX_SPI_SHARED_RECEIVE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/completion_queue.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/queue_pair.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndxp_srq;

/* What a provider adds. */
struct ndxp_srq_ops {
	/* links_lock and lock held: prepare for `depth` receives, more than before. */
	enum ndx_status (*grow)(struct ndxp_srq *srq, uint32_t depth);
	/* links_lock held: reserve room for `count` results in the native queue behind `cq`, or
	 * give the room back. NULL: the native queue needs none. */
	enum ndx_status (*reserve)(struct ndxp_cq *cq, uint32_t count);
	void (*unreserve)(struct ndxp_cq *cq, uint32_t count);
};

/* A completion queue for results of the shared queue's receives. */
struct ndxp_srq_link {
	struct ndxp_list node;
	struct ndxp_cq *cq;
	struct ndxp_queue results; /* slots that results use: tail - freed */
	unsigned users;            /* count of queue pairs; guarded by links_lock */
};

struct ndxp_srq {
	struct ndx_spi_srq spi;
	const struct ndxp_srq_ops *ops;
	/* Held while links or depth change; before the locks of completion queues. */
	struct ndxp_lock links_lock;
	struct ndxp_lock lock; /* a leaf, but for the locks of overlapped objects */
	/* guarded by lock: */
	struct ndxp_list links;
	uint32_t depth;  /* most receives and results that were not taken, together */
	uint32_t in_use; /* never less than their number */
	uint32_t posted; /* receives without a message */
	uint32_t threshold;
	struct ndxp_ov_list notifies;
};

/* The caller has zeroed the queue. A notification comes from whichever thread reads completions, so
 * the affinity of `attr` has no use here. */
void ndxp_srq_init(struct ndxp_srq *srq, const struct ndx_srq_ops *pub,
                   const struct ndxp_srq_ops *ops, const struct ndx_srq_attr *attr);

/* ---- queue pairs ---- */

/* A queue pair begins to use the queue, with `cq` for its results; NDX_E_NO_MEMORY, or the status
 * of ops->reserve(). ndxp_srq_leave() ends that; results that were not taken stay, and use no slot
 * any more. */
enum ndx_status ndxp_srq_join(struct ndxp_srq *srq, struct ndxp_cq *cq, struct ndxp_srq_link **out);
void ndxp_srq_leave(struct ndxp_srq *srq, struct ndxp_srq_link *link);

/* ---- receives and results ---- */

/* Lock held: is there no slot for one more receive? Slots of results that were taken are counted
 * only when the queue seems full. */
bool ndxp_srq_is_full(struct ndxp_srq *srq);

/* Lock held: a receive was posted. */
static inline void ndxp_srq_posted(struct ndxp_srq *srq)
{
	srq->posted++;
	srq->in_use++;
}

/* Lock held: the slot passes from a receive to its result. The result is pushed afterwards: the
 * slot of a result that a consumer has taken must be free. */
static inline void ndxp_srq_pass(struct ndxp_srq *srq, struct ndxp_srq_link *link)
{
	link->results.tail++;
	srq->posted--;
}

/* The result of a receive that `qp` has taken. Its queue pair's lock is held. */
struct ndx_result ndxp_srq_result(const struct ndxp_qp *qp, const struct ndxp_req *req,
                                  enum ndx_status status, int native);
/* Push a result whose slot was passed, and complete what the threshold has to. */
void ndxp_srq_push(struct ndxp_srq *srq, struct ndxp_srq_link *link,
                   const struct ndx_result *result);

/* Lock held: complete the notifications if fewer receives are posted than the threshold says. */
void ndxp_srq_check_threshold(struct ndxp_srq *srq);

/* ---- operations of a provider's table ---- */

enum ndx_status ndxp_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold);
enum ndx_status ndxp_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov);
void ndxp_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status);

NDXP_DECLS_END

#endif
