/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving threads: references and life; loop_thread.c has the thread's function. */
#include "loop.h"

#include <stdlib.h>

#include <ndx/spi/system.h>
#include "receiver.h"

static _Thread_local const struct ndx_receive_loop *current;

void loop_enter(const struct ndx_receive_loop *loop)
{
	current = loop;
}

bool loop_current(const struct ndx_receive_loop *loop)
{
	return loop != NULL && current == loop;
}

uint32_t loop_batch(const struct ndx_receive_loop *loop)
{
	return loop->batch;
}

void loop_hold(struct ndx_receive_loop *loop)
{
	(void)__atomic_add_fetch(&loop->refs, 1, __ATOMIC_RELAXED);
}

void loop_poke(struct ndx_receive_loop *loop)
{
	__atomic_store_n(&loop->poked, 1, __ATOMIC_RELEASE);
	ndxp_eventfd_set(loop->wake);
}

void loop_add(struct ndx_receive_loop *loop, struct ndx_receiver *r)
{
	pthread_mutex_lock(&loop->lock);
	ndxp_list_add(&loop->incoming, &r->node);
	pthread_mutex_unlock(&loop->lock);
	loop_poke(loop);
}

void loop_free(struct ndx_receive_loop *loop)
{
	ndxp_fd_close(loop->wake);
	ndxp_fd_close(loop->pollfd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

/* The last reference was dropped on the loop's own thread, so no thread joins it. */
bool loop_is_detached(const struct ndx_receive_loop *loop)
{
	return __atomic_load_n(&loop->refs, __ATOMIC_ACQUIRE) == 0 &&
	       pthread_equal(loop->thread, pthread_self()) && current == NULL;
}

void ndx_receive_loop_close(struct ndx_receive_loop *loop)
{
	pthread_t thread;

	if (loop == NULL)
		return;
	thread = loop->thread;
	if (loop_current(loop)) {
		if (__atomic_sub_fetch(&loop->refs, 1, __ATOMIC_ACQ_REL) > 0)
			return;
		current = NULL;
		(void)pthread_detach(thread);
		return;
	}
	/* Once the count is 0 the thread may end; the memory is freed here, after the join. */
	if (__atomic_sub_fetch(&loop->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	loop_poke(loop);
	(void)pthread_join(thread, NULL);
	loop_free(loop);
}
