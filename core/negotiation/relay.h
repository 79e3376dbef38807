/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin's transport as a socket of the driver. The calls of such a transport block; the relay
 * makes them on threads of the pool and moves the bytes between the transport and one end of a
 * socket pair. The driver has the other end, and treats it as it treats a TCP socket.
 *
 * The relay lives as long as its tasks: a call of the plugin that does not return keeps the relay,
 * its thread and the variant, but not the session.
 */
#ifndef NEGOTIATION_RELAY_H
#define NEGOTIATION_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "plugins.h"

struct relay;

/* Counts the relays of one session that were left and have not ended. Any thread. */
struct relay_group;

struct relay_group *relay_group_create(void);
struct relay_group *relay_group_get(struct relay_group *g);
void relay_group_put(struct relay_group *g); /* NULL is a no-op */
/* Wait until all of them have ended, for `ms` at most; false: one has not. */
bool relay_group_wait(struct relay_group *g, uint32_t ms);

struct relay_attr {
	struct ndx_variant *variant;
	struct engine *engine; /* its pool is started */
	struct relay_group *group;
	uint64_t session;     /* its number, for the log */
	const char *address;  /* copied */
	uint32_t connect_ms;  /* the transport's time to connect */
	uint32_t send_ms;     /* time for one send of the transport */
	uint32_t farewell_ms; /* after relay_leave(): time for what was not sent yet */
};

/* Loop thread. Begin to connect; *fd is the driver's end, which takes bytes at once. When the
 * transport fails, the driver reads the end of the stream; see relay_why(). */
enum ndx_status relay_create(const struct relay_attr *attr, struct relay **out, int *fd);
/* Loop thread: whether the transport has connected. */
bool relay_is_connected(const struct relay *r);
/* Loop thread: why the transport has failed; false: it has not. */
bool relay_why(struct relay *r, enum ndx_status *status, char *text, size_t room);
/* Loop thread; the driver has closed its end. The rest goes on in the background: send what the
 * driver wrote last, cancel a call that is in progress, close the transport. */
void relay_leave(struct relay *r);

#endif
