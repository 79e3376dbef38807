/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Queue pairs and the data path. (IND2QueuePair)
 *
 * Posting rules, for all calls of the data path:
 *  - Receives may be posted at any time, also before connecting. Everything else on a queue pair
 *    that was never connected is NDX_E_CONNECTION_INVALID.
 *  - A post that fails takes nothing and leaves the queue pair usable.
 *  - On a connection that has ended, posts are accepted and complete NDX_E_CANCELED.
 *  - Requests with no SGE, and SGEs of length 0, are legal. Up to the granted number of SGEs, which
 *    may be more than was asked for.
 *  - They never block, allocate or log, and may be called from any thread and from callbacks.
 */
#ifndef NDX_QP_H
#define NDX_QP_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/cq.h>
#include <ndx/decls.h>
#include <ndx/mr.h>
#include <ndx/sge.h>
#include <ndx/srq.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** Flags of a request; each call says which it takes. (ND_OP_FLAG_...) */
enum ndx_op_flag {
	NDX_OP_SILENT_SUCCESS = 0x1, /**< no result if it succeeds; a failure always has one */
	NDX_OP_READ_FENCE = 0x2, /**< begin only when all earlier reads of the queue pair ended */
	NDX_OP_SOLICIT_EVENT = 0x4, /**< fires the peer's NDX_CQ_NOTIFY_SOLICITED */
	NDX_OP_ALLOW_READ = 0x8,    /**< bind: the peer may read */
	NDX_OP_ALLOW_WRITE = 0x10,  /**< bind: the peer may write */
	NDX_OP_INLINE = 0x20, /**< copy the data now; needs no registration, any number of SGEs */
};

/**
 * For `rnr_timer`: the provider's choice. Otherwise the codes mean, in milliseconds:
 *
 *      0: 655.36   1: 0.01     2: 0.02     3: 0.03     4: 0.04     5: 0.06
 *      6: 0.08     7: 0.12     8: 0.16     9: 0.24    10: 0.32    11: 0.48
 *     12: 0.64    13: 0.96    14: 1.28    15: 1.92    16: 2.56    17: 3.84
 *     18: 5.12    19: 7.68    20: 10.24   21: 15.36   22: 20.48   23: 30.72
 *     24: 40.96   25: 61.44   26: 81.92   27: 122.88  28: 163.84  29: 245.76
 *     30: 327.68  31: 491.52
 *
 * It is what the peer waits at least. (InfiniBand Architecture Specification, volume 1, 9.7.5.2.8)
 */
#define NDX_RNR_TIMER_DEFAULT UINT32_MAX

/** Attributes of a queue pair; ndx_qp_attr_init() first, then what differs. */
struct ndx_qp_attr {
	size_t size;                 /**< set by ndx_qp_attr_init() */
	struct ndx_cq *receive_cq;   /**< results of receives */
	struct ndx_cq *initiator_cq; /**< results of everything else; may be the same queue */
	struct ndx_srq *srq;         /**< NULL: own receive queue */
	void *context;               /**< comes back as queue_pair_context */
	uint32_t receive_depth;      /**< 1 ..; ignored with an SRQ. Default 64 */
	uint32_t initiator_depth;    /**< 1 .. Default 64 */
	uint32_t max_receive_sge;    /**< 0 .. Default 1 */
	uint32_t max_initiator_sge;  /**< 0 .. Default 1 */
	uint32_t inline_size;        /**< bytes an inline request may carry. Default 0 */
	/** How long a send of this queue pair may wait for the peer to post a receive, before it
	 * fails NDX_E_IO_TIMEOUT and the connection ends. Default 4000; NDX_INFINITE: for ever, and
	 * always so if the peer has an SRQ. */
	uint32_t no_receive_timeout_ms;
	uint32_t keepalive_ms; /**< an idle peer that does not answer for this long is dead;
	                            0 (default): never asked. Nor is, on verbs, a peer that is
	                            not NDX: it has granted no memory for the question */
	/** How long the peer's device is told to wait before it tries again what found no receive
	 * posted here: a code, 0 .. 31, see NDX_RNR_TIMER_DEFAULT. Anything else than the default
	 * needs NDX_CAP_RNR_TIMER. */
	uint32_t rnr_timer;
};

