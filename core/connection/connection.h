/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors and listeners: the types and functions that the files of this floor share, and the
 * functions that the entry points call. */
#ifndef CONNECTION_CONNECTION_H
#define CONNECTION_CONNECTION_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "adapter.h"
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/overlapped_list.h>
#include "base_loop.h"
#include "base_private.h"
#include "disconnect.h"
#include "oob_link.h"

/* The latest transitions; number n is at n % NDX_HISTORY_MAX. */
struct conn_history {
	uint64_t total;
	struct ndx_transition last[NDX_HISTORY_MAX];
};

/* A transition as a connector keeps it: the cause is allocated, because few connectors fail. */
struct conn_change {
	uint64_t time_ns;
	const char *from;
	const char *event;
	const char *to;
	enum ndx_status status;
	int32_t native;
	char *cause; /* NULL: none, or out of memory */
};
struct conn_changes {
	uint64_t total;
	struct conn_change last[NDX_HISTORY_MAX];
};

/* What is kept of a connector that failed and was closed. */
struct conn_postmortem {
	uint32_t id;
	uint32_t qp_id;
	bool passive;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	struct conn_history history;
};
#define CORE_POSTMORTEMS 8

enum conn_phase {
	CONN_NEW,              /* may connect, or take a listener's request */
	CONN_DESCRIBED,        /* has its queue pair, waits for the peer's description */
	CONN_AWAIT_REQUEST,    /* waits for a listener's request */
	CONN_CONNECTING,       /* active: waits for the peer's answer */
	CONN_CONNECT_RESPONSE, /* active: has the answer, waits for complete_connect */
	CONN_COMPLETING,       /* active: complete_connect is in progress */
	CONN_HAVE_REQUEST,     /* passive: has a request, waits for accept or reject */
	CONN_ACCEPTING,        /* passive: accepted, waits for the active side */
	CONN_UP,               /* established or ending; `machine` has the details */
	CONN_PEER_GAVE_UP,     /* the peer gave up before the consumer answered; see gone_status */
	CONN_FAILED,           /* cannot be used again */
};

enum conn_command {
	CONN_DO_CONNECT = 1 << 0,
	CONN_DO_COMPLETE = 1 << 1,
	CONN_DO_ACCEPT = 1 << 2,
	CONN_DO_NOTIFY = 1 << 3,
	CONN_DO_DISCONNECT = 1 << 4,
	CONN_DO_RENDEZVOUS = 1 << 5,
	CONN_DO_PROVE = 1 << 6,
};

/*
 * The events of a connector, in the order in which the control thread handles them. They come by
 * upcalls of several threads, so the order of their arrival says little: the failure of a request
 * may overtake the goodbye behind which the peer closed its queue pair. The order here is that in
 * which events happen to a connection. Each is in the queue once at most, so the queue is a set of
 * bits, and no event needs memory.
 */
enum conn_event {
	CONN_EVENT_CONNECTED = 1 << 0,
	CONN_EVENT_ESTABLISHED = 1 << 1,
	CONN_EVENT_REPORTS = 2, /* place of the bits of enum ndx_spi_report, ... */
	CONN_EVENT_OOB = 8,     /* ... and of those of enum oob_event */
};

/* Which call of the own side began the end of the connection. */
enum conn_own_end {
	CONN_NOT_ENDED,    /* none: the peer, or a failure */
	CONN_DISCONNECTED, /* a disconnect */
	CONN_RELEASED,     /* the close of the queue pair or the connector, without a disconnect */
};

/* The arguments of an upcall, until the control thread handles it. */
struct conn_upcall {
	bool has_params; /* of the peer; stored in the inbox */
	enum ndx_status status;
	int32_t native;
};

/* A connection whose ends were described to each other. */
struct conn_rendezvous {
	struct ndxp_list node; /* in the adapter's `described`; servers only */
	bool on;
	bool server;
	struct ndx_listener *listener; /* server: the listener to which its client connects */
	uint32_t scope;                /* client: the scope of a peer on the same link */
	uint32_t inbound_read_limit;   /* as requested */
	uint32_t outbound_read_limit;
	uint8_t own[16]; /* cookies */
	uint8_t peer[16];
};

