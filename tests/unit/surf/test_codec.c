/* SPDX-License-Identifier: BSD-2-Clause */
/* The bits of the metadata bus, against positions written down a second time. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "codec.h"

#define ROUNDS 2000
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define ASKED(member) #member, offsetof(struct surf_request, member)
#define ANSWERED(member) #member, offsetof(struct surf_response, member)

/* Where the FPGA looks for a field. */
struct place {
	enum surf_type type;
	const char *name;
	size_t at;
	unsigned msb;
	unsigned lsb;
};

static const struct place asked_at[] = {
	{SURF_PD, ASKED(pd.alloc), 64, 64},
	{SURF_PD, ASKED(pd.key), 63, 32},
	{SURF_PD, ASKED(pd.handler), 31, 0},
	{SURF_MR, ASKED(mr.alloc), 263, 263},
	{SURF_MR, ASKED(mr.region.laddr), 262, 199},
	{SURF_MR, ASKED(mr.region.length), 198, 167},
	{SURF_MR, ASKED(mr.region.access), 166, 159},
	{SURF_MR, ASKED(mr.region.pd_handler), 158, 127},
	{SURF_MR, ASKED(mr.region.lkey_part), 126, 96},
	{SURF_MR, ASKED(mr.region.rkey_part), 95, 65},
	{SURF_MR, ASKED(mr.by_lkey), 64, 64},
	{SURF_MR, ASKED(mr.lkey), 63, 32},
	{SURF_MR, ASKED(mr.rkey), 31, 0},
	{SURF_QP, ASKED(qp.request), 300, 299},
	{SURF_QP, ASKED(qp.pd_handler), 298, 267},
	{SURF_QP, ASKED(qp.qpn), 266, 243},
	{SURF_QP, ASKED(qp.attr_mask), 242, 217},
	{SURF_QP, ASKED(qp.attributes.state), 216, 213},
	{SURF_QP, ASKED(qp.attributes.current_state), 212, 209},
	{SURF_QP, ASKED(qp.attributes.pmtu), 208, 206},
	{SURF_QP, ASKED(qp.attributes.qkey), 205, 174},
	{SURF_QP, ASKED(qp.attributes.rq_psn), 173, 150},
	{SURF_QP, ASKED(qp.attributes.sq_psn), 149, 126},
	{SURF_QP, ASKED(qp.attributes.dest_qpn), 125, 102},
	{SURF_QP, ASKED(qp.attributes.access), 101, 94},
	{SURF_QP, ASKED(qp.attributes.cap), 93, 54},
	{SURF_QP, ASKED(qp.attributes.pkey), 53, 38},
	{SURF_QP, ASKED(qp.attributes.sq_draining), 37, 37},
	{SURF_QP, ASKED(qp.attributes.max_rd_atomic), 36, 29},
	{SURF_QP, ASKED(qp.attributes.max_dest_rd), 28, 21},
	{SURF_QP, ASKED(qp.attributes.min_rnr_timer), 20, 16},
	{SURF_QP, ASKED(qp.attributes.timeout), 15, 11},
	{SURF_QP, ASKED(qp.attributes.retry_count), 10, 8},
	{SURF_QP, ASKED(qp.attributes.rnr_retry), 7, 5},
	{SURF_QP, ASKED(qp.attributes.type), 4, 1},
	{SURF_QP, ASKED(qp.attributes.sq_signals_all), 0, 0},
};
static const struct place answered_at[] = {
	{SURF_PD, ANSWERED(pd.ok), 64, 64},
	{SURF_PD, ANSWERED(pd.handler), 63, 32},
	{SURF_PD, ANSWERED(pd.key), 31, 0},
	{SURF_MR, ANSWERED(mr.ok), 262, 262},
	{SURF_MR, ANSWERED(mr.region.laddr), 261, 198},
	{SURF_MR, ANSWERED(mr.region.length), 197, 166},
	{SURF_MR, ANSWERED(mr.region.access), 165, 158},
	{SURF_MR, ANSWERED(mr.region.pd_handler), 157, 126},
	{SURF_MR, ANSWERED(mr.region.lkey_part), 125, 95},
	{SURF_MR, ANSWERED(mr.region.rkey_part), 94, 64},
	{SURF_MR, ANSWERED(mr.lkey), 63, 32},
	{SURF_MR, ANSWERED(mr.rkey), 31, 0},
	{SURF_QP, ANSWERED(qp.ok), 273, 273},
	{SURF_QP, ANSWERED(qp.qpn), 272, 249},
	{SURF_QP, ANSWERED(qp.pd_handler), 248, 217},
	{SURF_QP, ANSWERED(qp.attributes.state), 216, 213},
	{SURF_QP, ANSWERED(qp.attributes.current_state), 212, 209},
	{SURF_QP, ANSWERED(qp.attributes.pmtu), 208, 206},
	{SURF_QP, ANSWERED(qp.attributes.qkey), 205, 174},
	{SURF_QP, ANSWERED(qp.attributes.rq_psn), 173, 150},
	{SURF_QP, ANSWERED(qp.attributes.sq_psn), 149, 126},
	{SURF_QP, ANSWERED(qp.attributes.dest_qpn), 125, 102},
	{SURF_QP, ANSWERED(qp.attributes.access), 101, 94},
	{SURF_QP, ANSWERED(qp.attributes.cap), 93, 54},
	{SURF_QP, ANSWERED(qp.attributes.pkey), 53, 38},
	{SURF_QP, ANSWERED(qp.attributes.sq_draining), 37, 37},
	{SURF_QP, ANSWERED(qp.attributes.max_rd_atomic), 36, 29},
	{SURF_QP, ANSWERED(qp.attributes.max_dest_rd), 28, 21},
	{SURF_QP, ANSWERED(qp.attributes.min_rnr_timer), 20, 16},
	{SURF_QP, ANSWERED(qp.attributes.timeout), 15, 11},
	{SURF_QP, ANSWERED(qp.attributes.retry_count), 10, 8},
	{SURF_QP, ANSWERED(qp.attributes.rnr_retry), 7, 5},
	{SURF_QP, ANSWERED(qp.attributes.type), 4, 1},
	{SURF_QP, ANSWERED(qp.attributes.sq_signals_all), 0, 0},
};

