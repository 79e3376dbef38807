/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/netif.h>

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>

#define AT_ONCE 16 /* reads in a row before the caller's other events get their turn */

/* The name in a message about a link; NULL: it has none. */
static const char *name_in(const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);
	const struct rtattr *a = IFLA_RTA(link);
	int left = (int)IFLA_PAYLOAD(message); /* RTA_NEXT() may make it negative */

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME && RTA_PAYLOAD(a) > 0 &&
		    memchr(RTA_DATA(a), '\0', RTA_PAYLOAD(a)) != NULL)
			return RTA_DATA(a);
	}
	return NULL;
}

static void parse_link(const struct nlmsghdr *message, ndxp_netif_fn *fn, void *arg)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);
	struct ndxp_netif_report r;

	/* Bridges report their ports by messages of family AF_BRIDGE: "deleted" is the port of the
	 * bridge, not the interface. */
	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*link)) || link->ifi_family != AF_UNSPEC)
		return;
	r = (struct ndxp_netif_report){
		.what = message->nlmsg_type == RTM_DELLINK ? NDXP_NETIF_REMOVED : NDXP_NETIF_STATE,
		.index = (unsigned)link->ifi_index,
		.name = name_in(message),
		.up = (link->ifi_flags & IFF_UP) && (link->ifi_flags & IFF_RUNNING)};
	fn(arg, &r);
}

static void parse_address(const struct nlmsghdr *message, ndxp_netif_fn *fn, void *arg)
{
	const struct ifaddrmsg *address = NLMSG_DATA(message);
	struct ndxp_netif_report r = {.what = NDXP_NETIF_ADDRESSES};

	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*address)))
		return;
	r.index = address->ifa_index;
	fn(arg, &r);
}

void ndxp_netif_parse(const void *messages, size_t length, ndxp_netif_fn *fn, void *arg)
{
	int left = (int)length; /* NLMSG_NEXT() may make it negative */

	for (const struct nlmsghdr *m = messages; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		switch (m->nlmsg_type) {
		case RTM_NEWLINK:
		case RTM_DELLINK:
			parse_link(m, fn, arg);
			break;
		case RTM_NEWADDR:
		case RTM_DELADDR:
			parse_address(m, fn, arg);
			break;
		default:
			break;
		}
	}
}

int ndxp_netif_open(void)
{
	const struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
	                                   .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
	                                                RTMGRP_IPV6_IFADDR};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int err;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&groups, sizeof(groups)) != 0) {
		err = errno;
		ndxp_fd_close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

bool ndxp_netif_read(int fd, ndxp_netif_fn *fn, void *arg, bool *lost)
{
	alignas(struct nlmsghdr) char room[8192]; /* the kernel sends no longer ones */

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
		socklen_t from_length = sizeof(from);
		const ssize_t n =
			recvfrom(fd, room, sizeof(room), 0, (struct sockaddr *)&from, &from_length);

		if (n > 0 && from.nl_pid == 0) /* from the kernel */
			ndxp_netif_parse(room, (size_t)n, fn, arg);
		*lost = *lost || (n < 0 && errno == ENOBUFS);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
	}
	return false;
}
