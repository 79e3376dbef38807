/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * A manager of client sessions: it keeps many sessions to one or several servers, and negotiates
 * each anew when its connection ends.
 *
 * The program adds a session by its attributes. The manager runs it up to the end of stage ready,
 * as ndx_session_run_overlapped() does: the servers of the attributes are asked in their order,
 * without a pause between them. When that fails, or when the connection ends later, the manager
 * pauses and makes a new session. A life is the time from the end of stage ready to the end of the
 * connection; where `provide` gives no connector, to the loss of the session's transport, or to the
 * program's report. Nothing of a life is used in the next one: session, cookie, connector, queue
 * pair and memory keys are new each time.
 *
 *     queued -> connecting -> up -> waiting -> queued ...
 *                          -> waiting -> queued ...       the attempt failed
 *                                        over             cancelled, given up, ended
 *
 * Pauses. After a life of `stable_ms` or more the pause is random, up to `backoff_ms`, so that the
 * clients of a server that ends do not all come back at the same moment. After a failure the pause
 * is `backoff_ms`, doubled with each further failure up to `backoff_most_ms`, and shortened by a
 * random amount of up to a half. A life that was shorter than `stable_ms` counts as a failure.
 * After `attempts` failures in a row the manager gives up.
 *
 * Two ends that connect to each other at the same time (both serve, both have a manager) get two
 * connections, one for each direction: a session belongs to its client, and the protocol joins
 * nothing. Neither waits for the other. A program that wants one connection decides by a rule of
 * its own which end is the client.
 *
 * These calls are in libndx-negotiation (pkg-config ndx-negotiation).
 */
#ifndef NDX_SESSION_MANAGER_H
#define NDX_SESSION_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/negotiation.h>
#include <ndx/negotiation_server.h>
#include <ndx/overlapped.h>
#include <ndx/session.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_session_manager; /* opaque */

/** State of a managed session. */
enum ndx_managed_state {
	NDX_MANAGED_QUEUED,     /**< waits for its turn: `max_connecting` others connect */
	NDX_MANAGED_CONNECTING, /**< an attempt is running: provide, connect, stages up to ready */
	NDX_MANAGED_UP,         /**< stage ready has ended: data can be transferred */
	NDX_MANAGED_WAITING,    /**< an attempt or a life has ended; the next attempt follows */
	NDX_MANAGED_OVER, /**< cancelled, given up or ended; stays in the list until removed */
};

/** Kind of an event. */
enum ndx_managed_event_kind {
	NDX_MANAGED_EVENT_NONE = 0, /**< never told */
	NDX_MANAGED_EVENT_UP = 1,   /**< a life begins */
	NDX_MANAGED_EVENT_DOWN,     /**< the life is over; `status` and `text` say why */
	NDX_MANAGED_EVENT_FAILED,   /**< an attempt failed; `status` and `text` say why */
	NDX_MANAGED_EVENT_GAVE_UP,  /**< last event: as many failures in a row as `attempts` */
	NDX_MANAGED_EVENT_CANCELED, /**< last event: cancelled by the program */
	NDX_MANAGED_EVENT_ENDED,    /**< last event: the peer ended it, see `end_with_peer` */
};

/** What has happened to a managed session. */
struct ndx_managed_event {
	enum ndx_managed_event_kind kind;
	uint32_t life; /**< number of the life that is up or was the latest, from 1; 0: none yet */
	uint64_t id;
	void *context; /**< of ndx_session_manager_add() */
	/** NDX_OK for UP, and if the peer ended the life gracefully; NDX_E_CANCELED for CANCELED */
	enum ndx_status status;
	/** Of a failed attempt: the layer that failed; else NDX_LAYER_NONE. */
	enum ndx_error_layer layer;
	uint32_t failures; /**< failures in a row */
	uint32_t pause_ms; /**< of DOWN and FAILED: until the next attempt; 0: none follows */
	/**
	 * Of UP and DOWN, in the callback only, and valid during the callback: for
	 * ndx_session_get_...(). Else NULL.
	 */
	const struct ndx_session *session;
	char server[128]; /**< of the life, or ""; a longer address is cut */
	char text[256];   /**< readable cause; "" for UP */
	void *reserved[4];
};

/**
 * Callbacks. They run on the threads of the framework's pool: calls for one session one at a time,
 * in order; calls for different sessions concurrently. They may block, which delays only their own
 * session. They may call anything of the manager; in them ndx_session_manager_close() returns
 * NDX_PENDING, because it cannot wait for its caller.
 */
