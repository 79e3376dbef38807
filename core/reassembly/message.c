/* SPDX-License-Identifier: BSD-2-Clause */
/* Complete SENDs: RPC calls, replies and errors, and the segments that they name. */
#include "rdma.h"

/* An RPC message that was sent. `bytes` has the header and the inline part. */
struct arrival {
	struct flow *flow;
	const uint8_t *bytes;
	uint32_t length, original;
	uint64_t order;
};

static void hold_arrival(struct rdma *r, struct held *held, const struct arrival *a,
                         const struct rpcrdma_header *h)
{
	*held = (struct held){
		.length = a->length,
		.original = a->original,
		.body = h->size < a->length ? h->size : a->length,
		.type = h->type,
		.version = h->version,
		.credits = h->credits,
		.order = a->order,
		.packet = r->stats.packets,
	};
}

/* Store the segments of the call: read segments first, sorted by position. */
static bool call_segments(struct rdma *r, struct exchange *x, const struct rpcrdma_header *h)
{
	const struct rpcrdma_segment *w = rpcrdma_writes(h), *reply = rpcrdma_reply(h);

	for (uint32_t i = 0; i < h->reads; i++) {
		struct segment *s = rdma_add_segment(r, x, &h->segments[i], NDX_RPC_CHUNK_READ);
		uint32_t at = x->segment_count;

		if (s == NULL)
			return false;
		/* Insert: reads first, sorted by position, otherwise in the order of the list. */
		for (at--; at > x->reads; at--)
			x->segments[at] = x->segments[at - 1];
		for (; at > 0 && x->segments[at - 1]->position > s->position; at--)
			x->segments[at] = x->segments[at - 1];
		x->segments[at] = s;
		x->reads++;
	}
	for (uint32_t i = 0; i < h->writes; i++) {
		if (rdma_add_segment(r, x, &w[i], NDX_RPC_CHUNK_WRITE) == NULL)
			return false;
	}
	for (uint32_t i = 0; i < h->replies; i++) {
		if (rdma_add_segment(r, x, &reply[i], NDX_RPC_CHUNK_REPLY) == NULL)
			return false;
	}
	return true;
}

/* Whether the reply has named the segment before: a sender may, in a chunk that makes no sense. */
static bool is_returned(const struct exchange *x, const struct segment *s)
{
	for (uint32_t i = 0; i < x->returned_count; i++) {
		if (x->returned[i].segment == s)
			return true;
	}
	return false;
}

static bool return_segment(struct rdma *r, struct exchange *x, const struct rpcrdma_segment *named,
                           uint8_t kind)
{
	struct segment *s = rdma_add_segment(r, x, named, kind);
	struct returned *grown;
	uint32_t length;

	if (s == NULL)
		return false;
	length = named->length < s->length ? named->length : s->length;
	grown = mem_grow(&r->mem, x->returned, &x->returned_room, x->returned_count + 1,
	                 sizeof(*grown));
	if (grown == NULL)
		return false;
	x->returned = grown;
	/* The pieces of the message point to all bytes that the reply names, so all must come. */
	if (length > s->wanted || !is_returned(x, s))
		s->wanted = length;
	grown[x->returned_count++] = (struct returned){s, length, named->chunk};
	return true;
}

static bool reply_segments(struct rdma *r, struct exchange *x, const struct rpcrdma_header *h)
{
	const struct rpcrdma_segment *w = rpcrdma_writes(h), *reply = rpcrdma_reply(h);

	for (uint32_t i = 0; h->type == RPCRDMA_NOMSG && i < h->replies; i++) {
		if (!return_segment(r, x, &reply[i], NDX_RPC_CHUNK_REPLY))
			return false;
	}
	for (uint32_t i = 0; i < h->writes; i++) {
		if (!return_segment(r, x, &w[i], NDX_RPC_CHUNK_WRITE))
			return false;
	}
	for (uint32_t i = 0; i < x->segment_count; i++)
		x->segments[i]->end = x->reply.order;
	return true;
}

