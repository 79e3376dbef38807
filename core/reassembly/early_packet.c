/* SPDX-License-Identifier: BSD-2-Clause */
#include "early_packet.h"

#include <string.h>

#include <ndx/spi/hash.h>
#include "rdma.h"

/* After so many held packets without use, a connection without RPC is not held for any more. */
#define VAIN_MAX 64

static uint64_t hash_kind(const struct rdma *r, const struct flow *flow, enum early_kind kind)
{
	return ndxp_hash_mix(ndxp_hash_mix(r->seed, (uint64_t)(uintptr_t)flow), (uint64_t)kind + 1);
}

static uint64_t hash_data(const struct rdma *r, const struct peers *peers, uint8_t direction,
                          uint32_t handle)
{
	return ndxp_hash_mix(ndxp_hash_mix(r->seed, (uint64_t)(uintptr_t)peers),
	                     (uint64_t)handle << 8 | (peers->self ? 0u : direction) << 4 | 8u);
}

void early_report(struct rdma *r, const struct early *e)
{
	static const enum ndx_orphan_kind kinds[] = {
		[EARLY_DATA] = NDX_ORPHAN_DATA,
		[EARLY_FRAGMENT] = NDX_ORPHAN_FRAGMENT,
		[EARLY_RESPONSE] = NDX_ORPHAN_RESPONSE,
	};
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_ORPHAN};

	event.orphan.kind = kinds[e->kind];
	event.orphan.psn = (uint32_t)e->order & PSN_MASK;
	event.orphan.handle = e->handle;
	event.orphan.length = e->original;
	e->flow->connection->orphans++;
	rdma_report(r, e->flow, &event);
}

void early_hold(struct rdma *r, const struct early *e, const uint8_t *data)
{
	size_t size = sizeof(*e) + e->length;
	const struct connection *c = e->flow->connection;
	struct early *held;
	uint64_t hash;

	if (!c->rpc && c->orphans >= VAIN_MAX) {
		early_report(r, e);
		return;
	}
	while (r->early_bytes + size > r->attr.max_bytes / RDMA_EARLY_SHARE) {
		if (r->draining || !early_evict(r)) {
			early_report(r, e);
			return;
		}
	}
	held = mem_get(&r->mem, size);
	if (held == NULL) {
		early_report(r, e);
		return;
	}
	*held = *e;
	if (e->length > 0)
		memcpy(held->data, data, e->length);
	held->packet = r->stats.packets;
	hash = e->kind == EARLY_DATA ? hash_data(r, e->flow->peers, e->flow->direction, e->handle)
	                             : hash_kind(r, e->flow, (enum early_kind)e->kind);
	ndxp_table_add(&r->early_table, &held->node, hash);
	ndxp_list_add(&r->early_ages, &held->age);
	r->early_bytes += size;
}

void early_remove(struct rdma *r, struct early *e)
{
	size_t size = sizeof(*e) + e->length;

	ndxp_table_remove(&e->node);
	ndxp_list_remove(&e->age);
	r->early_bytes -= size;
	mem_put(&r->mem, e, size);
}

static struct early *early_at(struct ndxp_table_node *node)
{
	return node == NULL ? NULL : container_of(node, struct early, node);
}

struct early *early_first(struct rdma *r, const struct flow *flow, enum early_kind kind)
{
	if (ndxp_list_empty(&r->early_ages))
		return NULL;
	return early_at(ndxp_table_first(&r->early_table, hash_kind(r, flow, kind)));
}

struct early *early_first_data(struct rdma *r, const struct peers *peers, uint8_t direction,
                               uint32_t handle)
{
	if (ndxp_list_empty(&r->early_ages))
		return NULL;
	return early_at(ndxp_table_first(&r->early_table, hash_data(r, peers, direction, handle)));
}

struct early *early_next(struct early *e)
{
	return early_at(ndxp_table_next(&e->node));
}

void early_expire(struct rdma *r, bool all)
{
	while (!ndxp_list_empty(&r->early_ages)) {
		struct early *e = container_of(r->early_ages.next, struct early, age);

		if (!all && r->stats.packets - e->packet <= r->attr.reorder_packets)
			return;
		early_report(r, e);
		early_remove(r, e);
	}
}

bool early_evict(struct rdma *r)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_EVICTION};
	struct early *e;

	if (ndxp_list_empty(&r->early_ages))
		return false;
	e = container_of(r->early_ages.next, struct early, age);
	event.eviction.reason = NDX_EVICTION_FRAGMENTS;
	event.eviction.bytes = e->length;
	early_report(r, e);
	rdma_report(r, e->flow, &event);
	early_remove(r, e);
	return true;
}

void early_forget(struct rdma *r, bool all)
{
	struct ndxp_list *at = r->early_ages.next;

	while (at != &r->early_ages) {
		struct early *e = container_of(at, struct early, age);

		at = at->next;
		if (all || e->flow->doomed)
			early_remove(r, e);
	}
}
