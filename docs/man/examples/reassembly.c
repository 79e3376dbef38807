/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: messages of a capture. */
#include <inttypes.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* Called for each message, hole, and so on. */
void example_on_event(void *context, const struct ndx_reassembly_event *event)
{
	uint8_t first[64];

	(void)context;
	if (event->type == NDX_REASSEMBLY_CALL)
		printf("call %u, %zu of its first bytes\n", event->rpc.xid,
		       ndx_piece_copy(event->rpc.pieces, event->rpc.piece_count, first,
		                      sizeof(first)));
	else if (event->type == NDX_REASSEMBLY_DUPLICATE)
		printf("again: %s\n", ndx_rdma_opcode_name(event->duplicate.opcode));
}

/* Feed the packets of a capture; what is unfinished at its end is reported as holes. */
enum ndx_status example_reassembly(const struct ndx_packet *packets, size_t count)
{
	struct ndx_reassembly_stats stats = {.size = sizeof(stats)};
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *reassembly;
	enum ndx_status st;

	ndx_reassembly_attr_init(&attr);
	attr.on_event = example_on_event;
	st = ndx_reassembly_create(&attr, &reassembly);
	if (st != NDX_OK)
		return st;
	for (size_t i = 0; st == NDX_OK && i < count; i++)
		st = ndx_reassembly_feed(reassembly, &packets[i]);
	printf("%zu bytes in use\n", ndx_reassembly_size(reassembly));
	ndx_reassembly_flush(reassembly);
	if (st == NDX_OK)
		st = ndx_reassembly_get_stats(reassembly, &stats);
	if (st == NDX_OK)
		printf("%" PRIu64 " packets, %" PRIu64 " calls\n", stats.packets, stats.calls);
	ndx_reassembly_reset(reassembly); /* only to begin another capture */
	ndx_reassembly_close(reassembly);
	return st;
}

/* The name of an operation of iWARP. */
void example_rdmap(uint8_t opcode)
{
	printf("%s\n", ndx_rdmap_opcode_name(opcode));
}

/* What a binding for another language calls. */
void example_reassembly_sizes(struct ndx_reassembly_attr *attr, size_t size)
{
	ndx_reassembly_attr_init_sized(attr, size);
}
