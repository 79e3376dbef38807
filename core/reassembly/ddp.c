/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of iWARP: tagged data, read requests, SENDs. */
#include <string.h>

#include "rdma.h"
#include "stream.h"

/* A longer SEND is taken for an error. */
#define SEND_MAX (UINT32_C(4) << 20)
#define GATHERS_MAX 64
#define QUEUE_SEND 0
#define QUEUE_READ 1

/* A SEND in several frames. */
struct gather {
	struct ndxp_list link;
	uint32_t message;
	uint32_t frames;
	uint32_t total; /* known with the last frame */
	bool ended;
	bool has_invalidate;
	uint32_t invalidate;
	uint64_t order;
	uint8_t *bytes;
	uint32_t room;
	struct range_set present;
};

static void free_gather(struct rdma *r, struct flow *flow, struct gather *g)
{
	ndxp_list_remove(&g->link);
	flow->stream->gather_count--;
	range_free(&g->present, &r->mem);
	mem_put(&r->mem, g->bytes, g->room);
	mem_put(&r->mem, g, sizeof(*g));
}

static void give_up(struct rdma *r, struct flow *flow, struct gather *g)
{
	struct range gap;
	uint32_t end = g->ended ? g->total : g->room;

	if (range_gap(&g->present, 0, end, &gap)) {
		struct ndx_hole hole = {.kind = NDX_HOLE_SEND,
		                        .offset = gap.from,
		                        .length = g->ended ? gap.to - gap.from : 0};

		rdma_report_hole(r, flow, &hole);
	}
	free_gather(r, flow, g);
}

void ddp_flush(struct rdma *r, struct flow *flow)
{
	struct ndxp_list *list = &flow->stream->gathers;

	while (!ndxp_list_empty(list))
		give_up(r, flow, container_of(list->next, struct gather, link));
}

static struct gather *gather_of(struct rdma *r, struct flow *flow, uint32_t message, uint64_t order)
{
	struct ndxp_list *list = &flow->stream->gathers, *at;
	struct gather *g;

	for (at = list->next; at != list; at = at->next) {
		g = container_of(at, struct gather, link);
		if (g->message == message)
			return g;
	}
	if (flow->stream->gather_count >= GATHERS_MAX)
		give_up(r, flow, container_of(list->next, struct gather, link));
	g = mem_zero(&r->mem, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->message = message;
	g->order = order;
	ndxp_list_add(list, &g->link);
	flow->stream->gather_count++;
	return g;
}

static void deliver(struct rdma *r, struct flow *flow, const struct gather *g, uint32_t original)
{
	struct ndx_rdma_send send = {
		.bytes = g->bytes,
		.length = g->total,
		.original = original,
		.psn = g->message,
		.packets = g->frames,
		.has_invalidate = g->has_invalidate,
		.invalidate = g->invalidate,
	};

	if (original > 0)
		rdma_message(r, flow, &send, g->order);
}

static void send_frame(struct rdma *r, struct flow *flow, const struct ddp *d, uint64_t order)
{
	struct gather *g, one = {.message = d->message, .frames = 1, .order = order};
	uint64_t fresh;
	uint8_t *grown;

	if (d->queue != QUEUE_SEND || (uint64_t)d->message_offset + d->length > SEND_MAX) {
		r->stats.malformed++;
		return;
	}
	if (d->last && d->message_offset == 0) {
		struct ndx_rdma_send send = {
			.bytes = d->data,
			.length = d->captured,
			.original = d->length,
			.psn = d->message,
			.packets = 1,
			.has_invalidate = d->has_invalidate,
			.invalidate = d->has_invalidate ? d->invalidate : 0,
		};

		rdma_message(r, flow, &send, one.order);
		return;
	}
	g = gather_of(r, flow, d->message, order);
	if (g == NULL)
		return;
	grown = mem_grow(&r->mem, g->bytes, &g->room, d->message_offset + d->length, 1);
	if (grown == NULL)
		return;
	g->bytes = grown;
	memcpy(g->bytes + d->message_offset, d->data, d->captured);
	g->frames++;
	if (d->last) {
		g->ended = true;
		g->total = d->message_offset + d->length;
		g->has_invalidate = d->has_invalidate;
		g->invalidate = d->has_invalidate ? d->invalidate : 0;
	}
	if (range_add(&g->present, &r->mem, d->message_offset,
	              (uint64_t)d->message_offset + d->captured, &fresh) &&
	    g->ended && range_covers(&g->present, 0, g->total)) {
		deliver(r, flow, g, g->total);
		free_gather(r, flow, g);
	}
}

static void free_request(struct rdma *r, struct flow *flow, struct request *q)
{
	ndxp_list_remove(&q->link);
	flow->request_count--;
	mem_put(&r->mem, q, sizeof(*q));
}

void ddp_lost(struct flow *flow, uint32_t sequence)
{
	flow->stream->losses++;
	/* Requests before the youngest one that knows of a loss have the loss, too. */
	for (struct ndxp_list *at = flow->requests.prev; at != &flow->requests; at = at->prev) {
		struct request *q = container_of(at, struct request, link);

		if (q->shadowed)
			return;
		q->shadowed = true;
		q->lost = sequence;
	}
}

/* Whether there may be a younger request that the sender of the answer had received and the capture
 * lacks. No, if the data continue where the previous answer ended. */
static bool doubtful(const struct request *q, const struct early *e)
{
	return q->shadowed && (int32_t)(e->acknowledged - q->lost) > 0 &&
	       (q->received == 0 || q->losses != e->losses);
}

/* The request for data at this place of the sink: the youngest that the sender can have received.
 * (A sink is reused only after its answer has arrived, so older requests are complete.) Answers
 * come in order and without gaps; after a gap, data are lost, and the request is incomplete. */
static struct request *find_request(struct rdma *r, struct flow *asked, const struct early *e)
{
	struct ndxp_list *at, *next;
	struct request *found = NULL;

