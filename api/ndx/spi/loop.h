/* SPDX-License-Identifier: BSD-2-Clause */
/* Event loop of an adapter's control thread: descriptors, timers, jobs, and the callbacks of
 * overlapped objects. The loop calls everything one at a time, on its own thread, without a lock.
 * While a callback waits for another loop, jobs run, but no other callback. */
#ifndef NDX_SPI_LOOP_H
#define NDX_SPI_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>
#include <ndx/status.h>

#include <ndx/spi/list.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndx_loop;

typedef void ndxp_loop_fn(void *arg);

/* Work for the loop's thread. Zero it, then set fn and arg. */
struct ndxp_job {
	ndxp_loop_fn *fn;
	void *arg;
	struct ndxp_job *next; /* for the loop only */
	uint32_t queued;       /* for the loop only; atomic */
	void *reserved;
};

/* Zero it, then set fn and arg. */
struct ndxp_timer {
	ndxp_loop_fn *fn;
	void *arg;
	struct ndxp_timer *child; /* for the loop only: see base_timers.h */
	struct ndxp_timer *next;
	struct ndxp_timer *prev;
	uint64_t deadline_ns;
	bool armed;
	void *reserved;
};

/* Zero it, then set fd, fn and arg. */
struct ndxp_watch {
	int fd;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
	void *reserved;
};

/* Whether this is the thread of any loop. */
bool ndxp_loop_on_any(void) NDXP_SHARED;

/* Whether a callback, of this thread or of another loop, waits for what this thread does. */
bool ndxp_loop_is_hurried(void);

/* Run job->fn on the loop's thread. Any thread. A job that is queued is not queued again; from the
 * moment its fn is called, the caller may post the job again. */
void ndxp_loop_post(struct ndx_loop *loop, struct ndxp_job *job) NDXP_SHARED;

/*
 * Run fn on the loop's thread; return after fn and the callbacks that fn caused. On the loop's own
 * thread this calls fn and runs its callbacks. On another loop's thread, jobs of that loop run
 * during the wait, so two loops may call each other.
 *
 * Within a callback, of this loop or another, the call does not wait for callbacks: they run later.
 * Objects without a callback that fn completed are complete on return, see base_loop_hurry().
 */
void ndxp_loop_call(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg) NDXP_SHARED;

/* Arm or rearm. Any thread; fn runs once, not before the time. */
void ndxp_timer_set(struct ndx_loop *loop, struct ndxp_timer *timer, uint32_t ms) NDXP_SHARED;
/* On the loop's thread: afterwards fn does not run. On another thread: fn may be running. */
void ndxp_timer_cancel(struct ndx_loop *loop, struct ndxp_timer *timer) NDXP_SHARED;

/* Watch a descriptor for `events` (EPOLLIN ...). once: one event, then none until
 * ndxp_watch_rearm(). Any thread. */
enum ndx_status ndxp_watch_add(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events,
                               bool once) NDXP_SHARED;
/* Any thread, lock-free; does nothing if the watch is armed. */
void ndxp_watch_rearm(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events) NDXP_SHARED;
/* On the loop's thread only: afterwards fn is not called. */
void ndxp_watch_remove(struct ndx_loop *loop, struct ndxp_watch *watch) NDXP_SHARED;

NDXP_DECLS_END

#endif
