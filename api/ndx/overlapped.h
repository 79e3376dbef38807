/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Overlapped operations: they end after the call has returned, and the caller learns of the end in
 * one of three ways.
 *
 * A `struct ndx_overlapped` belongs to the caller. It is in flight from the moment that a call has
 * returned NDX_PENDING until its completion, of which there is exactly one. A call that returns
 * anything else does not complete the object and does not change it. The caller chooses before the
 * call how it learns of the completion:
 *
 *   - wait: ndx_overlapped_wait() or ndx_overlapped_status(), the default;
 *   - callback: the adapter's control thread, or the thread of a framework for its sessions, calls
 *     `callback`;
 *   - port: the library queues the object to an `ndx_port`, which many operations may share and
 *     which has a pollable file descriptor; or the port has a sink (ndx_port_create_sink()), which
 *     the completing thread calls.
 *
 * The object may be reused or freed as soon as it is complete: when the wait or status call says
 * so, from inside its callback or sink, or when the port returns it. Closing or cancelling the
 * object on which an operation was started completes the operation before the call returns: its
 * callback or sink has returned, or the overlapped object is in its port; ndx_session_cancel()
 * names its exceptions. Operations of one object complete in the order in which they ended.
 *
 * No callback runs inside another callback. A callback may end other operations by close, cancel or
 * flush, on objects of its own adapter or of another one. Such an operation is complete when that
 * call returns, unless it has a callback itself. Then it stays in flight; its callback follows, in
 * order, on the control thread of its adapter as soon as that thread is in no callback. So memory
 * that holds an overlapped object with a callback may be freed from that callback on; it must not
 * be freed because a close inside another callback has returned. Operations without a callback that
 * are ended in this way complete before the callbacks that are still to follow.
 *
 * (IND2Overlapped, OVERLAPPED and I/O completion ports of the NetworkDirect SPI.)
 */
#ifndef NDX_OVERLAPPED_H
#define NDX_OVERLAPPED_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_overlapped;
struct ndx_port; /* opaque */

/**
 * Completion callback. It runs on the control thread of the adapter, one at a time, never inside
 * another callback. It must be short, because the adapter's connections make no progress in the
 * meantime.
 *
 * Calls that wait for a peer, a completion or another thread return NDX_E_WOULD_BLOCK in a
 * callback, whatever adapter they concern; each call says whether it blocks. Starting overlapped
 * operations, posting requests, closing objects, and ndx_port_post(), also of the callback's own
 * object, are allowed. Where a close would have to wait, it does without the result of the wait or
 * finishes in the background; the comment of each close says which. Calls that query only the
 * system (ndx_adapter_open(), ndx_adapter_list(), ndx_resolve(), ndx_negotiation_server_create())
 * work in a callback, and delay the connections of the callback's adapter for as long as the system
 * takes.
 */
typedef void ndx_overlapped_fn(struct ndx_overlapped *ov);

/** No time limit. */
#define NDX_INFINITE UINT32_MAX

/**
 * One overlapped operation. Zero it (or call ndx_overlapped_init()) before the first use. Its size
 * does not change: programs embed it, and `reserved` has room for what later versions need.
 */
struct ndx_overlapped {
	/* set by the caller before a call; constant while in flight */
	ndx_overlapped_fn *callback; /**< may be NULL */
	struct ndx_port *port;       /**< may be NULL; not together with @p callback */
	void *context;               /**< for the caller; the library does not use it */

	/* the outcome; valid when complete */
	enum ndx_status status; /**< as the call would have returned it */
	uint32_t information;   /**< additional result of the operation; 0 if none */
	int32_t native;         /**< errno or provider code of a failure, 0 if none */

	uint32_t state;    /**< for the library only */
	void *reserved[8]; /**< for the library only */
};

/** Zero all members. The object must not be in flight. NULL is a no-op. */
void ndx_overlapped_init(struct ndx_overlapped *ov);

