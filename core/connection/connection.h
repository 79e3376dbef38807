/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors and listeners: what the files of the floor share, and what stands above calls. */
#ifndef CONNECTION_CONNECTION_H
#define CONNECTION_CONNECTION_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "adapter.h"
#include "base_list.h"
#include "base_lock.h"
#include "base_loop.h"
#include "disconnect.h"
#include "wire.h"

/* The latest transitions; number n is at n % NDX_HISTORY_MAX. */
struct conn_history {
	uint64_t total;
	struct ndx_transition last[NDX_HISTORY_MAX];
};

/* The same, as a connector keeps it: there are many, and few have failed. */
struct conn_change {
	uint64_t time_ns;
	const char *from;
	const char *event;
	const char *to;
	enum ndx_status status;
	int32_t native;
	char *cause; /* NULL: none, or there was no memory for it */
};
struct conn_changes {
	uint64_t total;
	struct conn_change last[NDX_HISTORY_MAX];
};

/* What is kept of a connector that failed, once it is closed. */
struct conn_grave {
	uint32_t id;
	uint32_t qp_id;
	bool passive;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	struct conn_history history;
};
#define CORE_GRAVES 8

enum conn_phase {
	CONN_NEW,        /* may connect, or take a request */
	CONN_DESCRIBED,  /* has its queue pair, waits to be told of its peer */
	CONN_WANTED,     /* waits for a listener's request */
	CONN_CONNECTING, /* active: no answer yet */
	CONN_ANSWERED,   /* active: the consumer thinks */
	CONN_COMPLETING, /* active: complete_connect is under way */
	CONN_REQUESTED,  /* passive: the consumer thinks */
	CONN_ACCEPTING,  /* passive: the active side thinks */
	CONN_UP,         /* from established on; the rest is in `machine` */
	CONN_GONE,       /* the peer gave up while the consumer thought; see gone_status */
	CONN_FAILED,     /* of no use any more */
};

enum conn_command {
	CONN_DO_CONNECT = 1 << 0,
	CONN_DO_COMPLETE = 1 << 1,
	CONN_DO_ACCEPT = 1 << 2,
	CONN_DO_NOTIFY = 1 << 3,
	CONN_DO_DISCONNECT = 1 << 4,
	CONN_DO_MEET = 1 << 5,
};

/* An upcall that carries something, until the control thread takes it. */
struct conn_mail {
	bool full;
	bool has_params; /* the peer's; they are in the connector's inbox_params */
	enum ndx_status status;
	int32_t native;
};

/* A connection whose ends were told of each other. */
struct conn_meeting {
	struct base_list node; /* of the adapter's `described`: servers only */
	bool on;
	bool server;
	struct ndx_listener *listener; /* server: where its client comes to */
	uint32_t scope;                /* client: of a peer on the same link */
	uint32_t inbound_read_limit;   /* as wished */
	uint32_t outbound_read_limit;
	uint8_t own[16]; /* cookies */
	uint8_t peer[16];
};

/* What upcalls have brought. */
struct conn_news {
	struct conn_mail connected;
	struct conn_mail established;
	struct ndx_spi_params *params; /* of whichever says that it has some; the taker's */
	uint32_t reports;
};

/* A connection that has no connection manager; oob/direct.c. Under the adapter lock. */
struct conn_pair {
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
};
struct conn_direct {
	bool on;
	struct conn_pair *pair;  /* NULL: was never described */
	struct wire *wire;       /* NULL: none */
	struct channel *channel; /* by hand; as long as the wire is there */
};

struct ndx_connector {
	struct ndx_adapter *adapter;
	uint32_t id;
	uint32_t qp_id;        /* of the latest queue pair; under the lock, as node */
	struct base_list node; /* in adapter->connectors */
	struct ndx_spi_conn *native;
	struct ndx_connector_attr attr;
	struct base_job work; /* runs connector_work() on the control thread */
	struct base_job last; /* frees the connector, behind everything that names it */

