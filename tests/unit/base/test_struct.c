/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/log.h>

#include "base_struct.h"

/* A structure that had three members first; the library knows a fourth. */
struct known {
	size_t size;
	uint32_t a;
	uint32_t b;
	uint64_t later;
};

enum { FIRST = offsetof(struct known, later), ROOM = 64, FILL = 0xee };

static const struct base_struct layout =
	BASE_STRUCT(struct known, FIRST, "call known_init() first");
static const struct known defaults = {.a = 1, .b = 2, .later = 3};

/* The program's structure, and what lies behind it. */
union theirs {
	struct known known;
	uint8_t bytes[ROOM];
};

static void says(const char *word)
{
	if (strstr(ndx_last_error(), word) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", ndx_last_error(), word);
}

static void filled_from(const union theirs *theirs, size_t from, uint8_t value)
{
	for (size_t i = from; i < ROOM; i++)
		assert_int_equal(theirs->bytes[i], value);
}

static void input_that_is_too_small_is_refused(void **state)
{
	union theirs theirs = {.known = {.a = 7}};
	struct known mine = defaults;

	(void)state;
	assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, FIRST - 1),
	                 NDX_E_INVALID_PARAMETER);
	says("f: struct known has size 15, must be at least 16; call known_init() first");
	assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, 0), NDX_E_INVALID_PARAMETER);
	assert_memory_equal(&mine, &defaults, sizeof(mine));
}

static void input_of_the_first_size_keeps_the_later_defaults(void **state)
{
	union theirs theirs;
	struct known mine = defaults;

	(void)state;
	memset(&theirs, FILL, sizeof(theirs));
	theirs.known.a = 7;
	assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, FIRST), NDX_OK);
	assert_int_equal(mine.a, 7);
	assert_int_equal(mine.later, 3);
}

static void input_that_has_grown_is_read_if_the_rest_is_zero(void **state)
{
	union theirs theirs = {.known = {.a = 7, .b = 8, .later = 9}};
	struct known mine = defaults;

	(void)state;
	assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, sizeof(theirs)), NDX_OK);
	assert_int_equal(mine.a, 7);
	assert_int_equal(mine.b, 8);
	assert_int_equal(mine.later, 9);
}

static void input_with_a_member_that_is_unknown_is_refused(void **state)
{
	struct known mine = defaults;

	(void)state;
	for (size_t at = sizeof(struct known); at < ROOM; at++) {
		union theirs theirs = {.known = {.a = 7}};
		char byte[32];

		theirs.bytes[at] = 1;
		assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, ROOM),
		                 NDX_E_INVALID_PARAMETER);
		says("f: struct known has size 64, this library knows 24 bytes, and byte ");
		(void)snprintf(byte, sizeof(byte), "byte %zu is not 0", at);
		says(byte);
		assert_int_equal(base_struct_in(&layout, "f", &mine, &theirs, at), NDX_OK);
		mine = defaults;
	}
}

static void input_whose_size_was_never_set_is_not_read(void **state)
{
	struct known mine = defaults;

	(void)state;
	/* Reading as much would leave the object. */
	assert_int_equal(base_struct_in(&layout, "f", &mine, &mine, SIZE_MAX / 2),
	                 NDX_E_INVALID_PARAMETER);
	says("call known_init() first");
}

static void output_gets_what_both_have(void **state)
{
	const struct known mine = {.a = 7, .b = 8, .later = 9};
	union theirs theirs;

	(void)state;
	memset(&theirs, FILL, sizeof(theirs));
	assert_int_equal(base_struct_out(&layout, "f", &theirs, FIRST, &mine), NDX_OK);
	assert_int_equal(theirs.known.size, FIRST);
	assert_int_equal(theirs.known.a, 7);
	assert_int_equal(theirs.known.b, 8);
	filled_from(&theirs, FIRST, FILL);

	assert_int_equal(base_struct_out(&layout, "f", &theirs, ROOM, &mine), NDX_OK);
	assert_int_equal(theirs.known.size, sizeof(struct known));
	assert_int_equal(theirs.known.later, 9);
	filled_from(&theirs, sizeof(struct known), FILL);
}

static void output_that_is_too_small_is_refused(void **state)
{
	const struct known mine = {.a = 7};
	union theirs theirs;

	(void)state;
	memset(&theirs, FILL, sizeof(theirs));
	assert_int_equal(base_struct_out(&layout, "f", &theirs, FIRST - 1, &mine),
	                 NDX_E_INVALID_PARAMETER);
	says("f: struct known has size 15, must be at least 16");
	filled_from(&theirs, 0, FILL);
}

static void initialising_stays_within_the_size(void **state)
{
	const size_t sizes[] = {0, sizeof(size_t), FIRST, sizeof(struct known), ROOM - 8};
	union theirs theirs;

	(void)state;
	base_struct_init(&layout, NULL, sizeof(struct known), &defaults);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(&theirs, FILL, sizeof(theirs));
		base_struct_init(&layout, &theirs, sizes[i], &defaults);
		filled_from(&theirs, sizes[i], FILL);
		if (sizes[i] >= sizeof(size_t))
			assert_int_equal(theirs.known.size, sizes[i]);
		if (sizes[i] >= FIRST)
			assert_int_equal(theirs.known.b, 2);
		for (size_t at = sizeof(struct known); at < sizes[i]; at++)
			assert_int_equal(theirs.bytes[at], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_that_is_too_small_is_refused),
		cmocka_unit_test(input_of_the_first_size_keeps_the_later_defaults),
		cmocka_unit_test(input_that_has_grown_is_read_if_the_rest_is_zero),
		cmocka_unit_test(input_with_a_member_that_is_unknown_is_refused),
		cmocka_unit_test(input_whose_size_was_never_set_is_not_read),
		cmocka_unit_test(output_gets_what_both_have),
		cmocka_unit_test(output_that_is_too_small_is_refused),
		cmocka_unit_test(initialising_stays_within_the_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