/* The queue of events. */
struct conn_inbox {
	uint32_t events; /* bits of enum conn_event */
	struct conn_upcall connected;
	struct conn_upcall established;
	struct ndx_spi_params *params; /* for an upcall that has some; NULL: none is expected */
};

/* A connection without a connection manager, see oob/oob_connect.c. Under the adapter lock. */
struct conn_pair {
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
};
struct conn_oob {
	bool on;
	struct conn_pair *pair;    /* NULL: not described */
	struct oob_link *link;     /* NULL: none */
	struct oob_stream *stream; /* the consumer's; valid as long as `link` */
};

struct ndx_connector {
	struct ndx_adapter *adapter;
	uint32_t id;
	uint32_t qp_id;        /* of the latest queue pair; under the lock, like node */
	struct ndxp_list node; /* in adapter->connectors */
	struct ndx_spi_conn *native;
	struct ndx_connector_attr attr;
	struct ndxp_job work; /* runs connector_work() on the control thread */
	struct ndxp_job last; /* frees the connector, after all jobs that use it */

	/* Under the adapter lock: */
	enum conn_phase phase;
	enum ndx_status gone_status;
	bool bound;
	bool closed; /* the handle is closed */
	bool dead;   /* destroyed; `last` is queued */
	unsigned commands;
	struct ndx_spi_qp *qp;
	struct sockaddr_storage local; /* copied from `native` by conn_note_local() */
	struct sockaddr_storage destination;
	socklen_t destination_len;
	struct ndx_spi_params own;
	struct ndx_spi_params peer;
	bool peer_known;
	struct ndx_overlapped *ov;    /* get_connection_request, connect, complete, accept */
	struct ndxp_ov_list notifies; /* notify_disconnect */
	struct ndx_overlapped *ov_disconnect;
	struct ndx_listener *listener; /* CONN_AWAIT_REQUEST: the listener that it waits at */
	uint32_t asked_id;             /* of that listener, until the request has completed */
	enum ndx_disconnect_reason indicated; /* what the consumer was told; NONE: nothing */
	struct ndxp_list wanted;
	struct disconnect machine;
	bool peer_disc;                      /* the peer's goodbye has arrived */
	bool passive;                        /* has, or had, a listener's request */
	uint64_t ending_since;               /* when it left the state UP; 0: not yet */
	enum ndx_disconnect_outcome outcome; /* the outcome if it fails from here on */
	struct conn_changes history;
	char *failure;             /* text of the latest failure that was logged; NULL: none */
	enum conn_own_end own_end; /* what the own side did to a connection that was up */
	struct ndxp_timer connect_timer;
	struct ndxp_timer drain_timer;
	struct ndxp_timer disconnect_timer;

	/* Filled by upcalls, under inbox_lock: */
	struct ndxp_lock inbox_lock;
	struct conn_inbox inbox;
	int32_t report_native;
	const char *cause;

	struct conn_proof *proof;          /* in progress; NULL: none; under the adapter lock */
	struct conn_rendezvous rendezvous; /* under the adapter lock */
	struct conn_oob oob;
};

/* The size of a provider's own text for a cause. */
#define CONN_CAUSE sizeof(((struct ndx_transition *)NULL)->cause)

/* An owner for base_loop_behind(): an operation of this connector, on this listener (0: none). */
static inline uintptr_t core_whose(uint32_t connector_id, uint32_t listener_id)
{
	/* Each id gets half the bits. Where those are few, two ids may collide; then an operation
	 * only completes earlier than necessary. */
	const unsigned half = sizeof(uintptr_t) * 4;
	const uintptr_t mask = ((uintptr_t)1 << half) - 1;

	return (connector_id & mask) | (listener_id & mask) << half;
}

static inline bool conn_is_over(const struct ndx_connector *c)
{
	return c->phase != CONN_UP || disconnect_is_over(&c->machine);
}

