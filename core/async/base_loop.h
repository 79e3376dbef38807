/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event loop of an adapter's control thread: descriptors, timers, jobs, and the callbacks of
 * overlapped work. Everything it calls, it calls one at a time, on its own thread, without any
 * lock. In a callback that waits for another loop, jobs run; no callback runs in a callback.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>
#include <ndx/status.h>

#include "base_list.h"

struct ndx_loop;

typedef void base_loop_fn(void *arg);

/* Work to be done on the loop's thread. Zero it, set fn and arg. */
struct base_job {
	base_loop_fn *fn;
	void *arg;
	struct base_job *next; /* the loop's */
	uint32_t queued;       /* the loop's; atomic */
};

/* Zero it, set fn and arg. */
struct base_timer {
	base_loop_fn *fn;
	void *arg;
	struct base_list node; /* the loop's */
	uint64_t deadline_ns;
	bool armed;
};

/* Zero it, set fd, fn, arg. */
struct base_watch {
	int fd;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
};

/* Start a loop; its thread is called `name` (15 characters at most). */
enum ndx_status base_loop_create(const char *name, struct ndx_loop **out);

/*
 * Stop after what is queued has run, join, free. From the loop's own thread or another loop's: the
 * thread ends and frees itself as soon as the current call has returned. `last` runs (on the loop's
 * thread, or after the join) before the loop is freed; may be NULL.
 */
void base_loop_destroy(struct ndx_loop *loop, base_loop_fn *last, void *arg);

/* Is this the loop's thread? */
bool base_loop_current(const struct ndx_loop *loop);

/* Is this some loop's thread? */
bool base_loop_on_any(void);

/* Is this thread in a callback of some loop's? No other callback runs on it before that returns. */
bool base_loop_in_callback(void);

/* May this thread wait for what `loop` does? Not on the loop's own thread, and not in a callback:
 * what it waits for may need that callback's loop. */
bool base_loop_may_wait(const struct ndx_loop *loop);

/* Does a callback, of this thread or of another loop, wait for what this thread does? */
bool base_loop_is_hurried(void);

/* Run job->fn on the loop's thread. Any thread. A job that is queued already is not queued twice;
 * it may be posted again from the moment its fn is called. */
void base_loop_post(struct ndx_loop *loop, struct base_job *job);

/*
 * The same in two steps, for who holds a lock that the job takes: queue it, let go of the lock,
 * then wake the thread, which otherwise would only wait for the lock. Between the two nothing is
 * waited for; the loop stays. `count`: the sum of what base_loop_queue() has returned; 0 also if
 * the thread is awake, and sees the job by itself.
 */
unsigned base_loop_queue(struct ndx_loop *loop, struct base_job *job);
void base_loop_wake(struct ndx_loop *loop, unsigned count);

/*
 * Run fn on the loop's thread and wait for it, and until the callbacks that it caused have
 * returned. On the loop's thread it is simply called, and its callbacks are run. On another loop's
 * thread that loop's jobs are run meanwhile, so that two loops may call each other.
 *
 * In a callback, of this loop or another, no callback is waited for: those follow. What ended by fn
 * and has no callback is complete on return, see base_loop_hurry().
 */
void base_loop_call(struct ndx_loop *loop, base_loop_fn *fn, void *arg);

/* Queue an overlapped object that has its outcome for its callback. Any thread. */
void base_loop_callback(struct ndx_loop *loop, struct ndx_overlapped *ov);

/* Likewise one that has none: it is told of behind the callbacks that are queued. `of`: the
 * caller's own, for base_loop_hurry(). */
void base_loop_behind(struct ndx_loop *loop, struct ndx_overlapped *ov, uintptr_t of);

/*
 * In an fn of base_loop_call(). If that was called in a callback, the callbacks that others are to
 * be told behind do not run before the call returns: what is queued by base_loop_behind() with `of`
 * under `mask` is told of at once. Else nothing happens.
 */
void base_loop_hurry(struct ndx_loop *loop, uintptr_t mask, uintptr_t of);

/* (Re)arm. Any thread; fn runs once, not before the time. */
void base_timer_set(struct ndx_loop *loop, struct base_timer *timer, uint32_t ms);
/* After it returns on the loop's thread, fn does not run. On another thread fn may be running. */
void base_timer_cancel(struct ndx_loop *loop, struct base_timer *timer);

/* Watch a descriptor for `events` (EPOLLIN ...). once: silent after one event until rearmed. Any
 * thread. */
enum ndx_status base_watch_add(struct ndx_loop *loop, struct base_watch *watch, uint32_t events,
                               bool once);
/* Any thread, lock-free; harmless when still armed. */
void base_watch_rearm(struct ndx_loop *loop, struct base_watch *watch, uint32_t events);
/* Loop's thread only: fn is not called any more. */
void base_watch_remove(struct ndx_loop *loop, struct base_watch *watch);

#endif
