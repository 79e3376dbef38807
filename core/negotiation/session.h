/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the session share. */
#ifndef NEGOTIATION_SESSION_H
#define NEGOTIATION_SESSION_H

#include <pthread.h>

#include <ndx/session.h>
#include <ndx/stats.h>

#include "dialogue.h"
#include "driver.h"
#include "link.h"

/* How far a client has connected to a server. */
enum reach_state {
	REACH_NOT,     /* not connecting */
	REACH_CLOSE,   /* the plugin closes the previous stream; then `then` */
	REACH_ROUND,   /* a round of all servers is next */
	REACH_PAUSE,   /* waits before a round */
	REACH_SERVER,  /* an attempt at server `index` is next */
	REACH_NAME,    /* waits for the resolver */
	REACH_ADDRESS, /* the address `next` is next */
	REACH_TCP,     /* waits for the socket to connect */
	REACH_STREAM,  /* the plugin of a device connects a stream */
	REACH_RELAY,   /* begin to connect another transport of a plugin */
	REACH_HELLO,   /* sends hello */
	REACH_WELCOME, /* waits for the answer */
	REACH_DONE,    /* connected */
	REACH_FAILED,  /* see `status`, `layer` and `why` */
};

struct reach {
	enum reach_state at;
	enum reach_state then;
	bool again;             /* the transport is replaced */
	bool resumed;           /* ... and the server goes on where the transport broke */
	uint32_t peer_received; /* ... and has received so many frames */
	uint32_t round;
	uint32_t failures; /* for the length of the pause */
	size_t index;      /* the server */
	size_t left;       /* servers that are not given up */
	uint64_t since_ns; /* when the attempt or the pause began */
	uint64_t hello_ns; /* when the transport was there */
	struct lookup *lookup;
	struct addrinfo *numbers;
	const struct addrinfo *next;
	uint8_t hello[FRAME_HEADER + FRAME_HELLO_SIZE_MAX];
	size_t hello_length;
	/* The latest failure: */
	enum ndx_status status;
	enum ndx_error_layer layer;
	char why[256];
};

/* A call that is in progress: connect, stages, or both. */
struct session_call {
	uint32_t active; /* atomic: 0, or one of the following */
#define SESSION_CALLED 1u
#define SESSION_ADDS 2u
	bool connects;
	bool adds;                 /* queue pairs are added, ... */
	struct addition *addition; /* ... these, until the call begins */
	uint32_t information;      /* for `ov` */
	int last;                  /* the last stage to run; -1: none */
	struct ndx_overlapped *ov; /* NULL: a thread waits, and runs the tasks */
	/* Under the session's lock: */
	pthread_cond_t turn;    /* `task` or `done` has changed */
	struct pool_task *task; /* for the waiting thread */
	bool posted;            /* the call has not begun */
	bool done;
	enum ndx_status status;
};

struct many;

struct ndx_session {
	uint64_t id;
	struct ndx_session_attr attr; /* `servers` are copies, stored behind `servers` below */
	struct tls_context *tls;      /* a client's; NULL: plaintext */
	struct history history;
	struct dialogue dialogue;
	struct driver driver;
	struct many *many;  /* several queue pairs, see many.h; NULL: one */
	uint8_t cookie[16]; /* identifies the session when its transport is replaced */
	uint64_t deadline_ns;

	pthread_mutex_t lock; /* state, server, error: read by any thread */
	enum ndx_session_state state;
	const char *server; /* one of `servers`; "" while not connected */
	struct ndx_session_error error;
	struct ndx_session_error add_error; /* of the latest queue pairs that were added */
	bool agreed;
	bool failed_idle; /* between two calls, and no call has told so yet */
	bool break_noted; /* the transport was lost between two calls; until the next call */

	/* A client's: */
	char **servers;
	bool *given_up;             /* for each server: do not try again during this connect */
	struct link link;           /* `table` NULL: TCP; `stream`: only that of a device */
	struct relay_group *relays; /* NULL unless the session has relays */
	struct reach reach;
	struct session_call call;
	struct ndxp_job begin;
	uint64_t stage_deadline_ns;
	ndxp_loop_fn *on_loss; /* see session_watch_loss() */
	void *on_loss_arg;
	uint32_t resumptions; /* how often the transport was replaced */
	uint32_t cancelled;   /* atomic */
	bool described;       /* the own end is described */
	bool greeted;   /* a server may know the session by its hello, and the client not yet */
	bool closed;    /* the consumer has closed the session */
	bool parting;   /* ... and the connection still needs the transport */
	bool abandoned; /* ... in a callback, with a call in progress */
};

/* A call: connect, or not, and run the stages up to `last`; or add queue pairs. */
struct session_wish {
	const char *call;
	bool connects;
	int last;
	struct addition *addition;
	/* Whether the queue pairs can be added now; the session is marked as busy. */
	enum ndx_status (*check)(struct ndx_session *s, const struct addition *a);
};
/* session.c. The call owns `addition`, also if it fails at once. Run the call and wait for its end;
 * or begin it. */
enum ndx_status session_call_run(struct ndx_session *s, const struct session_wish *w);
enum ndx_status session_call_begin(struct ndx_session *s, const struct session_wish *w,
                                   struct ndx_overlapped *ov);
