/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers in the order of their deadlines: a pairing heap, which needs no memory of its own. A
 * thousand connections that end at once set and cancel thousands of timers of different lengths, so
 * no step may look at all of them. Not thread-safe.
 */
#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

#include <ndx/spi/loop.h>

/* The timer with the earliest deadline; NULL: there is none. */
struct base_timers {
	struct ndxp_timer *first;
};

/* The timer is not in the heap; its deadline is set. */
void base_timers_add(struct base_timers *timers, struct ndxp_timer *timer);
void base_timers_remove(struct base_timers *timers, struct ndxp_timer *timer);

#endif