static uint64_t seed;

/* splitmix64 */
static uint64_t random64(void)
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static unsigned width_of(const struct place *p)
{
	return p->msb - p->lsb + 1;
}

static uint64_t most(const struct place *p)
{
	return UINT64_MAX >> (64 - width_of(p));
}

static void set(void *message, const struct place *p, uint64_t value)
{
	memcpy((uint8_t *)message + p->at, &value, sizeof(value));
}

static void mark(uint32_t *words, unsigned msb, unsigned lsb, uint64_t value)
{
	for (unsigned bit = lsb; bit <= msb; bit++)
		if ((value >> (bit - lsb) & 1u) != 0)
			words[bit / 32] |= UINT32_C(1) << bit % 32;
}

/* "qp.attributes.pmtu": what the error says is "pmtu". */
static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot == NULL ? name : dot + 1;
}

static void a_field_at_its_most_is_where_the_fpga_looks(void **state)
{
	char why[160];

	(void)state;
	for (size_t i = 0; i < COUNT(asked_at); i++) {
		struct surf_request r = {.type = asked_at[i].type};
		uint32_t words[SURF_REQUEST_WORDS];
		uint32_t wanted[SURF_REQUEST_WORDS] = {0};

		set(&r, &asked_at[i], most(&asked_at[i]));
		mark(wanted, asked_at[i].msb, asked_at[i].lsb, UINT64_MAX);
		mark(wanted, 302, 301, r.type);
		assert_int_equal(surf_request_encode(&r, words, why, sizeof(why)), NDX_OK);
		assert_memory_equal(words, wanted, sizeof(words));
	}
	for (size_t i = 0; i < COUNT(answered_at); i++) {
		struct surf_response r = {.type = answered_at[i].type};
		uint32_t words[SURF_RESPONSE_WORDS];
		uint32_t wanted[SURF_RESPONSE_WORDS] = {0};

		set(&r, &answered_at[i], most(&answered_at[i]));
		mark(wanted, answered_at[i].msb, answered_at[i].lsb, UINT64_MAX);
		mark(wanted, 275, 274, r.type);
		assert_int_equal(surf_response_encode(&r, words, why, sizeof(why)), NDX_OK);
		assert_memory_equal(words, wanted, sizeof(words));
	}
}

static void check_refusal(const struct place *p, const char *why)
{
	char value[32];
	char width[32];

	(void)snprintf(value, sizeof(value), "0x%" PRIx64 ",", most(p) + 1);
	(void)snprintf(width, sizeof(width), "%u bit", width_of(p));
	assert_non_null(strstr(why, last_part(p->name)));
	assert_non_null(strstr(why, value));
	assert_non_null(strstr(why, width));
}

