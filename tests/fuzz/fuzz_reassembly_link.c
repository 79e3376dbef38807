/* SPDX-License-Identifier: BSD-2-Clause */
/* Link and network layers, then the CRC over what they say is there. */
#include "crc.h"
#include "fuzz.h"
#include "link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {1, 101, 113, 197, 228, 229, 247, 276};
	static struct crc_tables tables;
	struct ndx_packet packet;
	struct frame frame;

	if (size < 2 || size > 4096)
		return 0;
	if (tables.ieee[0][1] == 0)
		crc_tables_init(&tables);
	packet = (struct ndx_packet){.bytes = data + 2,
	                             .captured = (uint32_t)size - 2,
	                             .original = (uint32_t)size - 2 + data[1],
	                             .link_type = types[data[0] & 7]};
	if (link_parse(&packet, &frame) == LINK_RDMA) {
		volatile uint8_t last = 0;

		if (frame.captured > 0)
			last = frame.payload[frame.captured - 1];
		(void)last;
		if (frame.transport != NDX_RDMA_IWARP)
			(void)crc_icrc_good(&tables, &frame);
	}
	return 0;
}
