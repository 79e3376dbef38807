/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_SPI_HASH_H
#define NDX_SPI_HASH_H

#include <stdint.h>

/* FNV-1a: every process computes the same number for a text. A peer that chooses the
 * texts can make them collide. */
static inline uint64_t ndxp_hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* Mix a value into a hash. If the first hash is secret, peers cannot choose values that collide. */
static inline uint64_t ndxp_hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

#endif
