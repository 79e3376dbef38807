/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Memory regions and memory windows. (IND2MemoryRegion, IND2MemoryWindow)
 */
#ifndef NDX_MR_H
#define NDX_MR_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/decls.h>
#include <ndx/overlapped.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_mr; /* opaque */
struct ndx_mw; /* opaque */

/** Rights of a region; combine them with OR. Local reads are always allowed. (ND_MR_FLAG_...) */
enum ndx_mr_flag {
	NDX_MR_ALLOW_LOCAL_WRITE = 0x1,  /**< receives and reads may place data here */
	NDX_MR_ALLOW_REMOTE_READ = 0x2,  /**< the peer may read */
	NDX_MR_ALLOW_REMOTE_WRITE = 0x5, /**< the peer may write; includes local write */
	/** Target of own reads; includes what the device needs for that. */
	NDX_MR_RDMA_READ_SINK = 0x8,
};

/**
 * Create a region object, not registered yet. It may be registered and deregistered many times.
 *
 * @param[out] out  the region; untouched on failure; release it with ndx_mr_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mr_create(struct ndx_adapter *adapter, struct ndx_mr **out);

/**
 * Deregister a region if needed, and release it. When the call returns, all local and remote access
 * to the memory has ended and none can begin. Windows that are still bound to the region no longer
 * work. An operation in flight completes first, with its own outcome; called from a callback,
 * its own callback follows later. NULL is a no-op.
 *
 * A stack that cannot revoke access by itself (ofi:tcp) needs the peers. Those that know a token of
 * the region must confirm that they no longer use it, in two exchanges; before that, so must those
 * that know a token of a window of the region. A peer that does not answer loses its connection
 * (NDX_DISCONNECT_ABORTED):
 *   - after about 2 s without any data movement that could delay the answer;
 *   - after about 60 s if data keep moving: a peer with a large amount of data in flight gets time
 *     to finish, and cannot be told from a peer that keeps sending and never answers;
 *   - in a callback after about 0.1 s, because a callback delays all connections of the adapter. A
 *     program that wants to keep such a connection calls ndx_mr_deregister(), and closes the region
 *     when that has completed.
 *
 * Thread safety: any thread, also in callbacks. Blocks: usually no; else until the peers have
 * confirmed, within these limits.
 */
void ndx_mr_close(struct ndx_mr *mr);

/**
 * Register memory. The region is registered when the operation completes with NDX_OK. If it
 * completes with a failure, the region is not registered, and may be registered again. A region has
 * one registration or deregistration in flight at a time.
 *
 * @param buffer  first byte; must stay mapped while registered. Constant data can be registered
 *                without a right to write
 * @param length  in bytes, 1 .. max_registration_size
 * @param flags   OR of enum ndx_mr_flag
 * @param ov      completes with NDX_OK or one of the codes below
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, length too large, unknown flag, or ov in
 *                                      flight
 * @retval NDX_E_INVALID_BUFFER_SIZE    length 0
 * @retval NDX_E_INVALID_DEVICE_STATE   registered already
 * @retval NDX_E_DEVICE_BUSY            another operation on the region is in flight
 * @retval NDX_E_ACCESS_VIOLATION       not mapped, or mapped without the requested rights
 * @retval NDX_E_INSUFFICIENT_RESOURCES the memory cannot be pinned (RLIMIT_MEMLOCK), or no key is
 *                                      left
 * @retval NDX_E_NO_MEMORY              out of memory
 *
 * Thread safety: any thread. Blocks: no longer than pinning takes.
 */
enum ndx_status ndx_mr_register(struct ndx_mr *mr, const void *buffer, size_t length,
                                uint32_t flags, struct ndx_overlapped *ov);

