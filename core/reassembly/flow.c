/* SPDX-License-Identifier: BSD-2-Clause */
/* What two flows know of each other, and the numbers of the packets of a flow. */
#include "flow.h"

#include <string.h>

#include "rdma.h"

#define WORDS (FLOW_WINDOW / 64)

void flow_fill_connection(struct connection *c, const struct flow *flow)
{
	unsigned to = flow->direction ^ 1u;

	if (flow->transport != NDX_RDMA_IWARP) {
		c->pub.side[to].number = flow->number;
		return;
	}
	c->pub.side[to].number = flow->number & 0xffff;
	c->pub.side[to ^ 1].number = flow->number >> 16;
}

struct ndxp_list *flow_opposites(const struct flow *flow)
{
	return &flow->peers->flows[flow->peers->self ? 0 : flow->direction ^ 1];
}

void flow_put_connection(struct rdma *r, struct connection *c)
{
	if (--c->flows == 0)
		mem_put(&r->mem, c, sizeof(*c));
}

void flow_unpair(struct flow *flow)
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
	flow_unpair(a);
	flow_unpair(b);
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
		flow_put_connection(r, drop);
	}
	if (a->peers->self) /* one of the two must be the reverse direction */
		b->direction = a->direction ^ 1;
	flow_fill_connection(keep, a);
	flow_fill_connection(keep, b);
	if (a->mtu == 0)
		a->mtu = b->mtu;
	rdma_report(r, a, &event);
}

uint64_t flow_order(const struct flow *flow, uint32_t psn)
{
	uint64_t top = flow->seen.top;

	if (!flow->begun)
		return FLOW_EPOCH | psn;
	return top + (uint64_t)(int64_t)psn_delta(psn, (uint32_t)top & PSN_MASK);
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
