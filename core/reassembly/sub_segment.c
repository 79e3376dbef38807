/* SPDX-License-Identifier: BSD-2-Clause */
#include "sub_segment.h"

#include <string.h>

#include "segment.h"

void sub_segment_dimension(struct sub_segment *sub, uint32_t mtu)
{
	uint32_t size;

	if (mtu != 0)
		sub->mtu = mtu;
	size = sub->mtu != 0 ? sub->mtu : SUB_SEGMENT_MTU_MIN;
	sub->packets = (uint32_t)(((uint64_t)sub->dma_length + size - 1) / size);
	if (sub->packets == 0)
		sub->packets = 1;
}

/* The offset of the last packet: of the possible path MTUs, the one that makes it the last. */
static bool offset_of_last(const struct sub_segment *sub, uint64_t delta, uint32_t length,
                           uint64_t *offset)
{
	uint64_t end = sub->dma_length - length;

	*offset = end;
	if (sub->mtu != 0)
		return delta * sub->mtu == end;
	for (uint64_t mtu = SUB_SEGMENT_MTU_MIN; mtu <= SUB_SEGMENT_MTU_MAX; mtu *= 2) {
		if (delta * mtu == end)
			return true;
	}
	return false;
}

bool sub_segment_offset(struct sub_segment *sub, uint64_t order, bool last, uint32_t length,
                        uint64_t *offset)
{
	uint64_t delta = order - sub->first;

	/* All packets but the last have the size of the path MTU. */
	if (!last && length > 0 && sub->mtu != length) {
		if (sub->mtu_told)
			return false;
		sub_segment_dimension(sub, length);
	}
	if (delta >= sub->packets || length > sub->dma_length)
		return false;
	if (last)
		return offset_of_last(sub, delta, length, offset);
	*offset = delta * sub->mtu;
	return *offset < sub->dma_length - length;
}

bool sub_segment_insert_data(struct sub_segment *sub, struct mem *mem, uint64_t order, bool last,
                             const uint8_t *data, uint32_t length)
{
	uint64_t offset;

	if (sub->segment == NULL || !sub_segment_covers(sub, order) ||
	    !sub_segment_offset(sub, order, last, length, &offset))
		return false;
	return segment_add_fragment(sub->segment, mem, sub->address + offset, data, length);
}

bool segment_add_data(struct segment *segment, struct mem *mem, uint64_t order, bool last,
                      const uint8_t *data, uint32_t length)
{
	struct ndxp_list *at;

	for (at = segment->subs.next; at != &segment->subs; at = at->next) {
		struct sub_segment *sub = container_of(at, struct sub_segment, in_segment);

		if (sub_segment_insert_data(sub, mem, order, last, data, length))
			return true;
	}
	return false;
}

/* The part of the segment that the operation covers; false if none. */
static bool within(const struct sub_segment *sub, uint64_t *from, uint64_t *to)
{
	const struct segment *s = sub->segment;

	if (s == NULL || !segment_contains(s, sub->address))
		return false;
	*from = sub->address - s->offset;
	*to = *from + sub->dma_length;
	if (*to > s->length)
		*to = s->length;
	return true;
}

size_t sub_segment_get_data(const struct sub_segment *sub, bool padding, uint8_t *buffer,
                            size_t room)
{
	size_t length = sub->dma_length;
	uint64_t from, to, at;

	if (padding)
		length = (length + 3) & ~(size_t)3;
	if (room > length)
		room = length;
	memset(buffer, 0, room);
	if (!within(sub, &from, &to))
		return length;
	if (to - from > room)
		to = from + room;
	for (at = from; at < to;) {
		const struct segment *s = sub->segment;
		struct range gap = {to, to};
		struct segment_block *block = NULL;
		uint64_t end;

		if (range_gap(&s->present, at, to, &gap) && gap.from == at) {
			at = gap.to;
			continue;
		}
		for (uint32_t i = 0; i < s->block_count; i++) {
			if (s->blocks[i]->index == at / SEGMENT_BLOCK)
				block = s->blocks[i];
		}
		end = (at / SEGMENT_BLOCK + 1) * SEGMENT_BLOCK;
		if (end > gap.from)
			end = gap.from;
		if (block != NULL)
			memcpy(buffer + (at - from), block->bytes + at % SEGMENT_BLOCK, end - at);
		at = end;
	}
	return length;
}

uint64_t sub_segment_size(const struct sub_segment *sub)
{
	uint64_t from, to, missing = 0;
	struct range gap;

	if (!within(sub, &from, &to))
		return 0;
	for (uint64_t at = from; range_gap(&sub->segment->present, at, to, &gap); at = gap.to)
		missing += gap.to - gap.from;
	return to - from - missing;
}
