/* SPDX-License-Identifier: BSD-2-Clause */
/* A read request of iWARP: maps the sink of the data to their source. (RDMArequest) */
#ifndef REASSEMBLY_REQUEST_H
#define REASSEMBLY_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/list.h>

struct request {
	struct ndxp_list link; /* in the order of sending, which is the order of the answers */
	uint64_t order;        /* its position in the stream */
	uint32_t sequence;     /* its position as a TCP sequence number */
	uint32_t sink_stag;
	uint32_t source_stag;
	uint64_t sink_offset;
	uint64_t source_offset;
	uint32_t size;
	uint32_t received; /* bytes of the answer that were received */
	uint32_t losses;   /* losses of the answers' stream when the last answer came */
	bool shadowed;     /* bytes after the request are missing; `lost` is the first */
	uint32_t lost;
};

/* Whether this place of the sink belongs to the request. (membership: offset in request) */
static inline bool request_contains(const struct request *request, uint32_t stag, uint64_t offset)
{
	return request->sink_stag == stag &&
	       (offset - request->sink_offset < request->size ||
	        (request->size == 0 && offset == request->sink_offset));
}

/* Whether the sender of an answer, having received all before `acknowledged`, had the request. */
static inline bool request_before(const struct request *request, uint32_t acknowledged)
{
	return (int32_t)(acknowledged - request->sequence) > 0;
}

/* The place of the source for a place of the sink. (get_offset) */
static inline uint64_t request_get_offset(const struct request *request, uint64_t offset)
{
	return offset - request->sink_offset + request->source_offset;
}

#endif
