/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: the parts of the reassembly. */
#include <inttypes.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* Feed what a program has already taken apart: an InfiniBand packet, and an operation. */
enum ndx_status example_feed(struct ndx_reassembly *reassembly,
                             const struct ndx_transport_packet *packet,
                             const struct ndx_rdma_operation *operation)
{
	enum ndx_status st = ndx_reassembly_feed_transport(reassembly, packet);

	return st == NDX_OK ? ndx_reassembly_feed_operation(reassembly, operation) : st;
}

/* Memory of a peer that is filled in pieces; then the gaps, and the data. */
enum ndx_status example_segment(uint64_t address, const uint8_t *bytes, uint32_t length)
{
	struct ndx_rdma_segment *segment;
	uint64_t offset, missing;
	uint8_t data[4096];
	enum ndx_status st = ndx_rdma_segment_create(address, 65536, 1 << 20, &segment);

	if (st != NDX_OK)
		return st;
	st = ndx_rdma_segment_add_data(segment, address + 4096, bytes, length);
	printf("%" PRIu64 " bytes\n", ndx_rdma_segment_size(segment));
	for (uint64_t at = 0; ndx_rdma_segment_gap(segment, at, &offset, &missing);
	     at = offset + missing)
		printf("%" PRIu64 " bytes are missing at %" PRIu64 "\n", missing, offset);
	if (st == NDX_OK)
		printf("%zu bytes\n",
		       ndx_rdma_segment_get_data(segment, false, data, sizeof(data)));
	ndx_rdma_segment_close(segment);
	return st;
}

/* A write over InfiniBand: its operation, then a packet of it. */
enum ndx_status example_write_packets(struct ndx_rdma_segment *segment, uint32_t psn,
                                      uint64_t address, const uint8_t *bytes, uint32_t length)
{
	enum ndx_status st = ndx_rdma_segment_add_operation(segment, psn, address, length, 1024);

	if (st != NDX_OK)
		return st;
	if (!ndx_rdma_segment_valid_psn(segment, psn))
		return NDX_E_NOT_FOUND;
	return ndx_rdma_segment_add_packet(segment, psn, length <= 1024, bytes,
	                                   length < 1024 ? length : 1024);
}

/* A read over iWARP: the request, then the data of its response. */
enum ndx_status example_read_response(struct ndx_rdma_segment *segment, uint32_t handle,
                                      uint64_t offset, uint64_t source, const uint8_t *bytes,
                                      uint32_t length)
{
	enum ndx_status st = ndx_rdma_segment_add_request(segment, handle, offset, source, length);

	return st == NDX_OK ? ndx_rdma_segment_add_response(segment, handle, offset, bytes, length)
	                    : st;
}
