/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_cpus.h"

static void parses_to(const char *text, const char *expected)
{
	char written[BASE_CPUS_TEXT];
	cpu_set_t cpus;

	assert_true(base_cpus_parse(text, &cpus));
	assert_string_equal(base_cpus_write(&cpus, written), expected);
}

static void lists_are_read_and_written(void **state)
{
	(void)state;
	parses_to("0", "0");
	parses_to("2-3,8", "2-3,8");
	parses_to("8,3,2", "2-3,8");
	parses_to("1-1,1", "1");
	parses_to("007", "7");
	parses_to("0-1023", "0-1023");
	parses_to("1023", "1023");
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		",",
		"1,",
		",1",
		"1,,2",
		"-",
		"-1",
		"1-",
		"1--2",
		"3-2",
		"1-2-3",
		"a",
		"1a",
		" 1",
		"1 ",
		"0x1",
		"1024",
		"0-1024",
		"+1",
		"1.5",
		"99999999999999999999",
		"1:2",
		"0-18446744073709551616",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cpu_set_t cpus;
		cpu_set_t before;

		memset(&cpus, 0x5a, sizeof(cpus));
		before = cpus;
		if (base_cpus_parse(bad[i], &cpus))
			fail_msg("\"%s\" was taken for a list", bad[i]);
		assert_memory_equal(&cpus, &before, sizeof(cpus));
	}
}

/* Every second processor: the longest list there is. */
static void a_list_that_is_too_long_is_cut_after_a_comma(void **state)
{
	char text[BASE_CPUS_TEXT];
	cpu_set_t cpus;
	size_t length;

	(void)state;
	CPU_ZERO(&cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu += 2)
		CPU_SET(cpu, &cpus);
	length = strlen(base_cpus_write(&cpus, text));
	assert_in_range(length, BASE_CPUS_TEXT - 24, BASE_CPUS_TEXT - 1);
	assert_string_equal(text + length - 4, ",...");
	assert_true(strncmp(text, "0,2,4,", 6) == 0);
}

static void the_first_outside_is_found(void **state)
{
	cpu_set_t some;
	cpu_set_t most;

	(void)state;
	assert_true(base_cpus_parse("1,5,1023", &some));
	assert_true(base_cpus_parse("0-5", &most));
	assert_int_equal(base_cpus_first_outside(&some, &most), 1023);
	assert_int_equal(base_cpus_first_outside(&some, &some), -1);
	assert_int_equal(base_cpus_first_outside(&most, &some), 0);
}

/* Of the host that the test runs on: what the test may use is online. */
static void what_is_online_has_what_the_test_may_use(void **state)
{
	cpu_set_t online;
	cpu_set_t own;

	(void)state;
	assert_true(base_cpus_online(&online));
	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_int_equal(base_cpus_first_outside(&own, &online), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read_and_written),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_list_that_is_too_long_is_cut_after_a_comma),
		cmocka_unit_test(the_first_outside_is_found),
		cmocka_unit_test(what_is_online_has_what_the_test_may_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
