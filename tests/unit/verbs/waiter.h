/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection, and a consumer that waits for its completion queue. The control thread does nothing
 * by itself: the test calls each of its functions.
 */
#ifndef WAITER_H
#define WAITER_H

#include "rig.h"

#define WAITER_DEPTH 8u

struct waiter {
	struct rig rig;
	struct ndx_overlapped ov;
};

/* Post all receives, with the contexts 0, 1, ... */
void waiter_open(struct waiter *w);
void waiter_close(struct waiter *w);
/* Call `fn` on the control thread and wait for its end. */
void waiter_call(struct waiter *w, ndxp_loop_fn *fn, void *arg);
void waiter_do_nothing(void *arg);
void waiter_read_events(void *arg); /* `arg` is the adapter */

void waiter_notify_with(struct waiter *w, struct ndx_overlapped *ov, enum ndx_cq_notify_type type);
void waiter_notify(struct waiter *w, enum ndx_cq_notify_type type);
/* Read all completion events. True: the consumer's wait has ended with success. */
bool waiter_is_notified(struct waiter *w);
/* Cancel the consumer's wait. */
void waiter_cancel(struct waiter *w);
/* The number of waits for successes inside the provider. */
uint32_t waiter_count_watchers(const struct waiter *w);

#endif
