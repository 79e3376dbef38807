/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a round's operations are called: by threads of the program, or inside callbacks, those of
 * the own adapter or of another. What is called inside one is called there by everything: it posts,
 * flushes, cancels, disconnects and closes.
 */
#ifndef STAGE_H
#define STAGE_H

#include "round.h"

/* A callback of an adapter, as often as one is wanted. */
struct stage {
	struct round *round;
	struct ndx_cq *cq; /* that nothing uses; NULL: no callbacks, the thread itself */
	struct ndx_overlapped ov;
	void (*act)(void *arg);
	void *arg;
};

/* For what the side `first`, or both, do in this round. */
void stage_open(struct stage *stage, struct round *round, uint32_t first);
void stage_close(struct stage *stage);
/* Do it there. It has returned when this returns. */
void stage_run(struct stage *stage, void (*act)(void *arg), void *arg);

/* Is this thread inside a callback? */
bool stage_inside(void);
/* At the beginning and at the end of each callback: "In a callback no other callback runs." */
void stage_enter(struct round *round, const char *name);
void stage_leave(void);

/*
 * What callbacks of operations do besides; NULL: nothing. Of this thread alone: in callbacks of two
 * adapters, which run side by side, the turns would wait for each other's locks.
 */
void stage_set_act(void (*act)(void *arg), void *arg);
void stage_act(void);

#endif
