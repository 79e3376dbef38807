/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings that two descriptions have in common. */
#include "agree.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/byteorder.h>

#define BITS_24 0xffffffu
#define POLICIES ((uint32_t)NDX_PEER_DEVICE | NDX_PEER_IS_HEARD)

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {"none", "rendezvous", "verbs-rc"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool all_zero(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* RoCE maps IPv4 addresses into IPv6. */
static bool is_ipv4(const uint8_t gid[16])
{
	return all_zero(gid, 10) && gid[10] == 0xff && gid[11] == 0xff;
}

static bool is_mtu(uint32_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
}

static const char *verbs_fault(const struct ndx_peer_description *d)
{
	if (d->qpn == 0 || d->qpn > BITS_24)
		return "its queue pair number is 0 or has more than 24 bits";
	if (d->psn > BITS_24)
		return "its PSN has more than 24 bits";
	if (!is_mtu(d->mtu))
		return "its MTU is none of 256, 512, 1024, 2048, 4096";
	if (d->lid == 0 && all_zero(d->gid, sizeof(d->gid)))
		return "it has neither LID nor GID";
	if ((d->policy & ~POLICIES) != 0)
		return "its policy has unknown bits";
	if ((d->policy & NDX_PEER_IS_HEARD) != 0 && (d->policy & NDX_PEER_NOT_ASKED) == 0)
		return "its policy says that it is heard, and not that it is not asked";
	return NULL;
}

static const char *rendezvous_fault(const struct ndx_peer_description *d)
{
	if (all_zero(d->cookie, sizeof(d->cookie)))
		return "it has no cookie";
	if (d->stack[0] == '\0' || memchr(d->stack, '\0', sizeof(d->stack)) == NULL)
		return "it does not say its stack";
	if (d->policy != 0)
		return "it is no queue pair of verbs, and has a policy";
	return NULL;
}

enum ndx_status agree_check(const struct ndx_peer_description *d, char *why, size_t room)
{
	const char *fault = NULL;

	if (d->kind > NDX_DESCRIPTION_VERBS_RC)
		fault = "its kind is unknown";
	else if (d->kind == NDX_DESCRIPTION_VERBS_RC)
		fault = verbs_fault(d);
	else if (d->kind == NDX_DESCRIPTION_RENDEZVOUS)
		fault = rendezvous_fault(d);
	if (fault == NULL && d->memory.length > 0 &&
	    d->memory.address + d->memory.length < d->memory.address)
		fault = "its memory passes the end of the address space";
	if (fault == NULL)
		return NDX_OK;
	(void)snprintf(why, room, "%s", fault);
	return NDX_E_INVALID_CONFIG;
}

enum ndx_status agree_compute(enum ndx_role role, const struct ndx_peer_description *own,
                              const struct ndx_peer_description *peer, struct ndx_agreement *out,
                              char *why, size_t room)
{
	const struct ndx_peer_description *client = role == NDX_ROLE_CLIENT ? own : peer;
	const struct ndx_peer_description *server = role == NDX_ROLE_CLIENT ? peer : own;

	if (own->kind != peer->kind) {
		(void)snprintf(why, room,
		               "queue pairs of different kinds cannot connect: %s here, %s there",
		               kind_name(own->kind), kind_name(peer->kind));
		return NDX_E_INVALID_CONFIG;
	}
	if (own->kind == NDX_DESCRIPTION_RENDEZVOUS && strcmp(own->stack, peer->stack) != 0) {
		(void)snprintf(why, room, "the stacks differ: %s here, %s there", own->stack,
		               peer->stack);
		return NDX_E_INVALID_CONFIG;
	}
	if (own->kind == NDX_DESCRIPTION_VERBS_RC && (own->lid == 0) != (peer->lid == 0)) {
		(void)snprintf(why, room, "one end is on Ethernet, the other on InfiniBand");
		return NDX_E_INVALID_CONFIG;
	}
	if (own->kind == NDX_DESCRIPTION_VERBS_RC && own->lid == 0 &&
	    is_ipv4(own->gid) != is_ipv4(peer->gid)) {
		(void)snprintf(why, room, "the GID here is of an IPv%c address, there of an IPv%c",
		               is_ipv4(own->gid) ? '4' : '6', is_ipv4(peer->gid) ? '4' : '6');
		return NDX_E_INVALID_CONFIG;
	}
	out->kind = own->kind;
	out->mtu = min_u32(own->mtu, peer->mtu);
	out->client_reads = min_u32(client->outbound_read_limit, server->inbound_read_limit);
	out->server_reads = min_u32(server->outbound_read_limit, client->inbound_read_limit);
	return NDX_OK;
}

void agree_identity(const struct ndx_peer_description *d, uint8_t out[16])
{
	memcpy(out, d->cookie, 16);
	if (d->kind != NDX_DESCRIPTION_VERBS_RC)
		return;
	memset(out, 0, 16);
	ndxp_put_be32(out, d->qpn);
	ndxp_put_be32(out + 4, d->psn);
}

const char *agree_difference(const struct ndx_agreement *a, const struct ndx_agreement *b)
{
	if (a->kind != b->kind)
		return "kind";
	if (a->mtu != b->mtu)
		return "mtu";
	if (a->client_reads != b->client_reads)
		return "client_reads";
	if (a->server_reads != b->server_reads)
		return "server_reads";
	return NULL;
}