struct ndx_listener {
	struct ndx_adapter *adapter;
	uint32_t id;
	struct ndxp_list node; /* in adapter->listeners; under the lock */
	struct ndx_spi_listener *native;
	struct ndxp_job work;
	struct ndxp_job last;
	/* Under the adapter lock: */
	bool bound;
	bool listening;
	bool dead;
	bool rendezvous;  /* requests go to connectors by their cookies */
	uint32_t backlog; /* 0: no limit */
	uint32_t waiting; /* requests that no connector has taken */
	struct ndx_spi_request *requests;
	struct ndx_spi_request **requests_end;
	struct ndx_spi_request *
		*hand;           /* the link behind the request that drop_stale() checked last */
	struct ndxp_list wanted; /* connectors that wait for a request */
	/* Filled by upcalls, under inbox_lock: */
	struct ndxp_lock inbox_lock;
	struct ndx_spi_request *inbox;
	struct ndx_spi_request **inbox_end;
	enum ndx_status failed; /* the provider's failure; NDX_OK: none */
	int32_t failed_native;
};

/* The outcome of an event, for log, history and counters. Zero: none. */
struct conn_result {
	enum ndx_status status;
	int32_t native;
	const char *cause; /* may be NULL */
};

/* Everything below: control thread, adapter lock held, unless stated otherwise. A function calls
 * only functions that are declared above it. */

/* ---- inbox.c ---- */

/* Prepare for an attempt: allocate memory for the peer's answer. */
enum ndx_status conn_inbox_ready(struct ndx_connector *c);
/* Drop everything in the inbox. */
void conn_inbox_clear(struct ndx_connector *c);
/* The reports in the inbox. Any thread. */
uint32_t conn_inbox_reports(struct ndx_connector *c);
/* Move the events to *inbox, those out of band only with `oob`; the caller frees the params. False:
 * there are none. */
bool conn_inbox_take(struct ndx_connector *c, bool oob, struct conn_inbox *inbox);
/* Put events back that can only be handled later; bits of enum conn_event. */
void conn_inbox_put_back(struct ndx_connector *c, uint32_t events);
/* The upcalls of the same names. Any thread. */
void host_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                    const struct ndx_spi_params *params);
void host_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                      const struct ndx_spi_params *params);
void host_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause);
/* A message of the peer arrived out of band. The link's lock is held. */
void conn_oob_received(struct ndx_connector *c, enum oob_event event);

/* ---- history.c ---- */

extern const struct conn_result conn_fine;
extern const struct conn_result conn_canceled;
/* Change the phase, until the connection is up; log, record and count the transition. Any thread,
 * lock held. */
void conn_enter(struct ndx_connector *c, enum conn_phase next, const char *event,
                const struct conn_result *result);
/* Log and record that `event` came in the state `from`. Any thread, lock held. */
void conn_note(struct ndx_connector *c, const char *from, const char *event,
               const struct conn_result *result);
/* Free the history of a connector that is being destroyed. */
void conn_forget(struct ndx_connector *c);
/* Log that the attempt or the connection failed: one record, then the history. Keep the record for
 * conn_explain(). */
void conn_log_failure(struct ndx_connector *c, const char *what, const struct conn_result *result);
/* Where to look when a connect has had no answer in time. */
#define CONN_NO_ANSWER_HINT \
	"the server has not accepted or has no descriptor left, or a firewall drops the packets"
/* "connector#3 ...: aborted: NDX_E_...: cause (104: Connection reset by peer)", in
 * BASE_FAILURE_TEXT bytes at `out`. Any thread. */
void conn_failure_text(const struct ndx_connector *c, const char *what,
                       const struct conn_result *result, char *out);
/* The state of the attempt or of the connection; a string constant. */
const char *conn_state_name(const struct ndx_connector *c);
/* Count the end of a connection. */
void conn_count_end(struct ndx_connector *c);
/* The connector is closed and about to be freed: if it failed, keep a record for the snapshot. */
void conn_keep_postmortem(struct ndx_connector *c);
void conn_describe(const struct ndx_connector *c, struct conn_postmortem *out);
/* Any thread, lock held: like ndx_connector_get_history(). */
void conn_get_history(const struct ndx_connector *c, struct ndx_transition *list, size_t *count,
                      uint64_t *total);
