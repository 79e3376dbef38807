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
 * @param[out] out  the listener; untouched on failure; release it with ndx_listener_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no resources left at the provider
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_create(struct ndx_adapter *adapter, struct ndx_listener **out);

/**
 * Stop listening, and release the listener. Operations in flight complete NDX_E_CANCELED before the
 * call returns. Requests that no connector has taken are refused; requests that a connector has
 * taken stay valid. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks; there, the callbacks of cancelled operations follow
 * after the current one.
 */
void ndx_listener_close(struct ndx_listener *listener);

/**
 * Bind to a local address.
 *
 * @param address  an address of this adapter, or the unspecified address for all of its addresses;
 *                 port 0: any free port
 *
 * @retval NDX_E_INVALID_PARAMETER          NULL argument, or neither IPv4 nor IPv6
 * @retval NDX_E_INVALID_ADDRESS            not an address of this adapter, or refused by the
 *                                          provider's trust rule
 * @retval NDX_E_ACCESS_DENIED              this process may not use a port below 1024 (ip(7));
 *                                          ndx_listener_listen() may report it instead. Providers
 *                                          whose ports are not the system's (loop) allow each port
 * @retval NDX_E_SHARING_VIOLATION          port in use; ndx_listener_listen() may report it instead
 * @retval NDX_E_TOO_MANY_ADDRESSES         no free port
 * @retval NDX_E_ADDRESS_ALREADY_ASSOCIATED bound already
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_bind(struct ndx_listener *listener, const struct sockaddr *address,
                                  socklen_t address_len);

/**
 * Start to listen. From now on the library queues incoming requests, whether or not
 * ndx_listener_get_connection_request() is in flight.
 *
 * @param backlog  number of requests that may wait; further ones are refused; 0: only the
 *                 provider's limit. A waiting request whose active side has given up makes room for
 *                 another one, where the stack reports this before the request is answered (loop
 *                 and ofi:tcp do). A request that finds the backlog full checks 16 waiting requests
 *                 for that, the next request checks the following 16: to check all would cost more
 *                 with every request that waits
 *
 * @retval NDX_E_INVALID_DEVICE_STATE   not bound, or listening already
 * @retval NDX_E_SHARING_VIOLATION      port in use
 * @retval NDX_E_ACCESS_DENIED          this process may not use a port below 1024 (ip(7))
 * @retval NDX_E_INSUFFICIENT_RESOURCES no resources left
 * @retval NDX_E_DEVICE_NOT_READY       ofi:tcp: the kernel does not report which user owns a
 *                                      socket; ndx_last_error() says what to do
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_listen(struct ndx_listener *listener, uint32_t backlog);

/**
 * The address on which the listener listens, with the port.
 *
 * @param[in,out] length  room in bytes; set to the length of the address
 * @retval NDX_E_INVALID_DEVICE_STATE not listening
 * @retval NDX_E_BUFFER_OVERFLOW      the address does not fit; nothing was copied, @p *length is
 *                                    needed
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_get_local_address(struct ndx_listener *listener,
                                               struct sockaddr *address, socklen_t *length);

/**
 * Take the next request into a connector. Several of these operations may be in flight; each
 * request completes one of them, in order.
 *
 * @param connector  new: not bound and not connecting; of the same adapter
 * @param ov         completes NDX_OK: the connector holds a request, accept or reject it;
 *                   NDX_E_CANCELED: cancelled, or listener or connector closed
 *
 * @retval NDX_PENDING                started
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, connector of another adapter, or ov in flight
 * @retval NDX_E_INVALID_DEVICE_STATE not listening, or the connector is not new
 * @retval NDX_E_DEVICE_REMOVED   (a) the device failed or was removed
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listener_get_connection_request(struct ndx_listener *listener,
                                                    struct ndx_connector *connector,
                                                    struct ndx_overlapped *ov);

/**
 * Cancel the operations in flight. They complete NDX_E_CANCELED, in order, before the call returns.
 * Called from a callback, those that have a callback follow after the current one.
 */
enum ndx_status ndx_listener_cancel(struct ndx_listener *listener);

NDX_DECLS_END

#endif
