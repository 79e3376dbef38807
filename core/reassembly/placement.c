/* SPDX-License-Identifier: BSD-2-Clause */
/* Places data in their segments: data that came before their segment, and data of a known one. */
#include "rdma.h"

/* Place data that came before the segment was known. */
static void place_early(struct rdma *r, struct segment *s)
{
	struct exchange *x = s->exchange;
	struct early *e = early_first_data(r, x->peers, x->direction ^ 1, s->handle), *next;

	for (; e != NULL; e = next) {
		next = early_next(e);
		if (e->kind != EARLY_DATA || e->handle != s->handle || e->flow->peers != x->peers ||
		    !segment_contains(s, e->address))
			continue;
		if (rdma_get_segment(r, e->flow, e->handle, e->address, e->order) != s)
			continue;
		(void)segment_add_fragment(s, &r->mem, e->address, e->data, e->length);
		early_remove(r, e);
	}
}

/* Make room for one more segment, by giving up the oldest exchange except `x`. */
static bool segment_room(struct rdma *r, const struct exchange *x)
{
	while (r->stats.segments >= r->attr.max_segments) {
		struct ndxp_list *at = r->ages.next;

		if (at == &x->age)
			at = at->next;
		if (at == &r->ages)
			return false;
		exchange_finish(r, container_of(at, struct exchange, age), NDX_EVICTION_SEGMENTS);
	}
	return true;
}

struct segment *rdma_add_segment(struct rdma *r, struct exchange *x,
                                 const struct rpcrdma_segment *named, uint8_t kind)
{
	struct segment **grown;
	struct segment *s;

	for (uint32_t i = 0; i < x->segment_count; i++) {
		s = x->segments[i];
		if (s->kind == kind && s->handle == named->handle && s->offset == named->offset &&
		    (kind == NDX_RPC_CHUNK_REPLY || s->chunk == named->chunk) &&
		    kind != NDX_RPC_CHUNK_READ)
			return s;
	}
	if (!segment_room(r, x))
		return NULL;
	grown = mem_grow(&r->mem, x->segments, &x->segment_room, x->segment_count + 1,
	                 sizeof(struct segment *));
	if (grown == NULL)
		return NULL;
	x->segments = grown;
	s = segment_create(&r->mem, named->handle, named->offset, named->length);
	if (s == NULL)
		return NULL;
	s->exchange = x;
	s->kind = kind;
	s->position = named->position;
	s->chunk = named->chunk;
	s->registered = r->stats.packets;
	if (x->reply_flow != NULL)
		s->end = x->reply.order;
	x->segments[x->segment_count++] = s;
	rdma_enter_segment(r, s);
	place_early(r, s);
	return s;
}

static void touch(struct rdma *r, struct exchange *x)
{
	x->touched_ns = r->now;
	if (r->ages.prev != &x->age) {
		ndxp_list_remove(&x->age);
		ndxp_list_add(&r->ages, &x->age);
	}
}

static void placed(struct rdma *r, struct segment *s)
{
	touch(r, s->exchange);
	if (segment_whole(s))
		exchange_check(r, s->exchange);
}

void rdma_place_in(struct rdma *r, struct segment *s, uint64_t address, const uint8_t *data,
                   uint32_t length)
{
	if (segment_add_fragment(s, &r->mem, address, data, length))
		placed(r, s);
}

void rdma_place(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t address,
                uint64_t order, const uint8_t *data, uint32_t captured, uint32_t length)
{
	struct segment *s = rdma_get_segment(r, flow, handle, address, order);
	struct early e = {.flow = flow,
	                  .order = order,
	                  .address = address,
	                  .handle = handle,
	                  .length = captured,
	                  .original = length,
	                  .kind = EARLY_DATA};

	if (captured == 0)
		return;
	if (s == NULL) {
		early_hold(r, &e, data);
		return;
	}
	rdma_place_in(r, s, address, data, captured);
}
