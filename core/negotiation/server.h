/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the server share.
 *
 * A client belongs to the loop thread, except while one of its tasks is in the pool: then its
 * dialogue belongs to the pool, and the loop thread only records what to do afterwards.
 */
#ifndef NEGOTIATION_SERVER_H
#define NEGOTIATION_SERVER_H

#include <pthread.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/list.h>
#include <ndx/spi/loop.h>
#include "pool.h"
#include "session.h"

enum client_state {
	CLIENT_HELLO,   /* waits for the first frame */
	CLIENT_ACTIVE,  /* the loop thread drives the dialogue */
	CLIENT_POOL,    /* a task is in the pool */
	CLIENT_QP,      /* the queue pair is connecting */
	CLIENT_ORPHAN,  /* its transport broke; waits for another one */
	CLIENT_ENDING,  /* sends its last frame */
	CLIENT_CLOSING, /* its last task is in the pool */
};

struct client {
	struct ndx_session session; /* what callbacks see; `servers` and `link` are unused */
	struct ndxp_list node;
	struct ndx_negotiation_server *server;
	enum client_state state;
	bool talking; /* the dialogue has begun */
	bool over;    /* end as soon as the pool returns the client */
	bool slow;    /* the log has named it as slow */
	bool done;    /* stage ready has ended */
	bool stopped; /* the server's close has reached it */
	bool idle;    /* after stage ready: between two stages, with the timer for that set */
	bool leaving; /* idle, and had nothing left to do when its timer expired */
	int fd;       /* -1: none */
	struct ndxp_watch watch;
	bool watched;
	struct ndxp_timer timer;
	size_t sent;    /* bytes of the current frame that are sent */
	unsigned reads; /* reads left before other clients have their turn */
	uint8_t last_words[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];
	size_t last_length;
	struct ndx_session_resources resources;
	struct pool_task task;
	/* For the pool, while a task is there: */
	bool opened;  /* `open` succeeded, so `closed` must be called */
	bool restart; /* the stage is repeated */
	int staged;   /* the latest stage that was reported to the consumer */
	struct ndxp_job returned;
	uint64_t called_ns;
	struct ndx_overlapped ov;
	struct ndxp_job qp_done;
	char address[64];
	struct sockaddr_storage near; /* own address of its first transport */
	/* server_oob.c: a connection without a connection manager */
	struct oob_link *oob; /* NULL: none */
	uint32_t oob_pending; /* bits of enum ndx_spi_oob_message to send; atomic */
	uint8_t oob_frame[FRAME_HEADER];
	bool oob_sending;   /* `oob_frame` is being sent */
	uint32_t oob_ended; /* atomic: the connection has ended, or will not be made */
	struct ndxp_job oob_job;
	struct ndxp_job last;
};

#define SERVER_PORTS_MOST 16u
#define SERVER_TICK_MS 50u

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
	struct ndx_loop *loop;
	struct pool pool;
	struct server_port ports[SERVER_PORTS_MOST];
	unsigned port_count;
	struct ndxp_timer tick;
	struct ndxp_timer relief;        /* short timer, set while tasks wait for a thread */
	bool relieving;                  /* `relief` is set */
	struct sockaddr_storage address; /* of the first port */
	struct ndxp_list clients;
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

/* server_io.c; loop thread. */
enum client_io {
	IO_DONE, /* complete */
	IO_WAIT, /* the descriptor is armed; the client goes on with the next event */
	IO_LOST, /* the transport is lost */
	IO_BAD,  /* the bytes are no frame: see `why` */
};
enum client_io client_read_frame(struct client *c, uint32_t most, struct frame *f,
                                 const char **why);
/* Remove the current frame from the inbox. */
void client_consume(struct client *c);
/* Read the header after the current frame, and leave it in the inbox. IO_BAD: only a part has
 * arrived; the descriptor is not armed. */
enum client_io client_peek(struct client *c, uint8_t header[FRAME_HEADER]);
enum client_io client_send(struct client *c, const uint8_t *bytes, size_t length);
/* Discard what arrives, until the peer closes. */
enum client_io client_drain(struct client *c);
/* Make `fd` the client's transport. */
bool client_attach(struct client *c, int fd);
void client_detach(struct client *c);

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
void client_set_timer(struct client *c, uint64_t deadline_ns);

/*
 * server_hello.c; loop thread: handle the first frame. False: the client is gone. *broken is set if
 * the first frame resumed a session that has failed at once: drive that one.
 */
bool client_hello(struct client *c, const struct frame *f, struct client **broken);

/* server_client.c; loop thread: a client has connected. */
void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from);

/* server_oob.c; loop thread. These do nothing for a client without a link. */
/* Prepare before the queue pair connects. */
enum ndx_status client_oob_open(struct client *c);
/* Send pending goodbyes and aborts, unless another frame is being sent. False: wait. */
bool client_oob_send(struct client *c);
/* Handle the frame if it is a goodbye or an abort; false if not. */
bool client_oob_handle(struct client *c, const struct frame *f);
/* While the pool has the client: handle goodbyes and aborts, leave other frames. */
void client_oob_receive(struct client *c);
/* The client ends; `then` runs after the queued jobs. False: there was no link, do it now. */
bool client_oob_close(struct client *c, ndxp_loop_fn *then);

/* server_task.c; loop thread. */
/* The timer of the pool: tasks wait for a thread. */
void server_on_relief(void *arg);
/* Give the client to the pool: for the dialogue's next call, or for its end. */
void client_call(struct client *c);
void client_close_task(struct client *c);

#endif
