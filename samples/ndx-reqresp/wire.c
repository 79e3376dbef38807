/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <endian.h>
#include <string.h>

#define MAGIC 0x4e445852u /* "NDXR" */
#define VERSION 1u

enum kind { REQUEST = 1, RESPONSE = 2 };

/* Offsets of the header's fields. */
enum field { AT_MAGIC = 0, AT_KIND = 4, AT_SIZE = 8, AT_SEQUENCE = 16, AT_SEED = 24, AT_SUM = 32 };

static void put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

static void put64(uint8_t *to, uint64_t value)
{
	value = htobe64(value);
	memcpy(to, &value, sizeof(value));
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return be64toh(value);
}

/* The next eight bytes of a pattern: a mixed counter (splitmix64). */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t start(uint64_t seed, uint64_t sequence)
{
	return seed ^ (sequence << 20);
}

/* A checksum of the body, eight bytes at a time, because it is part of the measured latency. */
static uint64_t sum(const uint8_t *message, uint32_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (uint32_t at = WIRE_HEADER; at < size; at += 8) {
		uint64_t word = 0;

		memcpy(&word, message + at, size - at < 8 ? size - at : 8);
		hash = (hash ^ le64toh(word)) * 0x9fb21c651e98df25u;
		hash ^= hash >> 32;
	}
	return hash;
}

static void put_header(uint8_t *message, enum kind kind, uint32_t size, uint64_t seed,
                       uint64_t sequence)
{
	put32(message + AT_MAGIC, MAGIC);
	put32(message + AT_KIND, (uint32_t)kind);
	put64(message + AT_SIZE, size);
	put64(message + AT_SEQUENCE, sequence);
	put64(message + AT_SEED, seed);
	put64(message + AT_SUM, sum(message, size));
}

static const char *check_header(const uint8_t *message, uint32_t size, enum kind kind)
{
	if (size < WIRE_HEADER)
		return "shorter than a header";
	if (get32(message + AT_MAGIC) != MAGIC)
		return "no header";
	if (get32(message + AT_KIND) != (uint32_t)kind)
		return "wrong kind of message";
	if (get64(message + AT_SIZE) != size)
		return "length differs from what arrived";
	if (get64(message + AT_SUM) != sum(message, size))
		return "checksum is wrong";
	return NULL;
}

void wire_make_request(uint8_t *message, uint32_t size, uint64_t seed, uint64_t sequence)
{
	uint64_t state = start(seed, sequence);

	for (uint32_t at = WIRE_HEADER; at < size; at += 8) {
		uint64_t word = htole64(next(&state));

		memcpy(message + at, &word, size - at < 8 ? size - at : 8);
	}
	put_header(message, REQUEST, size, seed, sequence);
}

const char *wire_check_request(const uint8_t *message, uint32_t size)
{
	return check_header(message, size, REQUEST);
}

void wire_make_response(uint8_t *response, const uint8_t *request, uint32_t size)
{
	for (uint32_t i = WIRE_HEADER; i < size; i++)
		response[i] = (uint8_t)~request[i];
	put_header(response, RESPONSE, size, get64(request + AT_SEED),
	           get64(request + AT_SEQUENCE));
}

const char *wire_check_response(const uint8_t *message, uint32_t got, uint32_t size, uint64_t seed,
                                uint64_t sequence)
{
	const char *wrong = check_header(message, got, RESPONSE);
	uint64_t state = start(seed, sequence);

	if (wrong != NULL)
		return wrong;
	if (got != size)
		return "not as long as the request";
	if (get64(message + AT_SEQUENCE) != sequence || get64(message + AT_SEED) != seed)
		return "answers another request";
	for (uint32_t at = WIRE_HEADER; at < size; at += 8) {
		uint64_t word = ~htole64(next(&state));

		if (memcmp(message + at, &word, size - at < 8 ? size - at : 8) != 0)
			return "body is not the request's, inverted";
	}
	return NULL;
}

void wire_make_greeting(uint8_t greeting[WIRE_GREETING], uint32_t size)
{
	put32(greeting, MAGIC);
	put32(greeting + 4, VERSION);
	put32(greeting + 8, size);
}

bool wire_read_greeting(const uint8_t *greeting, size_t length, uint32_t *size)
{
	/* some stacks pad private data with zeros: longer is fine */
	if (length < WIRE_GREETING || get32(greeting) != MAGIC || get32(greeting + 4) != VERSION)
		return false;
	*size = get32(greeting + 8);
	return true;
}
