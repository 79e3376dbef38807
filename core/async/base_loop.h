/* SPDX-License-Identifier: BSD-2-Clause */
/* The rest of <ndx/spi/loop.h>: for the owner of a loop, and for the delivery of callbacks. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/loop.h>

#include "base_private.h"

/* Start a loop; its thread has this name (15 characters at most). */
enum ndx_status base_loop_create(const char *name, struct ndx_loop **out)
	NDX_PRIVATE(base_loop_create);

/* The same, with the thread bound to processors. `given`: those that it got, which are fewer if the
 * process may not use some. NDX_E_INVALID_PARAMETER: it may use none of them. */
enum ndx_status base_loop_create_bound(const char *name, const cpu_set_t *cpus, cpu_set_t *given,
                                       struct ndx_loop **out);

/* Run what is queued, stop, join, free. On the thread of any loop the call does not join: the
 * loop's thread ends and frees the loop after its current call has returned. `last` runs (on the
 * loop's thread, or after the join) before the loop is freed; may be NULL. */
void base_loop_destroy(struct ndx_loop *loop, ndxp_loop_fn *last, void *arg)
	NDX_PRIVATE(base_loop_destroy);

/* Whether this is the loop's thread. */
bool base_loop_current(const struct ndx_loop *loop);

/* Whether this thread is in a callback of any loop. Until the callback returns, no other callback
 * runs on this thread. */
bool base_loop_in_callback(void) NDX_PRIVATE(base_loop_in_callback);

/* Whether this thread may wait for work of `loop`: not on the loop's own thread, and not in a
 * callback, because that work may need the callback's loop. */
bool base_loop_may_wait(const struct ndx_loop *loop);

/*
 * A post in two steps, for a caller that holds a lock the job needs: base_loop_queue() under the
 * lock, base_loop_wake() after unlocking. Do not block in between; until then the loop is not
 * freed. `count` is the sum of what base_loop_queue() returned; base_loop_queue() returns 0 if the
 * thread is awake and sees the job without being woken.
 */
unsigned base_loop_queue(struct ndx_loop *loop, struct ndxp_job *job);

void base_loop_wake(struct ndx_loop *loop, unsigned count);

/* Queue the callback of an overlapped object that has its outcome. Any thread. */
void base_loop_callback(struct ndx_loop *loop, struct ndx_overlapped *ov);

/* Queue an overlapped object without a callback: it completes after the callbacks that are queued
 * now. `of`: an owner, for base_loop_hurry(). */
void base_loop_behind(struct ndx_loop *loop, struct ndx_overlapped *ov, uintptr_t of);

/* For an fn of ndxp_loop_call(). If the call was made in a callback, queued callbacks do not run
 * before the call returns. Then complete at once the objects queued by base_loop_behind() whose
 * owner & `mask` is `of`. Otherwise do nothing. */
void base_loop_hurry(struct ndx_loop *loop, uintptr_t mask, uintptr_t of);

#endif
