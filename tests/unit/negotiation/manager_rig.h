/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the session manager share: a server that makes queue pairs, and a manager that
 * does. Both use the provider loop. */
#ifndef TEST_MANAGER_RIG_H
#define TEST_MANAGER_RIG_H

#include "says.h"

#include <pthread.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include <ndx/session_manager.h>

enum { WAIT_MS = 60000, EVENTS = 65536 };

/* One end of a connection. */
struct end {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	const struct ndx_session *session; /* of the server's */
	struct end *next;
};

struct site {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_adapter *adapter;
	struct ndx_negotiation_server *server; /* NULL: none */
	struct ndx_session_manager *manager;   /* NULL: none */
	struct end *ends;                      /* of the server */
	struct ndx_managed_event *events;      /* of the manager; under the lock, like the next */
	unsigned count;
	unsigned provided;
	unsigned reclaimed;
	unsigned connecting_most; /* attempts at the same time */
	enum ndx_status refuse;   /* what `provide` returns */
	uint32_t token;           /* of the memory; 0: none */
	uint32_t hold;            /* atomic: event callbacks wait while this is set */
	bool same_token;
	bool cancels; /* the event callback cancels a session that is up, ... */
	bool closes;  /* ... and tries to close the manager */
	bool plain;   /* sessions without queue pairs */
	pthread_mutex_t lock;
	char address[32];
};

void site_open(struct site *s, bool plain);
void site_close(struct site *s);
/* Port 0: any. */
void site_serve(struct site *s, uint16_t port);
void site_unserve(struct site *s);
uint16_t site_port(const struct site *s);
/* Every connection of the server aborts. */
void site_abort(struct site *s);

/* With short pauses; the test changes what it needs. */
void site_manager_attr(struct site *s, struct ndx_session_manager_attr *attr);
void site_manage(struct site *s, const struct ndx_session_manager_attr *attr);
uint64_t site_add(struct site *s, const char *const *servers, size_t count);
struct ndx_session_manager_stats site_stats(struct site *s);
/* Wait until `count` are in the state. */
void site_await(struct site *s, enum ndx_managed_state state, unsigned count);
unsigned site_count(struct site *s, enum ndx_managed_event_kind kind);
/* The nth event of the session, from 0; waits for it. */
struct ndx_managed_event site_event(struct site *s, uint64_t id, unsigned n);

#endif
