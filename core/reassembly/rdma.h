/* SPDX-License-Identifier: BSD-2-Clause */
/* The reassembly object (RDMAinfo): segments by connection, owner, handle and generation, and all
 * data that wait. The functions are in the order of the files, from the ground. */
#ifndef REASSEMBLY_RDMA_H
#define REASSEMBLY_RDMA_H

#include <ndx/reassembly.h>

#include <ndx/spi/list.h>
#include "bth.h"
#include "cm.h"
#include "crc.h"
#include "early_packet.h"
#include "exchange.h"
#include "flow.h"
#include "mem.h"
#include "mpa.h"
#include "request.h"
#include "sub_segment.h"

/* The share of max_bytes for early packets. */
#define RDMA_EARLY_SHARE 4
/* The number of connection requests that can wait for their reply. */
#define RDMA_CM_PENDING 64

struct rdma {
	struct ndx_reassembly_attr attr;
	struct mem mem;
	bool quiet;    /* during a reset: report nothing */
	uint64_t seed; /* for the hashes */
	uint64_t now;  /* the latest time of a packet */
	uint64_t packet_time;
	struct ndx_reassembly_stats stats;
	struct crc_tables *crc;
	struct ndxp_table flows;
	struct ndxp_table peers;
	struct ndxp_table segments;
	struct ndxp_table exchanges;
	struct ndxp_table early_table;
	struct ndxp_list flow_use;   /* flows */
	struct ndxp_list ages;       /* exchanges */
	struct ndxp_list orphans;    /* exchanges without a call */
	struct ndxp_list early_ages; /* early packets */
	struct ndxp_list gaps; /* TCP flows that wait for the receiver's acknowledgement of a gap */
	size_t early_bytes;
	bool draining; /* early packets are being iterated: do not evict any */
	uint32_t flow_count;
	uint64_t connections; /* the number of ids given */
	struct flow *last;    /* the flow of the previous packet */
	struct rdma_request { /* of the connection manager: the reply makes two flows a pair */
		struct frame frame;
		struct cm_message message;
	} cm[RDMA_CM_PENDING];
	uint32_t cm_next;
	/* Scratch memory, kept for reuse. */
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

/* ---- report.c ---- */

/* Report an event; the caller sets the type and its data, this function the rest. */
void rdma_report(struct rdma *r, const struct flow *flow, struct ndx_reassembly_event *event);

/* Report a duplicate packet. */
void rdma_report_duplicate(struct rdma *r, const struct flow *flow, uint32_t psn, uint8_t opcode,
                           bool send);

/* Report missing bytes. */
void rdma_report_hole(struct rdma *r, const struct flow *flow, const struct ndx_hole *hole);

/* ---- pieces.c ---- */

/* The canonical message of a call, as pieces: read chunks at their positions, with XDR round-up.
 * All bytes must be present. False if out of memory. (reassemble_rdma_reads) */
bool rdma_reassemble_reads(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                           uint32_t length, struct ndx_rpc_message *out);

/* The same for a reply: reduced message, then its chunks. */
bool rdma_reassemble_writes(struct rdma *r, struct exchange *x, const uint8_t *inline_part,
                            uint32_t length, struct ndx_rpc_message *out);

/* ---- segment_table.c ---- */

/* A new segment, whose exchange is set. */
void rdma_enter_segment(struct rdma *r, struct segment *s);

/* The segment of data that were sent on `flow` with number `order`: by connection, owner, handle,
 * address and generation. NULL if there is none. (get_rdma_segment) */
struct segment *rdma_get_segment(struct rdma *r, const struct flow *flow, uint32_t handle,
                                 uint64_t address, uint64_t order);

/* End the life of a segment. (del_rdma_segment) */
void rdma_del_segment(struct rdma *r, struct segment *segment);

/* A SEND invalidated a handle of its receiver: later data are for the next generation. */
void rdma_invalidate(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t order);

/* Free an InfiniBand operation. */
void rdma_free_sub(struct rdma *r, struct sub_segment *sub);

/* ---- placement.c ---- */

/* Add a segment that a message names: create it, or find it with its data if a reply named it
 * before its call did. Places early data. NULL if a limit is reached. (add_rdma_segment) */
struct segment *rdma_add_segment(struct rdma *r, struct exchange *x,
                                 const struct rpcrdma_segment *named, uint8_t kind);

/* Place data with a known address, or hold them. */
void rdma_place(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t address,
                uint64_t order, const uint8_t *data, uint32_t captured, uint32_t length);

/* Place data in a known segment. May free the segment and its exchange. */
void rdma_place_in(struct rdma *r, struct segment *s, uint64_t address, const uint8_t *data,
                   uint32_t length);

/* ---- operation.c ---- */

/* A packet of an InfiniBand write or read, or a read request. (add_rdma_data) */
void rdma_add_rdma_data(struct rdma *r, struct flow *flow, const struct bth *packet,
                        uint64_t order);

/* A read response of InfiniBand: finds its request on the reverse flow. (add_rdma_data) */
void rdma_add_rdma_response(struct rdma *r, struct flow *flow, const struct bth *packet);

/* ---- message.c ---- */

/* Handle a complete message of a SEND. `send` has everything except the kind of RPC-over-RDMA. */
void rdma_message(struct rdma *r, struct flow *flow, struct ndx_rdma_send *send, uint64_t order);

/* ---- send.c: SENDs in several packets ---- */

void send_packet(struct rdma *r, struct flow *flow, const struct bth *packet, uint64_t order);
void send_flush(struct rdma *r, struct flow *flow);

/* ---- ddp.c ---- */

/* A tagged frame of iWARP: write, or read response. (add_iwarp_data) */
void rdma_add_iwarp_data(struct rdma *r, struct flow *flow, const struct ddp *frame,
                         uint64_t order);

/* A read request of iWARP. (add_iwarp_request) */
void rdma_add_iwarp_request(struct rdma *r, struct flow *flow, const struct ddp *frame,
                            uint64_t order);

/* Handle a frame of DDP: `order` is its position in the stream, never 0. */
void ddp_frame(struct rdma *r, struct flow *flow, const struct ddp *d, uint64_t order);
void ddp_flush(struct rdma *r, struct flow *flow);
/* Free the requests and the stream of a flow. */
void ddp_close(struct rdma *r, struct flow *flow);
/* Bytes of the stream are missing, from that sequence number on. */
void ddp_lost(struct flow *flow, uint32_t sequence);
/* The stream has advanced: place answers that waited for its requests. */
void ddp_answers(struct rdma *r, struct flow *asked);

/* ---- iwarp.c: TCP streams, and the frames in them ---- */

void iwarp_packet(struct rdma *r, const struct frame *frame);
void iwarp_flush(struct rdma *r, struct flow *flow);
/* Continue behind gaps that have been open for too long. */
void iwarp_expire(struct rdma *r);

/* ---- roce.c ---- */

void roce_packet(struct rdma *r, const struct frame *frame);

/* ---- reassembly.c ---- */

/* Count a packet of `captured` bytes, expire what is old, and make room for the bytes. */
struct rdma *rdma_begin(struct ndx_reassembly *reassembly, uint64_t time_ns, uint32_t captured,
                        uint32_t original);

/* Process a packet without its link and network headers. */
void rdma_take(struct rdma *r, const struct frame *frame);

#endif
