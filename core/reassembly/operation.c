/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA operations of InfiniBand: writes and reads, of one packet or of several. */
#include "rdma.h"

static struct sub_segment *sub_at(struct ndxp_list *at)
{
	return container_of(at, struct sub_segment, in_flow);
}

/* The operation of a packet: the youngest that began before the packet, or one that contains
 * that. */
static struct sub_segment *find_sub(struct ndxp_list *list, struct ndxp_list **hot, uint64_t order)
{
	struct ndxp_list *at = *hot;

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
static void prune(struct rdma *r, struct flow *flow, struct ndxp_list *list)
{
	while (!ndxp_list_empty(list)) {
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
	struct ndxp_list *list = read ? &flow->reads : &flow->writes, *at;
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
	ndxp_list_init(&sub->in_segment);
	for (at = list->prev; at != list && sub_at(at)->first > order; at = at->prev)
		;
	ndxp_list_add(at->next, &sub->in_flow);
	flow->open++;
	s = rdma_get_segment(r, flow, p->handle, p->address, order);
	if (s != NULL)
		segment_add_sub_segment(s, sub);
	return sub;
}

/* The operation of a packet, and the offset of its data there. */
static struct sub_segment *locate(struct ndxp_list *list, struct ndxp_list **hot, uint64_t order,
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
	} else if (e->length > 0) {
		rdma_place_in(r, now.segment, now.address + offset, data, e->length);
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
	struct ndxp_list *list = flow_opposites(flow), *at;

	if (flow->pair != NULL) {
		(void)drain_responses(r, flow, flow->pair);
		return;
	}
	if (ndxp_list_empty(&r->early_ages))
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
	struct ndxp_list *list = flow_opposites(flow), *at;
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
