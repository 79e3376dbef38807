/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's end of a session's transport. */
#include "link.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

#define HOUR_MS 3600000u

enum ndx_status link_init(struct link *l, const struct ndx_variant *variant)
{
	memset(l, 0, sizeof(*l));
	l->table = variant_transport(variant);
	l->plugin = variant->plugin;
	l->resolver = &variant->plugin->negotiation->resolver;
	l->fd = -1;
	l->cancel_fd = ndxp_eventfd_create();
	if (l->cancel_fd < 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		            "session: no file descriptor left");
	(void)pthread_mutex_init(&l->lock, NULL);
	return NDX_OK;
}

void link_fini(struct link *l)
{
	link_close(l);
	ndxp_fd_close(l->cancel_fd);
	(void)pthread_mutex_destroy(&l->lock);
}

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

/* Milliseconds for poll(2), rounded up; at most an hour, because the callers poll again. */
static int remaining(uint64_t deadline_ns)
{
	const uint32_t ms = ndxp_ms_until(deadline_ns);

	return (int)(ms < HOUR_MS ? ms : HOUR_MS);
}

static enum ndx_status wait_on(const struct link *l, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd set[2] = {{.fd = l->cancel_fd, .events = POLLIN},
	                        {.fd = fd, .events = events}};

	for (;;) {
		const int ms = remaining(deadline_ns);
		const int n = poll(set, 2, ms);

		if (n < 0 && errno != EINTR)
			return fail(NDX_E_INTERNAL_ERROR, errno, "session: poll");
		if (n > 0 && set[0].revents != 0)
			return NDX_E_CANCELED;
		if (n > 0)
			return NDX_OK;
		if (n == 0 && remaining(deadline_ns) == 0)
			return NDX_E_IO_TIMEOUT;
	}
}

static enum ndx_status wait_for(const struct link *l, short events, uint64_t deadline_ns)
{
	return wait_on(l, l->fd, events, deadline_ns);
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

static enum ndx_status connect_one(struct link *l, const struct addrinfo *ai, const char *address,
                                   uint64_t deadline_ns)
{
	const int on = 1;
	socklen_t size = sizeof(int);
	enum ndx_status st;
	int error = 0;

	l->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return fail(status_of(errno), errno, "server %.128s: no socket", address);
	(void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	link_keep_alive(l->fd);
	if (connect(l->fd, ai->ai_addr, ai->ai_addrlen) != 0 && errno != EINPROGRESS) {
		error = errno;
		goto refused;
	}
	st = wait_for(l, POLLOUT, deadline_ns);
	if (st == NDX_E_IO_TIMEOUT)
		st = fail(st, 0, "server %.128s does not take the connection in time", address);
	if (st != NDX_OK)
		goto give_up;
	if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error == 0)
		return NDX_OK;
refused:
	st = fail(status_of(error), error, "server %.128s cannot be reached", address);
give_up:
	ndxp_fd_close(l->fd);
	l->fd = -1;
	return st;
}

/* Connect to the first address that accepts. */
static enum ndx_status connect_any(struct link *l, const struct addrinfo *found,
                                   const char *address, uint64_t deadline_ns)
{
	enum ndx_status st = NDX_E_HOST_UNREACHABLE;

	for (const struct addrinfo *ai = found; ai != NULL; ai = ai->ai_next) {
		st = connect_one(l, ai, address, deadline_ns);
		if (st == NDX_OK || st == NDX_E_CANCELED)
			break;
	}
	return st;
}

static enum ndx_status connect_name(struct link *l, const char *host, const char *port,
                                    const char *address, uint64_t deadline_ns)
{
	const struct addrinfo *found;
	struct lookup *lookup;
	enum ndx_status st = resolver_begin(l->resolver, host, port, &lookup);
	int error;

	if (st != NDX_OK)
		return st;
	st = wait_on(l, lookup_fd(lookup), POLLIN, deadline_ns);
	if (st == NDX_E_IO_TIMEOUT)
		(void)fail(st, 0,
		           "server %.128s: the system's resolver has no answer in time; look at "
		           "/etc/resolv.conf, or give the address in numbers",
		           address);
	if (st != NDX_OK)
		goto leave;
	error = lookup_answer(lookup, &found);
	if (error != 0)
		st = fail(NDX_E_HOST_UNREACHABLE, 0, "server %.128s: %s", address,
		          gai_strerror(error));
	else
		st = connect_any(l, found, address, deadline_ns);
leave:
	resolver_leave(l->resolver, lookup);
	return st;
}

static enum ndx_status connect_tcp(struct link *l, const char *address, uint64_t deadline_ns)
{
	const struct addrinfo numbers = {.ai_family = AF_UNSPEC,
	                                 .ai_socktype = SOCK_STREAM,
	                                 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	enum ndx_status st;
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];