struct ndx_qp;

/** Data-path entry points of a queue pair; filled by its provider. NULL: not supported. */
struct ndx_qp_ops {
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
};

/** Head of a queue pair; the rest is opaque. */
struct ndx_qp {
	const struct ndx_qp_ops *ops;
};

/** Set `size` and the defaults. */
void ndx_qp_attr_init(struct ndx_qp_attr *attr);

/**
 * Create a queue pair. (CreateQueuePair, CreateQueuePairWithSrq)
 *
 * @param attr      queues and limits; more may be granted than asked for
 * @param[out] out  the queue pair; untouched on failure; release with ndx_qp_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      a queue is missing or of another adapter, a number is out of
 *                                      range; ndx_last_error() says which
 * @retval NDX_E_NOT_SUPPORTED          `srq` without NDX_CAP_SRQ, `rnr_timer` without
 *                                      NDX_CAP_RNR_TIMER
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES the device has no room
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_qp_create(struct ndx_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_qp **out);

/**
 * Release. A connected queue pair disconnects implicitly: own requests end or are cancelled (at
 * most the drain time-out of its connector), the peer is told, receives are cancelled when its
 * goodbye has come, at most 100 ms later; the rest happens in the background. If one side could not
 * tell the other's goodbye from a crash otherwise, because requests had to be cancelled, it waits
 * for up to two seconds more; when they are not enough, the connection is aborted. When it returns,
 * the device does not touch the queue pair's memory any more; results that were not taken can still
 * be. NULL is a no-op. Must not run beside another call on the same queue pair.
 *
 * In a callback, of its adapter or another, it waits for nothing: in one of its own nobody else
 * could drive what it would wait for, and in another's all connections of that adapter would stand
 * still meanwhile. Own requests that have not ended by then are cancelled, and the connection is
 * aborted: the peer sees that. Without any it parts as gracefully as elsewhere, but a message that
 * is on its way to one of its receives breaks the connection. Disconnect first where that matters.
 */
void ndx_qp_close(struct ndx_qp *qp);

/**
 * Cancel everything on the queue pair; all results (NDX_E_CANCELED, and those that were done) can
 * be taken when it returns. On a connected queue pair this ends the connection: the peer sees an
 * abort, and a later disconnect fails NDX_E_CONNECTION_ABORTED. An unconnected one stays usable.
 * A callback that the end of the connection causes may close the queue pair. It has returned when
 * this does, but in a callback: then it follows behind that (<ndx/overlapped.h>).
 *
 * @retval NDX_E_INTERNAL_ERROR the device did not hand its requests back in time
 *
 * Thread safety: any thread. Blocks: briefly; allowed in callbacks.
 */
enum ndx_status ndx_qp_flush(struct ndx_qp *qp);

/**
 * Post a send.
 *
 * @param context  comes back as request_context
 * @param sge      what to send; may be NULL if @p count is 0
 * @param flags    SILENT_SUCCESS | READ_FENCE | SOLICIT_EVENT | INLINE
 *
 * @retval NDX_OK                   posted
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_NO_MORE_ENTRIES    queue full: results were not taken
 * @retval NDX_E_DATA_OVERRUN       more SGEs than granted
 * @retval NDX_E_BUFFER_OVERFLOW    longer than max_transfer_length, or than `inline_size`
 * @retval NDX_E_INVALID_PARAMETER  flags that a send does not take
 */
static inline enum ndx_status ndx_qp_send(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count, uint32_t flags)
{
	return qp->ops->send(qp, context, sge, count, flags);
}

/** As ndx_qp_send(), with 32 bits for the peer's result. NDX_E_NOT_SUPPORTED without the
 * capability. */
static inline enum ndx_status ndx_qp_send_immediate(struct ndx_qp *qp, void *context,
                                                    const struct ndx_sge *sge, size_t count,
                                                    uint32_t immediate, uint32_t flags)
{
	if (!qp->ops->send_immediate)
		return NDX_E_NOT_SUPPORTED;
	return qp->ops->send_immediate(qp, context, sge, count, immediate, flags);
}

