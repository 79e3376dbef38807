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
#include "handshakes.h"
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
	bool cut;     /* in the pool, and no transport is of use for it any more */
	bool anew;    /* in the pool, and has another transport: then the stage begins anew */
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

/* What was logged in the current period: see server_log_limit.c. */
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
	struct handshakes handshakes;
	struct engine engine;
	struct server_port ports[SERVER_PORTS_MOST];
	unsigned port_count;
	struct ndxp_timer tick;
	struct sockaddr_storage address;           /* of the first port */
	struct ndxp_list clients;                  /* in the order of their numbers */
	uint32_t listed;                           /* how many these are */
	struct ndxp_list walks;                    /* of server_view.c */
	struct server_log_limit log_limit;         /* of clients without a session, ... */
	struct server_log_limit batch_log_limit;   /* ... of queue pairs that are not added */
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
/* Count one that has connected too soon after others, and is refused. */
void server_count_too_fast(struct ndx_negotiation_server *server);
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
/* The same for a batch of queue pairs that is not added, or that the client gives up. */
bool server_may_log_batch(struct ndx_negotiation_server *server);
/* Log how many of each were not logged, if the period is over. */
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
/* Over another transport: begin the stage anew, if the dialogue has not failed. A result as that
 * of a role's function. */
bool client_begin_anew(struct client *c);
/* Why a session that is `cut` ends. */
extern const char client_cut[];

/* server_client.c; loop thread: a client has connected. */
void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from);

/* server_task.c */
/* On the pool, for the driver. */
void client_work(struct ndx_session *s);
bool client_is_prompt(struct ndx_session *s);
/* What a program has given for several queue pairs, all together. */
struct given {
	uint32_t queue_pairs;
	uint64_t memory;
};
struct lane;
/* Take `count` entries, and add them up. Each has to have both objects, or none; else `why` says
 * which has not. */
enum ndx_status client_take_list(struct lane *const *lanes, uint32_t count,
                                 const struct ndx_session_queue_pair *list, struct given *g,
                                 char why[BUDGET_TEXT]);
/* Loop thread: give the client to the pool, for its end, if that may block. */
void client_close_task(struct client *c);

#endif
