/* SPDX-License-Identifier: BSD-2-Clause */
/* Encode and decode messages: one table of fields for each kind of message. No state, no I/O. */
#include "codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TYPE_BITS 2u
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define FIELD(of, member, width)                            \
	{                                                   \
#member, offsetof(struct of, member), width \
	}

struct field {
	const char *name;
	size_t at; /* offset of a uint64_t in its struct */
	unsigned width;
};

/* Consecutive fields of one struct, which is at offset `at` of the message. */
struct part {
	const struct field *fields;
	size_t count;
	size_t at;
};

struct layout {
	const char *name;
	unsigned bits;
	struct part parts[3]; /* the first one is the highest */
};

static const struct field region_fields[] = {
	FIELD(surf_region, laddr, 64),     FIELD(surf_region, length, 32),
	FIELD(surf_region, access, 8),     FIELD(surf_region, pd_handler, 32),
	FIELD(surf_region, lkey_part, 31), FIELD(surf_region, rkey_part, 31),
};
static const struct field attribute_fields[] = {
	FIELD(surf_attributes, state, 4),         FIELD(surf_attributes, current_state, 4),
	FIELD(surf_attributes, pmtu, 3),          FIELD(surf_attributes, qkey, 32),
	FIELD(surf_attributes, rq_psn, 24),       FIELD(surf_attributes, sq_psn, 24),
	FIELD(surf_attributes, dest_qpn, 24),     FIELD(surf_attributes, access, 8),
	FIELD(surf_attributes, cap, 40),          FIELD(surf_attributes, pkey, 16),
	FIELD(surf_attributes, sq_draining, 1),   FIELD(surf_attributes, max_rd_atomic, 8),
	FIELD(surf_attributes, max_dest_rd, 8),   FIELD(surf_attributes, min_rnr_timer, 5),
	FIELD(surf_attributes, timeout, 5),       FIELD(surf_attributes, retry_count, 3),
	FIELD(surf_attributes, rnr_retry, 3),     FIELD(surf_attributes, type, 4),
	FIELD(surf_attributes, sq_signals_all, 1)};
static const struct field pd_asked[] = {FIELD(surf_pd_request, alloc, 1),
                                        FIELD(surf_pd_request, key, 32),
                                        FIELD(surf_pd_request, handler, 32)};
static const struct field mr_asked_head[] = {FIELD(surf_mr_request, alloc, 1)};
static const struct field mr_asked_tail[] = {FIELD(surf_mr_request, by_lkey, 1),
                                             FIELD(surf_mr_request, lkey, 32),
                                             FIELD(surf_mr_request, rkey, 32)};
static const struct field qp_asked_head[] = {
	FIELD(surf_qp_message, request, 2), FIELD(surf_qp_message, pd_handler, 32),
	FIELD(surf_qp_message, qpn, 24), FIELD(surf_qp_message, attr_mask, 26)};
static const struct field pd_answered[] = {FIELD(surf_pd_response, ok, 1),
                                           FIELD(surf_pd_response, handler, 32),
                                           FIELD(surf_pd_response, key, 32)};
static const struct field mr_answered_head[] = {FIELD(surf_mr_response, ok, 1)};
static const struct field mr_answered_tail[] = {FIELD(surf_mr_response, lkey, 32),
                                                FIELD(surf_mr_response, rkey, 32)};
static const struct field qp_answered_head[] = {FIELD(surf_qp_response, ok, 1),
                                                FIELD(surf_qp_response, qpn, 24),
                                                FIELD(surf_qp_response, pd_handler, 32)};

static const struct layout requests[] = {
	[SURF_PD] = {"PD request",
                     65,
                     {{pd_asked, COUNT(pd_asked), offsetof(struct surf_request, pd)}}},
	[SURF_MR] = {"MR request",
                     264,
                     {{mr_asked_head, COUNT(mr_asked_head), offsetof(struct surf_request, mr)},
                      {region_fields, COUNT(region_fields),
                       offsetof(struct surf_request, mr.region)},
                      {mr_asked_tail, COUNT(mr_asked_tail), offsetof(struct surf_request, mr)}}},
	[SURF_QP] = {"QP request",
                     301,
                     {{qp_asked_head, COUNT(qp_asked_head), offsetof(struct surf_request, qp)},
                      {attribute_fields, COUNT(attribute_fields),
                       offsetof(struct surf_request, qp.attributes)}}},
};
static const struct layout responses[] = {
	[SURF_PD] = {"PD response",
                     65,
                     {{pd_answered, COUNT(pd_answered), offsetof(struct surf_response, pd)}}},
	[SURF_MR] =
		{"MR response",
                 263,
                 {{mr_answered_head, COUNT(mr_answered_head), offsetof(struct surf_response, mr)},
                  {region_fields, COUNT(region_fields), offsetof(struct surf_response, mr.region)},
                  {mr_answered_tail, COUNT(mr_answered_tail), offsetof(struct surf_response, mr)}}},
	[SURF_QP] = {"QP response",
                     274,
                     {{qp_answered_head, COUNT(qp_answered_head),
                       offsetof(struct surf_response, qp)},
                      {attribute_fields, COUNT(attribute_fields),
                       offsetof(struct surf_response, qp.attributes)}}},
};
_Static_assert(301u + TYPE_BITS == SURF_REQUEST_BITS, "a QP request fills the bus");
_Static_assert(274u + TYPE_BITS == SURF_RESPONSE_BITS, "a QP response fills the bus");

