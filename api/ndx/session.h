/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Sessions: one negotiation with one peer.
 *
 * A session goes through the stages of enum ndx_stage in order. In stage info the two plugins
 * exchange what they need; the framework agrees on what both support, and both sides hold the same
 * record of it. Stage validate connects the queue pair, compares what each side understood and,
 * where both sides can, tries out both directions of the path between the queue pairs. Stage ready
 * ends when both sides can take data. Stage done, which is optional, states that the transfers are
 * over. It is not the disconnect: the connector disconnects.
 *
 * These calls are in libndx-negotiation (pkg-config ndx-negotiation).
 */
#ifndef NDX_SESSION_H
#define NDX_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/description.h>
#include <ndx/negotiation.h>
#include <ndx/overlapped.h>
#include <ndx/qp.h>
#include <ndx/status.h>
#include <ndx/tls.h>

NDX_DECLS_BEGIN

struct ndx_session; /* opaque */

/** The layer that failed. */
enum ndx_error_layer {
	NDX_LAYER_NONE = 0,
	/**
	 * Unreachable, reset, or no answer to a connection attempt. Tried again while time is left.
	 */
	NDX_LAYER_TRANSPORT = 1,
	NDX_LAYER_PLUGIN = 2,    /**< the plugin, or data that it received: the session ends */
	NDX_LAYER_FRAMEWORK = 3, /**< protocol, limits, time-out of the stage or session */
	NDX_LAYER_PROVIDER = 4,  /**< the queue pair could not be connected */
};

/** Why a session failed. */
struct ndx_session_error {
	size_t size;            /**< the caller sets sizeof(struct ndx_session_error) */
	enum ndx_status status; /**< NDX_OK: no failure */
	enum ndx_error_layer layer;
	enum ndx_plugin_error plugin_error; /**< for layer plugin; else NDX_PLUGIN_OK */
	bool remote;                        /**< the peer failed, and reported it */
	enum ndx_stage stage;               /**< stage of the failure */
	uint32_t round;
	char text[256]; /**< readable: what failed, where, and what to do */
	/** 1: it is one queue pair of several that failed, the one with this index; else 0. */
	uint32_t of_queue_pair;
	uint32_t queue_pair;
};

/** `size` of struct ndx_session_error in version 0.1; the smallest that is accepted. */
#define NDX_SESSION_ERROR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_session_error, text)

/** State of a session. */
enum ndx_session_state {
	NDX_SESSION_CREATED,
	NDX_SESSION_CONNECTING, /**< the transport; also between two attempts */
	NDX_SESSION_CONNECTED,  /**< between two stages */
	NDX_SESSION_EXCHANGING, /**< in a stage */
	/**
	 * In a call; or between two: the transport is lost, or after stage ready the peer gives up
	 * or breaks the protocol. Then the next call names the cause.
	 */
	NDX_SESSION_FAILED,
	NDX_SESSION_CLOSED, /**< of a server's session: the peer ended the session */
};

/** Kind of an entry of the history. */
enum ndx_history_kind {
	NDX_HISTORY_CONNECT, /**< one attempt; text is the server's address */
	NDX_HISTORY_BACKOFF, /**< a pause before the next attempt */
	/**
	 * A call of the plugin; text names the function (begin, info, ready, done, reset). Bytes
	 * that it returned, and bytes_in of the peer's message that it was given.
	 */
	NDX_HISTORY_CALL,
	NDX_HISTORY_SENT,     /**< a frame, named by text; bytes of payload */
	NDX_HISTORY_RECEIVED, /**< the same; bytes_in of payload, duration is the wait for it */
	NDX_HISTORY_STAGE,    /**< a stage ended; duration of the whole stage */
	NDX_HISTORY_PROOF,    /**< the path was tried out in stage validate; text is the outcome */
	NDX_HISTORY_VERDICT,  /**< what the proofs of both ends say together; text is the reason */
	NDX_HISTORY_HELLO,    /**< hello and welcome were exchanged */
	/** The TLS handshake; text is the version, the cipher and the peer's name, or the failure
	 */
	NDX_HISTORY_TLS,
	/** Queue pairs were added, or not; text says which, and why not */
	NDX_HISTORY_ADD,
	/** The transport was lost between two calls; text says why, or that another one may come */
	NDX_HISTORY_LOST,
};

