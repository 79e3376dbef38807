/* SPDX-License-Identifier: BSD-2-Clause */
/* What a round does, as far as it is decided beforehand. Follows from the seed alone. */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIDES = 2, CONNS_MAX = 8, CQS_MAX = 3 };

/* How a side ends a connection. The faults end it by a request that fails. */
enum finish {
	FINISH_DISCONNECT,
	FINISH_NOTHING, /* until the peer has ended it; then it disconnects, or is only closed */
	FINISH_CLOSE_QP,
	FINISH_CLOSE_CONNECTOR,
	FINISH_FLUSH,
	FINISH_LOCAL_TOKEN,   /* a request from memory that is not registered */
	FINISH_REMOTE_TOKEN,  /* a read or write with a token that is none */
	FINISH_REMOTE_RANGE,  /* ... behind the end of the peer's memory */
	FINISH_SHORT_RECEIVE, /* a receive that is too small for most messages */
	FINISH_NO_RECEIVE,    /* sends that are not received, and a short no-receive time-out */
	FINISH_CLOSE_MEMORY,  /* a region is closed under the traffic */
	FINISH_INVALIDATE,    /* of a window that is not bound */
	FINISHES
};

enum attempt {
	ATTEMPT_NORMAL,
	ATTEMPT_NOBODY,     /* first to an address without a listener */
	ATTEMPT_REJECT,     /* the passive side refuses */
	ATTEMPT_TURN_DOWN,  /* the active side refuses the answer */
	ATTEMPT_CLOSE_LATE, /* the active side closes instead of completing */
	ATTEMPT_CANCEL,     /* the active side cancels at some time */
	ATTEMPTS
};

enum polling { POLL_EAGER, POLL_LAZY, POLL_NEVER };

/* What becomes of the peer that is another process. */
enum fate {
	FATE_LIVES,
	FATE_KILLED,
	FATE_STOPPED,
	FATE_EXITS,  /* _exit() in the middle of everything */
	FATE_LEAVES, /* exit(), with all that the libraries do then */
	FATES
};

/* What a process that is forked in the middle of everything does. */
enum forks {
	FORK_NONE,
	FORK_EXITS, /* nothing, and ends */
	FORK_EXECS, /* becomes another program, that goes on */
	FORKS
};

/* The caller. */
enum caller {
	CALLER_THREAD,
	CALLER_CALLBACK, /* of the side's adapter */
	CALLER_CROSSED,  /* of the other side's adapter */
	CALLER_OTHER,    /* of an adapter that has nothing to do with it */
	CALLERS
};

struct end_plan {
	enum finish finish;
	uint32_t finish_at; /* turn */
	enum polling polling;
	bool polite;     /* sends only what a receive waits for */
	bool mute;       /* posts no receives but the first */
	bool asks;       /* calls notify_disconnect, */
	uint32_t ask_at; /* in this turn */
	bool cancels;    /* calls of its connector that are pending */
	bool waits;      /* sleeps for results now and then instead of polling */
	bool late_end;   /* FINISH_NOTHING: disconnects after all when the peer has gone */
	bool patient;    /* ... and waits to be told of that, whatever happens */
	bool one_region; /* all its memory is one region */
	bool one_cq;
	bool uses_srq;
	uint32_t receive_cq;
	uint32_t initiator_cq;
	uint32_t receive_depth;
	uint32_t initiator_depth;
	uint32_t sge;
	uint32_t inline_size;
	uint32_t no_receive_ms;
	uint32_t keepalive_ms;
	uint64_t seed;
};

struct conn_plan {
	enum attempt attempt;
	uint32_t message; /* longest, in bytes */
	struct end_plan ends[SIDES];
};

struct side_plan {
	uint32_t cqs;
	uint32_t cq_depth[CQS_MAX];
	bool own_adapter;
	bool srq;
	uint32_t srq_depth;
};

struct plan {
	uint64_t seed;
	uint32_t conns;
	uint32_t turns;
	uint32_t drain_ms; /* of all its connectors */
	uint32_t disconnect_ms;
	uint32_t area;    /* bytes of each memory area of an end */
	uint32_t threads; /* 1: all ends in turns; 2: a thread for each side; 3: and a busybody */
	enum caller caller;
	uint32_t busy; /* percent of the callbacks of operations that go on with the program */
	bool fences;
	bool windows;
	bool process;   /* one side is another process */
	uint32_t child; /* which */
	enum fate fate;
	uint32_t fate_at;  /* turn */
	enum forks forks;  /* of the other process, or of the only one */
	uint32_t fork_at;  /* turn */
	uint64_t teardown; /* seed of the order */
	struct side_plan sides[SIDES];
	struct conn_plan of[CONNS_MAX];
};

/* What the adapters of both sides can do, as far as it decides something. */
struct means {
	bool processes;     /* reaches other processes */
	bool callbacks;     /* every round of one process is called in callbacks */
	bool other_adapter; /* there is an adapter for CALLER_OTHER */
	bool deaths;        /* every round has another process, which is killed */
	bool srq;
	bool fences;
	bool windows;
	uint32_t inline_size;
	uint32_t sge;
};

void plan_make(struct plan *plan, uint64_t seed, const struct means *means);

/* Does the other process die in the middle, by itself or not? */
static inline bool plan_dies(const struct plan *plan)
{
	return plan->fate == FATE_KILLED || plan->fate == FATE_EXITS || plan->fate == FATE_LEAVES;
}

/* One line about it. */
int plan_print(const struct plan *plan, char *text, size_t size);

const char *finish_name(enum finish finish);

#endif
