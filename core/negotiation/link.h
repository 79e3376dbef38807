/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of servers, sockets to them, and the transports of plugins, which block. */
#ifndef NEGOTIATION_LINK_H
#define NEGOTIATION_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins.h"

#define LINK_HOST_MAX 256u
#define LINK_PORT_MAX 8u

/* Split "host:port" or "[host]:port"; false: malformed. Accepts port 0. */
bool link_address_split(const char *address, char host[LINK_HOST_MAX], char port[LINK_PORT_MAX]);
/* Whether the text is "host:port" or "[host]:port". Resolves nothing. */
bool link_address_valid(const char *address);

/* Enable keepalive: a peer that is lost silently is detected after a minute without traffic. */
void link_keep_alive(int fd);
/* Send at once what is given to the socket. */
void link_no_delay(int fd);
/* Begin to connect a socket, without blocking; writable: the outcome is known. `address`: for the
 * failure's text. */
enum ndx_status link_socket(const struct addrinfo *at, const char *address, int *out);
/* The outcome. */
enum ndx_status link_socket_result(int fd, const char *address);

/* A transport of a plugin. Its calls block. */
struct link {
	const struct ndx_plugin_transport *table; /* NULL: TCP */
	struct ndx_variant *variant;
	struct plugin *plugin;
	pthread_mutex_t lock; /* protects the next two against a cancel from another thread */
	struct ndx_plugin_stream *stream;
	bool cancelled;
};

void link_init(struct link *l, struct ndx_variant *variant);
void link_fini(struct link *l);

/* All of these: NDX_E_IO_TIMEOUT, NDX_E_CANCELED, or the failure of the plugin with
 * ndx_last_error(). `deadline_ns` is a time of ndxp_now_ns(). */
enum ndx_status link_connect(struct link *l, const char *address, uint64_t deadline_ns);
enum ndx_status link_send(struct link *l, const void *data, size_t length, uint64_t deadline_ns);
/* Receive 1 to `room` bytes. NDX_E_CONNECTION_ABORTED: the peer closed. */
enum ndx_status link_receive(struct link *l, void *data, size_t room, size_t *length,
                             uint64_t deadline_ns);
void link_close(struct link *l);
/* A duplicate of the connected transport's descriptor; -1: it has none. */
int link_descriptor(struct link *l);
/* Any thread. Cancels all later calls, too. */
void link_cancel(struct link *l);

#endif
