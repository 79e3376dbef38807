/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Connectors: connecting, accepting, disconnecting. (IND2Connector)
 *
 * Active side: [bind] - connect - (get_read_limits, get_private_data) - complete_connect or reject.
 *
 * Passive side: a listener's get_connection_request fills the connector - (get_private_data, ...) -
 * accept or reject. Accept completes when the active side has completed or rejected the connection.
 *
 * Each side of a connection sends one message, its goodbye, when its own requests have ended and it
 * needs nothing more from the peer. The contract of disconnect (docs/disconnect.md):
 *   1. ndx_connector_disconnect() completes when two things hold. First, the peer's goodbye has
 *      arrived (NDX_OK), or the connection was aborted or timed out (NDX_E_CONNECTION_ABORTED).
 *      Second, all work of the queue pair has ended. From then on the connection changes no byte of
 *      the caller's memory, and no further result appears.
 *   2. The peer's ndx_connector_notify_disconnect() completes when the goodbye arrives or the
 *      connection aborts, and says which of the two happened first.
 *   3. A connection cannot be reopened: close connector and queue pair, and create new ones.
 *   4. Closing the queue pair or the connector disconnects implicitly.
 *
 * A disconnect completes without any action of the program at the peer.
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
	NDX_DISCONNECT_NONE = 0,     /**< the connection has not ended */
	NDX_DISCONNECT_GRACEFUL = 1, /**< the peer's goodbye arrived */
	NDX_DISCONNECT_ABORTED = 2,  /**< lost, flushed, failed or timed out */
	NDX_DISCONNECT_UNKNOWN = 3,  /**< the stack cannot tell a goodbye from a crash */
};

/** Name of a reason, for example "graceful". Never NULL. */
const char *ndx_disconnect_reason_name(enum ndx_disconnect_reason reason);

/** Stands for a PSN that the library draws at random. */
#define NDX_PSN_RANDOM UINT32_MAX

/** Attributes of a connector. Call ndx_connector_attr_init() first. */
struct ndx_connector_attr {
	size_t size; /**< set by ndx_connector_attr_init() */
	/**
	 * How long the own requests may take to end in a disconnect; then they are cancelled.
	 * Default and maximum 2000.
	 */
	uint32_t drain_timeout_ms;
	/**
	 * How long the peer's goodbye may take after the own goodbye. Default 5000; must be greater
	 * than drain_timeout_ms.
	 */
	uint32_t disconnect_timeout_ms;
	/**
	 * How long the peer's answer to a connect may take, including the time that the program at
	 * the peer takes to decide. Default NDX_INFINITE: until the connect is cancelled.
	 */
	uint32_t connect_timeout_ms;
	/**
	 * PSN of the first packet that this end sends, 24 bits. For an end to which the peer
	 * assigns the PSN. Default NDX_PSN_RANDOM. Only with descriptions of kind
	 * NDX_DESCRIPTION_VERBS_RC; other connections have no PSN that a program can choose.
	 */
	uint32_t psn;
};

/** `size` of struct ndx_connector_attr in version 0.1; the smallest that is accepted. */
#define NDX_CONNECTOR_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_connector_attr, psn)

/** As ndx_connector_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_connector_attr_init_sized(struct ndx_connector_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_connector_attr_init(struct ndx_connector_attr *attr)
{
	ndx_connector_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a connector.
 *
 * @param attr      NULL: defaults
 * @param[out] out  the connector; untouched on failure; release it with ndx_connector_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, a time-out out of range, or a PSN of more
 *                                      than 24 bits
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no resources left at the provider
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_create(struct ndx_adapter *adapter,
                                     const struct ndx_connector_attr *attr,
                                     struct ndx_connector **out);

/**
 * Release a connector. Operations in flight complete before the call returns: with NDX_E_CANCELED,
 * or with their outcome if they have ended. A connection attempt is abandoned: the peer gets
 * NDX_E_CONNECTION_REFUSED if it has accepted, else NDX_E_CONNECTION_ABORTED. An established
 * connection is disconnected in the background. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks; there, callbacks of operations in flight follow
 * after the current one (<ndx/overlapped.h>). Not beside another call on the same connector.
 * Blocks: until the callbacks of the operations in flight have returned; in a callback no.
 */
void ndx_connector_close(struct ndx_connector *connector);

