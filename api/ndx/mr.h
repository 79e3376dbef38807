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

/** Rights of a region; OR them together. Reading it locally is always allowed. (ND_MR_FLAG_...) */
enum ndx_mr_flag {
	NDX_MR_ALLOW_LOCAL_WRITE = 0x1,  /**< receives and reads may place data here */
	NDX_MR_ALLOW_REMOTE_READ = 0x2,  /**< the peer may read */
	NDX_MR_ALLOW_REMOTE_WRITE = 0x5, /**< the peer may write; contains local write */
	NDX_MR_RDMA_READ_SINK = 0x8,     /**< target of own reads; contains what the device needs */
};

/**
 * Create a region object, not registered yet. It can be registered and deregistered many times.
 *
 * @param[out] out  the region; untouched on failure; release with ndx_mr_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mr_create(struct ndx_adapter *adapter, struct ndx_mr **out);

/**
 * Deregister if needed, and release. When it returns, no local or remote access to the memory goes
 * on or can begin; windows that are still bound to it are dead. Operations in flight complete
 * first, but for their callbacks where it is called in one. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks. Blocks: usually not. Where the stack cannot take
 * access back by itself (ofi:tcp) the peers that know a token of the region confirm that they have
 * finished with it, in two exchanges; so do those that know a window, before. A peer owes an answer
 * each time, and a peer that does not give it loses its connection (NDX_DISCONNECT_ABORTED):
 *  - after about 2 s in which no data moves that the answer could stand behind;
 *  - after about 60 s if data keeps moving: one that has much under way gets the time to finish,
 *    and cannot be told from one that sends more and more and never answers;
 *  - in a callback, which holds up all connections of the adapter, after about 0.1 s. Programs
 *    that want to keep such a connection call ndx_mr_deregister() and close when that has
 * completed.
 */
void ndx_mr_close(struct ndx_mr *mr);

/**
 * Register memory.
 *
 * @param buffer  first byte; stays mapped while registered
 * @param length  in bytes, 1 .. max_registration_size
 * @param flags   OR of enum ndx_mr_flag
 * @param ov      completes with NDX_OK or one of the codes below
 *
 * @retval NDX_PENDING                  accepted
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, length too large, unknown flag, ov in flight
 * @retval NDX_E_INVALID_BUFFER_SIZE    length 0
 * @retval NDX_E_INVALID_DEVICE_STATE   registered already
 * @retval NDX_E_ACCESS_VIOLATION       not mapped, or mapped without the rights asked for
 * @retval NDX_E_INSUFFICIENT_RESOURCES cannot be pinned (RLIMIT_MEMLOCK), or no key left
 * @retval NDX_E_NO_MEMORY              out of memory
 *
 * Thread safety: any thread. Blocks: no longer than pinning takes.
 */
enum ndx_status ndx_mr_register(struct ndx_mr *mr, void *buffer, size_t length, uint32_t flags,
                                struct ndx_overlapped *ov);

/**
 * Deregister. When it completes, no local or remote access to the memory goes on or can begin. It
 * completes NDX_OK whatever peers do: one that does not confirm loses its connection, as
 * ndx_mr_close() says. The region may be registered again at once.
 *
 * @retval NDX_PENDING                accepted
 * @retval NDX_E_INVALID_DEVICE_STATE not registered
 * @retval NDX_E_DEVICE_BUSY          windows are bound to it; invalidate them first
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mr_deregister(struct ndx_mr *mr, struct ndx_overlapped *ov);

/**
 * End what is in flight on the region: when it returns, that has completed (in a callback, but for
 * what has a callback itself, which follows). A registration or deregistration cannot be stopped
 * half-way, so it completes with its own outcome, not NDX_E_CANCELED.
 *
 * @retval NDX_OK                  nothing is in flight, also if nothing was
 * @retval NDX_E_INVALID_PARAMETER @p mr is NULL
 *
 * Thread safety: any thread, also in callbacks. Blocks: as ndx_mr_close(), with the same limits.
 */
enum ndx_status ndx_mr_cancel(struct ndx_mr *mr);

/** Token for SGEs, valid while registered; 0 otherwise. */
uint32_t ndx_mr_get_local_token(const struct ndx_mr *mr);

/**
 * Token for the peer's reads and writes, valid while registered; 0 otherwise. Opaque: send it as
 * the four bytes it is, whatever the byte order. A device that is not NDX wants the rkey as a
 * number: ndx_rkey_of_token().
 */
uint32_t ndx_mr_get_remote_token(const struct ndx_mr *mr);

/**
 * Create a memory window, not bound. (ndx_qp_bind() binds it.)
 *
 * @param[out] out  the window; untouched on failure; release with ndx_mw_close()
 *
 * @retval NDX_E_NOT_SUPPORTED          without NDX_CAP_MEMORY_WINDOW
 * @retval NDX_E_INVALID_PARAMETER      NULL argument
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no window left
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_mw_create(struct ndx_adapter *adapter, struct ndx_mw **out);

/**
 * Release; a bound window is invalidated first. A bind of it that has not begun completes
 * NDX_E_CANCELED, and ends nothing. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks. Blocks: as ndx_mr_close(), with the same limits.
 */
void ndx_mw_close(struct ndx_mw *mw);

/** Token for the peer, valid from the return of ndx_qp_bind() on. */
uint32_t ndx_mw_get_remote_token(const struct ndx_mw *mw);

NDX_DECLS_END

#endif
