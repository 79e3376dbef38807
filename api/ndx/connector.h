/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Connectors: connecting, accepting, disconnecting. (IND2Connector)
 *
 * Active side: [bind] - connect - (get_read_limits, get_private_data) - complete_connect or reject.
 * Passive side: a listener's get_connection_request fills the connector - (get_private_data, ...) -
 * accept or reject; accept completes when the active side completed or rejected.
 *
 * Disconnect, the contract (docs/disconnect.md):
 *  1. ndx_connector_disconnect() completes only when a goodbye came back from the peer (NDX_OK), or
 *     the connection aborted or timed out (NDX_E_CONNECTION_ABORTED); and all work of the queue
 * pair has ended. After that no byte of the caller's memory changes and no result appears.
 *  2. The peer's ndx_connector_notify_disconnect() completes once, when the goodbye arrives or the
 *     connection aborts, and says which.
 *  3. Nothing may be reused: connector and queue pair are closed; new ones connect again.
 *  4. Closing the queue pair or the connector disconnects implicitly.
 * The peer's consumer need not do anything for a disconnect to complete.
 */
#ifndef NDX_CONNECTOR_H
#define NDX_CONNECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/adapter.h>
#include <ndx/decls.h>
#include <ndx/description.h>
#include <ndx/overlapped.h>
#include <ndx/qp.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_connector; /* opaque */

/** How a connection ended; `information` of ndx_connector_notify_disconnect(). */
enum ndx_disconnect_reason {
	NDX_DISCONNECT_NONE = 0,     /**< it has not */
	NDX_DISCONNECT_GRACEFUL = 1, /**< the peer said goodbye */
	NDX_DISCONNECT_ABORTED = 2,  /**< lost, flushed, failed or timed out */
	NDX_DISCONNECT_UNKNOWN = 3,  /**< the stack cannot tell goodbye from death */
};

/** Name of a reason, "graceful". Never NULL. */
const char *ndx_disconnect_reason_name(enum ndx_disconnect_reason reason);

/** In the place of a PSN: drawn at random. */
#define NDX_PSN_RANDOM UINT32_MAX

/** Attributes of a connector; ndx_connector_attr_init() first. */
struct ndx_connector_attr {
	size_t size;               /**< set by ndx_connector_attr_init() */
	uint32_t drain_timeout_ms; /**< how long own requests may still take at disconnect before
	                              they are cancelled. Default and maximum 2000 */
	uint32_t disconnect_timeout_ms; /**< how long the peer's goodbye may take after ours.
	                                   Default 5000; more than drain_timeout_ms */
	uint32_t connect_timeout_ms;    /**< how long the peer's answer to connect may take, its
	                                   consumer's    thinking included. Default NDX_INFINITE: until
	                                   cancelled */
	uint32_t psn; /**< of the first packet that it sends, 24 bits, for an end that was told
	                 its PSN by its peer. Default NDX_PSN_RANDOM. Only where ends are described
	                 as NDX_DESCRIPTION_VERBS_RC; others have none */
};

/** Set `size` and the defaults. */
void ndx_connector_attr_init(struct ndx_connector_attr *attr);

/**
 * Create a connector.
 *
 * @param attr      NULL: defaults
 * @param[out] out  the connector; untouched on failure; release with ndx_connector_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, a time-out breaks its rule, or a PSN is too wide
 * @retval NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES no room
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_create(struct ndx_adapter *adapter,
                                     const struct ndx_connector_attr *attr,
                                     struct ndx_connector **out);

/**
 * Release. Operations in flight complete (NDX_E_CANCELED unless done) before it returns. An attempt
 * is abandoned: the peer sees NDX_E_CONNECTION_REFUSED after its accept, NDX_E_CONNECTION_ABORTED
 * before. A connection is disconnected in the background. NULL is a no-op. Any thread, also in
 * callbacks (what is in flight by callback ends behind the current one then: <ndx/overlapped.h>);
 * must not run beside another call on the same connector.
 */
void ndx_connector_close(struct ndx_connector *connector);

