/* SPDX-License-Identifier: BSD-2-Clause */
/* From TCP segments to frames of MPA: detects connections, frames, markers and CRCs. */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "mpa_marker.h"
#include "rdma.h"
#include "stream.h"

enum state {
	STATE_START,   /* nothing detected yet */
	STATE_FIRST,   /* after the set-up frame; a marker may come first */
	STATE_FRAMES,  /* between frames */
	STATE_LOST,    /* bytes are missing: a frame must begin with a segment */
	STATE_FOREIGN, /* not iWARP */
};

enum crcs { CRCS_UNKNOWN, CRCS_YES, CRCS_NO };

#define TRIES_MAX 32
#define HEAD 6 /* length, DDP and RDMAP control, and the part that distinguishes queues */

/* The result of parsing a part of the stream. */
enum verdict {
	VERDICT_USED, /* `size` bytes were consumed */
	VERDICT_MORE, /* `size` bytes are needed */
	VERDICT_BAD,  /* no frame can begin here */
};

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t crc_of(const struct rdma *r, const uint8_t *bytes, uint32_t length)
{
	return ~crc_update(r->crc->castagnoli, 0xffffffffu, bytes, length);
}

/* Whether the CRC of a frame is correct. The CRC includes the markers in the frame. A marker
 * directly before the length field belongs to the frame, too (RFC 5044: its pointer is 0), but not
 * for every sender: accept both. */
static bool crc_agrees(const struct rdma *r, const struct stream *s, const struct view *v,
                       uint32_t raw)
{
	uint32_t crc = get_le32(v->bytes + raw - 4);

	if (crc_of(r, v->bytes, raw - 4) == crc)
		return true;
	return s->markers && marker_distance(s, v->order) == 0 &&
	       crc_of(r, v->bytes + MPA_MARKER_SIZE, raw - 4 - MPA_MARKER_SIZE) == crc;
}

/* Whether frames of this direction have CRCs: the set-up frame of either side decides. */
static void learn_crcs(struct stream *s, const struct flow *flow, bool agrees)
{
	const struct stream *back =
		flow->pair != NULL && flow->pair->stream != NULL ? flow->pair->stream : NULL;

	if ((s->setup && s->crc) || (back != NULL && back->setup && back->crc))
		s->crcs = CRCS_YES;
	else if (s->setup && back != NULL && back->setup)
		s->crcs = CRCS_NO;
	else
		s->crcs = agrees ? CRCS_YES : CRCS_NO;
}

static bool crc_good(struct rdma *r, struct flow *flow, const struct view *v, uint32_t raw)
{
	struct stream *s = flow->stream;
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_BAD_CRC};
	bool agrees;

	if (r->crc == NULL || s->crcs == CRCS_NO || v->captured < raw)
		return true;
	agrees = crc_agrees(r, s, v, raw);
	if (s->crcs == CRCS_UNKNOWN)
		learn_crcs(s, flow, agrees);
	if (s->crcs == CRCS_NO)
		return true;
	r->stats.crc_checked++;
	if (agrees)
		return true;
	r->stats.bad_crc++;
	rdma_report(r, flow, &event);
	return false;
}

static void recognised(struct rdma *r, struct flow *flow)
{
	struct flow *back;

	flow->stream->recognised = true;
	if (flow->pair != NULL)
		return;
	back = flow_reverse(r, flow);
	if (back != NULL && back != flow)
		flow_pair(r, flow, back);
}

/* How well a frame of `plain` bytes fits here, if it ends within the captured bytes. */
enum fit { FIT_NOT, FIT_NEXT, FIT_END };

static enum fit fit(const struct stream *s, const struct view *v, uint32_t plain)
{
	uint32_t raw = marker_raw(s, v->order, plain);
	struct view next = {v->bytes + raw, 0, 0, v->order + raw};
	uint8_t first[4];

