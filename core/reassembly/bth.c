/* SPDX-License-Identifier: BSD-2-Clause */
#include "bth.h"

#include <ndx/reassembly.h>

#include <ndx/spi/byteorder.h>

#define BTH_SIZE 12

/* Headers after the base transport header, in this order. */
enum {
	RDETH = 1 << 0,
	DETH = 1 << 1,
	XRCETH = 1 << 2,
	RETH = 1 << 3,
	ATOMIC = 1 << 4,
	AETH = 1 << 5,
	ATOMIC_ACK = 1 << 6,
	IMMEDIATE = 1 << 7,
	INVALIDATE = 1 << 8,
	FIRST = 1 << 9,
	LAST = 1 << 10,
	ONLY = FIRST | LAST,
};

/* By the lower five bits of the opcode; headers_of() adds those of the service. */
static const struct {
	uint16_t kind;
	uint16_t headers;
} operations[32] = {
	[0x00] = {BTH_SEND, FIRST},
	[0x01] = {BTH_SEND, 0},
	[0x02] = {BTH_SEND, LAST},
	[0x03] = {BTH_SEND, LAST | IMMEDIATE},
	[0x04] = {BTH_SEND, ONLY},
	[0x05] = {BTH_SEND, ONLY | IMMEDIATE},
	[0x06] = {BTH_WRITE, FIRST | RETH},
	[0x07] = {BTH_WRITE, 0},
	[0x08] = {BTH_WRITE, LAST},
	[0x09] = {BTH_WRITE, LAST | IMMEDIATE},
	[0x0a] = {BTH_WRITE, ONLY | RETH},
	[0x0b] = {BTH_WRITE, ONLY | RETH | IMMEDIATE},
	[0x0c] = {BTH_READ_REQUEST, ONLY | RETH},
	[0x0d] = {BTH_READ_RESPONSE, FIRST | AETH},
	[0x0e] = {BTH_READ_RESPONSE, 0},
	[0x0f] = {BTH_READ_RESPONSE, LAST | AETH},
	[0x10] = {BTH_READ_RESPONSE, ONLY | AETH},
	[0x11] = {BTH_ACKNOWLEDGE, ONLY | AETH},
	[0x12] = {BTH_ATOMIC_ACKNOWLEDGE, ONLY | AETH | ATOMIC_ACK},
	[0x13] = {BTH_ATOMIC, ONLY | ATOMIC},
	[0x14] = {BTH_ATOMIC, ONLY | ATOMIC},
	[0x15] = {BTH_OTHER, 0},
	[0x16] = {BTH_SEND, LAST | INVALIDATE},
	[0x17] = {BTH_SEND, ONLY | INVALIDATE},
};

/* The operations of each service, as a bit mask. */
static const uint32_t services[8] = {
	[BTH_RC] = 0x00dfffff, [BTH_UC] = 0x00000fff,  [BTH_RD] = 0x003fffff,
	[BTH_UD] = 0x00000030, [BTH_CNP] = 0x00000002, [BTH_XRC] = 0x00dfffff,
};

static unsigned headers_of(uint8_t service, unsigned operation)
{
	unsigned headers = operations[operation].headers;
	unsigned kind = operations[operation].kind;
	bool answers = kind == BTH_READ_RESPONSE || kind == BTH_ACKNOWLEDGE ||
	               kind == BTH_ATOMIC_ACKNOWLEDGE;

	if (service == BTH_RD)
		return headers | RDETH | (answers ? 0 : DETH);
	if (service == BTH_UD)
		return headers | DETH;
	if (service == BTH_XRC && !answers)
		return headers | XRCETH;
	return headers;
}

/* The next `n` captured bytes, or NULL if there are fewer. */
static const uint8_t *take_bytes(const uint8_t *bytes, uint32_t captured, uint32_t *at, uint32_t n)
{
	const uint8_t *here = bytes + *at;

	if (captured - *at < n)
		return NULL;
	*at += n;
	return here;
}

/* Parse the headers up to and including the RETH, which only requests have. */
static bool requests(const uint8_t *b, uint32_t captured, unsigned headers, uint32_t *at,
                     struct bth *out)
{
	const uint8_t *h;

	if ((headers & RDETH) != 0 && take_bytes(b, captured, at, 4) == NULL)
		return false;
	if ((headers & DETH) != 0) {
		h = take_bytes(b, captured, at, 8);
		if (h == NULL)
			return false;
		out->has_deth = true;
		out->source_qpn = ndxp_get_be32(h + 4) & PSN_MASK;
	}
	if ((headers & XRCETH) != 0) {
		h = take_bytes(b, captured, at, 4);
		if (h == NULL)
			return false;
		out->srq = ndxp_get_be32(h) & PSN_MASK;
	}
	if ((headers & RETH) != 0) {
		h = take_bytes(b, captured, at, 16);
		if (h == NULL)
			return false;
		out->has_reth = true;
		out->address = ndxp_get_be64(h);
		out->handle = ndxp_get_be32(h + 8);
		out->dma_length = ndxp_get_be32(h + 12);
	}
	return true;
}