/**
 * Register memory that a dma-buf exports, such as the memory of a GPU. Everything else is as with
 * ndx_mr_register() and ndx_mr_deregister().
 *
 * @param fd      the dma-buf; the program may close the descriptor when the operation has completed
 * @param offset  of the first byte in the dma-buf
 * @param length  in bytes, 1 .. max_registration_size
 * @param iova    address by which SGEs, windows and the peer name the first byte. The library does
 *                not access it. Has the same position in a page as @p offset
 * @param flags   OR of enum ndx_mr_flag
 * @param ov      completes with NDX_OK or one of the codes below
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_NOT_SUPPORTED          the adapter lacks NDX_CAP_DMABUF
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, length too large, range that overflows,
 *                                      unknown flag, or ov in flight; @p fd is no dma-buf, the
 * range is not within it, or @p iova and @p offset differ in their position in a page
 * @retval NDX_E_INVALID_BUFFER_SIZE    length 0
 * @retval NDX_E_INVALID_DEVICE_STATE   registered already
 * @retval NDX_E_DEVICE_BUSY            another operation on the region is in flight
 * @retval NDX_E_INSUFFICIENT_RESOURCES the memory cannot be mapped for the device, or no key is
 * left
 *
 * Thread safety: any thread. Blocks: no longer than mapping takes.
 */
enum ndx_status ndx_mr_register_dmabuf(struct ndx_mr *mr, int fd, uint64_t offset, size_t length,
                                       uint64_t iova, uint32_t flags, struct ndx_overlapped *ov);

/**
 * Deregister. When the operation completes, all local and remote access to the memory has ended and
 * none can begin. It completes NDX_OK whatever peers do: a peer that does not confirm loses its
 * connection, as described at ndx_mr_close(). The region may then be registered again. If
 * the operation fails, at once or later, the region stays registered, with its tokens.
 *
 * @retval NDX_PENDING                started
 * @retval NDX_E_INVALID_DEVICE_STATE not registered
 * @retval NDX_E_DEVICE_BUSY          windows are bound to the region: invalidate them first; or
 *                                    another operation on the region is in flight
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mr_deregister(struct ndx_mr *mr, struct ndx_overlapped *ov);

/**
 * Wait until no operation on the region is in flight. When the call returns, such operations have
 * completed; called from a callback, those that have a callback follow later. A registration or
 * deregistration cannot be interrupted, so it completes with its own outcome and not with
 * NDX_E_CANCELED.
 *
 * @retval NDX_OK                  no operation is in flight, or none was
 * @retval NDX_E_INVALID_PARAMETER @p mr is NULL
 *
 * Thread safety: any thread, also in callbacks. Blocks: as ndx_mr_close(), with the same limits.
 */
enum ndx_status ndx_mr_cancel(struct ndx_mr *mr);

/** Token for SGEs; valid while registered, else 0. From ndx_mr_deregister() on it is 0. */
uint32_t ndx_mr_get_local_token(const struct ndx_mr *mr);

/**
 * Token for the peer's reads and writes; valid while registered, else 0, as the local token. The
 * token is opaque: send its four bytes unchanged, whatever the byte order. A device that does not
 * run NDX needs the rkey as a number: ndx_rkey_of_token().
 */
uint32_t ndx_mr_get_remote_token(const struct ndx_mr *mr);

/**
 * Create a memory window, not bound. ndx_qp_bind() binds it.
 *
 * @param[out] out  the window; untouched on failure; release it with ndx_mw_close()
 *
 * @retval NDX_E_NOT_SUPPORTED          the adapter lacks NDX_CAP_MEMORY_WINDOW
 * @retval NDX_E_INVALID_PARAMETER      NULL argument
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no window left
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mw_create(struct ndx_adapter *adapter, struct ndx_mw **out);

/**
 * Release a window; a bound window is invalidated first. A bind of the window that has not started
 * completes NDX_E_CANCELED, and does not end the connection. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks. Blocks: as ndx_mr_close(), with the same limits.
 */
void ndx_mw_close(struct ndx_mw *mw);

/** Token for the peer; valid as soon as ndx_qp_bind() has returned. */
uint32_t ndx_mw_get_remote_token(const struct ndx_mw *mw);

NDX_DECLS_END

#endif
