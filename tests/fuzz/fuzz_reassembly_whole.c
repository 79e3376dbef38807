/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole captures. A byte of settings, then either packets, each behind two bytes of length and one
 * that says how much of it the capture cut; or what a generator shall make, and how that is to be
 * spoiled. Memory stays within its bound and everything is given back; and where no byte of a
 * packet was changed, no message comes out that was not sent.
 */
#include <ndx/reassembly.h>
#include <stdlib.h>

#include "fuzz.h"
#include "rdma.h"
#include "synth.h"

/* Settings: the first three bits are the link type of packets. */
#define CHECK_CRC 8
#define SMALL_LIMITS 16
#define GENERATE 32
#define FILL 128
#define SPOILED_MAX 12
#define TIGHT 64 /* a byte follows: so many KiB of memory are left */

struct seen {
	uint64_t sum;
	struct synth_messages calls, replies;
	bool note;
};

/* FUZZ_HOLDS as a function: there are many of them. */
static void holds(bool condition)
{
	FUZZ_HOLDS(condition);
}

/* Touch every byte that an event offers. */
static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	static uint8_t buffer[300];
	struct seen *seen = context;

	if (event->type == NDX_REASSEMBLY_SEND) {
		for (size_t i = 0; i < event->send.length; i++)
			seen->sum += event->send.bytes[i];
	}
	if (event->type != NDX_REASSEMBLY_CALL && event->type != NDX_REASSEMBLY_REPLY)
		return;
	for (size_t i = 0; i < event->rpc.piece_count; i++) {
		for (size_t k = 0; k < event->rpc.pieces[i].length; k++)
			seen->sum += event->rpc.pieces[i].bytes[k];
	}
	seen->sum +=
		ndx_piece_copy(event->rpc.pieces, event->rpc.piece_count, buffer, sizeof(buffer));
	if (seen->note && event->rpc.call_known)
		synth_note(event->type == NDX_REASSEMBLY_CALL ? &seen->calls : &seen->replies, 0,
		           event->rpc.pieces, event->rpc.piece_count);
	for (size_t i = 0; i < event->rpc.chunk_count; i++) {
		const struct ndx_rpc_chunk *c = &event->rpc.chunks[i];

		for (size_t k = 0; k < c->piece_count; k++)
			seen->sum += event->rpc.pieces[c->first_piece + k].length;
	}
}

/* The input, byte by byte; 0 behind its end. */
struct input {
	const uint8_t *at;
	size_t left;
};

static uint32_t take_byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static uint32_t take16(struct input *in)
{
	uint32_t high = take_byte(in);

	return high << 8 | take_byte(in);
}

/* Settings that are wrong, one at a time. */
static void refuse(struct ndx_reassembly_attr good)
{
	struct ndx_packet packet = {.captured = 1};
	struct ndx_reassembly_attr bad[7];
	struct ndx_reassembly *r = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].size = 1;
	bad[1].on_event = NULL;
	bad[2].max_bytes = 9;
	bad[3].max_segments = 0;
	bad[4].max_connections = 0;
	bad[5].max_segments = UINT32_MAX;
	bad[6].max_connections = UINT32_MAX;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		holds(ndx_reassembly_create(&bad[i], &r) == NDX_E_INVALID_PARAMETER);
	holds(ndx_reassembly_create(NULL, &r) == NDX_E_INVALID_PARAMETER);
	holds(ndx_reassembly_create(&good, NULL) == NDX_E_INVALID_PARAMETER && r == NULL);
	holds(ndx_reassembly_create(&good, &r) == NDX_OK);
	holds(ndx_reassembly_feed(r, &packet) == NDX_E_INVALID_PARAMETER);
	holds(ndx_reassembly_feed(r, NULL) == NDX_E_INVALID_PARAMETER);
	holds(ndx_reassembly_feed(NULL, &packet) == NDX_E_INVALID_PARAMETER);
	holds(ndx_reassembly_size(r) == 0);
	ndx_reassembly_reset(r);
	ndx_reassembly_close(r);
	ndx_reassembly_close(NULL);
	for (unsigned i = 0; i < 256; i++)
		holds(ndx_rdma_opcode_name((uint8_t)i) != NULL &&
		      ndx_rdmap_opcode_name((uint8_t)i) != NULL);
}

