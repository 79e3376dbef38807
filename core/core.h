/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the front door share. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <pthread.h>
#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "base_list.h"
#include "base_lock.h"
#include "base_loop.h"
#include "disconnect.h"
#include "select.h"

/* How long a caller waits for what a provider has promised to finish, before it is given up. */
#define CORE_PROVIDER_PATIENCE_MS 15000u

struct ndx_adapter {
	const struct ndx_provider_ops *ops;
	struct ndx_spi_adapter *native;
	struct ndx_loop *loop;
	struct selection selection;
	struct ndx_adapter_info info;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* some connection changed its state, or refs fell */
	/* under the lock: */
	unsigned refs;    /* the handle, every public object, every goodbye under way */
	unsigned handles; /* public objects alone */
};

void adapter_lock(struct ndx_adapter *adapter);
void adapter_unlock(struct ndx_adapter *adapter);
/* Lock held: sleep until `changed`, at most until deadline_ns; false when time is over. */
bool adapter_wait(struct ndx_adapter *adapter, uint64_t deadline_ns);
/* A public object was made: keeps the adapter. Fills the object's head. */
void adapter_adopt(struct ndx_adapter *adapter, struct ndx_spi_object *object);
void adapter_get(struct ndx_adapter *adapter, bool handle);
void adapter_put(struct ndx_adapter *adapter, bool handle);
/* Wait until the control thread has run the callbacks of all that completed before. */
void adapter_settle(struct ndx_adapter *adapter);

/* Room for the longest ndx_last_error(). */
#define CALL_TEXT 512

/* What a failure on the control thread had to say, for the thread that called. */
struct call_text {
	char text[CALL_TEXT];
};

/* Control thread: before and behind what may fail. */
void call_text_begin(void);
void call_text_take(struct call_text *said);
/* Calling thread: returns `status`; if that is a failure, ndx_last_error() is what was said. */
enum ndx_status call_text_give(enum ndx_status status, const struct call_text *said);

/* Drop a reference of a queue; destroys it with the last. */
void cq_put(struct ndx_spi_cq *cq);
void srq_put(struct ndx_spi_srq *srq);
/* The queue pair's connection has ended or never was; the lock is not held. */
void qp_release(struct ndx_spi_qp *qp);

static inline struct ndx_spi_cq *spi_cq(struct ndx_cq *cq)
{
	return (struct ndx_spi_cq *)(void *)cq;
}

static inline struct ndx_spi_srq *spi_srq(struct ndx_srq *srq)
{
	return (struct ndx_spi_srq *)(void *)srq;
}

static inline struct ndx_spi_qp *spi_qp(struct ndx_qp *qp)
{
	return (struct ndx_spi_qp *)(void *)qp;
}

enum conn_phase {
	CONN_NEW,        /* may connect, or take a request */
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
};

/* An upcall that carries something, until the control thread takes it. */
struct conn_mail {
	bool full;
	enum ndx_status status;
	int32_t native;
	bool has_params;
	struct ndx_spi_params params;
};

struct ndx_connector {
	struct ndx_adapter *adapter;
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
	struct base_list wanted;
	struct disconnect machine;
	bool indicated; /* the consumer had its indication */
	bool peer_disc; /* the peer's goodbye came */
	struct base_timer connect_timer;
	struct base_timer drain_timer;
	struct base_timer disconnect_timer;

	/* filled by upcalls, under its own lock: */
	struct base_lock inbox_lock;
	struct conn_mail connected;
	struct conn_mail established;
	uint32_t reports;
	int32_t report_native;
	const char *cause;
};

static inline bool conn_is_over(const struct ndx_connector *c)
{
	return c->phase != CONN_UP || disconnect_is_over(&c->machine);
}

extern const struct ndx_host core_host;

/* The parts of connector.c, connector_end.c and connector_inbox.c that meet. Lock held, control
 * thread, unless said. */
void connector_work(void *arg);
void conn_step(struct ndx_connector *c, enum disconnect_event ev);
/* The attempt ends: `c` and its queue pair part; `next` is the phase from here on. */
void conn_give_up(struct ndx_connector *c, enum conn_phase next);
void conn_complete_ov(struct ndx_overlapped **ov, enum ndx_status status, uint32_t information,
                      int32_t native);
void conn_went_up(struct ndx_connector *c);
/* Queue pair and connector part. */
void conn_release_qp(struct ndx_connector *c);
/* Destroy if nobody needs it any more. */
void conn_reap(struct ndx_connector *c);
/* "10.0.0.1:4000 -> 10.0.0.2:5000", for the log. */
#define CONN_TEXT 176
const char *conn_text(const struct ndx_connector *c, char text[CONN_TEXT]);
/* Timers; the lock is not held. */
void conn_on_connect_timeout(void *arg);
void conn_on_drain_timeout(void *arg);
void conn_on_disconnect_timeout(void *arg);
/* Any thread. */
enum ndx_status conn_check_private_data(const char *call, const void *data, size_t len,
                                        uint32_t most);
/* Take a connector off its listener's queue. */
void listener_forget(struct ndx_connector *c);
/* The upcall `request`. Any thread. */
void listener_request(struct ndx_spi_request *request);
/* Any thread, lock held: wishes lowered to what the adapter can. */
void conn_set_wishes(struct ndx_connector *c, uint32_t inbound, uint32_t outbound,
                     const void *private_data, size_t private_data_len);
/* What both sides together allow; into the provider's head. */
void conn_agree(struct ndx_connector *c);

#endif