/* "connector#3 qp#2 10.0.0.1:4000 -> 10.0.0.2:5000", for the log; as long as only the peer's
 * address is known, "connector#3 qp#2 to 10.0.0.2:5000". */
#define CONN_TEXT 224
const char *conn_text(const struct ndx_connector *c, char text[CONN_TEXT]);

/* ---- state.c ---- */

/* Any thread. */
enum ndx_status conn_check_private_data(const char *call, const void *data, size_t len,
                                        uint32_t most);
/* Whether the queue pair can be connected through `c`. */
enum ndx_status conn_check_qp(const char *call, const struct ndx_connector *c,
                              const struct ndx_spi_qp *qp);
/* Any thread, lock held: store the requested limits, lowered to those of the adapter. */
void conn_set_wishes(struct ndx_connector *c, uint32_t inbound, uint32_t outbound,
                     const void *private_data, size_t private_data_len);
/* Store the limits that both sides allow for the provider. */
void conn_agree(struct ndx_connector *c);
/* Lock held, and no other thread is in the provider's half: copy its local address. The provider
 * learns it on the control thread, without the lock, so other threads read only the copy. */
void conn_note_local(struct ndx_connector *c);
/* Any thread: give a command to the control thread. */
void conn_command(struct ndx_connector *c, unsigned what);
void conn_attach(struct ndx_connector *c, struct ndx_spi_qp *qp);
/* Detach the queue pair from the connector. */
void conn_release_qp(struct ndx_connector *c);
/* Complete an operation of the connector; does nothing if *ov is NULL. */
void conn_complete_ov(struct ndx_connector *c, struct ndx_overlapped **ov, enum ndx_status status,
                      uint32_t information, int32_t native);
/* Called first in functions that cancel or close: see base_loop_hurry(). */
void conn_hurry(struct ndx_connector *c);
/* The reason to report for the peer's goodbye on this stack. */
enum ndx_disconnect_reason conn_goodbye(const struct ndx_connector *c);
/* Count the outcome of an attempt. */
void conn_count_attempt(struct ndx_connector *c, enum ndx_status status);
/* The number of connections of an adapter that are up. Any thread, lock held. */
uint32_t conn_count_up(const struct ndx_adapter *adapter);

/* ---- oob/oob_binding.c ---- */

/* Whether the provider connects queue pairs by their descriptions, without a connection manager. */
bool conn_lacks_cm(const struct ndx_connector *c);
/* The connection has ended, or will not be made: release the out-of-band link. */
void conn_oob_end(struct ndx_connector *c);
/* Make the connector an end of the link. False: the carrier has ended already. */
bool conn_oob_attach(struct ndx_connector *c, struct oob_link *link);
/* Can messages that arrived out of band be handled now? */
bool conn_oob_may_handle(const struct ndx_connector *c);

/* ---- proof.c ---- */

struct conn_proof;

/* Whether the provider proves the path of this connection. Any thread, lock not held. */
bool conn_can_prove(const struct ndx_connector *c) NDX_PRIVATE(conn_can_prove);
/* Prove both directions of a connection that is up, by the numbers that this end writes and that
 * the peer does, which has to do the same. Completes with NDX_OK and `information` as below, at the
 * latest after `ms`, also if the connection ends. After an attempt that has failed: completes with
 * what is known. NDX_E_CANCELED: cancelled, or closed. Any thread, lock not held. */
enum ndx_status conn_prove(struct ndx_connector *c, uint64_t write, uint64_t expect, uint32_t ms,
                           struct ndx_overlapped *ov) NDX_PRIVATE(conn_prove);
/* Cancel an attempt to connect, or the proof. Calls on an established connection, for example
 * notify_disconnect, go on. Any thread, lock not held. */
