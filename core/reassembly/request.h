/* SPDX-License-Identifier: BSD-2-Clause */
/* A read request of iWARP: it maps where the data are taken from to where they are put.
 * (RDMArequest) */
#ifndef REASSEMBLY_REQUEST_H
#define REASSEMBLY_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base_list.h"

struct request {
	struct base_list link; /* in the order they were sent, which is that of their answers */
	uint64_t order;        /* where in the stream it was sent */
	uint32_t sequence;     /* the same, as TCP counts it */
	uint32_t sink_stag;
	uint32_t source_stag;
	uint64_t sink_offset;
	uint64_t source_offset;
	uint32_t size;
	uint32_t received; /* bytes of the answer that came */
	uint32_t losses;   /* of the stream of answers, when the last one came */
	bool shadowed; /* bytes behind it are missing, first those at the sequence number `lost` */
	uint32_t lost;
};

/* Is this place of the sink part of the request? (membership: offset in request) */
static inline bool request_contains(const struct request *request, uint32_t stag, uint64_t offset)
{
	return request->sink_stag == stag &&
	       (offset - request->sink_offset < request->size ||
	        (request->size == 0 && offset == request->sink_offset));
}

/* Had the sender of an answer, having got all before `acknowledged`, seen the request? */
static inline bool request_before(const struct request *request, uint32_t acknowledged)
{
	return (int32_t)(acknowledged - request->sequence) > 0;
}

/* Where in the source a place of the sink comes from. (get_offset) */
static inline uint64_t request_get_offset(const struct request *request, uint64_t offset)
{
	return offset - request->sink_offset + request->source_offset;
}

#endif
