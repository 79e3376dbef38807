/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's listening sockets: every address of its name, with one port number. */
#include "server.h"
#include "plaintext.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>

#define ACCEPTS_AT_ONCE 64
#define NUMBERS_TRIED 32 /* ports to try, because each must be free at all addresses */

/* ---- clients ---- */

static bool lacks_room(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Clients wait until there are descriptors again. Trying at once would occupy the loop. */
static void wait_for_descriptors(struct ndx_negotiation_server *server, int error)
{
	if (!server->said_so)
		log_error(error,
		          "negotiation server: no client is accepted until a session ends; if "
		          "descriptors are short, see ulimit -n");
	server->said_so = true;
	server->no_descriptors = true;
}

/* Loop thread. */
static void on_connection(void *arg, uint32_t events)
{
	struct server_port *port = arg;
	struct ndx_negotiation_server *server = port->server;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage from;
		socklen_t length = sizeof(from);
		const int fd = accept4(port->watch.fd, (struct sockaddr *)&from, &length,
		                       SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (lacks_room(errno)) {
				wait_for_descriptors(server, errno);
				return;
			}
			break;
		}
		server->said_so = false;
		client_accept(server, fd, &from);
	}
	ndxp_watch_rearm(server->engine.loop, &port->watch, EPOLLIN);
}

enum ndx_status server_watch(struct ndx_negotiation_server *server)
{
	enum ndx_status st = NDX_OK;

	/* Accept no client before all addresses can accept. */
	for (unsigned i = 0; st == NDX_OK && i < server->port_count; i++)
		st = ndxp_watch_add(server->engine.loop, &server->ports[i].watch, 0, true);
	if (st == NDX_OK)
		server_accept(server);
	return st;
}

void server_accept(struct ndx_negotiation_server *server)
{
	for (unsigned i = 0; i < server->port_count; i++)
		ndxp_watch_rearm(server->engine.loop, &server->ports[i].watch, EPOLLIN);
	server->no_descriptors = false;
}

void server_unwatch(struct ndx_negotiation_server *server)
{
	for (unsigned i = 0; i < server->port_count; i++)
		ndxp_watch_remove(server->engine.loop, &server->ports[i].watch);
	server->no_descriptors = false;
}

/* ---- addresses ---- */

void server_unlisten(struct ndx_negotiation_server *server)
{
	while (server->port_count > 0)
		ndxp_fd_close(server->ports[--server->port_count].watch.fd);
}

/* Open a socket that listens at `at`, which becomes its address. -1 with errno. */
static int open_at(struct sockaddr_storage *at, bool among_others)
{
	const int fd = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*at);
	const int on = 1;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* Accepted sockets inherit this: a frame does not wait for the answer to the one before. */
	link_no_delay(fd);
	/* IPv4 addresses have their own sockets, so [::] must not take their port. */
	if (among_others && at->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)at, ndxp_sockaddr_len(at)) == 0 &&
	    listen(fd, SOMAXCONN) == 0 && getsockname(fd, (struct sockaddr *)at, &length) == 0)
		return fd;
	ndxp_fd_close(fd);
	return -1;
}

static void add_port(struct ndx_negotiation_server *server, int fd,
                     const struct sockaddr_storage *at)
{
	struct server_port *port = &server->ports[server->port_count];

	if (server->port_count++ == 0)
		server->address = *at;
	port->server = server;
	port->watch = (struct ndxp_watch){.fd = fd, .fn = on_connection, .arg = port};
}

