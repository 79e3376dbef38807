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

typedef enum ndx_status rig_deed_fn(const struct ndx_exchange *x);

extern const char *rig_variant;               /* of the next rig */
extern const struct ndx_tls_attr *tls_server; /* of the next rig; NULL: plaintext */
extern const struct ndx_tls_attr *tls_client;
/* The adapters of the next rig. "direct": loop without a connection manager. */
extern const char *rig_uri;
extern bool old_server;       /* its program takes no queue pair later */
extern uint32_t rig_stage_ms; /* time for a stage of the next session and server; 0: the default */
extern uint32_t rig_most;     /* queue pairs of one session of the next server; 0: the default */
/* What the plugin does first in stages info and ready of queue pairs that are added; may be NULL.
 */
extern rig_deed_fn *_Atomic rig_deed; /* atomic: the plugin may run when a test sets it */
extern bool bare;                     /* the server's program gives no queue pairs */
/* It gives this one a connector alone, and the one behind it a queue pair alone; -1: none. */
extern int lame;
/* The plugin of the next rig that adds none: 0 the client's, 1 the server's; -1: neither. */
extern int still;
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
	struct ndx_negotiation *negotiations[2]; /* of the client, and of the server */
	struct ndx_variant *variant;
	struct ndx_variant *server_variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	char address[32];
	int closed; /* atomic */
	/* Queue pairs that are added: */
	struct end more_a[MOST];
	struct end more_b[MOST];
	uint32_t more;
	enum ndx_status refuses; /* what the server's program answers */
	uint32_t lame;           /* the server's queue pair that cannot be connected; MOST: none */
	int asked;               /* atomic: how often the server's program was asked for more */
	int added;               /* atomic: how often it was told that they are connected, ... */
	int not_added;           /* atomic: ... or that they are not, and ... */
	enum ndx_status outcome; /* ... that status */
	uint32_t first;          /* index, of the latest that it was asked for */
	int removed;             /* atomic: queue pairs that it was told are removed */
};

/* `count` queue pairs at each end, a server, and a session that is not connected. */
void rig_up(struct rig *r, uint32_t count);
/* The same, and run the session; the ends of the connections are watched. */
void rig_run(struct rig *r, uint32_t count);
void rig_down(struct rig *r);
/* `count` more queue pairs at each end; and away with them. */
void more_up(struct rig *r, uint32_t count);
void more_down(struct rig *r);
/* What the client adds. */
void more_list(const struct rig *r, struct ndx_session_queue_pair list[MOST]);
/* The ends of a connection are watched. */
void watch(struct end *e);
/* Another session, with the server at r->address. */
void make_session(struct rig *r);
enum ndx_status try_session(struct rig *r); /* which may fail */

/* The indication of the disconnect has come. */
void indicated(struct end *e, enum ndx_disconnect_reason reason);
/* From one side to the other and back. */
void disconnect_both(struct end *from, struct end *to);

/* Add those that are up; *first may be left out. */
enum ndx_status more_add(struct rig *r, uint32_t *first);
/* Disconnect those that were added, and away with them. */
void more_end(struct rig *r);
/* Away with those that were not added; others are, and come to their end. */
void another_batch_is_added(struct rig *r, uint32_t count);
/* The count comes to that value. */
void is_told(const int *count, int value);
/* The connections last. */
void all_last(struct end *list, uint32_t count);

#endif
