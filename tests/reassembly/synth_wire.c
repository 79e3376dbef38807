/* SPDX-License-Identifier: BSD-2-Clause */
/* The middle of the generator: SENDs, writes and reads as packets of a wire. */
#include <string.h>

#include "synth_packet.h"

bool synth_iwarp(const struct synth_connection *c)
{
	return c->synth->options.wire == SYNTH_IWARP || c->synth->options.wire == SYNTH_IWARP_IPV6;
}

uint32_t synth_below(struct synth_connection *c, uint32_t limit)
{
	return synth_random(&c->random) % limit;
}

/* iWARP: a SEND of several frames. */
static void send_frames(struct synth_connection *c, unsigned from, const uint8_t *bytes,
                        uint32_t length, uint32_t invalidate)
{
	uint32_t most = c->synth->options.mtu - 64, at = 0;
	uint8_t ulpdu[8192] = {0};

	do {
		uint32_t part = length - at < most ? length - at : most;

		ulpdu[0] = (uint8_t)(at + part == length ? 0x41 : 0x01);
		ulpdu[1] = (uint8_t)(0x40 | (invalidate != 0 ? 4 : 3));
		synth_put32(ulpdu + 2, invalidate);
		synth_put32(ulpdu + 6, 0);
		synth_put32(ulpdu + 10, c->side[from].message);
		synth_put32(ulpdu + 14, at);
		memcpy(ulpdu + 18, bytes + at, part);
		synth_frame(c, from, ulpdu, 18 + part);
		at += part;
	} while (at < length);
	c->side[from].message++;
	synth_stream(c, from, NULL, 0, true);
}

void synth_send_message(struct synth_connection *c, unsigned from, const uint8_t *bytes,
                        uint32_t length, uint32_t invalidate)
{
	static const uint8_t opcodes[2][2] = {{1, 2}, {0, 4}}; /* by first and last */
	uint32_t mtu = c->synth->options.mtu, at = 0;
	uint8_t head[4];

	if (synth_iwarp(c)) {
		send_frames(c, from, bytes, length, invalidate);
		return;
	}
	synth_put32(head, invalidate);
	do {
		uint32_t part = length - at < mtu ? length - at : mtu;
		bool ends = at + part == length && invalidate != 0;
		uint8_t opcode = opcodes[at == 0][at + part == length];

		if (ends)
			opcode = at == 0 ? 0x17 : 0x16;
		synth_bth(c, from, opcode, c->side[from].psn++ & 0xffffff, head, ends ? 4 : 0,
		          bytes + at, part);
		at += part;
	} while (at < length);
}

static void reth(uint8_t head[16], const struct synth_segment *s, uint32_t at, uint32_t length)
{
	synth_put64(head, s->offset + at);
	synth_put32(head + 8, s->handle);
	synth_put32(head + 12, length);
}

void synth_ack(struct synth_connection *c, unsigned from, uint32_t psn)
{
	uint8_t aeth[4] = {0, 0, 0, 1};

	if (c->synth->options.acknowledge && !synth_iwarp(c))
		synth_bth(c, from, 0x11, psn & 0xffffff, aeth, 4, NULL, 0);
}

/* iWARP: a tagged message of several frames. */
static void tagged(struct synth_connection *c, unsigned from, uint8_t opcode, uint32_t stag,
                   uint64_t offset, const uint8_t *bytes, uint32_t length)
{
	uint8_t ulpdu[8192];
	uint32_t at = 0, most = c->synth->options.mtu - 64;

	do {
		uint32_t part = length - at < most ? length - at : most;

		ulpdu[0] = (uint8_t)(at + part == length ? 0xc1 : 0x81);
		ulpdu[1] = (uint8_t)(0x40 | opcode);
		synth_put32(ulpdu + 2, stag);
		synth_put64(ulpdu + 6, offset + at);
		memcpy(ulpdu + 14, bytes + at, part);
		synth_frame(c, from, ulpdu, 14 + part);
		at += part;
	} while (at < length);
}

