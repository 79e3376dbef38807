/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments by connection, owner, handle and generation. */
#include <ndx/spi/hash.h>
#include "rdma.h"

static uint64_t hash_of(const struct rdma *r, const struct peers *peers, uint8_t owner,
                        uint32_t handle)
{
	return ndxp_hash_mix(ndxp_hash_mix(r->seed, (uint64_t)(uintptr_t)peers),
	                     (uint64_t)handle << 1 | (peers->self ? 0 : owner));
}

void rdma_enter_segment(struct rdma *r, struct segment *s)
{
	const struct exchange *x = s->exchange;

	ndxp_table_add(&r->segments, &s->node, hash_of(r, x->peers, x->direction, s->handle));
	r->stats.segments++;
}

/* Whether data of this flow can be for segments of that exchange. */
static bool concerns(const struct exchange *x, const struct flow *flow)
{
	if (x->peers != flow->peers)
		return false;
	if (x->call_flow == NULL)
		return x->reply_flow == flow;
	if (x->reply_flow != NULL)
		return x->reply_flow == flow;
	return x->call_flow != flow && flow_may_pair(x->call_flow, flow) &&
	       (x->peers->self || x->direction != flow->direction);
}

struct segment *rdma_get_segment(struct rdma *r, const struct flow *flow, uint32_t handle,
                                 uint64_t address, uint64_t order)
{
	uint64_t hash = hash_of(r, flow->peers, flow->direction ^ 1, handle);
	struct segment *best = NULL;

	for (struct ndxp_table_node *n = ndxp_table_first(&r->segments, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		struct segment *s = container_of(n, struct segment, node);
		uint64_t at = address - s->offset;

		if (s->handle != handle || at >= s->length || (s->end != 0 && order >= s->end) ||
		    !concerns(s->exchange, flow))
			continue;
		/* The handle is in use twice while the reply that ended the older use has not been
		 * seen. If the reply was only overtaken, these data are for the older use. */
		if (best == NULL ||
		    (r->stats.packets - best->registered <= r->attr.reorder_packets &&
		     !range_covers(&s->present, at, at + 1)))
			best = s;
	}
	return best;
}

void rdma_free_sub(struct rdma *r, struct sub_segment *sub)
{
	struct flow *flow = sub->flow;

	if (flow->hot_write == &sub->in_flow)
		flow->hot_write = &flow->writes;
	if (flow->hot_read == &sub->in_flow)
		flow->hot_read = &flow->reads;
	ndxp_list_remove(&sub->in_flow);
	ndxp_list_remove(&sub->in_segment);
	flow->open--;
	mem_put(&r->mem, sub, sizeof(*sub));
}

void rdma_del_segment(struct rdma *r, struct segment *segment)
{
	while (!ndxp_list_empty(&segment->subs))
		rdma_free_sub(r, container_of(segment->subs.next, struct sub_segment, in_segment));
	ndxp_table_remove(&segment->node);
	r->stats.segments--;
	segment_free(segment, &r->mem);
}

void rdma_invalidate(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t order)
{
	uint64_t hash = hash_of(r, flow->peers, flow->direction ^ 1, handle);

	for (struct ndxp_table_node *n = ndxp_table_first(&r->segments, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		struct segment *s = container_of(n, struct segment, node);

		/* The call may have been sent later and have overtaken these data: then keep the
		 * young segment. */
		if (s->handle == handle && s->end == 0 && concerns(s->exchange, flow) &&
		    r->stats.packets - s->registered > r->attr.reorder_packets)
			s->end = order;
	}
}
