/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of half-open intervals: the bytes that are present. One interval, the usual case, needs no
 * allocation. */
#ifndef REASSEMBLY_RANGE_H
#define REASSEMBLY_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

struct range {
	uint64_t from, to; /* from < to */
};

struct range_set {
	struct range *more; /* all of them, if there are two or more; sorted, not touching */
	uint32_t count;
	uint32_t room;
	struct range one; /* the only interval while `more` is NULL */
	uint64_t covered; /* total length */
};

/* An empty set is all zero. */
void range_free(struct range_set *set, struct mem *mem);

/* Add [from, to). `fresh` becomes the number of bytes that were not in the set. False if out of
 * memory or if there are too many intervals; then nothing changed. */
bool range_add(struct range_set *set, struct mem *mem, uint64_t from, uint64_t to, uint64_t *fresh);

/* Whether all of [from, to) is in the set; true for an empty range. */
bool range_covers(const struct range_set *set, uint64_t from, uint64_t to);

/* The first gap in [from, to); false if there is none. */
bool range_gap(const struct range_set *set, uint64_t from, uint64_t to, struct range *gap);

#endif
