/* SPDX-License-Identifier: BSD-2-Clause */
#include "link.h"

#include <string.h>

#include <ndx/spi/byteorder.h>

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define ETHERTYPE_QINQ_OLD 0x9100
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_ROCE 0x8915
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PORT_ROCE 4791
#define GRH_NEXT_BTH 0x1b
#define ICRC 4
#define BTH 12
#define TAGS_MAX 4
#define EXTENSIONS_MAX 8
#define EXTENSION_FRAGMENT 44
#define ERF_TYPE_ETHERNET 2
#define ERF_TYPE_INFINIBAND 21

/* The rest of the packet: `left` bytes were captured, `wire` were sent. */
struct cursor {
	const uint8_t *at;
	uint32_t left;
	uint32_t wire;
};

static bool skip(struct cursor *c, uint32_t n)
{
	if (c->left < n)
		return false;
	c->at += n;
	c->left -= n;
	c->wire -= n;
	return true;
}

/* End the packet after `length` bytes, without padding; false if it is longer than what was
 * sent. */
static bool limit(struct cursor *c, uint32_t length)
{
	if (length > c->wire)
		return false;
	c->wire = length;
	if (c->left > length)
		c->left = length;
	return true;
}

/* The packet from the base transport header up to the ICRC. */
static enum link_verdict transport(struct cursor *c, struct frame *f)
{
	if (c->wire < BTH + ICRC)
		return LINK_BAD;
	f->payload = c->at;
	f->length = c->wire - ICRC;
	f->captured = c->left < f->length ? c->left : f->length;
	f->network_length = (uint32_t)(c->at - f->network);
	/* The check needs all bytes, including the ICRC. */
	if (c->left < c->wire)
		f->network = NULL;
	return f->captured >= BTH ? LINK_RDMA : LINK_BAD;
}

static enum link_verdict udp(struct cursor *c, struct frame *f)
{
	uint32_t length;

	if (c->left < 8)
		return LINK_BAD;
	if (ndxp_get_be16(c->at + 2) != PORT_ROCE)
		return LINK_OTHER;
	length = ndxp_get_be16(c->at + 4);
	if (length < 8 || !limit(c, length) || !skip(c, 8))
		return LINK_BAD;
	f->transport = NDX_RDMA_ROCE_V2;
	return transport(c, f);
}

static enum link_verdict tcp(struct cursor *c, struct frame *f)
{
	uint32_t header;

	if (c->left < 20)
		return LINK_BAD;
	f->source_port = ndxp_get_be16(c->at);
	f->destination_port = ndxp_get_be16(c->at + 2);
	f->sequence = ndxp_get_be32(c->at + 4);
	f->acknowledged = ndxp_get_be32(c->at + 8);
	header = (uint32_t)(c->at[12] >> 4) * 4;
	f->tcp_flags = c->at[13];
	if (header < 20 || header > c->wire)
		return LINK_BAD;
	if (!skip(c, header)) /* truncated within the options: the stream continues after them */
		*c = (struct cursor){c->at + c->left, 0, c->wire - header};
	f->transport = NDX_RDMA_IWARP;
	f->network = NULL;
	f->payload = c->at;
	f->length = c->wire;
	f->captured = c->left;
	return LINK_RDMA;
}

/* A fragment, whose first 4 bytes are ports if it is the `first`. */
static enum link_verdict fragment(const struct cursor *c, struct frame *f, uint8_t protocol,
                                  bool first)
{
	if (protocol != PROTOCOL_UDP && protocol != PROTOCOL_TCP)
		return LINK_OTHER;
	f->transport = NDX_RDMA_IWARP;
	f->length = c->wire;
	if (protocol == PROTOCOL_UDP && first && c->left >= 4 &&
	    ndxp_get_be16(c->at + 2) == PORT_ROCE)
		f->transport = NDX_RDMA_ROCE_V2;
	return LINK_FRAGMENT;
}

static enum link_verdict above_ip(struct cursor *c, struct frame *f, uint8_t protocol)
{
	switch (protocol) {
	case PROTOCOL_TCP:
		return tcp(c, f);
	case PROTOCOL_UDP:
		return udp(c, f);
	default:
		return LINK_OTHER;
	}
}

