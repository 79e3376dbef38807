/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that are added to a session of several, and removed from it, after stage ready. The
 * client begins both. A batch of queue pairs goes through the stages info, validate and ready while
 * the others live: in their place is the session's own stage, which stays IDLE. A batch that fails
 * leaves the session as it was.
 *
 * Loop thread, unless stated otherwise.
 */
#ifndef NEGOTIATION_MANY_ADD_H
#define NEGOTIATION_MANY_ADD_H

#include "many.h"

enum addition_state {
	ADDITION_OPENING, /* a task: a server's program gives the queue pairs; they are described */
	ADDITION_STAGE,   /* a stage runs */
	ADDITION_ANSWER,  /* client: the stages have ended here; the server has not said so */
	ADDITION_REPORT,  /* server: the stages have ended; a task tells the program */
	ADDITION_STOPPING, /* it has failed, and its attempts to connect are being given up */
	ADDITION_RELEASE,  /* ... a task ends the plugin's part, and tells the program */
};

/* The queue pairs that are being added; at most one batch at a time. */
struct addition {
	uint32_t number; /* 0: the peer does not know the batch */
	uint32_t first;  /* index */
	uint32_t count;
	enum addition_state state;
	enum ndx_stage stage;
	uint32_t left;       /* lanes that have not ended the stage */
	struct lane *failed; /* the first that failed */
	bool listed;         /* the lanes are in the session's table */
	bool failing;        /* `error` is the outcome */
	bool late;           /* the time for the stage is over */
	bool answered;       /* client: the server has said that the stages have ended */
	bool listening;      /* `failed` is set, and the peer's word on that may be on its way */
	bool abandoned;      /* the peer gave up, see `word` */
	struct frame_abandon word;
	uint64_t since_ns;
	struct sockaddr_storage near; /* the own address of the transport */
	/* The task's, while it is in the pool: */
	bool worked; /* the task of the state has run */
	bool opened; /* the program has given the queue pairs, and has to be told the outcome */
	bool faulty; /* the task failed, see `error` */
	struct ndx_session_error error;
	struct lane *lanes[];
};

/* How the roles differ. */
struct addition_role {
	/* A server's: whether it takes so many more; else `why`. */
	enum ndx_status (*allow)(struct ndx_session *s, uint32_t count, char *why, size_t room);
	/* The batch, or one of its stages, begins: set the timer. */
	void (*timer)(struct ndx_session *s);
	/* The batch is over, freed, and no more of the session's driver. Driven further if true. */
	bool (*over)(struct ndx_session *s, const struct ndx_session_error *outcome,
	             uint32_t first);
	/* May be NULL: whether to log one more batch that fails. */
	bool (*may_log)(struct ndx_session *s);
	/* On the pool; may be NULL: the program gives the queue pairs. Else addition_fault(). */
	void (*open)(struct ndx_session *s, struct addition *a);
	/* On the pool; may be NULL: the program is told the outcome. */
	void (*told)(struct ndx_session *s, struct addition *a, enum ndx_status status);
	/* On the pool; may be NULL: the queue pair was removed. */
	void (*removed)(struct ndx_session *s, struct lane *lane);
	/* A client's: between two calls the peer breaks the protocol. */
	void (*broken)(struct ndx_session *s, const char *why);
};

/* ---- many_add.c ---- */

/* NULL: out of memory. The session's first stages may not have run yet. Any thread. */
struct addition *addition_alloc(struct ndx_session *s, uint32_t count);
/* Before it begins. Any thread. */
void addition_free(struct addition *a);
/* Whether a batch is in progress. */
bool many_adds_now(const struct ndx_session *s);
/* Begin: the lanes get their indices. A fault if there is no memory for that. */
void addition_open(struct ndx_session *s, struct addition *a);
/* Whether to log one more batch that fails. */
bool addition_may_log(struct ndx_session *s);
/* Drive the batch; a result as that of a role's function. */
bool addition_step(struct ndx_session *s);
/* On the pool: the task of the batch, and the end of the plugin's part of removed queue pairs. */
void addition_work(struct ndx_session *s);
/* The time for the batch's stage is over; drive the session. */
void addition_late(struct ndx_session *s);
/* On the pool: the batch fails in its task. */
void addition_fault(struct addition *a, enum ndx_error_layer layer, enum ndx_status status,
                    const char *text);
/* On the pool, the session has ended: tell the program of a batch that will not. */
void addition_end(struct ndx_session *s);

/* Tell the peer that the batch has failed. */
void addition_tell(struct ndx_session *s, const struct addition *a);
/* The outcome, for history and log. */
void addition_record(struct ndx_session *s, const struct addition *a);

/* ---- many_words.c ---- */

/* The client begins to add. The session owns the batch from then on. */
void addition_begin(struct ndx_session *s, struct addition *a);
/* A frame of the whole session that concerns this file; the caller consumes it. False: none, or not
 * its time. */
bool addition_hear(struct ndx_session *s, const struct frame *f);

/* ---- many_remove.c ---- */

/* Disconnect the queue pair, which may have connected. */
void lane_hang_up(struct lane *lane);
/* Take these out of the session, which is between two stages. NULL, or why not. */
const char *many_remove(struct ndx_session *s, uint32_t first, uint32_t count);
/* Free what was removed and whose part of the plugin has ended. True: the part of others has not;
 * a task has to call addition_work(). */
bool many_sweep(struct ndx_session *s);
/* For sessions that end: free it all. Any thread. */
void many_free_removed(struct many *m);

extern const struct addition_role addition_client;
extern const struct addition_role addition_server;

/* ---- many_lane.c ---- */

struct lane *lane_alloc(struct many *m);
void lane_init(struct lane *lane, uint32_t index);
void lane_free(struct lane *lane);
/* Begin the stage. */
void lane_start(struct lane *lane, enum ndx_stage stage);
/* The tasks of lanes have returned. */
void many_end_batch(struct many *m);
/* Give the calls that are due to the pool. */
void many_push_due(struct ndx_session *s);
/* `failed` has failed for what the peer did. Why the peer did so may come behind that: its word, or
 * the end of the transport. True: wait for one of the two, until the timer, which is not far, and
 * is set once. */
bool many_awaits_word(struct ndx_session *s, const struct lane *failed, bool *listening);
#endif
