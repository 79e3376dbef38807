/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers in wire format: fixed width, big-endian, unaligned. Plugins share no other code; a plugin
 * outside this tree may copy this file.
 */
#ifndef PLUGIN_WIRE_H
#define PLUGIN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void wire_put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static inline void wire_put32(uint8_t *to, uint32_t value)
{
	wire_put16(to, (uint16_t)(value >> 16));
	wire_put16(to + 2, (uint16_t)value);
}

static inline void wire_put64(uint8_t *to, uint64_t value)
{
	wire_put32(to, (uint32_t)(value >> 32));
	wire_put32(to + 4, (uint32_t)value);
}

static inline uint16_t wire_get16(const uint8_t *from)
{
	return (uint16_t)((unsigned)from[0] << 8 | from[1]);
}

static inline uint32_t wire_get32(const uint8_t *from)
{
	return (uint32_t)wire_get16(from) << 16 | wire_get16(from + 2);
}

static inline uint64_t wire_get64(const uint8_t *from)
{
	return (uint64_t)wire_get32(from) << 32 | wire_get32(from + 4);
}

static inline bool wire_is_zero(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

#endif
