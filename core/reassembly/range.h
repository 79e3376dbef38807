/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of half-open intervals: which bytes are there. One interval, the usual case, allocates none.
 */
#ifndef REASSEMBLY_RANGE_H
#define REASSEMBLY_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

struct range {
	uint64_t from, to; /* from < to */
};

struct range_set {
	struct range *more; /* all of them, once there are two; sorted, not touching */
	uint32_t count;
	uint32_t room;
	struct range one; /* the only one while `more` is NULL */
	uint64_t covered; /* bytes in all */
};

/* All zero is an empty set. */
void range_free(struct range_set *set, struct mem *mem);

/*
 * Add [from, to). `fresh` becomes the number of bytes that were not in before; 0 means that all of
 * it was there. False if out of memory or if the set is too ragged; then nothing changed.
 */
bool range_add(struct range_set *set, struct mem *mem, uint64_t from, uint64_t to, uint64_t *fresh);

/* Is all of [from, to) in? An empty range always is. */
bool range_covers(const struct range_set *set, uint64_t from, uint64_t to);

/* First gap in [from, to); false if there is none. */
bool range_gap(const struct range_set *set, uint64_t from, uint64_t to, struct range *gap);

#endif
