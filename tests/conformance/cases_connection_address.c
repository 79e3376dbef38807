/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: addresses and ports; and clients that do not speak the protocol. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "traffic.h"

static struct sockaddr_storage ipv4(uint32_t host, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_storage address;

	v4.sin_addr.s_addr = htonl(host);
	memset(&address, 0, sizeof(address));
	memcpy(&address, &v4, sizeof(v4));
	return address;
}

static enum ndx_status bind_connector(struct ndx_connector *conn,
                                      const struct sockaddr_storage *address)
{
	return ndx_connector_bind(conn, address_of_const(address), address_length(address));
}

static enum ndx_status bind_listener(struct ndx_listener *listener,
                                     const struct sockaddr_storage *address)
{
	return ndx_listener_bind(listener, address_of_const(address), address_length(address));
}

void case_connection_bind_chooses_a_port(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage bound;
	struct sockaddr_storage seen;
	socklen_t room = sizeof(bound);

	if (!p)
		return;
	check_that(c, address_port(&p->address) != 0, "the listener has no port");
	check_status(c, bind_connector(p->a.conn, place_address(p->a.place, AF_UNSPEC)), NDX_OK,
	             "bind to port 0");
	memset(&bound, 0, sizeof(bound));
	check_status(c, ndx_connector_get_local_address(p->a.conn, address_of(&bound), &room),
	             NDX_OK, "get_local_address after bind");
	check_that(c, address_port(&bound) != 0, "bind gave no port");
	if (!pair_connect(p))
		return;
	room = sizeof(seen);
	memset(&seen, 0, sizeof(seen));
	check_status(c, ndx_connector_get_peer_address(p->b.conn, address_of(&seen), &room), NDX_OK,
	             "get_peer_address");
	check_that(c, address_equal(&bound, &seen), "B sees port %u, A is bound to %u",
	           address_port(&seen), address_port(&bound));
}

void case_connection_second_bind_is_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	const struct sockaddr_storage *address;

	if (!p)
		return;
	address = place_address(p->b.place, AF_UNSPEC);
	check_status(c, bind_connector(p->b.conn, address), NDX_OK, "bind");
	check_status(c, bind_connector(p->b.conn, address), NDX_E_ADDRESS_ALREADY_ASSOCIATED,
	             "second bind of a connector");
	check_status(c, bind_listener(p->listener, address), NDX_E_ADDRESS_ALREADY_ASSOCIATED,
	             "second bind of a listener");
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_E_INVALID_DEVICE_STATE, "get_connection_request into a bound connector");
}

static void bind_again(struct check *c, const struct pair *p, const char *when)
{
	const struct sockaddr_storage *address = place_address(p->a.place, AF_UNSPEC);

	check_status(c, bind_connector(p->a.conn, address), NDX_E_ADDRESS_ALREADY_ASSOCIATED, when);
}

void case_connection_bound_connector_stays_bound(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, bind_connector(p->a.conn, place_address(p->a.place, AF_UNSPEC)), NDX_OK,
	             "bind");
	if (!pair_ask(p))
		return;
	bind_again(c, p, "second bind of a connector that is connecting");
	if (!pair_answer(p))
		return;
	bind_again(c, p, "second bind of a connector that was answered");
	if (!pair_complete(p))
		return;
	bind_again(c, p, "second bind of a connector that is connected");
	if (!pair_disconnect(p))
		return;
	bind_again(c, p, "second bind of a connector that was disconnected");
	/* a side that took a request has an address that was not bound */
	check_status(c, bind_connector(p->b.conn, place_address(p->b.place, AF_UNSPEC)),
	             NDX_E_INVALID_DEVICE_STATE, "bind of a connector that took a request");
}

void case_connection_second_connect_of_a_bound_connector_is_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, bind_connector(p->a.conn, place_address(p->a.place, AF_UNSPEC)), NDX_OK,
	             "bind");
	if (!pair_ask(p))
		return;
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_E_CONNECTION_ACTIVE,
	             "second connect while the first is not answered");
	if (!pair_answer(p))
		return;
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_E_CONNECTION_ACTIVE,
	             "second connect while the first is answered");
	side_close_connector(&p->a);
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
}

void case_connection_port_in_use(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_listener *listener = NULL;
	enum ndx_status status;

	if (!p)
		return;
	check_status(c, ndx_listener_create(p->b.adapter, &listener), NDX_OK, "listener_create");
	status = bind_listener(listener, &p->address);
	if (status == NDX_OK)
		status = ndx_listener_listen(listener, 0);
	check_status(c, status, NDX_E_SHARING_VIOLATION, "listen on a port in use");
	ndx_listener_close(listener);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 16));
}

