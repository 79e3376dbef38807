/* SPDX-License-Identifier: BSD-2-Clause */
/* Local tokens: none comes back while a request may still name it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

static int up(void **state)
{
	*state = calloc(1, sizeof(struct ofi_mr_table));
	return *state == NULL;
}

static int down(void **state)
{
	ofi_mr_table_fini(*state);
	free(*state);
	return 0;
}

static uint32_t take_token(struct ofi_mr_table *table)
{
	uint32_t token = 0;

	assert_int_equal(ofi_mr_table_take(table, &token), NDX_OK);
	assert_int_not_equal(token, 0);
	return token;
}

/* One region comes and goes until its slot has no token left; every token is a greater one. */
static uint32_t spend(struct ofi_mr_table *table)
{
	const uint32_t first = take_token(table);
	const uint32_t slot = first % OFI_MR_SLOTS;
	uint32_t last = first;

	ofi_mr_table_put(table, first);
	while (last / OFI_MR_SLOTS < OFI_MR_USES - 1) {
		const uint32_t token = take_token(table);

		assert_int_equal(token % OFI_MR_SLOTS, slot);
		assert_true(token > last);
		ofi_mr_table_put(table, token);
		last = token;
	}
	return slot;
}

static void a_slot_gives_each_token_once_and_then_the_next_one_does(void **state)
{
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(spend(*state), i);
}

/* As if 2^32 - 2^12 tokens had been given: all slots but the last are spent. */
static void it_begins_anew_with_the_slot_that_has_waited_longest(void **state)
{
	struct ofi_mr_table *table = *state;

	assert_int_equal(spend(table), 0);
	assert_int_equal(spend(table), 1);
	table->used = OFI_MR_SLOTS - 1;
	assert_int_equal(spend(table), OFI_MR_SLOTS - 1);
	assert_int_equal(take_token(table),
	                 OFI_MR_SLOTS); /* slot 0, whose first token would be 0 */
	ofi_mr_table_put(table, OFI_MR_SLOTS);
	assert_int_equal(spend(table), 0);
	assert_int_equal(spend(table), 1);
	assert_int_equal(spend(table), OFI_MR_SLOTS - 1);
	assert_int_equal(spend(table), 0);
}

/* Slots that were given back with tokens left go on where they were. */
static void a_slot_that_has_begun_goes_on(void **state)
{
	struct ofi_mr_table *table = *state;
	uint32_t tokens[8];

	for (uint32_t i = 0; i < 8; i++)
		tokens[i] = take_token(table);
	for (uint32_t i = 0; i < 8; i++)
		ofi_mr_table_put(table, tokens[i]);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(take_token(table), tokens[7 - i] + OFI_MR_SLOTS);
	assert_int_equal(table->used, 8);
}

/* With half of the slots in use the other half has 2^31 tokens. */
static void half_of_the_slots_stay_free(void **state)
{
	struct ofi_mr_table *table = *state;
	uint32_t token = 0;

	assert_true((uint64_t)(OFI_MR_SLOTS - OFI_MR_REGIONS) * OFI_MR_USES >= UINT64_C(1) << 31);
	for (uint32_t i = 0; i < OFI_MR_REGIONS; i++)
		(void)take_token(table);
	assert_int_equal(ofi_mr_table_take(table, &token), NDX_E_INSUFFICIENT_RESOURCES);
	ofi_mr_table_put(table, 5);
	assert_int_equal(take_token(table), 5 + OFI_MR_SLOTS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_slot_gives_each_token_once_and_then_the_next_one_does),
		CASE(it_begins_anew_with_the_slot_that_has_waited_longest),
		CASE(a_slot_that_has_begun_goes_on),
		CASE(half_of_the_slots_stay_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