	/* under the adapter lock: */
	enum conn_phase phase;
	enum ndx_status gone_status;
	bool bound;
	bool closed; /* the handle is gone */
	bool dead;   /* destroyed; waits for `last` */
	unsigned commands;
	struct ndx_spi_qp *qp;
	struct sockaddr_storage destination;
	socklen_t destination_len;
	struct ndx_spi_params own;
	struct ndx_spi_params peer;
	bool peer_known;
	struct ndx_overlapped *ov; /* get_connection_request, connect, complete, accept */
	struct ndx_overlapped *ov_notify;
	struct ndx_overlapped *ov_disconnect;
	struct ndx_listener *listener; /* CONN_WANTED: whose */
	uint32_t asked_id;             /* of the listener, until the request for it has ended */
	struct base_list wanted;
	struct disconnect machine;
	bool indicated;                      /* the consumer had its indication */
	bool peer_disc;                      /* the peer's goodbye came */
	bool passive;                        /* it holds, or held, a listener's request */
	uint64_t ending_since;               /* left the state UP; 0: has not */
	enum ndx_disconnect_outcome outcome; /* should it fail from here on */
	struct conn_changes history;
	struct base_timer connect_timer;
	struct base_timer drain_timer;
	struct base_timer disconnect_timer;

	/* filled by upcalls, under its own lock: */
	struct base_lock inbox_lock;
	unsigned news; /* bits of enum wire_news */
	struct conn_mail connected;
	struct conn_mail established;
	struct ndx_spi_params *inbox_params; /* of whichever has some; NULL: none is awaited */
	uint32_t reports;
	int32_t report_native;
	const char *cause;

	struct conn_meeting meeting; /* under the adapter lock */
	struct conn_direct direct;
};

/* Room for a cause that a provider gave in its own words. */
#define CONN_CAUSE sizeof(((struct ndx_transition *)NULL)->cause)

/* For base_loop_behind(): an operation of this connector's, on this listener (0: on none). */
static inline uintptr_t core_whose(uint32_t connector_id, uint32_t listener_id)
{
	/* Half the bits for each; where those are few, a stranger may be taken for one's own. */
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
	struct base_list node; /* in adapter->listeners; under the lock */
	struct ndx_spi_listener *native;
	struct base_job work;
	struct base_job last;
	/* under the adapter lock: */
	bool bound;
	bool listening;
	bool dead;
	bool meeting;     /* requests go to connectors by their cookies */
	uint32_t backlog; /* 0: no limit */
	uint32_t waiting; /* requests that nobody took */
	struct ndx_spi_request *requests;
	struct ndx_spi_request **requests_end;
	struct ndx_spi_request **hand; /* the link behind the request that was looked at last */
	struct base_list wanted;       /* connectors that wait */
	/* filled by upcalls, under its own lock: */
	struct base_lock inbox_lock;
	struct ndx_spi_request *inbox;
	struct ndx_spi_request **inbox_end;
	enum ndx_status failed; /* the provider says so; NDX_OK: it works */
	int32_t failed_native;
};

/* What an event brought, for log, history and counters. Zero: nothing. */
struct conn_result {
	enum ndx_status status;
	int32_t native;
	const char *cause; /* may be NULL */
};

/* Everywhere below: control thread, lock held, unless said. The order is that of the calls: what
 * stands further down calls what stands further up. */

/* ---- inbox.c ---- */

/* An attempt begins: there is room for the peer's answer. */
enum ndx_status conn_inbox_ready(struct ndx_connector *c);
/* What was said until now is not meant any more. */
void conn_inbox_clear(struct ndx_connector *c);
/* The reports that wait to be taken. Any thread. */
uint32_t conn_inbox_reports(struct ndx_connector *c);
/* False: there is nothing. */
bool conn_inbox_take(struct ndx_connector *c, struct conn_news *news);
/* The upcalls of the same names. Any thread. */
void host_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                    const struct ndx_spi_params *params);
void host_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                      const struct ndx_spi_params *params);
void host_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause);
/* The wire's lock is held: the peer has said something. */
void conn_direct_heard(struct ndx_connector *c, enum wire_news news);

/* ---- history.c ---- */

extern const struct conn_result conn_fine;
extern const struct conn_result conn_canceled;
/* The phase changes, until the connection is up: logged, remembered, counted. Any thread, lock
 * held. */
void conn_enter(struct ndx_connector *c, enum conn_phase next, const char *event,
                const struct conn_result *result);
/* `event` came in the state `from`: logged and remembered. Any thread, lock held. */
void conn_note(struct ndx_connector *c, const char *from, const char *event,
               const struct conn_result *result);
