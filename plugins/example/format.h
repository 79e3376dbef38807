/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The example's own format: what goes over the wire, and nothing else. A format in a file of its
 * own, without state or I/O, can be tested and fuzzed by itself.
 *
 * Numbers are big-endian. Every message begins with 8 bytes:
 *     0  4  "EXMP"
 *     4  1  version, 1
 *     5  1  step: 1 hello, 2 offer, 3 confirm
 *     6  2  length of what follows
 *
 * hello: the ring of slots that this end would like, 9 bytes and the label
 *     0  4  slots
 *     4  4  bytes of a slot
 *     8  1  length of the label, at most 32
 *     9     label, printable ASCII
 *
 * offer: fields, each a type (1), a length (1) and so many bytes; each type once at most. Types
 * from 128 on are for what comes later: who does not know them skips them.
 *     1  limits      8      reads served at once, reads wanted in flight. Always there
 *     2  memory      20     address (8), length (8), remote token (4)
 *     3  meeting     17-31  cookie (16), stack (text)
 *     4  address     6, 18  port (2), IPv4 or IPv6 address; with a meeting
 *     5  queue pair  30     number (4), first PSN (4), MTU (4), LID (2), GID (16)
 *
 * confirm: what this end makes of both hellos, 8 bytes
 *     0  4  slots
 *     4  4  bytes of a slot
 */
#ifndef EXAMPLE_FORMAT_H
#define EXAMPLE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/description.h>

#define EXAMPLE_LABEL_MAX 32u
/* The longest message that is ever written; others may have fields that are skipped here. */
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

/* False and *why, or all of *out. Trusts not a byte. */
bool example_parse(const uint8_t *bytes, size_t length, struct example_message *out,
                   const char **why);

/* Returns the length. What was checked elsewhere always fits. */
size_t example_write(uint8_t out[EXAMPLE_MESSAGE_MAX], const struct example_message *message);

#endif
