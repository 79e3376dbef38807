/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of one session, from hello on, without I/O: frames in, frames out, calls to make.
 * One driver, see driver.h, drives the sessions of clients and servers.
 *
 * A driver reads `next`, does what `next` says and reports the outcome, until `next` is
 * DIALOGUE_IDLE (the stage is over) or DIALOGUE_FAILED. One thread at a time.
 */
#ifndef NEGOTIATION_DIALOGUE_H
#define NEGOTIATION_DIALOGUE_H

#include <stdbool.h>

#include <ndx/session.h>

#include "binding.h"
#include "frame.h"
#include "history.h"
#include "plugins.h"

enum dialogue_next {
	DIALOGUE_IDLE,    /* between two stages */
	DIALOGUE_CALL,    /* call the plugin by dialogue_call(), on a thread that may block */
	DIALOGUE_CONNECT, /* connect the queue pair to `peer`, then dialogue_connected() */
	DIALOGUE_PROVE,   /* prove the path, then dialogue_proved() */
	DIALOGUE_SEND,    /* send `out_length` bytes of `out`, then dialogue_sent() */
	DIALOGUE_RECEIVE, /* receive a frame, then dialogue_receive() */
	DIALOGUE_FAILED,  /* see `error`; if `tell`, send dialogue_error_frame() to the peer */
	DIALOGUE_CLOSED,  /* the peer has ended the session */
};

struct dialogue_limits {
	uint32_t max_message;
	uint32_t max_rounds;
};

struct dialogue {
	struct ndx_exchange view; /* the plugin's view */
	struct ndx_variant *variant;
	void *session;           /* the plugin's state */
	struct history *history; /* NULL: none */
	uint64_t stage_ns;       /* when the current stage began */
	uint8_t *in;             /* the message of the peer's plugin, from receive to call */
	uint8_t *out;            /* a frame, from call to sent */
	size_t out_length;
	uint32_t in_length;
	uint32_t peer_round; /* of the next DATA frame */
	enum dialogue_next next;
	int finished; /* last stage that ended; -1: none */
	struct dialogue_limits limits;
	struct ndx_session_error error;
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;
	struct binding binding; /* of the queue pair to the channel; set by the driver */
	bool one_of_many;       /* of a session of several queue pairs, ... */
	uint16_t queue_pair;    /* ... and which */
	bool begun;
	bool agreement_known;
	bool own_completed;
	bool peer_completed;
	bool have_data; /* `in` is the peer's message; else this is the first call */
	bool tell;      /* the peer does not know `error` yet */
	bool heard_end; /* the history has the peer's end of the session; the driver's */
	/* Stage validate: */
	bool can_prove;           /* this end can prove the path; set by the driver */
	bool no_proof;            /* ... but its variant does not want that */
	bool proving;             /* both ends do; until the peer's proof has come */
	bool unconnected;         /* the own queue pair has not become connected */
	bool announcing;          /* the frame that says that it connects is being sent, ... */
	bool announced;           /* ... or was sent */
	bool peer_connects;       /* the peer has said the same */
	struct frame_proof proof; /* the own one */
	uint64_t proof_ns;        /* when it began */
};

/* Takes a reference of the variant. */
void dialogue_init(struct dialogue *x, struct ndx_variant *variant, enum ndx_role role,
                   uint64_t session, const struct dialogue_limits *limits, struct history *history);
/* Not during a call. */
void dialogue_fini(struct dialogue *x);

/* Lower the limit to the peer's, once known. */
void dialogue_limit(struct dialogue *x, uint32_t max_message);

/* Begin a stage. NDX_E_INVALID_DEVICE_STATE (nothing changed): another stage is next, and
 * ndx_last_error() names it. */
enum ndx_status dialogue_start(struct dialogue *x, enum ndx_stage stage);
/* Whether that can be, for a thread of the program: between two stages the loop thread, which
 * starts the stage, changes nothing. A failure has its text. */
enum ndx_status dialogue_may_start(const struct dialogue *x, enum ndx_stage stage);
/* The transport was replaced: repeat the stage. NDX_E_NOT_SUPPORTED: the variant cannot. */
enum ndx_status dialogue_restart(struct dialogue *x);

void dialogue_call(struct dialogue *x);
void dialogue_connected(struct dialogue *x, enum ndx_status status, const char *text);
/* Before connecting: tell the peer that it begins; then DIALOGUE_CONNECT comes again. */
void dialogue_announce(struct dialogue *x);
/* The same after an attempt that led to no connection: the peer's proof tells where packets are
 * lost. For queue pairs whose connecting is the proof. */
void dialogue_unconnected(struct dialogue *x, const struct frame_proof *proof);
/* NDX_OK: `proof` has the outcome, good or bad. */
void dialogue_proved(struct dialogue *x, enum ndx_status status, const struct frame_proof *proof,
                     const char *text);
void dialogue_sent(struct dialogue *x);
/* Handle a frame that was received; `since_ns`: when the wait for the frame began. */
void dialogue_receive(struct dialogue *x, const struct frame *frame, uint64_t since_ns);
/* Report a failure that the driver found. `tell`: send the error to the peer. */
void dialogue_fail(struct dialogue *x, enum ndx_error_layer layer, enum ndx_status status,
                   bool tell, const char *text);
/* Write the frame with `error` for the peer; returns its length. Once: clears `tell`. */
size_t dialogue_error_frame(struct dialogue *x, uint8_t out[FRAME_HEADER + FRAME_ERROR_SIZE_MAX]);

/* ---- dialogue_state.c and dialogue_validate.c, for the files of the dialogue ---- */

/* Bytes that were sent and received, or that the plugin returned and was given. */
struct moved {
	uint32_t out;
	uint32_t in;
};
extern const struct moved dialogue_none;

/* Add an entry to the history. */
void dialogue_record(struct dialogue *x, enum ndx_history_kind kind, struct moved bytes,
                     enum ndx_status status, uint64_t since_ns, const char *text);
/* Add a frame without payload that belongs to no round: a goodbye, or the end of the session. Also
 * while a task has the dialogue. */
void dialogue_record_word(struct dialogue *x, enum ndx_history_kind kind, enum frame_type type,
                          enum ndx_status status);
/* The own plugin, or the peer's, is the cause. */
void dialogue_fail_plugin(struct dialogue *x, enum ndx_plugin_error error, enum ndx_status status,
                          const char *text);
/* Allocate `out`; false: the dialogue has failed. */
bool dialogue_make_out(struct dialogue *x, size_t payload);
/* Both sides have completed the stage. */
void dialogue_end_stage(struct dialogue *x);
enum ndx_role dialogue_peer_role(const struct dialogue *x);
void dialogue_receive_validate(struct dialogue *x, const struct frame *f);
void dialogue_receive_proof(struct dialogue *x, const struct frame *f);

#endif
