/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Completion queues. (IND2CompletionQueue)
 *
 * A completion queue collects the results of any number of queue pairs of its adapter: of their
 * initiator side, their receive side or both.
 *
 * Order: initiator requests of one queue pair complete in posting order, and so do its receives. No
 * order is promised between the two sides or between queue pairs, with one exception: the result of
 * a send comes before the result of the receive that the peer's answer to that send filled.
 *
 * The depth is advice. A completion queue that is smaller than the queue pairs that use it is legal
 * and loses no result. A slot of a queue pair becomes free when its result is taken.
 */
#ifndef NDX_CQ_H
#define NDX_CQ_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/decls.h>
#include <ndx/overlapped.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** The kind of request that a result belongs to. (ND2_REQUEST_TYPE) */
enum ndx_request_type {
	NDX_REQUEST_RECEIVE = 0,
	NDX_REQUEST_SEND = 1,
	NDX_REQUEST_BIND = 2,
	NDX_REQUEST_INVALIDATE = 3,
	NDX_REQUEST_READ = 4,
	NDX_REQUEST_WRITE = 5,
};

/** Bits of ndx_result.flags. */
enum ndx_result_flag {
	NDX_RESULT_IMMEDIATE = 1 << 0, /**< `immediate` holds the peer's immediate data */
	/**
	 * The peer's send carried NDX_OP_SOLICIT_EVENT. Set only where the provider's completions
	 * tell; those of `verbs` do not.
	 */
	NDX_RESULT_SOLICITED = 1 << 1,
	/**
	 * Result of a write with immediate: the receive's own memory was not used;
	 * `bytes_transferred` is the length that the peer wrote elsewhere.
	 */
	NDX_RESULT_WRITTEN = 1 << 2,
};

/**
 * One finished work request. (ND2_RESULT)
 *
 * | status                       | request types          | meaning                              |
 * |------------------------------|------------------------|--------------------------------------|
 * | NDX_OK                       | all                    | done                                 |
 * | NDX_E_CANCELED               | all                    | flushed with its queue pair          |
 * | NDX_E_ACCESS_VIOLATION       | all                    | local or remote memory, key or right |
 * | NDX_E_BUFFER_OVERFLOW        | receive                | message longer than the receive      |
 * | NDX_E_DATA_OVERRUN           | send, read, write      | more than the peer could take        |
 * | NDX_E_IO_TIMEOUT             | send, read, write      | no answer, or no receive, in time    |
 * | NDX_E_REMOTE_ERROR           | send, read, write      | error at the peer                    |
 * | NDX_E_INVALID_DEVICE_REQUEST | all                    | malformed request                    |
 * | NDX_E_INTERNAL_ERROR         | all                    | device failed                        |
 *
 * After a failure other than CANCELED the connection is ended, and all other requests of the queue
 * pair complete CANCELED.
 */
struct ndx_result {
	enum ndx_status status;
	uint32_t bytes_transferred; /**< receives only: length of the message */
	void *queue_pair_context;   /**< `context` of the queue pair */
	void *request_context;      /**< `context` of the request */
	enum ndx_request_type request_type;
	uint32_t flags;     /**< OR of enum ndx_result_flag */
	uint32_t immediate; /**< host byte order; see NDX_RESULT_IMMEDIATE */
	int32_t native;     /**< provider's code of a failure, 0 if none */
};

/** What completes a notification. */
enum ndx_cq_notify_type {
	NDX_CQ_NOTIFY_ERRORS = 0,    /**< a failure of the queue itself */
	NDX_CQ_NOTIFY_ANY = 1,       /**< any new result */
	NDX_CQ_NOTIFY_SOLICITED = 2, /**< a solicited receive, or a result that is not NDX_OK */
};

struct ndx_cq;

/** Data-path functions of a completion queue; as struct ndx_qp_ops. */
struct ndx_cq_ops {
	size_t size; /**< of the table, in bytes */
	size_t (*get_results)(struct ndx_cq *cq, struct ndx_result *results, size_t count);
};

/** First part of a completion queue; the rest is opaque. */
struct ndx_cq {
	const struct ndx_cq_ops *ops;
};

/** Attributes of a completion queue. Call ndx_cq_attr_init() first, then change members. */
struct ndx_cq_attr {
	size_t size; /**< set by ndx_cq_attr_init() */
	/** CPUs on which to raise completion events, a mask. Advice. Default 0: no preference. */
	uint64_t affinity;
	uint32_t depth; /**< 1 .. max_completion_queue_depth of the adapter. Default 64 */
	uint32_t group; /**< processor group; must be 0. Default 0 */
};

/** `size` of struct ndx_cq_attr in version 0.1; the smallest that is accepted. */
#define NDX_CQ_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_cq_attr, group)

/** As ndx_cq_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_cq_attr_init_sized(struct ndx_cq_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_cq_attr_init(struct ndx_cq_attr *attr)
{
	ndx_cq_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a completion queue.
 *
 * @param adapter   not NULL
 * @param attr      NULL: defaults
 * @param[out] out  the queue; untouched on failure; release it with ndx_cq_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, depth 0 or too large, group not 0
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES the device has no queue left, or RLIMIT_NOFILE is reached
 * @retval NDX_E_DEVICE_REMOVED         the device has been removed
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_create(struct ndx_adapter *adapter, const struct ndx_cq_attr *attr,
                              struct ndx_cq **out);

/** Create a completion queue of this depth with the defaults otherwise. As ndx_cq_create(). */
static inline enum ndx_status ndx_cq_create_depth(struct ndx_adapter *adapter, uint32_t depth,
                                                  struct ndx_cq **out)
{
	struct ndx_cq_attr attr;

