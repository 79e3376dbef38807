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

/* Lock held: hand `ov` over to the thread that came last; its futex. NULL: no thread sleeps. The
 * thread has it from now on, however late it runs: threads that come later find other objects. */
static uint32_t *give_to_sleeper(struct ndx_port *port, struct ndx_overlapped *ov)
{
	struct base_port_sleeper *sleeper = port->sleepers;

	if (sleeper == NULL)
		return NULL;
	port->sleepers = sleeper->next;
	sleeper->ov = ov;
	__atomic_store_n(&sleeper->awake, 1, __ATOMIC_RELEASE);
	return &sleeper->awake;
}

void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov)
{
	uint32_t *asleep;

	if (port->sink != NULL) {
		give_to_sink(port, ov);
		return;
	}
	ndxp_lock_acquire(&port->lock);
	__atomic_store_n(&ov->state, BASE_OV_QUEUED, __ATOMIC_RELEASE);
	asleep = give_to_sleeper(port, ov);
	if (asleep == NULL) {
		ndxp_ov_push(&port->queue, ov);
		base_port_show(port);
	}
	ndxp_lock_release(&port->lock);
	/* After unlocking, because the lock is the first that the woken thread needs. From here
	 * on the consumer may have taken `ov`, returned and closed the port: the futex needs only
	 * the address. */
	if (asleep != NULL)
		ndxp_futex_wake(asleep, 1);
}
