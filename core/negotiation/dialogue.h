/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session's protocol, from hello on, without any I/O: frames in, frames out, calls to be made.
 * The blocking session and the server drive the same machine.
 *
 * A driver asks what is next (dialogue_next), does it, and tells how it went, until it is
 * DIALOGUE_IDLE (the stage is over) or DIALOGUE_FAILED. One thread at a time.
 */
#ifndef NEGOTIATION_DIALOGUE_H
#define NEGOTIATION_DIALOGUE_H

#include <stdbool.h>

#include <ndx/session.h>

#include "frame.h"
#include "history.h"
#include "plugins.h"

enum dialogue_next {
	DIALOGUE_IDLE,    /* between two stages */
	DIALOGUE_CALL,    /* dialogue_call(): the plugin, on a thread that may block */
	DIALOGUE_CONNECT, /* connect the queue pair to `peer`, then dialogue_connected() */
	DIALOGUE_SEND,    /* `out` is to be sent, `out_length` bytes; then dialogue_sent() */
	DIALOGUE_RECEIVE, /* a frame, to dialogue_receive() */
	DIALOGUE_FAILED,  /* `error`; if `tell`, dialogue_error_frame() is for the peer */
	DIALOGUE_CLOSED,  /* the peer said bye */
};

struct dialogue_limits {
	uint32_t max_message;
	uint32_t max_rounds;
};

struct dialogue {
	struct ndx_exchange view; /* what the plugin sees */
	struct ndx_variant *variant;
	void *session; /* the plugin's state */
	struct history *history;
	uint64_t stage_ns; /* when the stage under way began */
	uint8_t *in;       /* what the peer's plugin said, from receive to call */
	uint8_t *out;      /* a frame, from call to sent */
	size_t out_length;
	uint32_t in_length;
	uint32_t peer_round; /* of the next DATA to come */
	enum dialogue_next next;
	int finished; /* last stage that ended; -1: none */
	struct dialogue_limits limits;
	struct ndx_session_error error;
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;
	bool begun;
	bool settled;
	bool own_completed;
	bool peer_completed;
	bool have_data; /* `in` is what the peer said; else its first call */
	bool tell;      /* the peer does not know of `error` yet */
};

/* Takes a reference of the variant. */
void dialogue_init(struct dialogue *x, struct ndx_variant *variant, enum ndx_role role,
                   uint64_t session, const struct dialogue_limits *limits, struct history *history);
/* Not while a call is under way. */
void dialogue_fini(struct dialogue *x);

/* Lower the limit to the peer's, once known. */
void dialogue_limit(struct dialogue *x, uint32_t max_message);

/*
 * Begin a stage. NDX_E_INVALID_DEVICE_STATE (nothing changed): not its turn; ndx_last_error()
 * says what is.
 */
enum ndx_status dialogue_start(struct dialogue *x, enum ndx_stage stage);
/* The transport was replaced: begin the stage anew. NDX_E_NOT_SUPPORTED: the variant cannot. */
enum ndx_status dialogue_restart(struct dialogue *x);

void dialogue_call(struct dialogue *x);
void dialogue_connected(struct dialogue *x, enum ndx_status status, const char *text);
void dialogue_sent(struct dialogue *x);
/* Any frame that came; `since_ns`: since when it was waited for. */
void dialogue_receive(struct dialogue *x, const struct frame *frame, uint64_t since_ns);
/* A failure that the driver found. `tell`: the peer is there to be told. */
void dialogue_fail(struct dialogue *x, enum ndx_error_layer layer, enum ndx_status status,
                   bool tell, const char *text);
/* The frame that tells the peer of `error`; returns its length. Once; clears `tell`. */
size_t dialogue_error_frame(struct dialogue *x, uint8_t out[FRAME_HEADER + FRAME_ERROR_SIZE_MAX]);

#endif
