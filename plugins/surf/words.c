/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between the variant and the transport. */
#include "words.h"

#include <string.h>

#include "plugin_wire.h"

static const uint8_t magic[5] = {'N', 'D', 'X', 'N', 1};

void surf_words_write(uint8_t *to, const void *members, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t value;

		memcpy(&value, (const uint8_t *)members + i, sizeof(value));
		wire_put64(to + i, value);
	}
}

void surf_words_read(void *members, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		const uint64_t value = wire_get64(from + i);

		memcpy((uint8_t *)members + i, &value, sizeof(value));
	}
}

bool surf_frame_parse(const uint8_t *bytes, size_t length, struct surf_frame *out)
{
	if (length < SURF_FRAME_HEADER || memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	*out = (struct surf_frame){.type = bytes[5],
	                           .stage = bytes[6],
	                           .flags = bytes[7],
	                           .round = wire_get32(bytes + 8),
	                           .length = wire_get32(bytes + 16),
	                           .payload = bytes + SURF_FRAME_HEADER};
	return out->length <= length - SURF_FRAME_HEADER;
}

size_t surf_frame_write(uint8_t *to, const struct surf_frame *frame)
{
	memset(to, 0, SURF_FRAME_HEADER);
	memcpy(to, magic, sizeof(magic));
	to[5] = frame->type;
	to[6] = frame->stage;
	to[7] = frame->flags;
	wire_put32(to + 8, frame->round);
	wire_put32(to + 16, frame->length);
	if (frame->length > 0)
		memcpy(to + SURF_FRAME_HEADER, frame->payload, frame->length);
	return SURF_FRAME_HEADER + frame->length;
}
