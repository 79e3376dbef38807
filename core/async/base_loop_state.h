/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a loop; for core/async only. */
#ifndef BASE_LOOP_STATE_H
#define BASE_LOOP_STATE_H

#include <pthread.h>

#include "base_callbacks.h"
#include <ndx/spi/system.h>
#include <ndx/spi/lock.h>
#include "base_loop.h"
#include "base_timers.h"

#define BATCH 16

struct ndx_loop {
	pthread_t thread;
	int poll;
	int kick; /* an eventfd that wakes the thread; never read, because each write is an edge */
	struct ndxp_lock lock; /* of everything down to last_arg */
	bool asleep;           /* the thread sleeps or is about to; cleared by the waker */
	struct ndxp_job *jobs;
	struct ndxp_job **jobs_end;
	struct base_callbacks callbacks;
	struct base_timers timers;
	uint32_t wakers; /* threads between base_loop_queue() and base_loop_wake() */
	bool stop;
	bool self;   /* no thread joins: the thread frees the loop */
	bool inside; /* the thread sleeps in a call to another loop, on: */
	uint32_t nudges;
	ndxp_loop_fn *last;
	void *last_arg;
	/* For the loop's thread only. */
	bool hurried; /* the thread runs a call that was made in a callback */
	struct ndxp_poll_event batch[BATCH];
	int batch_count;
	int batch_left;
};

/* Lock held. Once the lock is released, the loop may be freed by what it was woken for. */
void base_loop_kick(struct ndx_loop *loop);

#endif
