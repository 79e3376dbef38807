/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of a port; for core/async only. */
#ifndef BASE_PORT_H
#define BASE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/overlapped_list.h>

struct ndx_port {
	ndx_overlapped_fn *sink; /* NULL: the port queues; else nothing but `fd`, -1, is used */
	struct ndxp_lock lock;
	struct ndxp_ov_list queue;
	uint32_t posts;    /* counts pushes; the futex of sleeping threads */
	uint32_t sleepers; /* threads that sleep, or are about to, and are not woken yet */
	uint32_t woken;    /* threads that were woken and have not returned yet */
	int fd; /* readable while the queue holds an object, if the consumer has asked for it */
	bool asked;
	bool up;
};

/* Lock held: make the descriptor readable exactly while the queue holds an object. */
void base_port_show(struct ndx_port *port);

/* Queue an object that has its outcome, or give the object to the port's sink. Any thread, with any
 * lock held. */
void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov);

#endif
