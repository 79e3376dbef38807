/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdma.h"

#include <string.h>

#include "base_hash.h"

static uint64_t hash_of(const struct rdma *r, const struct peers *peers, uint8_t owner,
                        uint32_t handle)
{
	return base_hash_mix(base_hash_mix(r->seed, (uint64_t)(uintptr_t)peers),
	                     (uint64_t)handle << 1 | (peers->self ? 0 : owner));
}

void *rdma_grow(struct mem *mem, void *at, uint32_t *room, uint32_t want, size_t element)
{
	uint32_t size = *room == 0 ? 8 : *room;
	void *moved;

	if (want <= *room)
		return at;
	while (size < want)
		size *= 2;
	moved = mem_resize(mem, at, *room * element, size * element);
	if (moved != NULL)
		*room = size;
	return moved;
}

/* Report the connection before its first other event. */
static void introduce(struct rdma *r, struct connection *c, const struct flow *flow, bool report)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_CONNECTION};

	c->pub.id = ++r->connections;
	r->stats.connections++;
	event.packet = r->stats.packets;
	event.time_ns = r->packet_time;
	event.connection = &c->pub;
	event.direction = flow->direction;
	if (report)
		r->attr.on_event(r->attr.context, &event);
}

void rdma_report(struct rdma *r, const struct flow *flow, struct ndx_reassembly_event *event)
{
	if (r->quiet)
		return;
	event->packet = r->stats.packets;
	event->time_ns = r->packet_time;
	if (flow != NULL) {
		if (flow->connection->pub.id == 0)
			introduce(r, flow->connection, flow,
			          event->type != NDX_REASSEMBLY_CONNECTION);
		event->connection = &flow->connection->pub;
		event->direction = flow->direction;
	}
	if (event->type == NDX_REASSEMBLY_ORPHAN)
		r->stats.orphans++;
	else if (event->type == NDX_REASSEMBLY_EVICTION)
		r->stats.evictions++;
	r->attr.on_event(r->attr.context, event);
}

void rdma_report_duplicate(struct rdma *r, const struct flow *flow, uint32_t psn, uint8_t opcode,
                           bool send)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_DUPLICATE};

	r->stats.duplicates++;
	r->stats.duplicate_sends += send;
	event.duplicate.psn = psn;
	event.duplicate.opcode = opcode;
	event.duplicate.send = send;
	rdma_report(r, flow, &event);
}

