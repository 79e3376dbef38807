/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole captures: a byte of settings, then packets, each behind two bytes of length and one that
 * says how much of it the capture cut. Memory stays within its bound, and everything is given back.
 */
#include <ndx/reassembly.h>
#include <stdlib.h>

#include "fuzz.h"

struct seen {
	uint64_t sum;
};

/* Touch every byte that an event offers. */
static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	struct seen *seen = context;

	if (event->type == NDX_REASSEMBLY_SEND) {
		for (size_t i = 0; i < event->send.length; i++)
			seen->sum += event->send.bytes[i];
	}
	if (event->type != NDX_REASSEMBLY_CALL && event->type != NDX_REASSEMBLY_REPLY)
		return;
	for (size_t i = 0; i < event->rpc.piece_count; i++) {
		for (size_t k = 0; k < event->rpc.pieces[i].length; k++)
			seen->sum += event->rpc.pieces[i].bytes[k];
	}
	for (size_t i = 0; i < event->rpc.chunk_count; i++) {
		const struct ndx_rpc_chunk *c = &event->rpc.chunks[i];

		for (size_t k = 0; k < c->piece_count; k++)
			seen->sum += event->rpc.pieces[c->first_piece + k].length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {1, 101, 113, 197, 228, 229, 247, 276};
	struct ndx_reassembly_stats stats;
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *r;
	struct seen seen = {0};
	uint32_t type;

	if (size < 1 || size > (1 << 20))
		return 0;
	ndx_reassembly_attr_init(&attr);
	attr.on_event = on_event;
	attr.context = &seen;
	attr.max_bytes = 1 << 20;
	attr.check_crc = (data[0] & 8) != 0;
	if ((data[0] & 16) != 0) {
		attr.max_segments = 5;
		attr.max_connections = 2;
		attr.reorder_packets = 3;
	}
	type = types[data[0] & 7];
	if (ndx_reassembly_create(&attr, &r) != NDX_OK)
		return 0;
	for (size_t at = 1; at + 3 <= size;) {
		uint32_t length = (uint32_t)data[at] << 8 | data[at + 1];
		struct ndx_packet packet = {.time_ns = at, .link_type = type};
		uint8_t *copy;

		if (length > size - at - 3)
			length = (uint32_t)(size - at - 3);
		packet.captured = length;
		packet.original = length + data[at + 2];
		copy = malloc(length > 0 ? length : 1);
		if (copy == NULL)
			break;
		for (uint32_t i = 0; i < length; i++)
			copy[i] = data[at + 3 + i];
		packet.bytes = copy;
		(void)ndx_reassembly_feed(r, &packet);
		free(copy);
		at += 3 + length;
	}
	ndx_reassembly_flush(r);
	ndx_reassembly_get_stats(r, &stats);
	FUZZ_HOLDS(stats.bytes_peak <= attr.max_bytes);
	FUZZ_HOLDS(stats.segments == 0);
	ndx_reassembly_close(r);
	return 0;
}
