/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls: limits, one packet in, periodic work. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ndx/spi/hash.h>
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "rdma.h"

#define BYTES_MIN (UINT64_C(1) << 20)
#define COUNT_MAX (UINT32_C(1) << 24)
/* The memory that a packet may need beyond its own bytes. */
#define RESERVE (UINT64_C(256) << 10)

struct ndx_reassembly {
	struct rdma rdma;
};

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_reassembly_attr, NDX_REASSEMBLY_ATTR_SIZE_0_1,
                    "call ndx_reassembly_attr_init() first");

static const struct ndx_reassembly_attr attr_defaults = {
	.max_bytes = UINT64_C(24) << 20,
	.max_age_ns = UINT64_C(300) * 1000000000,
	.max_segments = 65536,
	.max_connections = 4096,
	.reorder_packets = 1024,
};

void ndx_reassembly_attr_init_sized(struct ndx_reassembly_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status check(const struct ndx_reassembly_attr *attr)
{
	if (attr->on_event == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "attr.on_event is NULL");
	if (attr->max_bytes < BYTES_MIN)
		return fail(NDX_E_INVALID_PARAMETER, 0, "attr.max_bytes %zu is below 1 MiB",
		            attr->max_bytes);
	if (attr->max_segments == 0 || attr->max_segments > COUNT_MAX ||
	    attr->max_connections == 0 || attr->max_connections > COUNT_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "attr.max_segments %u and attr.max_connections %u go from 1 to %u",
		            attr->max_segments, attr->max_connections, COUNT_MAX);
	return NDX_OK;
}

/* Hash chains must not be predictable from the packets. */
static uint64_t seed(const void *object)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return ndxp_hash_mix((uint64_t)(uintptr_t)object,
	                     (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec);
}

/* Tables take at most an eighth of the memory, which limits their number of entries. */
static uint64_t table_size(const struct rdma *r, uint64_t wish)
{
	uint64_t most = r->attr.max_bytes / 64 / sizeof(void *);
	uint64_t size = 64;

	while (size < wish && size < most)
		size *= 2;
	return size;
}

static bool create_table(struct rdma *r, struct ndxp_table *table, uint64_t wish)
{
	uint64_t size = table_size(r, wish);
	struct ndxp_table_node **buckets =
		mem_zero(&r->mem, size * sizeof(struct ndxp_table_node *));

	ndxp_table_init(table, buckets, size);
	return buckets != NULL;
}

static void free_table(struct rdma *r, struct ndxp_table *table)
{
	mem_put(&r->mem, table->buckets, (table->mask + 1) * sizeof(struct ndxp_table_node *));
}

static bool tables(struct rdma *r)
{
	const struct ndx_reassembly_attr *a = &r->attr;

	return create_table(r, &r->flows, a->max_connections) &&
	       create_table(r, &r->peers, a->max_connections) &&
	       create_table(r, &r->segments, a->max_segments / 4) &&
	       create_table(r, &r->exchanges, a->max_segments / 4) &&
	       create_table(r, &r->early_table, 4096);
}

static void free_rdma(struct rdma *r)
{
	mem_put(&r->mem, r->header, sizeof(*r->header));
	mem_put(&r->mem, r->crc, sizeof(*r->crc));
	mem_put(&r->mem, r->pieces, r->piece_room * sizeof(*r->pieces));
	mem_put(&r->mem, r->chunks, r->chunk_room * sizeof(*r->chunks));
	mem_put(&r->mem, r->gather, r->gather_room);
	mem_put(&r->mem, r->unmarked, r->unmarked_room);
	free_table(r, &r->flows);
	free_table(r, &r->peers);
	free_table(r, &r->segments);
	free_table(r, &r->exchanges);
	free_table(r, &r->early_table);
	mem_trim(&r->mem);
}

enum ndx_status ndx_reassembly_create(const struct ndx_reassembly_attr *attr,
                                      struct ndx_reassembly **out)
{
	struct ndx_reassembly_attr own = attr_defaults;
	struct ndx_reassembly *reassembly;
	enum ndx_status status;
	struct rdma *r;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	status = base_struct_in(&attr_layout, "ndx_reassembly_create", &own, attr, attr->size);
	if (status == NDX_OK)
		status = check(&own);
	if (status != NDX_OK)
		return status;
	reassembly = calloc(1, sizeof(*reassembly));
	if (reassembly == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a reassembly");
	r = &reassembly->rdma;
	r->attr = own;
	r->mem.limit = own.max_bytes;
	r->seed = seed(reassembly);
	ndxp_list_init(&r->flow_use);
	ndxp_list_init(&r->ages);
	ndxp_list_init(&r->orphans);
	ndxp_list_init(&r->early_ages);
	ndxp_list_init(&r->gaps);
	r->header = mem_get(&r->mem, sizeof(*r->header));
	if (own.check_crc)
		r->crc = mem_get(&r->mem, sizeof(*r->crc));
	if (!tables(r) || r->header == NULL || (own.check_crc && r->crc == NULL)) {
		status = fail(NDX_E_NO_MEMORY, 0, "no memory for the tables of a reassembly");
		goto free_reassembly;
	}
	if (r->crc != NULL)
		crc_tables_init(r->crc);
	*out = reassembly;
	return NDX_OK;
free_reassembly:
	free_rdma(r);
	free(reassembly);
	return status;
}

/* Give up the oldest entries until a packet is sure to fit. */
static void make_room(struct rdma *r, size_t need)
{
	need += RESERVE;
	if (need > r->attr.max_bytes / 2)
		need = r->attr.max_bytes / 2;
	mem_trim(&r->mem);
	while (r->mem.held + need > r->mem.limit) {
		if (early_evict(r))
			continue;
		if (!ndxp_list_empty(&r->ages))
			exchange_finish(r, container_of(r->ages.next, struct exchange, age),
			                NDX_EVICTION_BYTES);
		else if (r->flow_count > 0)
			flow_evict(r, NDX_EVICTION_BYTES);
		else
			return;
	}
}

static void expire(struct rdma *r)
{
	if (!ndxp_list_empty(&r->gaps))
		iwarp_expire(r);
	if (!ndxp_list_empty(&r->early_ages))
		early_expire(r, false);
	if (!ndxp_list_empty(&r->orphans))
		exchange_expire(r, false);
	while (!ndxp_list_empty(&r->ages)) {
		struct exchange *x = container_of(r->ages.next, struct exchange, age);

		if (r->now - x->touched_ns <= r->attr.max_age_ns)
			return;
		exchange_finish(r, x, NDX_EVICTION_AGE);
	}
}

/* IP fragments are reported, not reassembled: no RDMA stack sends any. */
static void fragment(struct rdma *r, const struct frame *frame)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_ORPHAN};

	r->stats.ip_fragments++;
	if (frame->transport != NDX_RDMA_ROCE_V2)
		return; /* its content is unknown */
	event.orphan.kind = NDX_ORPHAN_IP_FRAGMENT;
	event.orphan.length = frame->length;
	rdma_report(r, NULL, &event);
}

