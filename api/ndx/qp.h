/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Queue pairs and the data path. (IND2QueuePair)
 *
 * Rules for posting, for all calls of the data path:
 *   - Receives may be posted at any time, also before connecting. Any other request on a queue pair
 *     that was never connected fails with NDX_E_CONNECTION_INVALID. The queue pair is connected
 *     when the accept or complete_connect has completed; results of receives may come before.
 *   - A post that fails uses no slot, and the queue pair stays usable.
 *   - On a connection that has ended, posts are accepted and complete NDX_E_CANCELED.
 *   - Requests without SGEs and SGEs of length 0 are legal. A request may use up to the granted
 *     number of SGEs, which may be more than the program asked for.
 *   - Posts never block, allocate or log. Any thread and any callback may post.
 */
#ifndef NDX_QP_H
#define NDX_QP_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/cq.h>
#include <ndx/decls.h>
#include <ndx/list.h>
#include <ndx/mr.h>
#include <ndx/sge.h>
#include <ndx/srq.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** Flags of a request; each call lists those that it accepts. (ND_OP_FLAG_...) */
enum ndx_op_flag {
	/** Unsignaled: no result on success; a failure always has a result. */
	NDX_OP_SILENT_SUCCESS = 0x1,
	/** Start only after all earlier reads of the queue pair have ended. */
	NDX_OP_READ_FENCE = 0x2,
	NDX_OP_SOLICIT_EVENT = 0x4, /**< fires the peer's NDX_CQ_NOTIFY_SOLICITED */
	NDX_OP_ALLOW_READ = 0x8,    /**< bind: the peer may read */
	NDX_OP_ALLOW_WRITE = 0x10,  /**< bind: the peer may write */
	/**
	 * Copy the data during the call. The buffers need no registration, and the number of SGEs
	 * is not limited.
	 */
	NDX_OP_INLINE = 0x20,
};

/**
 * Value of `rnr_timer` that lets the provider choose. The other values are the RNR NAK timer codes.
 * They mean, in milliseconds:
 *
 *      0: 655.36   1: 0.01     2: 0.02     3: 0.03     4: 0.04     5: 0.06
 *      6: 0.08     7: 0.12     8: 0.16     9: 0.24    10: 0.32    11: 0.48
 *     12: 0.64    13: 0.96    14: 1.28    15: 1.92    16: 2.56    17: 3.84
 *     18: 5.12    19: 7.68    20: 10.24   21: 15.36   22: 20.48   23: 30.72
 *     24: 40.96   25: 61.44   26: 81.92   27: 122.88  28: 163.84  29: 245.76
 *     30: 327.68  31: 491.52
 *
 * The time is the minimum that the peer waits. (InfiniBand Architecture Specification, volume 1,
 * 9.7.5.2.8)
 */
#define NDX_RNR_TIMER_DEFAULT UINT32_MAX

/** Attributes of a queue pair. Call ndx_qp_attr_init() first, then change members. */
struct ndx_qp_attr {
	size_t size;                 /**< set by ndx_qp_attr_init() */
	struct ndx_cq *receive_cq;   /**< results of receives */
	struct ndx_cq *initiator_cq; /**< results of all other requests; may be the same queue */
	struct ndx_srq *srq;         /**< NULL: the queue pair has its own receive queue */
	void *context;               /**< returned as queue_pair_context of each result */
	uint32_t receive_depth;      /**< at least 1; ignored with an SRQ. Default 64 */
	uint32_t initiator_depth;    /**< at least 1. Default 64 */
	uint32_t max_receive_sge;    /**< 0 is legal. Default 1 */
	uint32_t max_initiator_sge;  /**< 0 is legal. Default 1 */
	uint32_t inline_size;        /**< longest inline request in bytes. Default 0 */
	/**
	 * How long a send of this queue pair may wait until the peer posts a receive (RNR). Then
	 * the send fails NDX_E_IO_TIMEOUT and the connection ends. Default 4000; NDX_INFINITE:
	 * without limit. If the peer has an SRQ, there is never a limit.
	 */
	uint32_t no_receive_timeout_ms;
	/**
	 * An idle peer that does not answer for this long is considered dead. Default 30000; 0: the
	 * peer is never probed. On verbs, a peer that does not run NDX is never probed either: it
	 * has granted no memory for the probe, or its description says so (enum ndx_peer_policy).
	 */
	uint32_t keepalive_ms;
	/**
	 * RNR NAK timer: how long the peer's device must wait before it retries a request for which
	 * no receive was posted here. A code 0 .. 31, see NDX_RNR_TIMER_DEFAULT. Any value but the
	 * default needs NDX_CAP_RNR_TIMER.
	 */
	uint32_t rnr_timer;
};