struct ndx_session_manager_events {
	/**
	 * may: an attempt is about to begin; make a connector and a queue pair for it, and register
	 * the memory for the peer anew. Neither may have been used by a former attempt (a
	 * connection cannot be reopened, <ndx/connector.h>). An attempt whose memory has the token
	 * of the attempt before fails with NDX_E_INVALID_CONFIG. On failure the attempt has failed
	 * with the returned status, and `reclaim` is not called. NULL: the plugin has queue pairs
	 * of its own.
	 */
	enum ndx_status (*provide)(void *arg, uint64_t id, void *context,
	                           struct ndx_session_resources *resources);
	/**
	 * may: an attempt has failed, or a life is over, and its session is closed. The program
	 * owns what `provide` gave again, and has to close it. The manager uses none of it any
	 * more.
	 */
	void (*reclaim)(void *arg, uint64_t id, void *context,
	                const struct ndx_session_resources *resources);
	/** may: something has happened. The event is valid during the call. */
	void (*event)(void *arg, const struct ndx_managed_event *event);
	void *arg;
};

/** Attributes of a manager. Call ndx_session_manager_attr_init() first. */
struct ndx_session_manager_attr {
	size_t size;                         /**< set by ndx_session_manager_attr_init() */
	struct ndx_negotiation *negotiation; /**< required; may be closed after the manager only */
	struct ndx_session_manager_events events;
	uint32_t max_sessions;    /**< in the list, in any state. Default 4096 */
	uint32_t max_connecting;  /**< attempts at the same time. Default 32 */
	uint32_t attempts;        /**< failures in a row before it gives up. Default 10 */
	uint32_t backoff_ms;      /**< see above. Default 100 */
	uint32_t backoff_most_ms; /**< longest pause. Default 30000 */
	uint32_t stable_ms; /**< a life as long as this ends a row of failures. Default 1000 */
	/**
	 * Events that the manager keeps for ndx_session_manager_get_event(); further ones are
	 * counted as `events_lost`, and the oldest is dropped. Default 0: none, for programs with
	 * the callback. Maximum 1048576.
	 */
	uint32_t max_events;
	/** true: a connection that the peer ended gracefully is not made again. Default false. */
	bool end_with_peer;
	bool reserved_bytes[3]; /**< false */
	void *reserved[4];      /**< NULL */
};

/** `size` of struct ndx_session_manager_attr in the version that introduced it. */
#define NDX_SESSION_MANAGER_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_session_manager_attr, reserved)

/** As ndx_session_manager_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_session_manager_attr_init_sized(struct ndx_session_manager_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_session_manager_attr_init(struct ndx_session_manager_attr *attr)
{
	ndx_session_manager_attr_init_sized(attr, sizeof(*attr));
}

/** One session in the list. */
struct ndx_managed_entry {
	uint64_t id;
	void *context;
	enum ndx_managed_state state;
	uint32_t life;          /**< lives so far */
	uint32_t attempts;      /**< attempts so far */
	uint32_t failures;      /**< failures in a row */
	enum ndx_status status; /**< of the latest failure or end; NDX_OK: none */
	enum ndx_error_layer layer;
	char server[128]; /**< of the life, or "" */
	char text[256];   /**< cause of `status` */
	void *reserved[4];
};

/** Counters of a manager since its creation, and what there is at present. */
struct ndx_session_manager_stats {
	size_t size; /**< the caller sets sizeof(struct ndx_session_manager_stats) */
	uint64_t added;
	uint64_t attempts;
	uint64_t failed; /**< attempts that failed */
	uint64_t lives;  /**< attempts that reached the end of stage ready */
	uint64_t lost;   /**< lives that ended otherwise than by ndx_session_manager_cancel() */
	uint64_t gave_up;
	uint64_t canceled;
	uint64_t ended; /**< see `end_with_peer` */
	uint64_t events_lost;
	uint32_t sessions; /**< in the list at present, in any state; the sum of the following */
	uint32_t queued;
	uint32_t connecting;
	uint32_t up;
	uint32_t waiting;
	uint32_t over;
};

/** `size` of struct ndx_session_manager_stats in the version that introduced it. */
#define NDX_SESSION_MANAGER_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_session_manager_stats, over)

/**
 * Create a manager without sessions.
 *
 * @param[out] out  untouched on failure; release it with ndx_session_manager_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, no framework, or a limit of 0 or too large;
 *                                      ndx_last_error() names it
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread or descriptor left
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_session_manager_create(const struct ndx_session_manager_attr *attr,
                                           struct ndx_session_manager **out);

/**
 * Cancel all sessions, wait for their last events, and release the manager and the list. The
 * objects of `provide` are reclaimed by then. NULL is a no-op.
 *
 * @param timeout_ms  how long to wait; 0: only begin. NDX_INFINITE waits for callbacks and plugins
 *                    that do not return
 *
 * @retval NDX_OK      released
 * @retval NDX_PENDING not all sessions are over yet; no new session is accepted; call again. Always
 *                     in a callback of an adapter, of a session or of this manager if sessions are
 *                     not over
 *
 * Thread safety: not beside another call on the manager, and after NDX_OK none. Blocks: up to
 * @p timeout_ms; in a callback no.
 */
