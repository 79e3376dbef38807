/* SPDX-License-Identifier: BSD-2-Clause */
#include "netif_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/spi/netif.h>

static bool own_network;

void netif_host_init(void)
{
	own_network = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
	if (!own_network)
		print_message("no network namespace can be made here: %s\n", strerror(errno));
}

void netif_host_begin(void)
{
	if (!own_network)
		skip();
	(void)netif_host_ip("link del va");
	(void)netif_host_ip("link del vc");
	netif_host_set_up("lo", true);
}

void netif_host_set_up(const char *name, bool up)
{
	struct ifreq r = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &r), 0);
	r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	(void)close(fd);
}

void netif_host_add_address(const char *alias, const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct ifreq r = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", alias);
	memcpy(&r.ifr_addr, &in, sizeof(in));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	(void)close(fd);
}

bool netif_host_ip(const char *arguments)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "ip %s 2>/dev/null", arguments);
	return system(command) == 0; // NOLINT(cert-env33-c)
}

/* ---- what the kernel does later ---- */

static bool has_carrier(const char *name)
{
	struct ifreq r = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &r), 0);
	(void)close(fd);
	return (r.ifr_flags & IFF_RUNNING) != 0;
}

struct search {
	unsigned index;
	bool found;
};

static void look_for_link_local(void *arg, const struct ndxp_netif_report *r)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&r->address;
	struct search *search = arg;

	if (r->what == NDXP_NETIF_ADDRESS && r->index == search->index &&
	    in6->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		search->found = true;
}

static bool has_link_local(const char *name)
{
	struct search search = {.index = if_nametoindex(name)};

	assert_true(ndxp_netif_list(look_for_link_local, &search));
	return search.found;
}

static void ignore(void *arg, const struct ndxp_netif_report *r)
{
	(void)arg;
	(void)r;
}

/* The kernel reports each change, so the test looks again with each report. */
static void await(bool (*has)(const char *name), const char *name)
{
	struct pollfd p = {.fd = ndxp_netif_open(), .events = POLLIN};
	bool lost = false;

	assert_true(p.fd >= 0);
	while (!has(name)) {
		assert_int_equal(poll(&p, 1, NETIF_WAIT_MS), 1);
		(void)ndxp_netif_read(p.fd, ignore, NULL, &lost);
	}
	(void)close(p.fd);
}

void netif_host_await_carrier(const char *name)
{
	await(has_carrier, name);
}

void netif_host_await_link_local(const char *name)
{
	await(has_link_local, name);
}
