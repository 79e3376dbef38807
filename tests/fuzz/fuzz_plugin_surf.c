/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may come from a register bus of plugin surf, and from an FPGA behind it. The first byte says
 * which: an answer in SRPv3, or what the registers hold, read after read; with trouble, if it says
 * so. And what the plugin's own two ends tell each other.
 */
#include <string.h>

#include "fuzz.h"
#include "setup.h"
#include "srp.h"
#include "words.h"

#define STEP_MS 100u
/* A bring-up and two clean-ups, each answer as late as may be. */
#define ACCESSES_MOST 5000u

struct source {
	const uint8_t *data;
	size_t left;
	uint64_t now;
	unsigned accesses;
	unsigned waits;
	/* Trouble: */
	unsigned access_ms;
	unsigned bad_access; /* the n-th from 1; 0: none */
	unsigned bad_wait;
	enum ndx_status status; /* of that */
	const char *cause;
};

static uint32_t take32(struct source *s)
{
	uint32_t value = 0;

	if (s->left < sizeof(value)) {
		s->left = 0;
		return 0;
	}
	memcpy(&value, s->data, sizeof(value));
	s->data += sizeof(value);
	s->left -= sizeof(value);
	return value;
}

static enum ndx_status go_on(struct source *s)
{
	FUZZ_HOLDS(++s->accesses < ACCESSES_MOST);
	s->now += s->access_ms;
	return s->accesses == s->bad_access ? s->status : NDX_OK;
}

static enum ndx_status write32(void *state, uint32_t address, uint32_t value)
{
	struct source *s = state;

	(void)value;
	FUZZ_HOLDS(address >= SURF_REG_CONTROL && address <= SURF_REG_RESET);
	return go_on(s);
}

static enum ndx_status read32(void *state, uint32_t address, uint32_t *value)
{
	struct source *s = state;

	FUZZ_HOLDS(address >= SURF_REG_CONTROL && address < SURF_REG_RESET);
	*value = take32(s);
	/* An access that fails, now and then. */
	return *value == 0xdeadbeef ? NDX_E_DEVICE_REMOVED : go_on(s);
}

static enum ndx_status wait_ms(void *state, uint32_t milliseconds)
{
	struct source *s = state;

	s->now += milliseconds;
	return ++s->waits == s->bad_wait ? s->status : NDX_OK;
}

static uint64_t now_ms(void *state)
{
	const struct source *s = state;

	return s->now;
}

static const char *cause(void *state)
{
	const struct source *s = state;

	return s->cause;
}

static const struct surf_bus_ops ops = {
	.write32 = write32, .read32 = read32, .wait = wait_ms, .now = now_ms, .cause = cause};

static void line(void *to, enum ndx_log_level level, const char *text)
{
	(void)to;
	FUZZ_HOLDS(level <= NDX_LOG_DEBUG && text[0] != '\0');
}

static bool is_nothing(const struct surf_connection *c)
{
	return !c->has_pd && !c->has_mr && !c->has_qp && c->qpn == 0;
}

/* However the FPGA behaves it comes to an end, and is told what was made. */
static void drive(struct source *source, const struct surf_setup *setup)
{
	static const struct surf_log log = {.line = line};
	const struct surf_bus bus = {.ops = &ops, .state = source};
	struct surf_connection made = {.qpn = 0};
	char why[200] = "";
	enum ndx_status st = surf_bring_up(&bus, &log, setup, &made, why, sizeof(why));

	if (st != NDX_OK) {
		FUZZ_HOLDS(why[0] != '\0' && is_nothing(&made));
		return;
	}
	FUZZ_HOLDS(made.has_pd && made.has_mr && made.has_qp && made.qpn <= 0xffffff);
	(void)surf_tear_down(&bus, &log, &made);
	FUZZ_HOLDS(is_nothing(&made));
}

static void registers(struct source *source)
{
	const struct surf_setup setup = {.host_qpn = 0x11,
	                                 .rq_psn = 0x22,
	                                 .sq_psn = 0x33,
	                                 .mr_address = 0x10000,
	                                 .mr_length = 0x1000,
	                                 .pmtu = 3,
	                                 .step_ms = STEP_MS};

	drive(source, &setup);
}

static void troubled(const uint8_t *data, size_t size)
{
	static const enum ndx_status statuses[] = {NDX_E_IO_TIMEOUT, NDX_E_CANCELED,
	                                           NDX_E_CONNECTION_ABORTED, NDX_E_REMOTE_ERROR};
	struct source source = {.data = data, .left = size};
	const uint32_t first = take32(&source);

	source.access_ms = first & 0x80000000u ? 1000 : 0;
	source.bad_access = first & 0x3ffu;
	source.bad_wait = first >> 10 & 0xffu;
	source.status = statuses[first >> 18 & 3u];
	source.cause = first & 0x100000u ? "the wire is cut" : "";
	registers(&source);
}