static void a_value_too_wide_is_named_and_nothing_is_written(void **state)
{
	const uint32_t untouched[SURF_REQUEST_WORDS] = {0xa5a5a5a5, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	unsigned refused = 0;
	char why[160];

	(void)state;
	for (size_t i = 0; i < COUNT(asked_at); i++) {
		struct surf_request r = {.type = asked_at[i].type};
		uint32_t words[SURF_REQUEST_WORDS];

		if (width_of(&asked_at[i]) == 64)
			continue;
		memcpy(words, untouched, sizeof(words));
		set(&r, &asked_at[i], most(&asked_at[i]) + 1);
		assert_int_equal(surf_request_encode(&r, words, why, sizeof(why)),
		                 NDX_E_INVALID_PARAMETER);
		assert_memory_equal(words, untouched, sizeof(words));
		check_refusal(&asked_at[i], why);
		refused++;
	}
	for (size_t i = 0; i < COUNT(answered_at); i++) {
		struct surf_response r = {.type = answered_at[i].type};
		uint32_t words[SURF_RESPONSE_WORDS];

		if (width_of(&answered_at[i]) == 64)
			continue;
		memcpy(words, untouched, sizeof(words));
		set(&r, &answered_at[i], most(&answered_at[i]) + 1);
		assert_int_equal(surf_response_encode(&r, words, why, sizeof(why)),
		                 NDX_E_INVALID_PARAMETER);
		assert_memory_equal(words, untouched, sizeof(words));
		check_refusal(&answered_at[i], why);
		refused++;
	}
	/* All but the two addresses. */
	assert_int_equal(refused, COUNT(asked_at) + COUNT(answered_at) - 2);
}

static void a_queue_pair_fills_the_bus_exactly(void **state)
{
	struct surf_request asked = {.type = SURF_QP};
	struct surf_response answered = {.type = SURF_QP};
	uint32_t request[SURF_REQUEST_WORDS];
	uint32_t response[SURF_RESPONSE_WORDS];
	char why[160];

	(void)state;
	for (size_t i = 0; i < COUNT(asked_at); i++)
		set(&asked, &asked_at[i], most(&asked_at[i]));
	for (size_t i = 0; i < COUNT(answered_at); i++)
		set(&answered, &answered_at[i], most(&answered_at[i]));
	assert_int_equal(surf_request_encode(&asked, request, why, sizeof(why)), NDX_OK);
	for (unsigned i = 0; i < SURF_REQUEST_WORDS - 1; i++)
		assert_int_equal(request[i], UINT32_MAX);
	/* Bits 288 to 300, and type 2 in 302:301. */
	assert_int_equal(request[SURF_REQUEST_WORDS - 1], 0x5fff);
	assert_int_equal(surf_response_encode(&answered, response, why, sizeof(why)), NDX_OK);
	for (unsigned i = 0; i < SURF_RESPONSE_WORDS - 1; i++)
		assert_int_equal(response[i], UINT32_MAX);
	/* Bits 256 to 273, and type 2 in 275:274. */
	assert_int_equal(response[SURF_RESPONSE_WORDS - 1], 0xbffff);
}

/* Random values for all fields of a type, in the message and where the FPGA looks for them. */
static void fill_fields(const struct place *places, size_t count, enum surf_type type,
                        void *message, uint32_t *wanted)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t value = random64() & most(&places[i]);

		if (places[i].type != type)
			continue;
		set(message, &places[i], value);
		mark(wanted, places[i].msb, places[i].lsb, value);
	}
}

/* A way over the bus. */
struct way {
	const struct place *places;
	size_t count;
	size_t size; /* of the message, whose first member is its type */
	size_t bytes;
	unsigned msb; /* of the type's bits */
	bool asks;
};

union message {
	enum surf_type type;
	struct surf_request asked;
	struct surf_response answered;
};

static void come_back(const struct way *way)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		union message m = {.asked = {.type = (enum surf_type)(random64() % 3)}};
		union message again = {.asked = {.type = SURF_PD}};
		uint32_t words[SURF_REQUEST_WORDS];
		uint32_t wanted[SURF_REQUEST_WORDS] = {0};
		char why[160];

		mark(wanted, way->msb, way->msb - 1, m.type);
		fill_fields(way->places, way->count, m.type, &m, wanted);
		assert_int_equal(
			way->asks ? surf_request_encode(&m.asked, words, why, sizeof(why))
				  : surf_response_encode(&m.answered, words, why, sizeof(why)),
			NDX_OK);
		assert_memory_equal(words, wanted, way->bytes);
		assert_int_equal(
			way->asks ? surf_request_decode(words, &again.asked, why, sizeof(why))
				  : surf_response_decode(words, &again.answered, why, sizeof(why)),
			NDX_OK);
		assert_memory_equal(&again, &m, way->size);
	}
}

