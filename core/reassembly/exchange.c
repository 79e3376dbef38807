/* SPDX-License-Identifier: BSD-2-Clause */
#include "exchange.h"

#include <string.h>

#include <ndx/spi/hash.h>
#include "rdma.h"

/* At most so many holes are reported of a segment; a segment with more is reported as one hole. */
#define HOLES_MAX 256

static uint64_t hash_of(const struct rdma *r, const struct peers *peers, uint8_t direction,
                        uint32_t xid)
{
	return ndxp_hash_mix(ndxp_hash_mix(r->seed, (uint64_t)(uintptr_t)peers),
	                     (uint64_t)xid << 2 | (peers->self ? 0u : direction) << 1 | 1u);
}

struct exchange *exchange_create(struct rdma *r, const struct flow *flow, uint8_t direction,
                                 uint32_t xid)
{
	struct exchange *x = mem_zero(&r->mem, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->peers = flow->peers;
	x->direction = direction;
	x->xid = xid;
	x->touched_ns = r->now;
	ndxp_list_init(&x->waiting);
	ndxp_list_add(&r->ages, &x->age);
	ndxp_table_add(&r->exchanges, &x->node, hash_of(r, x->peers, direction, xid));
	return x;
}

static void held_free(struct rdma *r, struct held *h)
{
	mem_put(&r->mem, h->bytes, h->length);
	h->bytes = NULL;
}

void exchange_free(struct rdma *r, struct exchange *x)
{
	for (uint32_t i = 0; i < x->segment_count; i++)
		rdma_del_segment(r, x->segments[i]);
	mem_put(&r->mem, x->segments, x->segment_room * sizeof(struct segment *));
	mem_put(&r->mem, x->returned, x->returned_room * sizeof(*x->returned));
	held_free(r, &x->call);
	held_free(r, &x->reply);
	ndxp_table_remove(&x->node);
	ndxp_list_remove(&x->age);
	ndxp_list_remove(&x->waiting);
	mem_put(&r->mem, x, sizeof(*x));
}

/* Copy the bytes, because they have to wait. Without memory, the message stays incomplete. */
static void keep_bytes(struct rdma *r, struct held *held, const uint8_t *bytes)
{
	held->bytes = mem_get(&r->mem, held->length);
	if (held->bytes != NULL && held->length > 0)
		memcpy(held->bytes, bytes, held->length);
	else
		held->original = UINT32_MAX;
}

static bool cut(const struct held *held)
{
	return held->length < held->original;
}

static bool reads_whole(const struct exchange *x)
{
	for (uint32_t i = 0; i < x->reads; i++) {
		if (!segment_whole(x->segments[i]))
			return false;
	}
	return true;
}

static bool writes_whole(const struct exchange *x)
{
	for (uint32_t i = 0; i < x->returned_count; i++) {
		if (!segment_whole(x->returned[i].segment))
			return false;
	}
	return true;
}

static void describe(const struct exchange *x, const struct held *held, const uint8_t *bytes,
                     struct ndx_rpc_message *m)
{
	m->xid = x->xid;
	m->version = held->version;
	m->header_type = held->type;
	m->credits = held->credits;
	m->program = x->program;
	m->program_version = x->program_version;
	m->procedure = x->procedure;
	m->reduced = bytes + held->body;
	/* The bytes after the header of an RDMA_NOMSG are not part of the message. */
	m->reduced_length = held->type == RPCRDMA_NOMSG ? 0 : held->length - held->body;
}

/* The RPC header after the RPC-over-RDMA header, or in the chunk at position 0 of a long call. */
static void learn_program(struct exchange *x, const struct ndx_rpc_message *m)
{
	uint8_t head[24];

	if (x->program != 0 || ndx_piece_copy(m->pieces, m->piece_count, head, 24) < 24)
		return;
	x->program = (uint32_t)head[12] << 24 | (uint32_t)head[13] << 16 | head[14] << 8 | head[15];
	x->program_version =
		(uint32_t)head[16] << 24 | (uint32_t)head[17] << 16 | head[18] << 8 | head[19];
	x->procedure =
		(uint32_t)head[20] << 24 | (uint32_t)head[21] << 16 | head[22] << 8 | head[23];
}

/* The call is complete; its read segments are not needed any more. */
static void emit_call(struct rdma *r, struct exchange *x, const uint8_t *bytes)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_CALL};

	describe(x, &x->call, bytes, &event.rpc);
	x->call_done = true;
	if (rdma_reassemble_reads(r, x, event.rpc.reduced, (uint32_t)event.rpc.reduced_length,
	                          &event.rpc)) {
		learn_program(x, &event.rpc);
		event.rpc.program = x->program;
		event.rpc.program_version = x->program_version;
		event.rpc.procedure = x->procedure;
		event.rpc.call_known = true;
		event.rpc.call_packet = x->call.packet;
		r->stats.calls++;
		rdma_report(r, x->call_flow, &event);
	}
	for (uint32_t i = 0; i < x->reads; i++)
		rdma_del_segment(r, x->segments[i]);
	if (x->reads > 0)
		memmove(x->segments, x->segments + x->reads,
		        (x->segment_count - x->reads) * sizeof(struct segment *));
	x->segment_count -= x->reads;
	x->reads = 0;
	held_free(r, &x->call);
}