/* A name may have addresses that this host does not have. */
static bool is_elsewhere(int error)
{
	return error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

/* Open all with the port of the first; 0, or an errno and the address that failed. */
static int open_all(struct ndx_negotiation_server *server, const struct sockaddr_storage *at,
                    size_t count, struct sockaddr_storage *failed)
{
	int first = 0;

	for (size_t i = 0; i < count; i++) {
		struct sockaddr_storage here = at[i];
		char text[NDXP_SOCKADDR_TEXT];
		int fd;

		if (server->port_count > 0)
			ndxp_sockaddr_set_port(&here, ndxp_sockaddr_port(&server->address));
		*failed = here;
		fd = open_at(&here, count > 1);
		if (fd >= 0) {
			add_port(server, fd, &here);
			continue;
		}
		if (!is_elsewhere(errno) || count == 1)
			return errno;
		first = first != 0 ? first : errno;
		log_warn(errno, "negotiation server: does not listen at %s",
		         ndxp_sockaddr_text(&here, text));
	}
	return server->port_count > 0 ? 0 : first;
}

static enum ndx_status status_of(int error)
{
	if (error == EADDRINUSE)
		return NDX_E_SHARING_VIOLATION;
	if (error == EACCES || error == EPERM)
		return NDX_E_ACCESS_DENIED;
	return lacks_room(error) ? NDX_E_INSUFFICIENT_RESOURCES : NDX_E_INVALID_ADDRESS;
}

static enum ndx_status listen_at(struct ndx_negotiation_server *server,
                                 const struct sockaddr_storage *at, size_t count)
{
	const bool any_number = ndxp_sockaddr_port(&at[0]) == 0;
	char text[NDXP_SOCKADDR_TEXT];
	struct sockaddr_storage failed;
	int error;

	for (int tried = 1;; tried++) {
		error = open_all(server, at, count, &failed);
		if (error == 0)
			break;
		server_unlisten(server);
		if (error != EADDRINUSE || !any_number || tried == NUMBERS_TRIED)
			return fail(status_of(error), error,
			            "ndx_negotiation_server_create: cannot listen at %s (%.128s)",
			            ndxp_sockaddr_text(&failed, text), server->attr.address);
	}
	for (unsigned i = 0; i < server->port_count; i++) {
		struct sockaddr_storage here;
		socklen_t length = sizeof(here);

		memset(&here, 0, sizeof(here));
		if (getsockname(server->ports[i].watch.fd, (struct sockaddr *)&here, &length) == 0)
			log_info("negotiation server: listens at %s",
			         ndxp_sockaddr_text(&here, text));
	}
	return NDX_OK;
}

/* Each address once: a name may list the same address twice. */
static size_t collect(const struct addrinfo *found, struct sockaddr_storage at[SERVER_PORTS_MOST])
{
	size_t count = 0;

	for (const struct addrinfo *ai = found; ai != NULL; ai = ai->ai_next) {
		struct sockaddr_storage here;
		size_t i = 0;

		if (!ndxp_sockaddr_valid(ai->ai_addr, ai->ai_addrlen))
			continue;
		ndxp_sockaddr_copy(&here, ai->ai_addr, ai->ai_addrlen);
		while (i < count && memcmp(&at[i], &here, sizeof(here)) != 0)
			i++;
		if (i < count)
			continue;
		if (count == SERVER_PORTS_MOST) {
			log_warn(0, "negotiation server: listens at the first %u addresses only",
			         SERVER_PORTS_MOST);
			break;
		}
		at[count++] = here;
	}
	return count;
}

enum ndx_status server_listen(struct ndx_negotiation_server *server)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
	                               .ai_socktype = SOCK_STREAM,
	                               .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct sockaddr_storage at[SERVER_PORTS_MOST];
	struct addrinfo *found = NULL;
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];
	enum ndx_status st;
	size_t count;
	int error;

	if (!link_address_split(server->attr.address, host, port))
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "ndx_negotiation_server_create: \"%.128s\" is not HOST:PORT or "
		            "[IPV6]:PORT",
		            server->attr.address);
	error = getaddrinfo(host, port, &hints, &found);
	if (error != 0)
		return fail(NDX_E_INVALID_ADDRESS, 0, "ndx_negotiation_server_create: %.128s: %s",
		            server->attr.address, gai_strerror(error));
	count = collect(found, at);
	freeaddrinfo(found);
	if (count == 0)
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "ndx_negotiation_server_create: %.128s has no address of IPv4 or IPv6",
		            server->attr.address);
	st = plaintext_check(server, at, count);
	return st == NDX_OK ? listen_at(server, at, count) : st;
}
