/* SPDX-License-Identifier: BSD-2-Clause */
#include "synth_packet.h"

#include <stdlib.h>
#include <string.h>

#define ICRC_POLYNOMIAL 0xedb88320u
#define MPA_POLYNOMIAL 0x82f63b78u
#define MARKER_EVERY 512

void synth_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void synth_put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	synth_put16(p + 1, (uint16_t)v);
}

void synth_put32(uint8_t *p, uint32_t v)
{
	synth_put16(p, (uint16_t)(v >> 16));
	synth_put16(p + 2, (uint16_t)v);
}

void synth_put64(uint8_t *p, uint64_t v)
{
	synth_put32(p, (uint32_t)(v >> 32));
	synth_put32(p + 4, (uint32_t)v);
}

static void put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* The table of a polynomial, kept from the last call: one polynomial is asked for many times. */
static const uint32_t *crc_table(uint32_t polynomial)
{
	static uint32_t table[256], made_for;

	if (polynomial == made_for)
		return table;
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
		table[byte] = crc;
	}
	made_for = polynomial;
	return table;
}

uint32_t synth_crc32(uint32_t polynomial, uint32_t crc, const uint8_t *bytes, size_t length)
{
	const uint32_t *table = crc_table(polynomial);

	for (size_t i = 0; i < length; i++)
		crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
	return crc;
}

static void add(struct synth *s, uint8_t *bytes, uint32_t length)
{
	struct synth_packet *p;

	if (s->count == s->room) {
		s->room = s->room == 0 ? 1024 : s->room * 2;
		s->packets = realloc(s->packets, s->room * sizeof(*s->packets));
	}
	if (s->options.link == SYNTH_ERF_ETHERNET && s->options.wire != SYNTH_INFINIBAND)
		synth_put16(bytes + 14, (uint16_t)(length - 26));
	p = &s->packets[s->count++];
	p->bytes = malloc(length);
	memcpy(p->bytes, bytes, length);
	p->captured = p->original = length;
	p->talk = s->talk;
	p->time_ns = UINT64_C(1700000000000000000) + s->count * 1000;
}

/* Link header; returns its length. */
static uint32_t link_header(const struct synth *s, uint8_t *p, uint16_t type)
{
	memset(p, 0, 40);
	switch (s->options.link) {
	case SYNTH_ETHERNET:
		synth_put16(p + 12, type);
		return 14;
	case SYNTH_VLAN:
		synth_put16(p + 12, 0x8100);
		synth_put16(p + 14, 42);
		synth_put16(p + 16, type);
		return 18;
	case SYNTH_QINQ:
		synth_put16(p + 12, 0x88a8);
		synth_put16(p + 14, 7);
		synth_put16(p + 16, 0x8100);
		synth_put16(p + 18, 42);
		synth_put16(p + 20, type);
		return 22;
	case SYNTH_ERF_ETHERNET:
		p[8] = 2 | 0x80; /* one extension header; add() fills the length */
		synth_put16(p + 26 + 12, type);
		return 26 + 14;
	case SYNTH_SLL:
		synth_put16(p + 14, type);
		return 16;
	case SYNTH_SLL2:
		synth_put16(p, type);
		return 20;
	case SYNTH_RAW:
	case SYNTH_LINKS:
		break;
	}
	return 0;
}

static bool six(const struct synth_connection *c)
{
	return c->synth->options.wire == SYNTH_ROCE2_IPV6 ||
	       c->synth->options.wire == SYNTH_IWARP_IPV6;
}

/* IP header around `length` bytes; returns its length. */
static uint32_t ip_header(const struct synth_connection *c, unsigned from, uint8_t *p,
                          uint8_t protocol, uint32_t length)
{
	const uint8_t *source = c->side[from].address, *to = c->side[from ^ 1].address;

	if (six(c)) {
		memset(p, 0, 40);
		p[0] = 0x60;
		synth_put16(p + 4, (uint16_t)length);
		p[6] = protocol;
		p[7] = 64;
		memcpy(p + 8, source, 16);
		memcpy(p + 24, to, 16);
		return 40;
	}
	memset(p, 0, 20);
	p[0] = 0x45;
	synth_put16(p + 2, (uint16_t)(length + 20));
	p[6] = 0x40;
	p[8] = 64;
	p[9] = protocol;
	memcpy(p + 12, source + 12, 4);
	memcpy(p + 16, to + 12, 4);
	return 20;
}

