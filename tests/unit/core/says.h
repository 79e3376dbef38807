/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures must say what, where and what to do: here is how that is asked. */
#ifndef TEST_SAYS_H
#define TEST_SAYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/log.h>
#include <ndx/status.h>

/* Error records seen by the sink since the last failure was looked at. */
struct seen {
	unsigned errors;
	char text[1024];
};

static inline void see(void *arg, const struct ndx_log_record *record)
{
	struct seen *seen = arg;

	if (record->level != NDX_LOG_ERROR)
		return;
	seen->errors++;
	(void)snprintf(seen->text, sizeof(seen->text), "%s", record->text);
}

static inline void says(const char *part)
{
	if (strstr(ndx_last_error(), part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", ndx_last_error(), part);
}

/* One record at error level, made of the status and the text that the caller gets. */
static inline void failed_with(struct seen *seen, enum ndx_status got, enum ndx_status expected)
{
	char record[1024];

	(void)snprintf(record, sizeof(record), "%s: %s", ndx_status_name(expected),
	               ndx_last_error());
	if (got != expected)
		fail_msg("%s instead of %s: %s", ndx_status_name(got), ndx_status_name(expected),
		         ndx_last_error());
	assert_int_equal(seen->errors, 1);
	assert_string_equal(seen->text, record);
	seen->errors = 0;
}

/* A directory of our own, with nothing of the user's in the environment. */
struct place {
	char dir[64];
	char file[128];
};

static inline void place_write(const struct place *p, const char *text)
{
	FILE *f = fopen(p->file, "we");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static inline void place_make(struct place *p)
{
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/ndx-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->file, sizeof(p->file), "%s/ndx.ini", p->dir);
	assert_int_equal(setenv("HOME", p->dir, 1), 0);
	assert_int_equal(setenv("NDX_CONFIG", p->file, 1), 0);
	place_write(p, ""); /* a file that is named has to exist */
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	assert_int_equal(unsetenv("NDX_PROVIDER_PATH"), 0);
}

static inline void place_remove(const struct place *p)
{
	(void)unlink(p->file);
	(void)rmdir(p->dir);
}

/* What a test begins with that names adapters: a place of its own, these providers, a log. */
static inline int place_enter(struct place *p, struct seen *seen, const char *providers)
{
	ndx_log_set_sink(see, seen, NDX_LOG_ERROR);
	seen->errors = 0;
	place_make(p);
	assert_int_equal(unsetenv("FAKE_LIST"), 0);
	assert_int_equal(unsetenv("FAKE_ADDRESSES"), 0);
	assert_int_equal(unsetenv("FAKE_OPENED"), 0);
	return setenv("NDX_PROVIDER_PATH", providers, 1);
}

#endif