/**
 * Bind to a local address. Optional before connect.
 *
 * @param address  an address of this adapter; port 0: any free port
 *
 * @retval NDX_E_INVALID_PARAMETER          NULL argument, or neither IPv4 nor IPv6
 * @retval NDX_E_INVALID_ADDRESS            not an address of this adapter
 * @retval NDX_E_ACCESS_DENIED              this process may not use a port below 1024 (ip(7));
 *                                          providers whose ports are not the system's (loop) allow
 *                                          each port
 * @retval NDX_E_SHARING_VIOLATION          port in use
 * @retval NDX_E_TOO_MANY_ADDRESSES         no free port
 * @retval NDX_E_ADDRESS_ALREADY_ASSOCIATED the connector was bound before, in whatever state it is
 *                                          now
 * @retval NDX_E_INVALID_DEVICE_STATE       not bound, but in use or used already: bind before
 *                                          connect
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_bind(struct ndx_connector *connector, const struct sockaddr *address,
                                   socklen_t address_len);

/** Attributes of a connect and of an accept. Call ndx_connect_attr_init() first. */
struct ndx_connect_attr {
	size_t size; /**< set by ndx_connect_attr_init() */
	/**
	 * Bytes for the peer, which the call copies; NULL if there are none. Default NULL.
	 */
	const void *private_data;
	/** Connect: up to max_caller_data; accept: up to max_callee_data. Default 0. */
	size_t private_data_len;
	/**
	 * Reads of the peer served at once; values above the adapter's limit are lowered. Default
	 * UINT32_MAX.
	 */
	uint32_t inbound_read_limit;
	/** Own reads in flight; values above the adapter's limit are lowered. Default UINT32_MAX.
	 */
	uint32_t outbound_read_limit;
};

/** `size` of struct ndx_connect_attr in version 0.1; the smallest that is accepted. */
#define NDX_CONNECT_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_connect_attr, outbound_read_limit)

