/* SPDX-License-Identifier: BSD-2-Clause */
#include "segment.h"

#include <string.h>

#include "sub_segment.h"

struct segment *segment_create(struct mem *mem, uint32_t handle, uint64_t offset, uint32_t length)
{
	struct segment *s = mem_zero(mem, sizeof(*s));

	if (s == NULL)
		return NULL;
	ndxp_list_init(&s->subs);
	s->handle = handle;
	s->offset = offset;
	s->length = length;
	s->wanted = length;
	return s;
}

void segment_free(struct segment *segment, struct mem *mem)
{
	for (uint32_t i = 0; i < segment->block_count; i++)
		mem_put(mem, segment->blocks[i],
		        sizeof(*segment->blocks[i]) + segment->blocks[i]->size);
	mem_put(mem, segment->blocks, segment->block_room * sizeof(struct segment_block *));
	range_free(&segment->present, mem);
	mem_put(mem, segment, sizeof(*segment));
}

void segment_add_sub_segment(struct segment *segment, struct sub_segment *sub)
{
	sub->segment = segment;
	ndxp_list_add(&segment->subs, &sub->in_segment);
}

/* The index of block `index` in the array, or where to insert it. */
static uint32_t find(const struct segment *s, uint32_t index)
{
	uint32_t low = 0, high = s->block_count;

	if (high > 0 && s->blocks[high - 1]->index <= index)
		return s->blocks[high - 1]->index == index ? high - 1 : high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->blocks[middle]->index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The block, created if necessary. */
static struct segment_block *block_of(struct segment *s, struct mem *mem, uint32_t index)
{
	uint32_t at = find(s, index), room = s->block_room == 0 ? 4 : s->block_room * 2;
	uint32_t size = SEGMENT_BLOCK;
	struct segment_block *block;
	struct segment_block **blocks;

	if (at < s->block_count && s->blocks[at]->index == index)
		return s->blocks[at];
	if (s->block_count == s->block_room) {
		blocks = mem_resize(mem, s->blocks, s->block_room * sizeof(struct segment_block *),
		                    room * sizeof(struct segment_block *));
		if (blocks == NULL)
			return NULL;
		s->blocks = blocks;
		s->block_room = room;
	}
	if (s->length - index * SEGMENT_BLOCK < size)
		size = s->length - index * SEGMENT_BLOCK;
	block = mem_get(mem, sizeof(*block) + size);
	if (block == NULL)
		return NULL;
	block->index = index;
	block->size = size;
	memmove(&s->blocks[at + 1], &s->blocks[at],
	        (s->block_count - at) * sizeof(struct segment_block *));
	s->blocks[at] = block;
	s->block_count++;
	return block;
}

/* Copy into blocks. False if out of memory: some bytes may be written then, but none is counted. */
static bool store(struct segment *s, struct mem *mem, uint32_t at, const uint8_t *data,
                  uint32_t length)
{
	while (length > 0) {
		struct segment_block *block = block_of(s, mem, at / SEGMENT_BLOCK);
		uint32_t within = at % SEGMENT_BLOCK, part;

		if (block == NULL)
			return false;
		part = block->size - within < length ? block->size - within : length;
		memcpy(block->bytes + within, data, part);
		at += part;
		data += part;
		length -= part;
	}
	return true;
}

bool segment_add_fragment(struct segment *segment, struct mem *mem, uint64_t address,
                          const uint8_t *data, uint32_t length)
{
	struct range gap;
	uint64_t fresh;
	uint32_t at;

	if (!segment_contains(segment, address))
		return false;
	at = (uint32_t)(address - segment->offset);
	if (length > segment->length - at)
		length = segment->length - at;
	for (uint64_t from = at; range_gap(&segment->present, from, (uint64_t)at + length, &gap);
	     from = gap.to) {
		if (!store(segment, mem, (uint32_t)gap.from, data + (gap.from - at),
		           (uint32_t)(gap.to - gap.from)))
			return false;
	}
	return range_add(&segment->present, mem, at, (uint64_t)at + length, &fresh);
}

bool segment_valid_psn(const struct segment *segment, uint64_t order)
{
	struct ndxp_list *at;

	for (at = segment->subs.next; at != &segment->subs; at = at->next) {
		if (sub_segment_covers(container_of(at, struct sub_segment, in_segment), order))
			return true;
	}
	return false;
}

size_t segment_get_data(const struct segment *segment, bool padding, uint8_t *buffer, size_t room)
{
	size_t length = segment->length;

	if (padding)
		length = (length + 3) & ~(size_t)3;
	if (room > length)
		room = length;
	memset(buffer, 0, room);
	for (uint32_t i = 0; i < segment->present.count; i++) {
		const struct range *r = segment->present.more != NULL ? segment->present.more
		                                                      : &segment->present.one;
		uint32_t at = (uint32_t)r[i].from;

		while (at < r[i].to && at < room) {
			const struct segment_block *block =
				segment->blocks[find(segment, at / SEGMENT_BLOCK)];
			uint32_t within = at % SEGMENT_BLOCK, part = block->size - within;

			if (part > r[i].to - at)
				part = (uint32_t)(r[i].to - at);
			if (part > room - at)
				part = (uint32_t)(room - at);
			memcpy(buffer + at, block->bytes + within, part);
			at += part;
		}
	}
	return length;
}

uint32_t segment_piece_count(const struct segment *segment, uint32_t length)
{
	(void)segment;
	return (uint32_t)(((uint64_t)length + SEGMENT_BLOCK - 1) / SEGMENT_BLOCK);
}

void segment_pieces(const struct segment *segment, uint32_t length, struct ndx_piece *out)
{
	/* All bytes are present, so block i is the i-th. */
	for (uint32_t i = 0; length > 0; i++) {
		uint32_t part = segment->blocks[i]->size;

		if (part > length)
			part = length;
		out[i] = (struct ndx_piece){segment->blocks[i]->bytes, part};
		length -= part;
	}
}