/**
 * Bind to a local address; optional before connect.
 *
 * @param address  of this adapter; port 0: any free one
 *
 * @retval NDX_E_INVALID_PARAMETER          NULL, or not IPv4/IPv6
 * @retval NDX_E_INVALID_ADDRESS            not an address of this adapter
 * @retval NDX_E_SHARING_VIOLATION          port in use
 * @retval NDX_E_TOO_MANY_ADDRESSES         no free port
 * @retval NDX_E_ADDRESS_ALREADY_ASSOCIATED bound already, whatever has become of it since
 * @retval NDX_E_INVALID_DEVICE_STATE       not bound, and in use or used up: bind before connect
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_bind(struct ndx_connector *connector, const struct sockaddr *address,
                                   socklen_t address_len);

/**
 * Ask a listener for a connection. Completes when the peer accepted or refused.
 *
 * @param qp                  not connected and not connecting; of the same adapter
 * @param destination         the listener's address
 * @param inbound_read_limit  reads of the peer served at once; larger values are lowered
 * @param outbound_read_limit own reads in flight; larger values are lowered
 * @param private_data        up to max_caller_data bytes for the peer, copied; NULL if length 0
 * @param ov                  completes with NDX_OK or one of the codes marked (a)
 *
 * @retval NDX_PENDING                   accepted
 * @retval NDX_E_INVALID_PARAMETER       NULL argument, other adapter's queue pair, bad address
 * @retval NDX_E_INVALID_BUFFER_SIZE     private data too long; connector and queue pair unchanged
 * @retval NDX_E_ACCESS_VIOLATION        private data NULL, and length not 0; likewise unchanged
 * @retval NDX_E_BAD_NETWORK_NAME        destination 0.0.0.0 or ::
 * @retval NDX_E_INVALID_ADDRESS     (a) destination refused by the provider's trust rule
 * @retval NDX_E_CONNECTION_ACTIVE       queue pair or connector is in use
 * @retval NDX_E_INVALID_DEVICE_STATE    the connector failed, ended, or holds a request
 * @retval NDX_E_CONNECTION_REFUSED  (a) nobody listens, or rejected: get_private_data() has why
 * @retval NDX_E_ADDRESS_ALREADY_EXISTS (a) bound, and the kernel still has an earlier attempt from
 *                                       there to the destination: ofi:tcp, until the peer drops it
 * @retval NDX_E_TOO_MANY_ADDRESSES  (a) no free port
 * @retval NDX_E_NETWORK_UNREACHABLE (a) no route
 * @retval NDX_E_HOST_UNREACHABLE    (a) host does not answer
 * @retval NDX_E_IO_TIMEOUT          (a) no answer in time
 * @retval NDX_E_CONNECTION_ABORTED  (a) the peer went away, or speaks another protocol
 * @retval NDX_E_CANCELED            (a) cancelled
 *
 * After REFUSED, UNREACHABLE, IO_TIMEOUT and CANCELED the same connector may connect again; after
 * any failure the queue pair is as before, its receives still posted.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_connect(struct ndx_connector *connector, struct ndx_qp *qp,
                                      const struct sockaddr *destination, socklen_t destination_len,
                                      uint32_t inbound_read_limit, uint32_t outbound_read_limit,
                                      const void *private_data, size_t private_data_len,
                                      struct ndx_overlapped *ov);

/**
 * Second half of connect: the connection is established. Until then the peer's accept is pending,
 * for as long as it takes.
 *
 * @retval NDX_PENDING                  accepted
 * @retval NDX_E_CONNECTION_INVALID     no completed connect
 * @retval NDX_E_CONNECTION_ABORTED (a) the peer went away, or its end does not answer any more
 * @retval NDX_E_CANCELED           (a) cancelled
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_complete_connect(struct ndx_connector *connector,
                                               struct ndx_overlapped *ov);

/**
 * Accept the request that a listener put into this connector. Completes when the active side has
 * called complete_connect, however long its consumer takes for that; when it refuses, or gives up;
 * or when its end (its control thread, its kernel) does not answer for a time that is the
 * provider's, half a minute to some two minutes (docs/providers.md).
 *
 * @retval NDX_PENDING                   accepted
 * @retval NDX_E_INVALID_PARAMETER       NULL argument, other adapter's queue pair
 * @retval NDX_E_INVALID_BUFFER_SIZE     private data longer than max_callee_data; nothing changed
 * @retval NDX_E_ACCESS_VIOLATION        private data NULL, and length not 0; nothing changed
 * @retval NDX_E_CONNECTION_INVALID      the connector holds no request
 * @retval NDX_E_CONNECTION_ACTIVE       queue pair in use, or accepted already
 * @retval NDX_E_CONNECTION_ABORTED  (a) the active side gave up before our answer, or its end does
 *                                       not answer any more
 * @retval NDX_E_CONNECTION_REFUSED  (a) the active side rejected or closed after our answer
 * @retval NDX_E_CANCELED            (a) cancelled
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_accept(struct ndx_connector *connector, struct ndx_qp *qp,
                                     uint32_t inbound_read_limit, uint32_t outbound_read_limit,
                                     const void *private_data, size_t private_data_len,
                                     struct ndx_overlapped *ov);

/**
 * Refuse: on the passive side the request, on the active side the answer. The connector cannot be
 * used again.
 *
 * @param private_data  up to max_callee_data bytes for the peer; NULL if length 0
 *
 * @retval NDX_OK                    said; whether it arrives is not known
 * @retval NDX_E_INVALID_BUFFER_SIZE private data too long; nothing changed
 * @retval NDX_E_ACCESS_VIOLATION    private data NULL, and length not 0; nothing changed
 * @retval NDX_E_CONNECTION_INVALID  nothing to refuse
 * @retval NDX_E_CONNECTION_ABORTED  the peer gave up already
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_reject(struct ndx_connector *connector, const void *private_data,
                                     size_t private_data_len);

/**
 * Read limits as agreed: @p inbound is what the peer may have in flight, @p outbound what we may.
 * From the completion of connect, or from the request, on.
 *
 * @retval NDX_E_CONNECTION_INVALID too early, or never
 */
