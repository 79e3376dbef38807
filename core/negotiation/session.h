/* SPDX-License-Identifier: BSD-2-Clause */
/* What the session's files share. */
#ifndef NEGOTIATION_SESSION_H
#define NEGOTIATION_SESSION_H

#include <pthread.h>

#include <ndx/session.h>

#include "dialogue.h"
#include "link.h"

struct ndx_session {
	uint64_t id;
	struct ndx_session_attr attr; /* servers are copies, behind `servers` */
	char **servers;
	struct history history;
	struct dialogue dialogue;
	struct link link;
	uint8_t cookie[16]; /* names it when its transport has to be replaced */
	uint64_t deadline_ns;
	uint64_t stage_deadline_ns;
	uint32_t resumptions; /* how often its transport was replaced */

	/* what has come and is not parsed */
	uint8_t *inbox;
	size_t inbox_room;
	size_t inbox_used;

	pthread_mutex_t lock; /* state, server, error: read by any thread */
	enum ndx_session_state state;
	const char *server; /* of servers; "" while not connected */
	struct ndx_session_error error;
	bool agreed;
};

/* Any thread. */
void session_set_state(struct ndx_session *s, enum ndx_session_state state);
/* The session fails with what the exchange has; returns its status. */
enum ndx_status session_failed(struct ndx_session *s);
/* ... with what the driver found. ndx_last_error() is set to the text. */
enum ndx_status session_fail(struct ndx_session *s, enum ndx_error_layer layer,
                             enum ndx_status status, const char *text);

/* session_connect.c: reach a server and say hello. */
enum ndx_status session_reach(struct ndx_session *s, bool again);
/* One whole frame, until the deadline. Layer transport or framework on failure. */
enum ndx_status session_read_frame(struct ndx_session *s, struct frame *frame, uint64_t deadline_ns,
                                   enum ndx_error_layer *layer);

/* describe.c: the own end, as the peer needs to know it. */
enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             struct ndx_peer_description *own);

#endif
