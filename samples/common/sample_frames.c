/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_frames.h"

#include <string.h>

static const uint8_t magic[8] = {'N', 'D', 'X', 'f', 'r', 'm', 0, 1};

static void put_be(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes-- > 0) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* The next 24 bits of x^31 + x^28 + 1; the register is never 0. */
static uint32_t prbs31(uint32_t *reg)
{
	const uint32_t bits = ((*reg >> 7) ^ (*reg >> 4)) & 0xffffff;

	*reg = (*reg << 24 | bits) & 0x7fffffff;
	return bits;
}

static uint32_t first_bits(uint64_t number)
{
	return (uint32_t)((number * 2654435761u) & 0x7fffffff) | 1;
}

void sample_frame_fill(void *data, uint32_t length, uint64_t number)
{
	uint32_t reg = first_bits(number);
	uint8_t *at = data;

	put_be(at, number, 8);
	put_be(at + 8, length, 4);
	for (uint32_t i = SAMPLE_FRAME_HEADER; i < length; i += 3) {
		const unsigned bytes = i + 3 > length ? length - i : 3;

		put_be(at + i, prbs31(&reg) >> (8 * (3 - bytes)), bytes);
	}
}

bool sample_frame_check(const void *data, uint32_t length, uint64_t *number)
{
	const uint8_t *at = data;
	uint32_t reg;

	if (length < SAMPLE_FRAME_HEADER || get(at + 8, 4) != length)
		return false;
	*number = get(at, 8);
	reg = first_bits(*number);
	for (uint32_t i = SAMPLE_FRAME_HEADER; i < length; i += 3) {
		const unsigned bytes = i + 3 > length ? length - i : 3;

		if (get(at + i, bytes) != prbs31(&reg) >> (8 * (3 - bytes)))
			return false;
	}
	return true;
}

void sample_greeting_write(const struct sample_greeting *greeting,
                           uint8_t bytes[SAMPLE_GREETING_BYTES])
{
	memcpy(bytes, magic, sizeof(magic));
	put_be(bytes + 8, greeting->by_write, 4);
	put_be(bytes + 12, greeting->slot_size, 4);
	put_be(bytes + 16, greeting->slot_count, 4);
	put_be(bytes + 20, greeting->token, 4);
	put_be(bytes + 24, greeting->address, 8);
}

bool sample_greeting_read(struct sample_greeting *greeting, const uint8_t *bytes, size_t length)
{
	if (length < SAMPLE_GREETING_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	greeting->by_write = get(bytes + 8, 4) != 0;
	greeting->slot_size = (uint32_t)get(bytes + 12, 4);
	greeting->slot_count = (uint32_t)get(bytes + 16, 4);
	greeting->token = (uint32_t)get(bytes + 20, 4);
	greeting->address = get(bytes + 24, 8);
	return greeting->slot_size > 0 && greeting->slot_count > 0;
}
