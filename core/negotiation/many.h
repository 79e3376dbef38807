/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session of several queue pairs. Each queue pair has a lane: a session without a transport, with
 * a dialogue and a driver of its own. The session's driver distributes the frames that come, and
 * sends what the lanes queue; its own dialogue says which stage runs, and how the session fails.
 *
 * All functions do nothing for a session of one queue pair (`many` is NULL), unless stated
 * otherwise. Loop thread, unless stated otherwise.
 */
#ifndef NEGOTIATION_MANY_H
#define NEGOTIATION_MANY_H

#include "session.h"

/* A frame that waits for its lane. */
struct lane_frame {
	struct lane_frame *next;
	struct frame f;
	uint8_t payload[];
};

struct addition;
struct addition_role;

struct lane {
	struct ndx_session s; /* what the driver sees */
	struct many *many;
	struct addition *addition; /* while the lane is being added, see many_add.h; else NULL */
	uint32_t batch;            /* number of that; 0: the lane was there from the start */
	bool hung_up;
	bool counted; /* at a server: the client's principal has it, until it is removed */
	bool ended;   /* removed, and the plugin's part has ended */
	struct lane_frame *first; /* the frames that wait, oldest first */
	struct lane_frame **end;
	unsigned waiting; /* how many these are */
	bool blocked;     /* waits for room in `out` */
	struct lane *next_due;
};

struct many {
	struct ndx_session *session;
	uint32_t count;
	uint32_t left;       /* lanes that have not ended the stage */
	uint32_t connecting; /* lanes that still connect while `stopping` */
	bool in_stage;
	bool stopping;       /* nothing is begun any more */
	bool linked;         /* connections use the transport for their goodbyes */
	bool asks_done;      /* the peer has begun stage done */
	bool paused;         /* too much waits: nothing is read */
	struct lane *failed; /* the first lane that failed; NULL: none ... */
	bool listening;      /* ... and the peer's word on that may be on its way, ... */
	bool late;           /* ... but has not come in time */
	struct lane *due;    /* lanes whose plugin is to be called, ... */
	struct lane **due_end;
	struct lane *batch; /* ... and those that the task calls it for */
	size_t waiting;     /* bytes of frames that wait */
	uint8_t *out;
	size_t out_room;
	size_t out_length;
	size_t out_sent;
	enum driver_phase phase; /* before the stop; then `then` */
	bool (*then)(struct ndx_session *s);
	bool adds;           /* both ends can add and remove queue pairs */
	uint32_t batches;    /* number of the latest batch that was added, or failed */
	uint32_t next_index; /* of the next queue pair that is added; used once */
	const struct addition_role *role;
	struct addition *adding; /* the batch in progress; NULL: none */
	struct lane *removed;    /* those that are not freed yet */
	struct lane **lanes;     /* `count`, in the order of their indices, each allocated alone */
};

/* The index of a queue pair in its session: what frames, errors and programs say. */
static inline uint32_t lane_index(const struct lane *lane)
{
	return lane->s.dialogue.queue_pair;
}

/* ---- many.c ---- */

/* NULL: out of memory. Any thread. */
struct many *many_alloc(uint32_t count);
/* The session's driver and dialogue are ready. `adding`: see many_add.h. Any thread. */
void many_init(struct ndx_session *s, struct many *m, const struct addition_role *adding);
/* What a lane connects. Any thread, before its first stage. */
void lane_set(struct lane *lane, const struct ndx_session_queue_pair *pair);
/* The queue pair of that index; NULL: the session has none. Loop thread, or with the session's
 * lock.
 */
struct lane *many_find(const struct many *m, uint32_t index);
/* Any thread, after the plugin's part has ended. */
void many_free(struct many *m);

/* Whether the session, or queue pairs that are being added, have a stage to go through; then
 * many_step() drives that. */
bool many_has_stage(const struct ndx_session *s);
/* A result as that of a role's function. */
bool many_step(struct ndx_session *s);
/* True: the timer was that of this wait, in one of the session's own stages. */
bool many_timer(struct ndx_session *s);
/* On the pool: describe the own ends. `near`: see describe_own(). */
enum ndx_status many_describe(struct ndx_session *s, const struct sockaddr_storage *near);
/* On the pool: the calls of the plugin that are due. */
void many_work(struct ndx_session *s);
/* Any thread, the session has ended: the plugin's part. */
void many_end_plugin(struct ndx_session *s);
/* Give up what is in progress. False: not over yet; then `then` runs, and the session is driven
 * further if that returns true. True also for a session of one queue pair. */
bool many_stop(struct ndx_session *s, bool (*then)(struct ndx_session *s));
/* A lane has connected, or not. True: the session stops, and that was handled. */
bool many_lane_stopped(struct ndx_session *lane);
/* Cancel connecting, of one queue pair, too. */
void many_cancel_attempts(struct ndx_session *s);
/* For all lanes: what they do after the last stage, and at the end. */
void many_set_phase(struct ndx_session *s, enum driver_phase phase);
void many_close(struct ndx_session *s);
/* What a stage waits for that takes too long; NULL: one queue pair. */
const char *many_late(const struct ndx_session *s, char *text, size_t room);

/* Whether the server's refusal says that it does not know version 2 of the protocol; then the text
 * is many_unknown, with the server's behind it. */
bool many_is_unknown(const struct ndx_session *s, const struct frame_error *refusal);
extern const char many_unknown[];

/* ---- many_io.c ---- */

/* Whether a frame may come without the number of a queue pair; with one, true. False: *why. */
bool many_has_place(const struct ndx_session *s, const struct frame *f, const char **why);
/* A frame for a lane; the frame is copied. False: *why. */
bool many_take(struct ndx_session *s, const struct frame *f, const char **why);
/* Nothing is to be read now: too many frames wait, or a stage has to end first. */
bool many_is_full(struct ndx_session *s);
/* Queue a frame of the whole session behind those of the lanes. NDX_E_NO_MEMORY; or
 * NDX_E_REMOTE_ERROR if too much waits because the peer does not read, see many_unread. */
enum ndx_status many_queue(struct ndx_session *s, const struct frame *f);
extern const char many_unread[];
/* The same; else the session fails, with that text if there is no memory. */
void many_say(struct ndx_session *s, const struct frame *f, const char *no_memory);
/* Send what is queued. False: not all has been taken. */
bool many_flush(struct ndx_session *s);
/* The lane's channel; as the functions of the driver. */
bool lane_is_open(const struct ndx_session *s);
enum driver_io lane_read(struct ndx_session *s, struct frame *f);
enum driver_io lane_read_behind(struct ndx_session *s, struct frame *f);
void lane_consume(struct ndx_session *s);
void lane_consume_behind(struct ndx_session *s);
enum driver_io lane_send(struct ndx_session *s, const uint8_t *bytes, size_t length);
/* Of all lanes, as the functions of driver_oob.c. */
bool many_has_oob(const struct ndx_session *s);
bool many_oob_is_over(const struct ndx_session *s);
void many_oob_lost(struct ndx_session *s);

#endif