/** As ndx_connect_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_connect_attr_init_sized(struct ndx_connect_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_connect_attr_init(struct ndx_connect_attr *attr)
{
	ndx_connect_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Request a connection from a listener. Completes when the peer has accepted or refused.
 *
 * @param qp           not connected and not connecting; of the same adapter
 * @param destination  the listener's address
 * @param attr         NULL: defaults
 * @param ov           completes with NDX_OK or with one of the codes marked (a)
 *
 * @retval NDX_PENDING                      started
 * @retval NDX_E_INVALID_PARAMETER          NULL argument, queue pair of another adapter, or
 *                                          malformed address
 * @retval NDX_E_INVALID_BUFFER_SIZE        private data too long; connector and queue pair
 *                                          unchanged
 * @retval NDX_E_ACCESS_VIOLATION           private data NULL with a length other than 0; connector
 *                                          and queue pair unchanged
 * @retval NDX_E_BAD_NETWORK_NAME           the destination is 0.0.0.0 or ::
 * @retval NDX_E_INVALID_ADDRESS        (a) refused by the trust rule of the provider; or the
 *                                          connector is bound to the other address family
 * @retval NDX_E_CONNECTION_ACTIVE          queue pair or connector is in use
 * @retval NDX_E_INVALID_DEVICE_STATE       the connector failed, ended, or holds a request
 * @retval NDX_E_CONNECTION_REFUSED     (a) no listener, or the peer rejected;
 *                                          ndx_connector_get_private_data() has the peer's reason
 * @retval NDX_E_ADDRESS_ALREADY_EXISTS (a) the connector is bound, and the kernel still holds an
 *                                          earlier attempt from the same address to the destination
 *                                          (ofi:tcp, until the peer drops it)
 * @retval NDX_E_TOO_MANY_ADDRESSES     (a) no free port
 * @retval NDX_E_NETWORK_UNREACHABLE    (a) no route
 * @retval NDX_E_HOST_UNREACHABLE       (a) the host does not answer
 * @retval NDX_E_IO_TIMEOUT             (a) no answer in time
 * @retval NDX_E_CONNECTION_ABORTED     (a) the peer closed, or uses another protocol
 * @retval NDX_E_INSUFFICIENT_RESOURCES (a) no descriptor left (RLIMIT_NOFILE), or the device has no
 *                                          queue pair, region or locked memory left: providers
 *                                          take some resources of a queue pair only now
 * @retval NDX_E_NO_MEMORY              (a) out of memory
 * @retval NDX_E_NOT_SUPPORTED          (a) one end is on verbs, the other on ofi:verbs, and one of
 *                                          the queue pairs has a shared receive queue
 * @retval NDX_E_ACCESS_DENIED              the system, a security module for example, does not
 *                                          allow this process to connect there
 * @retval NDX_E_DEVICE_REMOVED         (a) the device has failed or was removed
 * @retval NDX_E_CANCELED               (a) cancelled
 *
 * A failure at once changes nothing. After one of CONNECTION_REFUSED, NETWORK_UNREACHABLE,
 * HOST_UNREACHABLE, IO_TIMEOUT and CANCELED as completion the same connector may connect again.
 * After any other failure as completion, also for want of resources, the connector cannot be used
 * again: ndx_connector_connect() returns INVALID_DEVICE_STATE; create a new one. After any failure
 * the queue pair is as it was before, with its receives posted, and another connector may take it.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_connect(struct ndx_connector *connector, struct ndx_qp *qp,
                                      const struct sockaddr *destination, socklen_t destination_len,
                                      const struct ndx_connect_attr *attr,
                                      struct ndx_overlapped *ov);

/**
 * Second half of connect: establish the connection. Until this call the peer's accept stays
 * pending, without a time limit. When the operation has completed, requests may be posted; results
 * of receives may come before, as with ndx_connector_accept().
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_CONNECTION_INVALID     no connect has completed
 * @retval NDX_E_CONNECTION_ABORTED (a) the peer closed, or its end no longer answers
 * @retval NDX_E_DEVICE_REMOVED     (a) the device has failed or was removed
 * @retval NDX_E_CANCELED           (a) cancelled
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_complete_connect(struct ndx_connector *connector,
                                               struct ndx_overlapped *ov);

/**
 * Accept the request that a listener has put into this connector.
 *
 * Completes when the active side calls complete_connect, however long its program takes to do so;
 * when the active side rejects or gives up; or when its end (control thread, kernel) does not
 * answer for a time that depends on the provider, from half a minute to about two minutes
 * (docs/providers.md, docs/verbs.md).
 *
 * The active side may send as soon as its complete_connect has completed, so the results of
 * receives may come before the accept has completed. They are valid, and receives may be posted
 * again. Other requests wait for the accept to complete: posted before, also in answer to such a
 * result, they are accepted or refused with NDX_E_CONNECTION_INVALID, which changes nothing.
 *
 * @param attr  NULL: defaults
 *
 * @retval NDX_PENDING                      started
 * @retval NDX_E_INVALID_PARAMETER          NULL argument, or queue pair of another adapter
 * @retval NDX_E_INVALID_BUFFER_SIZE        private data longer than max_callee_data; nothing
 *                                          changed
 * @retval NDX_E_ACCESS_VIOLATION           private data NULL with a length other than 0; nothing
 *                                          changed
 * @retval NDX_E_CONNECTION_INVALID         the connector holds no request
 * @retval NDX_E_CONNECTION_ACTIVE          queue pair in use, or request accepted already
 * @retval NDX_E_CONNECTION_ABORTED     (a) the active side gave up before the accept, or its end no
 *                                          longer answers
 * @retval NDX_E_CONNECTION_REFUSED     (a) the active side rejected or closed after the accept
 * @retval NDX_E_INSUFFICIENT_RESOURCES (a) as for ndx_connector_connect()
 * @retval NDX_E_NOT_SUPPORTED              one end is on verbs, the other on ofi:verbs, and one of
 *                                          the queue pairs has a shared receive queue
 * @retval NDX_E_NO_MEMORY              (a) out of memory
 * @retval NDX_E_DEVICE_REMOVED         (a) the device has failed or was removed
 * @retval NDX_E_CANCELED               (a) cancelled
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_accept(struct ndx_connector *connector, struct ndx_qp *qp,
                                     const struct ndx_connect_attr *attr,
                                     struct ndx_overlapped *ov);

/**
 * Refuse a connection: the passive side refuses the request, the active side refuses the accepted
 * connection. The connector cannot be used again.
 *
 * @param private_data  up to max_callee_data bytes for the peer; NULL if length is 0
 *
 * @retval NDX_OK                    sent; the peer may or may not receive it
 * @retval NDX_E_INVALID_BUFFER_SIZE private data too long; nothing changed
 * @retval NDX_E_ACCESS_VIOLATION    private data NULL with a length other than 0; nothing changed
 * @retval NDX_E_CONNECTION_INVALID  there is nothing to refuse
 * @retval NDX_E_CONNECTION_ABORTED  the peer has given up already
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_reject(struct ndx_connector *connector, const void *private_data,
                                     size_t private_data_len);

/**
 * The agreed read limits: @p inbound limits the peer's reads in flight, @p outbound the own reads.
 * Available from the completion of connect on, and on the passive side from the request on.
 *
 * @retval NDX_E_CONNECTION_INVALID the limits are not agreed yet, or never will be
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_get_read_limits(struct ndx_connector *connector, uint32_t *inbound,
                                              uint32_t *outbound);

/**
 * The private data that the peer sent last, with its connect, accept or reject. The length is
 * exact, without the padding that a transport adds.
 *
 * @param[out] buffer     may be NULL if @p *length is 0
 * @param[in,out] length  room in @p buffer; set to the length of the data
 *
 * @retval NDX_E_BUFFER_OVERFLOW    @p buffer is too small; nothing was copied, @p *length is needed
 * @retval NDX_E_CONNECTION_INVALID the peer has not sent any yet, or never will
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_get_private_data(struct ndx_connector *connector, void *buffer,
                                               size_t *length);

/**
 * Local address of the connection, or of the bind.
 *
 * @param[in,out] length  room in bytes; set to the length of the address
 * @retval NDX_E_BUFFER_OVERFLOW    the address does not fit; nothing was copied, @p *length is
 * needed
 * @retval NDX_E_CONNECTION_INVALID not bound and not connected
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_get_local_address(struct ndx_connector *connector,
                                                struct sockaddr *address, socklen_t *length);

/** The peer's address, also before accept. As ndx_connector_get_local_address(). */
enum ndx_status ndx_connector_get_peer_address(struct ndx_connector *connector,
                                               struct sockaddr *address, socklen_t *length);

