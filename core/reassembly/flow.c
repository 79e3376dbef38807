/* SPDX-License-Identifier: BSD-2-Clause */
#include "flow.h"

#include <string.h>

#include "base_hash.h"
#include "rdma.h"

#define WORDS (FLOW_WINDOW / 64)
#define EPOCH (UINT64_C(1) << 32)

static uint64_t load(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static uint64_t hash_of(const struct rdma *r, const uint8_t *address, uint64_t number)
{
	uint64_t hash = base_hash_mix(r->seed, number);

	for (int i = 0; i < 32; i += 8)
		hash = base_hash_mix(hash, load(address + i));
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
	for (struct base_table_node *n = base_table_first(&r->peers, hash); n != NULL;
	     n = base_table_next(n)) {
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
	base_list_init(&p->flows[0]);
	base_list_init(&p->flows[1]);
	base_table_add(&r->peers, &p->node, hash);
	return p;
}

static void connection_fill(struct connection *c, const struct flow *flow)
{
	unsigned to = flow->direction ^ 1u;

	if (flow->transport != NDX_RDMA_IWARP) {
		c->pub.side[to].number = flow->number;
		return;
	}
	c->pub.side[to].number = flow->number & 0xffff;
	c->pub.side[to ^ 1].number = flow->number >> 16;
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
	connection_fill(c, flow);
	c->flows = 1;
	return c;
}

static struct flow *flow_find(struct rdma *r, const uint8_t *address, uint8_t transport,
                              uint32_t number, uint64_t hash)
{
	for (struct base_table_node *n = base_table_first(&r->flows, hash); n != NULL;
	     n = base_table_next(n)) {
		struct flow *flow = container_of(n, struct flow, node);

		if (flow->number == number && flow->transport == transport &&
		    memcmp(flow->address, address, 32) == 0)
			return flow;
	}
	return NULL;
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
	base_list_init(&flow->writes);
	base_list_init(&flow->reads);
	base_list_init(&flow->sends);
	base_list_init(&flow->requests);
	base_list_init(&flow->gap);
	flow->hot_write = &flow->writes;
	flow->hot_read = &flow->reads;
	base_list_add(&peers->flows[flow->direction], &flow->in_peers);
	peers->flow_count++;
	base_list_add(&r->flow_use, &flow->used);
	base_table_add(&r->flows, &flow->node, hash);
	r->flow_count++;
	return flow;
drop_flow:
	mem_put(&r->mem, flow, sizeof(*flow));
drop_peers:
	if (peers->flow_count == 0) {
		base_table_remove(&peers->node);
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
	base_list_remove(&flow->used);
	base_list_add(&r->flow_use, &flow->used);
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

struct base_list *flow_opposites(const struct flow *flow)
{
	return &flow->peers->flows[flow->peers->self ? 0 : flow->direction ^ 1];
}

static void connection_put(struct rdma *r, struct connection *c)
{
	if (--c->flows == 0)
		mem_put(&r->mem, c, sizeof(*c));
}

static void unpair(struct flow *flow)
{
	if (flow->pair != NULL)
		flow->pair->pair = NULL;
	flow->pair = NULL;
}

void flow_pair(struct rdma *r, struct flow *a, struct flow *b)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_CONNECTION};
	struct connection *keep = a->connection, *drop = b->connection;

	if (a->pair == b)
		return;
	unpair(a);
	unpair(b);
	a->pair = b;
	b->pair = a;
	if (keep != drop) {
		/* If both were reported, the older one stays. */
		if (drop->pub.id != 0 && (keep->pub.id == 0 || drop->pub.id < keep->pub.id)) {
			keep = b->connection;
			drop = a->connection;
		}
		if (drop->pub.id != 0)
			r->stats.connections--;
		keep->rpc = keep->rpc || drop->rpc;
		keep->flows++;
		a->connection = keep;
		b->connection = keep;
		connection_put(r, drop);
	}
	if (a->peers->self) /* one of the two must be the reverse direction */
		b->direction = a->direction ^ 1;
	connection_fill(keep, a);
	connection_fill(keep, b);
	if (a->mtu == 0)
		a->mtu = b->mtu;
	rdma_report(r, a, &event);
}

uint64_t flow_order(const struct flow *flow, uint32_t psn)
{
	uint64_t top = flow->seen.top;

	if (!flow->begun)
		return EPOCH | psn;
	return top + (uint64_t)(int64_t)psn_delta(psn, (uint32_t)top & PSN_MASK);
}

void flow_restart(struct rdma *r, struct flow *flow, uint32_t psn)
{
	uint64_t epoch = (flow->seen.top >> 32) + 1;

	rdma_close_flow(r, flow);
	flow->seen.top = epoch << 32 | psn;
	flow->answered.top = flow->seen.top;
	if (flow->seen.bits != NULL)
		memset(flow->seen.bits, 0, FLOW_WINDOW / 8);
	if (flow->answered.bits != NULL)
		memset(flow->answered.bits, 0, FLOW_WINDOW / 8);
	flow->begun = true;
}

static void advance(struct window *w, uint64_t order)
{
	uint64_t steps = order - w->top;

	if (steps >= FLOW_WINDOW) {
		memset(w->bits, 0, FLOW_WINDOW / 8);
	} else if (steps < 64) {
		for (uint64_t at = w->top + 1; at <= order; at++)
			w->bits[at / 64 % WORDS] &= ~(UINT64_C(1) << at % 64);
	} else {
		uint64_t at = w->top + 1;

		for (; at % 64 != 0; at++)
			w->bits[at / 64 % WORDS] &= ~(UINT64_C(1) << at % 64);
		for (; at + 64 <= order; at += 64)
			w->bits[at / 64 % WORDS] = 0;
		for (; at <= order; at++)
			w->bits[at / 64 % WORDS] &= ~(UINT64_C(1) << at % 64);
	}
	w->top = order;
}

enum window_verdict window_mark(struct window *window, struct mem *mem, uint64_t order)
{
	uint64_t bit = UINT64_C(1) << order % 64, *word;

	if (window->bits == NULL) {
		window->bits = mem_zero(mem, FLOW_WINDOW / 8);
		if (window->bits == NULL)
			return WINDOW_NO_MEMORY;
		if (window->top == 0)
			window->top = order;
	}
	if (order > window->top)
		advance(window, order);
	else if (window->top - order >= FLOW_WINDOW)
		return WINDOW_OLD;
	word = &window->bits[order / 64 % WORDS];
	if ((*word & bit) != 0)
		return WINDOW_SEEN;
	*word |= bit;
	return WINDOW_NEW;
}

bool window_has(const struct window *window, uint64_t order)
{
	if (window->bits == NULL || order > window->top || window->top - order >= FLOW_WINDOW)
		return false;
	return (window->bits[order / 64 % WORDS] >> order % 64 & 1) != 0;
}

static void flow_free(struct rdma *r, struct flow *flow)
{
	struct peers *peers = flow->peers;

	rdma_close_flow(r, flow);
	unpair(flow);
	mem_put(&r->mem, flow->seen.bits, FLOW_WINDOW / 8);
	mem_put(&r->mem, flow->answered.bits, FLOW_WINDOW / 8);
	connection_put(r, flow->connection);
	base_table_remove(&flow->node);
	base_list_remove(&flow->used);
	base_list_remove(&flow->gap);
	base_list_remove(&flow->in_peers);
	r->flow_count--;
	if (r->last == flow)
		r->last = NULL;
	mem_put(&r->mem, flow, sizeof(*flow));
	if (--peers->flow_count == 0) {
		base_table_remove(&peers->node);
		mem_put(&r->mem, peers, sizeof(*peers));
	}
}

void flow_evict(struct rdma *r, enum ndx_eviction_reason reason)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_EVICTION};
	uint32_t count = r->flow_count / 16 + 1;
	struct base_list *at = r->flow_use.next;
	size_t before = r->mem.held;
	uint32_t segments = (uint32_t)r->stats.segments;

	/* Give up several at once, because each time all waiting entries are searched. */
	for (uint32_t i = 0; i < count && at != &r->flow_use; i++, at = at->next)
		container_of(at, struct flow, used)->doomed = true;
	exchange_finish_doomed(r);
	early_forget(r, false);
	while (!base_list_empty(&r->flow_use)) {
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

void flow_free_all(struct rdma *r)
{
	while (!base_list_empty(&r->flow_use))
		flow_free(r, container_of(r->flow_use.next, struct flow, used));
}