/** `size` of struct ndx_qp_attr in version 0.1; the smallest that is accepted. */
#define NDX_QP_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_qp_attr, rnr_timer)

struct ndx_qp;

/**
 * Data-path functions of a queue pair. None is NULL: the library puts one that returns
 * NDX_E_NOT_SUPPORTED where the provider has none. So a call needs no check; the call of a function
 * that a later version appends must compare `size` first, because the table may be older.
 */
struct ndx_qp_ops {
	size_t size; /**< of the table, in bytes */
	enum ndx_status (*send)(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
	                        size_t count, uint32_t flags);
	enum ndx_status (*receive)(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
	                           size_t count);
	enum ndx_status (*read)(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
	                        size_t count, uint64_t remote_address, uint32_t remote_token,
	                        uint32_t flags);
	enum ndx_status (*write)(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
	                         size_t count, uint64_t remote_address, uint32_t remote_token,
	                         uint32_t flags);
	enum ndx_status (*send_immediate)(struct ndx_qp *qp, void *context,
	                                  const struct ndx_sge *sge, size_t count,
	                                  uint32_t immediate, uint32_t flags);
	enum ndx_status (*write_immediate)(struct ndx_qp *qp, void *context,
	                                   const struct ndx_sge *sge, size_t count,
	                                   uint64_t remote_address, uint32_t remote_token,
	                                   uint32_t immediate, uint32_t flags);
	enum ndx_status (*bind)(struct ndx_qp *qp, void *context, struct ndx_mr *mr,
	                        struct ndx_mw *mw, void *buffer, size_t length, uint32_t flags);
	enum ndx_status (*invalidate)(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
	                              uint32_t flags);
	/* Not called by programs: see ndx_qp_post_list_sized(). */
	enum ndx_status (*post_list)(struct ndx_qp *qp, const struct ndx_request *list, size_t size,
	                             size_t count, size_t *posted);
	enum ndx_status (*receive_list)(struct ndx_qp *qp, const struct ndx_receive *list,
	                                size_t size, size_t count, size_t *posted);
};

/** First part of a queue pair; the rest is opaque. */
struct ndx_qp {
	const struct ndx_qp_ops *ops;
};

/** As ndx_qp_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_qp_attr_init_sized(struct ndx_qp_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_qp_attr_init(struct ndx_qp_attr *attr)
{
	ndx_qp_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a queue pair. (CreateQueuePair, CreateQueuePairWithSrq)
 *
 * @param attr      queues and limits; the device may grant more than asked for
 * @param[out] out  the queue pair; untouched on failure; release it with ndx_qp_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      a queue is missing or of another adapter, or a number is out
 *                                      of range; ndx_last_error() says which
 * @retval NDX_E_NOT_SUPPORTED          `srq` without NDX_CAP_SRQ, or `rnr_timer` without
 *                                      NDX_CAP_RNR_TIMER
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES the device has no queue pair left
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_qp_create(struct ndx_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_qp **out);

/**
 * Release a queue pair. A connected queue pair disconnects implicitly: its own requests end or are
 * cancelled, within the drain time-out of its connector; then the peer gets the goodbye; receives
 * are cancelled when the peer's goodbye arrives, or after 100 ms. The rest of the disconnect
 * happens in the background. If requests had to be cancelled, and one side could otherwise not tell
 * the goodbye of the other from a crash, the call waits for up to two more seconds; if that is not
 * enough, the connection is aborted. When the call returns, the device no longer accesses the
 * memory of the queue pair. Results that were not taken yet can still be taken. NULL is a no-op.
 * Must not run beside another call on the same queue pair.
 *
 * In a callback, of the same or of another adapter, the call does not wait. In a callback of the
 * same adapter no other thread could drive what it would wait for; in a callback of another adapter
 * all connections of that adapter would stop in the meantime. So own requests that have not ended
 * are cancelled and the connection is aborted, which the peer sees. If no own request is left, the
 * disconnect is as graceful as elsewhere, but a message that is on its way to a receive of this
 * queue pair breaks the connection. Where this matters, disconnect first.
 */
