/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the server's files share.
 *
 * Everything of a client is the loop thread's, but while a task of it is with the pool: then its
 * dialogue is the pool's, and the loop thread only notes what is to be done afterwards.
 */
#ifndef NEGOTIATION_SERVER_H
#define NEGOTIATION_SERVER_H

#include <pthread.h>

#include <ndx/negotiation_server.h>

#include "base_list.h"
#include "base_loop.h"
#include "pool.h"
#include "session.h"

enum client_state {
	CLIENT_HELLO,   /* nothing was said yet */
	CLIENT_ACTIVE,  /* the loop thread drives the dialogue */
	CLIENT_POOL,    /* a task is with the pool */
	CLIENT_QP,      /* the queue pair connects */
	CLIENT_ORPHAN,  /* its transport broke; it waits for another one */
	CLIENT_ENDING,  /* last words are on their way out */
	CLIENT_CLOSING, /* its last task is with the pool */
};

struct client {
	struct ndx_session session; /* what callbacks see; `servers` and `link` are not used */
	struct base_list node;
	struct ndx_negotiation_server *server;
	enum client_state state;
	bool talking; /* the dialogue was begun */
	bool over;    /* end as soon as the pool gives it back */
	bool slow;    /* was named in the log */
	bool done;    /* stage ready has ended */
	bool stopped; /* the server's end has reached it */
	bool idle;    /* from stage ready on: between two stages, and its timer is set for that */
	bool leaving; /* idle, and nothing was left to be done when its timer ran out */
	int fd;       /* -1: none */
	struct base_watch watch;
	bool watched;
	struct base_timer timer;
	size_t sent;    /* of what is being sent */
	unsigned reads; /* before others get their turn */
	uint8_t last_words[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];
	size_t last_length;
	struct ndx_session_resources resources;
	struct pool_task task;
	/* the pool's, while a task is with it */
	bool opened;  /* `open` succeeded: `closed` is owed */
	bool restart; /* its stage begins anew */
	int staged;   /* last stage that was told of */
	struct base_job returned;
	uint64_t called_ns;
	struct ndx_overlapped ov;
	struct base_job qp_done;
	char address[64];
	struct sockaddr_storage near; /* own end of its first transport */
	/* server_words.c: a connection that has no connection manager */
	struct wire *wire; /* NULL: none */
	uint32_t words;    /* to be said: bits of enum ndx_spi_word; atomic */
	uint8_t word[FRAME_HEADER];
	bool saying;     /* `word` is on its way */
	uint32_t parted; /* atomic: the connection is over, or will never be */
	struct base_job words_job;
	struct base_job last;
};

#define SERVER_PORTS_MOST 16u

struct server_port {
	struct ndx_negotiation_server *server;
	struct base_watch watch;
};

/* Clients without a session, since the log began to count. */
struct server_strangers {
	uint64_t since_ns;
	uint64_t left_out;
	unsigned told;
};

struct ndx_negotiation_server {
	struct ndx_negotiation_server_attr attr;
	struct ndx_variant **variants;
	struct ndx_loop *loop;
	struct pool pool;
	struct server_port ports[SERVER_PORTS_MOST];
	unsigned port_count;
	struct base_timer tick;
	struct base_timer relief;        /* soon, while tasks wait for a thread */
	bool relieving;                  /* that is set */
	struct sockaddr_storage address; /* of the first port */
	struct base_list clients;
	struct server_strangers strangers;
	struct ndx_negotiation_server_stats stats; /* under the lock */
	uint64_t last_session;
	bool stopping;
	bool closing;           /* nobody waits for the last session; under the lock */
	struct base_job finish; /* what is done then */
	bool starved;           /* of descriptors: nobody is accepted before the next tick, ... */
	bool said_so;           /* ... and the log knows */
	pthread_mutex_t lock;
	pthread_cond_t empty;
};

/* server_listen.c: at all addresses that attr.address stands for. */
enum ndx_status server_listen(struct ndx_negotiation_server *server);
void server_unlisten(struct ndx_negotiation_server *server);
/* From now on clients are accepted. */
enum ndx_status server_watch(struct ndx_negotiation_server *server);
/* Loop thread: the same, after nobody could be; and for good. */
void server_accept(struct ndx_negotiation_server *server);
void server_unwatch(struct ndx_negotiation_server *server);

/* server_strangers.c; loop thread: is there a record for one more client without a session? */
bool server_may_tell(struct ndx_negotiation_server *server);
/* How many had none, if it is time for that. */
void server_tell_left_out(struct ndx_negotiation_server *server, bool last);

/* server_client.c; loop thread. */
void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from);
/* End it now, whatever it does. */
void client_stop(struct client *c);
/* Drive it as far as it goes. */
void client_go(struct client *c);
/* It fails, from outside its dialogue. False: it is gone, do not touch it any more. */
bool client_fail(struct client *c, enum ndx_status status, const char *text);

/* server_io.c; loop thread. */
enum client_io {
	IO_DONE, /* all of it */
	IO_WAIT, /* the descriptor is armed, client_go() comes back */
	IO_LOST, /* the transport is gone */
	IO_BAD,  /* what came is no frame: `why` */
};
enum client_io client_read_frame(struct client *c, uint32_t most, struct frame *f,
                                 const char **why);
/* The frame was taken. */
void client_consume(struct client *c);
/* What is behind the frame in the inbox, and stays there. IO_BAD: a part of a header; nothing is
 * armed, for it would not wait. */
enum client_io client_peek(struct client *c, uint8_t header[FRAME_HEADER]);
enum client_io client_send(struct client *c, const uint8_t *bytes, size_t length);
/* Whatever comes is thrown away, until the peer closes. */
enum client_io client_drain(struct client *c);
/* `fd` is its transport from now on. */
bool client_attach(struct client *c, int fd);
void client_detach(struct client *c);

/* server_hello.c; loop thread: its first frame came. False: it is gone. */
bool client_hello(struct client *c, const struct frame *f);

/* server_words.c; loop thread. Harmless where there is no wire. */
/* The queue pair is about to connect. */
enum ndx_status client_words_open(struct client *c);
/* Say what is to be said, if no other frame is on its way. False: it waits. */
bool client_say_words(struct client *c);
/* Is it a word? Then it is taken. */
bool client_take_word(struct client *c, const struct frame *f);
/* While the pool has it: listen for words, leave the rest. */
void client_overhear(struct client *c);
/* It ends; `then` runs behind what may be queued. False: there was no wire, do it now. */
bool client_words_close(struct client *c, base_loop_fn *then);

/* server_task.c. */
/* To the pool with it: what the dialogue wants next, or its end. */
void client_call(struct client *c);
void client_close_task(struct client *c);

/* server_client.c; loop thread: the pool gave it back. */
void client_returned(void *arg);
/* The server's counters. */
void server_count(struct ndx_negotiation_server *server, uint64_t *counter);
/* Loop thread: a task has to wait for one of the pool's threads. */
void server_relieve(struct ndx_negotiation_server *server);
/* The last task of a client has run; the pool's thread. */
void server_gone(struct ndx_negotiation_server *server);

#endif
