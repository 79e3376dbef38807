/* SPDX-License-Identifier: BSD-2-Clause */
/* A call and its reply, from the first packet of either until both are complete. */
#ifndef REASSEMBLY_EXCHANGE_H
#define REASSEMBLY_EXCHANGE_H

#include <ndx/spi/list.h>
#include "flow.h"
#include "rpcrdma.h"
#include "segment.h"

/* A SEND that waits for its chunks. */
struct held {
	uint8_t *bytes;
	uint32_t length;   /* captured */
	uint32_t original; /* as sent */
	uint32_t body;     /* offset of the RPC message */
	uint32_t type;     /* enum rpcrdma_type */
	uint32_t version, credits;
	uint64_t order;
	uint64_t packet;
};

/* A segment of a reply, and how many bytes of it the reply uses. */
struct returned {
	struct segment *segment;
	uint32_t length;
	uint32_t chunk;
};

struct exchange {
	struct ndxp_table_node node;
	struct ndxp_list age;     /* least recently touched first */
	struct ndxp_list waiting; /* in rdma->orphans while its call is not known */
	struct peers *peers;
	struct flow *call_flow;  /* NULL: call not seen */
	struct flow *reply_flow; /* NULL: reply not seen */
	uint8_t direction;       /* of the call */
	uint32_t xid;
	bool call_done, reply_done;
	bool refused; /* RDMA_ERROR came before the call */
	uint64_t touched_ns;
	uint32_t program, program_version, procedure;
	struct held call, reply;
	struct segment **segments; /* of the call: reads sorted by position, writes, reply chunk */
	uint32_t segment_count;
	uint32_t segment_room;
	uint32_t reads;
	struct returned *returned; /* of the reply, in its order: reply chunk, then writes */
	uint32_t returned_count;
	uint32_t returned_room;
};

/* NULL if out of memory. */
struct exchange *exchange_create(struct rdma *r, const struct flow *flow, uint8_t direction,
                                 uint32_t xid);

/* Find the reply that came before this call. */
struct exchange *exchange_find_orphan(struct rdma *r, const struct flow *flow, uint32_t xid);

/* Find the call of a reply: the oldest with its xid that offered the segments of the reply. */
struct exchange *exchange_find_call(struct rdma *r, const struct flow *flow,
                                    const struct rpcrdma_header *h);

/* The bytes of the call, or of the reply, are there: report the message, or copy them until its
 * chunks are complete. May free the exchange. */
void exchange_offer_call(struct rdma *r, struct exchange *x, const uint8_t *bytes);
void exchange_offer_reply(struct rdma *r, struct exchange *x, const uint8_t *bytes);

/* After new data: report messages that have become complete. May free the exchange. */
void exchange_check(struct rdma *r, struct exchange *x);

/* Give up: report holes, or a reply without a call. `reason` 0: the capture ends. */
void exchange_finish(struct rdma *r, struct exchange *x, int reason);

/* Report replies whose calls did not come within the reorder window, or all such replies. */
void exchange_expire(struct rdma *r, bool all);

/* Give up the exchanges of doomed flows. */
void exchange_finish_doomed(struct rdma *r);

/* Free without a report. */
void exchange_free(struct rdma *r, struct exchange *x);

#endif
