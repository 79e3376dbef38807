/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections at a listener that have not asked for anything yet (ofi_hello.c). Control thread. */
#ifndef OFI_OFI_HELLO_H
#define OFI_OFI_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include "base_loop.h"

/* How long a connection may take until it asks. An NDX asks at once; a machine under load, or in
 * emulation, takes a while. */
#define OFI_HELLO_MS 10000u

struct ofi_eq;
struct ofi_stranger;

struct ofi_hello {
	struct ofi_eq *eq;
	/* `peer` is turned away: it `why`. */
	void (*turned)(void *owner, const struct sockaddr_storage *peer, const char *why);
	void *owner;
	int listening;                  /* the socket; libfabric's */
	int look;                       /* into the event queue's set; -1: there is no telling */
	struct ofi_stranger *strangers; /* the oldest first */
	size_t count;
	size_t most;    /* that are borne, in all; half of them from one address */
	unsigned looks; /* of the event queue since ours */
	struct base_timer timer;
	bool timed; /* it runs */
};

/* From now on those at the listener of this event queue are watched. eq, turned and owner are set,
 * the rest is zero; `listening` is the listener's socket. */
enum ndx_status ofi_hello_begin(struct ofi_hello *hello, int listening);
/* The event queue was looked at. True: connections have come or gone. */
bool ofi_hello_looked(struct ofi_hello *hello);
/* All are closed, and nobody is watched any more. The event queue is still there. */
void ofi_hello_end(struct ofi_hello *hello);

#endif
