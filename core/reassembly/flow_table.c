/* SPDX-License-Identifier: BSD-2-Clause */
/* The flows that exist: found, created, closed, evicted. */
#include <string.h>

#include <ndx/spi/hash.h>
#include "rdma.h"

static uint64_t load(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static uint64_t hash_of(const struct rdma *r, const uint8_t *address, uint64_t number)
{
	uint64_t hash = ndxp_hash_mix(r->seed, number);

	for (int i = 0; i < 32; i += 8)
		hash = ndxp_hash_mix(hash, load(address + i));
	return hash;
}

static struct peers *peers_of(struct rdma *r, const struct frame *frame)
{
	const uint8_t *a = frame->address.source, *b = frame->address.destination;
	uint8_t sorted[32];
	uint64_t hash;
	struct peers *p;

	memcpy(sorted, memcmp(a, b, 16) <= 0 ? a : b, 16);
	memcpy(sorted + 16, memcmp(a, b, 16) <= 0 ? b : a, 16);
	hash = hash_of(r, sorted, frame->transport);
	for (struct ndxp_table_node *n = ndxp_table_first(&r->peers, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		p = container_of(n, struct peers, node);
		if (p->transport == frame->transport && memcmp(p->address, sorted, 32) == 0)
			return p;
	}
	p = mem_zero(&r->mem, sizeof(*p));
	if (p == NULL)
		return NULL;
	memcpy(p->address, sorted, sizeof(sorted));
	p->transport = frame->transport;
	p->self = memcmp(a, b, 16) == 0;
	ndxp_list_init(&p->flows[0]);
	ndxp_list_init(&p->flows[1]);
	ndxp_table_add(&r->peers, &p->node, hash);
	return p;
}

static struct connection *connection_create(struct rdma *r, const struct flow *flow, uint8_t family)
{
	struct connection *c = mem_zero(&r->mem, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->pub.transport = (enum ndx_rdma_transport)flow->transport;
	c->pub.family = (enum ndx_rdma_address)family;
	for (int i = 0; i < 2; i++) {
		memcpy(c->pub.side[i].address, flow->peers->address[i], 16);
		c->pub.side[i].number = NDX_RDMA_QPN_UNKNOWN;
	}
	flow_fill_connection(c, flow);
	c->flows = 1;
	return c;
}

static struct flow *flow_find(struct rdma *r, const uint8_t *address, uint8_t transport,
                              uint32_t number, uint64_t hash)
{
	for (struct ndxp_table_node *n = ndxp_table_first(&r->flows, hash); n != NULL;
	     n = ndxp_table_next(n)) {
		struct flow *flow = container_of(n, struct flow, node);

		if (flow->number == number && flow->transport == transport &&
		    memcmp(flow->address, address, 32) == 0)
			return flow;
	}
	return NULL;
}

static struct sub_segment *sub_at(struct ndxp_list *at)
{
	return container_of(at, struct sub_segment, in_flow);
}

/* Free the open entries of a flow: operations, SEND packets, requests, stream. */
static void close_flow(struct rdma *r, struct flow *flow)
{
	while (!ndxp_list_empty(&flow->writes))
		rdma_free_sub(r, sub_at(flow->writes.next));
	while (!ndxp_list_empty(&flow->reads))
		rdma_free_sub(r, sub_at(flow->reads.next));
	send_flush(r, flow);
	ddp_close(r, flow);
}

static void flow_free(struct rdma *r, struct flow *flow)
{
	struct peers *peers = flow->peers;

	close_flow(r, flow);
	flow_unpair(flow);
	mem_put(&r->mem, flow->seen.bits, FLOW_WINDOW / 8);
	mem_put(&r->mem, flow->answered.bits, FLOW_WINDOW / 8);
	flow_put_connection(r, flow->connection);
	ndxp_table_remove(&flow->node);
	ndxp_list_remove(&flow->used);
	ndxp_list_remove(&flow->gap);
	ndxp_list_remove(&flow->in_peers);
	r->flow_count--;
	if (r->last == flow)
		r->last = NULL;
	mem_put(&r->mem, flow, sizeof(*flow));
	if (--peers->flow_count == 0) {
		ndxp_table_remove(&peers->node);
		mem_put(&r->mem, peers, sizeof(*peers));
	}
}

void flow_evict(struct rdma *r, enum ndx_eviction_reason reason)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_EVICTION};
	uint32_t count = r->flow_count / 16 + 1;
	struct ndxp_list *at = r->flow_use.next;
	size_t before = r->mem.held;
	uint32_t segments = (uint32_t)r->stats.segments;

	/* Give up several at once, because each time all waiting entries are searched. */
	for (uint32_t i = 0; i < count && at != &r->flow_use; i++, at = at->next)
		container_of(at, struct flow, used)->doomed = true;
	exchange_finish_doomed(r);
	early_forget(r, false);
	while (!ndxp_list_empty(&r->flow_use)) {
		struct flow *flow = container_of(r->flow_use.next, struct flow, used);

		if (!flow->doomed)
			break;
		flow_free(r, flow);
	}
	event.eviction.reason = reason;
	event.eviction.segments = segments - (uint32_t)r->stats.segments;
	event.eviction.bytes = before > r->mem.held ? before - r->mem.held : 0;
	rdma_report(r, NULL, &event);
}

static struct flow *flow_create(struct rdma *r, const struct frame *frame, uint32_t number,
                                uint64_t hash)
{
	struct peers *peers;
	struct flow *flow;

	if (r->flow_count >= 2 * r->attr.max_connections)
		flow_evict(r, NDX_EVICTION_CONNECTIONS);
	peers = peers_of(r, frame);
	if (peers == NULL)
		return NULL;
	flow = mem_zero(&r->mem, sizeof(*flow));
	if (flow == NULL)
		goto drop_peers;
	memcpy(flow->address, &frame->address, 32);
	flow->number = number;
	flow->transport = frame->transport;
	flow->peers = peers;
	flow->direction = memcmp(frame->address.source, peers->address[0], 16) != 0;
	flow->connection = connection_create(r, flow, frame->family);
	if (flow->connection == NULL)
		goto drop_flow;
	ndxp_list_init(&flow->writes);
	ndxp_list_init(&flow->reads);
	ndxp_list_init(&flow->sends);
	ndxp_list_init(&flow->requests);
	ndxp_list_init(&flow->gap);
	flow->hot_write = &flow->writes;
	flow->hot_read = &flow->reads;
	ndxp_list_add(&peers->flows[flow->direction], &flow->in_peers);
	peers->flow_count++;
	ndxp_list_add(&r->flow_use, &flow->used);
	ndxp_table_add(&r->flows, &flow->node, hash);
	r->flow_count++;
	return flow;
drop_flow:
	mem_put(&r->mem, flow, sizeof(*flow));
drop_peers:
	if (peers->flow_count == 0) {
		ndxp_table_remove(&peers->node);
		mem_put(&r->mem, peers, sizeof(*peers));
	}
	return NULL;
}

struct flow *flow_of(struct rdma *r, const struct frame *frame, uint32_t number)
{
	const uint8_t *address = frame->address.source; /* followed by the destination */
	struct flow *flow = r->last;
	uint64_t hash;

	if (flow != NULL && flow->number == number && flow->transport == frame->transport &&
	    memcmp(flow->address, address, 32) == 0)
		return flow;
	hash = hash_of(r, address, number | (uint64_t)frame->transport << 32);
	flow = flow_find(r, address, frame->transport, number, hash);
	if (flow == NULL)
		flow = flow_create(r, frame, number, hash);
	if (flow == NULL)
		return NULL;
	ndxp_list_remove(&flow->used);
	ndxp_list_add(&r->flow_use, &flow->used);
	r->last = flow;
	return flow;
}

static struct flow *find_reverse(struct rdma *r, const uint8_t *address, uint8_t transport,
                                 uint32_t number)
{
	uint8_t swapped[32];

	memcpy(swapped, address + 16, 16);
	memcpy(swapped + 16, address, 16);
	return flow_find(r, swapped, transport, number,
	                 hash_of(r, swapped, number | (uint64_t)transport << 32));
}

struct flow *flow_reverse(struct rdma *r, const struct flow *flow)
{
	return find_reverse(r, flow->address, flow->transport,
	                    flow->number << 16 | flow->number >> 16);
}

struct flow *flow_back(struct rdma *r, const struct frame *frame)
{
	uint32_t number = (uint32_t)frame->destination_port << 16 | frame->source_port;
	struct flow *last = r->last;

	/* Usually the previous packet was of this connection. */
	if (last != NULL && last->pair != NULL && last->transport == frame->transport) {
		if (last->pair->number == number &&
		    memcmp(last->address, frame->address.source, 32) == 0)
			return last->pair;
		if (last->number == number && last->pair->transport == frame->transport &&
		    memcmp(last->pair->address, frame->address.source, 32) == 0)
			return last;
	}
	return find_reverse(r, frame->address.source, frame->transport, number);
}

void flow_restart(struct rdma *r, struct flow *flow, uint32_t psn)
{
	uint64_t epoch = (flow->seen.top >> 32) + 1;

	close_flow(r, flow);
	flow->seen.top = epoch << 32 | psn;
	flow->answered.top = flow->seen.top;
	if (flow->seen.bits != NULL)
		memset(flow->seen.bits, 0, FLOW_WINDOW / 8);
	if (flow->answered.bits != NULL)
		memset(flow->answered.bits, 0, FLOW_WINDOW / 8);
	flow->begun = true;
}

void flow_free_all(struct rdma *r)
{
	while (!ndxp_list_empty(&r->flow_use))
		flow_free(r, container_of(r->flow_use.next, struct flow, used));
}
