/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving thread. It may serve many receivers; each is its own while it is on the list. */
#ifndef RECEIVER_LOOP_H
#define RECEIVER_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/receiver.h>

#include "base_list.h"

#define LOOP_BATCH_MAX 64

struct ndx_receive_loop {
	uint32_t spin_us;
	uint32_t batch;
	pthread_t thread;
	int pollfd;
	int wake;                   /* a flag */
	uint32_t poked;             /* atomic */
	uint32_t refs;              /* atomic: handles, and receivers that will run here */
	struct base_list receivers; /* the thread's */
	pthread_mutex_t lock;
	struct base_list incoming; /* to be added; behind the lock */
};

/* One holder more; ndx_receive_loop_close() is one less. */
void loop_hold(struct ndx_receive_loop *loop);
/* Serve a receiver, from some moment soon on; its state is RUNNING. */
void loop_add(struct ndx_receive_loop *loop, struct ndx_receiver *r);
/* Look at the receivers' events. Any thread. */
void loop_poke(struct ndx_receive_loop *loop);
/* Is this its thread? */
bool loop_current(const struct ndx_receive_loop *loop);
/* The calling thread is its thread. */
void loop_enter(const struct ndx_receive_loop *loop);
/* The last holder let go on this thread: nobody will join it. */
bool loop_is_detached(const struct ndx_receive_loop *loop);
void loop_free(struct ndx_receive_loop *loop);
uint32_t loop_batch(const struct ndx_receive_loop *loop);

#endif
