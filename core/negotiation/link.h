/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's end of a session's transport: TCP, or a plugin's own. Blocks, within limits. */
#ifndef NEGOTIATION_LINK_H
#define NEGOTIATION_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins.h"

struct link {
	const struct ndx_plugin_transport *table; /* NULL: TCP */
	struct plugin *plugin;
	struct resolver *resolver; /* the framework's */
	pthread_mutex_t lock;      /* `channel` against a cancel from another thread */
	struct ndx_plugin_channel *channel;
	int fd;        /* -1: none */
	int cancel_fd; /* a flag: readable from a cancel on */
};

/* NDX_E_INSUFFICIENT_RESOURCES: no descriptor left. */
enum ndx_status link_init(struct link *l, const struct ndx_variant *variant);
void link_fini(struct link *l);

#define LINK_HOST_MAX 256u
#define LINK_PORT_MAX 8u

/* Take "host:port" or "[host]:port" apart; false: malformed. Port 0 passes. */
bool link_address_split(const char *address, char host[LINK_HOST_MAX], char port[LINK_PORT_MAX]);
/* "host:port" or "[host]:port"; false: malformed. Looks nothing up. */
bool link_address_valid(const char *address);

/* Who is gone without a word is noticed after a minute, though nobody sends anything. */
void link_keep_alive(int fd);

/* All of them: NDX_E_IO_TIMEOUT, NDX_E_CANCELED; else as the system or the plugin failed, with
 * ndx_last_error(). `deadline_ns` by base_now_ns(). */
enum ndx_status link_connect(struct link *l, const char *address, uint64_t deadline_ns);
enum ndx_status link_send(struct link *l, const void *data, size_t length, uint64_t deadline_ns);
/* 1 to `room` bytes. NDX_E_CONNECTION_ABORTED: the peer closed. */
enum ndx_status link_receive(struct link *l, void *data, size_t room, size_t *length,
                             uint64_t deadline_ns);
void link_close(struct link *l);
/* Wait until `deadline_ns`; false if cancelled. */
bool link_pause(struct link *l, uint64_t deadline_ns);
/* Any thread; for good. */
void link_cancel(struct link *l);
bool link_cancelled(struct link *l);

#endif
