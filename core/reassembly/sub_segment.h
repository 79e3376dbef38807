/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One RDMA operation of InfiniBand: a range of packet sequence numbers, mapped to a range of
 * addresses. (RDMAseg) Sequence numbers are unwrapped to 64 bits, so that they order everything a
 * queue pair ever sent; their lower 24 bits are those of the wire.
 */
#ifndef REASSEMBLY_SUB_SEGMENT_H
#define REASSEMBLY_SUB_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base_list.h"
#include "mem.h"

struct segment;
struct flow;

/* The path MTUs there are. The smallest bounds how many packets an operation may have. */
#define SUB_SEGMENT_MTU_MIN 256u
#define SUB_SEGMENT_MTU_MAX 4096u

struct sub_segment {
	struct flow *flow;           /* that the requests went on */
	struct base_list in_flow;    /* sorted by `first` */
	struct base_list in_segment; /* while `segment` is set */
	struct segment *segment;     /* NULL: the handle is not known yet */
	uint64_t first;              /* sequence number of its first packet */
	uint32_t packets;            /* how many; an upper bound until the path MTU is known */
	uint32_t mtu;                /* 0: not known */
	uint32_t dma_length;
	uint32_t handle;
	uint64_t address;
	uint32_t received; /* packets that came */
	bool read;
};

/* Compute `packets` for a path MTU, which becomes known or stays what it was. */
void sub_segment_dimension(struct sub_segment *sub, uint32_t mtu);

static inline bool sub_segment_covers(const struct sub_segment *sub, uint64_t order)
{
	return order - sub->first < sub->packets;
}

/*
 * Where the data of a packet go, as an offset from `address`; learns the path MTU from a packet
 * that is not the last. False if it cannot be told, or lies beyond the DMA length.
 */
bool sub_segment_offset(struct sub_segment *sub, uint64_t order, bool last, uint32_t length,
                        uint64_t *offset);

/* Place the data of a packet into the segment; false if it is not of this operation. (insert_data)
 */
bool sub_segment_insert_data(struct sub_segment *sub, struct mem *mem, uint64_t order, bool last,
                             const uint8_t *data, uint32_t length);

/* Copy the operation's bytes out of its segment, gaps as zeros; as segment_get_data(). (get_data)
 */
size_t sub_segment_get_data(const struct sub_segment *sub, bool padding, uint8_t *buffer,
                            size_t room);

/* How many of the operation's bytes are there. (get_size) */
uint64_t sub_segment_size(const struct sub_segment *sub);

#endif
