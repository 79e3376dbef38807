/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of the negotiation, and what their payloads say. */
#include <string.h>

#include "frame.h"
#include "fuzz.h"

/* What was read is written as it came. */
static void same_again(const struct frame *f, const uint8_t *data)
{
	uint8_t header[FRAME_HEADER];

	frame_write_header(header, f);
	FUZZ_HOLDS(memcmp(header, data, sizeof(header)) == 0);
}

static void payloads(const struct frame *f)
{
	struct frame_validate validate;
	struct frame_welcome welcome;
	struct frame_hello hello;
	struct frame_error error;
	const char *why = NULL;

	if (frame_parse_hello(f, &hello, &why)) {
		FUZZ_HOLDS(frame_name_valid(hello.plugin));
		FUZZ_HOLDS(frame_name_valid(hello.variant));
	}
	if (frame_parse_error(f, &error, &why))
		FUZZ_HOLDS(strlen(error.text) <= FRAME_ERROR_TEXT);
	(void)frame_parse_welcome(f, &welcome, &why);
	(void)frame_parse_validate(f, &validate, &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	size_t used = 0;
	struct frame f;

	switch (frame_parse(data, size, 4096, &f, &used, &why)) {
	case FRAME_MORE:
		FUZZ_HOLDS(used > size && used <= FRAME_HEADER + 4096);
		break;
	case FRAME_BAD:
		FUZZ_HOLDS(why != NULL);
		break;
	case FRAME_WHOLE:
		FUZZ_HOLDS(used <= size && f.payload + f.length == data + used);
		same_again(&f, data);
		payloads(&f);
		break;
	}
	return 0;
}
