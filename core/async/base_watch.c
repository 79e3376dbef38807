/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers and watches of a loop. */
#include <errno.h>

#include "base_linux.h"
#include "base_log.h"
#include "base_loop_state.h"

void base_timer_set(struct ndx_loop *loop, struct base_timer *timer, uint32_t ms)
{
	base_lock_acquire(&loop->lock);
	if (timer->armed)
		base_timers_remove(&loop->timers, timer);
	timer->deadline_ns = base_now_ns() + ms * BASE_NS_PER_MS;
	base_timers_add(&loop->timers, timer);
	timer->armed = true;
	if (loop->timers.first == timer)
		base_loop_kick(loop);
	base_lock_release(&loop->lock);
}

void base_timer_cancel(struct ndx_loop *loop, struct base_timer *timer)
{
	base_lock_acquire(&loop->lock);
	if (timer->armed) {
		base_timers_remove(&loop->timers, timer);
		timer->armed = false;
	}
	base_lock_release(&loop->lock);
}

enum ndx_status base_watch_add(struct ndx_loop *loop, struct base_watch *watch, uint32_t events,
                               bool once)
{
	if (base_poll_add(loop->poll, watch->fd, events, once, watch) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		            "cannot watch descriptor %d; see /proc/sys/fs/epoll", watch->fd);
	return NDX_OK;
}

void base_watch_rearm(struct ndx_loop *loop, struct base_watch *watch, uint32_t events)
{
	(void)base_poll_rearm(loop->poll, watch->fd, events, watch);
}

void base_watch_remove(struct ndx_loop *loop, struct base_watch *watch)
{
	base_poll_remove(loop->poll, watch->fd);
	for (int i = 0; i < loop->batch_left; i++) {
		/* The remaining events are at the end of the batch. */
		struct base_poll_event *ev = &loop->batch[loop->batch_count - 1 - i];

		if (ev->data == watch)
			ev->data = NULL;
	}
}