/** One entry of a session's history. */
struct ndx_history_entry {
	uint64_t at_us; /**< time since the session was created */
	uint64_t duration_us;
	enum ndx_history_kind kind;
	enum ndx_stage stage;
	uint32_t round;
	uint32_t bytes;    /**< sent, or returned */
	uint32_t bytes_in; /**< received, or given */
	enum ndx_status status;
	char text[96];
	void *reserved[4]; /**< NULL; room for later members */
};

/** Queue pairs of one session. */
#define NDX_SESSION_QUEUE_PAIRS_MOST 1024u

/** One of several queue pairs that a session connects. */
struct ndx_session_queue_pair {
	struct ndx_connector *connector; /**< as in the attributes, of this queue pair alone */
	struct ndx_qp *qp;
	struct ndx_memory_description memory; /**< memory for the peer; length 0: none */
	void *reserved[2];                    /**< NULL; room for later members */
};

/** Attributes of a session. Call ndx_session_attr_init() first. Strings are copied. */
struct ndx_session_attr {
	size_t size; /**< set by ndx_session_attr_init() */
	struct ndx_variant *variant;
	/**
	 * Addresses of servers, best first: "host:port", "10.0.0.1:7471", "[fe80::1%eth0]:7471",
	 * "name:port". For a transport of a plugin: addresses that the transport understands.
	 */
	const char *const *servers;
	size_t server_count;
	/**
	 * Connector and queue pair to connect; both or neither. NULL: the plugin has queue pairs of
	 * its own, and stage validate only compares what was agreed.
	 */
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_memory_description memory; /**< memory for the peer; length 0: none */
	uint32_t inbound_read_limit;          /**< as in struct ndx_connect_attr. Default 16 */
	uint32_t outbound_read_limit;         /**< as in struct ndx_connect_attr. Default 16 */

	uint32_t connect_timeout_ms; /**< one attempt at one server. Default 5000 */
	uint32_t attempts;           /**< attempts at each server. Default 3 */
	/**
	 * Pause after every server has failed once. Doubled each time, and shortened by a random
	 * amount of up to a half. Default 100.
	 */
	uint32_t backoff_ms;
	uint32_t backoff_most_ms;    /**< longest pause. Default 5000 */
	uint32_t stage_timeout_ms;   /**< one stage. Default 30000 */
	uint32_t session_timeout_ms; /**< connecting and the stages up to ready. Default 120000 */
	uint32_t max_message;        /**< bytes of one message. Default 65536, maximum 1 MiB */
	uint32_t max_rounds;         /**< rounds of one stage. Default 64 */
	uint32_t max_history;        /**< entries; the oldest are dropped. Default 128 */
	uint32_t reserved;           /**< 0 */
	/**
	 * TLS with the servers; NULL: plaintext, which others on the way can read and change. Read
	 * by ndx_session_create() only. Not for the transport of a plugin.
	 */
	const struct ndx_tls_attr *tls;
	/**
	 * Without TLS: connect to addresses that are not of the loopback, too. A host that reads or
	 * changes what passes then gets, or replaces, the addresses and keys of memory. Without
	 * effect on the transport of a plugin. Default false.
	 */
	bool allow_plaintext;
	/**
	 * In place of `connector`, `qp` and `memory`, which are then 0: the queue pairs to connect,
	 * 1 to NDX_SESSION_QUEUE_PAIRS_MOST. Both ends have the same number of them, and the queue
	 * pair of an index here is connected to the one of the same index there. Two or more need a
	 * plugin with NDX_PLUGIN_MANY, TCP, and a server that takes so many. Up to the end of stage
	 * ready the session connects all of them or none: one that fails ends the session, and
	 * connections that were made are disconnected. Afterwards each connection ends by itself,
	 * by its connector, and the others go on. A session of two or more takes further ones
	 * later: ndx_session_add_queue_pairs(). Read by ndx_session_create() only.
	 */
	const struct ndx_session_queue_pair *queue_pairs;
	size_t queue_pair_count;
};

/** `size` of struct ndx_session_attr in version 0.1; the smallest that is accepted. */
#define NDX_SESSION_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_session_attr, reserved)

