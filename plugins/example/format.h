/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The example's message format. A format in a file of its own, without state and I/O, can be tested
 * and fuzzed alone.
 *
 * Numbers are big-endian. Every message begins with 8 bytes:
 *     0  4  "EXMP"
 *     4  1  version, 1
 *     5  1  step: 1 hello, 2 offer, 3 confirm
 *     6  2  length of the rest
 *
 * hello: the ring of slots that this end proposes, 9 bytes and the label
 *     0  4  slots
 *     4  4  bytes per slot
 *     8  1  length of the label, at most 32
 *     9     label, printable ASCII
 *
 * offer: fields; each has a type (1 byte), a length (1 byte) and that many bytes. Each type occurs
 * at most once. Types from 128 on are reserved for later versions; an end that does not know such a
 * type skips the field.
 *     1  limits      8      reads served at once, reads wanted in flight; required
 *     2  memory      20     address (8), length (8), remote token (4)
 *     3  rendezvous  17-31  cookie (16), stack (text)
 *     4  address     6, 18  port (2), IPv4 or IPv6 address; only with a rendezvous
 *     5  queue pair  30     number (4), first PSN (4), MTU (4), LID (2), GID (16)
 *
 * confirm: the ring that results from both hellos, 8 bytes
 *     0  4  slots
 *     4  4  bytes per slot
 */
#ifndef EXAMPLE_FORMAT_H
#define EXAMPLE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/description.h>

#define EXAMPLE_LABEL_MAX 32u
/* Longest message that is written. A longer one may be received: it has fields to skip. */
#define EXAMPLE_MESSAGE_MAX 128u

enum example_step {
	EXAMPLE_HELLO = 1,
	EXAMPLE_OFFER = 2,
	EXAMPLE_CONFIRM = 3,
};

struct example_ring {
	uint32_t slots;
	uint32_t slot_size;
};

struct example_message {
	enum example_step step;
	struct example_ring ring;                /* hello, confirm */
	char label[EXAMPLE_LABEL_MAX + 1];       /* hello */
	struct ndx_peer_description description; /* offer */
};

/* Returns false and *why, or fills all of *out. The input is not trusted. */
bool example_parse(const uint8_t *bytes, size_t length, struct example_message *out,
                   const char **why);

/* Returns the length. A message that has passed the checks always fits. */
size_t example_write(uint8_t out[EXAMPLE_MESSAGE_MAX], const struct example_message *message);

#endif
