/* SPDX-License-Identifier: BSD-2-Clause */
/* A port's queue; for core/async only. */
#ifndef BASE_PORT_H
#define BASE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/overlapped.h>

#include "base_lock.h"
#include "base_ov_list.h"

struct ndx_port {
	struct base_lock lock;
	struct base_ov_list queue;
	uint32_t posts;    /* counts pushes: what sleepers sleep on */
	uint32_t sleepers; /* who sleeps, or is about to, and nobody has woken yet */
	uint32_t woken;    /* ... and who was woken, and is not back yet */
	int fd;            /* up while the queue holds something, if anybody has asked for it */
	bool asked;
	bool up;
};

/* Lock held: the descriptor is up while the queue holds something. */
void base_port_show(struct ndx_port *port);

/* Queue an object that has ended. Any thread, any lock. */
void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov);

#endif