/** As ndx_session_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_session_attr_init_sized(struct ndx_session_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_session_attr_init(struct ndx_session_attr *attr)
{
	ndx_session_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a session, not connected.
 *
 * @param[out] out  untouched on failure; release it with ndx_session_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, no variant, no server, or a limit of 0 or too
 *                                      large; ndx_last_error() names it
 * @retval NDX_E_INVALID_ADDRESS        the address of a server is malformed; ndx_last_error()
 *                                      quotes it
 * @retval NDX_E_NOT_SUPPORTED          several queue pairs, and the variant takes one, or has a
 *                                      transport of its plugin
 * @retval NDX_E_NOT_FOUND              there is no such file of `tls`
 * @retval NDX_E_INVALID_CONFIG         a file of `tls` is not what it has to be; ndx_last_error()
 *                                      names file and cause
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no resources left
 *
 * Thread safety: any thread. Blocks: no, but for the reading of the files of `tls`.
 */
enum ndx_status ndx_session_create(const struct ndx_session_attr *attr, struct ndx_session **out);

/**
 * Connect to a server. The call tries each server in order, then pauses (backoff) and tries again,
 * until a server answers and accepts the variant, or no attempts or time are left. A server that
 * answers but lacks the variant, or does not speak this protocol, is not tried again; nor is one
 * with which TLS fails because of a certificate, a key, or an end in plaintext
 * (NDX_E_CONNECTION_REFUSED, NDX_E_INVALID_CONFIG), or whose addresses are not of the loopback
 * while there is neither `tls` nor `allow_plaintext` (NDX_E_INVALID_CONFIG).
 *
 * @retval NDX_OK                     connected
 * @retval NDX_E_INVALID_DEVICE_STATE the session is connected, failed or closed, or another call on
 *                                    the session is in progress
 * @retval NDX_E_IO_TIMEOUT           session_timeout_ms has elapsed
 * @retval NDX_E_CANCELED             ndx_session_cancel() was called
 * @retval NDX_E_WOULD_BLOCK          called in a callback; nothing has changed
 * @return otherwise the failure of the last attempt; ndx_session_get_error() has the details
 *
 * Thread safety: one thread at a time. Blocks: up to session_timeout_ms, also while the system
 * resolves a name; longer only in the transport of a device's plugin (NDX_PLUGIN_DEVICE).
 */
enum ndx_status ndx_session_connect(struct ndx_session *session);

/**
 * Run one stage to its end. Stages run in order; stage done may be left out.
 *
 * If the transport breaks before stage ready has ended and the variant has `reset`, the transport
 * is connected again and the stage goes on; with a peer that keeps no messages, and over TLS, the
 * stage starts again, which stage validate and a connection without a connection manager cannot.
 * Else the session fails.
 *
 * @retval NDX_OK                     both sides have completed the stage
 * @retval NDX_E_INVALID_DEVICE_STATE not connected, another stage is next, or another call on the
 *                                    session is in progress; ndx_last_error() names the missing
 *                                    call
 * @retval NDX_E_INVALID_CONFIG       the two ends cannot be connected; ndx_last_error() says what
 *                                    differs
 * @retval NDX_E_IO_TIMEOUT           time-out; ndx_last_error() says of what
 * @retval NDX_E_CANCELED             ndx_session_cancel() was called
 * @retval NDX_E_WOULD_BLOCK          called in a callback; nothing has changed
 * @return otherwise the failure of the plugin, the transport or the provider
 *
 * Thread safety: one thread at a time. Blocks: up to stage_timeout_ms and the rest of
 * session_timeout_ms; a function of a plugin that does not return is not interrupted.
 */
enum ndx_status ndx_session_execute(struct ndx_session *session, enum ndx_stage stage);

/**
 * Connect, then run the stages info, validate and ready, as ndx_session_connect() and
 * ndx_session_execute() do.
 */
enum ndx_status ndx_session_run(struct ndx_session *session);

/**
 * As ndx_session_connect(), without blocking. @p ov completes with the status that
 * ndx_session_connect() returns. The framework has a thread for its sessions; callbacks run on that
 * thread. Functions of plugins, and transports of plugins, run on further threads of the framework,
 * up to 256. If functions that do not return occupy all of these, other sessions wait for a thread,
 * until their time-outs.
 *
 * @param ov  the overlapped object; see <ndx/overlapped.h>
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      session or @p ov is NULL, or @p ov is in flight
 * @retval NDX_E_INVALID_DEVICE_STATE   as for ndx_session_connect()
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread
 *
 * Thread safety: any thread, one call at a time for each session; also in a callback. Blocks: no.
 */
