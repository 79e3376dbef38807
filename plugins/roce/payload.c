/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two ends: parse and write. No state, no I/O. */
#include "payload.h"

#include <netinet/in.h>
#include <string.h>

#include "plugin_wire.h"

#define MAGIC 0x52435150u /* "RCQP" */
#define VERSION 2u
#define HEADER 8u
#define COMMON 40u
#define VERBS_RC 72u
#define RENDEZVOUS 96u
#define AGREEMENT 24u
#define BITS_24 0xffffffu
#define POLICIES ((uint32_t)NDX_PEER_DEVICE | NDX_PEER_IS_HEARD)

static bool is_mtu(uint32_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
}

static const char *common_fault(const struct ndx_peer_description *d)
{
	const struct ndx_memory_description *m = &d->memory;

	if (m->length == 0 && (m->address != 0 || m->token != 0 || m->rkey != 0))
		return "it names memory of no length";
	if (m->length > 0 && m->address + (m->length - 1) < m->address)
		return "its memory passes the end of the address space";
	return NULL;
}

static const char *verbs_fault(const struct ndx_peer_description *d)
{
	if (d->qpn == 0 || d->qpn > BITS_24)
		return "its queue pair number is 0 or has more than 24 bits";
	if (d->psn > BITS_24)
		return "its first PSN has more than 24 bits";
	if (!is_mtu(d->mtu))
		return "its MTU is none of 256, 512, 1024, 2048, 4096";
	if (d->lid == 0 && wire_is_zero(d->gid, sizeof(d->gid)))
		return "it has neither LID nor GID";
	if ((d->policy & ~POLICIES) != 0)
		return "its policy has unknown bits";
	if ((d->policy & NDX_PEER_IS_HEARD) != 0 && (d->policy & NDX_PEER_NOT_ASKED) == 0)
		return "its policy says that it is heard, and not that it is not asked";
	return NULL;
}

/* Printable up to its end, then zeros. */
static bool stack_is_sound(const char *stack, size_t room)
{
	size_t i = 0;

	while (i < room && stack[i] > ' ' && stack[i] <= '~')
		i++;
	return i > 0 && i < room && wire_is_zero((const uint8_t *)stack + i, room - i);
}

static const char *rendezvous_fault(const struct ndx_peer_description *d)
{
	if (!stack_is_sound(d->stack, sizeof(d->stack)))
		return "its stack is not a name";
	if (wire_is_zero(d->cookie, sizeof(d->cookie)))
		return "it has no cookie";
	return NULL;
}

static const char *description_fault(const struct ndx_peer_description *d)
{
	const char *fault = common_fault(d);

	if (fault != NULL)
		return fault;
	return d->kind == NDX_DESCRIPTION_VERBS_RC ? verbs_fault(d) : rendezvous_fault(d);
}

/* Bytes 72 to 95 of a rendezvous. */
static const char *read_address(const uint8_t *bytes, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	const uint8_t family = bytes[0];
	const uint16_t port = wire_get16(bytes + 2);

	if (bytes[1] != 0 || wire_get32(bytes + 20) != 0)
		return "reserved bytes are not 0";
	if (family == 0)
		return port == 0 && wire_is_zero(bytes + 4, 16)
		               ? NULL
		               : "it has an address, but no address family";
	if (port == 0)
		return "its address has no port";
	if (family == 4 && wire_is_zero(bytes + 8, 12)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, bytes + 4, 4);
		return NULL;
	}
	if (family == 6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, bytes + 4, 16);
		return NULL;
	}
	return "its address is neither IPv4 nor IPv6";
}

static const char *read_verbs(const uint8_t *bytes, struct ndx_peer_description *d)
{
	if (wire_get16(bytes + 54) != 0)
		return "reserved bytes are not 0";
	d->memory.rkey = wire_get32(bytes + 32);
	d->memory.token = ndx_token_of_rkey(d->memory.rkey);
	d->mailbox_rkey = wire_get32(bytes + 36);
	d->qpn = wire_get32(bytes + 40);
	d->psn = wire_get32(bytes + 44);
	d->mtu = wire_get32(bytes + 48);
	d->lid = wire_get16(bytes + 52);
	memcpy(d->gid, bytes + 56, sizeof(d->gid));
	return NULL;
}

static const char *read_rendezvous(const uint8_t *bytes, struct ndx_peer_description *d)
{
	if (wire_get32(bytes + 36) != 0)
		return "reserved bytes are not 0";
	d->memory.token = wire_get32(bytes + 32);
	memcpy(d->stack, bytes + 40, sizeof(d->stack));
	memcpy(d->cookie, bytes + 56, sizeof(d->cookie));
	return read_address(bytes + 72, &d->address);
}

static const char *read_description(const uint8_t *bytes, size_t length,
                                    struct ndx_peer_description *d)
{
	const bool verbs = d->kind == NDX_DESCRIPTION_VERBS_RC;
	const char *fault;

	if (length != (verbs ? VERBS_RC : RENDEZVOUS))
		return "it has not the length of a description of its kind";
	d->inbound_read_limit = wire_get32(bytes + 8);
	d->outbound_read_limit = wire_get32(bytes + 12);
	d->memory.address = wire_get64(bytes + 16);
	d->memory.length = wire_get64(bytes + 24);
	fault = verbs ? read_verbs(bytes, d) : read_rendezvous(bytes, d);
	return fault != NULL ? fault : description_fault(d);
}