void case_connection_port_is_free_again_after_close(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	for (unsigned i = 0; i < 3 && pair_connect(p); i++) {
		message_passes(&p->a, &p->b, 16);
		pair_disconnect(p);
		ndx_listener_close(p->listener);
		p->listener = listener_open(c, p->b.adapter, &p->address, 0, &p->address);
		if (!p->listener)
			return;
		side_new_connector(&p->a);
		side_new_connector(&p->b);
		side_new_qp(&p->a);
		side_new_qp(&p->b);
	}
}

void case_connection_foreign_address_is_refused(struct check *c)
{
	struct sockaddr_storage foreign = ipv4(0xc0000201, 0); /* 192.0.2.1, documentation only */
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_listener *listener = NULL;

	if (!p)
		return;
	check_status(c, ndx_listener_create(p->b.adapter, &listener), NDX_OK, "listener_create");
	check_status(c, bind_listener(listener, &foreign), NDX_E_INVALID_ADDRESS,
	             "listener_bind to a foreign address");
	check_status(c, bind_connector(p->a.conn, &foreign), NDX_E_INVALID_ADDRESS,
	             "connector_bind to a foreign address");
	foreign.ss_family = AF_UNIX;
	check_status(c, bind_listener(listener, &foreign), NDX_E_INVALID_PARAMETER,
	             "listener_bind to a local socket");
	check_status(c, bind_connector(p->a.conn, &foreign), NDX_E_INVALID_PARAMETER,
	             "connector_bind to a local socket");
	check_status(c, ndx_listener_bind(listener, NULL, 0), NDX_E_INVALID_PARAMETER,
	             "listener_bind to nothing");
	check_status(c, ndx_connector_bind(p->a.conn, NULL, 0), NDX_E_INVALID_PARAMETER,
	             "connector_bind to nothing");
	ndx_listener_close(listener);
	/* a failed bind leaves the connector as it was */
	check_status(c, bind_connector(p->a.conn, place_address(p->a.place, AF_UNSPEC)), NDX_OK,
	             "bind after failures");
	pair_connect(p);
}

void case_connection_to_the_unspecified_address(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage any = ipv4(INADDR_ANY, 4711);
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(4711)};

	if (!p)
		return;
	check_status(c, side_connect(&p->a, &any, NULL, 0), NDX_E_BAD_NETWORK_NAME,
	             "connect to 0.0.0.0");
	memcpy(&any, &any6, sizeof(any6));
	check_status(c, side_connect(&p->a, &any, NULL, 0), NDX_E_BAD_NETWORK_NAME,
	             "connect to ::");
	pair_connect(p);
}

void case_connection_listening_on_the_unspecified_address(struct check *c)
{
	struct sockaddr_storage any = ipv4(INADDR_ANY, 0);
	const struct sockaddr_storage *host;
	struct sockaddr_storage listening;
	struct pair *p;

	host = place_address(&c->world->places[1], AF_INET);
	if (!host) {
		check_skip(c, "the adapter has no IPv4 address");
		return;
	}
	p = pair_open(c, NULL, NULL);
	if (!p)
		return;
	ndx_listener_close(p->listener);
	p->listener = listener_open(c, p->b.adapter, &any, 0, &listening);
	if (!p->listener)
		return;
	p->address = *host;
	address_set_port(&p->address, address_port(&listening));
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 16));
}

void case_connection_bound_connector_may_try_again(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage bound;
	struct sockaddr_storage seen;
	socklen_t room = sizeof(bound);

	if (!p)
		return;
	memset(&bound, 0, sizeof(bound));
	memset(&seen, 0, sizeof(seen));
	check_status(c, bind_connector(p->a.conn, place_address(p->a.place, AF_UNSPEC)), NDX_OK,
	             "bind");
	check_status(c, ndx_connector_get_local_address(p->a.conn, address_of(&bound), &room),
	             NDX_OK, "get_local_address");
	for (unsigned i = 0; i < 3; i++) {
		pair_ask(p);
		check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
		check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
		side_new_connector(&p->b);
	}
	if (!pair_connect(p))
		return;
	room = sizeof(seen);
	check_status(c, ndx_connector_get_peer_address(p->b.conn, address_of(&seen), &room), NDX_OK,
	             "get_peer_address");
	check_that(c, address_equal(&bound, &seen), "the port has changed from %u to %u",
	           address_port(&bound), address_port(&seen));
}

