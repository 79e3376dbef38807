/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer of plugin roce may send. */
#include <string.h>

#include "fuzz.h"
#include "payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roce_payload payload = {.message = (enum roce_message)0};
	uint8_t again[ROCE_PAYLOAD_MAX];
	const char *why = NULL;

	if (!roce_payload_parse(data, size, &payload, &why)) {
		FUZZ_HOLDS(why != NULL && payload.message == 0);
		return 0;
	}
	FUZZ_HOLDS(why == NULL);
	/* What was read is written as it came. */
	FUZZ_HOLDS(roce_payload_write(again, &payload, &why) == size);
	FUZZ_HOLDS(memcmp(again, data, size) == 0);
	return 0;
}