/**
 * Describe the own end for a peer that gets the description out of band. The connector takes the
 * queue pair, as connect does. When the peer's description is available, call
 * ndx_connector_connect_peer(). ndx_connector_cancel() and ndx_connector_close() abandon the
 * attempt.
 *
 * @param qp                                       not connected and not connecting; of the same
 *                                                 adapter
 * @param role                                     one end of each connection is the server, the
 *                                                 other the client
 * @param inbound_read_limit, outbound_read_limit  as for ndx_connector_connect()
 * @param[out] out                                 the description; `memory` is zero, for the caller
 *                                                 to fill; untouched on failure
 *
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, queue pair of another adapter, or unknown role
 * @retval NDX_E_CONNECTION_ACTIVE    queue pair or connector is in use
 * @retval NDX_E_INVALID_DEVICE_STATE the connector failed, ended, or holds a request; or it is
 *                                    bound, and the adapter has a connection manager
 * @retval NDX_E_NOT_SUPPORTED        the adapter's provider does not support descriptions
 * @return otherwise the adapter's failure to listen (server only)
 *
 * Thread safety: any thread. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_connector_describe(struct ndx_connector *connector, struct ndx_qp *qp,
                                       enum ndx_role role, uint32_t inbound_read_limit,
                                       uint32_t outbound_read_limit,
                                       struct ndx_peer_description *out);

/** Stands for an out-of-band stream: the peer has none. */
#define NDX_NO_OOB_STREAM (-1)

