/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Sessions: one negotiation with one peer, and the server that answers many.
 *
 * A session goes through the stages of enum ndx_stage in their order. In stage info the variant's
 * plugins tell each other what they need; what they have in common is settled, and both sides hold
 * the same record of it. Stage validate connects the queue pair and compares what either side
 * understood; stage ready ends when both sides can take data; stage done, which may be left out,
 * says that the transfers are over. It is not the disconnect: that is the connector's.
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
#include <ndx/qp.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_session; /* opaque */

/** Which layer failed; says whose problem it is. */
enum ndx_error_layer {
	NDX_LAYER_NONE = 0,
	NDX_LAYER_TRANSPORT = 1, /**< unreachable, reset, no answer to an attempt at connecting:
	                            tried again while time lasts */
	NDX_LAYER_PLUGIN = 2,    /**< the plugin, or what it was sent: the session is over */
	NDX_LAYER_FRAMEWORK = 3, /**< protocol, limits, time of the stage or session */
	NDX_LAYER_PROVIDER = 4,  /**< the queue pair could not be connected */
};

/** What went wrong, and where. */
struct ndx_session_error {
	enum ndx_status status; /**< NDX_OK: nothing did */
	enum ndx_error_layer layer;
	enum ndx_plugin_error plugin_error; /**< of layer plugin; else NDX_PLUGIN_OK */
	bool remote;                        /**< the peer failed, and told */
	enum ndx_stage stage;               /**< in which it happened */
	uint32_t round;
	char text[256]; /**< for people: what, where, what to do */
};

/** Where a session stands. */
enum ndx_session_state {
	NDX_SESSION_CREATED,
	NDX_SESSION_CONNECTING, /**< the transport; also between two attempts */
	NDX_SESSION_CONNECTED,  /**< between two stages */
	NDX_SESSION_EXCHANGING, /**< in a stage */
	NDX_SESSION_FAILED,
	NDX_SESSION_CLOSED, /**< the peer said that it is over */
};

/** What an entry of the history tells of. */
enum ndx_history_kind {
	NDX_HISTORY_CONNECT,  /**< one attempt; text is the server's address */
	NDX_HISTORY_BACKOFF,  /**< a pause before the next attempt */
	NDX_HISTORY_CALL,     /**< the plugin was called; bytes it returned */
	NDX_HISTORY_SENT,     /**< a frame; bytes of payload */
	NDX_HISTORY_RECEIVED, /**< a frame; bytes of payload; duration is the wait */
	NDX_HISTORY_STAGE,    /**< a stage ended; duration of all of it */
};

/** One entry of a session's history. */
struct ndx_history_entry {
	uint64_t at_us; /**< since the session was created */
	uint64_t duration_us;
	enum ndx_history_kind kind;
	enum ndx_stage stage;
	uint32_t round;
	uint32_t bytes;
	enum ndx_status status;
	char text[64];
};

/** Attributes of a session; ndx_session_attr_init() first. Strings are copied. */
struct ndx_session_attr {
	size_t size; /**< set by ndx_session_attr_init() */
	struct ndx_variant *variant;
	/** Addresses, best first: "host:port", "10.0.0.1:7471", "[fe80::1%eth0]:7471", "name:port";
	 * for a plugin's transport whatever that takes. */
	const char *const *servers;
	size_t server_count;
	/** What to connect; both or neither. NULL: the plugin has queue pairs of its own, and stage
	 * validate only compares what was agreed. */
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_memory_description memory; /**< for the peer; length 0: none */
	uint32_t inbound_read_limit;          /**< as ndx_connector_connect(). Default 16 */
	uint32_t outbound_read_limit;         /**< Default 16 */

	uint32_t connect_timeout_ms; /**< one attempt at one server. Default 5000 */
	uint32_t attempts;           /**< for each server. Default 3 */
	uint32_t backoff_ms;         /**< pause when each server has failed once, doubled each
	                                  time and shortened at random by up to a half.
	                                  Default 100 */
	uint32_t backoff_most_ms;    /**< longest pause. Default 5000 */
	uint32_t stage_timeout_ms;   /**< one stage. Default 30000 */
	uint32_t session_timeout_ms; /**< connect and stages up to ready. Default 120000 */
	uint32_t max_message;        /**< bytes of one message. Default 65536, most 1 MiB */
	uint32_t max_rounds;         /**< of one stage. Default 64 */
	uint32_t max_history;        /**< entries; the oldest go. Default 128 */
};

/** Set `size` and the defaults. */
void ndx_session_attr_init(struct ndx_session_attr *attr);

