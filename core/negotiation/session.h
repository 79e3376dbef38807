/* SPDX-License-Identifier: BSD-2-Clause */
/* What the session's files share. */
#ifndef NEGOTIATION_SESSION_H
#define NEGOTIATION_SESSION_H

#include <pthread.h>

#include <ndx/session.h>
#include <ndx/stats.h>

#include "dialogue.h"
#include "link.h"

struct ndx_session {
	uint64_t id;
	struct ndx_session_attr attr; /* servers are copies, behind `servers` */
	char **servers;
	bool *given_up; /* of servers: not to be asked again while this connect goes on */
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

	struct channel *channel; /* the transport, shared with the connection; NULL: is not */
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

/* session_channel.c; all of them harmless where there is no channel. */
/* The queue pair is about to connect: does it need the transport? */
enum ndx_status session_channel_open(struct ndx_session *s);
/* A whole frame. */
enum ndx_status session_send(struct ndx_session *s, const void *data, size_t length,
                             uint64_t deadline_ns);
/* The session reads; the control thread reads. */
void session_channel_pause(struct ndx_session *s);
void session_channel_listen(struct ndx_session *s);
/* Is the frame the connection's? Then it is taken. */
bool session_channel_take(struct ndx_session *s, const struct frame *f);
/* The session has failed, and its transport with it. */
void session_channel_break(struct ndx_session *s);
/* The session ends. */
void session_channel_leave(struct ndx_session *s);

/* describe.c: the own end, as the peer needs to know it; `near`: by which address it is reached. */
enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             const struct sockaddr_storage *near, struct ndx_peer_description *own);
/* The own address of a connected socket; AF_UNSPEC if there is none. */
void describe_near(int fd, struct sockaddr_storage *near);
/* Why the connector's queue pair could not be connected, as its history has it; "" if unknown. */
#define DESCRIBE_CAUSE sizeof(((struct ndx_transition *)NULL)->cause)
const char *describe_cause(struct ndx_connector *connector, char cause[DESCRIBE_CAUSE]);

#endif