enum ndx_status ndx_session_manager_close(struct ndx_session_manager *manager, uint32_t timeout_ms);

/**
 * Add a session, which begins at once, or when its turn comes.
 *
 * @param attr     as for ndx_session_create(); `connector`, `qp`, `memory` and `queue_pairs` must
 *                 be unset. `attempts`, `backoff_ms` and `backoff_most_ms` are those of the
 *                 manager instead; one attempt asks each server once. The variant must be of
 *                 the manager's framework; the manager holds a reference. Strings of `servers`
 *                 are copied; `tls`, and what it names, must stay until the session is removed
 * @param context  for the program
 * @param[out] id  number of the session in this manager; may be NULL
 *
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, or what must be unset is set, or as for
 *                                      ndx_session_create()
 * @retval NDX_E_INSUFFICIENT_RESOURCES `max_sessions` are in the list
 * @retval NDX_E_INVALID_DEVICE_STATE   the manager is being closed
 * @return otherwise as ndx_session_create()
 *
 * Thread safety: any thread, also in callbacks. Blocks: as ndx_session_create().
 */
enum ndx_status ndx_session_manager_add(struct ndx_session_manager *manager,
                                        const struct ndx_session_attr *attr, void *context,
                                        uint64_t *id);

/**
 * Cancel a session: its attempt or life ends, `reclaim` and the event CANCELED follow, and its
 * state is then NDX_MANAGED_OVER. No attempt begins any more. To end a connection gracefully,
 * disconnect it first. Operations in flight on the connector complete NDX_E_CANCELED.
 *
 * @retval NDX_OK          noted, or over already
 * @retval NDX_E_NOT_FOUND there is no such session
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_cancel(struct ndx_session_manager *manager, uint64_t id);

/**
 * Remove a session that is over from the list.
 *
 * @retval NDX_OK            removed
 * @retval NDX_E_NOT_FOUND   there is no such session
 * @retval NDX_E_DEVICE_BUSY the session is not over, or its last event is being told
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_remove(struct ndx_session_manager *manager, uint64_t id);

/**
 * Report that the connection of a life has ended, and have the session negotiated anew. The manager
 * learns of the end of a connector by itself (ndx_connector_notify_disconnect()); this call is for
 * what only the program sees: a queue pair of the plugin, a peer that answers wrongly.
 *
 * @param life    of the event UP: a report that is late does not end the next life
 * @param status  the cause, for the event; negative
 *
 * @retval NDX_OK                     noted
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, or @p status is no failure
 * @retval NDX_E_NOT_FOUND            there is no such session
 * @retval NDX_E_INVALID_DEVICE_STATE that life is not up
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_report(struct ndx_session_manager *manager, uint64_t id,
                                           uint32_t life, enum ndx_status status);

/**
 * The sessions, in the order of their numbers.
 *
 * @param[out] list      up to @p *count entries; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list; set to the number filled
 * @param[out] total     number of sessions; may be NULL
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_list(struct ndx_session_manager *manager,
                                         struct ndx_managed_entry *list, size_t *count,
                                         size_t *total);

/**
 * Copy the counters.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_get_stats(struct ndx_session_manager *manager,
                                              struct ndx_session_manager_stats *stats);

/**
 * Take the oldest event that the manager has kept (`max_events`), or be told of the next one. With
 * a port, the events of a manager can be waited for in poll(2) (ndx_port_get_fd()).
 *
 * @param[out] event  filled on NDX_OK, and before @p ov completes NDX_OK; must stay until then
 * @param ov          the overlapped object; see <ndx/overlapped.h>
 *
 * @retval NDX_OK                     @p event is filled; @p ov is untouched
 * @retval NDX_PENDING                there is no event yet; (a) NDX_OK with the next one
 * @retval NDX_E_CANCELED (a)         ndx_session_manager_cancel_event() or the close
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, or @p ov is in flight
 * @retval NDX_E_INVALID_DEVICE_STATE `max_events` is 0, or another request is in flight
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_session_manager_get_event(struct ndx_session_manager *manager,
                                              struct ndx_managed_event *event,
                                              struct ndx_overlapped *ov);

/**
 * Cancel the request for an event: it completes NDX_E_CANCELED. Without a callback it is complete
 * when the call returns. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
void ndx_session_manager_cancel_event(struct ndx_session_manager *manager);

/** Name of a state, for example "waiting". Never NULL. Any thread. */
const char *ndx_managed_state_name(enum ndx_managed_state state);

/** Name of a kind of event, for example "gave up". Never NULL. Any thread. */
const char *ndx_managed_event_name(enum ndx_managed_event_kind kind);

NDX_DECLS_END

#endif