enum ndx_status ndx_session_connect_overlapped(struct ndx_session *session,
                                               struct ndx_overlapped *ov);

/**
 * As ndx_session_execute(), without blocking. See ndx_session_connect_overlapped().
 *
 * @param ov  the overlapped object; completes with the status that ndx_session_execute() returns
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      session or @p ov is NULL, or @p ov is in flight
 * @retval NDX_E_INVALID_DEVICE_STATE   not connected, another stage is next, or another call on the
 *                                      session is in progress
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread
 *
 * Thread safety: any thread, one call at a time for each session; also in a callback. Blocks: no.
 */
enum ndx_status ndx_session_execute_overlapped(struct ndx_session *session, enum ndx_stage stage,
                                               struct ndx_overlapped *ov);

/**
 * As ndx_session_run(), without blocking. See ndx_session_connect_overlapped().
 *
 * @param ov  the overlapped object; completes with the status that ndx_session_run() returns
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      session or @p ov is NULL, or @p ov is in flight
 * @retval NDX_E_INVALID_DEVICE_STATE   as for ndx_session_connect()
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread
 *
 * Thread safety: any thread, one call at a time for each session; also in a callback. Blocks: no.
 */
enum ndx_status ndx_session_run_overlapped(struct ndx_session *session, struct ndx_overlapped *ov);

/**
 * Add queue pairs to a session of several, between the stages ready and done, while the others
 * live. The new ones go through the stages info, validate and ready by themselves, all of them or
 * none: a failure leaves the session and its other queue pairs as they were, and
 * ndx_session_get_add_error() has the details. Connections that the new ones had made by then are
 * disconnected; their connectors and queue pairs are of no further use. Only a lost transport, or a
 * peer that breaks the protocol, ends the session. The index of a queue pair here is that of the
 * one there; indices are not used again.
 *
 * @param list        @p count entries, as `queue_pairs` of the attributes; copied
 * @param count       1 to NDX_SESSION_QUEUE_PAIRS_MOST, together with those that the session has
 * @param[out] first  index of the first one, the others follow; may be NULL; untouched on failure
 *
 * @retval NDX_OK                       both ends have completed the stages
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, @p count is 0 or more than
 *                                      NDX_SESSION_QUEUE_PAIRS_MOST, or an entry lacks its
 *                                      connector or queue pair
 * @retval NDX_E_NOT_SUPPORTED          the session began with one queue pair; or the version of the
 *                                      server, its program, or the plugin of one end
 *                                      (NDX_PLUGIN_ADDS) does not take queue pairs later
 * @retval NDX_E_INVALID_DEVICE_STATE   stage ready has not ended, stage done has begun, the session
 *                                      has failed, or another call on it is in progress
 * @retval NDX_E_DEVICE_BUSY            queue pairs are being added already
 * @retval NDX_E_INSUFFICIENT_RESOURCES these and those that the session has are more than
 *                                      NDX_SESSION_QUEUE_PAIRS_MOST, or the 65536 indices are used
 *                                      up
 * @retval NDX_E_REMOTE_ERROR           the server refuses them, or failed
 * @retval NDX_E_IO_TIMEOUT             stage_timeout_ms have elapsed in one of the stages
 * @retval NDX_E_CANCELED               ndx_session_cancel() or ndx_session_close() was called. The
 *                                      cancel is of this call alone: the session goes on
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_WOULD_BLOCK            called in a callback; nothing has changed
 * @return otherwise the failure of the plugin, the transport or the provider
 *
 * Thread safety: one thread at a time. Blocks: up to stage_timeout_ms in each stage; a function of
 * a plugin that does not return is not interrupted.
 */
enum ndx_status ndx_session_add_queue_pairs(struct ndx_session *session,
                                            const struct ndx_session_queue_pair *list, size_t count,
                                            uint32_t *first);

