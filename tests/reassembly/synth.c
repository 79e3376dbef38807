/* SPDX-License-Identifier: BSD-2-Clause */
/* The upper half of the generator: calls, chunks, replies. */
#include "synth.h"

#include <stdlib.h>
#include <string.h>

#include "synth_packet.h"

#define CHUNKS_MAX 4
#define SEGMENTS_MAX 4
#define HEADER_MAX 768
#define INLINE_MAX 6000

struct chunk {
	struct synth_segment segments[SEGMENTS_MAX];
	uint32_t count, length;
	uint8_t *bytes;
};

/* A conversation under construction. */
struct call {
	struct synth_connection *c;
	uint32_t xid;
	struct chunk reads[CHUNKS_MAX], writes[CHUNKS_MAX], reply;
	uint32_t read_count, write_count;
	uint32_t shape; /* enum shape */
	uint32_t talk;
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

#define PADDED_TYPE 2 /* RDMA_MSGP */
#define ERROR_TYPE 4
#define DONE_TYPE 3
#define BATCH_MAX 4

/* What a conversation may have. */
enum shape {
	PLAIN,
	READS,
	WRITES,
	REPLY,
	BOTH,
	BOTH_LONG, /* a SEND of several packets */
	LONG_CALL,
	LONG_AND_READS,
	REPLY_AND_WRITES,
	PADDED,
	BACK, /* the server calls */
	REFUSED,
	SILENT, /* no answer comes */
	SHAPES,
};

/* Segments of random lengths for a chunk of random bytes. */
static void make_chunk(struct call *call, struct chunk *k, uint32_t length, uint32_t position)
{
	static const uint32_t reused = 0x00c0ffee;
	struct synth_connection *c = call->c;
	uint32_t count = 1 + synth_below(c, SEGMENTS_MAX), left = length;
	uint64_t base = ((uint64_t)synth_below(c, 1000) << 32) + synth_below(c, 4096);

	k->bytes = malloc(length);
	k->length = length;
	for (uint32_t i = 0; i < length; i++)
		k->bytes[i] = (uint8_t)synth_random(&c->random);
	for (k->count = 0; k->count < count && left > 0; k->count++) {
		struct synth_segment *s = &k->segments[k->count];

		s->length = k->count + 1 == count ? left : 1 + synth_below(c, left);
		s->handle = c->synth->options.reuse ? reused : synth_random(&c->random) | 1;
		s->offset = base;
		s->position = position;
		base += s->length + 4096;
		left -= s->length;
	}
}

static uint32_t put_segment(uint8_t *p, const struct synth_segment *s, uint32_t length)
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
	if (type != PADDED_TYPE)
		return 16;
	synth_put32(p + 16, 4096);
	synth_put32(p + 20, 1024);
	return 24;
}

/* The truth of a call: what it is made of, with its read chunks at their positions. */
static void note_call(const struct call *call, bool long_call)
{
	static const uint8_t zeros[4];
	const uint8_t *base = long_call ? call->reads[0].bytes : call->inline_bytes;
	uint32_t length = long_call ? call->reads[0].length : call->inline_length;
	struct ndx_piece pieces[3 * CHUNKS_MAX + 1];
	uint32_t used = 0, written = 0;
	size_t count = 0;

	for (uint32_t i = long_call ? 1 : 0; i < call->read_count; i++) {
		const struct chunk *k = &call->reads[i];
		uint32_t padding = -k->length & 3, part = k->segments[0].position - written;

		pieces[count++] = (struct ndx_piece){base + used, part};
		pieces[count++] = (struct ndx_piece){k->bytes, k->length};
		pieces[count++] = (struct ndx_piece){zeros, padding};
		used += part;
		written += part + k->length + padding;
	}
	pieces[count++] = (struct ndx_piece){base + used, length - used};
	synth_note(&call->c->synth->calls, call->talk, pieces, count);
}

/* What the client sends. */
static void make_call(struct call *call)
{
	struct synth_connection *c = call->c;
	bool long_call = call->shape == LONG_CALL || call->shape == LONG_AND_READS;
	uint8_t message[HEADER_MAX + INLINE_MAX];
	uint32_t type = long_call               ? 1
	                : call->shape == PADDED ? PADDED_TYPE
	                                        : 0,
		 at = put_header(message, call->xid, type), invalidate = 0;

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
	note_call(call, long_call);
	if (!long_call) {
		memcpy(message + at, call->inline_bytes, call->inline_length);
		at += call->inline_length;
	} else if (synth_below(c, 4) == 0) {
		memset(message + at, 0xee, 8); /* which is no part of the message */
		at += 8;
	}
	synth_send_message(c, call->shape == BACK ? 1 : 0, message, at, invalidate);
	synth_ack(c, call->shape == BACK ? 0 : 1, c->side[call->shape == BACK].psn - 1);
}