static const char *read_agreement(const uint8_t *bytes, size_t length, struct ndx_agreement *a)
{
	if (length != AGREEMENT)
		return "it has not the length of an agreement";
	if (wire_get32(bytes + 20) != 0)
		return "reserved bytes are not 0";
	a->mtu = wire_get32(bytes + 8);
	a->client_reads = wire_get32(bytes + 12);
	a->server_reads = wire_get32(bytes + 16);
	return NULL;
}

bool roce_payload_parse(const uint8_t *bytes, size_t length, struct roce_payload *out,
                        const char **why)
{
	struct roce_payload p = {.message = ROCE_DESCRIPTION};
	uint32_t kind;

	*why = "it is too short";
	if (length < HEADER)
		return false;
	*why = "it is of another format";
	if (wire_get32(bytes) != MAGIC)
		return false;
	*why = "it is of another version of the format";
	if (bytes[4] != VERSION)
		return false;
	*why = "its kind is unknown, or reserved bytes are not 0";
	kind = bytes[6];
	if ((kind != NDX_DESCRIPTION_RENDEZVOUS && kind != NDX_DESCRIPTION_VERBS_RC) ||
	    (bytes[7] != 0 && (bytes[5] != ROCE_DESCRIPTION || kind != NDX_DESCRIPTION_VERBS_RC)))
		return false;
	p.description.kind = kind;
	p.description.policy = bytes[7];
	p.agreed.kind = kind;
	if (bytes[5] == ROCE_DESCRIPTION) {
		*why = read_description(bytes, length, &p.description);
	} else if (bytes[5] == ROCE_AGREEMENT) {
		p.message = ROCE_AGREEMENT;
		*why = read_agreement(bytes, length, &p.agreed);
	} else {
		*why = "it is neither a description nor an agreement";
	}
	if (*why != NULL)
		return false;
	*out = p;
	return true;
}

static const char *write_address(uint8_t *out, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	switch (address->ss_family) {
	case AF_UNSPEC:
		return NULL;
	case AF_INET:
		out[0] = 4;
		wire_put16(out + 2, ntohs(in->sin_port));
		memcpy(out + 4, &in->sin_addr, 4);
		return NULL;
	case AF_INET6:
		out[0] = 6;
		wire_put16(out + 2, ntohs(in6->sin6_port));
		memcpy(out + 4, &in6->sin6_addr, 16);
		return NULL;
	default:
		return "its address is neither IPv4 nor IPv6";
	}
}

static const char *write_description(uint8_t *out, const struct ndx_peer_description *d)
{
	wire_put32(out + 8, d->inbound_read_limit);
	wire_put32(out + 12, d->outbound_read_limit);
	if (d->memory.length > 0) {
		wire_put64(out + 16, d->memory.address);
		wire_put64(out + 24, d->memory.length);
		wire_put32(out + 32, d->kind == NDX_DESCRIPTION_VERBS_RC
		                             ? ndx_rkey_of_token(d->memory.token)
		                             : d->memory.token);
	}
	if (d->policy > UINT8_MAX || (d->policy != 0 && d->kind != NDX_DESCRIPTION_VERBS_RC))
		return "its policy has unknown bits, or it is no queue pair of verbs";
	out[7] = (uint8_t)d->policy;
	if (d->kind == NDX_DESCRIPTION_VERBS_RC) {
		wire_put32(out + 36, d->mailbox_rkey);
		wire_put32(out + 40, d->qpn);
		wire_put32(out + 44, d->psn);
		wire_put32(out + 48, d->mtu);
		wire_put16(out + 52, d->lid);
		memcpy(out + 56, d->gid, sizeof(d->gid));
		return NULL;
	}
	/* Copy up to the NUL only: the bytes after it are not initialized. */
	memcpy(out + 40, d->stack, strnlen(d->stack, sizeof(d->stack)));
	memcpy(out + 56, d->cookie, sizeof(d->cookie));
	return write_address(out + 72, &d->address);
}

static size_t size_of(const struct roce_payload *p)
{
	if (p->message == ROCE_AGREEMENT)
		return AGREEMENT;
	return p->description.kind == NDX_DESCRIPTION_VERBS_RC ? VERBS_RC : RENDEZVOUS;
}

size_t roce_payload_write(uint8_t out[ROCE_PAYLOAD_MAX], const struct roce_payload *p,
                          const char **why)
{
	const bool agreement = p->message == ROCE_AGREEMENT;
	const size_t length = size_of(p);
	struct roce_payload again;

	memset(out, 0, ROCE_PAYLOAD_MAX);
	wire_put32(out, MAGIC);
	out[4] = VERSION;
	out[5] = (uint8_t)p->message;
	out[6] = (uint8_t)(agreement ? p->agreed.kind : p->description.kind);
	*why = NULL;
	if (agreement) {
		wire_put32(out + 8, p->agreed.mtu);
		wire_put32(out + 12, p->agreed.client_reads);
		wire_put32(out + 16, p->agreed.server_reads);
	} else {
		*why = write_description(out, &p->description);
	}
	if (*why != NULL)
		return 0;
	/* Do not send what the peer would refuse. */
	return roce_payload_parse(out, length, &again, why) ? length : 0;
}
