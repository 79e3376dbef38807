/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reassembly object (RDMAinfo): segments by connection, owner, handle and generation, and all
 * that waits. Data find their segment here.
 */
#ifndef REASSEMBLY_RDMA_H
#define REASSEMBLY_RDMA_H

#include <ndx/reassembly.h>

#include "base_list.h"
#include "bth.h"
#include "cm.h"
#include "crc.h"
#include "early.h"
#include "exchange.h"
#include "flow.h"
#include "mem.h"
#include "mpa.h"
#include "request.h"
#include "sub_segment.h"
#include "table.h"

/* Of max_bytes, what early packets may take. */
#define RDMA_EARLY_SHARE 4
/* Connection requests that wait for their reply. */
#define RDMA_CM_PENDING 64

struct rdma {
	struct ndx_reassembly_attr attr;
	struct mem mem;
	bool quiet;    /* being reset: nothing is reported */
	uint64_t seed; /* of hashes */
	uint64_t now;  /* highest time seen */
	uint64_t packet_time;
	struct ndx_reassembly_stats stats;
	struct crc_tables *crc;
	struct table flows;
	struct table peers;
	struct table segments;
	struct table exchanges;
	struct table early_table;
	struct base_list flow_use;   /* flows */
	struct base_list ages;       /* exchanges */
	struct base_list orphans;    /* exchanges without a call */
	struct base_list early_ages; /* early packets */
	struct base_list gaps;       /* flows of TCP that wait for what their receiver has got */
	size_t early_bytes;
	bool draining; /* early packets are looked through: none may be evicted */
	uint32_t flow_count;
	uint64_t connections; /* ids given */
	struct flow *last;    /* flow of the packet before */
	struct rdma_request { /* of the connection manager: the reply pairs two flows */
		struct frame frame;
		struct cm_message message;
	} cm[RDMA_CM_PENDING];
	uint32_t cm_next;
	/* Scratch, kept to be used again. */
	struct rpcrdma_header *header;
	struct ndx_piece *pieces;
	uint32_t piece_room;
	struct ndx_rpc_chunk *chunks;
	uint32_t chunk_room;
	uint8_t *gather;
	uint32_t gather_room;
	uint8_t *unmarked; /* an MPA frame without its markers */
	uint32_t unmarked_room;
};

/* Report an event; type and what goes with it are filled, the rest is done here. */
void rdma_report(struct rdma *r, const struct flow *flow, struct ndx_reassembly_event *event);

/* Report a packet that came again. */
void rdma_report_duplicate(struct rdma *r, const struct flow *flow, uint32_t psn, uint8_t opcode,
                           bool send);

/* Report bytes that are missing. */
void rdma_report_hole(struct rdma *r, const struct flow *flow, const struct ndx_hole *hole);

/* `at` with room for `want` elements, perhaps elsewhere; NULL if out of memory: then it stays. */
void *rdma_grow(struct mem *mem, void *at, uint32_t *room, uint32_t want, size_t element);

/*
 * A segment that a message names becomes known: made, or found again with its data if a reply has
 * named it before its call did. Early data for it are placed. NULL if a limit forbids it.
 * (add_rdma_segment)
 */
struct segment *rdma_add_segment(struct rdma *r, struct exchange *x,
                                 const struct rpcrdma_segment *named, uint8_t kind);

/*
 * The segment that data sent on `flow`, as number `order` of it, are for: by connection, owner,
 * handle, address and generation. NULL if there is none. (get_rdma_segment)
 */
struct segment *rdma_get_segment(struct rdma *r, const struct flow *flow, uint32_t handle,
                                 uint64_t address, uint64_t order);

/* The segment's life is over. (del_rdma_segment) */
void rdma_del_segment(struct rdma *r, struct segment *segment);

/* A SEND invalidates a handle of its receiver: data sent later are for the next generation. */
void rdma_invalidate(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t order);

/* Data with a known address have come, by whatever way: place them, or hold them. */
void rdma_place(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t address,
                uint64_t order, const uint8_t *data, uint32_t captured, uint32_t length);

/* A packet of an InfiniBand write or read, or a read request. (add_rdma_data) */
void rdma_add_rdma_data(struct rdma *r, struct flow *flow, const struct bth *packet,
                        uint64_t order);

/* A read response of InfiniBand: finds its request on the other flow. (add_rdma_data) */
void rdma_add_rdma_response(struct rdma *r, struct flow *flow, const struct bth *packet);

/* A tagged frame of iWARP: write, or read response. (add_iwarp_data) */
void rdma_add_iwarp_data(struct rdma *r, struct flow *flow, const struct ddp *frame,
                         uint64_t order);

/* A read request of iWARP. (add_iwarp_request) */
void rdma_add_iwarp_request(struct rdma *r, struct flow *flow, const struct ddp *frame,
                            uint64_t order);

/* The chunk lists of a call or reply: its segments become known. (process_rdma_segments) */
bool rdma_process_segments(struct rdma *r, struct exchange *x, const struct rpcrdma_header *h,
                           bool call);

/*
 * The canonical message of a call, as pieces: read chunks at their positions, with XDR round-up.
 * All of it must be there. False if out of memory. (reassemble_rdma_reads)
 */
bool rdma_reassemble_reads(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                           uint32_t length, struct ndx_rpc_message *out);

/* That of a reply: reduced message, then its chunks. */
bool rdma_reassemble_writes(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                            uint32_t length, struct ndx_rpc_message *out);

/* Forget all. (reset) */
void rdma_reset(struct rdma *r);

/* A whole message of a SEND. `send` has everything but what RPC-over-RDMA it is. */
void rdma_message(struct rdma *r, struct flow *flow, struct ndx_rdma_send *send, uint64_t order);

/* Free an InfiniBand operation. */
void rdma_free_sub(struct rdma *r, struct sub_segment *sub);

/* Free what a flow has open: operations, SEND packets, requests, stream. */
void rdma_close_flow(struct rdma *r, struct flow *flow);

/* Packets of a transport. */
void roce_packet(struct rdma *r, const struct frame *frame);
void iwarp_packet(struct rdma *r, const struct frame *frame);

/* SENDs in several packets (send.c). */
void send_packet(struct rdma *r, struct flow *flow, const struct bth *packet, uint64_t order);
void send_flush(struct rdma *r, struct flow *flow);

/* TCP streams, and the frames in them. */
void iwarp_flush(struct rdma *r, struct flow *flow);
void iwarp_free(struct rdma *r, struct flow *flow);
/* Go on behind gaps that have been open for long. */
void iwarp_expire(struct rdma *r);

/* A frame of DDP (ddp.c): `order` tells its place in the stream, never 0. */
void ddp_frame(struct rdma *r, struct flow *flow, const struct ddp *d, uint64_t order);
void ddp_flush(struct rdma *r, struct flow *flow);
/* Bytes of the stream are missing, from that sequence number on. */
void ddp_lost(struct flow *flow, uint32_t sequence);
/* The stream has moved on: answers that waited for its requests are used. */
void ddp_answers(struct rdma *r, struct flow *asked);

#endif
