/* SPDX-License-Identifier: BSD-2-Clause */
/* The upper half of the generator: calls, chunks, replies. */
#include "synth.h"

#include <stdlib.h>
#include <string.h>

#include "synth_packet.h"

#define CHUNKS_MAX 4
#define SEGMENTS_MAX 4
#define HEADER_MAX 512
#define INLINE_MAX 6000

struct segment {
	uint32_t handle, length;
	uint64_t offset;
	uint32_t position;
};

struct chunk {
	struct segment segments[SEGMENTS_MAX];
	uint32_t count, length;
	uint8_t *bytes;
};

/* A conversation under construction. */
struct call {
	struct synth_connection *c;
	uint32_t xid;
	struct chunk reads[CHUNKS_MAX], writes[CHUNKS_MAX], reply;
	uint32_t read_count, write_count;
	bool has_reply;
	uint8_t inline_bytes[INLINE_MAX];
	uint32_t inline_length;
};

uint32_t synth_random(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

static uint32_t below(struct synth_connection *c, uint32_t limit)
{
	return synth_random(&c->random) % limit;
}

void synth_defaults(struct synth_options *options)
{
	*options = (struct synth_options){
		.seed = 1,
		.connections = 1,
		.calls = 40,
		.mtu = 1024,
		.psn = 1000,
		.chunk = 9000,
		.manager = true,
		.acknowledge = true,
	};
}

static bool iwarp(const struct synth_connection *c)
{
	return c->synth->options.wire == SYNTH_IWARP;
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

/* A message from that side, by SEND. */
static void send_message(struct synth_connection *c, unsigned from, const uint8_t *bytes,
                         uint32_t length, uint32_t invalidate)
{
	static const uint8_t opcodes[2][2] = {{1, 2}, {0, 4}}; /* by first and last */
	uint32_t mtu = c->synth->options.mtu, at = 0;
	uint8_t head[4];

	if (iwarp(c)) {
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

static void reth(uint8_t head[16], const struct segment *s, uint32_t at, uint32_t length)
{
	synth_put64(head, s->offset + at);
	synth_put32(head + 8, s->handle);
	synth_put32(head + 12, length);
}

static void ack(struct synth_connection *c, unsigned from, uint32_t psn)
{
	uint8_t aeth[4] = {0, 0, 0, 1};

	if (c->synth->options.acknowledge && !iwarp(c))
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

/* The server writes into the client's memory. */
static void write_segment(struct synth_connection *c, const struct segment *s, const uint8_t *bytes,
                          uint32_t length)
{
	struct synth_side *server = &c->side[1];
	uint32_t mtu = c->synth->options.mtu, at = 0;
	bool again = c->synth->options.retry && length > 3 * mtu && below(c, 2) == 0;
	uint8_t head[16];

	if (iwarp(c)) {
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
	ack(c, 0, server->psn - 1);
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

/* The server reads the client's memory. */
static void read_segment(struct synth_connection *c, const struct segment *s, const uint8_t *bytes)
{
	struct synth_side *server = &c->side[1];
	uint32_t mtu = c->synth->options.mtu, packets = (s->length + mtu - 1) / mtu,
		 psn = server->psn;
	uint8_t head[16], ulpdu[64] = {0x41, 0x41};

	if (iwarp(c)) {
		uint64_t sink = UINT64_C(0x7000) + below(c, 4) * UINT64_C(0x100000);

		synth_put32(ulpdu + 6, 1);
		synth_put32(ulpdu + 10, server->reads++);
		synth_put32(ulpdu + 18, 5);
		synth_put64(ulpdu + 22, sink);
		synth_put32(ulpdu + 30, s->length);
		synth_put32(ulpdu + 34, s->handle);
		synth_put64(ulpdu + 38, s->offset);
		synth_frame(c, 1, ulpdu, 46);
		synth_stream(c, 1, NULL, 0, true);
		tagged(c, 0, 2, 5, sink, bytes, s->length);
		synth_stream(c, 0, NULL, 0, true);
		return;
	}
	reth(head, s, 0, s->length);
	synth_bth(c, 1, 12, psn & 0xffffff, head, 16, NULL, 0);
	server->psn += packets == 0 ? 1 : packets;
	if (c->synth->options.retry && packets > 3 && below(c, 2) == 0) {
		/* Part of the answer is lost: it is asked for again, from there on. */
		read_responses(c, psn, bytes, s->length, 2 * mtu);
		reth(head, s, mtu, s->length - mtu);
		synth_bth(c, 1, 12, (psn + 1) & 0xffffff, head, 16, NULL, 0);
		read_responses(c, psn + 1, bytes + mtu, s->length - mtu, s->length - mtu);
		return;
	}
	read_responses(c, psn, bytes, s->length, s->length);
}

/* Segments of random lengths for a chunk of random bytes. */
static void make_chunk(struct call *call, struct chunk *k, uint32_t length, uint32_t position)
{
	static const uint32_t reused = 0x00c0ffee;
	struct synth_connection *c = call->c;
	uint32_t count = 1 + below(c, SEGMENTS_MAX), left = length;
	uint64_t base = ((uint64_t)below(c, 1000) << 32) + below(c, 4096);

	k->bytes = malloc(length);
	k->length = length;
	for (uint32_t i = 0; i < length; i++)
		k->bytes[i] = (uint8_t)synth_random(&c->random);
	for (k->count = 0; k->count < count && left > 0; k->count++) {
		struct segment *s = &k->segments[k->count];

		s->length = k->count + 1 == count ? left : 1 + below(c, left);
		s->handle = c->synth->options.reuse ? reused : synth_random(&c->random) | 1;
		s->offset = base;
		s->position = position;
		base += s->length + 4096;
		left -= s->length;
	}
}

static uint32_t put_segment(uint8_t *p, const struct segment *s, uint32_t length)
{
	synth_put32(p, s->handle);
	synth_put32(p + 4, length);
	synth_put64(p + 8, s->offset);
	return 16;
}

static uint32_t put_chunk(uint8_t *p, const struct chunk *k, const uint32_t *lengths)
{
	uint32_t at = 8;

	synth_put32(p, 1);
	synth_put32(p + 4, k->count);
	for (uint32_t i = 0; i < k->count; i++)
		at += put_segment(p + at, &k->segments[i],
		                  lengths != NULL ? lengths[i] : k->segments[i].length);
	return at;
}

static uint32_t put_header(uint8_t *p, uint32_t xid, uint32_t type)
{
	synth_put32(p, xid);
	synth_put32(p + 4, 1);
	synth_put32(p + 8, 32);
	synth_put32(p + 12, type);
	return 16;
}

/* What the client sends; the canonical message goes to the truth. */
static void make_call(struct call *call, bool long_call)
{
	static const uint8_t zeros[4];
	struct synth_connection *c = call->c;
	uint8_t message[HEADER_MAX + INLINE_MAX];
	uint32_t at = put_header(message, call->xid, long_call ? 1 : 0), used = 0;
	struct ndx_piece pieces[3 * CHUNKS_MAX + 1];
	size_t count = 0;

	for (uint32_t i = 0; i < call->read_count; i++) {
		for (uint32_t k = 0; k < call->reads[i].count; k++) {
			synth_put32(message + at, 1);
			synth_put32(message + at + 4, call->reads[i].segments[k].position);
			at += 8;
			at += put_segment(message + at, &call->reads[i].segments[k],
			                  call->reads[i].segments[k].length);
		}
	}
	synth_put32(message + at, 0);
	at += 4;
	for (uint32_t i = 0; i < call->write_count; i++)
		at += put_chunk(message + at, &call->writes[i], NULL);
	synth_put32(message + at, 0);
	at += 4;
	if (call->has_reply) {
		at += put_chunk(message + at, &call->reply, NULL);
	} else {
		synth_put32(message + at, 0);
		at += 4;
	}
	for (uint32_t i = 0, written = 0; i < call->read_count; i++) {
		const struct chunk *k = &call->reads[i];
		uint32_t padding = long_call ? 0 : -k->length & 3;
		uint32_t part = k->segments[0].position - written;

		pieces[count++] = (struct ndx_piece){call->inline_bytes + used, part};
		pieces[count++] = (struct ndx_piece){k->bytes, k->length};
		pieces[count++] = (struct ndx_piece){zeros, padding};
		used += part;
		written += part + k->length + padding;
	}
	pieces[count++] = (struct ndx_piece){call->inline_bytes + used, call->inline_length - used};
	synth_note(&c->synth->calls, c->synth->talks, pieces, count);
	memcpy(message + at, call->inline_bytes, call->inline_length);
	send_message(c, 0, message, at + call->inline_length, 0);
	ack(c, 1, c->side[0].psn - 1);
}

/* The server fetches what the call left outside. */
static void fetch(struct call *call)
{
	for (uint32_t i = 0; i < call->read_count; i++) {
		const struct chunk *k = &call->reads[i];
		uint32_t at = 0;

		for (uint32_t s = 0; s < k->count; s++) {
			read_segment(call->c, &k->segments[s], k->bytes + at);
			at += k->segments[s].length;
		}
	}
}

/* Write a chunk, perhaps not all of it. `lengths` becomes what the reply will say. */
static uint32_t fill_chunk(struct synth_connection *c, const struct chunk *k, uint32_t length,
                           uint32_t lengths[SEGMENTS_MAX])
{
	uint32_t at = 0;

	for (uint32_t s = 0; s < k->count; s++) {
		lengths[s] = k->segments[s].length;
		if (lengths[s] > length - at)
			lengths[s] = length - at;
		if (lengths[s] > 0)
			write_segment(c, &k->segments[s], k->bytes + at, lengths[s]);
		at += lengths[s];
	}
	return at;
}

static void make_reply(struct call *call)
{
	struct synth_connection *c = call->c;
	uint8_t message[HEADER_MAX + INLINE_MAX];
	uint32_t at = put_header(message, call->xid, call->has_reply ? 1 : 0),
		 lengths[SEGMENTS_MAX];
	struct ndx_piece pieces[CHUNKS_MAX + 2];
	uint32_t body = 24 + 4 * below(c, 20), invalidate = 0;
	uint8_t inline_bytes[128];
	size_t count = 1;

	synth_put32(message + at, 0);
	at += 4;
	for (uint32_t i = 0; i < call->write_count; i++) {
		struct chunk *k = &call->writes[i];
		uint32_t length = below(c, 3) == 0 ? below(c, k->length + 1) : k->length;

		length = fill_chunk(c, k, length, lengths);
		at += put_chunk(message + at, k, lengths);
		pieces[count++] = (struct ndx_piece){k->bytes, length};
		invalidate = k->segments[0].handle;
	}
	synth_put32(message + at, 0);
	at += 4;
	if (call->has_reply) {
		uint32_t length =
			fill_chunk(c, &call->reply, call->reply.length - below(c, 4), lengths);

		at += put_chunk(message + at, &call->reply, lengths);
		pieces[0] = (struct ndx_piece){call->reply.bytes, length};
		body = 0;
	} else {
		synth_put32(message + at, 0);
		at += 4;
		for (uint32_t i = 0; i < body; i++)
			inline_bytes[i] = (uint8_t)synth_random(&c->random);
		synth_put32(inline_bytes, call->xid);
		synth_put32(inline_bytes + 4, 1);
		memcpy(message + at, inline_bytes, body);
		pieces[0] = (struct ndx_piece){inline_bytes, body};
	}
	synth_note(&c->synth->replies, c->synth->talks, pieces, count);
	send_message(c, 1, message, at + body, invalidate);
	ack(c, 0, c->side[1].psn - 1);
}

static void free_call(struct call *call)
{
	for (uint32_t i = 0; i < CHUNKS_MAX; i++) {
		free(call->reads[i].bytes);
		free(call->writes[i].bytes);
	}
	free(call->reply.bytes);
}

/* Chunks that the server reads, at positions of their own. */
static void make_reads(struct call *call)
{
	struct synth_connection *c = call->c;
	uint32_t position = 28;

	call->read_count = 1 + below(c, 3);
	for (uint32_t i = 0; i < call->read_count; i++) {
		uint32_t length = 1 + below(c, c->synth->options.chunk);

		make_chunk(call, &call->reads[i], length, position);
		position += ((length + 3) & ~3u) + 4 * below(c, 2);
	}
}

static void make_inline(struct call *call, uint32_t length)
{
	static const uint32_t head[] = {0, 0, 2, 100003, 4, 1};

	call->inline_length = length;
	for (uint32_t i = 0; i < length; i++)
		call->inline_bytes[i] = (uint8_t)synth_random(&call->c->random);
	for (uint32_t i = 0; i < 6; i++)
		synth_put32(call->inline_bytes + 4 * i, i == 0 ? call->xid : head[i]);
}

/* What a conversation may have. */
enum shape { PLAIN, READS, WRITES, REPLY, BOTH_LONG, LONG_CALL, BOTH, SHAPES };

/* A conversation of a random shape. */
static void converse(struct synth_connection *c, uint32_t xid)
{
	struct call *call = calloc(1, sizeof(*call));
	enum shape shape = (enum shape)below(c, SHAPES);
	uint32_t most = c->synth->options.chunk;

	c->synth->talks++;
	call->c = c;
	call->xid = xid;
	if (shape == BOTH_LONG) /* a SEND of several packets, with chunks */
		make_inline(call, 1500 + 4 * below(c, 1000));
	else if (shape != LONG_CALL)
		make_inline(call, 40 + 4 * below(c, 40));
	if (shape == READS || shape == BOTH_LONG || shape == BOTH)
		make_reads(call);
	if (shape == LONG_CALL) {
		make_chunk(call, &call->reads[0], 100 + below(c, most), 0);
		call->read_count = 1;
	}
	if (shape == WRITES || shape == BOTH_LONG || shape == BOTH) {
		call->write_count = 1 + below(c, 2);
		for (uint32_t i = 0; i < call->write_count; i++)
			make_chunk(call, &call->writes[i], 1 + below(c, most), 0);
	}
	if (shape == REPLY || shape == LONG_CALL) {
		make_chunk(call, &call->reply, 64 + below(c, most), 0);
		call->has_reply = true;
	}
	make_call(call, shape == LONG_CALL);
	fetch(call);
	make_reply(call);
	free_call(call);
	free(call);
}

static void introduce(struct synth_connection *c)
{
	uint8_t data[232] = {0}, setup[24] = "MPA ID Req Frame";
	const struct synth_options *o = &c->synth->options;

	if (o->wire == SYNTH_IWARP) {
		synth_tcp(c, 0, 2, NULL, 0);
		synth_tcp(c, 1, 0x12, NULL, 0);
		setup[16] = (uint8_t)((o->markers ? 0x80 : 0) | (o->crc ? 0x40 : 0) | 0x10);
		setup[17] = 2;
		setup[19] = 4;
		synth_tcp(c, 0, 0x18, setup, sizeof(setup));
		setup[9] = 'p'; /* "Rep" */
		synth_tcp(c, 1, 0x18, setup, sizeof(setup));
		return;
	}
	synth_put32(data, 0x1000 + c->side[0].qpn);
	synth_put24(data + 32, c->side[0].qpn);
	synth_put24(data + 44, c->side[1].psn & 0xffffff);
	for (uint32_t mtu = o->mtu; mtu > 128; mtu /= 2)
		data[50] = (uint8_t)(data[50] + (1 << 4));
	synth_manage(c, 0, 0x10, data);
	memset(data, 0, sizeof(data));
	synth_put32(data, 0x2000 + c->side[1].qpn);
	synth_put32(data + 4, 0x1000 + c->side[0].qpn);
	synth_put24(data + 12, c->side[1].qpn);
	synth_put24(data + 20, c->side[0].psn & 0xffffff);
	synth_manage(c, 1, 0x13, data);
}

static void prepare(struct synth_connection *c, struct synth *s, uint32_t index)
{
	const struct synth_options *o = &s->options;
	uint32_t keys = o->equal_keys ? 0 : index, hosts = o->same_hosts ? 0 : index;

	*c = (struct synth_connection){.synth = s, .random = o->seed * 2654435761u + index + 1};
	for (unsigned i = 0; i < 2; i++) {
		struct synth_side *side = &c->side[i];

		side->address[0] = 0xfd;
		side->address[13] = (uint8_t)(hosts >> 8);
		side->address[14] = (uint8_t)hosts;
		side->address[15] = (uint8_t)(1 + i);
		side->address[12] = 10;
		if (o->wire == SYNTH_INFINIBAND)
			side->address[14] = (uint8_t)(hosts & 0x3f);
		side->qpn = o->wire == SYNTH_IWARP ? (i == 0 ? 40000 + keys : 20049)
		                                   : 0x11 + 2 * keys + (o->equal_keys ? 0 : i);
		side->psn = o->psn + 77 * i + (o->equal_keys ? 0 : 5000 * index);
		side->message = 1;
		side->reads = 1;
	}
}

struct synth *synth_create(const struct synth_options *options)
{
	struct synth *s = calloc(1, sizeof(*s));
	struct synth_connection *c = calloc(options->connections, sizeof(*c));

	s->options = *options;
	s->link_type = options->wire == SYNTH_INFINIBAND ? NDX_LINK_ERF
	               : options->link == SYNTH_SLL      ? NDX_LINK_SLL
	               : options->link == SYNTH_SLL2     ? NDX_LINK_SLL2
	               : options->link == SYNTH_RAW      ? NDX_LINK_RAW
	                                                 : NDX_LINK_ETHERNET;
	for (uint32_t i = 0; i < options->connections; i++) {
		prepare(&c[i], s, i);
		if (options->manager)
			introduce(&c[i]);
	}
	for (uint32_t k = 0; k < options->calls; k++) {
		for (uint32_t i = 0; i < options->connections; i++)
			converse(&c[i], 0x5000 + k + (options->equal_keys ? 0 : i * 65536));
	}
	for (uint32_t i = 0; i < options->connections; i++) {
		free(c[i].side[0].pending);
		free(c[i].side[1].pending);
	}
	free(c);
	return s;
}

void synth_free(struct synth *synth)
{
	for (size_t i = 0; i < synth->count; i++)
		free(synth->packets[i].bytes);
	free(synth->packets);
	free(synth->calls.at);
	free(synth->replies.at);
	free(synth->harmed);
	free(synth);
}
