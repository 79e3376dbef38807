/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server's sessions are doing: copies for other threads. */
#ifndef NEGOTIATION_SERVER_VIEW_H
#define NEGOTIATION_SERVER_VIEW_H

#include "server.h"

/* What a session waits for. */
enum server_wait {
	SERVER_WAIT_HELLO,     /* the client's first message */
	SERVER_WAIT_PEER,      /* the client's next message in a stage */
	SERVER_WAIT_SEND,      /* room for a message in the socket: the client does not read */
	SERVER_WAIT_THREAD,    /* a thread of the pool */
	SERVER_WAIT_CALL,      /* a function of the plugin, or a callback, which is running */
	SERVER_WAIT_CONNECT,   /* the queue pair, which is connecting */
	SERVER_WAIT_PROOF,     /* the proof of the path */
	SERVER_WAIT_TRANSPORT, /* the client, which may come back with another transport */
	SERVER_WAIT_IDLE,      /* after stage ready: the client's next stage, or its end */
	SERVER_WAIT_CLOSE,     /* the client, which has to take the last message and close */
	SERVER_WAIT_TURN,      /* nothing: the server's thread goes on soon */
	SERVER_WAITS,
};

/* For example "hello". */
const char *server_wait_name(enum server_wait wait);

/* A session at one moment. */
struct server_view {
	uint64_t id;
	uint64_t age_ns;
	uint64_t waits_ns; /* how long it has waited */
	enum server_wait waits;
	const struct ndx_variant *variant; /* NULL: before hello; the server holds it */
	enum ndx_session_state state;
	uint32_t queue_pairs;
	enum ndx_stage stage;
	uint32_t round;
	struct history_totals totals;
	bool agreed;
	struct ndx_agreement agreement;
	char address[sizeof(((struct client *)NULL)->address)];
	enum tls_proof proof;            /* TLS_NOTHING: in plaintext, or before hello, ... */
	char principal[TLS_NAME];        /* ... where this is "" */
	struct ndx_history_entry *steps; /* the latest; NULL: too many sessions for that */
	size_t step_count;
};

#define SERVER_VIEW_STEPS 16u /* of the history of each session */

#define SERVER_VIEW_STEP 256u

/* The sessions of the moment when the look began, without those that ended during the look. */
struct server_views {
	struct server_view *list;        /* the oldest; to be freed by server_forget() */
	struct ndx_history_entry *steps; /* of all of them */
	size_t count;
	size_t total;               /* more than `count`: the list is cut */
	size_t closing;             /* over: `closed` has not returned yet; not in `total` */
	size_t waits[SERVER_WAITS]; /* how many of `total` wait for what */
};

/* Any thread: look at all sessions, list at most `most`. NDX_E_NO_MEMORY: nothing to free. */
enum ndx_status server_look(struct ndx_negotiation_server *server, size_t most,
                            struct server_views *out);
void server_forget(struct server_views *views);

#endif
