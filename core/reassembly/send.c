/* SPDX-License-Identifier: BSD-2-Clause */
/* SENDs: a message of one packet, or of several packets that are held until none is missing. */
#include <string.h>

#include "rdma.h"

struct fragment {
	struct ndxp_list link;
	uint64_t order;
	uint32_t length; /* of bytes[] */
	uint32_t original;
	bool first, last;
	bool has_immediate, has_invalidate;
	uint32_t immediate, invalidate;
	uint8_t bytes[];
};

static struct fragment *at_link(struct ndxp_list *at)
{
	return container_of(at, struct fragment, link);
}

static void drop(struct rdma *r, struct flow *flow, struct fragment *f)
{
	ndxp_list_remove(&f->link);
	flow->send_count--;
	mem_put(&r->mem, f, sizeof(*f) + f->length);
}

static void report_gap(struct rdma *r, const struct flow *flow, const struct fragment *f,
                       const struct fragment *before)
{
	struct ndx_hole hole = {.kind = NDX_HOLE_SEND, .has_psn = true};
	uint64_t from = before != NULL && !before->last ? before->order + 1 : f->order - 1;

	hole.first_psn = (uint32_t)from & PSN_MASK;
	hole.last_psn = (uint32_t)(f->order - 1) & PSN_MASK;
	rdma_report_hole(r, flow, &hole);
}

/* Drop packets of messages that cannot become complete: a hole for each gap. */
static void give_up(struct rdma *r, struct flow *flow, uint64_t before)
{
	struct fragment *last = NULL;
	uint64_t expected = 0;
	bool any = false;

	for (struct ndxp_list *at = flow->sends.next; at != &flow->sends;) {
		struct fragment *f = at_link(at);

		if (f->order >= before)
			break;
		at = at->next;
		if (any ? f->order != expected : !f->first)
			report_gap(r, flow, f, last);
		expected = f->order + 1;
		any = !f->last;
		if (last != NULL)
			drop(r, flow, last);
		last = f;
	}
	if (last == NULL)
		return;
	if (!last->last) {
		struct ndx_hole hole = {.kind = NDX_HOLE_SEND, .has_psn = true};

		hole.first_psn = (uint32_t)(last->order + 1) & PSN_MASK;
		hole.last_psn = hole.first_psn;
		rdma_report_hole(r, flow, &hole);
	}
	drop(r, flow, last);
}

void send_flush(struct rdma *r, struct flow *flow)
{
	if (!ndxp_list_empty(&flow->sends))
		give_up(r, flow, UINT64_MAX);
}

static void deliver_one(struct rdma *r, struct flow *flow, const struct bth *p, uint64_t order)
{
	struct ndx_rdma_send send = {
		.bytes = p->data,
		.length = p->captured,
		.original = p->length,
		.psn = p->psn,
		.packets = 1,
		.has_immediate = p->has_immediate,
		.has_invalidate = p->has_invalidate,
		.immediate = p->immediate,
		.invalidate = p->invalidate,
	};

	rdma_message(r, flow, &send, order);
}

/* Deliver the message from packet `first` to `last`, which are all present. */
static void deliver_run(struct rdma *r, struct flow *flow, struct ndxp_list *first,
                        struct ndxp_list *last)
{
	const struct fragment *end = at_link(last);
	struct ndx_rdma_send send = {
		.psn = (uint32_t)at_link(first)->order & PSN_MASK,
		.has_immediate = end->has_immediate,
		.has_invalidate = end->has_invalidate,
		.immediate = end->immediate,
		.invalidate = end->invalidate,
	};
	uint64_t order = at_link(first)->order, total = 0;
	struct ndxp_list *stop = last->next, *at;
	bool whole = true;
	uint8_t *grown;

	for (at = first; at != stop; at = at->next)
		total += at_link(at)->length;
	grown = total > UINT32_MAX / 2
	                ? NULL
	                : mem_grow(&r->mem, r->gather, &r->gather_room, (uint32_t)total, 1);
	if (grown != NULL || total == 0)
		r->gather = grown;
	else
		whole = false;
	for (at = first; at != stop;) {
		struct fragment *f = at_link(at);

		/* After the first truncated packet the bytes are not contiguous any more. */
		if (whole && f->length > 0 && r->gather != NULL) {
			memcpy(r->gather + send.length, f->bytes, f->length);
			send.length += f->length;
		}
		whole = whole && f->length == f->original;
		send.original += f->original;
		send.packets++;
		at = at->next;
		drop(r, flow, f);
	}
	send.bytes = r->gather;
	if (send.bytes != NULL)
		rdma_message(r, flow, &send, order);
}

/* Deliver the message of `f` if it is complete. */
static void complete(struct rdma *r, struct flow *flow, struct fragment *f)
{
	struct ndxp_list *head = &flow->sends, *first = &f->link, *last = &f->link;

	/* Search forward first: in order, only the last packet completes the message. */
	while (!at_link(last)->last) {
		if (last->next == head || at_link(last->next)->order != at_link(last)->order + 1 ||
		    at_link(last->next)->first)
			return;
		last = last->next;
	}
	while (!at_link(first)->first) {
		if (first->prev == head ||
		    at_link(first->prev)->order + 1 != at_link(first)->order ||
		    at_link(first->prev)->last)
			return;
		first = first->prev;
	}
	deliver_run(r, flow, first, last);
}

void send_packet(struct rdma *r, struct flow *flow, const struct bth *packet, uint64_t order)
{
	struct ndxp_list *at;
	struct fragment *f;

	if (packet->first && packet->last) {
		deliver_one(r, flow, packet, order);
		return;
	}
	if (flow->send_count >= FLOW_OPEN_MAX && !ndxp_list_empty(&flow->sends))
		give_up(r, flow, at_link(flow->sends.prev)->order - FLOW_OPEN_MAX / 2);
	if (flow->send_count >= FLOW_OPEN_MAX)
		drop(r, flow, at_link(flow->sends.next));
	f = mem_get(&r->mem, sizeof(*f) + packet->captured);
	if (f == NULL)
		return;
	*f = (struct fragment){
		.order = order,
		.length = packet->captured,
		.original = packet->length,
		.first = packet->first,
		.last = packet->last,
		.has_immediate = packet->has_immediate,
		.has_invalidate = packet->has_invalidate,
		.immediate = packet->immediate,
		.invalidate = packet->invalidate,
	};
	if (packet->captured > 0)
		memcpy(f->bytes, packet->data, packet->captured);
	for (at = flow->sends.prev; at != &flow->sends && at_link(at)->order > order; at = at->prev)
		;
	ndxp_list_add(at->next, &f->link);
	flow->send_count++;
	complete(r, flow, f);
}
