/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/tcp_diag.h>

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include <ndx/spi/sockaddr.h>

#define ANSWER 2048u /* bytes; an answer of the kernel has about 400 */
#define STALE 8      /* answers to earlier questions that may still be queued */

/* The values of the kernel's enum of TCP states (net/tcp_states.h) that the questions name. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_LISTEN = 10,
};

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

int ndxp_diag_open(void)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	/* Connect the socket, so that messages from processes other than the kernel do not
	 * arrive. */
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) != 0) {
		ndxp_fd_close(fd);
		return -1;
	}
	return fd;
}

/* An IPv4-mapped IPv6 address becomes the IPv4 address; others stay. */
static struct sockaddr_storage plain(const struct sockaddr_storage *address)
{
	struct sockaddr_storage out = *address;
	struct sockaddr_in6 v6;
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	memcpy(&v6, address, sizeof(v6));
	if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return out;
	v4.sin_port = v6.sin6_port;
	memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	memset(&out, 0, sizeof(out));
	memcpy(&out, &v4, sizeof(v4));
	return out;
}

static void put_address(const struct sockaddr_storage *address, uint32_t host[4], uint16_t *port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->ss_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		memcpy(host, &v4.sin_addr, sizeof(v4.sin_addr));
		*port = v4.sin_port;
	} else {
		memcpy(&v6, address, sizeof(v6));
		memcpy(host, &v6.sin6_addr, sizeof(v6.sin6_addr));
		*port = v6.sin6_port;
	}
}

static uint32_t scope_of(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;

	memcpy(&v6, address, sizeof(v6));
	return address->ss_family == AF_INET6 ? v6.sin6_scope_id : 0;
}

static void make_question(struct question *q, uint32_t number, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far)
{
	struct inet_diag_sockid *id = &q->body.id;

	memset(q, 0, sizeof(*q));
	q->header = (struct nlmsghdr){.nlmsg_len = sizeof(*q),
	                              .nlmsg_type = SOCK_DIAG_BY_FAMILY,
	                              .nlmsg_flags = NLM_F_REQUEST,
	                              .nlmsg_seq = number};
	q->body.sdiag_family = (uint8_t)near->ss_family;
	q->body.sdiag_protocol = IPPROTO_TCP;
	q->body.idiag_ext = 1u << (INET_DIAG_INFO - 1);
	q->body.idiag_states = UINT32_MAX;
	put_address(near, id->idiag_src, &id->idiag_sport);
	put_address(far, id->idiag_dst, &id->idiag_dport);
	id->idiag_if = scope_of(near);
	id->idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
}

/* The byte counts among an answer's attributes; zeros if there are none. */
static struct ndxp_traffic count_bytes(const struct nlmsghdr *header)
{
	const size_t from = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct inet_diag_msg)));
	const char *at = (const char *)header + from;
	size_t left = header->nlmsg_len > from ? header->nlmsg_len - from : 0;
	const struct ndxp_traffic none = {0};
	struct rtattr attr;
	struct tcp_info info;

	while (left >= sizeof(attr)) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || attr.rta_len > left)
			return none;
		if (attr.rta_type == INET_DIAG_INFO &&
		    attr.rta_len - RTA_LENGTH(0) >= offsetof(struct tcp_info, tcpi_segs_out)) {
			memset(&info, 0, sizeof(info));
			memcpy(&info, at + RTA_LENGTH(0),
			       attr.rta_len - RTA_LENGTH(0) < sizeof(info)
			               ? attr.rta_len - RTA_LENGTH(0)
			               : sizeof(info));
			return (struct ndxp_traffic){.in = info.tcpi_bytes_received,
			                             .out = info.tcpi_bytes_acked};
		}
		if (RTA_ALIGN(attr.rta_len) >= left)
			return none;
		at += RTA_ALIGN(attr.rta_len);
		left -= RTA_ALIGN(attr.rta_len);
	}
	return none;
}

/* Read the answer with this number into a buffer of ANSWER bytes. */
static bool read_answer(int fd, uint32_t number, struct nlmsghdr *header)
{
	for (int i = 0; i < STALE; i++) {
		/* The kernel answers within send(), so the answer is queued already. */
		const ssize_t n = recv(fd, header, ANSWER, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)sizeof(*header) || header->nlmsg_len > (size_t)n)
			return false;
		if (header->nlmsg_seq == number)
			return header->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
			       header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg));
	}
	return false;
}

bool ndxp_diag_tcp(int fd, const struct sockaddr_storage *near, const struct sockaddr_storage *far,
                   struct ndxp_diag_end *out)
{
	const struct sockaddr_storage own = plain(near);
	const struct sockaddr_storage nobody = {.ss_family = own.ss_family};
	const struct sockaddr_storage peer = far != NULL ? plain(far) : nobody;
	const uint32_t number = (uint32_t)ndxp_now_ns();
	_Alignas(struct nlmsghdr) char answer[ANSWER];
	struct nlmsghdr *header = (struct nlmsghdr *)(void *)answer;
	struct inet_diag_msg found;
	struct question q;

	if (fd < 0 || ndxp_sockaddr_len(&own) == 0 || own.ss_family != peer.ss_family)
		return false;
	make_question(&q, number, &own, &peer);
	if (send(fd, &q, sizeof(q), 0) != (ssize_t)sizeof(q) || !read_answer(fd, number, header))
		return false;
	memcpy(&found, NLMSG_DATA(header), sizeof(found));
	*out = (struct ndxp_diag_end){
		.established = found.idiag_state == STATE_ESTABLISHED,
		.listening = found.idiag_state == STATE_LISTEN,
		/* Older kernels report user 0 for a socket that its process has closed. */
		.owned = found.idiag_inode != 0,
		.uid = found.idiag_uid,
		.bytes = count_bytes(header),
	};
	return true;
}