/* The calls block for work of the adapter's thread. */
enum ndx_status session_check_thread(const char *call);
/* Mark the session as busy with SESSION_...; or another call is in progress. */
enum ndx_status session_occupy(struct ndx_session *s, const char *call, uint32_t what);
void session_vacate(struct ndx_session *s);

/* session_state.c. Any thread. */
void session_set_state(struct ndx_session *s, enum ndx_session_state state);
/* The session has failed between two calls: a call that begins now fails for that. */
bool session_failed_idle(struct ndx_session *s);
/* A client's session, whose driver has ended. */
void session_free(void *arg);
/* Loop thread: whether the next task of a client does not block. */
bool session_is_prompt(struct ndx_session *s);

/* session_end.c; loop thread. The call has ended. Its waiter or callback may close the session
 * afterwards. */
void session_complete(struct ndx_session *s, enum ndx_status st);
/* Take back a task that still waits for a thread of the pool: the phase is then that before the
 * task. */
bool session_withdraw(struct ndx_session *s);
/* Tell the peer that the session is over, and wait for the socket to take that. */
void session_say_bye(struct ndx_session *s);
/* The session is over, and freed soon. */
void session_finish(struct ndx_session *s);
/* session_add.c; loop thread. False: the call, or what is in progress, adds no queue pairs. */
/* The call begins. */
bool session_add_begin(struct ndx_session *s);
/* The call, which has not begun, was cancelled. */
bool session_add_withdraw(struct ndx_session *s);
bool session_add_timer(struct ndx_session *s);

/* session_idle.c; loop thread. Between two calls, after driver_oob_receive(): notice that the
 * transport, which `was_open` before that, is lost. */
void session_look_idle(struct ndx_session *s, bool was_open);
/* Between two calls, the peer breaks the protocol: tell it, and end the session. */
void session_fail_idle(struct ndx_session *s, const char *why);
/* Call `fn` when the session fails between two calls, once, before its close. True: it has failed.
 */
bool session_watch_loss(struct ndx_session *s, ndxp_loop_fn *fn, void *arg);

/* session_connect.c; loop thread. A result as that of a role's function. */
/* Connect to a server and exchange hellos, until REACH_DONE or REACH_FAILED. */
void session_reach(struct ndx_session *s, bool again);
bool session_reach_step(struct ndx_session *s);
bool session_reach_timer(struct ndx_session *s);
/* The time is over while an operation of the plugin's transport waits for a thread. */
bool session_reach_queued(struct ndx_session *s, const char *why);
bool session_reach_cancel(struct ndx_session *s);
/* session_hello.c; loop thread. */
/* Fill `reach.hello`. */
void session_write_hello(struct ndx_session *s);
/* The server's answer; else a failure with ndx_last_error(). */
enum ndx_status session_take_welcome(struct ndx_session *s, const struct frame *f);
/* The pause, or the attempt at the server, has ended. */
void session_record_pause(struct ndx_session *s, enum ndx_status st);
void session_record_attempt(struct ndx_session *s, enum ndx_status st);

/* Whether the transport is a plugin's that the driver sees as a socket, see relay.h. */
bool session_has_relay(const struct ndx_session *s);
/* Time for one attempt at a server. */
uint32_t session_attempt_ms(const struct ndx_session *s);

/* session_client.c; loop thread. */
/* The role of the client. */
extern const struct driver_role session_client_role;
/* A call begins; a cancel. */
void session_on_begin(void *arg);
void session_on_cancel(void *arg);
/* The consumer closes the session: before and after the release of the plugin's part. */
void session_stop(void *arg);
void session_release(void *arg);
/* In place of session_end_plugin() and session_release(): on the pool, which is started. */
void session_end_later(void *arg);
/* The consumer closes the session in a callback, with a call in progress: complete the call, and
 * close the session when the call has ended. */
struct session_abandoning {
	struct ndx_session *session;
	bool done; /* do not touch the session any more */
};
void session_abandon(void *arg);
/* session_state.c. Any thread, between stop and release: the plugin's share of the close. */
void session_end_plugin(struct ndx_session *s, uint32_t bye_ms);
#define SESSION_LAST_WORDS_MS 100u
/* Set ndx_last_error() to why the session has failed; returns its status. */
enum ndx_status session_say_failure(struct ndx_session *s);

/* describe.c: describe the own end for the peer; `near`: the own address that the peer reaches. */
enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             const struct sockaddr_storage *near, struct ndx_peer_description *own);
/* describe.c: whether the variant takes `count` queue pairs; else `why` says why not. */
bool describe_takes(const struct ndx_variant *variant, uint32_t count, char *why, size_t room);
/* describe.c: whether the variant takes queue pairs that are added later. */
bool describe_adds(const struct ndx_variant *variant, char *why, size_t room);
/* The own address of a connected socket; AF_UNSPEC if none. */
void describe_near(int fd, struct sockaddr_storage *near);
/* Why the connector's queue pair could not be connected, from its history; "" if unknown. */
#define DESCRIBE_CAUSE sizeof(((struct ndx_transition *)NULL)->cause)
const char *describe_cause(struct ndx_connector *connector, char cause[DESCRIBE_CAUSE]);

#endif
