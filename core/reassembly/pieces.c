/* SPDX-License-Identifier: BSD-2-Clause */
/* Complete messages as pieces: no byte is copied, each piece points to where its bytes are held. */
#include <string.h>

#include "rdma.h"

static const uint8_t zeros[4];

static bool piece_room(struct rdma *r, size_t want)
{
	struct ndx_piece *grown;

	if (want > UINT32_MAX / 2)
		return false;
	grown = mem_grow(&r->mem, r->pieces, &r->piece_room, (uint32_t)want, sizeof(*r->pieces));
	if (grown == NULL)
		return false;
	r->pieces = grown;
	return true;
}

static bool add_piece(struct rdma *r, struct ndx_rpc_message *m, const uint8_t *bytes,
                      size_t length)
{
	if (length == 0)
		return true;
	if (!piece_room(r, m->piece_count + 1))
		return false;
	r->pieces[m->piece_count++] = (struct ndx_piece){bytes, length};
	m->length += length;
	return true;
}

static bool add_segment(struct rdma *r, struct ndx_rpc_message *m, const struct segment *s,
                        uint32_t length)
{
	uint32_t count = segment_piece_count(s, length);

	if (!piece_room(r, m->piece_count + count))
		return false;
	segment_pieces(s, length, r->pieces + m->piece_count);
	m->piece_count += count;
	m->length += length;
	return true;
}

static struct ndx_rpc_chunk *add_chunk(struct rdma *r, struct ndx_rpc_message *m,
                                       enum ndx_rpc_chunk_kind kind)
{
	struct ndx_rpc_chunk *grown, *c;

	grown = mem_grow(&r->mem, r->chunks, &r->chunk_room, (uint32_t)m->chunk_count + 1,
	                 sizeof(*r->chunks));
	if (grown == NULL)
		return NULL;
	r->chunks = grown;
	c = &r->chunks[m->chunk_count++];
	*c = (struct ndx_rpc_chunk){.kind = kind, .first_piece = m->piece_count};
	return c;
}

/* The base into which chunks are inserted: the inline part, or the chunk at position 0. */
struct stream_of_pieces {
	size_t next; /* piece in rdma->pieces */
	size_t end;
	size_t within; /* bytes of that piece which are used */
};

/* Move up to `length` bytes of the base into the message. */
static bool take_pieces(struct rdma *r, struct ndx_rpc_message *m, struct stream_of_pieces *base,
                        uint64_t length)
{
	while (length > 0 && base->next < base->end) {
		struct ndx_piece p = r->pieces[base->next];
		size_t part = p.length - base->within;

		if (part > length)
			part = (size_t)length;
		if (!add_piece(r, m, p.bytes + base->within, part))
			return false;
		length -= part;
		base->within += part;
		if (base->within == p.length) {
			base->next++;
			base->within = 0;
		}
	}
	return true;
}

/* The segments of one read chunk: from `at` on, those with its position. */
static bool read_chunk(struct rdma *r, struct exchange *x, uint32_t *at, struct ndx_rpc_message *m)
{
	uint32_t position = x->segments[*at]->position;
	struct ndx_rpc_chunk *c = add_chunk(r, m, NDX_RPC_CHUNK_READ);

	if (c == NULL)
		return false;
	c->position = position;
	for (; *at < x->reads && x->segments[*at]->position == position; (*at)++) {
		if (!add_segment(r, m, x->segments[*at], x->segments[*at]->length))
			return false;
		c->segments++;
		c->length += x->segments[*at]->length;
	}
	c->piece_count = m->piece_count - c->first_piece;
	return true;
}

/* Move the base behind the message, where a base that is a chunk is expected. */
static bool renumber(struct rdma *r, const struct ndx_rpc_message *m, size_t base)
{
	if (!piece_room(r, m->piece_count + base))
		return false;
	memcpy(r->pieces + m->piece_count, r->pieces, base * sizeof(*r->pieces));
	for (size_t i = 0; i < m->chunk_count; i++) {
		struct ndx_rpc_chunk *c = &r->chunks[i];

		c->first_piece = c->first_piece >= base ? c->first_piece - base
		                                        : c->first_piece + m->piece_count - base;
	}
	return true;
}

bool rdma_reassemble_reads(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                           uint32_t length, struct ndx_rpc_message *out)
{
	struct stream_of_pieces base = {0, 0, 0};
	struct ndx_rpc_message whole = {0};
	uint32_t at = 0;

	/* First the base by itself; the message is built behind it, then moved to the front. */
	if (x->reads > 0 && x->segments[0]->position == 0) {
		if (!read_chunk(r, x, &at, &whole))
			return false;
		if (at == x->reads && length == 0)
			goto done;
	}
	if (!add_piece(r, &whole, inline_part, length))
		return false;
	base.end = whole.piece_count;
	whole.length = 0;
	while (at < x->reads) {
		uint32_t position = x->segments[at]->position;

		if (position > whole.length &&
		    !take_pieces(r, &whole, &base, position - whole.length))
			return false;
		if (!read_chunk(r, x, &at, &whole) ||
		    !add_piece(r, &whole, zeros, (size_t)(-whole.length & 3)))
			return false;
	}
	if (!take_pieces(r, &whole, &base, UINT64_MAX))
		return false;
done:
	if (base.end > 0 && !renumber(r, &whole, base.end))
		return false;
	out->chunks = r->chunks;
	out->chunk_count = whole.chunk_count;
	out->pieces = r->pieces + base.end;
	out->piece_count = whole.piece_count - base.end;
	out->length = whole.length;
	return true;
}

/* The returned segments, from `at` on, of one chunk. */
static bool returned_chunk(struct rdma *r, struct exchange *x, uint32_t *at,
                           struct ndx_rpc_message *m)
{
	const struct returned *first = &x->returned[*at];
	uint32_t chunk = first->chunk;
	uint8_t kind = first->segment->kind;
	struct ndx_rpc_chunk *c = add_chunk(r, m, (enum ndx_rpc_chunk_kind)kind);

	if (c == NULL)
		return false;
	for (; *at < x->returned_count; (*at)++) {
		const struct returned *back = &x->returned[*at];

		if (back->chunk != chunk || back->segment->kind != kind)
			break;
		if (!add_segment(r, m, back->segment, back->length))
			return false;
		c->segments++;
		c->length += back->length;
	}
	c->piece_count = m->piece_count - c->first_piece;
	return true;
}

bool rdma_reassemble_writes(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                            uint32_t length, struct ndx_rpc_message *out)
{
	struct ndx_rpc_message whole = {0};
	uint32_t at = 0;

	if (!add_piece(r, &whole, inline_part, length))
		return false;
	while (at < x->returned_count) {
		if (!returned_chunk(r, x, &at, &whole))
			return false;
	}
	out->chunks = r->chunks;
	out->chunk_count = whole.chunk_count;
	out->pieces = r->pieces;
	out->piece_count = whole.piece_count;
	out->length = whole.length;
	return true;
}

size_t ndx_piece_copy(const struct ndx_piece *pieces, size_t count, uint8_t *buffer, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used < room; i++) {
		size_t part = pieces[i].length < room - used ? pieces[i].length : room - used;

		memcpy(buffer + used, pieces[i].bytes, part);
		used += part;
	}
	return used;
}
