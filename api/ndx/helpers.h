/* SPDX-License-Identifier: BSD-2-Clause */
/** @file The ordinary case in one call each; they block, with a time-out. */
#ifndef NDX_HELPERS_H
#define NDX_HELPERS_H

#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/listener.h>

NDX_DECLS_BEGIN

/**
 * Create a connector, connect @p qp to a listener, and complete.
 *
 * @param destination  the listener's address
 * @param timeout_ms   for everything together; NDX_INFINITE: no limit
 * @param[out] out     the connected connector; untouched on failure
 *
 * @retval NDX_E_IO_TIMEOUT  time is over; nothing is left behind, @p qp may be tried again
 * @retval NDX_E_WOULD_BLOCK called from a callback, of any adapter
 * @return otherwise as ndx_connector_connect() and ndx_connector_complete_connect(), with read
 *         limits at the adapter's maximum
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
 * @param adapter     the listener's
 * @param[out] out    the connected connector; untouched on failure
 *
 * @return as ndx_connect_to(); a peer that gives up half-way does not end the wait: the next
 *         request is taken
 *
 * Thread safety: any thread. Blocks: yes.
 */
enum ndx_status ndx_accept_from(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                struct ndx_qp *qp, const void *private_data,
                                size_t private_data_len, uint32_t timeout_ms,
                                struct ndx_connector **out);

/**
 * Disconnect and wait for it.
 *
 * @return as ndx_connector_disconnect() completed; NDX_E_IO_TIMEOUT when time was over first: the
 *         teardown goes on, ndx_connector_notify_disconnect() in flight stays in flight, and the
 *         call may be repeated to wait on
 *
 * Thread safety: any thread. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_disconnect(struct ndx_connector *connector, uint32_t timeout_ms);

/**
 * Register memory and wait for it: ndx_mr_create() and ndx_mr_register().
 *
 * @param[out] out  the region; untouched on failure; release with ndx_mr_close()
 * @return as the two calls
 */
enum ndx_status ndx_mr_register_new(struct ndx_adapter *adapter, void *buffer, size_t length,
                                    uint32_t flags, struct ndx_mr **out);

/**
 * Listen on an address: ndx_listener_create(), bind and listen.
 *
 * @param[out] out  the listener; untouched on failure
 * @return as the three calls
 */
enum ndx_status ndx_listen_on(struct ndx_adapter *adapter, const struct sockaddr *address,
                              socklen_t address_len, uint32_t backlog, struct ndx_listener **out);

NDX_DECLS_END

#endif
