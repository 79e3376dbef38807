/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Shared receive queues. (IND2SharedReceiveQueue) They need NDX_CAP_SRQ.
 */
#ifndef NDX_SRQ_H
#define NDX_SRQ_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/decls.h>
#include <ndx/list.h>
#include <ndx/overlapped.h>
#include <ndx/sge.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_srq;

/** Data-path functions of a shared receive queue; as struct ndx_qp_ops. */
struct ndx_srq_ops {
	size_t size; /**< of the table, in bytes */
	enum ndx_status (*receive)(struct ndx_srq *srq, void *context, const struct ndx_sge *sge,
	                           size_t count);
	/* Not called by programs: see ndx_srq_receive_list_sized(). */
	enum ndx_status (*receive_list)(struct ndx_srq *srq, const struct ndx_receive *list,
	                                size_t size, size_t count, size_t *posted);
};

/** First part of a shared receive queue; the rest is opaque. */
struct ndx_srq {
	const struct ndx_srq_ops *ops;
};

/** Attributes of a shared receive queue. Call ndx_srq_attr_init() first, then change members. */
struct ndx_srq_attr {
	size_t size;       /**< set by ndx_srq_attr_init() */
	uint64_t affinity; /**< as in struct ndx_cq_attr. Default 0 */
	uint32_t depth;    /**< 1 .. max_shared_receive_queue_depth of the adapter. Default 64 */
	uint32_t max_sge;  /**< SGEs of one receive, 1 .. max_receive_sge. Default 1 */
	/** ndx_srq_notify() fires when fewer receives than this are left. Default 0: never. */
	uint32_t threshold;
	uint32_t group; /**< processor group; must be 0. Default 0 */
};

/** `size` of struct ndx_srq_attr in version 0.1; the smallest that is accepted. */
#define NDX_SRQ_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_srq_attr, group)

/** As ndx_srq_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_srq_attr_init_sized(struct ndx_srq_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_srq_attr_init(struct ndx_srq_attr *attr)
{
	ndx_srq_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a shared receive queue.
 *
 * @param attr      NULL: defaults
 * @param[out] out  the queue; untouched on failure; release it with ndx_srq_close()
 *
 * @retval NDX_E_NOT_SUPPORTED          the adapter lacks NDX_CAP_SRQ
 * @retval NDX_E_INVALID_PARAMETER      a number is out of range
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES the device has no shared receive queue left
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_srq_create(struct ndx_adapter *adapter, const struct ndx_srq_attr *attr,
                               struct ndx_srq **out);

/**
 * Release the handle of a shared receive queue. Notifications in flight complete NDX_E_CANCELED.
 * Queue pairs that use the queue keep it alive; with the last of them, receives that no message has
 * used are dropped without a result. NULL is a no-op. In a callback, the callbacks of the
 * notifications follow after the current one.
 */
void ndx_srq_close(struct ndx_srq *srq);

/**
 * Change depth or threshold; 0 leaves a value unchanged.
 *
 * @retval NDX_E_INVALID_PARAMETER above the adapter's limit
 * @retval NDX_E_BUFFER_OVERFLOW   more receives are posted than the new depth; nothing changed
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_srq_modify(struct ndx_srq *srq, uint32_t depth, uint32_t threshold);

/**
 * Request one notification when the number of receives that are left is below the threshold, or
 * falls below it. All notifications in flight fire together. Completes NDX_OK, NDX_E_INTERNAL_ERROR
 * or NDX_E_CANCELED.
 *
 * @retval NDX_PENDING             armed
 * @retval NDX_E_INVALID_PARAMETER threshold is 0, or @p ov is in flight
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_srq_notify(struct ndx_srq *srq, struct ndx_overlapped *ov);

/**
 * Cancel all notifications in flight. They complete NDX_E_CANCELED, in order, before the call
 * returns. Called from a callback, those that have a callback follow after the current one.
 */
enum ndx_status ndx_srq_cancel(struct ndx_srq *srq);

/** The CPUs on which notifications of this queue are raised. As ndx_cq_get_notify_affinity(). */
enum ndx_status ndx_srq_get_notify_affinity(struct ndx_srq *srq, uint16_t *group,
                                            uint64_t *affinity);

/**
 * Post a receive that any queue pair of this shared receive queue may use. The result goes to the
 * receive completion queue of the queue pair that used it, with the context of that queue pair.
 *
 * @retval NDX_E_NO_MORE_ENTRIES the queue is full
 * @retval NDX_E_DATA_OVERRUN    more SGEs than the queue was created for
 * @retval NDX_E_BUFFER_OVERFLOW sum of lengths above max_transfer_length
 *
 * Thread safety: any thread. Blocks: no. Data path.
 */
static inline enum ndx_status ndx_srq_receive(struct ndx_srq *srq, void *context,
                                              const struct ndx_sge *sge, size_t count)
{
	return srq->ops->receive(srq, context, sge, count);
}

/** As ndx_srq_receive_list(), of entries of @p size bytes; for other languages. */
enum ndx_status ndx_srq_receive_list_sized(struct ndx_srq *srq, const struct ndx_receive *list,
                                           size_t size, size_t count, size_t *posted);

/**
 * Post a list of receives, which is cheaper than single calls. See <ndx/list.h> for the rules.
 *
 * @param list         the receives, in posting order; may be NULL if @p count is 0
 * @param[out] posted  how many were posted; set in any case
 *
 * @retval NDX_OK                  all are posted
 * @retval NDX_E_INVALID_PARAMETER an argument is NULL, and nothing was posted
 * @return otherwise as ndx_srq_receive(); the failure is that of the receive with the index
 *         `*posted`
 *
 * Thread safety: any thread. Blocks: no; allowed in callbacks.
 */
static inline enum ndx_status ndx_srq_receive_list(struct ndx_srq *srq,
                                                   const struct ndx_receive *list, size_t count,
                                                   size_t *posted)
{
	return ndx_srq_receive_list_sized(srq, list, sizeof(*list), count, posted);
}

NDX_DECLS_END

#endif
