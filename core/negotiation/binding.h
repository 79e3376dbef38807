/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds queue pairs to the channel of TLS over which they were described: VALIDATE carries a MAC by
 * a key that only the two ends of the channel have. docs/negotiation-protocol.md defines each byte.
 * Bytes in, bytes out. */
#ifndef NEGOTIATION_BINDING_H
#define NEGOTIATION_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/description.h>

#include "frame.h"

#define BINDING_KEY 32u
#define BINDING_DIGEST 32u

struct binding {
	bool bound;  /* the channel is of TLS, and `key` is the channel's */
	bool broken; /* a computation has failed, so no MAC is right */
	uint8_t key[BINDING_KEY];
	bool one_of_many;    /* the queue pair is one of several of the session, ... */
	uint16_t queue_pair; /* ... and which; */
	uint32_t batch;      /* ... added later, with this number; 0: it was not */
	/* What each role has said in stage info, by enum ndx_role. */
	uint8_t said[2][BINDING_DIGEST];
};

/* Stage info begins, perhaps anew. */
void binding_begin(struct binding *b);
/* A message of stage info was sent or has come. */
void binding_add(struct binding *b, enum ndx_role from, const void *message, size_t length);

/* If the channel is of TLS, put the MAC behind the payload of VALIDATE, and say so in `f`. False:
 * the computation fails, for lack of memory. */
bool binding_seal(const struct binding *b, enum ndx_role from, struct frame *f, uint8_t *payload);
/* NULL, or why the VALIDATE that has come from that role is not of this channel. The comparison
 * takes the same time whatever the MAC is. */
const char *binding_find_fault(const struct binding *b, enum ndx_role from, const struct frame *f);
/* Forget the key. */
void binding_forget(struct binding *b);

#endif
