/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of a loop's callbacks, and of what is to be told of behind them. No lock of its own. */
#ifndef BASE_CALLBACKS_H
#define BASE_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base_ov_list.h"

/* Zero it. */
struct base_callbacks {
	struct base_ov_list callbacks;
	struct base_ov_list behind; /* without a callback */
	uintptr_t places;           /* how many were ever added; may wrap */
};

/* One that has a callback. */
void base_callbacks_add(struct base_callbacks *q, struct ndx_overlapped *ov);
/* One that has none; `of` says whose it is. */
void base_callbacks_add_behind(struct base_callbacks *q, struct ndx_overlapped *ov, uintptr_t of);

bool base_callbacks_empty(const struct base_callbacks *q);

/* The oldest of those that were added before there were `end`; NULL: there is none. */
struct ndx_overlapped *base_callbacks_take(struct base_callbacks *q, uintptr_t end);

/* Some of those that have no callback. */
struct base_callbacks_which {
	uintptr_t mask; /* of whose they are, ... */
	uintptr_t of;
	bool late; /* those added since there were: */
	uintptr_t since;
};

/* They leave the queue, in order. */
void base_callbacks_pick(struct base_callbacks *q, const struct base_callbacks_which *which,
                         struct base_ov_list *out);

#endif