/* Any number in each field: all fit, or no register is touched. */
static void any_setup(const uint8_t *data, size_t size)
{
	struct source source = {.cause = ""};
	struct surf_setup setup = {.step_ms = STEP_MS};

	memcpy(&setup, data, size < sizeof(setup) ? size : sizeof(setup));
	setup.step_ms %= STEP_MS;
	drive(&source, &setup);
}

static void same_again(const uint32_t words[SURF_REQUEST_WORDS])
{
	uint32_t again[SURF_REQUEST_WORDS];
	struct surf_request read;
	char why[200] = "";

	FUZZ_HOLDS(surf_request_decode(words, &read, why, sizeof(why)) == NDX_OK);
	FUZZ_HOLDS(surf_request_encode(&read, again, why, sizeof(why)) == NDX_OK);
	FUZZ_HOLDS(memcmp(words, again, sizeof(again)) == 0);
}

/* A request as the FPGA reads it: what was written is what was meant. */
static void request(const uint8_t *data, size_t size)
{
	uint32_t words[SURF_REQUEST_WORDS] = {0};
	struct surf_request wanted;
	char why[200] = "";

	memcpy(words, data, size < sizeof(words) ? size : sizeof(words));
	if (surf_request_decode(words, &wanted, why, sizeof(why)) != NDX_OK) {
		FUZZ_HOLDS(why[0] != '\0');
		return;
	}
	/* Now and then one that does not fit, perhaps. */
	if (size > sizeof(words))
		memset((uint8_t *)&wanted + data[size - 1] % sizeof(wanted), 0xff, 1);
	if (surf_request_encode(&wanted, words, why, sizeof(why)) == NDX_OK)
		same_again(words);
	else
		FUZZ_HOLDS(why[0] != '\0');
}

static void frame(const uint8_t *data, size_t size)
{
	uint8_t again[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD];
	uint8_t bytes[SURF_ORDER_BYTES];
	struct surf_order order;
	struct surf_frame f;
	struct surf_frame g;

	if (!surf_frame_parse(data, size, &f) || f.length > SURF_FRAME_PAYLOAD)
		return;
	FUZZ_HOLDS(surf_frame_write(again, &f) == SURF_FRAME_HEADER + f.length);
	FUZZ_HOLDS(surf_frame_parse(again, SURF_FRAME_HEADER + f.length, &g));
	FUZZ_HOLDS(g.type == f.type && g.stage == f.stage && g.flags == f.flags &&
	           g.round == f.round && g.length == f.length);
	FUZZ_HOLDS(memcmp(g.payload, f.payload, f.length) == 0);
	if (f.length != SURF_ORDER_BYTES)
		return;
	surf_words_read(&order, f.payload, SURF_ORDER_BYTES);
	surf_words_write(bytes, &order, SURF_ORDER_BYTES);
	FUZZ_HOLDS(memcmp(bytes, f.payload, SURF_ORDER_BYTES) == 0);
}

/* What is read of any bits fits the bus again. */
static void response(const uint8_t *data, size_t size)
{
	uint32_t words[SURF_RESPONSE_WORDS] = {0};
	uint32_t again[SURF_RESPONSE_WORDS];
	struct surf_response r;
	char why[200] = "";

	memcpy(words, data, size < sizeof(words) ? size : sizeof(words));
	if (surf_response_decode(words, &r, why, sizeof(why)) != NDX_OK) {
		FUZZ_HOLDS(why[0] != '\0');
		return;
	}
	FUZZ_HOLDS(surf_response_encode(&r, again, why, sizeof(why)) == NDX_OK);
}

static void answer(const uint8_t *data, size_t size)
{
	struct srp_request request = {.id = 1, .address = SURF_REG_CONTROL};
	uint8_t bytes[SRP_RESPONSE_BYTES] = {0};
	uint8_t again[SRP_RESPONSE_BYTES];
	uint32_t value = 7;
	const char *why = NULL;
	size_t length;

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	request.write = (bytes[1] & 1u) != 0;
	if (srp_response_parse(bytes, &request, &value, &why) != SRP_ANSWER)
		FUZZ_HOLDS(why != NULL && value == 7);
	/* And as the other side reads it. */
	length = srp_request_length(bytes);
	FUZZ_HOLDS(length <= SRP_WRITE_BYTES);
	if (length == 0)
		return;
	srp_request_parse(bytes, &request);
	FUZZ_HOLDS(srp_request_write(again, &request) == length &&
	           memcmp(again, bytes, length) == 0);
}

static void calm(const uint8_t *data, size_t size)
{
	struct source source = {.data = data, .left = size, .cause = ""};

	registers(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const targets[])(const uint8_t *data, size_t size) = {
		calm, response, answer, troubled, any_setup, request, frame,
	};

	if (size > 0)
		targets[data[0] % (sizeof(targets) / sizeof(targets[0]))](data + 1, size - 1);
	return 0;
}