static struct ndx_reassembly *create(uint32_t settings, struct input *in, struct seen *seen,
                                     size_t *limit)
{
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *r;
	struct rdma *inner;

	ndx_reassembly_attr_init(&attr);
	attr.on_event = on_event;
	attr.context = seen;
	attr.max_bytes = 1 << 20;
	attr.check_crc = (settings & CHECK_CRC) != 0;
	if ((settings & SMALL_LIMITS) != 0) {
		attr.max_segments = 5;
		attr.max_connections = 2;
		attr.reorder_packets = 3;
	}
	if ((settings & 7) == 6)
		refuse(attr);
	if (ndx_reassembly_create(&attr, &r) != NDX_OK)
		return NULL;
	*limit = attr.max_bytes;
	if ((settings & TIGHT) != 0) {
		inner = (struct rdma *)(void *)r; /* its first member */
		inner->mem.limit = inner->mem.held + 512 * take_byte(in);
		inner->attr.max_bytes = 8192; /* room is made late: some packets find none */
		*limit = inner->mem.limit;
	}
	return r;
}

static void packets(struct ndx_reassembly *r, struct input *in, uint32_t type)
{
	while (in->left >= 3) {
		uint32_t length = take16(in), cut = take_byte(in);
		struct ndx_packet packet = {.time_ns = in->left, .link_type = type};
		uint8_t *copy;

		if (length > in->left)
			length = (uint32_t)in->left;
		packet.captured = length;
		packet.original = length + cut;
		copy = malloc(length > 0 ? length : 1);
		if (copy == NULL)
			return;
		for (uint32_t i = 0; i < length; i++)
			copy[i] = (uint8_t)take_byte(in);
		packet.bytes = copy;
		(void)ndx_reassembly_feed(r, &packet);
		free(copy);
	}
}

static struct synth *generate(struct input *in, bool check)
{
	uint32_t flags, more;
	struct synth_options o;

	synth_defaults(&o);
	o.wire = (enum synth_wire)(take_byte(in) % SYNTH_WIRES);
	o.link = (enum synth_link)(take_byte(in) % SYNTH_LINKS);
	o.seed = 1 + take_byte(in);
	o.mtu = 256u << take_byte(in) % 5;
	o.psn = take_byte(in) << 16 | 0xff80;
	o.connections = 1 + take_byte(in) % 3;
	o.calls = 1 + take_byte(in) % 6;
	o.chunk = 100 + 16 * take_byte(in);
	flags = take_byte(in);
	more = take_byte(in);
	o.equal_keys = (flags & 1) != 0;
	o.same_hosts = (flags & 2) != 0 && !o.equal_keys;
	o.manager = (flags & 4) != 0;
	o.acknowledge = (flags & 8) != 0;
	o.retry = (flags & 16) != 0;
	o.reuse = (flags & 32) != 0;
	o.crc = (flags & 64) != 0;
	o.markers = (flags & 128) != 0 && o.manager; /* they are recognised from the beginning */
	o.unaligned = (more & 1) != 0 && !o.markers; /* without a set-up that is beyond us */
	o.xrc = (more & 2) != 0;
	o.global = (more & 4) != 0;
	o.pipelined = (more & 8) != 0;
	o.again = o.manager ? more >> 4 : 0;
	o.unchecked = !check;
	return synth_create(&o);
}

static void remove_packet(struct synth *s, size_t at)
{
	free(s->packets[at].bytes);
	s->count--;
	for (; at < s->count; at++)
		s->packets[at] = s->packets[at + 1];
}

/* A byte of a packet: of the transport's headers, of those before, or any. */
static uint32_t place(const struct synth *s, const struct synth_packet *p, uint32_t at)
{
	static const uint32_t link[] = {14, 18, 16, 20, 0, 22, 40},
			      wire[] = {28, 48, 40, 8, 40, 60};
	uint32_t begin = wire[s->options.wire];

	if (s->options.wire == SYNTH_INFINIBAND)
		begin += 16 + (s->options.global ? 40 : 0);
	else
		begin += link[s->options.link];
	switch (at >> 14) {
	case 0:
	case 1:
		return (begin + at % 64) % p->captured;
	case 2:
		return at % 64 % p->captured;
	default:
		return at % p->captured;
	}
}

/*
 * One way of spoiling. True if what comes out may be wrong: bytes of a packet are other than they
 * were, or late packets of a connection fall among those of its successor with the same numbers.
 */
static bool spoil(struct synth *s, struct input *in)
{
	uint32_t how = take_byte(in), much = take_byte(in);
	struct synth_packet *p;

	if (s->count == 0)
		return false;
	p = &s->packets[take16(in) % s->count];
	switch (how % 8) {
	case 0:
		synth_shuffle(s, 1 + much % 64, 1 + how);
		return s->options.again > 0;
	case 1:
		synth_double(s, 20 * much, 1 + how);
		return s->options.again > 0;
	case 2:
		synth_drop(s, 4 * much, 1 + how);
		return false;
	case 3:
		synth_cut(s, 40 + 4 * much);
		return false;
	case 4:
		remove_packet(s, (size_t)(p - s->packets));
		return false;
	case 5:
		p->captured = p->captured * much / 256;
		return false;
	case 6:
		p->time_ns += UINT64_C(1000000000) * much * much;
		return false;
	default:
		if (p->captured > 0)
			p->bytes[place(s, p, take16(in))] = (uint8_t)much;
		return true;
	}
}

