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
	FUZZ_HOLDS(f->numbered ? f->queue_pair < FRAME_INDICES : f->queue_pair == 0);
}

static void hello(const struct frame *f)
{
	uint8_t again[FRAME_HELLO_SIZE_MAX];
	struct frame_hello hello;
	const char *why = NULL;

	if (!frame_parse_hello(f, &hello, &why))
		return;
	FUZZ_HOLDS(frame_name_valid(hello.plugin) && frame_name_valid(hello.variant));
	FUZZ_HOLDS(frame_write_hello(again, &hello) == f->length);
	FUZZ_HOLDS(f->numbered == (hello.queue_pairs > 1) && hello.queue_pairs <= 1024);
}

static void error(const struct frame *f)
{
	uint8_t again[FRAME_ERROR_SIZE_MAX];
	struct frame_error error;
	const char *why = NULL;

	if (!frame_parse_error(f, &error, &why))
		return;
	FUZZ_HOLDS(strlen(error.text) <= FRAME_ERROR_TEXT);
	FUZZ_HOLDS(frame_write_error(again, &error) <= f->length);
}

static void welcome(const struct frame *f)
{
	uint8_t again[FRAME_WELCOME_SIZE];
	struct frame_welcome welcome;
	const char *why = NULL;

	if (!frame_parse_welcome(f, &welcome, &why))
		return;
	FUZZ_HOLDS(frame_write_welcome(again, &welcome) == f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, f->length) == 0);
}

static void validate(const struct frame *f)
{
	uint8_t again[FRAME_VALIDATE_SIZE];
	struct frame_validate validate;
	const char *why = NULL;

	if (!frame_parse_validate(f, &validate, &why))
		return;
	FUZZ_HOLDS(frame_write_validate(again, &validate) == f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, f->length) == 0);
}

static void proof(const struct frame *f)
{
	uint8_t again[FRAME_PROOF_SIZE];
	struct frame_proof proof;
	const char *why = NULL;

	if (!frame_parse_proof(f, &proof, &why))
		return;
	FUZZ_HOLDS(frame_write_proof(again, &proof) == f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, f->length) == 0);
}

static void are_indices(uint32_t first, uint32_t count)
{
	FUZZ_HOLDS(count > 0 && count <= FRAME_QUEUE_PAIRS_MAX && first <= FRAME_INDICES - count);
}

static void add(const struct frame *f)
{
	uint8_t again[FRAME_ADD_SIZE];
	struct frame_add add;
	const char *why = NULL;

	if (!frame_parse_add(f, &add, &why))
		return;
	are_indices(add.first, add.count);
	FUZZ_HOLDS(add.batch > 0);
	FUZZ_HOLDS(frame_write_add(again, &add) == f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, f->length) == 0);
}

static void abandon(const struct frame *f)
{
	uint8_t again[FRAME_ABANDON_SIZE_MAX];
	struct frame_abandon abandon;
	const char *why = NULL;

	if (!frame_parse_abandon(f, &abandon, &why))
		return;
	FUZZ_HOLDS(abandon.batch > 0);
	FUZZ_HOLDS(abandon.queue_pair < FRAME_INDICES || abandon.queue_pair == UINT32_MAX);
	FUZZ_HOLDS(strlen(abandon.error.text) <= FRAME_ERROR_TEXT);
	FUZZ_HOLDS(frame_write_abandon(again, &abandon) <= f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, 8) == 0);
}

static void remove_some(const struct frame *f)
{
	uint8_t again[FRAME_REMOVE_SIZE];
	struct frame_remove remove;
	const char *why = NULL;

	if (!frame_parse_remove(f, &remove, &why))
		return;
	are_indices(remove.first, remove.count);
	FUZZ_HOLDS(frame_write_remove(again, &remove) == f->length);
	FUZZ_HOLDS(memcmp(again, f->payload, f->length) == 0);
}

static void payloads(const struct frame *f)
{
	FUZZ_HOLDS(frame_type_name(f->type)[0] != '\0' && frame_stage_name(f->stage)[0] != '\0');
	hello(f);
	error(f);
	welcome(f);
	validate(f);
	proof(f);
	add(f);
	abandon(f);
	remove_some(f);
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
