/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may come from a register bus of plugin surf, and from an FPGA behind it. The first byte says
 * which: an answer in SRPv3, or what the registers hold, read after read.
 */
#include <string.h>

#include "fuzz.h"
#include "setup.h"
#include "srp.h"

#define STEP_MS 100u
/* A bring-up and two clean-ups, each answer as late as may be. */
#define ACCESSES_MOST 5000u

struct source {
	const uint8_t *data;
	size_t left;
	uint64_t now;
	unsigned accesses;
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

static enum ndx_status write32(void *state, uint32_t address, uint32_t value)
{
	struct source *s = state;

	(void)value;
	FUZZ_HOLDS(address >= SURF_REG_CONTROL && address <= SURF_REG_RESET);
	FUZZ_HOLDS(++s->accesses < ACCESSES_MOST);
	return NDX_OK;
}

static enum ndx_status read32(void *state, uint32_t address, uint32_t *value)
{
	struct source *s = state;

	FUZZ_HOLDS(address >= SURF_REG_CONTROL && address < SURF_REG_RESET);
	FUZZ_HOLDS(++s->accesses < ACCESSES_MOST);
	*value = take32(s);
	/* An access that fails, now and then. */
	return *value == 0xdeadbeef ? NDX_E_DEVICE_REMOVED : NDX_OK;
}

static enum ndx_status wait_ms(void *state, uint32_t milliseconds)
{
	struct source *s = state;

	s->now += milliseconds;
	return NDX_OK;
}

static uint64_t now_ms(void *state)
{
	const struct source *s = state;

	return s->now;
}

static const struct surf_bus_ops ops = {
	.write32 = write32, .read32 = read32, .wait = wait_ms, .now = now_ms};

static bool is_nothing(const struct surf_connection *c)
{
	return !c->has_pd && !c->has_mr && !c->has_qp && c->qpn == 0;
}

/* However the FPGA behaves it comes to an end, and is told what was made. */
static void registers(const uint8_t *data, size_t size)
{
	struct source source = {.data = data, .left = size};
	const struct surf_bus bus = {.ops = &ops, .state = &source};
	const struct surf_setup setup = {.host_qpn = 0x11,
	                                 .rq_psn = 0x22,
	                                 .sq_psn = 0x33,
	                                 .mr_address = 0x10000,
	                                 .mr_length = 0x1000,
	                                 .pmtu = 3,
	                                 .step_ms = STEP_MS};
	struct surf_connection made = {.qpn = 0};
	char why[200] = "";
	enum ndx_status st = surf_bring_up(&bus, NULL, &setup, &made, why, sizeof(why));

	if (st != NDX_OK) {
		FUZZ_HOLDS(why[0] != '\0' && is_nothing(&made));
		return;
	}
	FUZZ_HOLDS(made.has_pd && made.has_mr && made.has_qp && made.qpn <= 0xffffff);
	(void)surf_tear_down(&bus, NULL, &made);
	FUZZ_HOLDS(is_nothing(&made));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 3 == 0)
		registers(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		response(data + 1, size - 1);
	else
		answer(data + 1, size - 1);
	return 0;
}
