/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer of plugin example may send. */
#include <string.h>

#include "format.h"
#include "fuzz.h"

/* Its fields may have come in any order, and with some of later versions in between; nothing is
 * lost on the way: what is read of what was written is written the same. */
static void write_and_read(const struct example_message *message, size_t most)
{
	struct example_message again;
	uint8_t bytes[EXAMPLE_MESSAGE_MAX];
	uint8_t twice[EXAMPLE_MESSAGE_MAX];
	const char *why = NULL;
	const size_t length = example_write(bytes, message);

	FUZZ_HOLDS(length <= most && length <= sizeof(bytes));
	FUZZ_HOLDS(example_parse(bytes, length, &again, &why));
	FUZZ_HOLDS(example_write(twice, &again) == length && memcmp(bytes, twice, length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct example_message message = {.step = (enum example_step)0};
	const char *why = NULL;

	if (!example_parse(data, size, &message, &why)) {
		FUZZ_HOLDS(why != NULL && message.step == 0);
		return 0;
	}
	FUZZ_HOLDS(why == NULL);
	write_and_read(&message, size);
	return 0;
}
