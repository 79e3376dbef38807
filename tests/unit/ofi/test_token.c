/* SPDX-License-Identifier: BSD-2-Clause */
/* Local tokens: a token is not used again while a request may still name it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct ofi_mr_table));
	return *state == NULL;
}

static int tear_down(void **state)
{
	ofi_mr_table_fini(*state);
	free(*state);
	return 0;
}

static uint32_t allocate_token(struct ofi_mr_table *table)
{
	uint32_t token = 0;

	assert_int_equal(ofi_mr_table_take(table, &token), NDX_OK);
	assert_int_not_equal(token, 0);
	return token;
}

/* Register and deregister a region until its slot has no token left. Every token is greater than
 * the one before. */
static uint32_t use_up_slot(struct ofi_mr_table *table)
{
	const uint32_t first = allocate_token(table);
	const uint32_t slot = first % OFI_MR_SLOTS;
	uint32_t last = first;

	ofi_mr_table_put(table, first);
	while (last / OFI_MR_SLOTS < OFI_MR_USES - 1) {
		const uint32_t token = allocate_token(table);

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
		assert_int_equal(use_up_slot(*state), i);
}

/* The state after 2^32 - 2^12 tokens: all slots but the last one have no token left. */
static void the_slot_that_is_free_for_longest_is_used_again(void **state)
{
	struct ofi_mr_table *table = *state;

	assert_int_equal(use_up_slot(table), 0);
	assert_int_equal(use_up_slot(table), 1);
	table->used = OFI_MR_SLOTS - 1;
	assert_int_equal(use_up_slot(table), OFI_MR_SLOTS - 1);
	assert_int_equal(allocate_token(table), OFI_MR_SLOTS); /* slot 0; token 0 is not valid */
	ofi_mr_table_put(table, OFI_MR_SLOTS);
	assert_int_equal(use_up_slot(table), 0);
	assert_int_equal(use_up_slot(table), 1);
	assert_int_equal(use_up_slot(table), OFI_MR_SLOTS - 1);
	assert_int_equal(use_up_slot(table), 0);
}

/* A slot with tokens left continues with its next token. */
static void a_slot_that_has_begun_goes_on(void **state)
{
	struct ofi_mr_table *table = *state;
	uint32_t tokens[8];

	for (uint32_t i = 0; i < 8; i++)
		tokens[i] = allocate_token(table);
	for (uint32_t i = 0; i < 8; i++)
		ofi_mr_table_put(table, tokens[i]);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(allocate_token(table), tokens[7 - i] + OFI_MR_SLOTS);
	assert_int_equal(table->used, 8);
}

/* With half of the slots in use, the other half has 2^31 tokens. */
static void half_of_the_slots_stay_free(void **state)
{
	struct ofi_mr_table *table = *state;
	uint32_t token = 0;

	assert_true((uint64_t)(OFI_MR_SLOTS - OFI_MR_REGIONS) * OFI_MR_USES >= UINT64_C(1) << 31);
	for (uint32_t i = 0; i < OFI_MR_REGIONS; i++)
		(void)allocate_token(table);
	assert_int_equal(ofi_mr_table_take(table, &token), NDX_E_INSUFFICIENT_RESOURCES);
	ofi_mr_table_put(table, 5);
	assert_int_equal(allocate_token(table), 5 + OFI_MR_SLOTS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_slot_gives_each_token_once_and_then_the_next_one_does),
		CASE(the_slot_that_is_free_for_longest_is_used_again),
		CASE(a_slot_that_has_begun_goes_on),
		CASE(half_of_the_slots_stay_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