/**
 * State of the operation. Never blocks. Any thread. If the operation has failed, ndx_last_error()
 * of the calling thread becomes its text: which call, the status, the native cause by name.
 * ndx_connector_get_error_text() knows more of an operation of a connector.
 *
 * @retval NDX_PENDING still in flight
 * @return otherwise the status with which it completed (NDX_OK for an object that was never used)
 */
enum ndx_status ndx_overlapped_status(const struct ndx_overlapped *ov);

/**
 * Wait for the completion. If the operation has failed, ndx_last_error() of the calling thread
 * becomes its text, as by ndx_overlapped_status().
 *
 * @param ov          without callback and port
 * @param timeout_ms  in milliseconds; 0: check only; NDX_INFINITE: no limit
 *
 * @retval NDX_PENDING             the time is over, the operation is still in flight: wait again or
 *                                 cancel
 * @retval NDX_E_WOULD_BLOCK       called from a callback of any adapter, and the operation is not
 *                                 complete
 * @retval NDX_E_INVALID_PARAMETER @p ov has a callback or a port
 * @return otherwise the status with which the operation completed
 *
 * Thread safety: any thread, one waiter per object. Blocks: yes.
 */
enum ndx_status ndx_overlapped_wait(struct ndx_overlapped *ov, uint32_t timeout_ms);

/**
 * Create a completion port: a first-in first-out queue of completed overlapped objects.
 *
 * @param[out] out  the port; untouched on failure; release it with ndx_port_close()
 *
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no file descriptor left (RLIMIT_NOFILE)
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_port_create(struct ndx_port **out);

/**
 * Create a port that calls a function instead of queueing: the thread that completes an operation
 * calls @p sink with the overlapped object. Such a completion needs no other thread, and the port
 * no descriptor. For programs that have their own way to wait, such as an event loop.
 *
 * Any thread may call the sink, several threads at once for different objects, and also the thread
 * that starts an operation, before the starting call has returned. The caller holds locks of the
 * library. So the sink may store, wake threads, and call ndx_port_post() with a port that queues.
 * The sink must not call anything else of the library, and must not wait for a lock that the
 * program holds during a call of the library.
 *
 * The overlapped object has its outcome and belongs to the program from the call of the sink on;
 * the sink may reuse, free or post the object. Before that call the program must not free or reuse
 * the object, whatever ndx_overlapped_status() says. The calls come in the order in which a port
 * that queues would return the objects.
 *
 * @param sink      the function; not NULL
 * @param[out] out  the port; untouched on failure; release it with ndx_port_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_port_create_sink(ndx_overlapped_fn *sink, struct ndx_port **out);

/**
 * Release a port. No overlapped object that names the port may be in flight. Objects that are still
 * queued count as returned. NULL is a no-op.
 */
void ndx_port_close(struct ndx_port *port);

/**
 * Descriptor that is readable while the port holds an object. For poll, epoll and select only; the
 * program must not read it. The library closes it with the port. -1 if the port has a sink, or is
 * NULL.
 */
int ndx_port_get_fd(struct ndx_port *port);

/**
 * Take completed objects from the port. An object that comes while threads wait here belongs to the
 * one that came last, so a thread that comes later cannot take it.
 *
 * @param ovs         array for up to @p max objects
 * @param max         1 or more
 * @param timeout_ms  how long to wait for the first object; 0: check only
 *
 * @return number of objects taken; 0 when the time is over, and at once if the port has a sink, or
 *         if @p port or @p ovs is NULL
 *
 * Thread safety: any thread, several at once. Blocks: up to @p timeout_ms; in a callback no,
 * whatever @p timeout_ms says.
 */
size_t ndx_port_get(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                    uint32_t timeout_ms);

/**
 * Queue an overlapped object of the program, as PostQueuedCompletionStatus does. The object must
 * not be in flight; ndx_port_get() returns it with the status and information that it has. If the
 * port has a sink, the call calls the sink; so a sink must not post to its own port. No-op if
 * either argument is NULL.
 *
 * Thread safety: any thread, also in callbacks and sinks. Blocks: no.
 */
void ndx_port_post(struct ndx_port *port, struct ndx_overlapped *ov);

NDX_DECLS_END

#endif