static void feed(struct ndx_reassembly *r, const struct synth *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct synth_packet *p = &s->packets[i];
		uint8_t *copy = malloc(p->captured > 0 ? p->captured : 1);
		struct ndx_packet packet = {copy, p->time_ns, p->captured, p->original,
		                            s->link_type};

		if (copy == NULL)
			return;
		for (uint32_t k = 0; k < p->captured; k++)
			copy[k] = p->bytes[k];
		(void)ndx_reassembly_feed(r, &packet);
		free(copy);
	}
}

/* What the library does not do itself with what it holds, but offers as NFStest did. */
static void look_at(const struct segment *s)
{
	static uint8_t buffer[8192];

	holds(segment_size(s) <= s->length);
	holds(segment_get_data(s, false, buffer, sizeof(buffer)) == s->length);
	holds(segment_get_data(s, true, buffer, 5) % 4 == 0);
	(void)segment_valid_psn(s, 7);
	for (struct ndxp_list *k = s->subs.next; k != &s->subs; k = k->next) {
		struct sub_segment *sub = container_of(k, struct sub_segment, in_segment);

		holds(sub_segment_size(sub) <= segment_size(s));
		(void)sub_segment_get_data(sub, true, buffer, sizeof(buffer));
		(void)sub_segment_get_data(sub, false, buffer, 70);
		holds(segment_valid_psn(s, sub->first));
	}
}

static void look(struct ndx_reassembly *r)
{
	struct rdma *inner = (struct rdma *)(void *)r;

	for (struct ndxp_list *at = inner->ages.next; at != &inner->ages; at = at->next) {
		const struct exchange *x = container_of(at, struct exchange, age);

		for (uint32_t i = 0; i < x->segment_count; i++)
			look_at(x->segments[i]);
	}
}

/* A hole filled by hand; what stands there is not what was sent. */
static void fill_holes(struct ndx_reassembly *r)
{
	static const uint8_t data[600] = {1, 2, 3};
	struct rdma *inner = (struct rdma *)(void *)r;

	for (struct ndxp_list *at = inner->ages.next; at != &inner->ages; at = at->next) {
		const struct exchange *x = container_of(at, struct exchange, age);

		for (uint32_t i = 0; i < x->segment_count; i++) {
			struct segment *s = x->segments[i];

			for (uint64_t n = 0; n < 3; n++)
				(void)segment_add_data(s, &inner->mem,
				                       (UINT64_C(1) << 32) + 0xff80 + n, n == 2,
				                       data, 256 + 100 * (uint32_t)n);
		}
	}
}

/* What came out was said; not more often, if `once`: what was given up for want of room may come
 * again with its packets. */
static void compare(struct seen *seen, struct synth *s, bool once)
{
	if (once) {
		holds(synth_subset(&seen->calls, &s->calls));
		holds(synth_subset(&seen->replies, &s->replies));
	}
	holds(synth_among(&seen->calls, &s->calls));
	holds(synth_among(&seen->replies, &s->replies));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {1, 101, 113, 197, 228, 229, 247, 276};
	struct input in = {data, size};
	struct ndx_reassembly_stats stats = {.size = sizeof(stats)};
	struct ndx_reassembly *r;
	struct synth *s = NULL;
	struct seen seen = {0};
	uint32_t settings;
	size_t limit;

	if (size < 1 || size > (1 << 20))
		return 0;
	settings = take_byte(&in);
	r = create(settings, &in, &seen, &limit);
	if (r == NULL)
		return 0;
	if ((settings & GENERATE) != 0) {
		s = generate(&in, (settings & CHECK_CRC) != 0);
		seen.note = true;
		for (int i = 0; i < SPOILED_MAX && in.left >= 4; i++)
			seen.note = !spoil(s, &in) && seen.note;
		feed(r, s);
		look(r);
		if ((settings & FILL) != 0) {
			fill_holes(r);
			look(r);
			seen.note = false;
		}
	} else {
		packets(r, &in, types[settings & 7]);
	}
	ndx_reassembly_flush(r);
	holds(ndx_reassembly_get_stats(r, &stats) == NDX_OK);
	holds(stats.bytes_peak <= limit);
	holds(stats.segments == 0);
	ndx_reassembly_close(r);
	if (s != NULL) {
		if (seen.note)
			compare(&seen, s, (settings & (SMALL_LIMITS | TIGHT)) == 0);
		synth_free(s);
	}
	free(seen.calls.at);
	free(seen.replies.at);
	return 0;
}
