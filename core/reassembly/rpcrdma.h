/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC-over-RDMA: the header of a SEND, with its chunk lists. A pure parser. */
#ifndef REASSEMBLY_RPCRDMA_H
#define REASSEMBLY_RPCRDMA_H

#include <stdbool.h>
#include <stdint.h>

/* A header with more segments is refused: no sender needs so many. */
#define RPCRDMA_SEGMENTS 1024

enum rpcrdma_type {
	RPCRDMA_MSG = 0,
	RPCRDMA_NOMSG = 1,
	RPCRDMA_MSGP = 2,
	RPCRDMA_DONE = 3,
	RPCRDMA_ERROR = 4,
};

struct rpcrdma_segment {
	uint32_t handle;
	uint32_t length;
	uint64_t offset;
	uint32_t position; /* of a read segment */
	uint32_t chunk;    /* of a write segment: which chunk of the list */
};

/* The parsed header; `segments` holds reads, then writes, then the reply chunk. */
struct rpcrdma_header {
	uint32_t xid;
	uint32_t version;
	uint32_t credits;
	uint32_t type;
	uint32_t reads;
	uint32_t writes;
	uint32_t write_chunks;
	uint32_t replies;
	bool has_reply; /* there is a reply chunk, perhaps empty */
	bool cut;       /* the header is truncated */
	uint32_t error_code, error_low, error_high;
	uint32_t size; /* of the header: offset of the RPC message */
	/* The beginning of the RPC message, if it is inline. */
	bool is_call, is_reply;
	uint32_t program, program_version, procedure;
	struct rpcrdma_segment segments[RPCRDMA_SEGMENTS];
};

enum rpcrdma_verdict {
	RPCRDMA_NO,  /* another protocol */
	RPCRDMA_YES, /* version 1 */
	RPCRDMA_V2,  /* version 2: sets only xid, version, credits and type */
};

/* Parse a message of `original` bytes, of which `length` were captured. If the capture truncated
 * the header, `cut` is set and the lists have the captured part. */
enum rpcrdma_verdict rpcrdma_parse(const uint8_t *bytes, uint32_t length, uint32_t original,
                                   struct rpcrdma_header *out);

static inline const struct rpcrdma_segment *rpcrdma_writes(const struct rpcrdma_header *h)
{
	return h->segments + h->reads;
}

static inline const struct rpcrdma_segment *rpcrdma_reply(const struct rpcrdma_header *h)
{
	return h->segments + h->reads + h->writes;
}

#endif
