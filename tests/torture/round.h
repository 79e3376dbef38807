/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One round: everything that both sides own and everything that the model knows about them. It lies
 * in a mapping that is shared with the peer process, if there is one, at the same address: so each
 * side can judge what the other did, even after that was killed. Pointers into the library belong
 * to the side that made them.
 */
#ifndef ROUND_H
#define ROUND_H

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/ndx.h>

#include "chance.h"
#include "memory.h"
#include "op.h"
#include "plan.h"
#include "trace.h"

enum {
	REQUESTS = 512, /* of each queue of an end, in all */
	MESSAGES = 512, /* of each end, in all */
	SIDE_A = 0,     /* the active one */
	SIDE_B = 1,
};

struct end;

/* A request and what the model has to know about it. */
struct request {
	enum ndx_request_type type;
	uint32_t flags;  /* enum ndx_op_flag */
	uint32_t at;     /* in the area AREA_LOCAL, or AREA_RECEIVE */
	uint32_t length; /* of a receive: its room */
	uint32_t remote_at;
	uint32_t message; /* number of the message, if it is one */
	bool has_message;
	bool window;     /* uses the peer's window */
	bool faulty;     /* is to fail */
	bool late;       /* posted when the connection had ended: nothing else than CANCELED */
	uint64_t before; /* the post: when it was called, and when it returned */
	uint64_t after;
};

/* Requests [0, posted) in posting order; [0, done) have ended. Contexts are never used twice. */
struct ledger {
	pthread_mutex_t lock;
	struct request requests[REQUESTS];
	uint32_t posted; /* atomic: others look */
	uint32_t done;
	bool failed;   /* one did not succeed: none may after it */
	bool broken;   /* one failed, and was not cancelled: no other may */
	bool blind;    /* its completion queue was closed: its outcome stays unknown */
	bool shut;     /* the end was settled: nothing may come any more */
	uint32_t room; /* bytes of its area that are used */
};

/* What the sender promised about a message; written before it is posted. */
struct message {
	uint32_t length;
	uint32_t immediate;
	bool has_immediate;
	bool solicited;
	bool written; /* by a write with immediate: no bytes of the receive are used */
};

/* When something was begun and when it was done; 0: not. Atomic. */
struct fact {
	uint64_t from;
	uint64_t to;
};

enum window_state { WINDOW_FREE, WINDOW_BINDING, WINDOW_BOUND, WINDOW_UNBINDING };

enum phase {
	PHASE_IDLE,
	PHASE_ASKING,    /* connect, or the request of the peer is awaited */
	PHASE_ANSWERING, /* complete_connect or accept */
	PHASE_UP,
	PHASE_NEVER, /* was never connected */
};

struct end {
	struct round *round;
	struct conn *conn;
	struct end *peer;
	const struct end_plan *plan;
	uint32_t side;
	uint32_t id; /* 2 * connection + side */
	uint64_t random;

	struct ndx_qp *qp; /* under both ledgers' locks, as the others may post receives */
	struct ndx_connector *connector;
	struct ndx_mr *mr[AREAS]; /* all the same with one_region */
	struct ndx_mw *mw;
	struct op op;     /* connect, complete_connect, accept */
	struct op notify; /* notify_disconnect */
	struct op part;   /* disconnect */

	struct memory memory;
	uint32_t local_token;
	uint32_t receive_token;
	uint32_t read_token; /* for the peer */
	uint32_t write_token;
	pthread_mutex_t window_lock; /* of the next four */
	enum window_state window;
	uint32_t window_token;
	uint32_t window_users;
	uint32_t window_binds;

	struct ledger initiator;
	struct ledger receive;
	struct message messages[MESSAGES];
	uint32_t message_count;   /* atomic: described */
	uint32_t sent;            /* messages posted */
	uint32_t sends_ok;        /* messages that completed well, written ones included */
	uint32_t received;        /* atomic */
	uint32_t posted_for_peer; /* receives without an SRQ; atomic */
	uint32_t write_room;      /* bytes of the peer's AREA_WRITE that are used; atomic */

