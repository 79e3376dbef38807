/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues of side B; side A has its own receive queue and sends. */
#ifndef SHARED_H
#define SHARED_H

#include "fixture.h"

/* At the place of side B; NULL when the check is over. The caller closes it, after the pairs. */
struct ndx_srq *shared_open(struct check *c, uint32_t depth, uint32_t threshold);

/* A pair whose side B uses the queue; `cq` NULL: with a completion queue of its own. */
struct pair *shared_pair(struct check *c, struct ndx_srq *srq, struct ndx_cq *cq);
/* The same, connected. */
struct pair *shared_pair_up(struct check *c, struct ndx_srq *srq, struct ndx_cq *cq);

/* Post a receive into memory of `owner`, named by a number as those of a queue pair are. */
enum ndx_status shared_raw(struct ndx_srq *srq, struct side *owner, size_t number, size_t at,
                           size_t length);
bool shared_ok(struct ndx_srq *srq, struct side *owner, size_t number, size_t at, size_t length);
/* `count` receives of `length` bytes, side by side from `at`, numbered from `number`. */
bool shared_run(struct ndx_srq *srq, struct side *owner, size_t number, size_t count, size_t at,
                size_t length);
/* Post receives without memory until it is full; how many went in, 0 if it did not get full. */
size_t shared_fill(struct ndx_srq *srq, struct side *owner, size_t limit);

/* A sends one message without bytes; B takes one receive for it, whichever. */
bool shared_taken(struct pair *p, size_t count);

#endif
