/* SPDX-License-Identifier: BSD-2-Clause */
/* What a plugin is tried with: two ends of a stage by hand, and real ones in a session. */
#ifndef TEST_ENDS_H
#define TEST_ENDS_H

#include "says.h"

#include <pthread.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include <ndx/spi/plugin.h>

enum { ENDS_MESSAGE = 1024, ENDS_WAIT_MS = 10000 };

/* One side of a stage that is run by hand. */
struct side {
	const struct ndx_plugin_variant *variant;
	void *instance;
	void *session;
	struct ndx_exchange x;
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;
	uint8_t said[ENDS_MESSAGE];
	struct ndx_exchange_reply reply;
	enum ndx_status status;
};

typedef enum ndx_status side_fn(void *session, const struct ndx_exchange *exchange,
                                const void *peer, size_t peer_length,
                                struct ndx_exchange_reply *reply);

void side_begin(struct side *s, const struct ndx_plugin_variant *variant, enum ndx_role role,
                const struct ndx_plugin_value *values);
void side_end(struct side *s);
/* One call; `peer` may be NULL. The outcome is in `status` and `reply`. */
void side_call(struct side *s, side_fn *fn, const struct side *peer);
/* All rounds of a stage; true if both have completed. */
bool sides_talk(struct side *a, struct side *b, enum ndx_stage stage);

/* A queue pair, and what it needs. */
struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
};

/* False: there is no such adapter here. */
bool end_open(struct end *e, const char *uri);
void end_close(struct end *e);

/* A server that connects its one client to an end; what both agreed on. */
struct rendezvous {
	struct end server;
	struct end client;
	struct ndx_memory_description memory; /* of the server's */
	uint32_t reads[4];              /* inbound and outbound of the client, then of the server */
	struct ndx_agreement agreed[2]; /* client's, server's */
	struct ndx_peer_description peer[2];
	uint32_t rounds; /* of the client's stage info: calls of its plugin */
	enum ndx_status status;
	struct ndx_session_error error;
};

/* A server of variants; calls that take longer than `warn_ms` are named. */
struct listening {
	struct ndx_negotiation_server *server;
	char address[32];
};

void listening_begin(struct listening *l, struct ndx_variant *const *variants, size_t count,
                     uint32_t warn_ms);
/* Every callback has returned behind this. */
void listening_end(struct listening *l);

/* A proxy for one connection: to the server, whatever it is asked for; without one it refuses. */
struct gateway {
	pthread_t thread;
	const struct listening *to;
	int fd;
	bool asked;    /* it was, as a proxy is */
	bool speaks;   /* else it says nothing at all */
	uint32_t came; /* atomic: something did */
	char address[32];
};

void gateway_begin(struct gateway *g, const struct listening *to, bool speaks);
/* Until it has heard something. */
void gateway_wait(struct gateway *g);
void gateway_end(struct gateway *g);

/* Runs a session between two frameworks' variants, all stages of it. */
void rendezvous_run(struct rendezvous *m, struct ndx_variant *client, struct ndx_variant *server);

#endif