void ndx_qp_close(struct ndx_qp *qp);

/**
 * Cancel all requests of the queue pair. When the call returns, all results can be taken:
 * NDX_E_CANCELED, and those of requests that had ended. On a connected queue pair this ends the
 * connection: the peer sees an abort, and a later disconnect fails with NDX_E_CONNECTION_ABORTED.
 * An unconnected queue pair stays usable. A callback that the end of the connection causes may
 * close the queue pair. Such callbacks have returned when the call returns; if the call is made in
 * a callback, they follow after that callback (<ndx/overlapped.h>).
 *
 * @retval NDX_E_INTERNAL_ERROR the device did not return its requests in time
 *
 * Thread safety: any thread. Blocks: briefly; allowed in callbacks.
 */
enum ndx_status ndx_qp_flush(struct ndx_qp *qp);

/**
 * Post a send.
 *
 * @param context  returned as request_context of the result
 * @param sge      what to send; may be NULL if @p count is 0
 * @param flags    NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE | NDX_OP_SOLICIT_EVENT | NDX_OP_INLINE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_DATA_OVERRUN       more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW    longer than max_transfer_length, or than `inline_size`
 * @retval NDX_E_INVALID_PARAMETER  a flag that a send does not accept
 */
static inline enum ndx_status ndx_qp_send(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count, uint32_t flags)
{
	return qp->ops->send(qp, context, sge, count, flags);
}

/**
 * Post a send with 32 bits of immediate data for the peer's result.
 *
 * @param context    returned as request_context of the result
 * @param sge        what to send; may be NULL if @p count is 0
 * @param immediate  for the peer, in host byte order at both ends
 * @param flags      NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE | NDX_OP_SOLICIT_EVENT |
 *                   NDX_OP_INLINE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_NOT_SUPPORTED      the adapter lacks NDX_CAP_SEND_IMMEDIATE
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_DATA_OVERRUN       more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW    longer than max_transfer_length, or than `inline_size`
 * @retval NDX_E_INVALID_PARAMETER  a flag that a send does not accept
 */
static inline enum ndx_status ndx_qp_send_immediate(struct ndx_qp *qp, void *context,
                                                    const struct ndx_sge *sge, size_t count,
                                                    uint32_t immediate, uint32_t flags)
{
	return qp->ops->send_immediate(qp, context, sge, count, immediate, flags);
}

/**
 * Post a receive.
 *
 * @param context  returned as request_context of the result
 * @param sge      where the message goes; may be NULL if @p count is 0
 *
 * @retval NDX_OK                     posted
 * @retval NDX_E_NO_MORE_ENTRIES      queue full
 * @retval NDX_E_DATA_OVERRUN         more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW      longer than max_transfer_length
 * @retval NDX_E_INVALID_DEVICE_STATE the queue pair has an SRQ
 */
static inline enum ndx_status ndx_qp_receive(struct ndx_qp *qp, void *context,
                                             const struct ndx_sge *sge, size_t count)
{
	return qp->ops->receive(qp, context, sge, count);
}

