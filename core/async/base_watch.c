/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers and watches of a loop. */
#include <errno.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop_state.h"

void ndxp_timer_set(struct ndx_loop *loop, struct ndxp_timer *timer, uint32_t ms)
{
	ndxp_lock_acquire(&loop->lock);
	if (timer->armed)
		base_timers_remove(&loop->timers, timer);
	timer->deadline_ns = ndxp_now_ns() + ms * NDXP_NS_PER_MS;
	base_timers_add(&loop->timers, timer);
	timer->armed = true;
	if (loop->timers.first == timer)
		base_loop_kick(loop);
	ndxp_lock_release(&loop->lock);
}

void ndxp_timer_cancel(struct ndx_loop *loop, struct ndxp_timer *timer)
{
	ndxp_lock_acquire(&loop->lock);
	if (timer->armed) {
		base_timers_remove(&loop->timers, timer);
		timer->armed = false;
	}
	ndxp_lock_release(&loop->lock);
}

enum ndx_status ndxp_watch_add(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events,
                               bool once)
{
	if (ndxp_poll_add(loop->poll, watch->fd, events, once, watch) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		            "cannot watch descriptor %d; see /proc/sys/fs/epoll", watch->fd);
	return NDX_OK;
}

void ndxp_watch_rearm(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events)
{
	(void)ndxp_poll_rearm(loop->poll, watch->fd, events, watch);
}

void ndxp_watch_remove(struct ndx_loop *loop, struct ndxp_watch *watch)
{
	ndxp_poll_remove(loop->poll, watch->fd);
	for (int i = 0; i < loop->batch_left; i++) {
		/* The remaining events are at the end of the batch. */
		struct ndxp_poll_event *ev = &loop->batch[loop->batch_count - 1 - i];

		if (ev->data == watch)
			ev->data = NULL;
	}
}
