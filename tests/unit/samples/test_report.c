/* SPDX-License-Identifier: BSD-2-Clause */
/* What the samples print: records of several threads, each a line of its own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */

#include <ndx/spi/log.h>
#include "sample_report.h"

#define THREADS 4
#define RECORDS 5000

static void *speak(void *arg)
{
	const int who = *(const int *)arg;

	for (int i = 0; i < RECORDS; i++)
		ndxp_log(NDX_LOG_INFO, "here", i % 2, "%d%d%d%d%d%d%d%d", who, who, who, who, who,
		         who, who, who);
	return NULL;
}

/* "ndx info: DDDDDDDD (1: ...) (here, native 1)" or "ndx info: DDDDDDDD (here)". */
static void check_line(const char *line)
{
	static const char head[] = "ndx info: ";
	static const char *const tails[] = {" (here)\n",
	                                    " (1: Operation not permitted) (here, native 1)\n"};
	const char *digits = line + strlen(head);

	const bool whole = strncmp(line, head, strlen(head)) == 0 && strspn(digits, "0123") == 8 &&
	                   (strcmp(digits + 8, tails[0]) == 0 || strcmp(digits + 8, tails[1]) == 0);

	if (!whole)
		print_error("a line is mixed: %s", line);
	assert_true(whole);
}

static void records_of_threads_are_lines_of_their_own(void **state)
{
	FILE *file = tmpfile();
	const int before = dup(STDERR_FILENO);
	pthread_t threads[THREADS];
	int names[THREADS];
	char line[256];
	int lines = 0;

	(void)state;
	assert_non_null(file);
	assert_true(before >= 0);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	ndx_log_to_stderr(NDX_LOG_INFO);
	for (int i = 0; i < THREADS; i++) {
		names[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, speak, &names[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	(void)close(before);
	rewind(file);
	for (; fgets(line, sizeof(line), file) != NULL; lines++)
		check_line(line);
	assert_int_equal(lines, THREADS * RECORDS);
	(void)fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_threads_are_lines_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