static void emit_reply(struct rdma *r, struct exchange *x, const uint8_t *bytes)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_REPLY};

	describe(x, &x->reply, bytes, &event.rpc);
	x->reply_done = true;
	event.rpc.call_known = x->call_flow != NULL;
	event.rpc.call_packet = x->call.packet;
	if (!rdma_reassemble_writes(r, x, event.rpc.reduced, (uint32_t)event.rpc.reduced_length,
	                            &event.rpc))
		return;
	if (event.rpc.call_known)
		r->stats.replies++;
	else
		r->stats.replies_unmatched++;
	rdma_report(r, x->reply_flow, &event);
}

static bool reply_ready(const struct exchange *x)
{
	return x->reply_flow != NULL && !x->reply_done && !cut(&x->reply) && writes_whole(x);
}

void exchange_check(struct rdma *r, struct exchange *x)
{
	if (x->call.bytes != NULL && !x->call_done && !cut(&x->call) && reads_whole(x))
		emit_call(r, x, x->call.bytes);
	if (x->call_flow != NULL && x->reply.bytes != NULL && reply_ready(x))
		emit_reply(r, x, x->reply.bytes);
	if (x->call_done && x->reply_done)
		exchange_free(r, x);
}

void exchange_offer_call(struct rdma *r, struct exchange *x, const uint8_t *bytes)
{
	if (!cut(&x->call) && reads_whole(x))
		emit_call(r, x, bytes);
	else
		keep_bytes(r, &x->call, bytes);
	exchange_check(r, x);
}

void exchange_offer_reply(struct rdma *r, struct exchange *x, const uint8_t *bytes)
{
	if (x->call_flow != NULL && reply_ready(x))
		emit_reply(r, x, bytes);
	else
		keep_bytes(r, &x->reply, bytes);
	exchange_check(r, x);
}

struct exchange *exchange_find_orphan(struct rdma *r, const struct flow *flow, uint32_t xid)
{
	uint64_t hash = hash_of(r, flow->peers, flow->direction, xid);

