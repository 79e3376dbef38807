/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <string.h>

#define HELLO_MAGIC 0x4e445850u /* "NDXP" */
#define FRAME_MAGIC 0x4e445866u /* "NDXf" */
#define HEADER 12u              /* magic, version, type, length */

enum flag { FLAG_BOTH = 1, FLAG_WAIT = 2 };

/* A position in bytes; both halves of the protocol step through them alike. */
struct cursor {
	uint8_t *at;
	const uint8_t *from;
};

static void put_int(struct cursor *c, uint64_t value, unsigned bytes)
{
	for (unsigned i = bytes; i > 0; i--) {
		c->at[i - 1] = (uint8_t)value;
		value >>= 8;
	}
	c->at += bytes;
}

static uint64_t get_int(struct cursor *c, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | c->from[i];
	c->from += bytes;
	return value;
}

/* A token is four opaque bytes. */
static void put_target(struct cursor *c, const struct perf_target *target)
{
	put_int(c, target->address, 8);
	memcpy(c->at, &target->token, sizeof(target->token));
	c->at += sizeof(target->token);
}

static void get_target(struct cursor *c, struct perf_target *target)
{
	target->address = get_int(c, 8);
	memcpy(&target->token, c->from, sizeof(target->token));
	c->from += sizeof(target->token);
}

void wire_put_hello(uint8_t bytes[WIRE_HELLO], const struct wire_hello_data *hello)
{
	struct cursor c = {.at = bytes};

	put_int(&c, HELLO_MAGIC, 4);
	put_int(&c, WIRE_VERSION, 2);
	put_int(&c, (uint64_t)hello->kind, 2);
	put_int(&c, hello->session, 8);
	put_int(&c, hello->index, 4);
	put_int(&c, 0, 4);
}

const char *wire_get_hello(const uint8_t *bytes, size_t length, struct wire_hello_data *hello)
{
	struct cursor c = {.from = bytes};
	uint64_t kind;

	if (length < WIRE_HELLO || get_int(&c, 4) != HELLO_MAGIC)
		return "this is an ndx-perf server";
	if (get_int(&c, 2) != WIRE_VERSION)
		return "this ndx-perf server has another version";
	kind = get_int(&c, 2);
	if (kind != WIRE_CONTROL && kind != WIRE_DATA)
		return "unknown kind of connection";
	hello->kind = (enum wire_hello)kind;
	hello->session = get_int(&c, 8);
	hello->index = (uint32_t)get_int(&c, 4);
	return NULL;
}

static void put_test(struct cursor *c, const struct perf_test *test)
{
	put_int(c, (uint64_t)test->op, 1);
	put_int(c, (uint64_t)test->kind, 1);
	put_int(c, (test->both ? FLAG_BOTH : 0u) | (test->wait ? FLAG_WAIT : 0u), 2);
	put_int(c, test->size, 4);
	put_int(c, test->depth, 4);
	put_int(c, test->qps, 4);
	put_int(c, test->threads, 4);
	put_int(c, test->seconds, 4);
}

static bool get_test(struct cursor *c, struct perf_test *test)
{
	const uint64_t op = get_int(c, 1);
	const uint64_t kind = get_int(c, 1);
	const uint64_t flags = get_int(c, 2);

	if (op >= PERF_OPS || kind >= PERF_KINDS || (flags & ~UINT64_C(3)) != 0)
		return false;
	test->op = (enum perf_op)op;
	test->kind = (enum perf_kind)kind;
	test->both = (flags & FLAG_BOTH) != 0;
	test->wait = (flags & FLAG_WAIT) != 0;
	test->size = (uint32_t)get_int(c, 4);
	test->depth = (uint32_t)get_int(c, 4);
	test->qps = (uint32_t)get_int(c, 4);
	test->threads = (uint32_t)get_int(c, 4);
	test->seconds = (uint32_t)get_int(c, 4);
	return true;
}

/* Bytes behind the header; REFUSED has a text of any length up to WIRE_REASON. */
static size_t body_of(enum wire_type type, size_t text)
{
	switch (type) {
	case WIRE_TEST:
		return 24 + 12;
	case WIRE_READY:
		return 8 + 12;
	case WIRE_REFUSED:
		return text;
	case WIRE_RESULT:
		return 32;
	case WIRE_GO:
	case WIRE_GOING:
	case WIRE_STOP:
	default:
		return 0;
	}
}

size_t wire_put_frame(uint8_t bytes[WIRE_FRAME], const struct wire_frame *frame)
{
	const size_t text = strnlen(frame->reason, WIRE_REASON - 1);
	const size_t length = HEADER + body_of(frame->type, text);
	struct cursor c = {.at = bytes};

	put_int(&c, FRAME_MAGIC, 4);
	put_int(&c, WIRE_VERSION, 2);
	put_int(&c, (uint64_t)frame->type, 2);
	put_int(&c, length, 4);
	if (frame->type == WIRE_TEST)
		put_test(&c, &frame->test);
	if (frame->type == WIRE_READY)
		put_int(&c, frame->session, 8);
	if (frame->type == WIRE_TEST || frame->type == WIRE_READY)
		put_target(&c, &frame->target);
	if (frame->type == WIRE_REFUSED)
		memcpy(c.at, frame->reason, text);
	if (frame->type == WIRE_RESULT) {
		put_int(&c, frame->sent, 8);
		put_int(&c, frame->received, 8);
		put_int(&c, frame->elapsed_ns, 8);
		put_int(&c, frame->cpu_ns, 8);
	}
	return length;
}

bool wire_get_frame(const uint8_t *bytes, size_t length, struct wire_frame *frame)
{
	struct cursor c = {.from = bytes};
	uint64_t type;

	memset(frame, 0, sizeof(*frame));
	if (length < HEADER || length > WIRE_FRAME || get_int(&c, 4) != FRAME_MAGIC ||
	    get_int(&c, 2) != WIRE_VERSION)
		return false;
	type = get_int(&c, 2);
	if (type < WIRE_TEST || type > WIRE_RESULT || get_int(&c, 4) != length)
		return false;
	frame->type = (enum wire_type)type;
	if (frame->type == WIRE_REFUSED && length - HEADER >= WIRE_REASON)
		return false;
	if (length != HEADER + body_of(frame->type, length - HEADER))
		return false;
	if (frame->type == WIRE_TEST && !get_test(&c, &frame->test))
		return false;
	if (frame->type == WIRE_READY)
		frame->session = get_int(&c, 8);
	if (frame->type == WIRE_TEST || frame->type == WIRE_READY)
		get_target(&c, &frame->target);
	if (frame->type == WIRE_REFUSED)
		wire_copy_text(frame->reason, sizeof(frame->reason), c.from, length - HEADER);
	if (frame->type == WIRE_RESULT) {
		frame->sent = get_int(&c, 8);
		frame->received = get_int(&c, 8);
		frame->elapsed_ns = get_int(&c, 8);
		frame->cpu_ns = get_int(&c, 8);
	}
	return true;
}

void wire_copy_text(char *to, size_t room, const uint8_t *from, size_t length)
{
	size_t i = 0;

	for (; i < length && i + 1 < room; i++) {
		to[i] = '?';
		if (from[i] >= ' ' && from[i] <= '~')
			to[i] = (char)from[i];
	}
	to[i] = '\0';
}
