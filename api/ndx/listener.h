/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Listeners. (IND2Listener) */
#ifndef NDX_LISTENER_H
#define NDX_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/overlapped.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_listener; /* opaque */

/**
 * Create a listener.
 *
 * @param[out] out  the listener; untouched on failure; release with ndx_listener_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES no room
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_create(struct ndx_adapter *adapter, struct ndx_listener **out);

/**
 * Stop listening and release. Operations in flight complete NDX_E_CANCELED before it returns;
 * requests that nobody took are refused; those already in a connector stay valid. NULL is a no-op.
 * Any thread, also in callbacks: the callbacks that it causes follow behind the current one then.
 */
void ndx_listener_close(struct ndx_listener *listener);

/**
 * Bind to a local address.
 *
 * @param address  of this adapter, or the unspecified address for all of this adapter's; port 0:
 * any
 *
 * @retval NDX_E_INVALID_PARAMETER          NULL, or not IPv4/IPv6
 * @retval NDX_E_INVALID_ADDRESS            not an address of this adapter, or one that the
 *                                          provider's trust rule refuses
 * @retval NDX_E_SHARING_VIOLATION          port in use (may be reported by listen instead)
 * @retval NDX_E_TOO_MANY_ADDRESSES         no free port
 * @retval NDX_E_ADDRESS_ALREADY_ASSOCIATED bound already
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_bind(struct ndx_listener *listener, const struct sockaddr *address,
                                  socklen_t address_len);

/**
 * Begin to take requests. They are queued from now on, asked for or not.
 *
 * @param backlog  requests kept waiting before more are refused; 0: no limit but the provider's.
 *                 One whose active side has given up makes room for another, where the stack tells
 *                 of that before it is answered (loop and ofi:tcp do). A request that finds the
 *                 backlog full looks for such a one among 16 that wait, the next request among the
 *                 following 16: a search of all would cost more with every request that waits
 *
 * @retval NDX_E_INVALID_DEVICE_STATE not bound, or listening already
 * @retval NDX_E_SHARING_VIOLATION    port in use
 * @retval NDX_E_INSUFFICIENT_RESOURCES no room
 * @retval NDX_E_DEVICE_NOT_READY     ofi:tcp: the kernel does not tell whose a socket is; the text
 *                                    says what to do
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_listen(struct ndx_listener *listener, uint32_t backlog);

/**
 * The address it listens on, with the port.
 *
 * @param[in,out] length  room in bytes; set to the length there is
 * @retval NDX_E_INVALID_DEVICE_STATE not listening
 * @retval NDX_E_BUFFER_OVERFLOW      does not fit; nothing was copied
 */
enum ndx_status ndx_listener_get_local_address(struct ndx_listener *listener,
                                               struct sockaddr *address, socklen_t *length);

/**
 * Take the next request into a connector. Several may be in flight; each request completes one, in
 * order.
 *
 * @param connector  new: not bound, not connecting; of the same adapter
 * @param ov         completes NDX_OK: the connector holds a request, accept or reject it;
 *                   NDX_E_CANCELED: cancelled, or listener or connector closed
 *
 * @retval NDX_PENDING                accepted
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, other adapter's connector, ov in flight
 * @retval NDX_E_INVALID_DEVICE_STATE not listening, or the connector is not new
 * @retval NDX_E_DEVICE_REMOVED       completion: the device has failed or was taken away
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_get_connection_request(struct ndx_listener *listener,
                                                    struct ndx_connector *connector,
                                                    struct ndx_overlapped *ov);

/** Complete what is in flight NDX_E_CANCELED, in order, before it returns; in a callback, what is
 * to be told by callback follows behind the current one. */
enum ndx_status ndx_listener_cancel(struct ndx_listener *listener);

NDX_DECLS_END

#endif
