/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of a session: one conversation over one transport, for both roles. Events drive it; it
 * never blocks.
 *
 * A session belongs to the loop thread of its engine, which owns the transport's socket for good.
 * The dialogue belongs to the pool while a task of the session is there; then the loop thread
 * handles only the connection's goodbyes, and records what to do afterwards.
 */
#ifndef NEGOTIATION_DRIVER_H
#define NEGOTIATION_DRIVER_H

#include "dialogue.h"
#include "engine.h"
#include "frame_io.h"
#include "relay.h"
#include "replay.h"
#include "tls.h"

struct ndx_session;
struct lane;

enum driver_phase {
	DRIVER_ROLE,    /* the role drives by `step` */
	DRIVER_ACTIVE,  /* the dialogue says what is next */
	DRIVER_POOL,    /* a task is in the pool */
	DRIVER_QP,      /* the queue pair is connecting, or proves its path */
	DRIVER_ORPHAN,  /* the transport broke; waits for another one */
	DRIVER_ENDING,  /* sends the last frame */
	DRIVER_CLOSING, /* does nothing any more */
};

enum driver_io {
	IO_DONE, /* complete */
	IO_WAIT, /* the session goes on with the descriptor's next event */
	IO_LOST, /* the transport is lost */
	IO_BAD,  /* the bytes are no frame: see `why` */
};

/* How the roles differ. Loop thread; true: drive the session further. False: it waits, or is gone.
 */
struct driver_role {
	bool (*step)(struct ndx_session *s); /* in DRIVER_ROLE */
	bool (*idle)(struct ndx_session *s); /* the dialogue is between two stages */
	/* On the pool: the dialogue's next call is due, after what the role has to do before. */
	void (*work)(struct ndx_session *s);
	/* May be NULL: whether `work` does not block now, so that the loop thread may do it. */
	bool (*prompt)(struct ndx_session *s);
	bool (*returned)(struct ndx_session *s); /* the task has ended */
	/* The transport is lost, see `io_status` and `io_text`. */
	bool (*lost)(struct ndx_session *s);
	bool (*bad)(struct ndx_session *s, const char *why); /* the peer sent no frame */
	bool (*failed)(struct ndx_session *s);               /* the dialogue has failed */
	void (*closed)(struct ndx_session *s);               /* the peer has ended the session */
	bool drains; /* wait for the peer to close after the last frame */
	/* The last frame was sent. */
	void (*ended)(struct ndx_session *s);
	/* May be NULL: whether the consumer has cancelled the session. */
	bool (*cancelled)(const struct ndx_session *s);
	/* Give the task to a thread that may block; then driver_returned(). */
	void (*push)(struct ndx_session *s);
	void (*timer)(struct ndx_session *s);
	/* A queue pair that connects although the time is over, or that fails for a cause of its
	 * own, counts as such; false: any outcome is a time-out then. */
	bool takes_late;
	const char *late; /* failure of a queue pair that does not connect in time */
};

#define DRIVER_HELD 512u

/* A small frame, its header and the frame behind it take one read. */
#define DRIVER_AHEAD 256u

/* What a session of several queue pairs does in place of the driver, see many.h. */
struct driver_many {
	/* For the session: */
	bool (*has_stage)(const struct ndx_session *s);
	bool (*step)(struct ndx_session *s);
	bool (*stop)(struct ndx_session *s, bool (*then)(struct ndx_session *s));
	void (*close)(struct ndx_session *s);
	bool (*flush)(struct ndx_session *s);
	bool (*is_full)(struct ndx_session *s);
	bool (*has_place)(const struct ndx_session *s, const struct frame *f, const char **why);
	bool (*take)(struct ndx_session *s, const struct frame *f, const char **why);
	bool (*hear)(struct ndx_session *s, const struct frame *f);
	bool (*has_oob)(const struct ndx_session *s);
	bool (*oob_is_over)(const struct ndx_session *s);
	void (*oob_lost)(struct ndx_session *s);
	/* For a lane: */
	bool (*lane_stopped)(struct ndx_session *s);
	bool (*is_open)(const struct ndx_session *s);
	enum driver_io (*read)(struct ndx_session *s, struct frame *f);
	enum driver_io (*read_behind)(struct ndx_session *s, struct frame *f);
	void (*consume)(struct ndx_session *s);
	void (*consume_behind)(struct ndx_session *s);
	enum driver_io (*send)(struct ndx_session *s, const uint8_t *bytes, size_t length);
};

