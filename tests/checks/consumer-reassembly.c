/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, in C and in C++, with nothing but the reassembly, for install.sh. */
#include <stdio.h>
#include <string.h>

#include <ndx/reassembly.h>
#include <ndx/reassembly_parts.h>

static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	(void)context;
	(void)event;
}

int main(void)
{
	struct ndx_packet packet;
	struct ndx_reassembly_stats stats;
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *reassembly;
	struct ndx_rdma_segment *segment;

	memset(&packet, 0, sizeof(packet));
	packet.link_type = NDX_LINK_ETHERNET;
	stats.size = sizeof(stats);
	ndx_reassembly_attr_init(&attr);
	if (ndx_reassembly_create(&attr, &reassembly) != NDX_E_INVALID_PARAMETER)
		return 1; /* there is no on_event */
	attr.on_event = on_event;
	if (ndx_reassembly_create(&attr, &reassembly) != NDX_OK ||
	    ndx_reassembly_feed(reassembly, &packet) != NDX_OK)
		return 1;
	ndx_reassembly_flush(reassembly);
	if (ndx_reassembly_get_stats(reassembly, &stats) != NDX_OK)
		return 1;
	ndx_reassembly_close(reassembly);
	if (ndx_rdma_segment_create(0, 1, 65536, &segment) != NDX_OK)
		return 1;
	ndx_rdma_segment_close(segment);
	printf("%s: %d packet\n", ndx_rdma_opcode_name(4), (int)stats.packets);
	return stats.packets == 1 ? 0 : 1;
}
