/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The server of a negotiation: it serves many clients at the same time, each with the variant that
 * the client requests.
 *
 * One thread moves the bytes of all sessions. Plugins and callbacks run on a small pool of threads,
 * one call of a session at a time. A client that is slow, silent or hostile affects only its own
 * session; so does a plugin that does not return.
 *
 * These calls are in libndx-negotiation (pkg-config ndx-negotiation).
 */
#ifndef NDX_NEGOTIATION_SERVER_H
#define NDX_NEGOTIATION_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/description.h>
#include <ndx/negotiation.h>
#include <ndx/qp.h>
#include <ndx/session.h>
#include <ndx/status.h>
#include <ndx/tls.h>

NDX_DECLS_BEGIN

struct ndx_negotiation_server; /* opaque */

/** What a session of the server connects; as in struct ndx_session_attr. */
struct ndx_session_resources {
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_memory_description memory;
	uint32_t inbound_read_limit;  /**< 16 before the callback */
	uint32_t outbound_read_limit; /**< 16 before the callback */
};

/**
 * Callbacks of a server about its sessions. They run on the threads of the pool: calls for one
 * session one at a time, calls for different sessions concurrently. They may block, as a plugin
 * may. A session is valid from `open` to the end of `closed`; only ndx_session_get_...() may be
 * called on it.
 */
struct ndx_negotiation_server_events {
	/**
	 * may: a client asks for a session; fill in what it is to be connected to. On failure the
	 * client is refused, with the returned status in the server's log and in the text of the
	 * client's error, whose status is NDX_E_REMOTE_ERROR. `closed` is not called then.
	 */
	enum ndx_status (*open)(void *arg, struct ndx_session *session,
	                        struct ndx_session_resources *resources);
	/** may: a stage has ended; after NDX_STAGE_READY data may be transferred */
	void (*staged)(void *arg, struct ndx_session *session, enum ndx_stage stage);
	/**
	 * may: the session is over; ndx_session_get_error() says whether it failed. The program
	 * owns the connector and the queue pair again.
	 */
	void (*closed)(void *arg, struct ndx_session *session);
	void *arg;
};

/** A variant that a principal may use; see `grants` of struct ndx_negotiation_server_attr. */
struct ndx_variant_grant {
	const char *plugin;  /**< its name */
	const char *variant; /**< its name; NULL: all of the plugin's */
	/**
	 * Either a name that the client's certificate has as subject alternative name, as in
	 * `peer_names` of struct ndx_tls_attr, ...
	 */
	const char *name;
	const char *psk_identity; /**< ... or the identity of the client's pre-shared key */
	void *reserved[4];        /**< NULL */
};

/** Of max_handshakes and max_handshakes_per_address: as many as come. */
#define NDX_NEGOTIATION_SERVER_NO_LIMIT UINT32_MAX

/** Attributes of a server. Call ndx_negotiation_server_attr_init() first. */
struct ndx_negotiation_server_attr {
	size_t size; /**< set by ndx_negotiation_server_attr_init() */
	/**
	 * "HOST:PORT", "[IPV6]:PORT"; port 0: any free port. Required. A host name stands for all
	 * its addresses on this host, at most 16, with the same port number.
	 */
	const char *address;
	/**
	 * Variants that the server offers; the server holds references to them. The server always
	 * listens on TCP: the transport of a variant is only the client's way to reach it.
	 */
	struct ndx_variant *const *variants;
	size_t variant_count;
	struct ndx_negotiation_server_events events;

