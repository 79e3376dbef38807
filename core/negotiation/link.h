/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's end of a session's transport: TCP, or a plugin's. Blocks, with time limits. */
#ifndef NEGOTIATION_LINK_H
#define NEGOTIATION_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins.h"

struct link {
	const struct ndx_plugin_transport *table; /* NULL: TCP */
	struct plugin *plugin;
	struct resolver *resolver; /* of the framework */
	pthread_mutex_t lock;      /* protects `stream` against a cancel from another thread */
	struct ndx_plugin_stream *stream;
	int fd;        /* -1: none */
	int cancel_fd; /* an eventfd, set by a cancel */
};

/* NDX_E_INSUFFICIENT_RESOURCES: no descriptor left. */
enum ndx_status link_init(struct link *l, const struct ndx_variant *variant);
void link_fini(struct link *l);

#define LINK_HOST_MAX 256u
#define LINK_PORT_MAX 8u

/* Split "host:port" or "[host]:port"; false: malformed. Accepts port 0. */
bool link_address_split(const char *address, char host[LINK_HOST_MAX], char port[LINK_PORT_MAX]);
/* Whether the text is "host:port" or "[host]:port". Resolves nothing. */
bool link_address_valid(const char *address);

/* Enable keepalive: a peer that is lost silently is detected after a minute without traffic. */
void link_keep_alive(int fd);

/* All of these: NDX_E_IO_TIMEOUT, NDX_E_CANCELED, or the failure of the system or the plugin with
 * ndx_last_error(). `deadline_ns` is a time of ndxp_now_ns(). */
enum ndx_status link_connect(struct link *l, const char *address, uint64_t deadline_ns);
enum ndx_status link_send(struct link *l, const void *data, size_t length, uint64_t deadline_ns);
/* Receive 1 to `room` bytes. NDX_E_CONNECTION_ABORTED: the peer closed. */
enum ndx_status link_receive(struct link *l, void *data, size_t room, size_t *length,
                             uint64_t deadline_ns);
void link_close(struct link *l);
/* Wait until `deadline_ns`; false if cancelled. */
bool link_pause(struct link *l, uint64_t deadline_ns);
/* Any thread. Cancels all later calls, too. */
void link_cancel(struct link *l);
bool link_cancelled(struct link *l);

#endif
