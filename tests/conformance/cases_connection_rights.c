/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: what the system does not let the process do. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "fixture.h"

enum { SMALL_PORT = 79 };

/* Ports from this one on are for every process; 0 if the system does not say. */
static unsigned long first_free_port(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	char text[16] = "";

	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	(void)fclose(file);
	return strtoul(text, NULL, 10);
}

/* Of this thread, and of the threads that it starts. */
static bool give_up_small_ports(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets) != 0)
		return false;
	sets[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	return syscall(SYS_capset, &head, sets) == 0;
}

static void is_denied(struct check *c, enum ndx_status status, const char *what)
{
	char port[16];

	check_status(c, status, NDX_E_ACCESS_DENIED, what);
	(void)snprintf(port, sizeof(port), ":%d: ", SMALL_PORT);
	check_that(c,
	           strstr(ndx_last_error(), port) != NULL &&
	                   strstr(ndx_last_error(), "CAP_NET_BIND_SERVICE") != NULL,
	           "%s: the text names no port or no right: \"%s\"", what, ndx_last_error());
}

static void listener_is_denied(struct check *c, struct ndx_adapter *adapter,
                               const struct sockaddr *small, socklen_t length)
{
	struct ndx_listener *listener = NULL;
	enum ndx_status status;

	check_status(c, ndx_listener_create(adapter, &listener), NDX_OK, "listener_create");
	status = ndx_listener_bind(listener, small, length);
	if (status == NDX_OK)
		status = ndx_listener_listen(listener, 0);
	is_denied(c, status, "listen on a small port");
	ndx_listener_close(listener);
}

/* It is as before, and any other port is still to be had. */
static void connector_is_denied(struct check *c, struct ndx_adapter *adapter,
                                const struct sockaddr *small, const struct sockaddr *any,
                                socklen_t length)
{
	struct ndx_connector *conn = NULL;

	check_status(c, ndx_connector_create(adapter, NULL, &conn), NDX_OK, "connector_create");
	is_denied(c, ndx_connector_bind(conn, small, length), "bind to a small port");
	check_status(c, ndx_connector_bind(conn, any, length), NDX_OK, "bind to any port");
	ndx_connector_close(conn);
}

/* With an adapter of its own, because the kernel compares the rights of a call with those of
 * the open. */
static void *without_the_right(void *arg)
{
	struct check *c = arg;
	const struct place *place = &c->world->places[0];
	const struct sockaddr_storage *any = place_address(place, AF_UNSPEC);
	struct sockaddr_storage small = *any;
	struct ndx_adapter *adapter = NULL;

	address_set_port(&small, SMALL_PORT);

	if (check_that(c, give_up_small_ports(), "the thread cannot give up a right") &&
	    check_status(c, ndx_adapter_open(place->uri, &adapter), NDX_OK, "open")) {
		listener_is_denied(c, adapter, address_of_const(&small), address_length(&small));
		connector_is_denied(c, adapter, address_of_const(&small), address_of_const(any),
		                    address_length(&small));
	}
	ndx_adapter_close(adapter);
	return NULL;
}

/* In a thread that ends with the case: the process keeps what rights it has. */
void case_connection_port_without_the_right_to_it(struct check *c)
{
	pthread_t thread;

	if (first_free_port() <= SMALL_PORT)
		check_skip(c, "every port is free for every process here");
	else if (check_that(c, pthread_create(&thread, NULL, without_the_right, c) == 0,
	                    "no thread"))
		(void)pthread_join(thread, NULL);
}
