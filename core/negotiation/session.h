/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the session share. */
#ifndef NEGOTIATION_SESSION_H
#define NEGOTIATION_SESSION_H

#include <pthread.h>

#include <ndx/session.h>
#include <ndx/stats.h>

#include "dialogue.h"
#include "link.h"

struct ndx_session {
	uint64_t id;
	struct ndx_session_attr attr; /* `servers` are copies, stored behind `servers` below */
	char **servers;
	bool *given_up; /* for each server: do not try again during this connect */
	struct history history;
	struct dialogue dialogue;
	struct link link;
	uint8_t cookie[16]; /* identifies the session when its transport is replaced */
	uint64_t deadline_ns;
	uint64_t stage_deadline_ns;
	uint32_t resumptions; /* how often the transport was replaced */

	/* Received and not parsed. */
	uint8_t *inbox;
	size_t inbox_room;
	size_t inbox_used;

	pthread_mutex_t lock; /* state, server, error: read by any thread */
	enum ndx_session_state state;
	const char *server; /* one of `servers`; "" while not connected */
	struct ndx_session_error error;
	bool agreed;

	struct oob_stream *oob; /* the transport, shared with the connection; NULL: not shared */
};

/* Any thread. */
void session_set_state(struct ndx_session *s, enum ndx_session_state state);
/* Fail the session with the dialogue's error; returns its status. */
enum ndx_status session_failed(struct ndx_session *s);
/* Fail the session with the driver's error, and set ndx_last_error() to the text. */
enum ndx_status session_fail(struct ndx_session *s, enum ndx_error_layer layer,
                             enum ndx_status status, const char *text);

/* session_connect.c: connect to a server and exchange hellos. */
enum ndx_status session_reach(struct ndx_session *s, bool again);
/* Read one whole frame, until the deadline. On failure, *layer is transport or framework. */
enum ndx_status session_read_frame(struct ndx_session *s, struct frame *frame, uint64_t deadline_ns,
                                   enum ndx_error_layer *layer);

/* session_oob.c; these do nothing without an out-of-band stream. */
/* Before the queue pair connects: share the transport if the connection needs it. */
enum ndx_status session_oob_open(struct ndx_session *s);
/* Send a whole frame. */
enum ndx_status session_send(struct ndx_session *s, const void *data, size_t length,
                             uint64_t deadline_ns);
/* From now on the session reads; from now on the control thread reads. */
void session_oob_pause(struct ndx_session *s);
void session_oob_listen(struct ndx_session *s);
/* Handle the frame if it belongs to the connection; false if not. */
bool session_oob_handle(struct ndx_session *s, const struct frame *f);
/* The session has failed, and its transport with it. */
void session_oob_break(struct ndx_session *s);
/* The session ends. */
void session_oob_leave(struct ndx_session *s);

/* describe.c: describe the own end for the peer; `near`: the own address that the peer reaches. */
enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             const struct sockaddr_storage *near, struct ndx_peer_description *own);
/* The own address of a connected socket; AF_UNSPEC if none. */
void describe_near(int fd, struct sockaddr_storage *near);
/* Why the connector's queue pair could not be connected, from its history; "" if unknown. */
#define DESCRIBE_CAUSE sizeof(((struct ndx_transition *)NULL)->cause)
const char *describe_cause(struct ndx_connector *connector, char cause[DESCRIBE_CAUSE]);

#endif