/* The connector goes, and with it what it remembers. */
void conn_forget(struct ndx_connector *c);
/* The attempt or the connection has failed: one record, then the history. */
void conn_log_failure(struct ndx_connector *c, const char *what, const struct conn_result *result);
/* The state, of the attempt or of the connection; a string constant. */
const char *conn_state_name(const struct ndx_connector *c);
/* The connection is over: counted. */
void conn_count_end(struct ndx_connector *c);
/* It was closed and is about to go: what failed is kept for the snapshot. */
void conn_bury(struct ndx_connector *c);
void conn_describe(const struct ndx_connector *c, struct conn_grave *out);
/* Any thread, lock held: as ndx_connector_get_history(). */
void conn_get_history(const struct ndx_connector *c, struct ndx_transition *list, size_t *count,
                      uint64_t *total);
/* "connector#3 qp#2 10.0.0.1:4000 -> 10.0.0.2:5000", for the log. */
#define CONN_TEXT 224
const char *conn_text(const struct ndx_connector *c, char text[CONN_TEXT]);

/* ---- state.c ---- */

/* Any thread. */
enum ndx_status conn_check_private_data(const char *call, const void *data, size_t len,
                                        uint32_t most);
/* May the queue pair be connected through `c`? */
enum ndx_status conn_check_qp(const char *call, const struct ndx_connector *c,
                              const struct ndx_spi_qp *qp);
/* Any thread, lock held: wishes lowered to what the adapter can. */
void conn_set_wishes(struct ndx_connector *c, uint32_t inbound, uint32_t outbound,
                     const void *private_data, size_t private_data_len);
/* What both sides together allow; into the provider's head. */
void conn_agree(struct ndx_connector *c);
/* Any thread: hand a command to the control thread. */
void conn_command(struct ndx_connector *c, unsigned what);
void conn_attach(struct ndx_connector *c, struct ndx_spi_qp *qp);
/* Queue pair and connector part. */
void conn_release_qp(struct ndx_connector *c);
/* `ov` is one of the connector's; what it points to may be NULL: then nothing happens. */
void conn_complete_ov(struct ndx_connector *c, struct ndx_overlapped **ov, enum ndx_status status,
                      uint32_t information, int32_t native);
/* At the beginning of what cancels or closes: see base_loop_hurry(). */
void conn_hurry(struct ndx_connector *c);
/* What the peer's goodbye counts as on this stack. */
enum ndx_disconnect_reason conn_goodbye(const struct ndx_connector *c);
/* How the attempt ended: counted. */
void conn_count_attempt(struct ndx_connector *c, enum ndx_status status);
/* How many of an adapter's connections are up. Any thread, lock held. */
uint32_t conn_count_up(const struct ndx_adapter *adapter);

/* ---- oob/binding.c ---- */

/* Is it for the provider to connect queue pairs by their descriptions? */
bool conn_is_direct(const struct ndx_connector *c);
/* The connection is over, or will not be made: the channel is not needed any more. */
void conn_direct_end(struct ndx_connector *c);
/* What was heard, if this is the time for it; bits. */
unsigned conn_direct_news(struct ndx_connector *c);

/* ---- rendezvous_match.c ---- */

#define CONN_COOKIE ((size_t)16)
#define CONN_COOKIES (2 * CONN_COOKIE) /* the server's, the client's */
/* One of the listener's users less. */
void conn_meeting_drop_user(struct ndx_adapter *adapter);
/* The meeting is over, one way or the other; harmless if there is none. */
void conn_meeting_end(struct ndx_connector *c);
/* Whose request is it: *c, or NULL if that is not ready. False: nobody's. */
bool conn_meeting_find(struct ndx_adapter *adapter, const struct ndx_spi_request *request,
                       struct ndx_connector **c);
/* The request was taken: accept it. */
void conn_meeting_accept(struct ndx_connector *c);
/* The server answered: is it the right one? */
bool conn_meeting_right(const struct ndx_connector *c);
/* Look again whose the requests are. */
void listener_look_again(struct ndx_listener *l);

/* ---- attempt.c ---- */

/* The attempt ends: `c` and its queue pair part; `next` is the phase from here on. */
void conn_give_up(struct ndx_connector *c, enum conn_phase next, const char *event,
                  const struct conn_result *result);
/* The attempt has failed. */
void conn_end_attempt(struct ndx_connector *c, enum conn_phase next,
                      const struct conn_result *result);