	if (!link_address_split(address, host, port))
		return fail(NDX_E_INVALID_ADDRESS, 0, "\"%.128s\" is not HOST:PORT", address);
	if (getaddrinfo(host, port, &numbers, &found) != 0)
		return connect_name(l, host, port, address, deadline_ns);
	st = connect_any(l, found, address, deadline_ns);
	freeaddrinfo(found);
	return st;
}

static enum ndx_status connect_plugin(struct link *l, const char *address, uint64_t deadline_ns)
{
	struct ndx_plugin_stream *stream = NULL;
	char why[PLUGIN_TEXT] = "";
	enum ndx_status st;

	plugin_enter(l->plugin);
	st = l->table->connect(l->plugin->state, address, (uint32_t)remaining(deadline_ns), &stream,
	                       why, sizeof(why));
	plugin_leave(l->plugin);
	why[sizeof(why) - 1] = '\0';
	if (st != NDX_OK)
		return fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0,
		            "plugin \"%s\", transport \"%s\", %.128s: %s", l->plugin->name,
		            l->table->name, address, why[0] != '\0' ? why : ndx_status_text(st));
	pthread_mutex_lock(&l->lock);
	l->stream = stream;
	if (link_cancelled(l))
		l->table->cancel(stream);
	pthread_mutex_unlock(&l->lock);
	return NDX_OK;
}

enum ndx_status link_connect(struct link *l, const char *address, uint64_t deadline_ns)
{
	if (link_cancelled(l))
		return NDX_E_CANCELED;
	return l->table == NULL ? connect_tcp(l, address, deadline_ns)
	                        : connect_plugin(l, address, deadline_ns);
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
	const char *p = data;

	if (l->stream != NULL)
		return judge_plugin(
			l, "send",
			l->table->send(l->stream, data, length, (uint32_t)remaining(deadline_ns)));
	while (length > 0) {
		const ssize_t n = send(l->fd, p, length, MSG_NOSIGNAL);
		enum ndx_status st;

		if (n >= 0) {
			p += n;
			length -= (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fail(NDX_E_CONNECTION_ABORTED, errno,
			            "the transport to the server is lost");
		st = wait_for(l, POLLOUT, deadline_ns);
		if (st != NDX_OK)
			return st;
	}
	return NDX_OK;
}

static enum ndx_status receive_plugin(struct link *l, void *data, size_t room, size_t *length,
                                      uint64_t deadline_ns)
{
	enum ndx_status st =
		l->table->receive(l->stream, data, room, length, (uint32_t)remaining(deadline_ns));

	if (st == NDX_OK && (*length == 0 || *length > room))
		return fail(NDX_E_INTERNAL_ERROR, 0,
		            "plugin \"%s\", transport \"%s\" received %zu bytes into %zu",
		            l->plugin->name, l->table->name, *length, room);
	return judge_plugin(l, "receive", st);
}

enum ndx_status link_receive(struct link *l, void *data, size_t room, size_t *length,
                             uint64_t deadline_ns)
{
	if (l->stream != NULL)
		return receive_plugin(l, data, room, length, deadline_ns);
	for (;;) {
		const ssize_t n = recv(l->fd, data, room, 0);
		enum ndx_status st;

		if (n > 0) {
			*length = (size_t)n;
			return NDX_OK;
		}
		if (n == 0)
			return fail(NDX_E_CONNECTION_ABORTED, 0, "the server closed the transport");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fail(NDX_E_CONNECTION_ABORTED, errno,
			            "the transport to the server is lost");
		st = wait_for(l, POLLIN, deadline_ns);
		if (st != NDX_OK)
			return st;
	}
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
	ndxp_fd_close(l->fd);
	l->fd = -1;
}

bool link_pause(struct link *l, uint64_t deadline_ns)
{
	struct link nothing = {.fd = -1, .cancel_fd = l->cancel_fd};

	return wait_for(&nothing, 0, deadline_ns) != NDX_E_CANCELED;
}

void link_cancel(struct link *l)
{
	ndxp_eventfd_set(l->cancel_fd);
	pthread_mutex_lock(&l->lock);
	if (l->stream != NULL)
		l->table->cancel(l->stream);
	pthread_mutex_unlock(&l->lock);
}

bool link_cancelled(struct link *l)
{
	struct pollfd flag = {.fd = l->cancel_fd, .events = POLLIN};

	return poll(&flag, 1, 0) > 0;
}