/**
 * Give the connector an out-of-band stream to the peer: a connected stream socket (TCP, or a local
 * socket pair). The two ends use the stream to report that they are connected, and to report the
 * end of the connection. Needed for descriptions of kind NDX_DESCRIPTION_VERBS_RC that were not
 * exchanged by a session; a session uses its own transport as the stream.
 * docs/negotiation-protocol.md describes the messages. If the stream ends without a goodbye, the
 * connection is aborted.
 *
 * NDX_NO_OOB_STREAM is for a peer device that was told the numbers of this end and has no stream.
 * Then the connection is established as soon as the own queue pair is ready, and the own goodbye
 * counts as answered. The program that controls the device must make sure that the device is ready
 * before anything is sent, and that the device is quiet before the connection ends. The failure of
 * a request shows that the device has died (keepalive_ms). A peer whose description has
 * NDX_PEER_NO_GOODBYES needs no call of this function.
 *
 * @param fd  NDX_NO_OOB_STREAM, or a descriptor. On success the connector owns the descriptor, and
 *            closes it when the connection is over or the attempt has failed. On failure the caller
 *            still owns it
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, or not a descriptor
 * @retval NDX_E_NOT_SUPPORTED          connections of this adapter need no stream
 * @retval NDX_E_INVALID_DEVICE_STATE   the connector has a stream, or ndx_connector_connect_peer()
 *                                      was called already
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no resources left
 *
 * Thread safety: any thread. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_connector_set_oob_stream(struct ndx_connector *connector, int fd);

/**
 * Connect to the peer that sent this description. Completes when both ends have called it and the
 * connection is established. There is no accept and no complete_connect. From then on the
 * connection is like any other.
 *
 * @param peer  description of the other role and of the same kind; copied
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, or a description that cannot be the peer's
 * @retval NDX_E_CONNECTION_INVALID     not described; call ndx_connector_describe() first
 * @retval NDX_E_INVALID_DEVICE_STATE   the description is of kind NDX_DESCRIPTION_VERBS_RC, and
 *                                      there is no stream
 * @retval NDX_E_INVALID_CONFIG         the two ends cannot be connected; ndx_last_error() says what
 *                                      differs
 * @retval NDX_E_CONNECTION_REFUSED (a) a host answers at that address, but expects no such peer
 * @retval NDX_E_CONNECTION_ABORTED (a) the peer gave up, or its stream ended
 * @retval NDX_E_IO_TIMEOUT         (a) connect_timeout_ms has elapsed
 * @retval NDX_E_CANCELED           (a) cancelled
 * @return otherwise as ndx_connector_connect()
 *
 * After any failure the connector cannot be used again; the queue pair is as it was before.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_connect_peer(struct ndx_connector *connector,
                                           const struct ndx_peer_description *peer,
                                           struct ndx_overlapped *ov);

/**
 * Request the indication that the connection has ended. Completes NDX_OK, with `information` = enum
 * ndx_disconnect_reason, when the peer's goodbye arrives or the connection aborts; at once if
 * either has happened already, also after the own disconnect. The indication says nothing about
 * work requests: take their results from the completion queues.
 *
 * Any number of requests for the indication may be in flight: they complete together, in the order
 * of the calls. All requests of one connection get the same reason, that of the first event that
 * ended the connection. ndx_connector_get_disconnect_reason() also takes an abort into account that
 * came after the peer's goodbye.
 *
 * @retval NDX_PENDING              started
 * @retval NDX_E_INVALID_PARAMETER  NULL argument, or @p ov is in flight
 * @retval NDX_E_CONNECTION_INVALID never connected
 * @retval NDX_E_CANCELED       (a) cancelled, or the own side disconnected before an indication
 *                                  came
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_notify_disconnect(struct ndx_connector *connector,
                                                struct ndx_overlapped *ov);

/**
 * Disconnect. The contract is at the top of <ndx/connector.h>. A call after a disconnect has
 * completed completes at once, as the connection has ended: NDX_OK or NDX_E_CONNECTION_ABORTED.
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_CONNECTION_INVALID     never connected
 * @retval NDX_E_CONNECTION_ACTIVE      a disconnect is in flight
 * @retval NDX_E_CONNECTION_ABORTED (a) aborted, flushed, or the peer's goodbye did not come in time
 * @retval NDX_E_CANCELED           (a) cancelled; the teardown goes on
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_disconnect(struct ndx_connector *connector,
                                         struct ndx_overlapped *ov);

/**
 * How the connection ended; NDX_DISCONNECT_NONE while it has not. The reason is available as soon
 * as a result that the abort or the graceful end has cancelled can be taken.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_disconnect_reason ndx_connector_get_disconnect_reason(struct ndx_connector *connector);

/**
 * Cancel the operations in flight: they complete NDX_E_CANCELED, in order, before the call returns.
 * A cancelled connect is abandoned as by ndx_connector_close(), and may be tried again. A cancelled
 * accept or complete_connect makes the connector unusable. A cancelled disconnect goes on in the
 * background.
 *
 * Thread safety: any thread. Blocks: until the callbacks of the cancelled operations have returned.
 * In a callback it does not wait: those callbacks follow after the current one
 * (<ndx/overlapped.h>).
 */
enum ndx_status ndx_connector_cancel(struct ndx_connector *connector);

/**
 * Why the connector failed, or how its connection ended, as text for people: both addresses,
 * status, cause, and the native cause by name. For failures that come later than the call, whose
 * `struct ndx_overlapped` or `struct ndx_result` has a status and a number only; for example for
 * NDX_E_CANCELED of a request, which says that the connection has ended, but not why.
 *
 * The text is that of the latest failure of an attempt to connect, or of the abort of the
 * connection; or a sentence that says that the peer has disconnected, or that the own side has, or
 * has closed the queue pair or the connector without a disconnect; or "".
 *
 * @param[out] text       buffer for the text; may be NULL if @p *length is 0
 * @param[in,out] length  room in @p text in bytes, 512 always suffices; set to the size of the text
 *                        with its null byte
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_BUFFER_OVERFLOW   not enough room: @p length has the size, nothing was copied
 *
 * An abort is known here as soon as the first result that it cancelled can be taken.
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_get_error_text(struct ndx_connector *connector, char *text,
                                             size_t *length);

NDX_DECLS_END

#endif
