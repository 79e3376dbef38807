/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Overlapped work: operations that end later, and the three ways to learn of their end.
 *
 * A `struct ndx_overlapped` belongs to the caller. It is in flight from the moment a call returned
 * NDX_PENDING until exactly one completion. A call that returns anything else completes nothing
 * and does not touch the object. The caller learns of the completion in one of three ways, chosen
 * before the call:
 *
 *  - wait: ndx_overlapped_wait() or ndx_overlapped_status(), the default;
 *  - callback: `callback` is called by the adapter's control thread;
 *  - port: the object is queued to an `ndx_port`, which many operations share and which has a
 *    pollable file descriptor.
 *
 * The object may be reused or freed the moment it completes: when the wait or status call says so,
 * from inside the callback on, or when the port hands it out. Closing the object that an operation
 * was started on, and its cancel call, complete the operation before they return: its callback has
 * returned by then, or it is in its port. Operations of one object complete in the order in which
 * they ended.
 *
 * In a callback no other callback runs. What a callback ends (by close, cancel or flush, of its own
 * adapter's objects or another's) is complete when that call returns, unless it has a callback
 * itself. Then it stays in flight: its callback follows, in order, on the control thread of its
 * adapter, once that is in no callback any more. So memory that holds an object with a callback may
 * be freed from that callback on, not when a close inside another callback has returned. Operations
 * without a callback that are ended so complete ahead of the callbacks that are still to follow.
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
 * Completion callback. Runs on the control thread of the adapter, one at a time, never inside
 * another one. It must be short: the adapter's connections make no progress meanwhile. Calls that
 * wait for a peer, a completion or another thread are refused there with NDX_E_WOULD_BLOCK (each
 * call says whether it blocks), whatever adapter they are about; starting overlapped work, posting
 * and closing objects are allowed. What close cannot have at once there it does without, or leaves
 * to the background; each says which. Calls that ask the system alone (ndx_adapter_open(),
 * ndx_adapter_list(), ndx_resolve(), ndx_negotiation_server_create()) are carried out, and hold up
 * the connections of the callback's adapter as long as the system takes.
 */
typedef void ndx_overlapped_fn(struct ndx_overlapped *ov);

/** Wait without limit. */
#define NDX_INFINITE UINT32_MAX

/** One overlapped operation. Zero it (or ndx_overlapped_init()) before the first use. */
struct ndx_overlapped {
	/* set by the caller, before a call; constant while in flight */
	ndx_overlapped_fn *callback; /**< or NULL */
	struct ndx_port *port;       /**< or NULL; not together with @p callback */
	void *context;               /**< the caller's own, never looked at */

	/* the outcome, valid once complete */
	enum ndx_status status; /**< as the call would have returned it */
	uint32_t information;   /**< what the operation reports besides, 0 if nothing */
	int32_t native;         /**< errno or provider code behind a failure, 0 if none */

	uint32_t state;    /**< the library's; do not touch */
	void *reserved[4]; /**< the library's; do not touch */
};

/** Zero everything. Not on an object in flight. NULL is a no-op. */
void ndx_overlapped_init(struct ndx_overlapped *ov);

/**
 * Where the operation stands. Never blocks, any thread.
 *
 * @retval NDX_PENDING still in flight
 * @return otherwise the status it completed with (NDX_OK for an object never used)
 */
enum ndx_status ndx_overlapped_status(const struct ndx_overlapped *ov);

/**
 * Wait for the completion.
 *
 * @param ov          without callback and port
 * @param timeout_ms  milliseconds, 0 to look only, NDX_INFINITE for no limit
 *
 * @retval NDX_PENDING             time is over, still in flight: wait again or cancel
 * @retval NDX_E_WOULD_BLOCK       called from a callback, of any adapter, and not complete
 * @retval NDX_E_INVALID_PARAMETER @p ov has a callback or a port
 * @return otherwise the status the operation completed with
 *
 * Thread safety: any thread, one waiter per object. Blocks: yes.
 */
enum ndx_status ndx_overlapped_wait(struct ndx_overlapped *ov, uint32_t timeout_ms);

/**
 * Create a completion port: a first-in first-out queue of completed overlapped objects.
 *
 * @param[out] out  the port; untouched on failure; release with ndx_port_close()
 *
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no file descriptor left (RLIMIT_NOFILE)
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_port_create(struct ndx_port **out);

/**
 * Release a port. No object that names it may be in flight any more. What is still queued counts as
 * handed out. NULL is a no-op.
 */
void ndx_port_close(struct ndx_port *port);

/**
 * Descriptor that is readable while the port holds something. Only for poll/epoll/select; reading
 * it is the library's business. Closed with the port.
 */
int ndx_port_get_fd(struct ndx_port *port);

/**
 * Take completed objects from the port.
 *
 * @param ovs         array for up to @p max objects
 * @param max         1 or more
 * @param timeout_ms  how long to wait for the first one; 0 to look only
 *
 * @return number of objects taken; 0 when time was over, and at once if @p port or @p ovs is NULL
 *
 * Thread safety: any thread, several at once. Blocks: up to @p timeout_ms. Called from a callback
 * it does not wait, whatever @p timeout_ms says.
 */
size_t ndx_port_get(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                    uint32_t timeout_ms);

/**
 * Queue an object of the caller's own making, as PostQueuedCompletionStatus does. It must not be in
 * flight; it comes out of ndx_port_get() with the status and information it has. Nothing happens if
 * either is NULL.
 */
void ndx_port_post(struct ndx_port *port, struct ndx_overlapped *ov);

NDX_DECLS_END

#endif