static enum link_verdict ipv4(struct cursor *c, struct frame *f)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *ip = c->at;
	uint32_t header, total;

	if (c->left < 20 || ip[0] >> 4 != 4)
		return LINK_BAD;
	header = (uint32_t)(ip[0] & 15) * 4;
	total = ndxp_get_be16(ip + 2);
	if (total == 0)
		total = c->wire; /* segmentation offload: the length may not fit */
	if (header < 20 || total < header)
		return LINK_BAD;
	f->family = NDX_RDMA_ADDRESS_IPV4;
	f->network = ip;
	memcpy(f->address.source, mapped, sizeof(mapped));
	memcpy(f->address.source + 12, ip + 12, 4);
	memcpy(f->address.destination, mapped, sizeof(mapped));
	memcpy(f->address.destination + 12, ip + 16, 4);
	if (!limit(c, total) || !skip(c, header))
		return LINK_BAD;
	if ((ndxp_get_be16(ip + 6) & 0x3fff) != 0)
		return fragment(c, f, ip[9], (ndxp_get_be16(ip + 6) & 0x1fff) == 0);
	return above_ip(c, f, ip[9]);
}

/* Skip extension headers; false if truncated. `next` becomes the protocol, `offset` the fragment
 * offset: 0 if there is no fragment header, or only one fragment. */
static bool extensions(struct cursor *c, uint8_t *next, uint16_t *offset)
{
	*offset = 0;
	for (int i = 0; i < EXTENSIONS_MAX && *offset == 0; i++) {
		uint8_t protocol = *next;

		if (protocol != 0 && protocol != 43 && protocol != 60 &&
		    protocol != EXTENSION_FRAGMENT)
			return true; /* hop-by-hop, routing, destination options */
		if (c->left < 8)
			return false;
		*next = c->at[0];
		if (protocol == EXTENSION_FRAGMENT)
			*offset = ndxp_get_be16(c->at + 2) & 0xfff9;
		if (!skip(c, protocol == EXTENSION_FRAGMENT ? 8 : 8 + (uint32_t)c->at[1] * 8))
			return false;
	}
	return true;
}

static enum link_verdict ipv6(struct cursor *c, struct frame *f)
{
	const uint8_t *ip = c->at;
	uint16_t offset;
	uint8_t next;

	if (c->left < 40 || ip[0] >> 4 != 6)
		return LINK_BAD;
	f->family = NDX_RDMA_ADDRESS_IPV6;
	f->network = ip;
	memcpy(&f->address, ip + 8, 32);
	next = ip[6];
	if (!limit(c, 40 + (uint32_t)ndxp_get_be16(ip + 4)) || !skip(c, 40) ||
	    !extensions(c, &next, &offset))
		return LINK_BAD;
	return offset != 0 ? fragment(c, f, next, offset == 1) : above_ip(c, f, next);
}

static enum link_verdict raw_ip(struct cursor *c, struct frame *f)
{
	if (c->left == 0)
		return LINK_BAD;
	return c->at[0] >> 4 == 6 ? ipv6(c, f) : ipv4(c, f);
}

/* Global route header, then the base transport header. */
static enum link_verdict grh(struct cursor *c, struct frame *f, uint8_t kind)
{
	if (c->left < 40)
		return LINK_BAD;
	if (c->at[6] != GRH_NEXT_BTH)
		return LINK_OTHER;
	f->transport = kind;
	f->family = NDX_RDMA_ADDRESS_GID;
	if (kind == NDX_RDMA_ROCE_V1)
		f->network = c->at;
	memcpy(&f->address, c->at + 8, 32);
	if (!limit(c, 40 + (uint32_t)ndxp_get_be16(c->at + 4)) || !skip(c, 40))
		return LINK_BAD;
	return transport(c, f);
}

/* Native InfiniBand: local route header, perhaps a global one. */
static enum link_verdict infiniband(struct cursor *c, struct frame *f)
{
	uint32_t next;

