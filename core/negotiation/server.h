/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the server share. */
#ifndef NEGOTIATION_SERVER_H
#define NEGOTIATION_SERVER_H

#include <pthread.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/list.h>
#include <ndx/spi/loop.h>
#include "budget.h"
#include "session.h"

/* A client that has connected: its session, in the role of the server. */
struct client {
	struct ndx_session session; /* what callbacks see; `servers` and `link` are unused */
	struct ndxp_list node;
	struct ndx_negotiation_server *server;
	bool talking; /* the dialogue has begun */
	bool slow;    /* the log has named it as slow */
	bool done;    /* stage ready has ended */
	bool stopped; /* the server's close has reached it */
	bool idle;    /* after stage ready: between two stages, with the timer for that set */
	bool leaving; /* idle, and had nothing left to do when its timer expired */
	/* For the pool, while a task is there: */
	bool opened;                  /* `open` succeeded, so `closed` must be called */
	int staged;                   /* the latest stage that was reported to the consumer */
	bool over_budget;             /* the failure is that of a limit of the principal */
	struct tls_identity identity; /* from hello on */
	struct budget_share share;
	char address[64];
	struct sockaddr_storage near; /* own address of its first transport */
	/* Since when the session is idle, waits for a transport, or ends: */
	uint64_t rests_ns;
};

static inline struct client *client_of(struct ndx_session *s)
{
	return container_of(s, struct client, session);
}

#define SERVER_PORTS_MOST 16u
#define SERVER_TICK_MS ENGINE_PATIENCE_MS

struct server_port {
	struct ndx_negotiation_server *server;
	struct ndxp_watch watch;
};

/* The clients without a session that were logged in the current period. */
struct server_log_limit {
	uint64_t since_ns;
	uint64_t left_out;
	unsigned logged;
};

struct ndx_negotiation_server {
	struct ndx_negotiation_server_attr attr;
	struct ndx_variant **variants;
	struct tls_context *tls;          /* NULL: plaintext */
	struct ndx_variant_grant *grants; /* copies */
	struct budgets budgets;
	struct engine engine;
	struct server_port ports[SERVER_PORTS_MOST];
	unsigned port_count;
	struct ndxp_timer tick;
	struct sockaddr_storage address; /* of the first port */
	struct ndxp_list clients;        /* in the order of their numbers */
	uint32_t listed;                 /* how many these are */
	struct ndxp_list walks;          /* of server_view.c */
	struct server_log_limit log_limit;
	struct ndx_negotiation_server_stats stats; /* under the lock */
	uint64_t last_session;
	bool stopping;
	bool closing;           /* no thread waits for the last session; under the lock */
	struct ndxp_job finish; /* runs after the last session */
	bool no_descriptors;    /* out of descriptors: accept no client before the next tick, ... */
	bool said_so;           /* ... and this was logged */
	pthread_mutex_t lock;
	pthread_cond_t empty;
};

/* server_counters.c. Add one to a counter of the server. */
void server_count(struct ndx_negotiation_server *server, uint64_t *counter);
/* Count a client that has connected. True: there are too many, and it is refused. */
bool server_is_full(struct ndx_negotiation_server *server);
/* A pool's thread, or the loop thread: the last task of a client has run. */
void server_gone(struct ndx_negotiation_server *server);

/* server_listen.c: listen at all addresses of attr.address. */
enum ndx_status server_listen(struct ndx_negotiation_server *server);
void server_unlisten(struct ndx_negotiation_server *server);
/* Accept clients from now on. */
enum ndx_status server_watch(struct ndx_negotiation_server *server);
/* Loop thread: accept again after a lack of descriptors; stop accepting. */
void server_accept(struct ndx_negotiation_server *server);
void server_unwatch(struct ndx_negotiation_server *server);

/* server_log_limit.c; loop thread: whether to log one more client without a session in full. */
bool server_may_log(struct ndx_negotiation_server *server);
/* Log how many clients were not logged, if the period is over. */
void server_log_left_out(struct ndx_negotiation_server *server, bool last);

/*
 * server_end.c; loop thread. False: the client is gone, do not touch it. True: drive it, so that it
 * sends its last frame.
 */
/* Send the last frame, which is in `last_words`; close when the peer has read it, or in time. */
bool client_end(struct client *c);
/* Fail the client for a cause outside its dialogue. */
bool client_fail(struct client *c, enum ndx_status status, const char *text);
/* The dialogue has failed: log the cause, and tell the peer. */
bool client_report_failure(struct client *c);
/* Its transport is lost. The session may wait for another one. */
void client_lost(struct client *c);
/* The client ends: the rest is a task for the pool, after which the client is freed. */
void client_finish(struct client *c);
/* End the client now, in any state. */
void client_stop(struct client *c);

/* server_view.c; loop thread: the client is about to leave the list of clients. */
void server_pass(struct client *c);

/* server_grants.c: check and copy the table of the attributes; whether it, if there is one, grants
 * the variant to the client. */
enum ndx_status server_keep_grants(struct ndx_negotiation_server *server);
void server_drop_grants(struct ndx_negotiation_server *server);
bool server_grants(const struct client *c, const struct ndx_variant *v);

/* server_hello.c; loop thread: handle the first frame. False: the client is gone. */
bool client_hello(struct client *c, const struct frame *f);

/* server_client.c; loop thread: a client has connected. */
void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from);

/* server_task.c */
/* On the pool, for the driver. */
void client_work(struct ndx_session *s);
/* Loop thread: give the client to the pool, for its end. */
void client_close_task(struct client *c);

#endif
