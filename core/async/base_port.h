/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of a port; for core/async only. */
#ifndef BASE_PORT_H
#define BASE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/overlapped_list.h>

/* A thread that sleeps, or is about to, on its stack; under the port's lock. */
struct base_port_sleeper {
	struct ndx_overlapped *ov; /* handed over to it; it is in the list until then */
	uint32_t awake;            /* its futex: 1 when it has an object */
	struct base_port_sleeper *next;
};

struct ndx_port {
	ndx_overlapped_fn *sink; /* NULL: the port queues; else nothing but `fd`, -1, is used */
	struct ndxp_lock lock;
	struct ndxp_ov_list queue;          /* empty while there are sleepers */
	struct base_port_sleeper *sleepers; /* the last to come is the first */
	int fd; /* readable while the queue holds an object, if the consumer has asked for it */
	bool asked;
	bool up;
};

/* Lock held: make the descriptor readable exactly while the queue holds an object. */
void base_port_show(struct ndx_port *port);

/* Queue an object that has its outcome, or give the object to a sleeping thread or to the port's
 * sink. Any thread, with any lock held. */
void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov);

#endif
