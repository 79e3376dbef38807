/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of the programs: the table, units, and what was meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sample_number.h"
#include "sample_options.h"
#include "sample_progress.h"

static struct {
	uint32_t size;
	uint64_t rounds;
	bool quiet, verbose;
	const char *json, *uri, *seconds;
} got;

static const struct sample_option table[] = {
	{"--size", "BYTES", "of a message", .number = &got.size, .min = 16, .max = 1u << 20,
         .letter = 's'},
	{"--rounds", "N", "how many", .wide_number = &got.rounds},
	{"-t", "SECONDS", "how long", .text = &got.seconds},
	{"--bytes", "BYTES", "as --size", .number = &got.size, .min = 16, .max = 1u << 20,
         .hidden = true},
	SAMPLE_ROW_ADAPTER(got.uri),
	SAMPLE_ROW_JSON(got.json),
	SAMPLE_ROW_QUIET(got.quiet),
	SAMPLE_ROW_VERBOSE(got.verbose),
};

static const struct sample_program program = {
	.name = "trial",
	.synopsis = "[options]",
	.about = "A trial.",
	.options = table,
	.option_count = sizeof(table) / sizeof(table[0]),
	.max_operands = 2,
};

static char said[4096];

/* Parse the words of `line`; what was printed to `stream` is in `said`. Exit status, or -1: go on.
 */
static int parse_line(const char *line, FILE **stream)
{
	static char words[512];
	static char name[] = "trial";
	char *argv[16] = {name};
	FILE *const real = *stream;
	FILE *const copy = tmpfile();
	size_t operands;
	int argc = 1;
	char *rest = NULL;
	int code = -1;
	bool on;

	assert_non_null(copy);
	memset(&got, 0, sizeof(got));
	(void)snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok_r(words, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	*stream = copy;
	on = sample_parse(&program, argc, argv, &operands, &code);
	*stream = real;
	rewind(copy);
	said[fread(said, 1, sizeof(said) - 1, copy)] = '\0';
	(void)fclose(copy);
	return on ? -1 : code;
}

static void expect_refused(const char *line, const char *text)
{
	assert_int_equal(parse_line(line, &stderr), SAMPLE_EXIT_USAGE);
	if (strstr(said, text) == NULL)
		fail_msg("'%s' says: %s", line, said);
}

static void test_number(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"17", 17},
		{"100k", 100000},
		{"100K", 100000},
		{"1Ki", 1024},
		{"24Mi", 24u << 20},
		{"3M", 3000000},
		{"4G", UINT64_C(4000000000)},
		{"4Gi", UINT64_C(1) << 32},
		{"0x10", 16},
		{"18446744073709551615", UINT64_MAX},
		{"18446744073G", UINT64_C(18446744073000000000)},
	};
	static const char *const bad[] = {"",
	                                  "-1",
	                                  "+1",
	                                  " 1",
	                                  "x",
	                                  "1x",
	                                  "1kk",
	                                  "1kib",
	                                  "1mi",
	                                  "0x",
	                                  "0x-1",
	                                  "0x1k",
	                                  "1.5k",
	                                  "k",
	                                  "1 k",
	                                  "0xg",
	                                  "1KiB",
	                                  "18446744074G",
	                                  "17179869184Gi",
	                                  "18446744073709551616"};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(sample_number(good[i].text, &n));
		assert_int_equal(n, good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = 7;
		if (sample_number(bad[i], &n))
			fail_msg("'%s' is taken for %llu", bad[i], (unsigned long long)n);
		assert_int_equal(n, 7);
	}
}

static size_t distance(const char *a, const char *b)
{
	return sample_distance(a, strlen(a), b, strlen(b));
}

