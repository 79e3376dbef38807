/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <ndx/spi/log.h>

struct record {
	unsigned count;
	enum ndx_log_level level;
	char where[64];
	int native;
	char text[1024];
};

static void keep_record(void *arg, const struct ndx_log_record *record)
{
	struct record *r = arg;

	r->count++;
	r->level = record->level;
	r->native = record->native;
	(void)snprintf(r->where, sizeof(r->where), "%s", record->where);
	(void)snprintf(r->text, sizeof(r->text), "%s", record->text);
	errno = ECHILD; /* a sink may do what it likes to it */
}

static int silence(void **state)
{
	(void)state;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_DEBUG);
	return 0;
}

static void nothing_failed_yet_so_there_is_no_text(void **state)
{
	(void)state;
	assert_string_equal(ndx_last_error(), "");
}

static void a_failure_sets_the_text_and_logs_one_record(void **state)
{
	struct record r = {0};

	(void)state;
	ndx_log_set_sink(keep_record, &r, NDX_LOG_ERROR);
	assert_int_equal(ndxp_fail(NDX_E_NOT_FOUND, "looker", ENOENT, "no %s", "key"),
	                 NDX_E_NOT_FOUND);
	assert_string_equal(ndx_last_error(), "no key (2: No such file or directory)");
	assert_int_equal(r.count, 1);
	assert_int_equal(r.level, NDX_LOG_ERROR);
	assert_int_equal(r.native, ENOENT);
	assert_string_equal(r.where, "looker");
	assert_string_equal(r.text, "NDX_E_NOT_FOUND: no key (2: No such file or directory)");
}

static void a_call_that_is_not_supported_is_no_error(void **state)
{
	struct record r = {0};

	(void)state;
	ndx_log_set_sink(keep_record, &r, NDX_LOG_WARN);
	assert_int_equal(ndxp_fail(NDX_E_NOT_SUPPORTED, "asker", 0, "has none"),
	                 NDX_E_NOT_SUPPORTED);
	assert_string_equal(ndx_last_error(), "has none");
	assert_int_equal(r.count, 0);
	ndx_log_set_sink(keep_record, &r, NDX_LOG_INFO);
	(void)ndxp_fail(NDX_E_NOT_SUPPORTED, "asker", 0, "has none");
	assert_int_equal(r.count, 1);
	assert_int_equal(r.level, NDX_LOG_INFO);
	assert_string_equal(r.text, "NDX_E_NOT_SUPPORTED: has none");
}

static void a_failure_without_a_sink_still_sets_the_text(void **state)
{
	(void)state;
	assert_int_equal(ndxp_fail(NDX_E_NO_MEMORY, "w", 0, "none"), NDX_E_NO_MEMORY);
	assert_string_equal(ndx_last_error(), "none");
}

static void errno_survives_logging(void **state)
{
	struct record r = {0};

	(void)state;
	ndx_log_set_sink(keep_record, &r, NDX_LOG_DEBUG);
	errno = EPIPE;
	log_warn(EBADF, "x");
	assert_int_equal(errno, EPIPE);
	(void)ndxp_fail(NDX_E_NO_MEMORY, "w", 0, "x");
	assert_int_equal(errno, EPIPE);
	ndxp_set_last_error("x");
	assert_int_equal(errno, EPIPE);
	assert_int_equal(r.count, 2);
}

static void a_negative_native_code_is_named_by_its_errno(void **state)
{
	(void)state;
	(void)ndxp_fail(NDX_E_UNSUCCESSFUL, "w", -EAGAIN, "x");
	assert_string_equal(ndx_last_error(), "x (-11: Resource temporarily unavailable)");
}

static void a_native_code_of_something_else_is_only_a_number(void **state)
{
	static const int codes[] = {100000, -100000, INT32_MAX, INT32_MIN, 3999};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		(void)ndxp_fail(NDX_E_UNSUCCESSFUL, "w", codes[i], "x");
		(void)snprintf(text, sizeof(text), "x (native %d)", codes[i]);
		assert_string_equal(ndx_last_error(), text);
	}
}

static void records_beyond_the_level_are_dropped(void **state)
{
	struct record r = {0};

	(void)state;
	ndx_log_set_sink(keep_record, &r, NDX_LOG_WARN);
	assert_true(ndxp_log_enabled(NDX_LOG_WARN));
	assert_false(ndxp_log_enabled(NDX_LOG_INFO));
	log_info("no");
	log_debug("no");
	assert_int_equal(r.count, 0);
	log_warn(0, "yes");
	assert_int_equal(r.count, 1);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_DEBUG);
	assert_false(ndxp_log_enabled(NDX_LOG_ERROR));
	log_warn(0, "no");
	assert_int_equal(r.count, 1);
}

static void a_long_text_is_cut_visibly_and_keeps_its_native_cause(void **state)
{
	static const char tail[] = "... (2: No such file or directory)";
	struct record r = {0};
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ndx_log_set_sink(keep_record, &r, NDX_LOG_ERROR);
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", ENOENT, "%s", text);
	assert_int_equal(strlen(ndx_last_error()), 511);
	assert_string_equal(ndx_last_error() + 511 - strlen(tail), tail);
	assert_memory_equal(r.text, "NDX_E_NOT_FOUND: xxx", 20);
	assert_string_equal(r.text + strlen(r.text) - strlen(tail), tail);
}