static uint32_t grh(const struct synth_connection *c, unsigned from, uint8_t *p, uint32_t length)
{
	memset(p, 0, 40);
	p[0] = 0x60;
	synth_put16(p + 4, (uint16_t)length);
	p[6] = 0x1b;
	p[7] = 64;
	memcpy(p + 8, c->side[from].address, 16);
	memcpy(p + 24, c->side[from ^ 1].address, 16);
	return 40;
}

/* The invariant CRC of what begins at `network`, as another implementation would compute it. */
static uint32_t icrc(enum synth_wire wire, const uint8_t *network, uint32_t length, uint32_t bth)
{
	uint8_t copy[16384];
	uint8_t ones[8];
	uint32_t crc = 0xffffffffu;

	memcpy(copy, network, length);
	memset(ones, 0xff, sizeof(ones));
	if (wire == SYNTH_INFINIBAND) {
		copy[0] |= 0xf0;
		if (bth == 48) { /* global route header */
			copy[8] |= 0x0f;
			copy[9] = copy[10] = copy[11] = copy[15] = 0xff;
		}
	} else {
		crc = synth_crc32(ICRC_POLYNOMIAL, crc, ones, sizeof(ones));
		if (wire == SYNTH_ROCE2_IPV4) {
			copy[1] = copy[8] = copy[10] = copy[11] = 0xff;
		} else {
			copy[0] |= 0x0f;
			copy[1] = copy[2] = copy[3] = copy[7] = 0xff;
		}
		if (wire != SYNTH_ROCE1)
			copy[bth - 1] = copy[bth - 2] = 0xff;
	}
	copy[bth + 4] = 0xff;
	return ~synth_crc32(ICRC_POLYNOMIAL, crc, copy, length);
}

/* Headers before the base transport header of a payload of `length`; where the ICRC begins. */
static uint32_t outer(struct synth_connection *c, unsigned from, uint8_t *p, uint32_t length,
                      uint32_t *network)
{
	const struct synth *s = c->synth;
	uint32_t at;

	if (s->options.wire == SYNTH_INFINIBAND) {
		at = 8 + (s->options.global ? 40 : 0);
		memset(p, 0, 24);
		p[8] = 21;
		synth_put16(p + 10, (uint16_t)(16 + at + length + 6));
		synth_put16(p + 14, (uint16_t)(at + length + 4 + 2));
		*network = 16;
		p[17] = s->options.global ? 3 : 2;
		memcpy(p + 18, c->side[from ^ 1].address + 14, 2);
		synth_put16(p + 20, (uint16_t)((at + length + 4) / 4));
		memcpy(p + 22, c->side[from].address + 14, 2);
		if (s->options.global)
			grh(c, from, p + 24, length + 4);
		return 16 + at;
	}
	if (s->options.wire == SYNTH_ROCE1) {
		at = link_header(s, p, 0x8915);
		*network = at;
		return at + grh(c, from, p + at, length + 4);
	}
	at = link_header(s, p, s->options.wire == SYNTH_ROCE2_IPV6 ? 0x86dd : 0x0800);
	*network = at;
	at += ip_header(c, from, p + at, 17, 8 + length + 4);
	synth_put16(p + at, (uint16_t)(49152 + c->side[from].qpn % 16384));
	synth_put16(p + at + 2, 4791);
	synth_put16(p + at + 4, (uint16_t)(8 + length + 4));
	synth_put16(p + at + 6, 0);
	return at + 8;
}

static void base_packet(struct synth_connection *c, unsigned from, uint8_t opcode, uint32_t qpn,
                        uint32_t psn, const uint8_t *head, uint32_t head_length,
                        const uint8_t *data, uint32_t length)
{
	uint32_t padding = -length & 3, total = 12 + head_length + length + padding, at, network;
	uint8_t p[16384];

	at = outer(c, from, p, total, &network);
	memset(p + at, 0, 12);
	p[at] = opcode;
	p[at + 1] = (uint8_t)(padding << 4);
	synth_put16(p + at + 2, 0xffff);
	synth_put24(p + at + 5, qpn);
	synth_put24(p + at + 9, psn);
	if (head_length > 0)
		memcpy(p + at + 12, head, head_length);
	if (length > 0)
		memcpy(p + at + 12 + head_length, data, length);
	memset(p + at + 12 + head_length + length, 0, padding);
	put_le32(p + at + total, c->synth->options.unchecked
	                                 ? 0
	                                 : icrc(c->synth->options.wire, p + network,
	                                        at + total - network, at - network));
	at += total + 4;
	if (c->synth->options.wire == SYNTH_INFINIBAND) {
		memset(p + at, 0, 2);
		at += 2;
	}
	add(c->synth, p, at);
}