void synth_write_segment(struct synth_connection *c, const struct synth_segment *s,
                         const uint8_t *bytes, uint32_t length)
{
	struct synth_side *server = &c->side[1];
	uint32_t mtu = c->synth->options.mtu, at = 0;
	bool again = c->synth->options.retry && length > 3 * mtu && synth_below(c, 2) == 0;
	uint8_t head[16];

	if (synth_iwarp(c)) {
		tagged(c, 1, 0, s->handle, s->offset, bytes, length);
		return;
	}
	for (bool first = true; at < length || first; first = false) {
		uint32_t part = length - at < mtu ? length - at : mtu;
		bool last = at + part == length;

		reth(head, s, at, length - at);
		synth_bth(c, 1, (uint8_t)(first ? (last ? 10 : 6) : (last ? 8 : 7)),
		          server->psn++ & 0xffffff, head, first ? 16 : 0, bytes + at, part);
		at += part;
		if (again && at > 2 * mtu) {
			/* The second packet was lost: from there it begins again, as a First. */
			again = false;
			server->psn -= at / mtu - 1;
			at = mtu;
			reth(head, s, at, length - at);
			synth_bth(c, 1, 6, server->psn++ & 0xffffff, head, 16, bytes + at, mtu);
			at += mtu;
		}
	}
	synth_ack(c, 0, server->psn - 1);
}

/* Responses to a request for `length` bytes, the first `most` bytes of them. */
static void read_responses(struct synth_connection *c, uint32_t psn, const uint8_t *bytes,
                           uint32_t length, uint32_t most)
{
	uint8_t aeth[4] = {0, 0, 0, 1};
	uint32_t mtu = c->synth->options.mtu, at = 0;

	for (bool first = true; at < most || first; first = false) {
		uint32_t part = length - at < mtu ? length - at : mtu;
		bool last = at + part == length;

		synth_bth(c, 0, (uint8_t)(first ? (last ? 16 : 13) : (last ? 15 : 14)),
		          psn++ & 0xffffff, aeth, first || last ? 4 : 0, bytes + at, part);
		at += part;
	}
}

void synth_read_request(struct synth_connection *c, const struct synth_segment *s, uint32_t index,
                        struct synth_read *read)
{
	struct synth_side *server = &c->side[1];
	uint32_t mtu = c->synth->options.mtu, packets = (s->length + mtu - 1) / mtu;
	uint8_t head[16], ulpdu[64] = {0x41, 0x41};

	read->sink = UINT64_C(0x7000) + index * UINT64_C(0x100000);
	read->psn = server->psn;
	if (synth_iwarp(c)) {
		synth_put32(ulpdu + 6, 1);
		synth_put32(ulpdu + 10, server->reads++);
		synth_put32(ulpdu + 18, 5);
		synth_put64(ulpdu + 22, read->sink);
		synth_put32(ulpdu + 30, s->length);
		synth_put32(ulpdu + 34, s->handle);
		synth_put64(ulpdu + 38, s->offset);
		synth_frame(c, 1, ulpdu, 46);
		synth_stream(c, 1, NULL, 0, true);
		return;
	}
	reth(head, s, 0, s->length);
	synth_bth(c, 1, 12, read->psn & 0xffffff, head, 16, NULL, 0);
	server->psn += packets == 0 ? 1 : packets;
}

void synth_read_answer(struct synth_connection *c, const struct synth_segment *s,
                       const struct synth_read *read, const uint8_t *bytes)
{
	uint32_t mtu = c->synth->options.mtu, psn = read->psn;
	uint8_t head[16];

	if (synth_iwarp(c)) {
		tagged(c, 0, 2, 5, read->sink, bytes, s->length);
		synth_stream(c, 0, NULL, 0, true);
		return;
	}
	if (c->synth->options.retry && s->length > 3 * mtu && synth_below(c, 2) == 0) {
		/* Part of the answer is lost: it is asked for again, from there on. */
		read_responses(c, psn, bytes, s->length, 2 * mtu);
		reth(head, s, mtu, s->length - mtu);
		synth_bth(c, 1, 12, (psn + 1) & 0xffffff, head, 16, NULL, 0);
		read_responses(c, psn + 1, bytes + mtu, s->length - mtu, s->length - mtu);
		return;
	}
	read_responses(c, psn, bytes, s->length, s->length);
}
