/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frame: the message between two sessions. docs/negotiation-protocol.md defines each byte.
 *
 * Pure: bytes in, fields out. The parser trusts no byte; it is one function, and it is fuzzed.
 */
#ifndef NEGOTIATION_FRAME_H
#define NEGOTIATION_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/plugin.h>

#include "base_private.h"

#define FRAME_MAGIC 0x4e44584eu /* "NDXN" */
#define FRAME_VERSION 1u
/* Of a frame that has the number of a queue pair. */
#define FRAME_VERSION_NUMBERED 2u
/* Queue pairs of one session at a time, and the indices that these can have. */
#define FRAME_QUEUE_PAIRS_MAX 1024u
#define FRAME_INDICES 65536u
#define FRAME_HEADER 20u
/* An upper limit for every session, whatever its own limit is. */
#define FRAME_PAYLOAD_MAX (1u << 20)

enum frame_type {
	FRAME_HELLO = 1,       /* client: plugin, variant and session */
	FRAME_WELCOME = 2,     /* server: accepted, with these limits */
	FRAME_DATA = 3,        /* a message between plugins, with a flag: completed */
	FRAME_VALIDATE = 4,    /* the framework's own: connected, and what was agreed */
	FRAME_ERROR = 5,       /* why this side gives up; then it closes */
	FRAME_SESSION_END = 6, /* ends the session, as both sides want */
	FRAME_GOODBYE = 7,     /* the queue pair's goodbye if there is no other way; no payload */
	FRAME_ALIVE = 8,       /* heartbeat; no answer. Stage validate: the queue pair connects */
	FRAME_PROOF = 9,       /* how far the proof of the queue pair's path got at the sender */
	FRAME_ADD = 10,        /* client: connect more queue pairs; server: they are connected */
	FRAME_ABANDON = 11,    /* why this side gives up the queue pairs that are being added */
	FRAME_REMOVE = 12,     /* client: these queue pairs are no more of the session */
};

#define FRAME_COMPLETED 0x01u   /* DATA: the sender's plugin needs nothing more in this stage */
#define FRAME_RESUMED 0x02u     /* HELLO: of a session that lost its transport */
#define FRAME_ABORTED 0x04u     /* GOODBYE: the connection is broken */
#define FRAME_PROVES 0x08u      /* VALIDATE: the sender proves the path if the receiver does, too */
#define FRAME_UNCONNECTED 0x10u /* PROOF: the sender's queue pair has not become connected */
#define FRAME_BOUND 0x20u       /* VALIDATE: a MAC binds the queue pair to the channel of TLS */
#define FRAME_REPLAYS 0x40u     /* HELLO, WELCOME: the sender can send lost frames again */
/* The same bit in a session of several queue pairs: the sender can add some, and remove some. */
#define FRAME_ADDS 0x40u

struct frame {
	enum frame_type type;
	enum ndx_stage stage;
	uint8_t flags;
	bool numbered;       /* version 2: the frame is of queue pair `queue_pair` ... */
	uint16_t queue_pair; /* ... of a session of several; else 0 */
	uint32_t round;
	const uint8_t *payload; /* points into the parsed bytes */
	uint32_t length;
};

enum frame_verdict {
	FRAME_WHOLE, /* *frame is set, *used bytes were consumed */
	FRAME_MORE,  /* incomplete; *used is the number of bytes needed, as far as known */
	FRAME_BAD,   /* can never become a frame; *why says why */
};

/* Parse a frame at the start of `length` bytes. `most` is the longest accepted payload. Unknown
 * types, stages, flags and versions are BAD. */
enum frame_verdict frame_parse(const uint8_t *bytes, size_t length, uint32_t most,
                               struct frame *frame, size_t *used, const char **why);

/* Write the header; the payload follows it. */
void frame_write_header(uint8_t out[FRAME_HEADER], const struct frame *frame)
	NDX_PRIVATE(frame_write_header);

#define FRAME_TYPE_AT 5u  /* the byte of the header that has the type, ... */
#define FRAME_FLAGS_AT 7u /* ... and that with the flags */

/* Names for logs and history. Never NULL. */
const char *frame_type_name(enum frame_type type) NDX_PRIVATE(frame_type_name);
const char *frame_stage_name(enum ndx_stage stage) NDX_PRIVATE(frame_stage_name);

/* HELLO. Names are checked by the parser: NUL-terminated, not empty, well-formed. */
struct frame_hello {
	uint8_t session[16]; /* random; identifies the session when its transport is replaced */
	uint32_t max_message;
	uint32_t queue_pairs; /* 2 or more: the frame is numbered */
	char plugin[NDX_PLUGIN_NAME_MAX + 1];
	char variant[NDX_PLUGIN_NAME_MAX + 1];
};
#define FRAME_HELLO_SIZE (16u + 4u + 2u * (NDX_PLUGIN_NAME_MAX + 1u))
#define FRAME_HELLO_SIZE_MAX (FRAME_HELLO_SIZE + 4u)

