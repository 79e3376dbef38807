/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters without a connection manager, and a session of several queue pairs between them,
 * whose transport carries their goodbyes. */
#ifndef TEST_MANY_RIG_H
#define TEST_MANY_RIG_H

#include "says.h"

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>

#include "many.h"

enum { MOST = 16, WAIT_MS = 10000, MESSAGE = 1024, LONG = 60000 };

extern const char *rig_variant;               /* of the next rig */
extern const struct ndx_tls_attr *tls_server; /* of the next rig; NULL: plaintext */
extern const struct ndx_tls_attr *tls_client;
extern bool bare; /* the server's program gives no queue pairs */
/* Of the next server, for one principal; 0: the defaults. Each queue pair has the memory. */
extern uint32_t most_queue_pairs;
extern uint64_t most_memory;
extern uint64_t memory_each;

struct end {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped notify;
	struct ndx_overlapped disc;
};

struct rig {
	struct ndx_adapter *adapters[2];
	struct end a[MOST];
	struct end b[MOST];
	uint32_t count;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	char address[32];
	int closed; /* atomic */
};

/* `count` queue pairs at each end, a server, and a session that is not connected. */
void rig_up(struct rig *r, uint32_t count);
/* The same, and run the session; the ends of the connections are watched. */
void rig_run(struct rig *r, uint32_t count);
void rig_down(struct rig *r);
/* Another session, with the server at r->address. */
void make_session(struct rig *r);

/* The indication of the disconnect has come. */
void indicated(struct end *e, enum ndx_disconnect_reason reason);
/* From one side to the other and back. */
void disconnect_both(struct end *from, struct end *to);

#endif
