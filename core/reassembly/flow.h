/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows: a flow is the traffic in one direction, to one queue pair of a host from one other host. A
 * connection is two flows; which two belong together is known from the connection manager, from
 * acknowledgements and read responses, or from a reply to a call. */
#ifndef REASSEMBLY_FLOW_H
#define REASSEMBLY_FLOW_H

#include <ndx/reassembly.h>

#include <ndx/spi/list.h>
#include <ndx/spi/table.h>
#include "link.h"
#include "mem.h"

struct rdma;
struct stream;

/* The distance from the newest packet up to which duplicates are detected, in packets. */
#define FLOW_WINDOW 32768u
/* Where the numbers of a flow begin, so that none of them is 0. */
#define FLOW_EPOCH (UINT64_C(1) << 32)
/* The maximum of open operations, and of early SEND packets, per flow. */
#define FLOW_OPEN_MAX 1024u

/* Two hosts. */
struct peers {
	struct ndxp_table_node node;
	uint8_t address[2][16]; /* sorted */
	uint8_t transport;
	bool self; /* both are the same host: there is only one direction */
	uint32_t flow_count;
	struct ndxp_list flows[2]; /* by direction */
};

struct connection {
	struct ndx_rdma_connection pub;
	uint32_t flows;   /* references */
	bool rpc;         /* RPC-over-RDMA was found */
	uint32_t orphans; /* packets that were held without use */
};

/* The sequence numbers among the last FLOW_WINDOW that were seen. */
struct window {
	uint64_t top;
	uint64_t *bits; /* NULL until the first */
};

struct flow {
	struct ndxp_table_node node;
	struct ndxp_list in_peers;
	struct ndxp_list used; /* least recently used first */
	struct peers *peers;
	struct connection *connection;
	struct flow *pair; /* the reverse direction; NULL: unknown */
	uint8_t address[32];
	uint32_t number; /* destination queue pair, or both TCP ports */
	uint8_t transport;
	uint8_t direction;
	bool begun;       /* `seen.top` is valid */
	bool doomed;      /* about to be freed */
	uint32_t mtu;     /* of the path; 0: unknown */
	uint64_t manager; /* both identifiers of the connection manager; 0: unknown */
	/* InfiniBand: requests in this direction. Their order numbers are unwrapped PSNs. */
	struct window seen;      /* requests */
	struct window answered;  /* responses to them, in the reverse direction */
	struct ndxp_list writes; /* sub-segments */
	struct ndxp_list reads;
	struct ndxp_list *hot_write; /* where the latest was found; the list head: none */
	struct ndxp_list *hot_read;
	uint32_t open;
	struct ndxp_list sends; /* packets of SENDs in several packets, sorted */
	uint32_t send_count;
	uint32_t send_high; /* the most there ever were: limits the cost of a packet */
	/* iWARP */
	struct stream *stream;
	struct ndxp_list gap;      /* in rdma->gaps, while the stream has an acknowledged gap */
	struct ndxp_list requests; /* read requests in this direction */
	uint32_t request_count;
};

/* ---- flow.c ---- */

/* The flows of the reverse direction, among which the pair of `flow` would be. */
struct ndxp_list *flow_opposites(const struct flow *flow);

/* Whether the two can be the directions of one connection, as far as known. */
static inline bool flow_may_pair(const struct flow *a, const struct flow *b)
{
	return a->pair == b || (a->pair == NULL && b->pair == NULL && a != b);
}

/* Make them a pair. Reports the connection. */
void flow_pair(struct rdma *r, struct flow *a, struct flow *b);
void flow_unpair(struct flow *flow);

/* Write what the flow knows into its connection, and drop a reference to a connection. */
void flow_fill_connection(struct connection *c, const struct flow *flow);
void flow_put_connection(struct rdma *r, struct connection *c);

/* Unwrap a sequence number that is near the highest of this flow. */
uint64_t flow_order(const struct flow *flow, uint32_t psn);

enum window_verdict { WINDOW_NEW, WINDOW_SEEN, WINDOW_OLD, WINDOW_NO_MEMORY };

/* Mark a sequence number, and return whether it was marked before. */
enum window_verdict window_mark(struct window *window, struct mem *mem, uint64_t order);

/* Whether a sequence number is marked. */
bool window_has(const struct window *window, uint64_t order);

/* ---- flow_table.c ---- */

/* The flow of a packet, created if new; NULL if out of memory. */
struct flow *flow_of(struct rdma *r, const struct frame *frame, uint32_t number);

/* TCP: the flow of the reverse direction, if known. */
struct flow *flow_reverse(struct rdma *r, const struct flow *flow);

/* TCP: the flow of the reverse direction of a frame. */
struct flow *flow_back(struct rdma *r, const struct frame *frame);

/* A new queue pair has replaced the old one: forget everything before. */
void flow_restart(struct rdma *r, struct flow *flow, uint32_t psn);

/* Give up the least recently used flows to free memory. */
void flow_evict(struct rdma *r, enum ndx_eviction_reason reason);

/* Free all flows. */
void flow_free_all(struct rdma *r);

#endif
