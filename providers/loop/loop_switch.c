/* SPDX-License-Identifier: BSD-2-Clause */
/* The switch of the process: which local addresses are in use, and for which object. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "loop.h"

#define FIRST_EPHEMERAL 49152u
#define LAST_EPHEMERAL 65535u

void loop_address(sa_family_t family, struct sockaddr_storage *out)
{
	const struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	memset(out, 0, sizeof(*out));
	if (family == AF_INET)
		memcpy(out, &in, sizeof(in));
	else
		memcpy(out, &in6, sizeof(in6));
}

bool loop_address_is_ours(const struct sockaddr_storage *address)
{
	struct sockaddr_storage ours;

	loop_address(address->ss_family, &ours);
	return ours.ss_family == address->ss_family && ndxp_sockaddr_same_host(&ours, address);
}

/* The unspecified address stands for every address of its family. */
static bool overlap(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family || ndxp_sockaddr_port(a) != ndxp_sockaddr_port(b))
		return false;
	return ndxp_sockaddr_same_host(a, b) || ndxp_sockaddr_is_any(a) || ndxp_sockaddr_is_any(b);
}

static bool is_free(struct loop_switch *sw, const struct sockaddr_storage *address)
{
	struct ndxp_table_node *n = ndxp_table_first(&sw->ports, ndxp_sockaddr_port(address));

	while (n != NULL && !overlap(&container_of(n, struct loop_port, node)->address, address))
		n = ndxp_table_next(n);
	return n == NULL;
}

static bool find_ephemeral(struct loop_switch *sw, struct sockaddr_storage *address)
{
	uint16_t candidate = sw->last_port;

	for (uint32_t i = FIRST_EPHEMERAL; i <= LAST_EPHEMERAL; i++) {
		candidate = candidate >= FIRST_EPHEMERAL && candidate < LAST_EPHEMERAL
		                    ? (uint16_t)(candidate + 1)
		                    : FIRST_EPHEMERAL;
		ndxp_sockaddr_set_port(address, candidate);
		if (is_free(sw, address)) {
			sw->last_port = candidate;
			return true;
		}
	}
	return false;
}

enum ndx_status loop_switch_bind(struct loop_switch *sw, struct loop_port *port,
                                 const struct sockaddr_storage *address)
{
	struct sockaddr_storage wanted = *address;

	if (ndxp_sockaddr_port(&wanted) == 0) {
		if (!find_ephemeral(sw, &wanted))
			return NDX_E_TOO_MANY_ADDRESSES;
	} else if (!is_free(sw, &wanted)) {
		return NDX_E_SHARING_VIOLATION;
	}
	port->address = wanted;
	ndxp_table_add(&sw->ports, &port->node, ndxp_sockaddr_port(&wanted));
	return NDX_OK;
}

void loop_switch_unbind(struct loop_port *port)
{
	ndxp_table_remove(&port->node);
	port->address.ss_family = AF_UNSPEC;
}

struct loop_listener *loop_switch_find(struct loop_switch *sw,
                                       const struct sockaddr_storage *address)
{
	struct ndxp_table_node *n = ndxp_table_first(&sw->ports, ndxp_sockaddr_port(address));

	for (; n != NULL; n = ndxp_table_next(n)) {
		const struct loop_port *p = container_of(n, struct loop_port, node);

		if (p->listener != NULL && p->listener->listening && overlap(&p->address, address))
			return p->listener;
	}
	return NULL;
}

enum ndx_status loop_switch_claim(struct loop_switch *sw, struct loop_port *port,
                                  const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_storage wanted;
	char text[NDXP_SOCKADDR_TEXT];
	enum ndx_status st;

	ndxp_sockaddr_copy(&wanted, address, len);
	if (!loop_address_is_ours(&wanted) && !ndxp_sockaddr_is_any(&wanted))
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "bind to %s: loop has the addresses 127.0.0.1 and ::1 only",
		            ndxp_sockaddr_text(&wanted, text));
	loop_switch_lock(sw);
	st = loop_switch_bind(sw, port, &wanted);
	loop_switch_unlock(sw);
	if (st == NDX_E_SHARING_VIOLATION)
		return fail(st, 0,
		            "bind to %s: a listener or connector of this process has the port; "
		            "choose another, or 0 for any",
		            ndxp_sockaddr_text(&wanted, text));
	if (st != NDX_OK)
		return fail(st, 0, "bind to %s: no free port from %u to %u",
		            ndxp_sockaddr_text(&wanted, text), FIRST_EPHEMERAL, LAST_EPHEMERAL);
	return NDX_OK;
}