	if (v->length <= raw)
		return FIT_END;
	/* Another frame follows: check as much of its header as was captured. */
	if (v->captured < raw + marker_raw(s, next.order, 2))
		return FIT_NEXT;
	marker_strip(s, &next, first, 2);
	if (ndxp_get_be16(first) < DDP_TAGGED_SIZE)
		return FIT_NOT;
	if (v->captured < raw + marker_raw(s, next.order, sizeof(first)))
		return FIT_NEXT;
	marker_strip(s, &next, first, sizeof(first));
	return ddp_plausible(first + 2, ndxp_get_be16(first)) ? FIT_NEXT : FIT_NOT;
}

/* A frame begins here, in a stream whose set-up was not captured: detect whether there are markers.
 * A marker is a word that equals its own distance from the frame's beginning; another word may do
 * so by accident. */
static void learn_markers(struct stream *s, const struct view *v, uint32_t plain)
{
	enum fit without;
	uint32_t at;

	if (s->markers_known || s->markers)
		return;
	without = fit(s, v, plain);
	at = without == FIT_END ? 0 : marker_find(v, plain);
	if (at == 0)
		return;
	s->markers = true;
	s->marker_base = v->order + at;
	s->markers_known = s->markers = fit(s, v, plain) > without;
}

/* Whether a frame can begin here, in the middle of a stream. */
static bool frame_likely(const struct stream *s, const struct view *v)
{
	uint32_t ulpdu, head = marker_raw(s, v->order, HEAD);
	uint8_t first[HEAD];

	if (v->captured < head)
		return false;
	marker_strip(s, v, first, HEAD);
	ulpdu = ndxp_get_be16(first);
	return ulpdu >= DDP_TAGGED_SIZE && ddp_plausible(first + 2, ulpdu) &&
	       fit(s, v, mpa_frame_size(ulpdu)) != FIT_NOT;
}

/* Parse where a frame must begin. */
static enum verdict frame(struct rdma *r, struct flow *flow, const struct view *v, uint32_t *size)
{
	struct stream *s = flow->stream;
	uint32_t head = marker_raw(s, v->order, HEAD), ulpdu, raw, plain;
	const uint8_t *bytes = v->bytes;
	uint8_t first[HEAD];
	struct ddp d;

	*size = head;
	if (v->captured < head)
		return VERDICT_MORE;
	marker_strip(s, v, first, HEAD);
	ulpdu = ndxp_get_be16(first);
	if (ulpdu < DDP_TAGGED_SIZE || !ddp_plausible(first + 2, ulpdu))
		return VERDICT_BAD;
	plain = mpa_frame_size(ulpdu);
	raw = marker_raw(s, v->order, plain);
	*size = raw;
	if (v->length < raw)
		return VERDICT_MORE;
	learn_markers(s, v, plain);
	*size = raw = marker_raw(s, v->order, plain);
	if (v->length < raw)
		return VERDICT_MORE;
	if (!crc_good(r, flow, v, raw))
		return VERDICT_USED;
	if (s->markers && v->captured >= raw) {
		uint8_t *grown = mem_grow(&r->mem, r->unmarked, &r->unmarked_room, plain, 1);

		if (grown == NULL)
			return VERDICT_USED;
		r->unmarked = grown;
		marker_strip(s, v, r->unmarked, plain);
		bytes = r->unmarked;
	} else if (s->markers) {
		return VERDICT_USED; /* incomplete capture: skip the CRC */
	}
	r->stats.rdma_packets++;
	if (ddp_parse(bytes + 2,
	              v->captured < raw && v->captured - 2 < ulpdu ? v->captured - 2 : ulpdu, ulpdu,
	              &d))
		ddp_frame(r, flow, &d, v->order + 1);
	else
		r->stats.malformed++;
	return VERDICT_USED;
}