	/**
	 * Sessions at the same time, from their connection to the end of `closed`; further ones are
	 * refused. A finished session whose client stays is ended after stage_timeout_ms. A session
	 * whose transport carries the goodbyes of a connection is finished when that connection is
	 * over. Any other session is finished when stage done has ended; without stage done it
	 * lasts as long as its client. Default 4096.
	 */
	uint32_t max_sessions;
	uint32_t workers;            /**< threads of the pool. Default 2 */
	uint32_t workers_most;       /**< largest pool, while calls do not return. Default 64 */
	uint32_t hello_timeout_ms;   /**< from the connection to the hello message. Default 5000 */
	uint32_t stage_timeout_ms;   /**< one stage. Default 30000 */
	uint32_t session_timeout_ms; /**< all stages up to ready. Default 120000 */
	/** The log names a call of a plugin that takes longer than this. Default 5000. */
	uint32_t plugin_warn_ms;
	uint32_t max_message; /**< bytes of one message. Default 65536, maximum 1 MiB */
	uint32_t max_rounds;  /**< rounds of one stage. Default 64 */
	uint32_t max_history; /**< entries of one session. Default 16 */
	/**
	 * TLS with the clients; NULL: plaintext, which others on the way can read and change. A
	 * server with TLS refuses clients without. Read by ndx_negotiation_server_create() only.
	 */
	const struct ndx_tls_attr *tls;
	/**
	 * Without TLS: listen at addresses that are not of the loopback, too. A host that reads or
	 * changes what passes then gets, or replaces, the addresses and keys of memory, and any
	 * host that reaches the port gets a session. Default false.
	 */
	bool allow_plaintext;
	/**
	 * Connections of one address that have not said hello yet, TLS handshakes included; further
	 * ones are closed. An address of IPv6 stands for its network of 64 bits, except a
	 * link-local one. 0: no limit. Default 2048, half of the default of max_sessions.
	 */
	uint32_t max_waiting_per_address;
	/**
	 * Limits of one principal: of the clients whose certificates have the same names, or that
	 * have the same pre-shared key, or, as one principal, that have neither. A client beyond a
	 * limit is refused, and the log names the principal. Without TLS there are no principals
	 * and these limits have no effect. 0: no limit. Default 1024 sessions.
	 */
	uint32_t max_sessions_per_principal;
	/** Queue pairs that `open`, `open_many` and `add_many` have given. Default 1024 */
	uint32_t max_queue_pairs_per_principal;
	/**
	 * Connections in a second of one address, as of max_waiting_per_address, that the server
	 * takes; ten seconds of them may come at once. Further ones are closed before TLS begins,
	 * and the log names the address. 0: the default: with TLS 256, without TLS no limit.
	 * NDX_NEGOTIATION_SERVER_NO_LIMIT: no limit.
	 */
	uint32_t max_handshakes_per_address;
	/** Bytes that `open` has described (`memory` of the resources). Default 0 */
	uint64_t max_memory_per_principal;
	/**
	 * Which principals may use which variants; at most 4096, copied. A client whose principal
	 * has no grant for the variant that it asks for is refused (NDX_E_NOT_SUPPORTED). Needs
	 * `tls`. `grant_count` 0: every client may use every variant of `variants`.
	 */
	const struct ndx_variant_grant *grants;
	size_t grant_count;
	/**
	 * may: as `open` of the events, for a client that asks for several queue pairs at once.
	 * Fill in @p count entries of @p list, which are 0 before; `connector`, `qp` and `memory`
	 * of @p resources are not used. NULL: such clients are refused. `staged` and `closed` are
	 * those of the events; the arguments are as there.
	 */
	enum ndx_status (*open_many)(void *arg, struct ndx_session *session, uint32_t count,
	                             struct ndx_session_queue_pair *list,
	                             struct ndx_session_resources *resources);
	/**
	 * Queue pairs of one session at a time, those that were added included; a client that asks
	 * for more is refused. Each costs some 4 KiB, from the hello message on. 1 to
	 * NDX_SESSION_QUEUE_PAIRS_MOST. Default 64.
	 */
	uint32_t max_queue_pairs;
	/** As max_handshakes_per_address, of all addresses together. With TLS 1024. */
	uint32_t max_handshakes;
	/**
	 * may: as `open_many`, for a client that adds @p count queue pairs to its session
	 * (ndx_session_add_queue_pairs()); the first one has the index @p first. On failure none of
	 * them is added, and the session goes on. NULL: nothing is added.
	 */
	enum ndx_status (*add_many)(void *arg, struct ndx_session *session, uint32_t first,
	                            uint32_t count, struct ndx_session_queue_pair *list);
	/**
	 * may: what `add_many` gave is connected, and data may be transferred (NDX_OK); or it is
	 * not, and the program owns the connectors and queue pairs again: it closes them before it
	 * returns. Called once for each `add_many` that succeeded. Without this callback the
	 * program owns them again after `closed`.
	 */
	void (*added)(void *arg, struct ndx_session *session, uint32_t first, uint32_t count,
	              enum ndx_status status);
	/**
	 * may: the client has removed a queue pair from its session
	 * (ndx_session_remove_queue_pairs()), or gave up one that it had added. The program owns
	 * the connector and the queue pair again: it disconnects and closes them before it returns;
	 * then they do not count any more for the limits of the principal. Without this callback
	 * that is so after `closed`.
	 */
	void (*removed)(void *arg, struct ndx_session *session, uint32_t index);
};

/** `size` of struct ndx_negotiation_server_attr in version 0.1; the smallest that is accepted. */
#define NDX_NEGOTIATION_SERVER_ATTR_SIZE_0_1 \
	NDX_SIZE_UP_TO(struct ndx_negotiation_server_attr, max_history)