struct driver {
	const struct driver_role *role;
	const struct driver_many *many; /* of a session of several queue pairs, and its lanes */
	struct engine *engine;
	enum driver_phase phase;
	bool over; /* out of time, or stopped, while the pool or the queue pair has the session */
	bool stopped;      /* ... because the server ends */
	bool peer_left;    /* the proof was ended because the peer gave up, or is gone */
	bool secured;      /* the handshake of `tls` has ended, and log and history say so */
	uint64_t tls_ns;   /* when it began */
	int fd;            /* -1: none, or a stream */
	bool watched;      /* `watch` is added */
	struct lane *lane; /* one of several queue pairs, see many.h; NULL: a whole session */
	struct link
		*stream; /* the transport of a device's plugin; NULL: the socket `fd`, or none */
	struct relay *relay; /* behind `fd` is another transport of a plugin; else NULL */
	struct tls *tls;     /* over the socket; NULL: plaintext */
	struct ndxp_watch watch;
	struct replay replay;
	struct ndxp_timer timer;
	uint64_t deadline_ns; /* of the timer */
	uint64_t since_ns;    /* when the wait for the peer's frame began; 0: it did not */
	struct frame_reader in;
	struct frame_reader behind; /* what follows a frame that waits in `in` */
	size_t sent;                /* bytes of the current frame that are sent */
	/* Frames that wait for those that follow at once; NULL: none. */
	uint8_t *held;
	size_t held_length;
	size_t held_sent;
	uint64_t blocked_ns; /* since when the socket has no room for the rest; 0: it has */
	uint32_t wanted;     /* the events that this drive waits for */
	uint32_t seen;       /* the events of the descriptor since it was attached */
	unsigned reads;      /* reads left before other sessions have their turn, ... */
	unsigned calls;      /* ... and calls of a prompt plugin */
	/* What was read beyond the current frame; without TLS, which has a buffer of its own: */
	uint8_t ahead[DRIVER_AHEAD];
	uint16_t ahead_at;
	uint16_t ahead_end;
	bool drained; /* the socket had no more; an event tells when this changes */
	bool unsent;  /* a send has failed, see `io_status`: the reader says so at last */
	uint8_t last_words[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];
	size_t last_length;
	/* Why the transport is lost: status, errno (0: the peer closed), and a stream's text. */
	enum ndx_status io_status;
	int io_errno;
	char io_text[256];
	/* An operation of a stream is a task: what it does, its result has come, and its arguments.
	 */
	enum ndx_status (*io)(struct ndx_session *s);
	enum driver_phase io_phase;
	bool io_back;
	const uint8_t *io_bytes;
	size_t io_length;
	/* ... and what a read of it found: */
	enum frame_verdict io_verdict;
	struct frame io_frame;
	const char *io_why;
	struct pool_task task;
	struct ndxp_job returned;
	uint64_t called_ns;    /* when the task was given to the pool */
	uint64_t began_ns;     /* atomic: when a thread began it; 0: it is queued */
	uint32_t called_round; /* the dialogue's round then: a restart in the task changes it */
	struct ndx_overlapped ov;
	struct ndxp_job qp_done;
	bool connecting;   /* the queue pair has a call in progress, also without DRIVER_QP */
	bool returned_qp;  /* ... which has returned while the transport was being replaced */
	bool proving;      /* `ov` is of the proof of the path, not of connecting */
	bool proof_cut;    /* the transport was lost during the proof: the peer may begin later */
	bool given_up;     /* the attempt was given up, to find out what has arrived */
	bool restart;      /* the dialogue's next call repeats the stage */
	bool half;         /* connecting is the proof, see driver_qp.c ... */
	bool halving;      /* ... and the timer is for half of the time, ... */
	uint64_t half_ns;  /* ... which is over then, ... */
	uint64_t whole_ns; /* ... instead of for this time */
	/* A connection without a connection manager, see driver_oob.c: */
	struct oob_link *oob; /* NULL: none */
	uint32_t oob_pending; /* bits of enum oob_event to send; atomic */
	uint8_t oob_frame[FRAME_HEADER];
	bool oob_sending;   /* `oob_frame` is being sent */
	uint32_t oob_ended; /* atomic: the connection has ended, or will not be made */
	struct ndxp_job go;
	struct ndxp_job last;
};