	uint32_t phase;      /* enum phase; atomic */
	uint32_t tries;      /* of connecting */
	bool cancelled;      /* its connector was, or is closed: what is pending may be CANCELED */
	bool owed;           /* ... in a callback, and what has one itself is still to be told */
	bool asked;          /* notify_disconnect was called */
	bool finishing;      /* its plan's end has begun */
	bool calls;          /* it disconnects, */
	uint32_t call_at;    /* in this turn */
	bool cancelled_once; /* its disconnect was */
	uint64_t parted_at;  /* it has completed: when that was seen */
	bool told_first;     /* notify_disconnect was pending when disconnect was called */
	bool notified;       /* the indication has come */
	enum ndx_disconnect_reason reason;
	enum ndx_status outcome; /* of the last disconnect that was not cancelled; NDX_PENDING */
	uint64_t ended_at; /* from here on new requests may only be CANCELED; 0: not yet; atomic */
	bool quiet;        /* posts nothing any more that has bytes */
	uint32_t over;     /* nothing more to do with it but to close; atomic */
	bool post_mortem;  /* posted after the end, as a trial */
};

/* How a connection may end, from what was done to it. */
struct conn {
	uint32_t index;
	const struct conn_plan *plan;
	struct end ends[SIDES];
	struct fact graceful[SIDES]; /* disconnect, or a handle closed */
	struct fact abortive[SIDES]; /* anything that may end it without a goodbye */
	uint32_t faults[SIDES];      /* which: bits 1 << enum finish; atomic */
	uint64_t doomed;             /* from here on it is certain that it ends so; atomic */
};

struct cq {
	pthread_mutex_t lock; /* taking and judging results is one step */
	struct ndx_cq *cq;
	struct op notify;
	enum ndx_cq_notify_type armed;
	bool must_fire; /* it was empty when the notification was armed */
	bool empty;     /* the last time a thread looked */
	bool slept;     /* a thread slept for it: its descriptor takes notifications, too */
	bool due;       /* a result came that has to fire it */
};

struct srq_entry {
	uint32_t at;
	bool taken;
};

struct srq {
	pthread_mutex_t lock;
	struct ndx_srq *srq;
	struct ndx_mr *mr;
	uint8_t *base;
	struct srq_entry entries[REQUESTS];
	uint32_t posted; /* atomic */
	uint32_t done;
	uint32_t claimed; /* by senders; atomic */
	uint32_t slot;
	uint32_t token;
};

struct listen_slot {
	struct ndx_connector *connector;
	struct op op;
	bool pending;
};

struct side {
	struct round *round;
	uint32_t index;
	const struct side_plan *plan;
	struct ndx_adapter *adapter; /* own, or the place's */
	struct ndx_adapter *own;
	struct mailbox *mail;
	struct ndx_adapter_info info;
	struct ndx_listener *listener;
	struct listen_slot slots[CONNS_MAX];
	struct cq cqs[CQS_MAX];
	struct srq srq;
	pid_t owner; /* whose objects they are */
};

struct round {
	struct ndx_adapter *other_adapter; /* of CALLER_OTHER */
	struct trace trace;
	struct plan plan;
	uint64_t number;
	struct sockaddr_storage address; /* of the listener */
	uint32_t listening;              /* atomic */
	uint32_t child_up;               /* atomic: the other process is connected, */
	uint32_t child_done;             /* and has ended in order */
	uint32_t child_may_go;           /* atomic: we are connected, too: it may exit */
	int32_t forked;                  /* atomic: a process that was forked; 0: none */
	uint64_t killed_at;              /* atomic */
	uint64_t known_after;            /* ns until the last survivor's end knew; atomic */
	struct side sides[SIDES];
	struct conn conns[CONNS_MAX];
	uint8_t *memory; /* of this round */
};

static inline struct side *side_of(const struct end *e)
{
	return &e->round->sides[e->side];
}

static inline bool side_is_mine(const struct side *s)
{
	return s->owner == getpid();
}

static inline bool end_has_srq(const struct end *e)
{
	return e->plan->uses_srq;
}

static inline enum phase end_phase(const struct end *e)
{
	return (enum phase)__atomic_load_n(&e->phase, __ATOMIC_ACQUIRE);
}

static inline void end_set_phase(struct end *e, enum phase phase)
{
	__atomic_store_n(&e->phase, phase, __ATOMIC_RELEASE);
}

#endif
