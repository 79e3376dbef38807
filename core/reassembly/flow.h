/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who talks to whom. A flow is what goes one way: to one queue pair of a host, from one other host.
 * A connection is two flows; which two belong together is learned from the connection manager, from
 * acknowledgements and read responses, or from a reply that answers a call.
 */
#ifndef REASSEMBLY_FLOW_H
#define REASSEMBLY_FLOW_H

#include <ndx/reassembly.h>

#include "base_list.h"
#include "link.h"
#include "table.h"

struct rdma;
struct stream;

/* How far back a packet may be and still be told from a new one, in packets. */
#define FLOW_WINDOW 32768u
/* Operations and early SEND packets that a flow may have open. */
#define FLOW_OPEN_MAX 1024u

/* Two hosts. */
struct peers {
	struct node node;
	uint8_t address[2][16]; /* sorted */
	uint8_t transport;
	bool self; /* both are the same: there is but one direction */
	uint32_t flow_count;
	struct base_list flows[2]; /* by direction */
};

struct connection {
	struct ndx_rdma_connection pub;
	uint32_t flows;   /* that refer to it */
	bool rpc;         /* RPC-over-RDMA was seen */
	uint32_t orphans; /* packets held in vain */
};

/* Which of the last FLOW_WINDOW sequence numbers were seen. */
struct window {
	uint64_t top;
	uint64_t *bits; /* NULL until the first */
};

struct flow {
	struct node node;
	struct base_list in_peers;
	struct base_list used; /* least recently used first */
	struct peers *peers;
	struct connection *connection;
	struct flow *pair; /* the other way; NULL: not known */
	uint8_t address[32];
	uint32_t number; /* destination queue pair, or both TCP ports */
	uint8_t transport;
	uint8_t direction;
	bool begun;   /* `seen` has a top */
	bool doomed;  /* about to be freed */
	uint32_t mtu; /* of the path; 0: not known */
	uint64_t
		manager; /* which connection of the manager it is: both identifiers; 0: not known */
	/* InfiniBand: requests that go this way. Their order numbers are unwrapped PSNs. */
	struct window seen;      /* requests */
	struct window answered;  /* responses to them, which come the other way */
	struct base_list writes; /* sub-segments */
	struct base_list reads;
	struct base_list *hot_write; /* where the last one was found; the list itself: nowhere */
	struct base_list *hot_read;
	uint32_t open;
	struct base_list sends; /* packets of SENDs in several packets, sorted */
	uint32_t send_count;
	uint32_t send_high; /* most there ever were: bounds what one packet can cost */
	/* iWARP */
	struct stream *stream;
	struct base_list gap; /* in rdma->gaps, while the stream has one that was acknowledged */
	struct base_list requests; /* read requests that went this way */
	uint32_t request_count;
};

/* The flow of a packet, made if it is new; NULL if out of memory. */
struct flow *flow_of(struct rdma *r, const struct frame *frame, uint32_t number);

/* The flows that go the other way, where the pair of `flow` would be. */
struct base_list *flow_opposites(const struct flow *flow);

/* Of TCP: the flow that goes the other way, if it is known. */
struct flow *flow_reverse(struct rdma *r, const struct flow *flow);

/* Likewise, than a frame of TCP. */
struct flow *flow_back(struct rdma *r, const struct frame *frame);

/* May the two be the directions of one connection, as far as is known? */
static inline bool flow_may_pair(const struct flow *a, const struct flow *b)
{
	return a->pair == b || (a->pair == NULL && b->pair == NULL && a != b);
}

/* They are. Reports the connection. */
void flow_pair(struct rdma *r, struct flow *a, struct flow *b);

/* A new queue pair has taken the place of the old one: nothing of before counts. */
void flow_restart(struct rdma *r, struct flow *flow, uint32_t psn);

/* Unwrap a sequence number, near the highest seen of this flow. */
uint64_t flow_order(const struct flow *flow, uint32_t psn);

enum window_verdict { WINDOW_NEW, WINDOW_SEEN, WINDOW_OLD, WINDOW_NO_MEMORY };

/* Note a sequence number, and say whether it was noted before. */
enum window_verdict window_mark(struct window *window, struct mem *mem, uint64_t order);

/* Was it noted? */
bool window_has(const struct window *window, uint64_t order);

/* Give up the least recently used flows, to make room. */
void flow_evict(struct rdma *r, enum ndx_eviction_reason reason);

/* Free all. */
void flow_free_all(struct rdma *r);

#endif
