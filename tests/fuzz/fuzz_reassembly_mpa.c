/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up frames of MPA; DDP and RDMAP headers. */
#include "fuzz.h"
#include "mpa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mpa_setup setup;
	struct ddp ddp;

	if (size < 1 || size > 4096)
		return 0;
	(void)mpa_setup_parse(data + 1, (uint32_t)size - 1, &setup);
	if (ddp_parse(data + 1, (uint32_t)size - 1, (uint32_t)size - 1 + data[0], &ddp) &&
	    ddp.captured > 0) {
		volatile uint8_t last = ddp.data[ddp.captured - 1];

		(void)last;
	}
	return 0;
}