static void random_messages_come_back(void **state)
{
	static const struct way requests = {asked_at,
	                                    COUNT(asked_at),
	                                    sizeof(struct surf_request),
	                                    SURF_REQUEST_WORDS * sizeof(uint32_t),
	                                    302,
	                                    true};
	static const struct way responses = {answered_at,
	                                     COUNT(answered_at),
	                                     sizeof(struct surf_response),
	                                     SURF_RESPONSE_WORDS * sizeof(uint32_t),
	                                     275,
	                                     false};

	(void)state;
	come_back(&requests);
	come_back(&responses);
}

static void random_bits_are_taken_or_are_of_an_unknown_type(void **state)
{
	char why[160];

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t words[SURF_RESPONSE_WORDS];
		uint32_t again[SURF_RESPONSE_WORDS];
		struct surf_response r;
		unsigned type;

		for (unsigned i = 0; i < SURF_RESPONSE_WORDS; i++)
			words[i] = (uint32_t)random64();
		type = words[8] >> 18 & 3u;
		if (type == 3) {
			assert_int_equal(surf_response_decode(words, &r, why, sizeof(why)),
			                 NDX_E_REMOTE_ERROR);
			continue;
		}
		assert_int_equal(surf_response_decode(words, &r, why, sizeof(why)), NDX_OK);
		assert_int_equal(r.type, type);
		assert_int_equal(surf_response_encode(&r, again, why, sizeof(why)), NDX_OK);
		words[8] &= 0xfffffu;
		if (type == SURF_QP)
			assert_memory_equal(again, words, sizeof(words));
		/* Every type has its lowest 64 bits in use. */
		assert_memory_equal(again, words, 8);
	}
}

static void the_states_nibble_is_read_for_each_state(void **state)
{
	char why[160];

	(void)state;
	for (unsigned nibble = 0; nibble < 16; nibble++) {
		for (unsigned ok = 0; ok < 2; ok++) {
			uint32_t words[SURF_RESPONSE_WORDS] = {0};
			struct surf_response r;

			mark(words, 275, 274, SURF_QP);
			mark(words, 273, 273, ok);
			mark(words, 216, 213, nibble);
			assert_int_equal(surf_response_decode(words, &r, why, sizeof(why)), NDX_OK);
			assert_int_equal(r.qp.ok, ok);
			assert_int_equal(r.qp.attributes.state, nibble);
		}
	}
	assert_string_equal(surf_state_name(SURF_ERR), "ERR");
	assert_string_equal(surf_state_name(5), "unknown");
	assert_string_equal(surf_state_name(15), "unknown");
}

static void a_reserved_type_is_refused_and_said(void **state)
{
	uint32_t response[SURF_RESPONSE_WORDS] = {0};
	uint32_t request[SURF_REQUEST_WORDS] = {0};
	struct surf_request odd = {.type = (enum surf_type)3};
	struct surf_response r = {.type = SURF_MR};
	char why[160] = "";

	(void)state;
	mark(response, 275, 274, 3);
	mark(request, 302, 301, 3);
	assert_int_equal(surf_response_decode(response, &r, why, sizeof(why)), NDX_E_REMOTE_ERROR);
	assert_non_null(strstr(why, "type 3"));
	assert_int_equal(r.type, SURF_MR);
	assert_int_equal(surf_request_decode(request, &odd, why, sizeof(why)), NDX_E_REMOTE_ERROR);
	assert_int_equal(surf_request_encode(&odd, request, why, sizeof(why)),
	                 NDX_E_INVALID_PARAMETER);
}

static void nothing_but_zeros_is_a_pd_that_was_refused(void **state)
{
	const uint32_t words[SURF_RESPONSE_WORDS] = {0};
	struct surf_response r = {.type = SURF_QP, .pd = {.ok = 1}};
	char why[160];

	(void)state;
	assert_int_equal(surf_response_decode(words, &r, why, sizeof(why)), NDX_OK);
	assert_int_equal(r.type, SURF_PD);
	assert_int_equal(r.pd.ok, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_at_its_most_is_where_the_fpga_looks),
		cmocka_unit_test(a_value_too_wide_is_named_and_nothing_is_written),
		cmocka_unit_test(a_queue_pair_fills_the_bus_exactly),
		cmocka_unit_test(random_messages_come_back),
		cmocka_unit_test(random_bits_are_taken_or_are_of_an_unknown_type),
		cmocka_unit_test(the_states_nibble_is_read_for_each_state),
		cmocka_unit_test(a_reserved_type_is_refused_and_said),
		cmocka_unit_test(nothing_but_zeros_is_a_pd_that_was_refused),
	};
	const char *given = getenv("NDX_TEST_SEED");

	if (given != NULL)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return 1;
	(void)printf("NDX_TEST_SEED=0x%" PRIx64 "\n", seed);
	return cmocka_run_group_tests_name("the bits of the metadata bus", tests, NULL, NULL);
}