void synth_bth(struct synth_connection *c, unsigned from, uint8_t opcode, uint32_t psn,
               const uint8_t *head, uint32_t head_length, const uint8_t *data, uint32_t length)
{
	bool answers = opcode >= 0x0d && opcode <= 0x12;
	uint8_t extended[64] = {0, 0, 1, 7}; /* shared receive queue */

	if (!c->synth->options.xrc) {
		base_packet(c, from, opcode, c->side[from ^ 1].qpn, psn, head, head_length, data,
		            length);
		return;
	}
	if (head_length > 0)
		memcpy(extended + 4, head, head_length);
	base_packet(c, from, opcode | 0xa0, c->side[from ^ 1].qpn, psn, answers ? head : extended,
	            head_length + (answers ? 0 : 4), data, length);
}

void synth_manage(struct synth_connection *c, unsigned from, uint16_t kind, const uint8_t *data)
{
	static const uint8_t deth[8] = {0x80, 1, 0, 0, 0, 0, 0, 1};
	uint8_t mad[256] = {1, 7, 2, 3};

	synth_put16(mad + 16, kind);
	memcpy(mad + 24, data, 232);
	base_packet(c, from, 0x64, 1, 0, deth, sizeof(deth), mad, sizeof(mad));
}

void synth_tcp(struct synth_connection *c, unsigned from, uint8_t flags, const uint8_t *data,
               uint32_t length)
{
	struct synth_side *side = &c->side[from];
	uint8_t p[16384];
	uint32_t at = link_header(c->synth, p, six(c) ? 0x86dd : 0x0800);

	at += ip_header(c, from, p + at, 6, 20 + length);
	memset(p + at, 0, 20);
	synth_put16(p + at, (uint16_t)side->qpn);
	synth_put16(p + at + 2, (uint16_t)c->side[from ^ 1].qpn);
	synth_put32(p + at + 4, side->psn);
	synth_put32(p + at + 8, c->side[from ^ 1].psn);
	p[at + 12] = 5 << 4;
	p[at + 13] = flags;
	if (length > 0)
		memcpy(p + at + 20, data, length);
	add(c->synth, p, at + 20 + length);
	side->psn += length + (flags & 2 ? 1 : 0);
}

void synth_stream(struct synth_connection *c, unsigned from, const uint8_t *data, uint32_t length,
                  bool flush)
{
	struct synth_side *side = &c->side[from];
	uint32_t mtu = c->synth->options.mtu, at = 0;

	if (length > 0) {
		side->pending = realloc(side->pending, side->pending_count + length);
		memcpy(side->pending + side->pending_count, data, length);
		side->pending_count += length;
	}
	while (side->pending_count - at >= mtu || (flush && side->pending_count > at)) {
		uint32_t part = side->pending_count - at;

		if (part > mtu)
			part = mtu;
		/* Segments need not be full. */
		if (c->synth->options.unaligned && part > 8)
			part = 4 + synth_random(&c->random) % (part - 4);
		synth_tcp(c, from, 0x18, side->pending + at, part);
		at += part;
	}
	if (at > 0)
		memmove(side->pending, side->pending + at, side->pending_count - at);
	side->pending_count -= at;
}

void synth_frame(struct synth_connection *c, unsigned from, const uint8_t *ulpdu, uint32_t length)
{
	struct synth_side *side = &c->side[from];
	uint32_t plain_length = ((length + 2 + 3) & ~3u) + 4, raw = 0, start;
	uint8_t plain[16384] = {0}, out[20480];
	bool markers = c->synth->options.markers;

	synth_put16(plain, (uint16_t)length);
	memcpy(plain + 2, ulpdu, length);
	start = markers && side->streamed % MARKER_EVERY == 0 ? 4 : 0;
	for (uint32_t at = 0; at < plain_length; at += 4) {
		if (markers && (side->streamed + raw) % MARKER_EVERY == 0) {
			/* How far back the frame's first byte is. */
			synth_put32(out + raw, raw == 0 ? 0 : raw - start);
			raw += 4;
		}
		if (at == plain_length - 4)
			put_le32(plain + at,
			         c->synth->options.crc
			                 ? ~synth_crc32(MPA_POLYNOMIAL, 0xffffffffu, out, raw)
			                 : 0);
		memcpy(out + raw, plain + at, 4);
		raw += 4;
	}
	side->streamed += raw;
	synth_stream(c, from, out, raw, !c->synth->options.unaligned);
}
