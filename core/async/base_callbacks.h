/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of a loop's callbacks, and of completions that must be delivered after earlier
 * callbacks. The caller locks. */
#ifndef BASE_CALLBACKS_H
#define BASE_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/overlapped_list.h>

/* Starts zeroed. */
struct base_callbacks {
	struct ndxp_ov_list callbacks;
	struct ndxp_ov_list behind; /* completions without a callback */
	uintptr_t places;           /* how many objects were ever added; may wrap */
};

/* Add an object that has a callback. */
void base_callbacks_add(struct base_callbacks *q, struct ndx_overlapped *ov);
/* Add an object that has no callback; `of` says to which owner it belongs. */
void base_callbacks_add_behind(struct base_callbacks *q, struct ndx_overlapped *ov, uintptr_t of);

bool base_callbacks_empty(const struct base_callbacks *q);

/* The oldest callback among the first `end` objects that were added; NULL if there is none. */
struct ndx_overlapped *base_callbacks_take(struct base_callbacks *q, uintptr_t end);

/* Selects objects that have no callback. */
struct base_callbacks_which {
	uintptr_t mask; /* those whose owner & mask is `of`, or ... */
	uintptr_t of;
	bool late; /* ... those that were added after the first: */
	uintptr_t since;
};

/* Move the selected objects to `out`, in order. */
void base_callbacks_pick(struct base_callbacks *q, const struct base_callbacks_which *which,
                         struct ndxp_ov_list *out);

#endif
