/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop of an adapter's control thread: descriptors, timers, jobs, and the callbacks of
 * overlapped objects. The loop calls everything one at a time, on its own thread, without a lock.
 * While a callback waits for another loop, jobs run, but no other callback. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>
#include <ndx/status.h>

#include "base_list.h"
#include "base_private.h"

struct ndx_loop;

typedef void base_loop_fn(void *arg);

/* Work for the loop's thread. Zero it, then set fn and arg. */
struct base_job {
	base_loop_fn *fn;
	void *arg;
	struct base_job *next; /* for the loop only */
	uint32_t queued;       /* for the loop only; atomic */
};

/* Zero it, then set fn and arg. */
struct base_timer {
	base_loop_fn *fn;
	void *arg;
	struct base_timer *child; /* for the loop only: see base_timers.h */
	struct base_timer *next;
	struct base_timer *prev;
	uint64_t deadline_ns;
	bool armed;
};

/* Zero it, then set fd, fn and arg. */
struct base_watch {
	int fd;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
};

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
void base_loop_destroy(struct ndx_loop *loop, base_loop_fn *last, void *arg)
	NDX_PRIVATE(base_loop_destroy);

/* Whether this is the loop's thread. */
bool base_loop_current(const struct ndx_loop *loop);

/* Whether this is the thread of any loop. */
bool base_loop_on_any(void) NDX_PRIVATE(base_loop_on_any);

/* Whether this thread is in a callback of any loop. Until the callback returns, no other callback
 * runs on this thread. */
bool base_loop_in_callback(void) NDX_PRIVATE(base_loop_in_callback);

/* Whether this thread may wait for work of `loop`: not on the loop's own thread, and not in a
 * callback, because that work may need the callback's loop. */
bool base_loop_may_wait(const struct ndx_loop *loop);

/* Whether a callback, of this thread or of another loop, waits for what this thread does. */
bool base_loop_is_hurried(void);

/* Run job->fn on the loop's thread. Any thread. A job that is queued is not queued again; from the
 * moment its fn is called, the caller may post the job again. */
void base_loop_post(struct ndx_loop *loop, struct base_job *job) NDX_PRIVATE(base_loop_post);

/*
 * A post in two steps, for a caller that holds a lock the job needs: base_loop_queue() under the
 * lock, base_loop_wake() after unlocking. Do not block in between; until then the loop is not
 * freed. `count` is the sum of what base_loop_queue() returned; base_loop_queue() returns 0 if the
 * thread is awake and sees the job without being woken.
 */
unsigned base_loop_queue(struct ndx_loop *loop, struct base_job *job);
void base_loop_wake(struct ndx_loop *loop, unsigned count);

/*
 * Run fn on the loop's thread; return after fn and the callbacks that fn caused. On the loop's own
 * thread this calls fn and runs its callbacks. On another loop's thread, jobs of that loop run
 * during the wait, so two loops may call each other.
 *
 * Within a callback, of this loop or another, the call does not wait for callbacks: they run later.
 * Objects without a callback that fn completed are complete on return, see base_loop_hurry().
 */
void base_loop_call(struct ndx_loop *loop, base_loop_fn *fn, void *arg) NDX_PRIVATE(base_loop_call);

/* Queue the callback of an overlapped object that has its outcome. Any thread. */
void base_loop_callback(struct ndx_loop *loop, struct ndx_overlapped *ov);

/* Queue an overlapped object without a callback: it completes after the callbacks that are queued
 * now. `of`: an owner, for base_loop_hurry(). */
void base_loop_behind(struct ndx_loop *loop, struct ndx_overlapped *ov, uintptr_t of);

/* For an fn of base_loop_call(). If the call was made in a callback, queued callbacks do not run
 * before the call returns. Then complete at once the objects queued by base_loop_behind() whose
 * owner & `mask` is `of`. Otherwise do nothing. */
void base_loop_hurry(struct ndx_loop *loop, uintptr_t mask, uintptr_t of);

/* Arm or rearm. Any thread; fn runs once, not before the time. */
void base_timer_set(struct ndx_loop *loop, struct base_timer *timer, uint32_t ms)
	NDX_PRIVATE(base_timer_set);
/* On the loop's thread: afterwards fn does not run. On another thread: fn may be running. */
void base_timer_cancel(struct ndx_loop *loop, struct base_timer *timer)
	NDX_PRIVATE(base_timer_cancel);

/* Watch a descriptor for `events` (EPOLLIN ...). once: one event, then none until
 * base_watch_rearm(). Any thread. */
enum ndx_status base_watch_add(struct ndx_loop *loop, struct base_watch *watch, uint32_t events,
                               bool once) NDX_PRIVATE(base_watch_add);
/* Any thread, lock-free; does nothing if the watch is armed. */
void base_watch_rearm(struct ndx_loop *loop, struct base_watch *watch, uint32_t events)
	NDX_PRIVATE(base_watch_rearm);
/* On the loop's thread only: afterwards fn is not called. */
void base_watch_remove(struct ndx_loop *loop, struct base_watch *watch)
	NDX_PRIVATE(base_watch_remove);

#endif
