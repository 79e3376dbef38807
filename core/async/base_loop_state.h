/* SPDX-License-Identifier: BSD-2-Clause */
/* What a loop is made of; for core/async only. */
#ifndef BASE_LOOP_STATE_H
#define BASE_LOOP_STATE_H

#include <pthread.h>

#include "base_callbacks.h"
#include "base_linux.h"
#include "base_lock.h"
#include "base_loop.h"

#define BATCH 16
#define NS_PER_MS 1000000ull

struct ndx_loop {
	pthread_t thread;
	int poll;
	int kick; /* raised for a thread that sleeps; never lowered, each time is an edge */
	struct base_lock lock; /* of all below */
	bool asleep;           /* or about to be; whoever wakes it says that it is not any more */
	struct base_job *jobs;
	struct base_job **jobs_end;
	struct base_callbacks callbacks;
	struct base_list timers; /* by deadline */
	uint32_t wakers;         /* who are about to wake the thread, without the lock */
	bool stop;
	bool self;   /* nobody joins: the thread frees the loop */
	bool inside; /* the thread sleeps in a call of another loop, on: */
	uint32_t nudges;
	base_loop_fn *last;
	void *last_arg;
	/* thread's own */
	bool hurried; /* runs a call that was made in a callback */
	struct base_poll_event batch[BATCH];
	int batch_count;
	int batch_left;
};

/* Lock held: behind it the loop may be gone, by what it was woken for. */
void base_loop_kick(struct ndx_loop *loop);

#endif