/* ---- driver.c ---- */

void driver_init(struct ndx_session *s, const struct driver_role *role, struct engine *engine);
/* The session ends: close the transport, and run `then`, which may free the session, after the
 * session's jobs that are queued. */
void driver_end(struct ndx_session *s, ndxp_loop_fn *then);
/* Give the readers' memory back. */
void driver_fini(struct ndx_session *s);
/* Drive the session as far as possible. */
void driver_go(struct ndx_session *s);
/* The same from any thread, or out of the drive of another session: soon. */
void driver_go_soon(struct ndx_session *s);
/* The queue pair's call has returned. True: drive the session further. */
bool driver_take_qp(struct ndx_session *s);
/* Receive a frame for the dialogue. A result as that of a role's function. */
bool driver_receive(struct ndx_session *s);
/* Give the session to the pool: for the dialogue's next call. */
void driver_call(struct ndx_session *s);

/* ---- driver_task.c ---- */

/* Give the session to a thread that may block: for the stream's operation, or for the role's work.
 */
void driver_push(struct ndx_session *s);
/* Do the role's work at once, if it does not block. False: use driver_call(). */
bool driver_call_here(struct ndx_session *s);
/* Run a blocking operation of the stream as a task; IO_WAIT: ask for it again afterwards. IO_LOST:
 * see `io_status`. */
enum driver_io driver_block(struct ndx_session *s, enum ndx_status (*io)(struct ndx_session *s));

/* ---- driver_io.c ---- */

/* Set the timer; UINT64_MAX: no limit. */
void driver_set_timer(struct ndx_session *s, uint64_t deadline_ns);
/* Wait for an event of the transport. */
enum driver_io driver_wait(struct ndx_session *s, uint32_t events);
/* Why the transport is lost. */
const char *driver_io_text(struct ndx_session *s);
/* Make `fd` the transport. */
bool driver_attach(struct ndx_session *s, int fd);
/* After driver_attach(): take what `from` has read from this socket beyond its current frame. */
void driver_take_ahead(struct ndx_session *s, const struct driver *from);
/* Frames that wait for those that follow are sent, as far as the socket takes them at once. */
void driver_detach(struct ndx_session *s);
enum driver_io driver_read_frame(struct ndx_session *s, uint32_t most, struct frame *f,
                                 const char **why);
/* The peer's next frame, not consumed; false: none now, and *more says whether to continue. */
bool driver_take_frame(struct ndx_session *s, struct frame *f, bool *more);
/* While a frame waits: read the header of the frame after it. IO_BAD: that one has a payload. */
enum driver_io driver_read_behind(struct ndx_session *s, struct frame *f);
/* Remove the current frame; the one behind it. */
void driver_consume(struct ndx_session *s);
void driver_consume_behind(struct ndx_session *s);
/* Whether there is a socket; for one of several queue pairs, the session's. */
bool driver_is_open(const struct ndx_session *s);
/* As driver_send(), with a count of its own of what is sent. */
enum driver_io driver_send_from(struct ndx_session *s, const uint8_t *bytes, size_t length,
                                size_t *sent);