void case_connection_to_an_unreachable_address_fails(struct check *c)
{
	struct sockaddr_storage nowhere = ipv4(0xc0000201, 4711); /* 192.0.2.1 */
	struct side_attr attr;
	enum ndx_status status;
	struct pair *p;

	side_attr_init(&attr);
	attr.connect_ms = 300;
	p = pair_open(c, &attr, NULL);
	if (!p)
		return;
	status = check_result_of(c, side_connect(&p->a, &nowhere, NULL, 0), &p->a.ov);
	check_that(c,
	           status == NDX_E_INVALID_ADDRESS || status == NDX_E_NETWORK_UNREACHABLE ||
	                   status == NDX_E_HOST_UNREACHABLE || status == NDX_E_IO_TIMEOUT ||
	                   status == NDX_E_CONNECTION_REFUSED,
	           "connect to an address that nobody has: %s", ndx_status_name(status));
	if (status == NDX_E_INVALID_ADDRESS) /* refused for good, not for now */
		side_new_connector(&p->a);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 16));
}

/* ---- other programs at the port ---- */

/* A TCP socket that reached the listener, or -1. */
static int dial(const struct pair *p)
{
	struct pollfd out = {.events = POLLOUT};
	int error = 0;
	socklen_t size = sizeof(error);

	out.fd = socket(p->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (out.fd < 0)
		return -1;
	(void)connect(out.fd, address_of_const(&p->address), address_length(&p->address));
	if (poll(&out, 1, 1000) == 1 &&
	    getsockopt(out.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
		return out.fd;
	(void)close(out.fd);
	return -1;
}

static bool reachable_by_tcp(struct check *c, const struct pair *p)
{
	int fd = dial(p);

	if (fd < 0) {
		check_skip(c, "the listener cannot be reached by TCP");
		return false;
	}
	(void)close(fd);
	return true;
}

/* An older connection works on, and a new one can be made. */
static void others_are_unaffected(struct pair *old, struct pair *fresh)
{
	message_passes(&old->a, &old->b, 512);
	message_passes(&old->b, &old->a, 512);
	(void)(pair_connect(fresh) && message_passes(&fresh->a, &fresh->b, 64) &&
	       pair_disconnect(fresh));
}

void case_connection_port_scans_do_no_harm(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct pair *fresh = p ? pair_open_on(p, NULL, NULL) : NULL;

	if (!fresh || !reachable_by_tcp(c, p))
		return;
	for (unsigned i = 0; i < 20; i++) {
		int fd = dial(p);

		if (fd >= 0)
			(void)close(fd);
	}
	others_are_unaffected(p, fresh);
}

void case_connection_garbage_does_no_harm(struct check *c)
{
	static const size_t lengths[] = {1, 4, 16, 63, 64, 256, 300, 4096};
	struct pair *p = pair_up(c, NULL);
	struct pair *fresh = p ? pair_open_on(p, NULL, NULL) : NULL;
	uint8_t garbage[4096];

	if (!fresh || !reachable_by_tcp(c, p))
		return;
	for (size_t i = 0; i < 3 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		int fd = dial(p);

		pattern_fill(garbage, sizeof(garbage), check_random(c));
		if (fd < 0)
			continue;
		(void)!write(fd, garbage, lengths[i % (sizeof(lengths) / sizeof(lengths[0]))]);
		(void)close(fd);
	}
	others_are_unaffected(p, fresh);
}

void case_connection_half_open_clients_do_no_harm(struct check *c)
{
	enum { PENDING = 8 };
	struct pair *p = pair_up(c, NULL);
	struct pair *fresh = p ? pair_open_on(p, NULL, NULL) : NULL;
	int fds[PENDING];

	if (!fresh || !reachable_by_tcp(c, p))
		return;
	for (size_t i = 0; i < PENDING; i++) {
		fds[i] = dial(p);
		if (fds[i] >= 0 && i % 2)
			(void)!write(fds[i], "x", 1);
	}
	others_are_unaffected(p, fresh);
	for (size_t i = 0; i < PENDING; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	message_passes(&p->a, &p->b, 64);
}

void case_connection_pending_connections_end_with_their_listener(struct check *c)
{
	enum { PENDING = 8, PATIENCE_MS = 10000 };
	struct pair *p = pair_open(c, NULL, NULL);
	int fds[PENDING];

	if (!p || !reachable_by_tcp(c, p))
		return;
	for (size_t i = 0; i < PENDING; i++)
		fds[i] = dial(p);
	/* A client that comes behind them is served: they are not only in the kernel's queue. */
	pair_connect(p);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	for (size_t i = 0; i < PENDING; i++) {
		struct pollfd in = {.fd = fds[i], .events = POLLIN};
		char byte;

		if (fds[i] < 0)
			continue;
		check_that(c, poll(&in, 1, PATIENCE_MS) == 1 && read(fds[i], &byte, 1) <= 0,
		           "a connection that says nothing outlives the listener");
		(void)close(fds[i]);
	}
}

void case_connection_to_a_listener_of_another_protocol(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	struct pollfd in = {.events = POLLIN};
	int fd;

	if (!p || !reachable_by_tcp(c, p))
		return;
	address = p->address;
	address_set_port(&address, 0);
	in.fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check_that(c,
	           in.fd >= 0 && bind(in.fd, address_of(&address), size) == 0 &&
	                   listen(in.fd, 4) == 0 &&
	                   getsockname(in.fd, address_of(&address), &size) == 0,
	           "cannot listen by TCP");
	check_status(c, side_connect(&p->a, &address, NULL, 0), NDX_PENDING, "connect");
	fd = !check_over(c) && poll(&in, 1, WAIT_MS) == 1 ? accept(in.fd, NULL, NULL) : -1;
	check_that(c, fd >= 0, "connect did not reach the TCP listener");
	if (fd >= 0) {
		(void)!write(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", 47);
		(void)close(fd);
	}
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_ABORTED, "connect to another protocol");
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_E_INVALID_DEVICE_STATE,
	             "connect with a connector that failed for good");
	side_new_connector(&p->a);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 16));
	(void)close(in.fd);
}

/* A thread that asks a connector for its address again and again, as one that watches a program
 * does. */
struct asker {
	struct check *c;
	struct ndx_connector *conn;
	struct sockaddr_storage host; /* AF_UNSPEC: the connector did not know it yet */
	uint32_t asked;               /* has it begun? atomic, like: */
	uint32_t known;               /* has it got an address? */
	uint32_t stop;
};

/* A connect to a listener of the other stack, verbs or ofi:verbs, is tried a second time: in
 * between the address is not known, and then the port is another one. */
static bool ask_once(struct asker *asker)
{
	struct sockaddr_storage now;
	socklen_t room = sizeof(now);
	enum ndx_status st;
	uint16_t port;

	memset(&now, 0, sizeof(now));
	st = ndx_connector_get_local_address(asker->conn, address_of(&now), &room);
	if (st == NDX_E_CONNECTION_INVALID)
		return true;
	if (!check_status(asker->c, st, NDX_OK, "get_local_address"))
		return false;
	port = address_port(&now);
	address_set_port(&now, 0);
	if (asker->host.ss_family == AF_UNSPEC)
		asker->host = now;
	__atomic_store_n(&asker->known, 1, __ATOMIC_RELEASE);
	return check_that(asker->c, port != 0, "the local address has no port") &&
	       check_that(asker->c, address_equal(&now, &asker->host),
	                  "the local address has changed");
}

static void *ask_until_stopped(void *arg)
{
	struct asker *asker = arg;

	while (__atomic_load_n(&asker->stop, __ATOMIC_ACQUIRE) == 0 && ask_once(asker))
		__atomic_store_n(&asker->asked, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void until_set(struct check *c, const uint32_t *flag)
{
	while (!check_over(c) && __atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0)
		(void)sched_yield();
}

#define ASKED_ROUNDS 16

/* The control thread learns the address while another thread asks for it. */
void case_connection_address_is_whole_whenever_it_is_asked_for(struct check *c)
{
	for (int i = 0; i < ASKED_ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_open(c, NULL, NULL);
		struct asker asker = {.c = c};
		pthread_t thread;

		if (!p)
			return;
		asker.conn = p->a.conn;
		if (!check_that(c, pthread_create(&thread, NULL, ask_until_stopped, &asker) == 0,
		                "no thread"))
			return;
		until_set(c, &asker.asked);
		if (pair_connect(p)) {
			until_set(c, &asker.known);
			pair_disconnect(p);
		}
		__atomic_store_n(&asker.stop, 1, __ATOMIC_RELEASE);
		(void)pthread_join(thread, NULL);
	}
}
