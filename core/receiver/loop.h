/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving thread. It may serve many receivers; while a receiver is on its list, the receiver
 * belongs to the thread.
 *
 * The thread is no event loop of async/, which only reacts. This thread polls all queues, for
 * spin_us after the last frame; then it arms them, polls once more, and sleeps. On an event loop's
 * thread jobs run while a call of the library waits for another loop: a job could then end the
 * receiver whose frame a callback is handling. What both need, ndxp_poll_* and ndxp_eventfd_*, both
 * use.
 */
#ifndef RECEIVER_LOOP_H
#define RECEIVER_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/receiver.h>

#include <ndx/spi/list.h>

#define LOOP_BATCH_MAX 64

struct ndx_receive_loop {
	uint32_t spin_us;
	uint32_t batch;
	pthread_t thread;
	int pollfd;
	int wake;                   /* an eventfd */
	uint32_t poked;             /* atomic */
	uint32_t refs;              /* atomic: handles, and receivers that are to run here */
	struct ndxp_list receivers; /* for the thread only */
	pthread_mutex_t lock;
	struct ndxp_list incoming; /* receivers to add; under the lock */
};

/* Take a reference; ndx_receive_loop_close() drops one. */
void loop_hold(struct ndx_receive_loop *loop);
/* Serve a receiver, whose state is RUNNING, from now on or soon. */
void loop_add(struct ndx_receive_loop *loop, struct ndx_receiver *r);
/* Make the thread check the events of its receivers. Any thread. */
void loop_poke(struct ndx_receive_loop *loop);
/* Whether this is the loop's thread. */
bool loop_current(const struct ndx_receive_loop *loop);
/* Declares the calling thread to be the loop's thread. */
void loop_enter(const struct ndx_receive_loop *loop);
/* Whether the last reference was dropped on the loop's own thread, so that no thread joins it. */
bool loop_is_detached(const struct ndx_receive_loop *loop);
void loop_free(struct ndx_receive_loop *loop);
uint32_t loop_batch(const struct ndx_receive_loop *loop);

#endif