/**
 * Post a read from the peer's memory. The memory of the SGEs needs NDX_MR_ALLOW_LOCAL_WRITE or
 * NDX_MR_RDMA_READ_SINK. A read without SGEs is a liveness probe.
 *
 * @param context         returned as request_context of the result
 * @param sge             where the data go; may be NULL if @p count is 0
 * @param remote_address  virtual address at the peer, host byte order
 * @param remote_token    the peer's remote token for that memory
 * @param flags           NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE
 *
 * @retval NDX_OK                       posted
 * @retval NDX_E_CONNECTION_INVALID     never connected
 * @retval NDX_E_NO_MORE_ENTRIES        queue full: take results first
 * @retval NDX_E_DATA_OVERRUN           more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW        longer than max_transfer_length
 * @retval NDX_E_INVALID_DEVICE_REQUEST the connection's outbound read limit is 0
 * @retval NDX_E_INVALID_PARAMETER      a flag that a read does not accept
 */
static inline enum ndx_status ndx_qp_read(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t flags)
{
	return qp->ops->read(qp, context, sge, count, remote_address, remote_token, flags);
}

/**
 * Post a write to the peer's memory.
 *
 * @param context         returned as request_context of the result
 * @param sge             what to write; may be NULL if @p count is 0
 * @param remote_address  virtual address at the peer, host byte order
 * @param remote_token    the peer's remote token for that memory
 * @param flags           NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE | NDX_OP_INLINE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_DATA_OVERRUN       more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW    longer than max_transfer_length, or than `inline_size`
 * @retval NDX_E_INVALID_PARAMETER  a flag that a write does not accept
 * @retval NDX_E_NOT_SUPPORTED      a write without SGEs, with address 0 and token 0 (a liveness
 *                                  probe that uses no memory of the peer), on verbs, to a peer that
 *                                  does not run NDX: such a peer may break the connection because
 *                                  of a write that it has not allowed. Nothing was posted
 */
static inline enum ndx_status ndx_qp_write(struct ndx_qp *qp, void *context,
                                           const struct ndx_sge *sge, size_t count,
                                           uint64_t remote_address, uint32_t remote_token,
                                           uint32_t flags)
{
	return qp->ops->write(qp, context, sge, count, remote_address, remote_token, flags);
}

/**
 * Post a write with immediate data: as a write, and the peer gets a result on one of its receives,
 * with the 32 bits of immediate data and the number of bytes written. The memory of that receive is
 * not used.
 *
 * @param context         returned as request_context of the result
 * @param sge             what to write; may be NULL if @p count is 0
 * @param remote_address  virtual address at the peer, host byte order
 * @param remote_token    the peer's remote token for that memory
 * @param immediate       for the peer, in host byte order at both ends
 * @param flags           NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE | NDX_OP_SOLICIT_EVENT |
 *                        NDX_OP_INLINE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_NOT_SUPPORTED      the adapter lacks NDX_CAP_WRITE_IMMEDIATE
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_DATA_OVERRUN       more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW    longer than max_transfer_length, or than `inline_size`
 * @retval NDX_E_INVALID_PARAMETER  a flag that a write with immediate data does not accept
 */
static inline enum ndx_status ndx_qp_write_immediate(struct ndx_qp *qp, void *context,
                                                     const struct ndx_sge *sge, size_t count,
                                                     uint64_t remote_address, uint32_t remote_token,
                                                     uint32_t immediate, uint32_t flags)
{
	return qp->ops->write_immediate(qp, context, sge, count, remote_address, remote_token,
	                                immediate, flags);
}

