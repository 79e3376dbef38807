/* SPDX-License-Identifier: BSD-2-Clause */
/* One RDMA operation of InfiniBand: a range of packet sequence numbers, mapped to a range of
 * addresses. (RDMAseg) Sequence numbers are unwrapped to 64 bits, so they order all packets that a
 * queue pair ever sent; the lower 24 bits are the PSN. */
#ifndef REASSEMBLY_SUB_SEGMENT_H
#define REASSEMBLY_SUB_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/list.h>
#include "mem.h"

struct segment;
struct flow;

/* All path MTUs are between these. The smallest limits the number of packets of an operation. */
#define SUB_SEGMENT_MTU_MIN 256u
#define SUB_SEGMENT_MTU_MAX 4096u

struct sub_segment {
	struct flow *flow;           /* of its requests */
	struct ndxp_list in_flow;    /* sorted by `first` */
	struct ndxp_list in_segment; /* while `segment` is set */
	struct segment *segment;     /* NULL: the handle is unknown */
	uint64_t first;              /* of its first packet */
	uint32_t packets;            /* their number; an upper bound until the path MTU is known */
	uint32_t mtu;                /* 0: unknown */
	bool mtu_told;               /* by the caller, and not learned from a packet */
	uint32_t dma_length;
	uint32_t handle;
	uint64_t address;
	uint32_t received; /* packets that were received */
	bool read;
};

/* Compute `packets` for a path MTU. */
void sub_segment_dimension(struct sub_segment *sub, uint32_t mtu);

static inline bool sub_segment_covers(const struct sub_segment *sub, uint64_t order)
{
	return order - sub->first < sub->packets;
}

/* The offset from `address` of a packet's data; learns the path MTU from a packet that is not the
 * last. False if the offset is unknown, or beyond the DMA length. */
bool sub_segment_offset(struct sub_segment *sub, uint64_t order, bool last, uint32_t length,
                        uint64_t *offset);

/* Place the data of a packet into the segment; false if the packet is not of this operation.
 * (insert_data) */
bool sub_segment_insert_data(struct sub_segment *sub, struct mem *mem, uint64_t order, bool last,
                             const uint8_t *data, uint32_t length);

/* Copy the operation's bytes from its segment, gaps as zeros; like segment_get_data().
 * (get_data) */
size_t sub_segment_get_data(const struct sub_segment *sub, bool padding, uint8_t *buffer,
                            size_t room);

/* How many of the operation's bytes are present. (get_size) */
uint64_t sub_segment_size(const struct sub_segment *sub);

#endif