static void a_long_text_of_words_is_cut_after_a_word(void **state)
{
	struct record r = {0};
	char text[2000];
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = i % 100 == 99 ? ' ' : 'w';
	text[sizeof(text) - 1] = '\0';
	ndx_log_set_sink(keep_record, &r, NDX_LOG_ERROR);
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "%s", text);
	/* 5 words of 99, and 4 spaces */
	length = strlen(ndx_last_error());
	assert_int_equal(length, 499 + 3);
	assert_memory_equal(ndx_last_error(), text, 499);
	assert_string_equal(ndx_last_error() + 499, "...");
}

static void a_record_is_one_line_whatever_is_in_it(void **state)
{
	struct record r = {0};

	(void)state;
	ndx_log_set_sink(keep_record, &r, NDX_LOG_ERROR);
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "a%sb\x1b[2Jc\x7f", "\r\n");
	assert_string_equal(ndx_last_error(), "a??b?[2Jc?");
	assert_string_equal(r.text, "NDX_E_NOT_FOUND: a??b?[2Jc?");
}

static void a_text_may_be_made_from_the_text_before(void **state)
{
	(void)state;
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "inner");
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "outer: %s", ndx_last_error());
	assert_string_equal(ndx_last_error(), "outer: inner");
	ndxp_set_last_error("%s, again", ndx_last_error());
	assert_string_equal(ndx_last_error(), "outer: inner, again");
}

static void *fail_elsewhere(void *arg)
{
	assert_string_equal(ndx_last_error(), "");
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "theirs");
	(void)snprintf(arg, 32, "%s", ndx_last_error());
	return NULL;
}

static void every_thread_has_a_text_of_its_own(void **state)
{
	char theirs[32];
	pthread_t thread;

	(void)state;
	(void)ndxp_fail(NDX_E_NOT_FOUND, "w", 0, "ours");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, theirs), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(theirs, "theirs");
	assert_string_equal(ndx_last_error(), "ours");
}

static void levels_have_names(void **state)
{
	(void)state;
	assert_string_equal(ndx_log_level_name(NDX_LOG_ERROR), "error");
	assert_string_equal(ndx_log_level_name(NDX_LOG_WARN), "warn");
	assert_string_equal(ndx_log_level_name(NDX_LOG_INFO), "info");
	assert_string_equal(ndx_log_level_name(NDX_LOG_DEBUG), "debug");
	assert_string_equal(ndx_log_level_name((enum ndx_log_level)77), "?");
}

/* Last: the library offers no way back. */
static void stderr_gets_one_line_for_each_record(void **state)
{
	struct record r = {0};
	char got[512] = "";
	int ends[2];
	int saved = dup(STDERR_FILENO);

	(void)state;
	assert_true(saved >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	ndx_log_set_sink(keep_record, &r, NDX_LOG_ERROR);
	ndx_log_to_stderr(NDX_LOG_WARN);
	assert_true(ndxp_log_enabled(NDX_LOG_WARN));
	assert_false(ndxp_log_enabled(NDX_LOG_INFO));
	ndxp_log(NDX_LOG_INFO, "looker", 0, "not this");
	ndxp_log(NDX_LOG_WARN, "looker", ENOENT, "two\nlines");
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	(void)close(saved);
	(void)close(ends[1]);
	/* one write, so one read */
	assert_true(read(ends[0], got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "ndx warn: two?lines (2: No such file or directory) (looker, "
	                         "native 2)\n");
	assert_int_equal(read(ends[0], got, sizeof(got)), 0);
	(void)close(ends[0]);
	/* the sink keeps its own level */
	assert_int_equal(r.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_failed_yet_so_there_is_no_text),
		cmocka_unit_test_teardown(a_failure_sets_the_text_and_logs_one_record, silence),
		cmocka_unit_test_teardown(a_call_that_is_not_supported_is_no_error, silence),
		cmocka_unit_test(a_failure_without_a_sink_still_sets_the_text),
		cmocka_unit_test_teardown(errno_survives_logging, silence),
		cmocka_unit_test(a_negative_native_code_is_named_by_its_errno),
		cmocka_unit_test(a_native_code_of_something_else_is_only_a_number),
		cmocka_unit_test_teardown(records_beyond_the_level_are_dropped, silence),
		cmocka_unit_test_teardown(a_long_text_is_cut_visibly_and_keeps_its_native_cause,
	                                  silence),
		cmocka_unit_test_teardown(a_long_text_of_words_is_cut_after_a_word, silence),
		cmocka_unit_test_teardown(a_record_is_one_line_whatever_is_in_it, silence),
		cmocka_unit_test(a_text_may_be_made_from_the_text_before),
		cmocka_unit_test(every_thread_has_a_text_of_its_own),
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(stderr_gets_one_line_for_each_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