/**
 * As ndx_session_add_queue_pairs(), without blocking. See ndx_session_connect_overlapped().
 *
 * @param ov  the overlapped object; completes with the status that ndx_session_add_queue_pairs()
 *            returns, and the index of the first queue pair as `information`
 *
 * @retval NDX_PENDING                  started
 * @retval NDX_E_INVALID_PARAMETER      as there; or @p ov is NULL, or in flight
 * @retval NDX_E_NOT_SUPPORTED          as there; but what the server says comes with @p ov
 * @retval NDX_E_INVALID_DEVICE_STATE   as there
 * @retval NDX_E_DEVICE_BUSY            as there
 * @retval NDX_E_INSUFFICIENT_RESOURCES as there, or no thread
 * @retval NDX_E_CANCELED               the session was cancelled before
 * @retval NDX_E_NO_MEMORY              out of memory
 *
 * Thread safety: any thread, one call at a time for each session; also in a callback. Blocks: no.
 */
enum ndx_status ndx_session_add_queue_pairs_overlapped(struct ndx_session *session,
                                                       const struct ndx_session_queue_pair *list,
                                                       size_t count, struct ndx_overlapped *ov);

/**
 * Remove queue pairs whose connections have ended from a session of several: their memory, and
 * their places in the limits of the server, are free again. The others live on. The server's
 * program learns of it (`removed` of struct ndx_negotiation_server_attr). Disconnect first; the
 * connectors may be closed before or afterwards. Without this call a queue pair that has ended
 * keeps its place until the session is closed. A session may have none left.
 *
 * @param first  index of the first one
 * @param count  1 or more
 *
 * @retval NDX_OK                     they are no more of the session
 * @retval NDX_E_INVALID_PARAMETER    session is NULL, or the session does not have all of these
 * @retval NDX_E_NOT_SUPPORTED        the session began with one queue pair; or the version of the
 *                                    server, or the plugin of one end (NDX_PLUGIN_ADDS), removes
 *                                    none
 * @retval NDX_E_INVALID_DEVICE_STATE stage ready has not ended, the session has failed, another
 *                                    call on it is in progress, or one of the connections still
 *                                    uses the transport for its goodbye
 * @retval NDX_E_REMOTE_ERROR         the server does not read, and too much waits for it; nothing
 *                                    has changed
 * @retval NDX_E_NO_MEMORY            out of memory
 * @retval NDX_E_WOULD_BLOCK          called in a callback; nothing has changed
 *
 * Thread safety: one thread at a time. Blocks: for the plugin's `end` of these queue pairs.
 */
enum ndx_status ndx_session_remove_queue_pairs(struct ndx_session *session, uint32_t first,
                                               uint32_t count);

/**
 * Cancel a session from another thread. The call in progress returns NDX_E_CANCELED, or its
 * overlapped object completes so, and so do later calls. The session must still be closed. NULL is
 * a no-op. While queue pairs are being added, the cancel ends that call alone; between the end of
 * such a call and the next call it does nothing, because it comes too late.
 *
 * An overlapped call is complete when this call returns, except: while a function of a plugin or
 * the transport of a device is running, or the latter is to be closed, the call completes after
 * that; while the peer is told of a failure, within 0.1 s; and if this call is made in a callback
 * while the queue pair is connecting, after the callback. An overlapped object with a callback
 * completes as <ndx/overlapped.h> says.
 *
 * Thread safety: any thread, also in a callback. Blocks: not for a peer or a plugin, but for the
 * framework's thread of sessions and the callbacks that are queued there. So the caller must not
 * hold a lock that such a callback takes.
 */
void ndx_session_cancel(struct ndx_session *session);

/**
 * Tell the peer that the session is over, and release the session. Allowed in any state; not beside
 * a blocking call on the session. An overlapped call in progress is cancelled and completes first;
 * a function of a plugin that is running is waited for. In a callback neither that function nor the
 * plugin's last ones (`end`, its transport's close) are waited for: the session's end follows in
 * the background, and the connector, the queue pair and the variant must stay until the framework
 * can be closed. The connector and the queue pair are not closed. NULL is a no-op.
 *
 * Thread safety: any thread, not beside another call on the session; also in a callback. Blocks:
 * outside callbacks up to 2 s until a plugin's transport is closed, and while a function of a
 * plugin or the transport of a device is running; everywhere for the framework's thread of sessions
 * and the callbacks that are queued there. So the caller must not hold a lock that such a callback
 * takes.
 */
