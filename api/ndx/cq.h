/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Completion queues. (IND2CompletionQueue)
 *
 * A queue takes the results of any number of queue pairs of its adapter, of their initiator side,
 * their receive side or both. Initiator requests of one queue pair complete in posting order, so do
 * its receives; nothing is promised between the two, or between queue pairs, but that the result of
 * a send comes before the result of a receive that the peer's answer to it filled. The depth is
 * advice: a queue smaller than the queue pairs on it is legal and loses nothing; a slot of a queue
 * pair is free again once its result was taken.
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

/** What kind of request a result belongs to. (ND2_REQUEST_TYPE) */
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
	NDX_RESULT_IMMEDIATE = 1 << 0, /**< `immediate` holds what the peer sent */
	NDX_RESULT_SOLICITED = 1 << 1, /**< the peer's send carried NDX_OP_SOLICIT_EVENT, where
	                                  completions say so: those of `verbs` do not */
	NDX_RESULT_WRITTEN =
		1 << 2, /**< of a write with immediate: the receive's own memory was not
	                     used, `bytes_transferred` is what the peer wrote elsewhere */
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
 * After a failure other than CANCELED the connection is ended and everything else of the queue pair
 * completes CANCELED.
 */
struct ndx_result {
	enum ndx_status status;
	uint32_t bytes_transferred; /**< receives only: length of the message */
	void *queue_pair_context;   /**< `context` of the queue pair */
	void *request_context;      /**< `context` of the request */
	enum ndx_request_type request_type;
	uint32_t flags;     /**< OR of enum ndx_result_flag */
	uint32_t immediate; /**< host byte order; see NDX_RESULT_IMMEDIATE */
	int32_t native;     /**< provider's code behind a failure, 0 if none */
};

/** What completes a notification. */
enum ndx_cq_notify_type {
	NDX_CQ_NOTIFY_ERRORS = 0,    /**< failure of the queue itself */
	NDX_CQ_NOTIFY_ANY = 1,       /**< any new result */
	NDX_CQ_NOTIFY_SOLICITED = 2, /**< a solicited receive, or a result that is not NDX_OK */
};

struct ndx_cq;

/** Data-path entry points of a queue; filled by its provider. */
struct ndx_cq_ops {
	size_t (*get_results)(struct ndx_cq *cq, struct ndx_result *results, size_t count);
};

/** Head of a completion queue; the rest is opaque. */
struct ndx_cq {
	const struct ndx_cq_ops *ops;
};

/**
 * Create a completion queue.
 *
 * @param adapter   not NULL
 * @param depth     1 .. max_completion_queue_depth of the adapter
 * @param group     processor group, 0
 * @param affinity  mask of CPUs that events should be raised on; 0: no preference; advice only
 * @param[out] out  the queue; untouched on failure; release with ndx_cq_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, depth 0 or too large, group not 0
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES the device or RLIMIT_NOFILE has no room
 * @retval NDX_E_DEVICE_REMOVED         the device is gone
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_create(struct ndx_adapter *adapter, uint32_t depth, uint16_t group,
                              uint64_t affinity, struct ndx_cq **out);

/**
 * Release the handle: notifications in flight complete NDX_E_CANCELED before it returns. Queue
 * pairs that use the queue go on; their results can no longer be read. NULL is a no-op. Any thread,
 * also in callbacks: the callbacks that it causes follow behind the current one then. Must not run
 * beside another call on the same queue.
 */
void ndx_cq_close(struct ndx_cq *cq);

/**
 * Change the depth; no result is lost and nothing needs to be quiet.
 *
 * @retval NDX_E_INVALID_PARAMETER depth 0 or beyond the adapter's limit
 * @retval NDX_E_BUFFER_OVERFLOW   more results are waiting than @p depth; nothing changed
 * @retval NDX_E_NOT_SUPPORTED     without NDX_CAP_CQ_RESIZE
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_resize(struct ndx_cq *cq, uint32_t depth);

/**
 * Ask for one notification: the queue is armed once.
 *
 * It fires on the next result of the kind that has not fired one before; a result that was added
 * since the last ndx_cq_get_results() fires it at once. All notifications in flight fire together.
 * NDX_CQ_NOTIFY_ANY turns those in flight into ANY; the descriptor is armed apart from them. After
 * it fired, take results until there are none, then ask again.
 *
 * @param type  see enum ndx_cq_notify_type
 * @param ov    completes when it fires: NDX_OK; NDX_E_BUFFER_OVERFLOW (queue overrun: it and its
 *              queue pairs are dead), NDX_E_INTERNAL_ERROR (device failed), NDX_E_CANCELED. NULL:
 *              arm the descriptor of ndx_cq_get_fd() instead
 *
 * @retval NDX_PENDING             armed, with @p ov
 * @retval NDX_OK                  armed, @p ov is NULL
 * @retval NDX_E_INVALID_PARAMETER unknown type, or @p ov is in flight
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_notify(struct ndx_cq *cq, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov);

/**
 * Descriptor for poll/epoll/select. It becomes readable when a notification that was armed with
 * `ov == NULL` fires, and stops being readable when the queue is armed that way again. While it is
 * armed it may also be readable for something that gives no result; after ndx_cq_get_results() it
 * is not any more. Closed with the queue.
 *
 * @param[out] fd  the descriptor; untouched on failure
 * @retval NDX_E_INSUFFICIENT_RESOURCES no descriptor left (RLIMIT_NOFILE)
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_fd(struct ndx_cq *cq, int *fd);

/** Complete all notifications in flight NDX_E_CANCELED, in order, before it returns; in a callback,
 * what is to be told by callback follows behind the current one. Any thread. */
enum ndx_status ndx_cq_cancel(struct ndx_cq *cq);

/**
 * CPUs that events of this queue are raised on.
 *
 * @retval NDX_E_NOT_SUPPORTED without NDX_CAP_NOTIFY_AFFINITY
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_notify_affinity(struct ndx_cq *cq, uint16_t *group, uint64_t *affinity);

/**
 * Take results. Never blocks, never fails.
 *
 * @return how many were taken; fewer than @p count means there are no more now
 *
 * Thread safety: any thread; each result goes to one of them. Allowed in callbacks.
 */
static inline size_t ndx_cq_get_results(struct ndx_cq *cq, struct ndx_result *results, size_t count)
{
	return cq->ops->get_results(cq, results, count);
}

/**
 * Take at least one result, waiting for it: spins for a moment, then arms the queue and sleeps. It
 * uses the descriptor of ndx_cq_get_fd(), which therefore has no other use meanwhile. When time is
 * over that stays armed, since another thread may be waiting on it: the next result raises it once.
 *
 * @param[out] got    how many were taken; 0 unless NDX_OK
 *
 * @retval NDX_PENDING       time is over, nothing came
 * @retval NDX_E_WOULD_BLOCK called from a callback, of any adapter, and nothing is there
 * @return otherwise as the notification completed
 *
 * Thread safety: any thread. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_cq_wait_results(struct ndx_cq *cq, struct ndx_result *results, size_t count,
                                    uint32_t timeout_ms, size_t *got);

NDX_DECLS_END

#endif