/**
 * Create a session, not connected.
 *
 * @param[out] out  untouched on failure; release with ndx_session_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL, no variant, no server, or a limit of 0 or too large; the
 *                                 text names it
 * @retval NDX_E_INVALID_ADDRESS   a server's address is malformed; the text has it
 * @retval NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES no room
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_create(const struct ndx_session_attr *attr, struct ndx_session **out);

/**
 * Reach a server: try each in order, then wait (backoff) and try again, until one answers and
 * accepts the variant or attempts and time have run out. A server that answers without having the
 * variant, or without speaking this protocol, is not asked again.
 *
 * @retval NDX_OK                     connected
 * @retval NDX_E_INVALID_DEVICE_STATE it is connected, failed or closed
 * @retval NDX_E_IO_TIMEOUT           session_timeout_ms is over
 * @retval NDX_E_CANCELED             ndx_session_cancel()
 * @retval NDX_E_WOULD_BLOCK          in a callback; nothing has changed
 * @return otherwise why the last attempt failed; ndx_session_get_error() has it all
 *
 * Thread safety: one thread at a time. Blocks: up to session_timeout_ms, also while the system
 * looks a name up; longer only in a plugin's transport.
 */
enum ndx_status ndx_session_connect(struct ndx_session *session);

/**
 * Run one stage to its end. Stages come in their order; done may be left out.
 *
 * A transport that breaks in mid-stage is connected again, and the stage begins anew, if the
 * variant has `reset`; else the session fails.
 *
 * @retval NDX_OK                     both sides have completed it
 * @retval NDX_E_INVALID_DEVICE_STATE not connected, or not this stage's turn; the text says which
 *                                    call is missing
 * @retval NDX_E_INVALID_CONFIG       the two ends do not go together; the text says what differs
 * @retval NDX_E_IO_TIMEOUT           out of time; the text says for what
 * @retval NDX_E_CANCELED             ndx_session_cancel()
 * @retval NDX_E_WOULD_BLOCK          in a callback; nothing has changed
 * @return otherwise as the plugin, the transport or the provider failed
 *
 * Thread safety: one thread at a time. Blocks: up to stage_timeout_ms and what is left of
 * session_timeout_ms, but not in a plugin's function that does not return.
 */
enum ndx_status ndx_session_execute(struct ndx_session *session, enum ndx_stage stage);

/** Connect, then stages info, validate and ready: as the calls of these names. */
enum ndx_status ndx_session_run(struct ndx_session *session);

/**
 * From another thread: what runs returns NDX_E_CANCELED as soon as no plugin's function holds it
 * up, and so does what is called from now on. The session stays to be closed.
 */
void ndx_session_cancel(struct ndx_session *session);

/**
 * Tell the peer that it is over, and release. In any state; not beside another call on it. The
 * connector and the queue pair stay. NULL is a no-op.
 */
void ndx_session_close(struct ndx_session *session);

/** Number of the session, for logs; no two of a framework have the same. Any thread. */
uint64_t ndx_session_get_id(const struct ndx_session *session);

/** Where it stands. Any thread. */
enum ndx_session_state ndx_session_get_state(const struct ndx_session *session);

/** The server that it is connected to, as given; "" before. Any thread but beside connect. */
const char *ndx_session_get_server(const struct ndx_session *session);

/**
 * What was agreed on in stage info.
 *
 * @param[out] own, peer, agreed  each may be NULL
 * @retval NDX_E_INVALID_DEVICE_STATE stage info has not ended; nothing was written
 */
enum ndx_status ndx_session_get_agreement(const struct ndx_session *session,
                                          struct ndx_peer_description *own,
                                          struct ndx_peer_description *peer,
                                          struct ndx_agreement *agreed);

/** Why it failed; status NDX_OK if it did not. Any thread. */
void ndx_session_get_error(const struct ndx_session *session, struct ndx_session_error *out);

/**
 * Copy the history, oldest entry first.
 *
 * @param entries  room for @p count; may be NULL if that is 0
 * @param[out] dropped  entries that had to go; may be NULL
 * @return how many there are; at most @p count were copied, the latest ones
 *
 * Any thread.
 */
size_t ndx_session_get_history(const struct ndx_session *session, struct ndx_history_entry *entries,
                               size_t count, uint64_t *dropped);

/**
 * Where the session stands, what was agreed, why it failed and its history, as one JSON text.
 * docs/negotiation-protocol.md describes its members; new ones may be added.
 *
 * @param[out] json  NUL-terminated; release with free(); untouched on failure
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Any thread, as the parts of it. Blocks: no.
 */
enum ndx_status ndx_session_snapshot(const struct ndx_session *session, char **json);

/**
 * An entry of the history as a line for people: when, what, how much, how long, and how it failed.
 *
 * @param text  room for @p room bytes; 160 are enough
 * @return @p text
 *
 * Any thread.
 */
const char *ndx_history_entry_text(const struct ndx_history_entry *entry, char *text, size_t room);

/** Name of a stage, "info". Never NULL. Any thread. */
const char *ndx_stage_name(enum ndx_stage stage);

/** Name of a session's state, "connected". Never NULL. Any thread. */
const char *ndx_session_state_name(enum ndx_session_state state);

/** Name of a layer, "transport". Never NULL. Any thread. */
const char *ndx_error_layer_name(enum ndx_error_layer layer);

/** Name of what a plugin's failure was, "peer data". Never NULL. Any thread. */
const char *ndx_plugin_error_name(enum ndx_plugin_error error);

/** Name of what an entry of the history tells of, "sent". Never NULL. Any thread. */
const char *ndx_history_kind_name(enum ndx_history_kind kind);

NDX_DECLS_END

#endif