enum ndx_status ndx_connector_get_read_limits(struct ndx_connector *connector, uint32_t *inbound,
                                              uint32_t *outbound);

/**
 * The peer's private data: of its connect, accept or reject, whichever came last. True length.
 *
 * @param[out] buffer   may be NULL if @p *length is 0
 * @param[in,out] length  room; set to the length there is
 *
 * @retval NDX_E_BUFFER_OVERFLOW    does not fit; as much as fits was copied
 * @retval NDX_E_CONNECTION_INVALID too early, or never
 */
enum ndx_status ndx_connector_get_private_data(struct ndx_connector *connector, void *buffer,
                                               size_t *length);

/**
 * Local address of the connection, or of the bind.
 *
 * @param[in,out] length  room in bytes; set to the length there is
 * @retval NDX_E_BUFFER_OVERFLOW    does not fit; nothing was copied
 * @retval NDX_E_CONNECTION_INVALID not bound and not connected
 */
enum ndx_status ndx_connector_get_local_address(struct ndx_connector *connector,
                                                struct sockaddr *address, socklen_t *length);

/** The peer's address; also before accept. As ndx_connector_get_local_address(). */
enum ndx_status ndx_connector_get_peer_address(struct ndx_connector *connector,
                                               struct sockaddr *address, socklen_t *length);

/**
 * Describe the own end to a peer that will be told of it out of band; the connector takes the queue
 * pair, as connect does. Then, with the peer's description in hand, ndx_connector_connect_peer().
 * ndx_connector_cancel() and ndx_connector_close() end it early.
 *
 * @param qp    not connected and not connecting; of the same adapter
 * @param role  one end of each connection is the server, the other the client
 * @param inbound_read_limit, outbound_read_limit  as ndx_connector_connect()
 * @param[out] out  `memory` is 0 and for the caller to fill; untouched on failure
 *
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, other adapter's queue pair, no such role
 * @retval NDX_E_CONNECTION_ACTIVE    queue pair or connector is in use
 * @retval NDX_E_INVALID_DEVICE_STATE the connector failed, ended, or is a listener's; or it is
 *                                    bound, and the adapter has a connection manager
 * @retval NDX_E_NOT_SUPPORTED        the adapter's provider cannot
 * @return otherwise as the adapter failed to listen (server only)
 *
 * Thread safety: any thread. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_connector_describe(struct ndx_connector *connector, struct ndx_qp *qp,
                                       enum ndx_role role, uint32_t inbound_read_limit,
                                       uint32_t outbound_read_limit,
                                       struct ndx_peer_description *out);

/** In the place of a channel: the peer has none. */
#define NDX_NO_CHANNEL (-1)

