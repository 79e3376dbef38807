/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, sockets, and the transports of plugins. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

#define HOUR_MS 3600000u

bool link_address_split(const char *address, char host[LINK_HOST_MAX], char port[LINK_PORT_MAX])
{
	const char *colon = strrchr(address, ':');
	const char *begin = address;
	const char *end = colon;
	size_t length;

	if (colon == NULL)
		return false;
	if (address[0] == '[') {
		begin++;
		end = colon - 1;
		if (end < begin || *end != ']')
			return false;
	} else if (memchr(address, ':', (size_t)(colon - address)) != NULL) {
		return false; /* IPv6 needs brackets, otherwise the port would be ambiguous */
	}
	length = (size_t)(end - begin);
	if (length == 0 || length >= LINK_HOST_MAX)
		return false;
	memcpy(host, begin, length);
	host[length] = '\0';
	length = strspn(colon + 1, "0123456789");
	if (length == 0 || length > 5 || colon[1 + length] != '\0')
		return false;
	memcpy(port, colon + 1, length + 1);
	return true;
}

bool link_address_valid(const char *address)
{
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];
	unsigned number = 0;

	if (!link_address_split(address, host, port))
		return false;
	for (const char *p = port; *p != '\0'; p++)
		number = number * 10 + (unsigned)(*p - '0');
	return number > 0 && number <= 65535;
}

void link_keep_alive(int fd)
{
	const int on = 1;
	const int idle_s = 30;
	const int every_s = 10;
	const int count = 3;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

void link_no_delay(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static enum ndx_status status_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return NDX_E_CONNECTION_REFUSED;
	case ENETUNREACH:
		return NDX_E_NETWORK_UNREACHABLE;
	case EHOSTUNREACH:
		return NDX_E_HOST_UNREACHABLE;
	case ETIMEDOUT:
		return NDX_E_IO_TIMEOUT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
		return NDX_E_INSUFFICIENT_RESOURCES;
	case ENOMEM:
		return NDX_E_NO_MEMORY;
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
	case EINVAL:
		return NDX_E_INVALID_ADDRESS;
	default:
		return NDX_E_CONNECTION_ABORTED;
	}
}

enum ndx_status link_socket(const struct addrinfo *at, const char *address, int *out)
{
	const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return fail(status_of(errno), errno, "server %.128s: no socket", address);
	link_no_delay(fd);
	if (connect(fd, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) {
		error = errno;
		ndxp_fd_close(fd);
		return fail(status_of(error), error, "server %.128s cannot be reached", address);
	}
	*out = fd;
	return NDX_OK;
}

enum ndx_status link_socket_result(int fd, const char *address)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error == 0)
		return NDX_OK;
	return fail(status_of(error), error, "server %.128s cannot be reached", address);
}

/* ---- transports of plugins ---- */

void link_init(struct link *l, struct ndx_variant *variant)
{
	*l = (struct link){
		.table = variant_transport(variant), .variant = variant, .plugin = variant->plugin};
	(void)pthread_mutex_init(&l->lock, NULL);
}

void link_fini(struct link *l)
{
	link_close(l);
	(void)pthread_mutex_destroy(&l->lock);
}

/* Milliseconds, rounded up; at most an hour. */
static uint32_t remaining(uint64_t deadline_ns)
{
	const uint32_t ms = ndxp_ms_until(deadline_ns);

	return ms < HOUR_MS ? ms : HOUR_MS;
}

static enum ndx_status dial(const struct link *l, const char *address, uint32_t timeout_ms,
                            struct ndx_plugin_stream **stream, char why[PLUGIN_TEXT])
{
	struct ndx_plugin_transport_more more;
	const struct ndx_plugin_dial d = {.size = sizeof(d),
	                                  .plugin = l->plugin->state,
	                                  .address = address,
	                                  .timeout_ms = timeout_ms,
	                                  .transport = l->table,
	                                  .variant = l->variant->table,
	                                  .values = l->variant->values,
	                                  .instance = l->variant->instance};

	variant_transport_more(l->variant, &more);
	if (more.dial != NULL)
		return more.dial(&d, stream, why, PLUGIN_TEXT);
	return l->table->connect(l->plugin->state, address, timeout_ms, stream, why, PLUGIN_TEXT);
}

enum ndx_status link_connect(struct link *l, const char *address, uint64_t deadline_ns)
{
	struct ndx_plugin_stream *stream = NULL;
	char why[PLUGIN_TEXT] = "";
	enum ndx_status st;

	plugin_enter(l->plugin);
	st = dial(l, address, remaining(deadline_ns), &stream, why);
	plugin_leave(l->plugin);
	why[sizeof(why) - 1] = '\0';
	if (st != NDX_OK)
		return fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0,
		            "plugin \"%s\", transport \"%s\", %.128s: %s", l->plugin->name,
		            l->table->name, address, why[0] != '\0' ? why : ndx_status_text(st));
	pthread_mutex_lock(&l->lock);
	l->stream = stream;
	if (l->cancelled)
		l->table->cancel(stream);
	pthread_mutex_unlock(&l->lock);
	return NDX_OK;
}

/* Convert a result of a plugin's transport, which has no error text. */
static enum ndx_status judge_plugin(const struct link *l, const char *call, enum ndx_status st)
{
	if (st == NDX_OK || st == NDX_E_IO_TIMEOUT || st == NDX_E_CANCELED)
		return st;
	return fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0,
	            "plugin \"%s\", transport \"%s\": its %s failed: %s", l->plugin->name,
	            l->table->name, call, ndx_status_text(st));
}

enum ndx_status link_send(struct link *l, const void *data, size_t length, uint64_t deadline_ns)
{
	return judge_plugin(l, "send",
	                    l->table->send(l->stream, data, length, remaining(deadline_ns)));
}

enum ndx_status link_receive(struct link *l, void *data, size_t room, size_t *length,
                             uint64_t deadline_ns)
{
	enum ndx_status st =
		l->table->receive(l->stream, data, room, length, remaining(deadline_ns));

	if (st == NDX_OK && (*length == 0 || *length > room))
		return fail(NDX_E_INTERNAL_ERROR, 0,
		            "plugin \"%s\", transport \"%s\" received %zu bytes into %zu",
		            l->plugin->name, l->table->name, *length, room);
	return judge_plugin(l, "receive", st);
}

void link_close(struct link *l)
{
	struct ndx_plugin_stream *stream;

	pthread_mutex_lock(&l->lock);
	stream = l->stream;
	l->stream = NULL;
	pthread_mutex_unlock(&l->lock);
	if (stream != NULL)
		l->table->close(stream);
}

int link_descriptor(struct link *l)
{
	struct ndx_plugin_transport_more more;
	int fd = -1;

	variant_transport_more(l->variant, &more);
	if (more.descriptor != NULL)
		fd = more.descriptor(l->stream);
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
}

void link_cancel(struct link *l)
{
	pthread_mutex_lock(&l->lock);
	l->cancelled = true;
	if (l->stream != NULL)
		l->table->cancel(l->stream);
	pthread_mutex_unlock(&l->lock);
}
