/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Client and server, each with an adapter that has no connection manager, and the session between
 * them, whose transport carries the goodbyes.
 */
#ifndef TEST_OOB_RIG_H
#define TEST_OOB_RIG_H

#include "awaits.h"
#include "says.h"

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include <ndx/spi/plugin.h>

#include "session.h"

enum { WAIT_MS = 10000 };

/* The client's stage ready lasts, once it has begun, until that is 0 again. */
extern int stuck; /* atomic: 1: is to be stuck, 2: is */
/* The client's stage done has begun. */
extern int parting; /* atomic */

/* What the plugin says of the peer, at both ends: bits of enum ndx_peer_policy. */
extern uint32_t peer_policy;

/* What the client's session offers to the server. */
extern struct ndx_memory_description offered;

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped notify;
	struct ndx_overlapped disc;
};

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	struct end a;                       /* the client's */
	struct end b;                       /* the server's */
	struct ndx_session *_Atomic theirs; /* the server's latest session */
	int held;     /* atomic: the server's callback for `held_stage` does not come back */
	int informed; /* atomic: stage info of the server's session is over */
	int closed;   /* atomic: sessions of the server's */
	struct ndx_session_error theirs_error;  /* of the server's session, once it is closed */
	struct ndx_history_entry theirs_latest; /* ... and the latest entry of its history */
};

/* Of the next server's stages, and of the next client's; 0: the default. */
extern uint32_t stage_ms;
extern uint32_t client_stage_ms;
extern enum ndx_stage held_stage; /* ready, unless a test changes it */
/* The next ends have a connection manager. */
extern bool managed;
/* The plugin of the next rig; its first variant is used. NULL: one over TCP. */
extern const struct ndx_plugin *rig_plugin;
extern const struct ndx_setting *rig_setting; /* NULL: none */
/* What the client of the next rig connects to, in place of the server; NULL: the server. Gets the
 * server's port. */
extern const char *(*rig_detour)(uint16_t port);
/* The server's program gives no connector, or no queue pair. */
extern bool lacks_connector;
extern bool lacks_qp;
/* What the server's program does first when a session opens; NULL: nothing. */
extern void (*rig_opens)(void);

void rig_up(struct rig *r);
/* The same, and run the session. */
void rig_run(struct rig *r);
void rig_down(struct rig *r);

/* The server's session is over. */
void wait_closed(struct rig *r);
/* Shut the socket down (shutdown()), on the thread that owns the descriptor. */
void cut_transport(struct ndx_session *s, int how);

/* Ask for the indication of the disconnect; it has come. */
void watch(struct end *e);
void indicated(struct end *e, enum ndx_disconnect_reason reason);

void start_disconnect(struct end *e);
void disconnected(struct end *e, enum ndx_status status);
/* From one side to the other and back; what the other side's consumer does comes later. */
void disconnect_both(struct end *from, struct end *to);

#endif