/* ---- oob/direct.c ---- */

enum ndx_status conn_direct_describe(struct ndx_connector *c, const struct sockaddr_storage *near,
                                     struct ndx_peer_description *out);
enum ndx_status conn_direct_check(const struct ndx_connector *c,
                                  const struct ndx_peer_description *peer);
void conn_direct_start(struct ndx_connector *c, const struct ndx_peer_description *peer);
/* The control thread's part of it. */
enum ndx_status conn_direct_meet(struct ndx_connector *c);
void conn_direct_take(struct ndx_connector *c, unsigned news);
/* Any thread, lock not held: `wire` is to carry its words; at most until connect_peer. */
enum ndx_status conn_direct_wire(struct ndx_connector *c, struct wire *wire);
/* Likewise: as ndx_connector_set_channel(). */
enum ndx_status conn_direct_set_channel(struct ndx_connector *c, int fd);

/* ---- listener.c ---- */

/* Any thread, lock not held. As the calls of the same names, their arguments checked. */
enum ndx_status listener_create(struct ndx_adapter *adapter, struct ndx_listener **out);
enum ndx_status listener_bind(struct ndx_listener *l, const struct sockaddr *address,
                              socklen_t address_len);
enum ndx_status listener_listen(struct ndx_listener *l, uint32_t backlog);
enum ndx_status listener_get_local_address(struct ndx_listener *l, struct sockaddr *address,
                                           socklen_t *length);
void listener_cancel(struct ndx_listener *l);
void listener_close(struct ndx_listener *l);
/* Requests go to connectors by their cookies. */
void listener_set_meeting(struct ndx_listener *l);
/* Lock held: such a one at that address, or at any (NULL); NULL: there is none. */
struct ndx_listener *listener_find_meeting(const struct ndx_adapter *adapter,
                                           const struct sockaddr_storage *address);
/* Take a connector off its listener's queue. */
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
void listener_look(struct base_list *node, struct listener_view *view);

/* ---- rendezvous.c ---- */

/* Before there was an attempt: it ends with `status`. */
void conn_meeting_cancel(struct ndx_connector *c, const char *event, enum ndx_status status);
/* Nobody meets any more. Control thread, lock not held. */
void conn_meeting_close(void *arg);
/* Any thread, lock not held: as ndx_connector_describe(); `near` may be AF_UNSPEC. */
enum ndx_status conn_describe_near(struct ndx_connector *c, struct ndx_qp *qp, enum ndx_role role,
                                   uint32_t inbound_read_limit, uint32_t outbound_read_limit,
                                   const struct sockaddr_storage *near,
                                   struct ndx_peer_description *out);
/* Likewise: as ndx_connector_connect_peer(). */
enum ndx_status conn_connect_peer(struct ndx_connector *c, const struct ndx_peer_description *peer,
                                  struct ndx_overlapped *ov);

/* ---- work.c ---- */

/* The lock is not held. */
void connector_work(void *arg);
void conn_step(struct ndx_connector *c, enum disconnect_event ev);
void conn_went_up(struct ndx_connector *c);
/* Destroy if nobody needs it any more. */
void conn_reap(struct ndx_connector *c);
/* Any thread. */
enum ndx_disconnect_reason conn_reason(struct ndx_connector *c);

/* ---- close.c ---- */

/* Any thread, lock not held: who asked for the disconnect waits no longer. `ov` completes CANCELED
 * if it is still in flight; the teardown goes on, and so do the connector's other operations. */
void conn_withdraw_disconnect(struct ndx_connector *c, struct ndx_overlapped *ov);
/* As the calls of the same names; any thread, lock not held. */
void conn_cancel(struct ndx_connector *c);
void conn_close(struct ndx_connector *c);
enum ndx_status conn_reject(struct ndx_connector *c, const void *data, size_t len);
/* Timers; the lock is not held. */
void conn_on_connect_timeout(void *arg);
void conn_on_drain_timeout(void *arg);
void conn_on_disconnect_timeout(void *arg);

/* ---- qp.c ---- */

/* Any thread, lock not held. False: the device did not hand the requests back in time. */
bool qp_flush(struct ndx_spi_qp *qp);
void qp_close(struct ndx_spi_qp *qp);

/* ---- spi_host.c ---- */

extern const struct ndx_host core_host;

#endif
