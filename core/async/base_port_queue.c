/* SPDX-License-Identifier: BSD-2-Clause */
/* The producing side of a port's queue. */
#include "base_port.h"

#include <ndx/spi/system.h>
#include "base_ov_state.h"

void base_port_show(struct ndx_port *port)
{
	const bool up = port->asked && port->queue.head != NULL;

	if (up == port->up)
		return;
	port->up = up;
	if (up)
		ndxp_eventfd_set(port->fd);
	else
		ndxp_eventfd_clear(port->fd);
}

/* From the call on the sink's program owns `ov`, and may close the port. */
static void give_to_sink(const struct ndx_port *port, struct ndx_overlapped *ov)
{
	__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
	port->sink(ov);
}

void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov)
{
	uint32_t *posts = &port->posts;
	bool wake;

	if (port->sink != NULL) {
		give_to_sink(port, ov);
		return;
	}
	ndxp_lock_acquire(&port->lock);
	__atomic_store_n(&ov->state, BASE_OV_QUEUED, __ATOMIC_RELEASE);
	ndxp_ov_push(&port->queue, ov);
	base_port_show(port);
	__atomic_fetch_add(posts, 1, __ATOMIC_RELEASE);
	/* A thread that was woken earlier and has not returned yet takes this object, too. */
	wake = port->sleepers > 0;
	port->sleepers -= wake;
	port->woken += wake;
	ndxp_lock_release(&port->lock);
	/* After unlocking, because the lock is the first that the woken thread needs. From here
	 * on the consumer may have taken `ov` and closed the port: the futex needs only the
	 * address. */
	if (wake)
		ndxp_futex_wake(posts, 1);
}
