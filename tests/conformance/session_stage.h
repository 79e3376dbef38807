/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of several queue pairs: the pairs that it connects, its server, and the plugin. */
#ifndef SESSION_STAGE_H
#define SESSION_STAGE_H

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "traffic.h"

enum { STAGE_MOST = 64 };

struct stage {
	struct check *c;
	struct pair *p[STAGE_MOST];
	uint32_t count;
	uint32_t starts; /* with so many of them the session begins; the others are added */
	uint32_t broken; /* index of the queue pair that the server breaks after stage info */
	enum ndx_status refuses;
	bool cancels;    /* the client's session, when the server is asked for more queue pairs */
	uint32_t closed; /* how often the server's callback was called */
	uint32_t asked;  /* for how many queue pairs the server was asked */
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
};

/* From this index on, the client takes another key for the server's queue pairs. */
extern uint32_t stage_lies_from;

/* `count` pairs and a session of `starts` of them that is not connected; the server takes `most`
 * queue pairs. */
bool stage_open_some(struct stage *s, struct check *c, uint32_t count, uint32_t starts,
                     uint32_t most);
/* The same with all of them. */
bool stage_open(struct stage *s, struct check *c, uint32_t count, uint32_t most);
/* Connected. */
bool stage_up(struct stage *s, struct check *c, uint32_t count);
/* The server's session may still have the connectors, until `closed`. */
void stage_down(struct stage *s);
void stage_close_session(struct stage *s);
void stage_close_server(struct stage *s);

/* The client's sides of these pairs. */
void stage_list(const struct stage *s, uint32_t first, uint32_t count,
                struct ndx_session_queue_pair list[STAGE_MOST]);
/* Each queue pair but one is connected to that of its index: what is sent is different for each. */
bool stage_all_pass(struct stage *s, uint32_t but);
bool stage_agreements_differ(struct stage *s);

#endif
