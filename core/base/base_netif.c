/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/netif.h>

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <ndx/spi/system.h>

#define AT_ONCE 16 /* reads in a row before the caller's other events get their turn */
#define ROOM 32768 /* the kernel gives no more of a list at once; an event may be longer */

/* ---- messages ---- */

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

/* The address of an interface is IFA_LOCAL, or IFA_ADDRESS where there is no IFA_LOCAL; beside an
 * IFA_LOCAL, IFA_ADDRESS is the peer's of a point-to-point link. */
static const struct rtattr *own_address(const struct nlmsghdr *message, size_t length)
{
	const struct ifaddrmsg *address = NLMSG_DATA(message);
	const struct rtattr *a = IFA_RTA(address);
	const struct rtattr *own = NULL;
	int left = (int)IFA_PAYLOAD(message); /* RTA_NEXT() may make it negative */

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (RTA_PAYLOAD(a) != length)
			continue;
		if (a->rta_type == IFA_LOCAL)
			return a;
		if (a->rta_type == IFA_ADDRESS)
			own = a;
	}
	return own;
}

static void copy_v4(struct sockaddr_storage *to, const struct nlmsghdr *message)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	const struct rtattr *own = own_address(message, sizeof(in.sin_addr));

	if (own == NULL)
		return;
	memcpy(&in.sin_addr, RTA_DATA(own), sizeof(in.sin_addr));
	memcpy(to, &in, sizeof(in));
}

static void copy_v6(struct sockaddr_storage *to, const struct nlmsghdr *message, unsigned index)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	const struct rtattr *own = own_address(message, sizeof(in6.sin6_addr));

	if (own == NULL)
		return;
	memcpy(&in6.sin6_addr, RTA_DATA(own), sizeof(in6.sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
		in6.sin6_scope_id = index;
	memcpy(to, &in6, sizeof(in6));
}

static void parse_address(const struct nlmsghdr *message, ndxp_netif_fn *fn, void *arg)
{
	const struct ifaddrmsg *address = NLMSG_DATA(message);
	struct ndxp_netif_report r = {.what = NDXP_NETIF_ADDRESS};

	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*address)))
		return;
	r.index = address->ifa_index;
	if (address->ifa_family == AF_INET)
		copy_v4(&r.address, message);
	else if (address->ifa_family == AF_INET6)
		copy_v6(&r.address, message, r.index);
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

/* One message. The number of its bytes, which may be more than fit into the room; 0: not from the
 * kernel; -1 with errno. */
static ssize_t receive(int fd, void *room)
{
	struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
	socklen_t from_length = sizeof(from);
	const ssize_t n =
		recvfrom(fd, room, ROOM, MSG_TRUNC, (struct sockaddr *)&from, &from_length);

	return n < 0 || from.nl_pid == 0 ? n : 0;
}

static int open_socket(int flags, unsigned groups)
{
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = groups};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);
	int err;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof(own)) != 0) {
		err = errno;
		ndxp_fd_close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

/* ---- events ---- */

int ndxp_netif_open(void)
{
	return open_socket(SOCK_NONBLOCK, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

bool ndxp_netif_read(int fd, ndxp_netif_fn *fn, void *arg, bool *lost)
{
	alignas(struct nlmsghdr) char room[ROOM];

	for (int i = 0; i < AT_ONCE; i++) {
		const ssize_t n = receive(fd, room);

		if (n > 0 && n <= ROOM)
			ndxp_netif_parse(room, (size_t)n, fn, arg);
		*lost = *lost || n > ROOM || (n < 0 && errno == ENOBUFS);
		/* ENOBUFS: messages were dropped, and the older ones follow */
		if (n < 0 && errno != ENOBUFS && errno != EINTR)
			return true;
	}
	return false;
}

/* ---- the present state ---- */

/* The error in a message that ends a list; 0: none. */
static int error_in(const struct nlmsghdr *m)
{
	int err = 0;

	/* An int is the first member of both, a struct nlmsgerr too. */
	if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(err)))
		memcpy(&err, NLMSG_DATA(m), sizeof(err));
	if (m->nlmsg_type == NLMSG_ERROR && err == 0)
		return EIO;
	return -err;
}

/* 1: more to read; 0: that was all; -1 with errno. */
static int read_part(int fd, ndxp_netif_fn *fn, void *arg)
{
	alignas(struct nlmsghdr) char room[ROOM];
	const ssize_t n = receive(fd, room);
	int left = (int)n;

	if (n < 0)
		return errno == EINTR ? 1 : -1;
	if (n > ROOM) {
		errno = EMSGSIZE;
		return -1;
	}
	ndxp_netif_parse(room, (size_t)n, fn, arg);
	for (const struct nlmsghdr *m = (void *)room; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		if (m->nlmsg_type != NLMSG_DONE && m->nlmsg_type != NLMSG_ERROR)
			continue;
		errno = error_in(m);
		return errno == 0 ? 0 : -1;
	}
	return 1;
}

static bool list(int fd, uint16_t type, ndxp_netif_fn *fn, void *arg)
{
	const struct {
		struct nlmsghdr header;
		struct rtgenmsg any;
	} request = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
	                        .nlmsg_type = type,
	                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	             .any = {.rtgen_family = AF_UNSPEC}};
	int more = 1;

	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		return false;
	while (more > 0)
		more = read_part(fd, fn, arg);
	return more == 0;
}

bool ndxp_netif_list(ndxp_netif_fn *fn, void *arg)
{
	const struct timeval wait = {.tv_sec = 1};
	const int fd = open_socket(0, 0);
	bool done;
	int err;

	if (fd < 0)
		return false;
	done = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0 &&
	       list(fd, RTM_GETLINK, fn, arg) && list(fd, RTM_GETADDR, fn, arg);
	err = errno;
	ndxp_fd_close(fd);
	errno = err;
	return done;
}