void ndx_session_close(struct ndx_session *session);

/** Number of the session, for logs; unique within a framework. Any thread. */
uint64_t ndx_session_get_id(const struct ndx_session *session);

/** State of the session. Any thread. */
enum ndx_session_state ndx_session_get_state(const struct ndx_session *session);

/**
 * The server to which the session is connected, as given in the attributes; "" before. Any thread,
 * but not beside connect.
 */
const char *ndx_session_get_server(const struct ndx_session *session);

/**
 * What was agreed in stage info; of several queue pairs, the first.
 *
 * @param[out] own, peer, agreed  each may be NULL
 * @retval NDX_E_INVALID_DEVICE_STATE stage info has not ended; nothing was written
 */
enum ndx_status ndx_session_get_agreement(const struct ndx_session *session,
                                          struct ndx_peer_description *own,
                                          struct ndx_peer_description *peer,
                                          struct ndx_agreement *agreed);

/**
 * How many queue pairs the session has, without those that are being added or were removed; 1 if it
 * has none of NDX's. Any thread.
 */
uint32_t ndx_session_get_queue_pair_count(const struct ndx_session *session);

/**
 * What was agreed in stage info for one queue pair.
 *
 * @param index               of the queue pair: of those of the attributes the place there, of
 *                            those that were added what ndx_session_add_queue_pairs() gave
 * @param[out] own, peer, agreed  each may be NULL
 *
 * @retval NDX_E_INVALID_PARAMETER    session is NULL, or there is no such queue pair
 * @retval NDX_E_INVALID_DEVICE_STATE stage info has not ended; nothing was written
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_get_queue_pair_agreement(const struct ndx_session *session,
                                                     uint32_t index,
                                                     struct ndx_peer_description *own,
                                                     struct ndx_peer_description *peer,
                                                     struct ndx_agreement *agreed);

/**
 * Why the session failed; `status` is NDX_OK if it did not.
 *
 * @param[in,out] error  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_get_error(const struct ndx_session *session,
                                      struct ndx_session_error *error);

/**
 * Why the latest ndx_session_add_queue_pairs() failed; `status` is NDX_OK if it did not, or if
 * there was none. A call that was refused at once leaves this as it was.
 *
 * @param[in,out] error  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_get_add_error(const struct ndx_session *session,
                                          struct ndx_session_error *error);

/**
 * The latest entries of the history, oldest first, as ndx_connector_get_history() has the
 * transitions of a connector. The session keeps `max_history` entries of its attributes.
 *
 * @param[out] list      up to @p *count entries; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list (`max_history` suffices); set to the number filled
 * @param[out] total     number of entries so far; may be NULL
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_get_history(const struct ndx_session *session,
                                        struct ndx_history_entry *list, size_t *count,
                                        uint64_t *total);

/**
 * State, agreement, failure and history of the session as one JSON text.
 * docs/negotiation-protocol.md describes the members; later versions may add members.
 *
 * @param[out] json  ends with a newline and a null byte; release it with free(); untouched on
 *                   failure
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Any thread, as for the parts of it. Blocks: no.
 */
enum ndx_status ndx_session_snapshot(const struct ndx_session *session, char **json);

/**
 * An entry of the history as one readable line: time, kind, size, duration, and the failure if any.
 *
 * @param text  room for @p room bytes; 160 are enough, a longer line is cut
 * @return @p text; "" for NULL arguments
 *
 * Any thread.
 */
const char *ndx_history_entry_text(const struct ndx_history_entry *entry, char *text, size_t room);

/** Name of a stage, for example "info". Never NULL. Any thread. */
const char *ndx_stage_name(enum ndx_stage stage);

/** Name of a session's state, for example "connected". Never NULL. Any thread. */
const char *ndx_session_state_name(enum ndx_session_state state);

/** Name of a layer, for example "transport". Never NULL. Any thread. */
const char *ndx_error_layer_name(enum ndx_error_layer layer);

/** Name of a plugin error, for example "peer data". Never NULL. Any thread. */
const char *ndx_plugin_error_name(enum ndx_plugin_error error);

/** Name of a kind of history entry, for example "sent". Never NULL. Any thread. */
const char *ndx_history_kind_name(enum ndx_history_kind kind);

NDX_DECLS_END

#endif