/**
 * Post a receive.
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
 * Post a read from the peer's memory. The SGEs need NDX_MR_ALLOW_LOCAL_WRITE or RDMA_READ_SINK.
 *
 * @param remote_address  the peer's virtual address, host byte order
 * @param remote_token    the peer's remote token for it
 * @param flags           SILENT_SUCCESS | READ_FENCE
 *
 * @retval NDX_E_INVALID_DEVICE_REQUEST the connection's outbound read limit is 0
 * @return otherwise as ndx_qp_send(). Without SGEs it is a liveness probe.
 */
static inline enum ndx_status ndx_qp_read(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t flags)
{
	return qp->ops->read(qp, context, sge, count, remote_address, remote_token, flags);
}

/**
 * Post a write to the peer's memory. Flags SILENT_SUCCESS | READ_FENCE | INLINE. As ndx_qp_read().
 *
 * @retval NDX_E_NOT_SUPPORTED no SGEs, and 0 for address and token: a liveness probe that the peer
 *                             is no party to. On verbs one that is not NDX may break the connection
 *                             because of a write that it did not allow; nothing was posted
 */
static inline enum ndx_status ndx_qp_write(struct ndx_qp *qp, void *context,
                                           const struct ndx_sge *sge, size_t count,
                                           uint64_t remote_address, uint32_t remote_token,
                                           uint32_t flags)
{
	return qp->ops->write(qp, context, sge, count, remote_address, remote_token, flags);
}

/**
 * As ndx_qp_write(), and the peer gets a result on a receive of its, with the 32 bits and the
 * number of bytes written; the receive's own memory is not used. NDX_E_NOT_SUPPORTED without
 * NDX_CAP_WRITE_IMMEDIATE. Flags also SOLICIT_EVENT.
 */
static inline enum ndx_status ndx_qp_write_immediate(struct ndx_qp *qp, void *context,
                                                     const struct ndx_sge *sge, size_t count,
                                                     uint64_t remote_address, uint32_t remote_token,
                                                     uint32_t immediate, uint32_t flags)
{
	if (!qp->ops->write_immediate)
		return NDX_E_NOT_SUPPORTED;
	return qp->ops->write_immediate(qp, context, sge, count, remote_address, remote_token,
	                                immediate, flags);
}

/**
 * Bind a window to part of a region. The window's remote token changes and may be read as soon as
 * this returns. The window serves the peer of this queue pair only.
 *
 * @param buffer, length  within @p mr
 * @param flags  SILENT_SUCCESS | READ_FENCE | ALLOW_READ | ALLOW_WRITE; ALLOW_WRITE needs a region
 *               with local write; neither of the two is legal and grants nothing
 *
 * @retval NDX_E_NOT_SUPPORTED    without NDX_CAP_MEMORY_WINDOW
 * @retval NDX_E_ACCESS_VIOLATION outside the region, region not registered, or right missing
 * @retval NDX_E_DEVICE_BUSY      the window is bound; invalidate it first
 * @return otherwise as ndx_qp_send()
 */
static inline enum ndx_status ndx_qp_bind(struct ndx_qp *qp, void *context, struct ndx_mr *mr,
                                          struct ndx_mw *mw, void *buffer, size_t length,
                                          uint32_t flags)
{
	if (!qp->ops->bind)
		return NDX_E_NOT_SUPPORTED;
	return qp->ops->bind(qp, context, mr, mw, buffer, length, flags);
}

/**
 * End a window's binding, after the earlier requests of this queue pair. Later use by the peer ends
 * the connection. Of a window that is not bound: completes NDX_E_INVALID_DEVICE_REQUEST. Flags
 * SILENT_SUCCESS | READ_FENCE. Returns as ndx_qp_bind().
 */
static inline enum ndx_status ndx_qp_invalidate(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
                                                uint32_t flags)
{
	if (!qp->ops->invalidate)
		return NDX_E_NOT_SUPPORTED;
	return qp->ops->invalidate(qp, context, mw, flags);
}

NDX_DECLS_END

#endif
