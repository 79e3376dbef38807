/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose calls cannot be led elsewhere, says so. (That those of libfabric are: process.* of
 * ndx-conformance.) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ndx/spi/close_on_exec.h>

static void what_makes_no_descriptors_is_reported(void **state)
{
	(void)state;
	assert_false(ndxp_close_on_exec((const void *)(uintptr_t)_cmocka_run_group_tests));
}

static void a_program_is_left_as_it_is(void **state)
{
	(void)state;
	assert_false(ndxp_close_on_exec((const void *)(uintptr_t)a_program_is_left_as_it_is));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_makes_no_descriptors_is_reported),
		cmocka_unit_test(a_program_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
