/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and responses of SRPv3, one register each. */
#include "srp.h"

#define VERSION 0x03u
#define OPCODE_WRITE 0x100u
#define WORD_BYTES 4u
/* Bits of the first word that only a response may have. */
#define RESPONSE_ONLY 0x3c00u
#define VALUE_AT 20u
#define STATUS_AT 24u

/* Bits of the last word. */
#define STATUS_TIMEOUT 0x0100u
#define STATUS_LOCKUP 0x2000u

static void put_word(uint8_t *to, uint32_t value)
{
	for (unsigned i = 0; i < WORD_BYTES; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get(const uint8_t *from)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < WORD_BYTES; i++)
		value |= (uint32_t)from[i] << 8 * i;
	return value;
}

size_t srp_request_write(uint8_t bytes[SRP_WRITE_BYTES], const struct srp_request *request)
{
	put_word(bytes, VERSION | (request->write ? OPCODE_WRITE : 0));
	put_word(bytes + 4, request->id);
	put_word(bytes + 8, request->address);
	put_word(bytes + 12, 0);
	put_word(bytes + 16, WORD_BYTES - 1);
	if (!request->write)
		return SRP_READ_BYTES;
	put_word(bytes + VALUE_AT, request->value);
	return SRP_WRITE_BYTES;
}

size_t srp_request_length(const uint8_t bytes[SRP_READ_BYTES])
{
	const uint32_t first = get(bytes);

	if (get(bytes + 12) != 0 || get(bytes + 16) != WORD_BYTES - 1)
		return 0;
	if (first == VERSION)
		return SRP_READ_BYTES;
	return first == (VERSION | OPCODE_WRITE) ? SRP_WRITE_BYTES : 0;
}

void srp_request_parse(const uint8_t *bytes, struct srp_request *out)
{
	out->write = (get(bytes) & OPCODE_WRITE) != 0;
	out->id = get(bytes + 4);
	out->address = get(bytes + 8);
	out->value = out->write ? get(bytes + VALUE_AT) : 0;
}

void srp_response_write(uint8_t bytes[SRP_RESPONSE_BYTES], const struct srp_request *request,
                        uint32_t value, uint32_t status)
{
	(void)srp_request_write(bytes, request);
	put_word(bytes + VALUE_AT, value);
	put_word(bytes + STATUS_AT, status);
}

enum srp_verdict srp_response_parse(const uint8_t bytes[SRP_RESPONSE_BYTES],
                                    const struct srp_request *request, uint32_t *value,
                                    const char **why)
{
	const uint32_t first = VERSION | (request->write ? OPCODE_WRITE : 0);
	const uint32_t status = get(bytes + STATUS_AT);

	*why = "it is no answer in SRPv3 for one register";
	if ((get(bytes) & 0xffu) != VERSION || get(bytes + 12) != 0 ||
	    get(bytes + 16) != WORD_BYTES - 1)
		return SRP_WRONG;
	if (get(bytes + 4) != request->id)
		return SRP_OTHER;
	if ((get(bytes) & ~RESPONSE_ONLY) != first || get(bytes + 8) != request->address) {
		*why = "it is of another register";
		return SRP_WRONG;
	}
	if (status != 0) {
		*why = (status & STATUS_LOCKUP) != 0 ? "the FPGA's register bus is locked up: "
		                                       "power it off and on"
		       : (status & STATUS_TIMEOUT) != 0
		               ? "the FPGA's register bus did not answer in time"
		               : "the FPGA's register bus tells of an error: is the base address "
		                 "right?";
		return SRP_REFUSED;
	}
	*value = get(bytes + VALUE_AT);
	return SRP_ANSWER;
}
