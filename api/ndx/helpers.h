/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Common cases in one call each; they block, with a time-out. ndx_last_error() has the text of a
 * failure, also of one that came later than the calls of which they are made.
 */
#ifndef NDX_HELPERS_H
#define NDX_HELPERS_H

#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/listener.h>

NDX_DECLS_BEGIN

/**
 * Create a connector, connect @p qp to a listener, and complete the connection.
 *
 * @param destination  the listener's address
 * @param timeout_ms   limit for all steps together; NDX_INFINITE: no limit
 * @param[out] out     the connected connector; untouched on failure
 *
 * @retval NDX_E_IO_TIMEOUT  the time is over; no object is left behind, @p qp may be used again
 * @retval NDX_E_WOULD_BLOCK called from a callback of any adapter
 * @return otherwise as ndx_connector_connect() and ndx_connector_complete_connect(); the read
 *         limits are the adapter's maximum
 *
 * Thread safety: any thread. Blocks: yes.
 */
enum ndx_status ndx_connect_to(struct ndx_adapter *adapter, struct ndx_qp *qp,
                               const struct sockaddr *destination, socklen_t destination_len,
                               const void *private_data, size_t private_data_len,
                               uint32_t timeout_ms, struct ndx_connector **out);

/**
 * Take the next request of a listener and accept it on @p qp.
 *
 * @param adapter   the listener's
 * @param[out] out  the connected connector; untouched on failure
 *
 * @return as ndx_connect_to(). A peer that gives up while it connects does not end the call; the
 *         call takes the next request instead
 *
 * Thread safety: any thread. Blocks: yes.
 */
enum ndx_status ndx_accept_from(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                struct ndx_qp *qp, const void *private_data,
                                size_t private_data_len, uint32_t timeout_ms,
                                struct ndx_connector **out);

/**
 * Take the next request of a listener, to look at it before it is accepted:
 * ndx_connector_get_private_data() and ndx_connector_get_peer_address() work on the connector. Then
 * ndx_accept(), or ndx_connector_reject(), or close the connector, which refuses the request.
 *
 * @param adapter   the listener's
 * @param[out] out  a connector that holds the request; untouched on failure
 *
 * @retval NDX_E_IO_TIMEOUT  no request has come in time
 * @retval NDX_E_CANCELED    the listener was closed, or ndx_listener_cancel() was called
 * @retval NDX_E_WOULD_BLOCK called from a callback of any adapter
 * @return otherwise as ndx_listener_get_connection_request()
 *
 * Thread safety: any thread. Blocks: yes.
 */
enum ndx_status ndx_get_request(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                uint32_t timeout_ms, struct ndx_connector **out);

/**
 * Accept the request that a connector holds, and wait until the connection is up.
 *
 * @param connector  as of ndx_get_request(); on failure it still has to be closed
 *
 * @retval NDX_E_IO_TIMEOUT          the time is over; the request was given up
 * @retval NDX_E_CONNECTION_ABORTED  the peer has given up: take the next request
 * @retval NDX_E_WOULD_BLOCK         called from a callback of any adapter
 * @return otherwise as ndx_connector_accept(); the read limits are the adapter's maximum
 *
 * Thread safety: any thread. Blocks: yes.
 */
enum ndx_status ndx_accept(struct ndx_connector *connector, struct ndx_qp *qp,
                           const void *private_data, size_t private_data_len, uint32_t timeout_ms);

/**
 * Disconnect, and wait until the disconnect has completed.
 *
 * @retval NDX_E_IO_TIMEOUT  the time is over. The teardown goes on, an
 *                           ndx_connector_notify_disconnect() in flight stays in flight, and
 *                           calling ndx_disconnect() again continues to wait
 * @retval NDX_E_WOULD_BLOCK called from a callback of any adapter
 * @return otherwise as ndx_connector_disconnect()
 *
 * Thread safety: any thread. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_disconnect(struct ndx_connector *connector, uint32_t timeout_ms);

/**
 * Register memory and wait for the registration: ndx_mr_create() and ndx_mr_register().
 *
 * @param buffer, length, flags  as for ndx_mr_register()
 * @param[out] out               the region; untouched on failure; release it with ndx_mr_close()
 *
 * @retval NDX_E_WOULD_BLOCK called from a callback of any adapter, and the registration did not
 *                           complete at once; no object is left behind
 * @return otherwise as ndx_mr_create() and ndx_mr_register()
 *
 * Thread safety: any thread. Blocks: until the memory is pinned.
 */
enum ndx_status ndx_mr_register_new(struct ndx_adapter *adapter, const void *buffer, size_t length,
                                    uint32_t flags, struct ndx_mr **out);

/**
 * Listen on an address: ndx_listener_create(), bind and listen.
 *
 * @param address   as for ndx_listener_bind()
 * @param backlog   as for ndx_listener_listen(); 0: only the provider's limit
 * @param[out] out  the listener; untouched on failure; release it with ndx_listener_close()
 *
 * @return otherwise as ndx_listener_create(), ndx_listener_bind() and ndx_listener_listen()
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_listen_on(struct ndx_adapter *adapter, const struct sockaddr *address,
                              socklen_t address_len, uint32_t backlog, struct ndx_listener **out);

NDX_DECLS_END

#endif