struct rdma *rdma_begin(struct ndx_reassembly *reassembly, uint64_t time_ns, uint32_t captured,
                        uint32_t original)
{
	struct rdma *r = &reassembly->rdma;

	r->stats.packets++;
	r->stats.bytes += captured;
	r->packet_time = time_ns;
	if (time_ns > r->now)
		r->now = time_ns;
	if (captured < original)
		r->stats.truncated++;
	expire(r);
	if (r->mem.held + RESERVE + captured > r->mem.limit)
		make_room(r, captured);
	return r;
}

void rdma_take(struct rdma *r, const struct frame *frame)
{
	if (frame->transport == NDX_RDMA_IWARP) {
		iwarp_packet(r, frame);
	} else {
		r->stats.rdma_packets++;
		roce_packet(r, frame);
	}
}

enum ndx_status ndx_reassembly_feed(struct ndx_reassembly *reassembly,
                                    const struct ndx_packet *packet)
{
	struct rdma *r;
	struct frame frame;

	if (reassembly == NULL || packet == NULL || (packet->bytes == NULL && packet->captured > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	r = rdma_begin(reassembly, packet->time_ns, packet->captured, packet->original);
	switch (link_parse(packet, &frame)) {
	case LINK_RDMA:
		rdma_take(r, &frame);
		break;
	case LINK_BAD:
		r->stats.malformed++;
		break;
	case LINK_FRAGMENT:
		fragment(r, &frame);
		break;
	case LINK_OTHER:
		break;
	}
	return NDX_OK;
}

void ndx_reassembly_flush(struct ndx_reassembly *reassembly)
{
	struct rdma *r;
	struct ndxp_list *at;

	if (reassembly == NULL)
		return;
	r = &reassembly->rdma;
	for (at = r->flow_use.next; at != &r->flow_use; at = at->next) {
		struct flow *flow = container_of(at, struct flow, used);

		iwarp_flush(r, flow);
		send_flush(r, flow);
	}
	exchange_expire(r, true);
	while (!ndxp_list_empty(&r->ages))
		exchange_finish(r, container_of(r->ages.next, struct exchange, age), 0);
	early_expire(r, true);
}

/* Drop everything. (reset) */
static void reset(struct rdma *r)
{
	r->quiet = true;
	early_forget(r, true);
	while (!ndxp_list_empty(&r->ages))
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

void ndx_reassembly_reset(struct ndx_reassembly *reassembly)
{
	if (reassembly != NULL)
		reset(&reassembly->rdma);
}

size_t ndx_reassembly_size(const struct ndx_reassembly *reassembly)
{
	return reassembly != NULL ? reassembly->rdma.stats.segments : 0;
}

enum ndx_status ndx_reassembly_get_stats(const struct ndx_reassembly *reassembly,
                                         struct ndx_reassembly_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_reassembly_stats, NDX_REASSEMBLY_STATS_SIZE_0_1,
	                    "set `size` to sizeof(*stats)");
	struct ndx_reassembly_stats now;

	if (reassembly == NULL || stats == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_reassembly_get_stats: NULL argument");
	now = reassembly->rdma.stats;
	now.bytes_held = reassembly->rdma.mem.held;
	now.bytes_peak = reassembly->rdma.mem.peak;
	return base_struct_out(&layout, "ndx_reassembly_get_stats", stats, stats->size, &now);
}

void ndx_reassembly_close(struct ndx_reassembly *reassembly)
{
	if (reassembly == NULL)
		return;
	reset(&reassembly->rdma);
	free_rdma(&reassembly->rdma);
	free(reassembly);
}
