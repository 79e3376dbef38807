/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-decode: packets from a file or an interface, their messages, and formats for the output. */
#ifndef DECODE_H
#define DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ndx/reassembly.h>

#define DECODE_WHO "ndx-decode"

/** A source of packets. */
struct source;

/**
 * Open a capture file ("-": standard input), or a live interface; on failure print the reason to
 * stderr and return NULL.
 */
struct source *source_open(const char *path);
struct source *source_open_live(const char *interface);

/** The next packet: 1; end: 0; failure, printed: -1. The bytes are valid until the next call. */
int source_next(struct source *source, struct ndx_packet *packet);

/** Let source_next() return 0. Async-signal-safe. */
void source_stop(struct source *source);

/**
 * Let every later read of a file see its end, also one within source_open(). A signal's handler
 * calls this as well: source_stop() alone is lost on a read that begins just after it, and blocks
 * then. Async-signal-safe.
 */
void source_stop_reads(void);

void source_close(struct source *source);

/**
 * Open a file that may be compressed as a stream; on failure print the reason and return NULL.
 * (gzip.c, gzip_none.c)
 */
FILE *gzip_wrap(FILE *file, const char *path);

/** SHA-256 by libcrypto. */
struct sha256;
struct sha256 *sha256_create(void);
void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, uint8_t out[32]);
void sha256_free(struct sha256 *hash);

/** Digest of a set of messages: the hash of their sorted hashes. Uses bounded memory. */
struct digest;
struct digest *digest_create(void);
/** Add a message, or a part of one; `last`: the message ends with this part. */
bool digest_add(struct digest *digest, const struct ndx_piece *pieces, size_t count, bool last);
/** Sort, hash, and write 64 hexadecimal digits and a NUL. Call it once, at the end. */
bool digest_end(struct digest *digest, char out[65]);
void digest_free(struct digest *digest);

/** The two digests of a capture, computed in parallel with the caller. */
#define HASHER_CALLS 0
#define HASHER_REPLIES 1
#define HASHER_DIGESTS 2
struct hasher;
struct hasher *hasher_create(void);
bool hasher_add(struct hasher *hasher, unsigned which, const struct ndx_piece *pieces,
                size_t count);
/** Write the digests as text. Call it once, at the end. False if a message could not be stored. */
bool hasher_end(struct hasher *hasher, char out[HASHER_DIGESTS][65]);
void hasher_free(struct hasher *hasher);

/** Counters of one connection. */
struct tally {
	struct ndx_rdma_connection connection;
	uint64_t sends, calls, replies, holes, duplicates, orphans;
	uint64_t call_bytes, reply_bytes;
};

/** Counters for --stats, by connection number. */
struct tallies {
	struct tally *at; /* tally of connection i + 1 */
	size_t count, room;
};
void tallies_note(struct tallies *tallies, const struct ndx_reassembly_event *event);
void tallies_print(const struct tallies *tallies, const struct ndx_reassembly_stats *stats);

/** Content of the last lines of output. */
struct summary {
	struct ndx_reassembly_stats stats;
	char digests[HASHER_DIGESTS][65]; /* "": not computed */
};
void summary_print(const struct summary *summary);

/** Print an event as one line. */
void line_print(const struct ndx_reassembly_event *event);

/** Text of an endpoint, "10.0.0.1:17". Returns `text`. */
#define DECODE_ENDPOINT 64
const char *endpoint_text(const struct ndx_rdma_connection *connection, unsigned side,
                          char text[DECODE_ENDPOINT]);
const char *transport_name(enum ndx_rdma_transport transport);
const char *event_name(enum ndx_reassembly_event_type type);
const char *hole_name(enum ndx_hole_kind kind);
const char *orphan_name(enum ndx_orphan_kind kind);
const char *eviction_name(enum ndx_eviction_reason reason);

/** Where JSON goes; before anything else of it. */
void json_to(FILE *out);
/** Print an event as one JSON object on one line. */
void json_print(const struct ndx_reassembly_event *event);
void json_print_summary(const struct summary *summary);
/** Print the counters of --stats, a line for each connection and one for the opcodes. */
void json_print_stats(const struct tallies *tallies, const struct ndx_reassembly_stats *stats);

/**
 * Write the canonical message of a call or reply to the folder. On failure print the reason and
 * return false.
 */
bool extract_write(const char *folder, uint64_t number, const struct ndx_reassembly_event *event);

#endif