/* The server fetches what the call left outside: all requests, then all answers, or one by one. */
static void fetch(struct call *call)
{
	struct synth_read reads[CHUNKS_MAX * SEGMENTS_MAX];
	struct synth_connection *c = call->c;
	bool together = c->synth->options.pipelined && !c->synth->options.retry;

	for (unsigned round = 0; round < (together ? 2 : 1); round++) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < call->read_count; i++) {
			const struct chunk *k = &call->reads[i];

			for (uint32_t s = 0, at = 0; s < k->count; s++, n++) {
				if (round == 0)
					synth_read_request(c, &k->segments[s], n, &reads[n]);
				if (round == 1 || !together)
					synth_read_answer(c, &k->segments[s], &reads[n],
					                  k->bytes + at);
				at += k->segments[s].length;
			}
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
			synth_write_segment(c, &k->segments[s], k->bytes + at, lengths[s]);
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
	uint32_t body = 24 + 4 * synth_below(c, 20), invalidate = 0;
	uint8_t inline_bytes[128];
	size_t count = 1;

	synth_put32(message + at, 0);
	at += 4;
	for (uint32_t i = 0; i < call->write_count; i++) {
		struct chunk *k = &call->writes[i];
		uint32_t length =
			synth_below(c, 3) == 0 ? synth_below(c, k->length + 1) : k->length;

		length = fill_chunk(c, k, length, lengths);
		at += put_chunk(message + at, k, lengths);
		pieces[count++] = (struct ndx_piece){k->bytes, length};
		invalidate = k->segments[0].handle;
	}
	synth_put32(message + at, 0);
	at += 4;
	if (call->has_reply) {
		uint32_t length = fill_chunk(c, &call->reply,
		                             call->reply.length - synth_below(c, 4), lengths);

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
	synth_note(&c->synth->replies, call->talk, pieces, count);
	synth_send_message(c, call->shape == BACK ? 0 : 1, message, at + body, invalidate);
	synth_ack(c, call->shape == BACK ? 1 : 0, c->side[call->shape != BACK].psn - 1);
}

/* The server refuses: it cannot use the version, or the chunks. */
static void make_error(struct call *call)
{
	struct synth_connection *c = call->c;
	uint8_t message[32];
	uint32_t at = put_header(message, call->xid, ERROR_TYPE), code = 1 + synth_below(c, 2);

	synth_put32(message + at, code);
	synth_put32(message + at + 4, 1);
	synth_put32(message + at + 8, 1);
	c->synth->errors++;
	synth_send_message(c, 1, message, at + (code == 1 ? 12 : 4), 0);
	synth_ack(c, 0, c->side[1].psn - 1);
}

/* The client has used the reply: an old custom, of no consequence. */
static void make_done(struct call *call)
{
	uint8_t message[16];

	(void)put_header(message, call->xid, DONE_TYPE);
	synth_send_message(call->c, 0, message, sizeof(message), 0);
	synth_ack(call->c, 1, call->c->side[0].psn - 1);
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

	for (uint32_t n = 1 + synth_below(c, 3); n > 0; n--) {
		uint32_t length = 1 + synth_below(c, c->synth->options.chunk);

		make_chunk(call, &call->reads[call->read_count++], length, position);
		position += ((length + 3) & ~3u) + 4 * synth_below(c, 2);
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

static void make_chunks(struct call *call)
{
	struct synth_connection *c = call->c;
	uint32_t most = c->synth->options.chunk, shape = call->shape;

	if (shape == LONG_CALL || shape == LONG_AND_READS) {
		make_chunk(call, &call->reads[call->read_count++], 100 + synth_below(c, most), 0);
		memcpy(call->reads[0].bytes, call->inline_bytes, 40);
	}
	if (shape == READS || shape == BOTH_LONG || shape == BOTH || shape == LONG_AND_READS ||
	    shape == REFUSED)
		make_reads(call);
	if (shape == WRITES || shape == BOTH_LONG || shape == BOTH || shape == REPLY_AND_WRITES) {
		call->write_count = 1 + synth_below(c, 2);
		for (uint32_t i = 0; i < call->write_count; i++)
			make_chunk(call, &call->writes[i], 1 + synth_below(c, most), 0);
	}
	if (shape == REPLY || shape == LONG_CALL || shape == REPLY_AND_WRITES) {
		make_chunk(call, &call->reply, 64 + synth_below(c, most), 0);
		call->has_reply = true;
	}
}

static struct call *begin_call(struct synth_connection *c, uint32_t xid)
{
	struct call *call = calloc(1, sizeof(*call));

	call->c = c;
	call->xid = xid;
	call->talk = c->synth->talk = ++c->synth->talks;
	call->shape = synth_below(c, SHAPES);
	make_inline(call, call->shape == BOTH_LONG ? 1500 + 4 * synth_below(c, 1000)
	                                           : 40 + 4 * synth_below(c, 40));
	make_chunks(call);
	make_call(call);
	return call;
}

static void end_call(struct call *call)
{
	call->c->synth->talk = call->talk;
	if (call->shape != SILENT)
		fetch(call);
	if (call->shape == SILENT)
		call->c->synth->unanswered++;
	else if (call->shape == REFUSED)
		make_error(call);
	else
		make_reply(call);
	if (call->shape == LONG_CALL)
		make_done(call);
	free_call(call);
	free(call);
}

/* Conversations of random shapes: one after the other, or several at a time. */
static uint32_t converse(struct synth_connection *c, uint32_t xid, uint32_t most)
{
	const struct synth_options *o = &c->synth->options;
	uint32_t n = o->pipelined && !o->reuse ? 1 + synth_below(c, BATCH_MAX) : 1;
	struct call *calls[BATCH_MAX];

	if (n > most)
		n = most;
	for (uint32_t i = 0; i < n; i++)
		calls[i] = begin_call(c, xid + i);
	for (uint32_t left = n; left > 0; left--) {
		uint32_t i = synth_below(c, left);

		end_call(calls[i]);
		calls[i] = calls[left - 1];
	}
	c->synth->talk = 0;
	return n;
}

static void introduce(struct synth_connection *c)
{
	uint8_t data[232] = {0}, setup[24] = "MPA ID Req Frame";
	const struct synth_options *o = &c->synth->options;

	if (synth_iwarp(c)) {
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
	synth_put32(data, 0x1000 + c->side[0].qpn + (c->generation << 16));
	synth_put24(data + 32, c->side[0].qpn);
	synth_put24(data + 44, c->side[1].psn & 0xffffff);
	for (uint32_t mtu = o->mtu; mtu > 128; mtu /= 2)
		data[50] = (uint8_t)(data[50] + (1 << 4));
	synth_manage(c, 0, 0x10, data);
	memset(data, 0, sizeof(data));
	synth_put32(data, 0x2000 + c->side[1].qpn + (c->generation << 16));
	synth_put32(data + 4, 0x1000 + c->side[0].qpn + (c->generation << 16));
	synth_put24(data + 12, c->side[1].qpn);
	synth_put24(data + 20, c->side[0].psn & 0xffffff);
	synth_manage(c, 1, 0x13, data);
}

static void prepare(struct synth_connection *c, struct synth *s, uint32_t index,
                    uint32_t generation)
{
	const struct synth_options *o = &s->options;
	uint32_t keys = o->equal_keys ? 0 : index, hosts = o->same_hosts ? 0 : index;

	*c = (struct synth_connection){.synth = s,
	                               .generation = generation,
	                               .random = o->seed * 2654435761u + index + 1 +
	                                         generation * 12345};
	for (unsigned i = 0; i < 2; i++) {
		struct synth_side *side = &c->side[i];

		side->address[0] = 0xfd;
		side->address[13] = (uint8_t)(hosts >> 8);
		side->address[14] = (uint8_t)hosts;
		side->address[15] = (uint8_t)(1 + i);
		side->address[12] = 10;
		if (o->wire == SYNTH_INFINIBAND)
			side->address[14] = (uint8_t)(hosts & 0x3f);
		side->qpn = synth_iwarp(c) ? (i == 0 ? 40000 + keys : 20049)
		                           : 0x11 + 2 * keys + (o->equal_keys ? 0 : i);
		side->psn = o->psn + 77 * i + (o->equal_keys ? 0 : 5000 * index) -
		            generation * o->again;
		side->message = 1;
		side->reads = 1;
	}
}

/* All connections, from beginning to end. */
static void speak(struct synth *s, uint32_t generation)
{
	const struct synth_options *o = &s->options;
	struct synth_connection *c = calloc(o->connections, sizeof(*c));

	for (uint32_t i = 0; i < o->connections; i++) {
		prepare(&c[i], s, i, generation);
		if (o->manager)
			introduce(&c[i]);
	}
	for (bool any = true; any;) {
		any = false;
		for (uint32_t i = 0; i < o->connections; i++) {
			uint32_t k = c[i].calls, xid = 0x5000 + k + (generation << 12);

			if (k == o->calls)
				continue;
			xid += o->equal_keys ? 0 : i * 65536;
			c[i].calls += converse(&c[i], xid, o->calls - k);
			any = true;
		}
	}
	for (uint32_t i = 0; i < o->connections; i++) {
		free(c[i].side[0].pending);
		free(c[i].side[1].pending);
	}
	free(c);
}

struct synth *synth_create(const struct synth_options *options)
{
	struct synth *s = calloc(1, sizeof(*s));

	s->options = *options;
	s->calls.prefix = options->call_prefix;
	s->replies.prefix = options->reply_prefix;
	s->link_type = NDX_LINK_ETHERNET;
	if (options->wire == SYNTH_INFINIBAND || options->link == SYNTH_ERF_ETHERNET)
		s->link_type = NDX_LINK_ERF;
	else if (options->link == SYNTH_SLL)
		s->link_type = NDX_LINK_SLL;
	else if (options->link == SYNTH_SLL2)
		s->link_type = NDX_LINK_SLL2;
	else if (options->link == SYNTH_RAW)
		s->link_type = NDX_LINK_RAW;
	speak(s, 0);
	if (options->again > 0)
		speak(s, 1);
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