void conn_cancel_attempt(struct ndx_connector *c) NDX_PRIVATE(conn_cancel_attempt);
/* The `information`: how far the own writes got, what arrived of the peer's, and whether the peer's
 * device refused access. */
#define CONN_PROOF_WRITTEN(information) ((information)&3u) /* enum ndx_spi_proved */
#define CONN_PROOF_SEEN(information) ((information) >> 2 & 3u)
#define CONN_PROOF_DENIED 0x10u
/* Begin a proof that was asked for. */
void conn_proof_begin(struct ndx_connector *c);
/* Complete the proof if there is one whose outcome is known. */
void conn_proof_look(struct ndx_connector *c);
/* The same with what is known now. */
void conn_proof_end(struct ndx_connector *c);
/* Complete the proof if there is one: cancelled. */
void conn_proof_cancel(struct ndx_connector *c);

/* ---- rendezvous_match.c ---- */

#define CONN_COOKIE ((size_t)16)
#define CONN_COOKIES (2 * CONN_COOKIE) /* the server's, the client's */
/* Drop one user of the adapter's listeners for described ends. */
void conn_rendezvous_drop_user(struct ndx_adapter *adapter);
/* End the rendezvous; does nothing if there is none. */
void conn_rendezvous_end(struct ndx_connector *c);
/* The connector for this request: *c, or NULL if the connector is not ready. False: none. */
bool conn_rendezvous_find(struct ndx_adapter *adapter, const struct ndx_spi_request *request,
                          struct ndx_connector **c);
/* Accept the request that the connector has taken. */
void conn_rendezvous_accept(struct ndx_connector *c);
/* Whether the server that answered is the described one. */
bool conn_rendezvous_is_peer(const struct ndx_connector *c);
/* Match the waiting requests with connectors again. */
void listener_look_again(struct ndx_listener *l);

/* ---- attempt.c ---- */

/* End the attempt: detach the queue pair, and go to the phase `next`. */
void conn_give_up(struct ndx_connector *c, enum conn_phase next, const char *event,
                  const struct conn_result *result);
/* Fail the attempt. */
void conn_end_attempt(struct ndx_connector *c, enum conn_phase next,
                      const struct conn_result *result);

/* ---- oob/oob_connect.c ---- */

enum ndx_status conn_oob_describe(struct ndx_connector *c, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out);
/* The connector has no stream, and the peer needs none: conn_oob_set_stream(NDX_NO_OOB_STREAM). */
bool conn_oob_does_without(const struct ndx_connector *c, const struct ndx_peer_description *peer);
enum ndx_status conn_oob_check(const struct ndx_connector *c,
                               const struct ndx_peer_description *peer);
void conn_oob_start(struct ndx_connector *c, const struct ndx_peer_description *peer);
/* The control thread's part of conn_oob_start(). */
enum ndx_status conn_oob_connect(struct ndx_connector *c);
void conn_oob_handle(struct ndx_connector *c, unsigned events);
/* Any thread, lock not held: carry goodbyes over `link`; not after connect_peer. */
enum ndx_status conn_oob_set_link(struct ndx_connector *c, struct oob_link *link)
	NDX_PRIVATE(conn_oob_set_link);
/* Any thread, lock not held: like ndx_connector_set_oob_stream(). */
enum ndx_status conn_oob_set_stream(struct ndx_connector *c, int fd);

/* ---- listener.c ---- */

/* Any thread, lock not held. Like the calls of the same names; their arguments are checked. */
enum ndx_status listener_create(struct ndx_adapter *adapter, struct ndx_listener **out);
enum ndx_status listener_bind(struct ndx_listener *l, const struct sockaddr *address,
                              socklen_t address_len);
enum ndx_status listener_listen(struct ndx_listener *l, uint32_t backlog);
enum ndx_status listener_get_local_address(struct ndx_listener *l, struct sockaddr *address,
                                           socklen_t *length);
