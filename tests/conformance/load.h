/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic both ways that a disconnect cuts off at a random moment, and the account of it.
 * What must hold: every request completes exactly once and in order, every send that completed
 * NDX_OK (a silent one: that did not complete at all) was received, intact, once, in order; nothing
 * completes and no memory changes after a disconnect has.
 */
#ifndef LOAD_H
#define LOAD_H

#include "fixture.h"

enum load_end {
	LOAD_DISCONNECT,
	LOAD_CLOSE, /* one side closes its queue pair instead */
	LOAD_FLUSH, /* one side flushes it: nothing is lost that completed, but both disconnects
	               fail */
};

struct load_plan {
	uint32_t receive_depth;
	bool threads; /* one per side; else both sides in turns */
	enum load_end end;
};

/* One round, everything else chosen by the seed of the check. */
void load_round(struct check *c, const struct load_plan *plan);

#endif