/** As ndx_negotiation_server_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_negotiation_server_attr_init_sized(struct ndx_negotiation_server_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_negotiation_server_attr_init(struct ndx_negotiation_server_attr *attr)
{
	ndx_negotiation_server_attr_init_sized(attr, sizeof(*attr));
}

/** Counters of a server since its creation. */
struct ndx_negotiation_server_stats {
	size_t size;       /**< the caller sets sizeof(struct ndx_negotiation_server_stats) */
	uint64_t accepted; /**< connections accepted */
	/** Sessions refused: too many, no such variant, not allowed, `open`, `open_many` failed. */
	uint64_t refused;
	uint64_t without_hello; /**< connections without a valid hello message */
	uint64_t completed;     /**< sessions that reached the end of stage ready */
	uint64_t failed;        /**< sessions that failed, before or after stage ready */
	uint64_t resumed;       /**< sessions that got a new transport during a stage */
	uint32_t alive;         /**< sessions at present */
	uint32_t threads;       /**< threads of the pool at present */
	/* These are part of `refused`: */
	uint64_t refused_addresses;  /**< connections beyond max_waiting_per_address */
	uint64_t refused_principals; /**< sessions beyond a limit of their principal */
	uint64_t refused_variants;   /**< sessions without a grant for the variant */
	uint64_t refused_identities; /**< to go on with a session of another identity */
	/** Connections beyond max_handshakes or max_handshakes_per_address. */
	uint64_t refused_handshakes;
};

/** `size` of struct ndx_negotiation_server_stats in version 0.1; the smallest that is accepted. */
#define NDX_NEGOTIATION_SERVER_STATS_SIZE_0_1 \
	NDX_SIZE_UP_TO(struct ndx_negotiation_server_stats, threads)

/**
 * Create a server that listens and answers at once. The server logs each address on which it
 * listens. About clients that never get a session it logs at most ten records in ten seconds, and
 * then the number of records that it left out.
 *
 * @param[out] out  untouched on failure; release it with ndx_negotiation_server_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, no variant, or a limit of 0 or too large;
 *                                      ndx_last_error() names it
 * @retval NDX_E_INVALID_ADDRESS        the address is malformed, or not of this host
 * @retval NDX_E_ACCESS_DENIED          this process may not use a port below 1024 (ip(7))
 * @retval NDX_E_SHARING_VIOLATION      the port is in use at one of the addresses
 * @retval NDX_E_NOT_FOUND              there is no such file of `tls`
 * @retval NDX_E_INVALID_CONFIG         a file of `tls` is not what it has to be; or one of the
 *                                      addresses is not of the loopback, and there is neither `tls`
 *                                      nor `allow_plaintext`; ndx_last_error() names file or
 *                                      address, and cause
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no descriptor or thread left
 *
 * Thread safety: any thread. Blocks: while the system resolves a name.
 */
enum ndx_status ndx_negotiation_server_create(const struct ndx_negotiation_server_attr *attr,
                                              struct ndx_negotiation_server **out);

/**
 * End all sessions and release the server. The call returns when the last `closed` has returned; a
 * function of a plugin that does not return delays it. NULL is a no-op. Not allowed in a callback
 * of the server. In a callback of an adapter the call does not wait: the server is released after
 * its last session, and keeps its variants until then.
 */
void ndx_negotiation_server_close(struct ndx_negotiation_server *server);

/**
 * The first address on which the server listens; its other addresses have the same port.
 *
 * @param[in,out] length  room in bytes; set to the length of the address
 * @retval NDX_E_BUFFER_OVERFLOW the address does not fit; nothing was copied, @p *length is needed
 */
enum ndx_status ndx_negotiation_server_get_address(struct ndx_negotiation_server *server,
                                                   struct sockaddr *address, socklen_t *length);

/**
 * Copy the counters.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_negotiation_server_get_stats(struct ndx_negotiation_server *server,
                                                 struct ndx_negotiation_server_stats *stats);

/** Sessions that ndx_negotiation_server_snapshot() lists at most. */
#define NDX_NEGOTIATION_SERVER_LISTED_MOST 10000u

/**
 * Counters, limits and sessions of the server as one JSON text. docs/observing-sessions.md
 * describes the members; later versions may add members. The text lists the oldest sessions, at
 * most NDX_NEGOTIATION_SERVER_LISTED_MOST of them, and has the number of all. No key, address of
 * memory, cookie or message is in the text.
 *
 * The sessions are read in steps of at most 256, and the server serves clients between two steps:
 * the text shows each session at one moment, but not all sessions at the same one.
 *
 * @param[out] json  ends with a newline and a null byte; release it with free(); untouched on
 *                   failure
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread, also in callbacks; not beside ndx_negotiation_server_close(). Blocks:
 * for the server's thread, which does not block.
 */
enum ndx_status ndx_negotiation_server_snapshot(struct ndx_negotiation_server *server, char **json);

NDX_DECLS_END

#endif