void listener_cancel(struct ndx_listener *l);
void listener_close(struct ndx_listener *l);
/* From now on requests go to connectors by their cookies. */
void listener_set_rendezvous(struct ndx_listener *l);
/* Lock held: the listener for described ends at that address, or at any (NULL); NULL: none. */
struct ndx_listener *listener_find_rendezvous(const struct ndx_adapter *adapter,
                                              const struct sockaddr_storage *address);
/* Remove a connector from its listener's queue. */
void listener_forget(struct ndx_connector *c);
/* The upcall `request`. Any thread. */
void listener_request(struct ndx_spi_request *request);
void listener_failed(struct ndx_spi_listener *native, enum ndx_status status, int32_t cause);
/* For the snapshot; lock held. */
struct listener_view {
	uint32_t id;
	struct sockaddr_storage local;
	bool listening;
	uint32_t backlog;
	uint32_t waiting; /* requests */
	uint32_t wanted;  /* connectors */
};
void listener_look(struct ndxp_list *node, struct listener_view *view);

/* ---- rendezvous.c ---- */

/* End an attempt that has not begun, with `status`. */
void conn_rendezvous_cancel(struct ndx_connector *c, const char *event, enum ndx_status status);
/* No end is described any more: close the listeners. Control thread, lock not held. */
void conn_rendezvous_close(void *arg);
/* Any thread, lock not held: like ndx_connector_describe(); `near` may be AF_UNSPEC. */
enum ndx_status conn_describe_near(struct ndx_connector *c, struct ndx_qp *qp, enum ndx_role role,
                                   uint32_t inbound_read_limit, uint32_t outbound_read_limit,
                                   const struct sockaddr_storage *near,
                                   struct ndx_peer_description *out)
	NDX_PRIVATE(conn_describe_near);
/* Any thread, lock not held: like ndx_connector_connect_peer(). */
enum ndx_status conn_connect_peer(struct ndx_connector *c, const struct ndx_peer_description *peer,
                                  struct ndx_overlapped *ov);

/* ---- control.c ---- */

/* The lock is not held. */
void connector_work(void *arg);
void conn_step(struct ndx_connector *c, enum disconnect_event ev);
void conn_went_up(struct ndx_connector *c);
/* Free the connector if nothing needs it any more. */
void conn_reap(struct ndx_connector *c);
/* Any thread. */
enum ndx_disconnect_reason conn_reason(struct ndx_connector *c);
/* Any thread: fill the cause that was reported, and its native code. */
void conn_get_cause(struct ndx_connector *c, struct conn_result *result);
/* "aborted", and what the own side had done before. */
const char *conn_abort_words(const struct ndx_connector *c);

/* ---- explain.c ---- */

/* Any thread, lock held: why the connector failed, or how its connection ended; "" if neither
 * happened. `size` is more than 4. */
void conn_explain(struct ndx_connector *c, char *out, size_t size);

/* ---- close.c ---- */

/* Any thread, lock not held: the caller of disconnect stops waiting. `ov` completes CANCELED if it
 * is still in flight; the teardown and the connector's other operations go on. */
void conn_withdraw_disconnect(struct ndx_connector *c, struct ndx_overlapped *ov);
/* Like the calls of the same names; any thread, lock not held. */
void conn_cancel(struct ndx_connector *c);
void conn_close(struct ndx_connector *c);
enum ndx_status conn_reject(struct ndx_connector *c, const void *data, size_t len);
/* Timers; the lock is not held. */
void conn_on_connect_timeout(void *arg);
void conn_on_drain_timeout(void *arg);
void conn_on_disconnect_timeout(void *arg);

/* ---- qp.c ---- */

/* Any thread, lock not held. False: the device did not return all requests in time. */
bool qp_flush(struct ndx_spi_qp *qp);
void qp_close(struct ndx_spi_qp *qp);

/* ---- qp_query.c ---- */

/* Any thread, lock held: the state of a queue pair; everything but `size`. */
void qp_query(struct ndx_spi_qp *qp, struct ndx_qp_info *info);

/* ---- spi_host.c ---- */

extern const struct ndx_host core_host;

#endif
