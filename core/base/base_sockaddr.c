/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses: what all rooms need to know about them. */
#include <ndx/spi/sockaddr.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>

static socklen_t family_len(sa_family_t family)
{
	if (family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

/* Copy, because a sockaddr_storage and a sockaddr_in must not alias. */
static struct sockaddr_in as_v4(const struct sockaddr_storage *address)
{
	struct sockaddr_in v4;

	memcpy(&v4, address, sizeof(v4));
	return v4;
}

static struct sockaddr_in6 as_v6(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;

	memcpy(&v6, address, sizeof(v6));
	return v6;
}

/* The IPv4 address in network order, also of an IPv4-mapped IPv6 address. */
static bool get_v4(const struct sockaddr_storage *address, in_addr_t *out)
{
	struct sockaddr_in6 v6;

	if (address->ss_family == AF_INET) {
		*out = as_v4(address).sin_addr.s_addr;
		return true;
	}
	if (address->ss_family != AF_INET6)
		return false;
	v6 = as_v6(address);
	if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return false;
	memcpy(out, &v6.sin6_addr.s6_addr[12], sizeof(*out));
	return true;
}

bool ndxp_sockaddr_valid(const struct sockaddr *address, socklen_t len)
{
	socklen_t need;

	if (address == NULL || len < sizeof(*address))
		return false;
	need = family_len(address->sa_family);
	return need != 0 && len >= need;
}

socklen_t ndxp_sockaddr_len(const struct sockaddr_storage *address)
{
	return family_len(address->ss_family);
}

uint16_t ndxp_sockaddr_port(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohs(as_v4(address).sin_port);
	if (address->ss_family == AF_INET6)
		return ntohs(as_v6(address).sin6_port);
	return 0;
}

void ndxp_sockaddr_set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET) {
		struct sockaddr_in v4 = as_v4(address);

		v4.sin_port = htons(port);
		memcpy(address, &v4, sizeof(v4));
	} else if (address->ss_family == AF_INET6) {
		struct sockaddr_in6 v6 = as_v6(address);

		v6.sin6_port = htons(port);
		memcpy(address, &v6, sizeof(v6));
	}
}

bool ndxp_sockaddr_is_any(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;
	in_addr_t v4;

	if (get_v4(address, &v4))
		return v4 == htonl(INADDR_ANY);
	if (address->ss_family != AF_INET6)
		return false;
	v6 = as_v6(address);
	return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

bool ndxp_sockaddr_is_loopback(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;
	in_addr_t v4;

	if (get_v4(address, &v4))
		return ntohl(v4) >> 24 == IN_LOOPBACKNET;
	if (address->ss_family != AF_INET6)
		return false;
	v6 = as_v6(address);
	return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool ndxp_sockaddr_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_in6 a6;
	struct sockaddr_in6 b6;
	in_addr_t a4;
	in_addr_t b4;

	if (get_v4(a, &a4))
		return get_v4(b, &b4) && a4 == b4;
	if (a->ss_family != AF_INET6 || b->ss_family != AF_INET6)
		return false;
	a6 = as_v6(a);
	b6 = as_v6(b);
	return IN6_ARE_ADDR_EQUAL(&a6.sin6_addr, &b6.sin6_addr);
}

const struct sockaddr_storage *ndxp_sockaddr_nearest(const struct sockaddr_storage *own,
                                                     size_t count,
                                                     const struct sockaddr_storage *near)
{
	for (size_t i = 0; i < count; i++)
		if (ndxp_sockaddr_same_host(&own[i], near))
			return &own[i];
	for (size_t i = 0; i < count; i++)
		if (own[i].ss_family == near->ss_family)
			return &own[i];
	return own;
}

static void v6_text(const struct sockaddr_storage *address, char text[NDXP_SOCKADDR_TEXT])
{
	const struct sockaddr_in6 v6 = as_v6(address);
	const unsigned port = ntohs(v6.sin6_port);
	char host[INET6_ADDRSTRLEN] = "";
	char scope[IF_NAMESIZE] = "";

	(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
	if (v6.sin6_scope_id == 0) {
		(void)snprintf(text, NDXP_SOCKADDR_TEXT, "[%s]:%u", host, port);
		return;
	}
	if (if_indextoname(v6.sin6_scope_id, scope) == NULL)
		(void)snprintf(scope, sizeof(scope), "%u", (unsigned)v6.sin6_scope_id);
	(void)snprintf(text, NDXP_SOCKADDR_TEXT, "[%s%%%s]:%u", host, scope, port);
}

const char *ndxp_sockaddr_text(const struct sockaddr_storage *address,
                               char text[NDXP_SOCKADDR_TEXT])
{
	struct sockaddr_in v4;
	char host[INET_ADDRSTRLEN] = "";

	if (address->ss_family == AF_INET) {
		v4 = as_v4(address);
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		(void)snprintf(text, NDXP_SOCKADDR_TEXT, "%s:%u", host,
		               (unsigned)ntohs(v4.sin_port));
	} else if (address->ss_family == AF_INET6) {
		v6_text(address, text);
	} else {
		(void)snprintf(text, NDXP_SOCKADDR_TEXT, "-");
	}
	return text;
}

void ndxp_sockaddr_copy(struct sockaddr_storage *to, const struct sockaddr *address, socklen_t len)
{
	socklen_t have = family_len(address->sa_family);

	memset(to, 0, sizeof(*to));
	memcpy(to, address, have < len ? have : len);
}

enum ndx_status ndxp_sockaddr_copy_out(const char *call, const struct sockaddr_storage *address,
                                       struct sockaddr *to, socklen_t *length)
{
	const socklen_t room = *length;

	*length = ndxp_sockaddr_len(address);
	if (to == NULL || room < *length)
		return ndxp_fail_room(call, "bytes of the address", *length, to ? room : 0);
	memcpy(to, address, *length);
	return NDX_OK;
}
