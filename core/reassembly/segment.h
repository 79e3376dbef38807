/* SPDX-License-Identifier: BSD-2-Clause */
/* A memory segment of a call: a part of a chunk. Bytes are placed by their address, in any order;
 * `present` records exactly which bytes have come. (RDMAsegment) */
#ifndef REASSEMBLY_SEGMENT_H
#define REASSEMBLY_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/reassembly.h>

#include <ndx/spi/list.h>
#include <ndx/spi/table.h>
#include "range.h"

struct exchange;
struct sub_segment;

/* Bytes are held in blocks, created where data arrive. With its header, a full block is a
 * MEM_BLOCK. */
#define SEGMENT_BLOCK 32768u

struct segment_block {
	uint32_t index; /* of SEGMENT_BLOCK bytes each */
	uint32_t size;
	uint8_t bytes[];
};

_Static_assert(sizeof(struct segment_block) + SEGMENT_BLOCK == MEM_BLOCK,
               "whole blocks are kept to be used again");

struct segment {
	struct ndxp_table_node node;
	struct exchange *exchange; /* the exchange whose call (or reply) named it */
	struct ndxp_list subs;     /* sub-segments: the RDMA operations on it */
	uint8_t kind;              /* enum ndx_rpc_chunk_kind */
	uint32_t handle;
	uint32_t position; /* XDR position of a read segment */
	uint32_t chunk;    /* index of its write chunk */
	uint32_t length;
	uint32_t wanted; /* bytes from the beginning that make it complete; a reply may reduce it */
	uint64_t offset; /* virtual address of its first byte */
	uint64_t end;    /* order of the packet that ended its life; 0: alive */
	uint64_t registered; /* ordinal of the packet */
	struct range_set present;
	struct segment_block **blocks; /* sorted by index */
	uint32_t block_count;
	uint32_t block_room;
};

/* NULL if out of memory. */
struct segment *segment_create(struct mem *mem, uint32_t handle, uint64_t offset, uint32_t length);

/* Its sub-segments must be freed first. */
void segment_free(struct segment *segment, struct mem *mem);

/* Add an RDMA operation to the segment. (add_sub_segment) */
void segment_add_sub_segment(struct segment *segment, struct sub_segment *sub);

/* Place the data of a packet by its sequence number, through the first sub-segment that accepts it.
 * `last`: the opcode marks the last packet. False if none accepts. (add_data) */
bool segment_add_data(struct segment *segment, struct mem *mem, uint64_t order, bool last,
                      const uint8_t *data, uint32_t length);

/* Place data by virtual address. Bytes outside the segment are ignored; bytes that were present
 * stay unchanged. False if no byte belongs to the segment, or out of memory. (add_fragment) */
bool segment_add_fragment(struct segment *segment, struct mem *mem, uint64_t address,
                          const uint8_t *data, uint32_t length);

/* Copy the segment's bytes, gaps as zeros. `padding` adds zeros up to a multiple of 4. Returns the
 * size; copies at most `room` bytes. (get_data) */
size_t segment_get_data(const struct segment *segment, bool padding, uint8_t *buffer, size_t room);

/* The number of bytes that are present. (get_size) */
static inline uint64_t segment_size(const struct segment *segment)
{
	return segment->present.covered;
}

/* Whether the packet is part of a known operation on this segment. (valid_psn) */
bool segment_valid_psn(const struct segment *segment, uint64_t order);

/* Whether all wanted bytes are present. */
static inline bool segment_whole(const struct segment *segment)
{
	return segment->wanted == 0 || (segment->present.covered >= segment->wanted &&
	                                range_covers(&segment->present, 0, segment->wanted));
}

static inline bool segment_contains(const struct segment *segment, uint64_t address)
{
	return address - segment->offset < segment->length;
}

/* The number of pieces of the first `length` bytes, and the pieces. The bytes must be present. */
uint32_t segment_piece_count(const struct segment *segment, uint32_t length);
void segment_pieces(const struct segment *segment, uint32_t length, struct ndx_piece *out);

#endif