	if (c->left < 8)
		return LINK_BAD;
	next = c->at[1] & 3;
	f->network = c->at;
	f->transport = NDX_RDMA_INFINIBAND;
	f->family = NDX_RDMA_ADDRESS_LID;
	memset(&f->address, 0, sizeof(f->address));
	memcpy(f->address.destination + 14, c->at + 2, 2);
	memcpy(f->address.source + 14, c->at + 6, 2);
	/* The length counts from the route header on, without the link's own check at the end. */
	if (!limit(c, (uint32_t)(ndxp_get_be16(c->at + 4) & 0x7ff) * 4) || !skip(c, 8))
		return LINK_BAD;
	if (next == 3)
		return grh(c, f, NDX_RDMA_INFINIBAND);
	return next == 2 ? transport(c, f) : LINK_OTHER;
}

static bool tagged(uint16_t type)
{
	return type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ || type == ETHERTYPE_QINQ_OLD;
}

static enum link_verdict by_ethertype(struct cursor *c, struct frame *f, uint16_t type)
{
	for (int i = 0; i < TAGS_MAX && tagged(type); i++) {
		if (c->left < 4)
			return LINK_BAD;
		type = ndxp_get_be16(c->at + 2);
		(void)skip(c, 4);
	}
	switch (type) {
	case ETHERTYPE_IPV4:
		return ipv4(c, f);
	case ETHERTYPE_IPV6:
		return ipv6(c, f);
	case ETHERTYPE_ROCE:
		return grh(c, f, NDX_RDMA_ROCE_V1);
	default:
		return LINK_OTHER;
	}
}

/* A link header of `size` bytes with the protocol at `at`. */
static enum link_verdict linked(struct cursor *c, struct frame *f, uint32_t size, uint32_t at)
{
	uint16_t type;

	if (c->left < size)
		return LINK_BAD;
	type = ndxp_get_be16(c->at + at);
	(void)skip(c, size);
	return by_ethertype(c, f, type);
}

static enum link_verdict erf_record(struct cursor *c, struct frame *f)
{
	uint32_t on_wire;
	uint8_t type;
	bool more;

	if (c->left < 16)
		return LINK_BAD;
	type = c->at[8] & 0x7f;
	more = (c->at[8] & 0x80) != 0;
	on_wire = ndxp_get_be16(c->at + 14);
	(void)skip(c, 16);
	for (int i = 0; more; i++) {
		if (c->left < 8 || i == EXTENSIONS_MAX)
			return LINK_BAD;
		more = (c->at[0] & 0x80) != 0;
		(void)skip(c, 8);
	}
	if (type == ERF_TYPE_ETHERNET && !skip(c, 2))
		return LINK_BAD;
	/* The record may be truncated and its length rounded; its header has the length as sent. */
	c->wire = on_wire;
	if (c->left > on_wire)
		c->left = on_wire;
	switch (type) {
	case ERF_TYPE_INFINIBAND:
		return infiniband(c, f);
	case ERF_TYPE_ETHERNET:
		return linked(c, f, 14, 12);
	default:
		return LINK_OTHER;
	}
}

enum link_verdict link_parse(const struct ndx_packet *packet, struct frame *frame)
{
	struct cursor c = {packet->bytes, packet->captured, packet->original};

	if (c.wire < c.left)
		c.wire = c.left;
	switch (packet->link_type) {
	case NDX_LINK_ETHERNET:
		return linked(&c, frame, 14, 12);
	case NDX_LINK_RAW:
		return raw_ip(&c, frame);
	case NDX_LINK_IPV4:
		return ipv4(&c, frame);
	case NDX_LINK_IPV6:
		return ipv6(&c, frame);
	case NDX_LINK_SLL:
		return linked(&c, frame, 16, 14);
	case NDX_LINK_SLL2:
		return linked(&c, frame, 20, 0);
	case NDX_LINK_ERF:
		return erf_record(&c, frame);
	case NDX_LINK_INFINIBAND:
		return infiniband(&c, frame);
	default:
		return LINK_OTHER;
	}
}
