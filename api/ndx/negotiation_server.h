/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The server of a negotiation: answers many clients at once, each with the variant it asks for.
 *
 * One thread carries the bytes of all sessions; plugins and callbacks run on a small pool of
 * threads, one call of a session at a time. A client that is slow, silent or hostile, and a plugin
 * that does not return, cost their own session only.
 */
#ifndef NDX_NEGOTIATION_SERVER_H
#define NDX_NEGOTIATION_SERVER_H

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

NDX_DECLS_BEGIN

struct ndx_negotiation_server; /* opaque */

/** What a session of the server's connects; as in struct ndx_session_attr. */
struct ndx_session_resources {
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_memory_description memory;
	uint32_t inbound_read_limit;  /**< 16 before the callback */
	uint32_t outbound_read_limit; /**< 16 before the callback */
};

/**
 * What the server tells of its sessions. On a thread of the pool; one call of a session at a time,
 * those of different sessions at once; they may block, as a plugin may. A session is valid from
 * `open` to the end of `closed`; only ndx_session_get_...() may be called on it.
 */
struct ndx_negotiation_server_events {
	/** may: a client asks; give it what it is to be connected to. Failure: it is refused with
	 * that status, and `closed` is not called. */
	enum ndx_status (*open)(void *arg, struct ndx_session *session,
	                        struct ndx_session_resources *resources);
	/** may: a stage has ended; after NDX_STAGE_READY data may be moved */
	void (*staged)(void *arg, struct ndx_session *session, enum ndx_stage stage);
	/** may: the session is over, ndx_session_get_error() says if it failed. The connector and
	 * the queue pair are the callee's again. */
	void (*closed)(void *arg, struct ndx_session *session);
	void *arg;
};

/** Attributes of a server; ndx_negotiation_server_attr_init() first. */
struct ndx_negotiation_server_attr {
	size_t size; /**< set by ndx_negotiation_server_attr_init() */
	/** "HOST:PORT", "[IPV6]:PORT"; port 0: any free one. Required. A name stands for all its
	 * addresses of this host, 16 at most, with one port number. */
	const char *address;
	/** What it offers; kept by the server. The server has TCP: a variant's own transport is the
	 * client's way to get there. */
	struct ndx_variant *const *variants;
	size_t variant_count;
	struct ndx_negotiation_server_events events;

	/** At once, from their connection to the end of `closed`; more are refused. A session that
	 * is through with stage done and whose client stays is ended after stage_timeout_ms; where
	 * its transport carries the goodbyes of a connection, when that is over as well. One that
	 * leaves stage done out lasts as long as its client. Default 4096 */
	uint32_t max_sessions;
	uint32_t workers;            /**< threads of the pool. Default 2 */
	uint32_t workers_most;       /**< while calls do not return. Default 64 */
	uint32_t hello_timeout_ms;   /**< from connect to hello. Default 5000 */
	uint32_t stage_timeout_ms;   /**< one stage. Default 30000 */
	uint32_t session_timeout_ms; /**< all stages up to ready. Default 120000 */
	uint32_t plugin_warn_ms; /**< a call that takes longer is named in the log. Default 5000 */
	uint32_t max_message;    /**< bytes of one message. Default 65536, most 1 MiB */
	uint32_t max_rounds;     /**< of one stage. Default 64 */
	uint32_t max_history;    /**< entries of a session. Default 16 */
};

/** Set `size` and the defaults. */
void ndx_negotiation_server_attr_init(struct ndx_negotiation_server_attr *attr);

/** Numbers of a server, since it was created. */
struct ndx_negotiation_server_stats {
	uint64_t accepted;  /**< connections */
	uint64_t refused;   /**< too many, no such variant, `open` failed */
	uint64_t strangers; /**< connections that never said a proper hello */
	uint64_t completed; /**< sessions that got to the end of stage ready */
	uint64_t failed;    /**< sessions that failed, before or after that */
	uint64_t resumed;   /**< sessions that got a new transport in mid-stage */
	uint32_t alive;     /**< sessions now */
	uint32_t threads;   /**< of the pool, now */
};

/**
 * Create a server that listens and answers at once. The log has each address that it listens at; of
 * clients that never get a session it has ten in ten seconds, then how many were left out.
 *
 * @param[out] out  untouched on failure; release with ndx_negotiation_server_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL, no variant, or a limit of 0 or too large; the text names it
 * @retval NDX_E_INVALID_ADDRESS   the address is malformed, or not of this host
 * @retval NDX_E_SHARING_VIOLATION the port is in use at one of its addresses
 * @retval NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES no room, no descriptor, no thread
 *
 * Thread safety: any thread. Blocks: while the system resolves a name.
 */
enum ndx_status ndx_negotiation_server_create(const struct ndx_negotiation_server_attr *attr,
                                              struct ndx_negotiation_server **out);

/**
 * End all sessions and release. Returns when the last `closed` has returned: a plugin's function
 * that does not return holds it up. NULL is a no-op. Not in a callback of the server's; in one of
 * an adapter it does not wait: the server goes behind its last session, and keeps its variants
 * until then.
 */
void ndx_negotiation_server_close(struct ndx_negotiation_server *server);

/**
 * Where it listens: the first of its addresses; the others have the same port.
 *
 * @param[in,out] length  room in bytes; set to the length there is
 * @retval NDX_E_BUFFER_OVERFLOW does not fit; nothing was copied
 */
enum ndx_status ndx_negotiation_server_get_address(struct ndx_negotiation_server *server,
                                                   struct sockaddr *address, socklen_t *length);

/** Copy the numbers. Any thread. */
void ndx_negotiation_server_get_stats(struct ndx_negotiation_server *server,
                                      struct ndx_negotiation_server_stats *out);

NDX_DECLS_END

#endif