/* Add the segments of the chunk lists of a call or reply. (process_rdma_segments) */
static bool process_segments(struct rdma *r, struct exchange *x, const struct rpcrdma_header *h,
                             bool call)
{
	return call ? call_segments(r, x, h) : reply_segments(r, x, h);
}

static void take_call(struct rdma *r, const struct arrival *a, const struct rpcrdma_header *h)
{
	struct exchange *x = exchange_find_orphan(r, a->flow, h->xid);

	if (x == NULL)
		x = exchange_create(r, a->flow, a->flow->direction, h->xid);
	if (x == NULL)
		return;
	x->call_flow = a->flow;
	ndxp_list_remove(&x->waiting);
	if (x->reply_flow != NULL)
		flow_pair(r, a->flow, x->reply_flow);
	x->program = h->program;
	x->program_version = h->program_version;
	x->procedure = h->procedure;
	hold_arrival(r, &x->call, a, h);
	if (h->cut)
		x->call.original = UINT32_MAX;
	if (!process_segments(r, x, h, true))
		x->call.original =
			UINT32_MAX; /* without all segments the call cannot become complete */
	exchange_offer_call(r, x, a->bytes);
}

static void take_reply(struct rdma *r, const struct arrival *a, const struct rpcrdma_header *h)
{
	struct exchange *x = exchange_find_call(r, a->flow, h);

	if (x == NULL)
		x = exchange_create(r, a->flow, a->flow->direction ^ 1, h->xid);
	if (x == NULL)
		return;
	x->reply_flow = a->flow;
	if (x->call_flow != NULL)
		flow_pair(r, x->call_flow, a->flow);
	else
		ndxp_list_add(&r->orphans, &x->waiting);
	hold_arrival(r, &x->reply, a, h);
	if (h->cut)
		x->reply.original = UINT32_MAX;
	if (!process_segments(r, x, h, false))
		x->reply.original = UINT32_MAX;
	exchange_offer_reply(r, x, a->bytes);
}

static void take_error(struct rdma *r, const struct arrival *a, const struct rpcrdma_header *h)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_ERROR};
	struct exchange *x = exchange_find_call(r, a->flow, h);

	r->stats.errors++;
	event.error = (struct ndx_rpc_error){h->xid, h->error_code, h->error_low, h->error_high};
	rdma_report(r, a->flow, &event);
	if (x == NULL) { /* the reply may have overtaken the call */
		x = exchange_create(r, a->flow, a->flow->direction ^ 1, h->xid);
		if (x == NULL)
			return;
		x->refused = true;
		ndxp_list_add(&r->orphans, &x->waiting);
	}
	x->reply_done = true; /* there will be no other reply */
	x->reply_flow = a->flow;
	x->reply.order = a->order;
	x->reply.packet = r->stats.packets;
	if (x->call_done)
		exchange_free(r, x);
}

void rdma_message(struct rdma *r, struct flow *flow, struct ndx_rdma_send *send, uint64_t order)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_SEND};
	struct arrival a = {flow, send->bytes, (uint32_t)send->length, (uint32_t)send->original,
	                    order};
	enum rpcrdma_verdict verdict = rpcrdma_parse(a.bytes, a.length, a.original, r->header);
	bool rpc = verdict == RPCRDMA_YES;

	if (verdict != RPCRDMA_NO)
		send->rpc_version = r->header->version;
	flow->connection->rpc = flow->connection->rpc || rpc;
	r->stats.sends++;
	event.send = *send;
	rdma_report(r, flow, &event);
	if (a.length < a.original) {
		struct ndx_hole hole = {.kind = NDX_HOLE_SEND,
		                        .offset = a.length,
		                        .length = a.original - a.length,
		                        .xid = rpc ? r->header->xid : 0};

		rdma_report_hole(r, flow, &hole);
	}
	if (rpc && r->header->is_call)
		take_call(r, &a, r->header);
	else if (rpc && r->header->is_reply)
		take_reply(r, &a, r->header);
	else if (rpc && r->header->type == RPCRDMA_ERROR && !r->header->cut)
		take_error(r, &a, r->header);
	if (send->has_invalidate)
		rdma_invalidate(r, flow, send->invalidate, order);
}
