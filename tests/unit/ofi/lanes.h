/* SPDX-License-Identifier: BSD-2-Clause */
/* Several connections whose passive sides have one shared receive queue. */
#ifndef TESTS_OFI_LANES_H
#define TESTS_OFI_LANES_H

#include "pair.h"

#define LANES 4u

struct lanes {
	struct pair *p; /* of the fixture: adapters, memory and the listener */
	struct ndx_srq *srq;
	struct pair lane[LANES];
};

/* A shared queue at side b, and `count` connections. */
void lanes_open(struct lanes *l, struct pair *p, uint32_t depth, unsigned count);
void lanes_close(struct lanes *l);
/* Make, or connect, one of them. */
void lanes_make(struct lanes *l, unsigned which);
void lanes_connect(struct lanes *l, unsigned which);

/* Post a receive of 64 bytes at 64 * context of b's memory. */
void lanes_post(struct lanes *l, uintptr_t context);
/* One message of 64 bytes on a lane, both results. */
void lanes_pass(struct lanes *l, unsigned which, uintptr_t context);
/* Wait until a counter of a passive queue pair has this value. */
void lanes_await(const struct pair_side *side, const char *counter, uint64_t value);

#endif
