/* SPDX-License-Identifier: BSD-2-Clause */
/* Base transport headers, and what datagrams of the connection manager say. */
#include "bth.h"
#include "cm.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_message message;
	struct bth bth;

	if (size < 1 || size > 4096)
		return 0;
	if (bth_parse(data + 1, (uint32_t)size - 1, (uint32_t)size - 1 + data[0], &bth) &&
	    bth.captured > 0) {
		volatile uint8_t last = bth.data[bth.captured - 1];

		(void)last;
		(void)cm_parse(bth.data, bth.captured, &message);
	}
	return 0;
}