static void test_distance(void **state)
{
	char longest[64], longer[65];

	(void)state;
	assert_int_equal(distance("", ""), 0);
	assert_int_equal(distance("", "abc"), 3);
	assert_int_equal(distance("abc", ""), 3);
	assert_int_equal(distance("--size", "--size"), 0);
	assert_int_equal(distance("--sise", "--size"), 1);
	assert_int_equal(distance("--szie", "--size"), 1);
	assert_int_equal(distance("--siz", "--size"), 1);
	assert_int_equal(distance("--ssize", "--size"), 1);
	assert_int_equal(distance("kitten", "sitting"), 3);
	memset(longest, 'a', sizeof(longest));
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(sample_distance(longest, 63, "b", 1), 63);
	assert_int_equal(sample_distance(longest, 63, longer, 63), 0);
	assert_int_equal(sample_distance(longer, 64, longest, 63), SIZE_MAX);
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(parse_line("--size 4k --rounds=0x10 -qv --json", &stderr), -1);
	assert_int_equal(got.size, 4000);
	assert_int_equal(got.rounds, 16);
	assert_true(got.quiet && got.verbose);
	assert_string_equal(got.json, "-");
	assert_int_equal(parse_line("-s64Ki --json=file a b", &stderr), -1);
	assert_int_equal(got.size, 65536);
	assert_string_equal(got.json, "file");
	assert_int_equal(parse_line("-qs 17 --bytes 18", &stderr), -1);
	assert_int_equal(got.size, 18);
	assert_int_equal(parse_line("-qt 3", &stderr), -1);
	assert_string_equal(got.seconds, "3");
	assert_int_equal(parse_line("-t5", &stderr), -1);
	assert_string_equal(got.seconds, "5");
	assert_int_equal(parse_line("--json a -- -s", &stderr), -1);
	assert_string_equal(got.json, "-");
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused("--sise 4", "there is no option --sise; did you mean --size?");
	expect_refused("--sise=4", "there is no option --sise; did you mean --size?");
	expect_refused("--verb", "did you mean --verbose?");
	expect_refused("--helf", "did you mean --help?");
	expect_refused("--verzion", "did you mean --version?");
	expect_refused("--frobnicate", "there is no option --frobnicate\n");
	expect_refused("--byte 17", "there is no option --byte\n"); /* it is hidden */
	expect_refused("-x", "there is no option -x");
	expect_refused("-qx", "there is no option -x");
	expect_refused("--size", "--size needs a value: --size BYTES");
	expect_refused("-s", "--size needs a value");
	expect_refused("--quiet=1", "--quiet takes no value");
	expect_refused("--size 15", "--size 15: give a number from 16 to 1048576\n");
	expect_refused("--size 2M", "--size 2M: give a number from 16 to 1048576\n");
	expect_refused("--size 4G", "--size 4G: give a number from 16");
	expect_refused("--size 4.5k", "Ki, Mi and Gi of 1024");
	expect_refused("--rounds -1", "--rounds -1: give a number from 0 to 18446744073709551615");
	expect_refused("a b c", "c is one argument too many");
}

static void test_help(void **state)
{
	(void)state;
	assert_int_equal(parse_line("--help", &stdout), SAMPLE_EXIT_OK);
	assert_non_null(strstr(said, "\n  -s, --size BYTES        of a message\n"));
	assert_non_null(strstr(said, "\n  --json[=FILE]  "));
	assert_non_null(strstr(said, "\n  -h, --help "));
	assert_null(strstr(said, "--bytes"));
	assert_int_equal(parse_line("-h", &stdout), SAMPLE_EXIT_OK);
	assert_non_null(strstr(said, "Usage: trial [options]\n"));
	assert_int_equal(parse_line("a --version", &stdout), SAMPLE_EXIT_OK);
	assert_non_null(strstr(said, "trial (NDX) "));
}

static void test_progress(void **state)
{
	const uint64_t second = 1000000000;
	char text[160];

	(void)state;
	sample_progress_text(12, 48, "cases", 30 * second, text, sizeof(text));
	assert_string_equal(text, "12 of 48 cases (25 %), about 1:30 left");
	sample_progress_text(0, 48, "cases", 30 * second, text, sizeof(text));
	assert_string_equal(text, "0 of 48 cases");
	sample_progress_text(48, 48, "cases", 30 * second, text, sizeof(text));
	assert_string_equal(text, "48 of 48 cases (100 %), about 0:00 left");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number), cmocka_unit_test(test_distance),
		cmocka_unit_test(test_values), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_help),   cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