const char *surf_type_name(enum surf_type type)
{
	static const char *const names[] = {
		[SURF_PD] = "PD",
		[SURF_MR] = "MR",
		[SURF_QP] = "QP",
	};

	return (size_t)type < COUNT(names) ? names[type] : "unknown";
}

const char *surf_state_name(uint64_t state)
{
	static const char *const names[] = {
		[SURF_RESET] = "RESET",    [SURF_INIT] = "INIT", [SURF_RTR] = "RTR",
		[SURF_RTS] = "RTS",        [SURF_SQD] = "SQD",   [SURF_ERR] = "ERR",
		[SURF_CREATED] = "CREATE",
	};

	return state < COUNT(names) && names[state] != NULL ? names[state] : "unknown";
}

static void put_bits(uint32_t *words, unsigned lsb, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		if ((value >> i & 1u) != 0)
			words[(lsb + i) / 32] |= UINT32_C(1) << (lsb + i) % 32;
}

static uint64_t get_bits(const uint32_t *words, unsigned lsb, unsigned width)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)(words[(lsb + i) / 32] >> (lsb + i) % 32 & 1u) << i;
	return value;
}

static bool fits(uint64_t value, unsigned width)
{
	return width >= 64 || value >> width == 0;
}

static enum ndx_status encode(const struct layout *layout, const void *message, uint32_t *words,
                              char *why, size_t room)
{
	unsigned lsb = layout->bits;

	for (size_t p = 0; p < COUNT(layout->parts); p++) {
		const struct part *part = &layout->parts[p];

		for (size_t i = 0; i < part->count; i++) {
			const struct field *f = &part->fields[i];
			uint64_t value;

			memcpy(&value, (const uint8_t *)message + part->at + f->at, sizeof(value));
			if (!fits(value, f->width)) {
				(void)snprintf(why, room,
				               "%s: %s is 0x%" PRIx64
				               ", but the field has %u bit%s",
				               layout->name, f->name, value, f->width,
				               f->width == 1 ? "" : "s");
				return NDX_E_INVALID_PARAMETER;
			}
			lsb -= f->width;
			put_bits(words, lsb, f->width, value);
		}
	}
	return NDX_OK;
}

static void decode(const struct layout *layout, const uint32_t *words, void *message)
{
	unsigned lsb = layout->bits;

	for (size_t p = 0; p < COUNT(layout->parts); p++) {
		const struct part *part = &layout->parts[p];

		for (size_t i = 0; i < part->count; i++) {
			const struct field *f = &part->fields[i];
			uint64_t value;

			lsb -= f->width;
			value = get_bits(words, lsb, f->width);
			memcpy((uint8_t *)message + part->at + f->at, &value, sizeof(value));
		}
	}
}

static bool is_known(enum surf_type type, char *why, size_t room)
{
	if ((size_t)type < COUNT(requests))
		return true;
	(void)snprintf(why, room, "type %u is none of PD (0), MR (1), QP (2)", (unsigned)type);
	return false;
}

/* Encode the type and the fields below it; *words is written only if all of them fit. */
static enum ndx_status encode_all(const struct layout *layouts, enum surf_type type,
                                  const void *message, unsigned bits, uint32_t *words, size_t count,
                                  char *why, size_t room)
{
	uint32_t all[SURF_REQUEST_WORDS] = {0};
	enum ndx_status st;

	if (!is_known(type, why, room))
		return NDX_E_INVALID_PARAMETER;
	st = encode(&layouts[type], message, all, why, room);
	if (st != NDX_OK)
		return st;
	put_bits(all, bits - TYPE_BITS, TYPE_BITS, type);
	memcpy(words, all, count * sizeof(*words));
	return NDX_OK;
}

enum ndx_status surf_request_encode(const struct surf_request *request,
                                    uint32_t words[SURF_REQUEST_WORDS], char *why, size_t room)
{
	return encode_all(requests, request->type, request, SURF_REQUEST_BITS, words,
	                  SURF_REQUEST_WORDS, why, room);
}

enum ndx_status surf_response_encode(const struct surf_response *response,
                                     uint32_t words[SURF_RESPONSE_WORDS], char *why, size_t room)
{
	return encode_all(responses, response->type, response, SURF_RESPONSE_BITS, words,
	                  SURF_RESPONSE_WORDS, why, room);
}

enum ndx_status surf_request_decode(const uint32_t words[SURF_REQUEST_WORDS],
                                    struct surf_request *out, char *why, size_t room)
{
	const enum surf_type type =
		(enum surf_type)get_bits(words, SURF_REQUEST_BITS - TYPE_BITS, TYPE_BITS);
	struct surf_request request = {.type = type};

	if (!is_known(type, why, room))
		return NDX_E_REMOTE_ERROR;
	decode(&requests[type], words, &request);
	*out = request;
	return NDX_OK;
}

enum ndx_status surf_response_decode(const uint32_t words[SURF_RESPONSE_WORDS],
                                     struct surf_response *out, char *why, size_t room)
{
	const enum surf_type type =
		(enum surf_type)get_bits(words, SURF_RESPONSE_BITS - TYPE_BITS, TYPE_BITS);
	struct surf_response response = {.type = type};

	if (!is_known(type, why, room))
		return NDX_E_REMOTE_ERROR;
	decode(&responses[type], words, &response);
	*out = response;
	return NDX_OK;
}