/**
 * Bind a window to part of a region. The window's remote token changes, and may be read as soon as
 * the call has returned. Only the peer of this queue pair can use the window.
 *
 * @param buffer, length  within @p mr
 * @param flags           NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE | NDX_OP_ALLOW_READ |
 *                        NDX_OP_ALLOW_WRITE; NDX_OP_ALLOW_WRITE needs a region with local write; a
 *                        bind without NDX_OP_ALLOW_READ and NDX_OP_ALLOW_WRITE is legal and grants
 *                        nothing
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_NOT_SUPPORTED      the adapter lacks NDX_CAP_MEMORY_WINDOW
 * @retval NDX_E_ACCESS_VIOLATION   outside the region, region not registered, or right missing
 * @retval NDX_E_DEVICE_BUSY        the window is bound; invalidate it first
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_INVALID_PARAMETER  a flag that a bind does not accept
 */
static inline enum ndx_status ndx_qp_bind(struct ndx_qp *qp, void *context, struct ndx_mr *mr,
                                          struct ndx_mw *mw, void *buffer, size_t length,
                                          uint32_t flags)
{
	return qp->ops->bind(qp, context, mr, mw, buffer, length, flags);
}

/**
 * End a window's binding, after the earlier requests of this queue pair. If the peer uses the
 * window later, the connection ends. For a window that is not bound the request completes
 * NDX_E_INVALID_DEVICE_REQUEST.
 *
 * @param flags  NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_NOT_SUPPORTED      the adapter lacks NDX_CAP_MEMORY_WINDOW
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: take results first
 * @retval NDX_E_INVALID_PARAMETER  a flag that an invalidate does not accept
 */
static inline enum ndx_status ndx_qp_invalidate(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
                                                uint32_t flags)
{
	return qp->ops->invalidate(qp, context, mw, flags);
}

/** As ndx_qp_post_list(), of entries of @p size bytes; for other languages. */
enum ndx_status ndx_qp_post_list_sized(struct ndx_qp *qp, const struct ndx_request *list,
                                       size_t size, size_t count, size_t *posted);

/**
 * Post a list of sends, reads and writes: cheaper than single calls, because the queue pair is
 * locked and the device is told once for the list, or once for each part of a long list
 * (docs/verbs.md). See <ndx/list.h> for the rules.
 *
 * @param list         the requests, in posting order; may be NULL if @p count is 0
 * @param[out] posted  how many requests were posted; set in any case
 *
 * @retval NDX_OK                  all are posted
 * @retval NDX_E_INVALID_PARAMETER an argument is NULL, and nothing was posted; or, for the request
 *                                 with the index `*posted`, a wrong type or flag
 * @return otherwise as ndx_qp_send(), ndx_qp_send_immediate(), ndx_qp_read(), ndx_qp_write() and
 *         ndx_qp_write_immediate(); the failure is that of the request with the index `*posted`
 *
 * Thread safety: any thread. Blocks: no; allowed in callbacks.
 */
static inline enum ndx_status ndx_qp_post_list(struct ndx_qp *qp, const struct ndx_request *list,
                                               size_t count, size_t *posted)
{
	return ndx_qp_post_list_sized(qp, list, sizeof(*list), count, posted);
}

/** As ndx_qp_receive_list(), of entries of @p size bytes; for other languages. */
enum ndx_status ndx_qp_receive_list_sized(struct ndx_qp *qp, const struct ndx_receive *list,
                                          size_t size, size_t count, size_t *posted);

/**
 * Post a list of receives, which is cheaper than single calls. See <ndx/list.h> for the rules.
 *
 * @param list         the receives, in posting order; may be NULL if @p count is 0
 * @param[out] posted  how many were posted; set in any case
 *
 * @retval NDX_OK                  all are posted
 * @retval NDX_E_INVALID_PARAMETER an argument is NULL, and nothing was posted
 * @return otherwise as ndx_qp_receive(); the failure is that of the receive with the index
 *         `*posted`
 *
 * Thread safety: any thread. Blocks: no; allowed in callbacks.
 */
static inline enum ndx_status ndx_qp_receive_list(struct ndx_qp *qp, const struct ndx_receive *list,
                                                  size_t count, size_t *posted)
{
	return ndx_qp_receive_list_sized(qp, list, sizeof(*list), count, posted);
}

NDX_DECLS_END

#endif