	for (at = asked->requests.next; at != &asked->requests; at = next) {
		struct request *q = container_of(at, struct request, link);

		next = at->next;
		if (!request_contains(q, e->handle, e->address) ||
		    !request_before(q, e->acknowledged))
			continue;
		if (found != NULL)
			free_request(r, asked, found);
		found = q;
	}
	if (found == NULL)
		return NULL;
	if (e->address != found->sink_offset + found->received || doubtful(found, e)) {
		free_request(r, asked, found);
		return NULL;
	}
	return found;
}

/* Place the data of an answer by its request; all requests before it are known. */
static void answer(struct rdma *r, struct flow *asked, const struct early *e, const uint8_t *data)
{
	struct request *q = find_request(r, asked, e), now;

	if (q == NULL) {
		early_report(r, e);
		return;
	}
	now = *q;
	q->losses = e->losses;
	q->received += e->original < q->size - q->received ? e->original : q->size - q->received;
	if (q->received >= q->size)
		free_request(r, asked, q);
	rdma_place(r, asked, now.source_stag, request_get_offset(&now, e->address), now.order, data,
	           e->length, e->original);
}

/* Whether all requests that the sender of this answer had received are known. */
static bool may_answer(const struct flow *asked, uint32_t acknowledged)
{
	return asked != NULL && asked->stream != NULL && asked->stream->known &&
	       (int32_t)(asked->stream->next - acknowledged) >= 0;
}

static struct early *oldest_answer(struct rdma *r, const struct flow *flow)
{
	struct early *e, *best = NULL;

	for (e = early_first(r, flow, EARLY_RESPONSE); e != NULL; e = early_next(e)) {
		if (e->kind == EARLY_RESPONSE && e->flow == flow &&
		    (best == NULL || e->order < best->order))
			best = e;
	}
	return best;
}

void ddp_answers(struct rdma *r, struct flow *asked)
{
	struct early *e;

	if (asked->pair == NULL)
		return;
	r->draining = true;
	while ((e = oldest_answer(r, asked->pair)) != NULL && may_answer(asked, e->acknowledged)) {
		answer(r, asked, e, e->data);
		early_remove(r, e);
	}
	r->draining = false;
}

void rdma_add_iwarp_data(struct rdma *r, struct flow *flow, const struct ddp *frame, uint64_t order)
{
	struct early e = {.flow = flow,
	                  .order = order,
	                  .acknowledged = flow->stream->acknowledged,
	                  .losses = flow->stream->losses,
	                  .address = frame->offset,
	                  .handle = frame->stag,
	                  .length = frame->captured,
	                  .original = frame->length,
	                  .kind = EARLY_RESPONSE};

	if (frame->opcode == RDMAP_WRITE)
		rdma_place(r, flow, frame->stag, frame->offset, order, frame->data, frame->captured,
		           frame->length);
	else if (may_answer(flow->pair, e.acknowledged) && oldest_answer(r, flow) == NULL)
		answer(r, flow->pair, &e, frame->data);
	else
		early_hold(r, &e, frame->data);
}

void rdma_add_iwarp_request(struct rdma *r, struct flow *flow, const struct ddp *frame,
                            uint64_t order)
{
	struct request *q;

	if (flow->request_count >= FLOW_OPEN_MAX)
		free_request(r, flow, container_of(flow->requests.next, struct request, link));
	q = mem_zero(&r->mem, sizeof(*q));
	if (q == NULL)
		return;
	q->order = order;
	q->sequence = (uint32_t)(flow->stream->next - (flow->stream->order + 1 - order));
	q->sink_stag = frame->read.sink_stag;
	q->sink_offset = frame->read.sink_offset;
	q->size = frame->read.size;
	q->source_stag = frame->read.source_stag;
	q->source_offset = frame->read.source_offset;
	ndxp_list_add(&flow->requests, &q->link);
	flow->request_count++;
}

void ddp_frame(struct rdma *r, struct flow *flow, const struct ddp *d, uint64_t order)
{
	r->stats.rdmap[d->opcode & 15]++;
	switch ((enum rdmap_opcode)d->opcode) {
	case RDMAP_WRITE:
	case RDMAP_READ_RESPONSE:
		rdma_add_iwarp_data(r, flow, d, order);
		break;
	case RDMAP_READ_REQUEST:
		if (d->queue == QUEUE_READ)
			rdma_add_iwarp_request(r, flow, d, order);
		else
			r->stats.malformed++;
		break;
	case RDMAP_SEND:
	case RDMAP_SEND_INVALIDATE:
	case RDMAP_SEND_SOLICITED:
	case RDMAP_SEND_SOLICITED_INVALIDATE:
		send_frame(r, flow, d, order);
		break;
	case RDMAP_TERMINATE:
		break;
	}
}

void ddp_close(struct rdma *r, struct flow *flow)
{
	while (!ndxp_list_empty(&flow->requests)) {
		struct request *q = container_of(flow->requests.next, struct request, link);

		ndxp_list_remove(&q->link);
		mem_put(&r->mem, q, sizeof(*q));
	}
	flow->request_count = 0;
	if (flow->stream == NULL)
		return;
	ddp_flush(r, flow);
	stream_fini(flow->stream, &r->mem);
	mem_put(&r->mem, flow->stream, sizeof(*flow->stream));
	flow->stream = NULL;
}
