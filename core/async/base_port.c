/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_port.h"

#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/loop.h>
#include "base_ov_state.h"

enum ndx_status ndx_port_create_sink(ndx_overlapped_fn *sink, struct ndx_port **out)
{
	struct ndx_port *port;

	if (sink == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_port_create_sink: NULL argument");
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a port");
	port->sink = sink;
	port->fd = -1;
	*out = port;
	return NDX_OK;
}

enum ndx_status ndx_port_create(struct ndx_port **out)
{
	struct ndx_port *port;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_port_create: out is NULL");
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a port");
	port->fd = ndxp_eventfd_create();
	if (port->fd < 0) {
		enum ndx_status st = fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		                          "no descriptor for a port; see ulimit -n");

		free(port);
		return st;
	}
	*out = port;
	return NDX_OK;
}

void ndx_port_close(struct ndx_port *port)
{
	if (port == NULL)
		return;
	for (struct ndx_overlapped *ov = ndxp_ov_pop(&port->queue); ov != NULL;
	     ov = ndxp_ov_pop(&port->queue))
		__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
	ndxp_fd_close(port->fd);
	free(port);
}

int ndx_port_get_fd(struct ndx_port *port)
{
	if (port == NULL || port->sink != NULL)
		return -1;
	ndxp_lock_acquire(&port->lock);
	port->asked = true;
	base_port_show(port);
	ndxp_lock_release(&port->lock);
	return port->fd;
}

void ndx_port_post(struct ndx_port *port, struct ndx_overlapped *ov)
{
	if (port != NULL && ov != NULL)
		base_port_push(port, ov);
}

static struct ndx_overlapped *returned(struct ndx_overlapped *ov)
{
	__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
	return ov;
}

/* Lock held. */
static size_t take_queued(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max)
{
	size_t n = 0;

	while (n < max && port->queue.head != NULL)
		ovs[n++] = returned(ndxp_ov_pop(&port->queue));
	base_port_show(port);
	return n;
}

/* Lock held: a thread that has got nothing. */
static void leave(struct ndx_port *port, const struct base_port_sleeper *self)
{
	struct base_port_sleeper **link = &port->sleepers;

	while (*link != self)
		link = &(*link)->next;
	*link = self->next;
}

/* Lock held, but not while the thread sleeps. */
static size_t sleep_for_one(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                            uint64_t deadline)
{
	struct base_port_sleeper self = {.next = port->sleepers};

	port->sleepers = &self;
	do {
		ndxp_lock_release(&port->lock);
		ndxp_futex_wait(&self.awake, 0, deadline);
		ndxp_lock_acquire(&port->lock);
	} while (self.ov == NULL && ndxp_now_ns() < deadline);
	if (self.ov == NULL) {
		leave(port, &self);
		return 0;
	}
	ovs[0] = returned(self.ov);
	return 1 + take_queued(port, ovs + 1, max - 1);
}

size_t ndx_port_get(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                    uint32_t timeout_ms)
{
	const uint64_t deadline = ndxp_loop_on_any() ? 0 : ndxp_deadline(timeout_ms);
	const bool may_sleep = max > 0 && ndxp_now_ns() < deadline;
	size_t n;

	if (port == NULL || port->sink != NULL || ovs == NULL)
		return 0;
	ndxp_lock_acquire(&port->lock);
	n = take_queued(port, ovs, max);
	if (n == 0 && may_sleep)
		n = sleep_for_one(port, ovs, max, deadline);
	ndxp_lock_release(&port->lock);
	return n;
}
