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

/* If the queue is empty and `sleep` is true, count the caller as a sleeper: it then sleeps until
 * `*seen` changes. */
static size_t take_completed(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                             bool sleep, uint32_t *seen)
{
	size_t n = 0;

	ndxp_lock_acquire(&port->lock);
	while (n < max && port->queue.head != NULL) {
		struct ndx_overlapped *ov = ndxp_ov_pop(&port->queue);

		__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
		ovs[n++] = ov;
	}
	base_port_show(port);
	*seen = port->posts;
	port->sleepers += sleep && n == 0;
	ndxp_lock_release(&port->lock);
	return n;
}

static void sleep_on(struct ndx_port *port, uint32_t seen, uint64_t deadline)
{
	ndxp_futex_wait(&port->posts, seen, deadline);
	ndxp_lock_acquire(&port->lock);
	/* It does not matter which sleeper a wake-up was meant for: as many return as were
	 * woken. */
	if (port->woken > 0)
		port->woken--;
	else
		port->sleepers--;
	ndxp_lock_release(&port->lock);
}

size_t ndx_port_get(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                    uint32_t timeout_ms)
{
	uint64_t deadline = ndxp_loop_on_any() ? 0 : ndxp_deadline(timeout_ms);
	size_t n;

	if (port == NULL || port->sink != NULL || ovs == NULL)
		return 0;
	for (;;) {
		const bool sleep = ndxp_now_ns() < deadline;
		uint32_t seen;

		n = take_completed(port, ovs, max, sleep, &seen);
		if (n > 0 || !sleep)
			return n;
		sleep_on(port, seen, deadline);
	}
}