static bool answers(const uint8_t *b, uint32_t captured, unsigned headers, uint32_t *at,
                    struct bth *out)
{
	const uint8_t *h;

	if ((headers & ATOMIC) != 0) {
		h = take_bytes(b, captured, at, 28);
		if (h == NULL)
			return false;
		out->has_atomic = true;
		out->address = ndxp_get_be64(h);
		out->handle = ndxp_get_be32(h + 8);
		out->swap = ndxp_get_be64(h + 12);
		out->compare = ndxp_get_be64(h + 20);
	}
	if ((headers & AETH) != 0) {
		h = take_bytes(b, captured, at, 4);
		if (h == NULL)
			return false;
		out->has_aeth = true;
		out->syndrome = h[0];
		out->msn = ndxp_get_be32(h) & PSN_MASK;
	}
	if ((headers & ATOMIC_ACK) != 0) {
		h = take_bytes(b, captured, at, 8);
		if (h == NULL)
			return false;
		out->original = ndxp_get_be64(h);
	}
	if ((headers & (IMMEDIATE | INVALIDATE)) != 0) {
		h = take_bytes(b, captured, at, 4);
		if (h == NULL)
			return false;
		out->has_immediate = (headers & IMMEDIATE) != 0;
		out->has_invalidate = !out->has_immediate;
		*(out->has_immediate ? &out->immediate : &out->invalidate) = ndxp_get_be32(h);
	}
	return true;
}

bool bth_parse(const uint8_t *bytes, uint32_t captured, uint32_t length, struct bth *out)
{
	uint32_t at = BTH_SIZE, padding;
	unsigned operation, headers;

	if (captured < BTH_SIZE || length < captured)
		return false;
	*out = (struct bth){.opcode = bytes[0], .service = bytes[0] >> 5};
	operation = bytes[0] & 31;
	out->qpn = ndxp_get_be32(bytes + 4) & PSN_MASK;
	out->psn = ndxp_get_be32(bytes + 8) & PSN_MASK;
	if ((services[out->service] >> operation & 1) == 0)
		return true; /* BTH_NONE: its headers are unknown */
	if (out->service == BTH_CNP) {
		out->kind = BTH_OTHER;
		return true;
	}
	headers = headers_of(out->service, operation);
	out->kind = (uint8_t)operations[operation].kind;
	out->first = (headers & FIRST) != 0;
	out->last = (headers & LAST) != 0;
	if (!requests(bytes, captured, headers, &at, out) ||
	    !answers(bytes, captured, headers, &at, out))
		return false;
	padding = bytes[1] >> 4 & 3;
	if (length - at < padding)
		return false;
	out->data = bytes + at;
	out->length = length - at - padding;
	out->captured = captured - at < out->length ? captured - at : out->length;
	return true;
}

const char *ndx_rdma_opcode_name(uint8_t opcode)
{
	/* Only the pairs that occur; a string for each pair would make 150. */
	static const char *const names[8][32] = {
#define NAMES(s)                          \
	{                                 \
		s "SEND_First",           \
		s "SEND_Middle",          \
		s "SEND_Last",            \
		s "SEND_Last_Immediate",  \
		s "SEND_Only",            \
		s "SEND_Only_Immediate",  \
		s "WRITE_First",          \
		s "WRITE_Middle",         \
		s "WRITE_Last",           \
		s "WRITE_Last_Immediate", \
		s "WRITE_Only",           \
		s "WRITE_Only_Immediate", \
		s "READ_Request",         \
		s "READ_Response_First",  \
		s "READ_Response_Middle", \
		s "READ_Response_Last",   \
		s "READ_Response_Only",   \
		s "Acknowledge",          \
		s "Atomic_Acknowledge",   \
		s "Compare_Swap",         \
		s "Fetch_Add",            \
		s "RESYNC",               \
		s "SEND_Last_Invalidate", \
		s "SEND_Only_Invalidate", \
	}
		[BTH_RC] = NAMES("RC "),   [BTH_UC] = NAMES("UC "),   [BTH_RD] = NAMES("RD "),
		[BTH_UD] = NAMES("UD "),   [BTH_XRC] = NAMES("XRC "),
#undef NAMES
		[BTH_CNP] = {[1] = "CNP"},
	};
	unsigned service = opcode >> 5, operation = opcode & 31;

	if ((services[service] >> operation & 1) == 0)
		return "?";
	return names[service][operation];
}