	ndx_cq_attr_init(&attr);
	attr.depth = depth;
	return ndx_cq_create(adapter, &attr, out);
}

/**
 * Release the handle of a completion queue. Notifications in flight complete NDX_E_CANCELED before
 * the call returns. Queue pairs that use the queue continue to work, but their results can no
 * longer be read. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks; there, the callbacks of the notifications follow
 * after the current one. Not beside another call on the same queue.
 */
void ndx_cq_close(struct ndx_cq *cq);

/**
 * Change the depth. No result is lost, and traffic need not stop.
 *
 * @retval NDX_E_INVALID_PARAMETER depth is 0 or above the adapter's limit
 * @retval NDX_E_BUFFER_OVERFLOW   the queue holds more results than @p depth; nothing changed
 * @retval NDX_E_NOT_SUPPORTED     the adapter lacks NDX_CAP_CQ_RESIZE
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_resize(struct ndx_cq *cq, uint32_t depth);

/**
 * Request one notification: arm the queue once.
 *
 * The notification fires on the next result of the given type that has not fired a notification
 * yet. A result that was added since the last ndx_cq_get_results() fires it at once. All
 * notifications in flight fire together. NDX_CQ_NOTIFY_ANY turns notifications in flight into ANY;
 * the descriptor is armed separately from them. If a result of the type has fired the descriptor
 * since the last ndx_cq_get_results(), the descriptor stays readable when it is armed again. After
 * a notification, take results until there are none, then arm again.
 *
 * @param type  see enum ndx_cq_notify_type
 * @param ov    completes when the notification fires: NDX_OK; NDX_E_BUFFER_OVERFLOW (overrun: the
 *              queue and its queue pairs no longer work); NDX_E_INTERNAL_ERROR (device failed);
 *              NDX_E_CANCELED. NULL: arm the descriptor of ndx_cq_get_fd() instead
 *
 * @retval NDX_PENDING             armed, with @p ov
 * @retval NDX_OK                  armed, without @p ov
 * @retval NDX_E_INVALID_PARAMETER unknown type, or @p ov is in flight
 *
 * Thread safety: any thread. Blocks: no. Over TCP, arming the descriptor may read what has arrived
 * of a large message.
 */
enum ndx_status ndx_cq_notify(struct ndx_cq *cq, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov);

/**
 * Descriptor of the queue for poll, epoll and select. The descriptor becomes readable when a
 * notification that was armed with `ov == NULL` fires, and stops being readable when the queue is
 * armed that way again. While armed, the descriptor may also become readable for an event that
 * yields no result; ndx_cq_get_results() then makes it unreadable again. If one call of
 * ndx_cq_get_results() both finds a result and returns it, the descriptor may stay armed instead of
 * becoming readable. The library closes the descriptor with the queue.
 *
 * @param[out] fd  the descriptor; untouched on failure
 * @retval NDX_E_INSUFFICIENT_RESOURCES no descriptor left (RLIMIT_NOFILE)
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_fd(struct ndx_cq *cq, int *fd);

/**
 * Cancel all notifications in flight. They complete NDX_E_CANCELED, in order, before the call
 * returns. Called from a callback, those that have a callback follow after the current one.
 *
 * Thread safety: any thread.
 */
enum ndx_status ndx_cq_cancel(struct ndx_cq *cq);

/**
 * The CPUs on which completion events of this queue are raised.
 *
 * @retval NDX_E_NOT_SUPPORTED the adapter lacks NDX_CAP_NOTIFY_AFFINITY
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_notify_affinity(struct ndx_cq *cq, uint16_t *group, uint64_t *affinity);

/**
 * Take results. Never sleeps, never fails. Over TCP, while the descriptor is armed, a call that
 * reads a part of a large message and finds no result reads on: up to 50 us after each part, and
 * 0.5 ms in all such calls until the queue is armed again or one of them returns a result.
 *
 * @return number of results taken; less than @p count means that there are no more at present
 *
 * Thread safety: any thread; each result goes to one thread only. Allowed in callbacks.
 */
static inline size_t ndx_cq_get_results(struct ndx_cq *cq, struct ndx_result *results, size_t count)
{
	return cq->ops->get_results(cq, results, count);
}

/**
 * Wait until at least one result is there, and take results. The call polls briefly, then arms the
 * queue and sleeps. It arms and polls the descriptor of ndx_cq_get_fd(), so the program must not
 * use the descriptor for anything else in the same period. When the time is over, the descriptor
 * stays armed, because another thread may wait for it: the next result makes it readable once.
 *
 * @param[out] got  number of results taken; 0 unless NDX_OK
 *
 * @retval NDX_PENDING       the time is over and there was no result
 * @retval NDX_E_WOULD_BLOCK called from a callback of any adapter, and there is no result
 * @return otherwise the status with which the notification completed
 *
 * Thread safety: any thread. Blocks: up to @p timeout_ms; over TCP, while a large message arrives,
 * up to 1 ms longer (see ndx_cq_get_results()).
 */
enum ndx_status ndx_cq_wait_results(struct ndx_cq *cq, struct ndx_result *results, size_t count,
                                    uint32_t timeout_ms, size_t *got);

NDX_DECLS_END

#endif
