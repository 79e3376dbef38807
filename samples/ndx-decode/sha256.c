/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 (FIPS 180-4), for builds without libcrypto. */
#include <stdlib.h>
#include <string.h>

#include "decode.h"

struct sha256 {
	uint32_t state[8];
	uint64_t length;
	uint8_t block[64];
};

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned by)
{
	return value >> by | value << (32 - by);
}

static void compress(struct sha256 *hash, const uint8_t *block)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
	memcpy(s, hash->state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
		              ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
		              ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		hash->state[i] += s[i];
}

struct sha256 *sha256_create(void)
{
	return malloc(sizeof(struct sha256));
}

void sha256_begin(struct sha256 *hash)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(hash->state, start, sizeof(start));
	hash->length = 0;
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	size_t fill = hash->length % 64;

	hash->length += length;
	if (fill > 0) {
		size_t part = length < 64 - fill ? length : 64 - fill;

		memcpy(hash->block + fill, at, part);
		at += part;
		length -= part;
		if (fill + part < 64)
			return;
		compress(hash, hash->block);
	}
	for (; length >= 64; at += 64, length -= 64)
		compress(hash, at);
	if (length > 0)
		memcpy(hash->block, at, length);
}

void sha256_end(struct sha256 *hash, uint8_t out[32])
{
	static const uint8_t padding[64] = {0x80};
	uint64_t bits = hash->length * 8;
	uint8_t tail[8];

	for (int i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(hash, padding, 1 + (119 - hash->length % 64) % 64);
	sha256_add(hash, tail, sizeof(tail));
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_free(struct sha256 *hash)
{
	free(hash);
}