/* Like frame_likely(), if the use of markers is unknown: a marker may be right here. */
static bool likely_with_markers(struct stream *s, const struct view *v)
{
	uint32_t ulpdu;

	if (s->markers_known)
		return frame_likely(s, v);
	if (v->captured < HEAD)
		return false;
	ulpdu = ndxp_get_be16(v->bytes);
	if (ndxp_get_be32(v->bytes) == 0) {
		s->markers = true;
		s->marker_base = v->order;
	} else if (ulpdu >= DDP_TAGGED_SIZE) {
		learn_markers(s, v, mpa_frame_size(ulpdu));
	}
	if (frame_likely(s, v)) {
		s->markers_known = s->markers_known || s->markers;
		return true;
	}
	s->markers_known = false;
	s->markers = false;
	return false;
}

static void set_up(struct rdma *r, struct flow *flow, const struct mpa_setup *setup)
{
	flow->stream->setup = true;
	flow->stream->crc = setup->crc;
	flow->stream->state = STATE_FIRST;
	recognised(r, flow);
}

static enum verdict start(struct rdma *r, struct flow *flow, const struct view *v, uint32_t *size)
{
	struct stream *s = flow->stream;
	struct mpa_setup setup;

	switch (mpa_setup_parse(v->bytes, v->captured, &setup)) {
	case MPA_YES:
		*size = MPA_SETUP_SIZE + (uint32_t)setup.private_length;
		set_up(r, flow, &setup);
		return VERDICT_USED;
	case MPA_MORE:
		*size = v->captured + 1;
		return VERDICT_MORE;
	case MPA_NO:
		break;
	}
	if (!likely_with_markers(s, v))
		return VERDICT_BAD;
	s->state = STATE_FRAMES;
	recognised(r, flow);
	return frame(r, flow, v, size);
}

/* The first frame after the set-up: if it begins with a marker, markers are in use. */
static enum verdict first_frame(struct rdma *r, struct flow *flow, const struct view *v,
                                uint32_t *size)
{
	static const uint8_t marker[MPA_MARKER_SIZE];
	struct stream *s = flow->stream;

	*size = MPA_MARKER_SIZE;
	if (v->captured < MPA_MARKER_SIZE)
		return VERDICT_MORE;
	s->markers_known = true;
	if (memcmp(v->bytes, marker, sizeof(marker)) == 0) {
		s->markers = true;
		s->marker_base = v->order;
	}
	s->state = STATE_FRAMES;
	return frame(r, flow, v, size);
}

static enum verdict step(struct rdma *r, struct flow *flow, const struct view *v, uint32_t *size)
{
	switch ((enum state)flow->stream->state) {
	case STATE_START:
		return start(r, flow, v, size);
	case STATE_FIRST:
		return first_frame(r, flow, v, size);
	case STATE_FRAMES:
		return frame(r, flow, v, size);
	case STATE_LOST:
	case STATE_FOREIGN:
		break;
	}
	return VERDICT_BAD;
}

static void drop_partial(struct rdma *r, struct stream *s)
{
	mem_put(&r->mem, s->partial, s->partial_room);
	s->partial = NULL;
	s->partial_room = 0;
	s->partial_fill = 0;
}

static void lose(struct rdma *r, struct flow *flow)
{
	struct stream *s = flow->stream;

	s->partial_fill = 0;
	if (s->recognised) {
		s->state = STATE_LOST;
		r->stats.malformed++;
		ddp_lost(flow, s->next);
	} else if (++s->tries >= TRIES_MAX) {
		s->state = STATE_FOREIGN;
		drop_partial(r, s);
	}
}

/* Bytes are missing from `sequence` on: search for the next frame behind them. */
static void pass_over(struct flow *flow, uint32_t sequence)
{
	struct stream *s = flow->stream;

	s->partial_fill = 0;
	if (!s->recognised)
		return;
	s->state = STATE_LOST;
	ddp_lost(flow, sequence);
}

/* Append to the incomplete frame; false if out of memory. */
static bool append(struct rdma *r, struct stream *s, const uint8_t *bytes, uint32_t length)
{
	uint8_t *grown =
		mem_grow(&r->mem, s->partial, &s->partial_room, s->partial_fill + length, 1);

	if (grown == NULL)
		return false;
	s->partial = grown;
	memcpy(s->partial + s->partial_fill, bytes, length);
	s->partial_fill += length;
	return true;
}

