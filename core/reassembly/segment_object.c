/* SPDX-License-Identifier: BSD-2-Clause */
/* A segment by itself, for programs: without connection, call and table. */
#include <stdlib.h>

#include <ndx/reassembly_parts.h>

#include <ndx/spi/log.h>
#include "bth.h"
#include "request.h"
#include "segment.h"
#include "sub_segment.h"

/* The most operations, and the most requests, because each packet looks through all of them. */
#define ENTRIES_MAX 1024u

struct ndx_rdma_segment {
	struct mem mem;
	struct segment *segment;
	uint32_t operations;
	uint32_t request_count;
	struct ndxp_list requests;
};

enum ndx_status ndx_rdma_segment_create(uint64_t address, uint32_t length, size_t max_bytes,
                                        struct ndx_rdma_segment **out)
{
	struct ndx_rdma_segment *s;

	if (out == NULL || length == 0 || address > UINT64_MAX - (length - 1))
		return fail(NDX_E_INVALID_PARAMETER, 0, "no place, no bytes, or wrong addresses");
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a segment");
	s->mem.limit = max_bytes;
	ndxp_list_init(&s->requests);
	s->segment = segment_create(&s->mem, 0, address, length);
	if (s->segment == NULL) {
		free(s);
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a segment");
	}
	*out = s;
	return NDX_OK;
}

void ndx_rdma_segment_close(struct ndx_rdma_segment *segment)
{
	struct ndxp_list *at;

	if (segment == NULL)
		return;
	while (!ndxp_list_empty(&segment->segment->subs)) {
		at = segment->segment->subs.next;
		ndxp_list_remove(at);
		mem_put(&segment->mem, container_of(at, struct sub_segment, in_segment),
		        sizeof(struct sub_segment));
	}
	while (!ndxp_list_empty(&segment->requests)) {
		at = segment->requests.next;
		ndxp_list_remove(at);
		mem_put(&segment->mem, container_of(at, struct request, link),
		        sizeof(struct request));
	}
	segment_free(segment->segment, &segment->mem);
	mem_trim(&segment->mem);
	free(segment);
}

/* Place bytes at an address that an operation, a request or the program names. */
static enum ndx_status place(struct ndx_rdma_segment *s, uint64_t address, const uint8_t *bytes,
                             uint32_t length)
{
	if (!segment_contains(s->segment, address))
		return NDX_E_NOT_FOUND;
	if (!segment_add_fragment(s->segment, &s->mem, address, bytes, length))
		return NDX_E_NO_MEMORY;
	return NDX_OK;
}

