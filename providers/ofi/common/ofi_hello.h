/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections at a listener that have not sent a request yet (ofi_hello.c). Control thread. */
#ifndef OFI_OFI_HELLO_H
#define OFI_OFI_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include <ndx/spi/loop.h>

/* How long a connection may take to send its request. An NDX sends it at once; a machine under
 * load, or an emulated one, takes a while. */
#define OFI_HELLO_MS 10000u

struct ofi_eq;
struct ofi_pending;

struct ofi_hello {
	struct ofi_eq *eq;
	/* `peer` is shut down; `why` says what it did. */
	void (*refused)(void *owner, const struct sockaddr_storage *peer, const char *why);
	void *owner;
	int listening; /* the listening socket; libfabric's */
	int look;      /* descriptor that lists the event queue's epoll set; -1: none */
	struct ofi_pending *pending; /* oldest first */
	size_t count;
	size_t room;    /* entries that fit into `pending` */
	size_t most;    /* connections that are allowed; half of them from one address */
	unsigned looks; /* wake-ups for the event queue since the last check */
	struct ndxp_timer timer;
	bool timed; /* the timer is set */
};

/* Begin to watch the connections at the listener of this event queue. eq, refused and owner are
 * set, the rest is zero; `listening` is the listener's socket. */
enum ndx_status ofi_hello_begin(struct ofi_hello *hello, int listening);
/* The event queue was read. True: connections have come or gone. */
bool ofi_hello_looked(struct ofi_hello *hello);
/* Close all connections and end the watching. The event queue still exists. */
void ofi_hello_end(struct ofi_hello *hello);

#endif