enum driver_io driver_send(struct ndx_session *s, const uint8_t *bytes, size_t length);
/* The same for a frame that others may follow at once. They are sent together, before the session
 * waits for anything, or by driver_flush(). If they cannot be sent, the reader says that the
 * transport is lost, once there is nothing left to read. */
enum driver_io driver_send_soon(struct ndx_session *s, const uint8_t *bytes, size_t length);
void driver_flush(struct ndx_session *s);
/* Nothing more is sent: tell the peer. */
void driver_shut(struct ndx_session *s);
/* Discard what arrives, until the peer closes. */
enum driver_io driver_drain(struct ndx_session *s);

/* ---- driver_replay.c ---- */

/* Whether another transport can replace the present one, in any phase. */
bool driver_can_resume(const struct ndx_session *s);
/* The transport is lost while something else has the session. True: it may be replaced, and what
 * uses it next notices. */
bool driver_drop_lost(struct ndx_session *s);
/* The same, or over another transport from the begin of the stage. */
bool driver_can_replace(const struct ndx_session *s);
/* Send again what the peer lacks. False: wait. */
bool driver_replay_send(struct ndx_session *s);
/* Stage ready has ended here: tell the peer, once. */
enum driver_io driver_say_ready(struct ndx_session *s);

/* ---- driver_tls.c ---- */

/* Speak TLS over the socket that was attached; `c` NULL: plaintext. `server`: see tls_begin(). */
bool driver_secure(struct ndx_session *s, struct tls_context *c, const char *server);
/* The session's channel is lost because of TLS, see `io_text`, and not because of the socket. */
bool driver_tls_failed(const struct ndx_session *s);
/* The dialogue begins, or goes on, over the channel: bind its queue pair to the channel. */
bool driver_bind(struct ndx_session *s);
/* After a receive or a send: log and record the end of the handshake. */
void driver_note_tls(struct driver *d);
/* The transport is lost: record a handshake that has failed for that. */
void driver_note_tls_lost(struct driver *d, enum ndx_status status);

/* ---- driver_qp.c ---- */

/* Connect the queue pair to the peer's; the dialogue gets the outcome, at once or later. */
void driver_qp_connect(struct ndx_session *s);
/* The same for the proof of the path. */
void driver_qp_prove(struct ndx_session *s);
/* One of them has ended. True: drive the session further. */
bool driver_qp_done(struct ndx_session *s);
/* While the queue pair connects: give up if the peer has. */
void driver_qp_look(struct ndx_session *s);
/* True: the timer was this file's. */
bool driver_qp_on_timer(struct ndx_session *s);
/* The transport was replaced, and the timer is set for the stage: set it for half of the time if
 * that was so. */
void driver_qp_go_on(struct ndx_session *s);
/* `text`, of a time-out, and what this end's proof has found if the peer's has not come. */
#define DRIVER_LATE 256u
const char *driver_qp_late(const struct ndx_session *s, const char *text, char out[DRIVER_LATE]);

/* ---- driver_oob.c; these do nothing for a session without a link ---- */

/* Whether a connection uses the transport. */
bool driver_has_oob(const struct ndx_session *s);
/* The transport is lost for each connection that uses it. */
void driver_oob_lost(struct ndx_session *s);
/* Prepare before the queue pair connects. */
enum ndx_status driver_oob_open(struct ndx_session *s);
/* Send pending goodbyes and aborts, unless another frame is being sent. False: wait. */
bool driver_oob_send(struct ndx_session *s);
/* Handle the frame if it is a goodbye or an abort, or is about queue pairs that are added or
 * removed; false if not. */
bool driver_oob_handle(struct ndx_session *s, const struct frame *f);
/* While the dialogue does not read: handle goodbyes and aborts, leave other frames. */
void driver_oob_receive(struct ndx_session *s);
/* Whether the connection has ended, and its last goodbye or abort has been given to the transport.
 * One that is pending has also queued a drive, which sends it. */
bool driver_oob_is_over(const struct ndx_session *s);
/* The connection gets no further word from the session, nor the session from the connection. */
void driver_oob_close(struct ndx_session *s);

#endif
