/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection whose completion queue somebody waits for. The control thread does what it is told
 * to, and nothing by itself.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include "rig.h"

#define WATCHED_DEPTH 8u

struct watched {
	struct rig rig;
	struct ndx_overlapped ov;
};

/* All receives are posted; their contexts are 0, 1, ... */
void watched_open(struct watched *w);
void watched_close(struct watched *w);
/* On the control thread. */
void watched_call(struct watched *w, base_loop_fn *fn, void *arg);
void watched_nothing(void *arg);
void watched_events(void *arg); /* the adapter */

void watched_begin(struct watched *w, struct ndx_overlapped *ov, enum ndx_cq_notify_type type);
void watched_ask(struct watched *w, enum ndx_cq_notify_type type);
/* Has it been told, once the events that there are were read? */
bool watched_told(struct watched *w);
/* As who waits no more. */
void watched_give_up(struct watched *w);
/* So many wait for successes. */
uint32_t watched_watchers(const struct watched *w);

#endif