enum ndx_status ndx_rdma_segment_add_data(struct ndx_rdma_segment *segment, uint64_t address,
                                          const uint8_t *bytes, uint32_t length)
{
	if (segment == NULL || (bytes == NULL && length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	return place(segment, address, bytes, length);
}

/* ---- by packet sequence number ---- */

static bool path_mtu_known(uint32_t mtu)
{
	return mtu == 0 ||
	       (mtu >= SUB_SEGMENT_MTU_MIN && mtu <= SUB_SEGMENT_MTU_MAX && (mtu & (mtu - 1)) == 0);
}

enum ndx_status ndx_rdma_segment_add_operation(struct ndx_rdma_segment *segment, uint32_t psn,
                                               uint64_t address, uint32_t length, uint32_t path_mtu)
{
	struct sub_segment *sub;

	if (segment == NULL || psn > PSN_MASK || !path_mtu_known(path_mtu))
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL, or no such number or path MTU");
	if (!segment_contains(segment->segment, address))
		return NDX_E_NOT_FOUND;
	if (segment->operations >= ENTRIES_MAX)
		return NDX_E_NO_MORE_ENTRIES;
	sub = mem_zero(&segment->mem, sizeof(*sub));
	if (sub == NULL)
		return NDX_E_NO_MEMORY;
	sub->first = psn;
	sub->dma_length = length;
	sub->address = address;
	sub->mtu_told = path_mtu != 0;
	sub_segment_dimension(sub, path_mtu);
	segment_add_sub_segment(segment->segment, sub);
	segment->operations++;
	return NDX_OK;
}

/* The sequence number, unwrapped: at or behind the beginning of the operation. */
static uint64_t order_in(const struct sub_segment *sub, uint32_t psn)
{
	return sub->first + ((psn - (uint32_t)sub->first) & PSN_MASK);
}

enum ndx_status ndx_rdma_segment_add_packet(struct ndx_rdma_segment *segment, uint32_t psn,
                                            bool last, const uint8_t *bytes, uint32_t length)
{
	struct ndxp_list *subs, *at;
	enum ndx_status status;

	if (segment == NULL || psn > PSN_MASK || (bytes == NULL && length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL, or no such number");
	subs = &segment->segment->subs;
	for (at = subs->next; at != subs; at = at->next) {
		struct sub_segment *sub = container_of(at, struct sub_segment, in_segment);
		uint64_t order = order_in(sub, psn), offset;

		if (!sub_segment_covers(sub, order) ||
		    !sub_segment_offset(sub, order, last, length, &offset))
			continue;
		status = place(segment, sub->address + offset, bytes, length);
		if (status != NDX_E_NOT_FOUND)
			return status;
	}
	return NDX_E_NOT_FOUND;
}

bool ndx_rdma_segment_valid_psn(const struct ndx_rdma_segment *segment, uint32_t psn)
{
	struct ndxp_list *subs, *at;

	if (segment == NULL || psn > PSN_MASK)
		return false;
	subs = &segment->segment->subs;
	for (at = subs->next; at != subs; at = at->next) {
		const struct sub_segment *sub = container_of(at, struct sub_segment, in_segment);

		if (sub_segment_covers(sub, order_in(sub, psn)))
			return true;
	}
	return false;
}

/* ---- by read request ---- */

enum ndx_status ndx_rdma_segment_add_request(struct ndx_rdma_segment *segment, uint32_t sink_handle,
                                             uint64_t sink_offset, uint64_t source, uint32_t length)
{
	struct request *q;

	if (segment == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	if (!segment_contains(segment->segment, source))
		return NDX_E_NOT_FOUND;
	if (segment->request_count >= ENTRIES_MAX)
		return NDX_E_NO_MORE_ENTRIES;
	q = mem_zero(&segment->mem, sizeof(*q));
	if (q == NULL)
		return NDX_E_NO_MEMORY;
	q->sink_stag = sink_handle;
	q->sink_offset = sink_offset;
	q->source_offset = source;
	q->size = length;
	ndxp_list_add(&segment->requests, &q->link);
	segment->request_count++;
	return NDX_OK;
}

enum ndx_status ndx_rdma_segment_add_response(struct ndx_rdma_segment *segment,
                                              uint32_t sink_handle, uint64_t sink_offset,
                                              const uint8_t *bytes, uint32_t length)
{
	struct ndxp_list *at;

	if (segment == NULL || (bytes == NULL && length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	for (at = segment->requests.prev; at != &segment->requests; at = at->prev) {
		const struct request *q = container_of(at, struct request, link);

		if (request_contains(q, sink_handle, sink_offset) &&
		    length <= q->size - (sink_offset - q->sink_offset))
			return place(segment, request_get_offset(q, sink_offset), bytes, length);
	}
	return NDX_E_NOT_FOUND;
}

/* ---- what is there ---- */

uint64_t ndx_rdma_segment_size(const struct ndx_rdma_segment *segment)
{
	return segment != NULL ? segment_size(segment->segment) : 0;
}

bool ndx_rdma_segment_gap(const struct ndx_rdma_segment *segment, uint64_t from, uint64_t *offset,
                          uint64_t *length)
{
	struct range gap;

	if (segment == NULL ||
	    !range_gap(&segment->segment->present, from, segment->segment->length, &gap))
		return false;
	if (offset != NULL)
		*offset = gap.from;
	if (length != NULL)
		*length = gap.to - gap.from;
	return true;
}

size_t ndx_rdma_segment_get_data(const struct ndx_rdma_segment *segment, bool padded,
                                 uint8_t *buffer, size_t room)
{
	uint8_t none[1];

	if (segment == NULL)
		return 0;
	if (buffer == NULL)
		return segment_get_data(segment->segment, padded, none, 0);
	return segment_get_data(segment->segment, padded, buffer, room);
}