void rdma_report_hole(struct rdma *r, const struct flow *flow, const struct ndx_hole *hole)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_HOLE};

	r->stats.holes++;
	event.hole = *hole;
	rdma_report(r, flow, &event);
}

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
		struct base_list *at = r->ages.next;

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
	grown = rdma_grow(&r->mem, x->segments, &x->segment_room, x->segment_count + 1,
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
	base_table_add(&r->segments, &s->node, hash_of(r, x->peers, x->direction, s->handle));
	r->stats.segments++;
	place_early(r, s);
	return s;
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

	for (struct base_table_node *n = base_table_first(&r->segments, hash); n != NULL;
	     n = base_table_next(n)) {
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

void rdma_del_segment(struct rdma *r, struct segment *segment)
{
	while (!base_list_empty(&segment->subs))
		rdma_free_sub(r, container_of(segment->subs.next, struct sub_segment, in_segment));
	base_table_remove(&segment->node);
	r->stats.segments--;
	segment_free(segment, &r->mem);
}

void rdma_invalidate(struct rdma *r, struct flow *flow, uint32_t handle, uint64_t order)
{
	uint64_t hash = hash_of(r, flow->peers, flow->direction ^ 1, handle);

	for (struct base_table_node *n = base_table_first(&r->segments, hash); n != NULL;
	     n = base_table_next(n)) {
		struct segment *s = container_of(n, struct segment, node);

		/* The call may have been sent later and have overtaken these data: then keep the
		 * young segment. */
		if (s->handle == handle && s->end == 0 && concerns(s->exchange, flow) &&
		    r->stats.packets - s->registered > r->attr.reorder_packets)
			s->end = order;
	}
}

static void touch(struct rdma *r, struct exchange *x)
{
	x->touched_ns = r->now;
	if (r->ages.prev != &x->age) {
		base_list_remove(&x->age);
		base_list_add(&r->ages, &x->age);
	}
}

static void placed(struct rdma *r, struct segment *s)
{
	touch(r, s->exchange);
	if (segment_whole(s))
		exchange_check(r, s->exchange);
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
	if (segment_add_fragment(s, &r->mem, address, data, captured))
		placed(r, s);
}

void rdma_free_sub(struct rdma *r, struct sub_segment *sub)
{
	struct flow *flow = sub->flow;

	if (flow->hot_write == &sub->in_flow)
		flow->hot_write = &flow->writes;
	if (flow->hot_read == &sub->in_flow)
		flow->hot_read = &flow->reads;
	base_list_remove(&sub->in_flow);
	base_list_remove(&sub->in_segment);
	flow->open--;
	mem_put(&r->mem, sub, sizeof(*sub));
}

static struct sub_segment *sub_at(struct base_list *at)
{
	return container_of(at, struct sub_segment, in_flow);
}

/* The operation of a packet: the youngest that began before the packet, or one that contains
 * that. */
static struct sub_segment *find_sub(struct base_list *list, struct base_list **hot, uint64_t order)
{
	struct base_list *at = *hot;

	if (at == list)
		at = list->prev;
	while (at != list && sub_at(at)->first > order)
		at = at->prev;
	if (at == list)
		return NULL;
	while (at->next != list && sub_at(at->next)->first <= order)
		at = at->next;
	*hot = at;
	for (int i = 0; i < 4 && at != list; i++, at = at->prev) {
		if (sub_segment_covers(sub_at(at), order))
			return sub_at(at);
	}
	return NULL;
}

/* Free operations that are so old that their packets cannot be told from new ones. */
static void prune(struct rdma *r, struct flow *flow, struct base_list *list)
{
	while (!base_list_empty(list)) {
		struct sub_segment *sub = sub_at(list->next);

		if (sub->first + sub->packets + FLOW_WINDOW > flow->seen.top &&
		    flow->open < FLOW_OPEN_MAX)
			return;
		rdma_free_sub(r, sub);
	}
}

static struct sub_segment *open_sub(struct rdma *r, struct flow *flow, const struct bth *p,
                                    uint64_t order)
{
	bool read = p->kind == BTH_READ_REQUEST;
	struct base_list *list = read ? &flow->reads : &flow->writes, *at;
	struct sub_segment *sub;
	struct segment *s;

	prune(r, flow, list);
	sub = mem_zero(&r->mem, sizeof(*sub));
	if (sub == NULL)
		return NULL;
	sub->flow = flow;
	sub->first = order;
	sub->dma_length = p->dma_length;
	sub->handle = p->handle;
	sub->address = p->address;
	sub->read = read;
	sub_segment_dimension(sub, read ? flow->mtu : p->length);
	base_list_init(&sub->in_segment);
	for (at = list->prev; at != list && sub_at(at)->first > order; at = at->prev)
		;
	base_list_add(at->next, &sub->in_flow);
	flow->open++;
	s = rdma_get_segment(r, flow, p->handle, p->address, order);
	if (s != NULL)
		segment_add_sub_segment(s, sub);
	return sub;
}

/* The operation of a packet, and the offset of its data there. */
static struct sub_segment *locate(struct base_list *list, struct base_list **hot, uint64_t order,
                                  const struct early *e, uint64_t *offset)
{
	struct sub_segment *sub = find_sub(list, hot, order);

	if (sub == NULL || !sub_segment_offset(sub, order, e->last, e->original, offset))
		return NULL;
	return sub;
}

/* Place the data of a packet whose operation is known. May free the operation. */
static void insert(struct rdma *r, struct sub_segment *sub, uint64_t offset, const struct early *e,
                   const uint8_t *data)
{
	struct sub_segment now = *sub;

	sub->received++;
	if (sub->mtu != 0 && sub->flow->mtu == 0)
		sub->flow->mtu = sub->mtu;
	/* No further packet will come, except duplicates, which the window detects. */
	if (sub->received >= sub->packets && (sub->mtu != 0 || sub->dma_length <= e->original))
		rdma_free_sub(r, sub);
	if (now.segment == NULL) {
		rdma_place(r, now.flow, now.handle, now.address + offset, now.first, data,
		           e->length, e->original);
	} else if (e->length > 0 && segment_add_fragment(now.segment, &r->mem, now.address + offset,
	                                                 data, e->length)) {
		placed(r, now.segment);
	}
}

/* Place packets of the operation that came before its first packet. */
static void drain_fragments(struct rdma *r, struct flow *flow)
{
	struct early *e, *next;

	r->draining = true;
	for (e = early_first(r, flow, EARLY_FRAGMENT); e != NULL; e = next) {
		struct sub_segment *sub;
		uint64_t offset;

		next = early_next(e);
		if (e->kind != EARLY_FRAGMENT || e->flow != flow)
			continue;
		sub = locate(&flow->writes, &flow->hot_write, e->order, e, &offset);
		if (sub == NULL)
			continue;
		insert(r, sub, offset, e, e->data);
		early_remove(r, e);
	}
	r->draining = false;
}

/* Place responses on the flow `back` that came before their request. */
static bool drain_responses(struct rdma *r, struct flow *flow, struct flow *back)
{
	struct early *e, *next;
	bool any = false;

	r->draining = true;
	for (e = early_first(r, back, EARLY_RESPONSE); e != NULL; e = next) {
		struct sub_segment *sub;
		uint64_t order = flow_order(flow, (uint32_t)e->order & PSN_MASK), offset;

		next = early_next(e);
		if (e->kind != EARLY_RESPONSE || e->flow != back)
			continue;
		sub = locate(&flow->reads, &flow->hot_read, order, e, &offset);
		if (sub == NULL)
			continue;
		any = true;
		if (window_mark(&flow->answered, &r->mem, order) == WINDOW_NEW)
			insert(r, sub, offset, e, e->data);
		early_remove(r, e);
	}
	r->draining = false;
	return any;
}

static void read_request(struct rdma *r, struct flow *flow)
{
	struct base_list *list = flow_opposites(flow), *at;

	if (flow->pair != NULL) {
		(void)drain_responses(r, flow, flow->pair);
		return;
	}
	if (base_list_empty(&r->early_ages))
		return;
	for (at = list->next; at != list; at = at->next) {
		struct flow *back = container_of(at, struct flow, in_peers);

		if (back != flow && back->pair == NULL && drain_responses(r, flow, back)) {
			flow_pair(r, flow, back);
			return;
		}
	}
}

void rdma_add_rdma_data(struct rdma *r, struct flow *flow, const struct bth *packet, uint64_t order)
{
	struct early e = {.flow = flow,
	                  .order = order,
	                  .length = packet->captured,
	                  .original = packet->length,
	                  .kind = EARLY_FRAGMENT,
	                  .first = packet->first,
	                  .last = packet->last};
	struct sub_segment *sub;
	uint64_t offset;

	if (packet->kind == BTH_READ_REQUEST) {
		if (open_sub(r, flow, packet, order) != NULL)
			read_request(r, flow);
		return;
	}
	if (packet->first && packet->last) {
		if (packet->length > packet->dma_length)
			r->stats.malformed++;
		else
			rdma_place(r, flow, packet->handle, packet->address, order, packet->data,
			           packet->captured, packet->length);
		return;
	}
	if (packet->first) {
		if (packet->length == 0 || packet->length > packet->dma_length) {
			r->stats.malformed++;
			return;
		}
		flow->mtu = packet->length;
		if (open_sub(r, flow, packet, order) == NULL)
			return;
	}
	sub = locate(&flow->writes, &flow->hot_write, order, &e, &offset);
	if (sub != NULL)
		insert(r, sub, offset, &e, packet->data);
	else
		early_hold(r, &e, packet->data);
	if (packet->first)
		drain_fragments(r, flow);
}

/* The flow with the requests that a response answers, if the pair is unknown: the only
 * candidate. */
static struct flow *guess_requests(struct flow *flow, uint32_t psn)
{
	struct base_list *list = flow_opposites(flow), *at;
	struct flow *found = NULL;

	for (at = list->next; at != list; at = at->next) {
		struct flow *other = container_of(at, struct flow, in_peers);

		if (other == flow || other->pair != NULL || !other->begun ||
		    find_sub(&other->reads, &other->hot_read, flow_order(other, psn)) == NULL)
			continue;
		if (found != NULL)
			return NULL;
		found = other;
	}
	return found;
}

void rdma_add_rdma_response(struct rdma *r, struct flow *flow, const struct bth *packet)
{
	struct early e = {.flow = flow,
	                  .order = packet->psn,
	                  .length = packet->captured,
	                  .original = packet->length,
	                  .kind = EARLY_RESPONSE,
	                  .first = packet->first,
	                  .last = packet->last};
	struct sub_segment *sub = NULL;
	struct flow *asked = flow->pair;
	uint64_t order = 0, offset = 0;

	if (asked == NULL) {
		asked = guess_requests(flow, packet->psn);
		if (asked != NULL)
			flow_pair(r, asked, flow);
	}
	if (asked != NULL && asked->begun) {
		order = flow_order(asked, packet->psn);
		if (window_has(&asked->answered, order)) {
			rdma_report_duplicate(r, flow, packet->psn, packet->opcode, false);
			return;
		}
		sub = locate(&asked->reads, &asked->hot_read, order, &e, &offset);
	}
	if (sub == NULL) {
		early_hold(r, &e, packet->data);
		return;
	}
	(void)window_mark(&asked->answered, &r->mem, order);
	insert(r, sub, offset, &e, packet->data);
}

void rdma_close_flow(struct rdma *r, struct flow *flow)
{
	while (!base_list_empty(&flow->writes))
		rdma_free_sub(r, sub_at(flow->writes.next));
	while (!base_list_empty(&flow->reads))
		rdma_free_sub(r, sub_at(flow->reads.next));
	send_flush(r, flow);
	iwarp_free(r, flow);
}

void rdma_reset(struct rdma *r)
{
	r->quiet = true;
	early_forget(r, true);
	while (!base_list_empty(&r->ages))
		exchange_free(r, container_of(r->ages.next, struct exchange, age));
	flow_free_all(r);
	for (uint32_t i = 0; i < RDMA_CM_PENDING; i++)
		r->cm[i] = (struct rdma_request){0};
	r->stats = (struct ndx_reassembly_stats){0};
	r->mem.peak = r->mem.held;
	r->connections = 0;
	r->now = 0;
	r->quiet = false;
}