/* Complete the incomplete frame. Returns the number of bytes used; all if more are needed. */
static uint32_t go_on(struct rdma *r, struct flow *flow, const struct view *v)
{
	struct stream *s = flow->stream;
	uint32_t used = 0, size = 0;

	while (s->partial_fill > 0) {
		struct view whole = {s->partial, s->partial_fill, s->partial_fill,
		                     v->order + used - s->partial_fill};
		enum verdict verdict = step(r, flow, &whole, &size);
		uint32_t part;

		if (verdict == VERDICT_BAD) {
			lose(r, flow);
			return v->length;
		}
		if (verdict == VERDICT_USED) {
			/* Only a set-up frame leaves bytes over, because otherwise exactly `size`
			 * was requested. */
			s->partial_fill -= size < s->partial_fill ? size : s->partial_fill;
			memmove(s->partial, s->partial + size, s->partial_fill);
			continue;
		}
		part = size - s->partial_fill;
		if (part > v->captured - used)
			part = v->captured - used;
		if (part == 0)
			return v->length;
		if (!append(r, s, v->bytes + used, part)) {
			lose(r, flow);
			return v->length;
		}
		used += part;
	}
	return used;
}

/* Parse the next bytes of the stream. A segment begins here. */
static void use(struct rdma *r, struct flow *flow, struct view v)
{
	struct stream *s = flow->stream;
	uint32_t size = 0, there = v.captured;

	if (s->state == STATE_LOST && likely_with_markers(s, &v))
		s->state = STATE_FRAMES;
	if (s->state == STATE_LOST || s->state == STATE_FOREIGN)
		return;
	while (v.captured > 0) {
		uint32_t used = s->partial_fill > 0 ? go_on(r, flow, &v) : 0;

		if (used >= v.captured)
			break;
		v.bytes += used;
		v.captured -= used;
		v.length -= used;
		v.order += used;
		switch (step(r, flow, &v, &size)) {
		case VERDICT_BAD:
			lose(r, flow);
			return;
		case VERDICT_MORE:
			if (!append(r, s, v.bytes, v.captured))
				lose(r, flow);
			size = v.captured;
			break;
		case VERDICT_USED:
			break;
		}
		if (size >= v.captured)
			break;
		v.bytes += size;
		v.captured -= size;
		v.length -= size;
		v.order += size;
	}
	/* The capture truncated the segment: the missing bytes will not come. */
	if (v.captured < v.length)
		pass_over(flow, s->next + there);
}

static void report_gap(struct rdma *r, const struct flow *flow)
{
	const struct stream *s = flow->stream;
	struct ndx_hole hole = {
		.kind = NDX_HOLE_STREAM, .offset = s->order, .length = stream_gap(s)};

	if (s->recognised && s->known && hole.length > 0)
		rdma_report_hole(r, flow, &hole);
}

/* Parse segments that have become next; `force`: give up missing bytes before waiting segments. */
static void drain(struct rdma *r, struct flow *flow, bool force)
{
	struct stream *s = flow->stream;
	struct stream_segment *ready;
	uint32_t skip;

	for (;;) {
		ready = stream_ready(s, &skip);
		if (ready != NULL) {
			struct view v = {ready->bytes + (skip < ready->captured ? skip : 0),
			                 skip < ready->captured ? ready->captured - skip : 0,
			                 ready->length - skip, s->order};

			s->acknowledged = ready->acknowledged;
			use(r, flow, v);
			stream_advance(s, ready->length - skip);
			stream_drop(s, &r->mem, ready);
			if (!ndxp_list_empty(&r->early_ages))
				ddp_answers(r, flow);
			continue;
		}
		if (ndxp_list_empty(&s->waiting) || !(force || stream_full(s, r->stats.packets)))
			return;
		report_gap(r, flow);
		if (s->known)
			pass_over(flow, s->next);
		stream_jump(s);
	}
}