	if (ndxp_list_empty(&r->orphans))
		return NULL;
	for (struct ndxp_table_node *n = ndxp_table_first(&r->exchanges, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		struct exchange *x = container_of(n, struct exchange, node);

		if (x->xid == xid && x->call_flow == NULL && x->peers == flow->peers &&
		    flow_may_pair(x->reply_flow, flow))
			return x;
	}
	return NULL;
}

static bool names(const struct exchange *x, const struct rpcrdma_header *h)
{
	const struct rpcrdma_segment *named = rpcrdma_writes(h);

	if (h->writes + h->replies == 0)
		return true;
	for (uint32_t i = 0; i < x->segment_count; i++) {
		if (x->segments[i]->handle == named->handle &&
		    x->segments[i]->offset == named->offset)
			return true;
	}
	return false;
}

struct exchange *exchange_find_call(struct rdma *r, const struct flow *flow,
                                    const struct rpcrdma_header *h)
{
	uint64_t hash = hash_of(r, flow->peers, flow->direction ^ 1, h->xid);
	struct exchange *best = NULL;
	bool best_names = false;

	for (struct ndxp_table_node *n = ndxp_table_first(&r->exchanges, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		struct exchange *x = container_of(n, struct exchange, node);

		if (x->xid != h->xid || x->call_flow == NULL || x->reply_flow != NULL ||
		    x->peers != flow->peers || x->call_flow == flow ||
		    !flow_may_pair(x->call_flow, flow))
			continue;
		if (best == NULL || names(x, h) || !best_names) {
			best = x;
			best_names = names(x, h);
		}
	}
	return best;
}

/* The packets that would fill a gap, if an operation is known. */
static void name_packets(const struct segment *s, struct ndx_hole *hole)
{
	struct ndxp_list *at;
	uint64_t address = s->offset + hole->offset;

	for (at = s->subs.next; at != &s->subs; at = at->next) {
		const struct sub_segment *sub = container_of(at, struct sub_segment, in_segment);
		uint64_t from = address - sub->address;

		if (from >= sub->dma_length || sub->mtu == 0)
			continue;
		hole->has_psn = true;
		hole->first_psn = (uint32_t)(sub->first + from / sub->mtu) & PSN_MASK;
		from += hole->length - 1;
		if (from >= sub->dma_length)
			from = sub->dma_length - 1;
		hole->last_psn = (uint32_t)(sub->first + from / sub->mtu) & PSN_MASK;
		return;
	}
}

static void report_holes(struct rdma *r, const struct exchange *x, const struct segment *s)
{
	static const enum ndx_hole_kind kinds[] = {
		[NDX_RPC_CHUNK_READ] = NDX_HOLE_READ,
		[NDX_RPC_CHUNK_WRITE] = NDX_HOLE_WRITE,
		[NDX_RPC_CHUNK_REPLY] = NDX_HOLE_REPLY,
	};
	struct range gap = {0, 0};

	for (int i = 0; i < HOLES_MAX && range_gap(&s->present, gap.to, s->wanted, &gap); i++) {
		struct ndx_hole hole = {.kind = kinds[s->kind],
		                        .xid = x->xid,
		                        .handle = s->handle,
		                        .offset = gap.from,
		                        .length = gap.to - gap.from};

		name_packets(s, &hole);
		rdma_report_hole(r, x->call_flow != NULL ? x->call_flow : x->reply_flow, &hole);
	}
}

/* Report a reply whose call did not come. */
static void finish_orphan(struct rdma *r, struct exchange *x)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_ORPHAN};

	if (x->refused)
		return; /* reported already */
	event.orphan.kind = NDX_ORPHAN_REPLY;
	event.orphan.xid = x->xid;
	event.orphan.psn = (uint32_t)x->reply.order & PSN_MASK;
	event.orphan.length = x->reply.length;
	rdma_report(r, x->reply_flow, &event);
	if (x->reply.bytes != NULL && reply_ready(x))
		emit_reply(r, x, x->reply.bytes);
}

void exchange_finish(struct rdma *r, struct exchange *x, int reason)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_EVICTION};
	const struct flow *flow = x->call_flow != NULL ? x->call_flow : x->reply_flow;
	size_t before = r->mem.held;

	if (x->call_flow == NULL)
		finish_orphan(r, x);
	else if (x->call_done && x->reply_flow == NULL)
		r->stats.calls_unanswered++;
	if (x->call_flow != NULL && !x->call_done) {
		r->stats.calls_incomplete++;
		for (uint32_t i = 0; i < x->reads; i++)
			report_holes(r, x, x->segments[i]);
	}
	if (x->reply_flow != NULL && !x->reply_done) {
		r->stats.replies_incomplete++;
		for (uint32_t i = 0; i < x->returned_count; i++)
			report_holes(r, x, x->returned[i].segment);
	}
	event.eviction.xid = x->xid;
	event.eviction.segments = x->segment_count;
	exchange_free(r, x);
	if (reason == 0)
		return;
	event.eviction.reason = (enum ndx_eviction_reason)reason;
	event.eviction.bytes = before > r->mem.held ? before - r->mem.held : 0;
	rdma_report(r, flow, &event);
}

void exchange_expire(struct rdma *r, bool all)
{
	while (!ndxp_list_empty(&r->orphans)) {
		struct exchange *x = container_of(r->orphans.next, struct exchange, waiting);

		if (!all && r->stats.packets - x->reply.packet <= r->attr.reorder_packets)
			return;
		exchange_finish(r, x, 0);
	}
}

void exchange_finish_doomed(struct rdma *r)
{
	struct ndxp_list *at = r->ages.next;

	while (at != &r->ages) {
		struct exchange *x = container_of(at, struct exchange, age);

		at = at->next;
		if ((x->call_flow != NULL && x->call_flow->doomed) ||
		    (x->reply_flow != NULL && x->reply_flow->doomed))
			exchange_finish(r, x, NDX_EVICTION_CONNECTIONS);
	}
}
