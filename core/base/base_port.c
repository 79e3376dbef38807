/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_port.h"

#include <errno.h>
#include <stdlib.h>

#include "base_linux.h"
#include "base_lock.h"
#include "base_log.h"
#include "base_loop.h"
#include "base_ov.h"
#include "base_ov_state.h"

struct ndx_port {
	struct base_lock lock;
	struct base_ov_list queue;
	uint32_t posts; /* counts pushes: what sleepers sleep on */
	int fd;         /* up while the queue holds something */
};

enum ndx_status ndx_port_create(struct ndx_port **out)
{
	struct ndx_port *port;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_port_create: out is NULL");
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a port");
	port->fd = base_flag_create();
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
	for (struct ndx_overlapped *ov = base_ov_pop(&port->queue); ov != NULL;
	     ov = base_ov_pop(&port->queue))
		__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
	base_fd_close(port->fd);
	free(port);
}

int ndx_port_get_fd(struct ndx_port *port)
{
	return port->fd;
}

void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov)
{
	base_lock_acquire(&port->lock);
	__atomic_store_n(&ov->state, BASE_OV_QUEUED, __ATOMIC_RELEASE);
	base_ov_push(&port->queue, ov);
	base_flag_raise(port->fd);
	/* Woken under the lock: once it is let go, the consumer may take `ov` and close the port.
	 */
	__atomic_fetch_add(&port->posts, 1, __ATOMIC_RELEASE);
	base_futex_wake(&port->posts, 1);
	base_lock_release(&port->lock);
}

void ndx_port_post(struct ndx_port *port, struct ndx_overlapped *ov)
{
	base_port_push(port, ov);
}

static size_t take(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max)
{
	size_t n = 0;

	base_lock_acquire(&port->lock);
	while (n < max && port->queue.head != NULL) {
		struct ndx_overlapped *ov = base_ov_pop(&port->queue);

		__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
		ovs[n++] = ov;
	}
	if (port->queue.head == NULL)
		base_flag_lower(port->fd);
	base_lock_release(&port->lock);
	return n;
}

size_t ndx_port_get(struct ndx_port *port, struct ndx_overlapped **ovs, size_t max,
                    uint32_t timeout_ms)
{
	uint64_t deadline = base_loop_on_any() ? 0 : base_deadline(timeout_ms);
	size_t n;

	for (;;) {
		uint32_t seen = __atomic_load_n(&port->posts, __ATOMIC_ACQUIRE);

		n = take(port, ovs, max);
		if (n > 0 || base_now_ns() >= deadline)
			return n;
		base_futex_wait(&port->posts, seen, deadline);
	}
}