static bool open_stream(struct rdma *r, struct flow *flow)
{
	if (flow->stream != NULL)
		return true;
	flow->stream = mem_get(&r->mem, sizeof(*flow->stream));
	if (flow->stream == NULL)
		return false;
	stream_init(flow->stream);
	return true;
}

/* Whether this SYN belongs to the known connection, late or repeated. */
static bool syn_known(const struct stream *s, uint32_t sequence)
{
	if (s->synchronised)
		return sequence == s->next - (uint32_t)s->order;
	/* The stream began without the SYN, at the lowest of the first segments: the SYN may be
	 * late. */
	return s->next - sequence <= s->order || s->next - sequence < STREAM_HELD_MAX;
}

/* A connection begins, or begins again with the same ports. */
static void synchronise(struct rdma *r, struct flow *flow, uint32_t sequence)
{
	if (flow->stream->known) {
		if (syn_known(flow->stream, sequence))
			return;
		iwarp_flush(r, flow);
		ddp_close(r, flow);
		if (!open_stream(r, flow))
			return;
	}
	flow->stream->synchronised = true;
	stream_begin(flow->stream, sequence);
	drain(r, flow, false);
}

/* An acknowledgement in a packet of the reverse direction: gaps before it will stay. */
static void acknowledge(struct rdma *r, const struct frame *frame)
{
	struct flow *back = flow_back(r, frame);

	if (back == NULL || back->stream == NULL || ndxp_list_empty(&back->stream->waiting) ||
	    !stream_acknowledge(back->stream, frame->acknowledged, r->stats.packets))
		return;
	ndxp_list_remove(&back->gap);
	ndxp_list_add(&r->gaps, &back->gap);
}

void iwarp_expire(struct rdma *r)
{
	while (!ndxp_list_empty(&r->gaps)) {
		struct flow *flow = container_of(r->gaps.next, struct flow, gap);

		if (flow->stream != NULL && stream_patient(flow->stream, r->stats.packets))
			return;
		ndxp_list_remove(&flow->gap);
		if (flow->stream != NULL)
			drain(r, flow, false);
	}
}

void iwarp_packet(struct rdma *r, const struct frame *frame)
{
	uint32_t sequence = frame->sequence, skip;
	struct stream_segment head;
	struct stream *s;
	struct flow *flow;

	if ((frame->tcp_flags & TCP_ACK) != 0)
		acknowledge(r, frame);
	if (frame->length == 0 && (frame->tcp_flags & TCP_SYN) == 0)
		return;
	flow = flow_of(r, frame, (uint32_t)frame->source_port << 16 | frame->destination_port);
	if (flow == NULL || !open_stream(r, flow))
		return;
	if ((frame->tcp_flags & TCP_SYN) != 0)
		synchronise(r, flow, ++sequence);
	s = flow->stream;
	if (s == NULL || frame->length == 0 || s->state == STATE_FOREIGN)
		return;
	head = (struct stream_segment){.sequence = sequence,
	                               .acknowledged = frame->acknowledged,
	                               .length = frame->length,
	                               .captured = frame->captured};
	switch (stream_judge(s, &r->mem, &head, frame->payload, &skip)) {
	case STREAM_NEXT:
		s->acknowledged = frame->acknowledged;
		use(r, flow,
		    (struct view){frame->payload + (skip < frame->captured ? skip : 0),
		                  skip < frame->captured ? frame->captured - skip : 0,
		                  frame->length - skip, s->order});
		stream_advance(s, frame->length - skip);
		if (!ndxp_list_empty(&r->early_ages))
			ddp_answers(r, flow);
		break;
	case STREAM_SEEN:
		if (s->recognised)
			rdma_report_duplicate(r, flow, sequence, 0, false);
		return;
	case STREAM_HELD:
	case STREAM_LOST:
		break;
	}
	if (!ndxp_list_empty(&s->waiting))
		drain(r, flow, false);
}

void iwarp_flush(struct rdma *r, struct flow *flow)
{
	if (flow->stream == NULL)
		return;
	drain(r, flow, true);
	ddp_flush(r, flow);
}
