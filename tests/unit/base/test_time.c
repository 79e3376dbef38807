/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndx/overlapped.h>

#include <ndx/spi/system.h>

static void a_duration_is_rounded_up_to_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(ndxp_ms_of(0), 0);
	assert_int_equal(ndxp_ms_of(1), 1);
	assert_int_equal(ndxp_ms_of(NDXP_NS_PER_MS), 1);
	assert_int_equal(ndxp_ms_of(NDXP_NS_PER_MS + 1), 2);
}

static void a_long_duration_is_not_infinite(void **state)
{
	(void)state;
	assert_int_equal(ndxp_ms_of(UINT64_MAX), UINT32_MAX - 1);
	assert_int_equal(ndxp_ms_until(UINT64_MAX - 1), UINT32_MAX - 1);
}

static void a_deadline_is_passed_ahead_or_infinite(void **state)
{
	(void)state;
	assert_int_equal(ndxp_ms_until(0), 0);
	assert_in_range(ndxp_ms_until(ndxp_deadline(60000)), 1, 60000);
	assert_int_equal(ndxp_ms_until(UINT64_MAX), NDX_INFINITE);
}

static void poll_gets_minus_one_only_for_no_limit(void **state)
{
	(void)state;
	assert_int_equal(ndxp_poll_ms_until(0, 1000), 0);
	assert_int_equal(ndxp_poll_ms_until(UINT64_MAX - 1, 1000), 1000);
	assert_int_equal(ndxp_poll_ms_until(UINT64_MAX - 1, INT32_MAX), INT32_MAX);
	assert_int_equal(ndxp_poll_ms_until(UINT64_MAX, 1000), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_duration_is_rounded_up_to_milliseconds),
		cmocka_unit_test(a_long_duration_is_not_infinite),
		cmocka_unit_test(a_deadline_is_passed_ahead_or_infinite),
		cmocka_unit_test(poll_gets_minus_one_only_for_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