/**
 * Give the connector a channel to the peer: a connected stream socket (TCP, or a pair of local
 * ones) over which the two ends tell each other that they are connected, and of the end of the
 * connection. For descriptions of kind NDX_DESCRIPTION_VERBS_RC that were not exchanged by a
 * session (a session's own transport serves for that). What is said on it is in
 * docs/negotiation-protocol.md. If it ends without a goodbye the connection is aborted.
 *
 * A device that was told the numbers and cannot speak has none: with NDX_NO_CHANNEL the connection
 * is up as soon as the own queue pair is ready, and the own goodbye counts as answered. That the
 * peer is ready before anything is sent, and quiet before the connection ends, is then for whoever
 * drives it to see to; that it has died shows when a request fails (keepalive_ms).
 *
 * @param fd  NDX_NO_CHANNEL, or a descriptor: it is the connector's from now on, who closes it when
 *            the connection is over, or will not be made; after a failure it is still the caller's
 *
 * @retval NDX_E_INVALID_PARAMETER    NULL, or no descriptor
 * @retval NDX_E_NOT_SUPPORTED        the adapter's connections need no channel
 * @retval NDX_E_INVALID_DEVICE_STATE it has one, or is past ndx_connector_connect_peer()
 * @retval NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES no room
 *
 * Thread safety: any thread. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_connector_set_channel(struct ndx_connector *connector, int fd);

/**
 * Connect to the peer of which this description came. Completes when the connection is up: when
 * both ends have called it. There is no accept and no complete_connect; from then on everything is
 * as for any connection.
 *
 * @param peer  of the other role and the same kind; copied
 *
 * @retval NDX_PENDING                   accepted
 * @retval NDX_E_INVALID_PARAMETER       NULL argument, or a description that cannot be the peer's
 * @retval NDX_E_CONNECTION_INVALID      not described; call ndx_connector_describe() first
 * @retval NDX_E_INVALID_DEVICE_STATE    of kind NDX_DESCRIPTION_VERBS_RC, and there is no channel
 * @retval NDX_E_INVALID_CONFIG          the two ends do not go together; the text says what differs
 * @retval NDX_E_CONNECTION_REFUSED  (a) whoever is at that address knows nothing of it
 * @retval NDX_E_CONNECTION_ABORTED  (a) the peer gave up; its channel ended
 * @retval NDX_E_IO_TIMEOUT          (a) connect_timeout_ms is over
 * @retval NDX_E_CANCELED            (a) cancelled
 * @return otherwise as ndx_connector_connect()
 *
 * After any failure the connector is of no use any more; the queue pair is as before.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_connect_peer(struct ndx_connector *connector,
                                           const struct ndx_peer_description *peer,
                                           struct ndx_overlapped *ov);

/**
 * Learn of the end of the connection: completes NDX_OK with `information` = enum
 * ndx_disconnect_reason when the peer's goodbye arrives or the connection aborts; at once if that
 * has happened. One indication per connection. It says nothing about work requests: take results.
 *
 * @retval NDX_PENDING                accepted
 * @retval NDX_E_CONNECTION_INVALID   never connected
 * @retval NDX_E_INVALID_DEVICE_STATE one is in flight, or the indication was delivered already
 * @retval NDX_E_CANCELED         (a) cancelled, or the own side disconnected and no indication came
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_notify_disconnect(struct ndx_connector *connector,
                                                struct ndx_overlapped *ov);

/**
 * End the connection; see the contract above.
 *
 * @retval NDX_PENDING                  accepted
 * @retval NDX_E_CONNECTION_INVALID     never connected
 * @retval NDX_E_CONNECTION_ACTIVE      a disconnect is in flight
 * @retval NDX_E_CONNECTION_ABORTED (a) aborted, flushed, or no goodbye in time
 * @retval NDX_E_CANCELED           (a) cancelled; the teardown goes on
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_disconnect(struct ndx_connector *connector,
                                         struct ndx_overlapped *ov);

/**
 * How the connection ended so far; NDX_DISCONNECT_NONE while it has not. After an abort, and after
 * a graceful end, it is known from the first result on that the end has cancelled.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_disconnect_reason ndx_connector_get_disconnect_reason(struct ndx_connector *connector);

/**
 * Complete what is in flight NDX_E_CANCELED, in order, before it returns. A cancelled connect is
 * abandoned as by ndx_connector_close(), and may be tried again; a cancelled accept or
 * complete_connect makes the connector unusable; a cancelled disconnect goes on.
 *
 * Thread safety: any thread. Blocks: until callbacks of the cancelled operations have run; in a
 * callback not, they follow behind it (<ndx/overlapped.h>).
 */
enum ndx_status ndx_connector_cancel(struct ndx_connector *connector);

NDX_DECLS_END

#endif