/* WELCOME */
struct frame_welcome {
	uint32_t max_message;
	uint32_t stage_timeout_ms;
	uint32_t session_timeout_ms;
};
#define FRAME_WELCOME_SIZE 12u

/* ERROR */
#define FRAME_ERROR_TEXT 200u
struct frame_error {
	uint8_t layer;                   /* enum ndx_error_layer */
	uint8_t plugin_error;            /* enum ndx_plugin_error */
	int32_t status;                  /* enum ndx_status */
	char text[FRAME_ERROR_TEXT + 1]; /* printable; other bytes are replaced */
};
#define FRAME_ERROR_SIZE_MAX (8u + FRAME_ERROR_TEXT)

/* VALIDATE: the sender's settings, for the receiver to compare field by field. */
struct frame_validate {
	struct ndx_agreement agreed;
	uint8_t own[16];  /* the sender's end: cookie, or queue pair number and first PSN */
	uint8_t peer[16]; /* the receiver's end, as described to the sender */
};
#define FRAME_VALIDATE_SIZE 48u
/* With FRAME_BOUND a MAC follows, see binding.h; the receiver's to check. */
#define FRAME_MAC_SIZE 32u

/* PROOF: enum ndx_spi_proved of each direction, at the sender of the frame. */
struct frame_proof {
	uint8_t written; /* of its writes the peer has acknowledged this much */
	uint8_t seen; /* of the peer's writes this much has arrived, or the own device refused one
	               */
	bool denied;  /* the peer's device refused a write: no access to that memory */
};
#define FRAME_PROOF_SIZE 4u

/* ADD: queue pairs `first` to `first` + `count` - 1 */
struct frame_add {
	uint32_t batch; /* from 1 */
	uint32_t first;
	uint32_t count;
};
#define FRAME_ADD_SIZE 12u

/* ABANDON */
#define FRAME_NO_QUEUE_PAIR UINT32_MAX
struct frame_abandon {
	uint32_t batch;
	uint32_t queue_pair; /* the one that has failed; or FRAME_NO_QUEUE_PAIR */
	struct frame_error error;
};
#define FRAME_ABANDON_SIZE_MAX (8u + FRAME_ERROR_SIZE_MAX)

/* REMOVE */
struct frame_remove {
	uint32_t first;
	uint32_t count;
};
#define FRAME_REMOVE_SIZE 8u

/* Payloads. Parse functions return false and *why, or set all of *out. Write functions return the
 * length. */
bool frame_parse_hello(const struct frame *f, struct frame_hello *out, const char **why)
	NDX_PRIVATE(frame_parse_hello);
bool frame_parse_welcome(const struct frame *f, struct frame_welcome *out, const char **why)
	NDX_PRIVATE(frame_parse_welcome);
bool frame_parse_error(const struct frame *f, struct frame_error *out, const char **why)
	NDX_PRIVATE(frame_parse_error);
bool frame_parse_proof(const struct frame *f, struct frame_proof *out, const char **why)
	NDX_PRIVATE(frame_parse_proof);
bool frame_parse_validate(const struct frame *f, struct frame_validate *out, const char **why)
	NDX_PRIVATE(frame_parse_validate);
uint32_t frame_write_hello(uint8_t *out, const struct frame_hello *hello)
	NDX_PRIVATE(frame_write_hello);
uint32_t frame_write_welcome(uint8_t out[FRAME_WELCOME_SIZE], const struct frame_welcome *welcome)
	NDX_PRIVATE(frame_write_welcome);
uint32_t frame_write_error(uint8_t out[FRAME_ERROR_SIZE_MAX], const struct frame_error *error)
	NDX_PRIVATE(frame_write_error);
uint32_t frame_write_proof(uint8_t out[FRAME_PROOF_SIZE], const struct frame_proof *proof)
	NDX_PRIVATE(frame_write_proof);
uint32_t frame_write_validate(uint8_t out[FRAME_VALIDATE_SIZE], const struct frame_validate *v)
	NDX_PRIVATE(frame_write_validate);

/* frame_add.c */
bool frame_parse_add(const struct frame *f, struct frame_add *out, const char **why)
	NDX_PRIVATE(frame_parse_add);
bool frame_parse_abandon(const struct frame *f, struct frame_abandon *out, const char **why)
	NDX_PRIVATE(frame_parse_abandon);
bool frame_parse_remove(const struct frame *f, struct frame_remove *out, const char **why)
	NDX_PRIVATE(frame_parse_remove);
uint32_t frame_write_add(uint8_t out[FRAME_ADD_SIZE], const struct frame_add *add)
	NDX_PRIVATE(frame_write_add);
uint32_t frame_write_abandon(uint8_t out[FRAME_ABANDON_SIZE_MAX],
                             const struct frame_abandon *abandon) NDX_PRIVATE(frame_write_abandon);
uint32_t frame_write_remove(uint8_t out[FRAME_REMOVE_SIZE], const struct frame_remove *remove)
	NDX_PRIVATE(frame_write_remove);

/* Whether the text can name a plugin, a variant or a parameter. */
bool frame_name_valid(const char *name) NDX_PRIVATE(frame_name_valid);

#endif
