/* SPDX-License-Identifier: BSD-2-Clause */
/* Log records and the failure text of each thread. */
#include "base_log.h"

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_SIZE BASE_FAILURE_TEXT
#define NATIVE_SIZE 128
#define BACKTRACE_MOST 32
#define ERRNO_END 4096               /* larger than every errno */
#define RECORD_SIZE (TEXT_SIZE + 64) /* a text after the name of its status */

#define SILENT (-1)

/* The only setting of the whole process. `sink` is written last and read first. Levels for stderr,
 * which is served beside the sink: what the program asked for, and what its user did. */
static struct {
	ndx_log_sink *sink;
	void *arg;
	enum ndx_log_level level;
	int program_stderr;
	int user_stderr;
} log_config = {.program_stderr = SILENT, .user_stderr = SILENT};

static _Thread_local char last_error[TEXT_SIZE];
static _Thread_local unsigned held; /* holds of this thread that have not ended */

void ndx_log_set_sink(ndx_log_sink *sink, void *arg, enum ndx_log_level level)
{
	__atomic_store_n(&log_config.sink, (ndx_log_sink *)NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&log_config.arg, arg, __ATOMIC_RELAXED);
	__atomic_store_n(&log_config.level, level, __ATOMIC_RELAXED);
	__atomic_store_n(&log_config.sink, sink, __ATOMIC_RELEASE);
}

void ndx_log_to_stderr(enum ndx_log_level level)
{
	__atomic_store_n(&log_config.program_stderr, (int)level, __ATOMIC_RELAXED);
}

const char *ndx_log_level_name(enum ndx_log_level level)
{
	switch (level) {
	case NDX_LOG_ERROR:
		return "error";
	case NDX_LOG_WARN:
		return "warn";
	case NDX_LOG_INFO:
		return "info";
	case NDX_LOG_DEBUG:
		return "debug";
	}
	return "?";
}

const char *ndx_last_error(void)
{
	return last_error;
}

static bool goes_to_stderr(enum ndx_log_level level)
{
	return (int)level <= __atomic_load_n(&log_config.program_stderr, __ATOMIC_RELAXED) ||
	       (int)level <= __atomic_load_n(&log_config.user_stderr, __ATOMIC_RELAXED);
}

/* The sink, if it takes records of this level. */
static ndx_log_sink *sink_for(enum ndx_log_level level)
{
	ndx_log_sink *sink = __atomic_load_n(&log_config.sink, __ATOMIC_ACQUIRE);

	return level <= __atomic_load_n(&log_config.level, __ATOMIC_RELAXED) ? sink : NULL;
}

bool ndxp_log_enabled(enum ndx_log_level level)
{
	return sink_for(level) != NULL || goes_to_stderr(level);
}

/* One write for each record, so that records of other threads and processes do not mix with it. */
static void write_to_stderr(const struct ndx_log_record *record)
{
	char line[RECORD_SIZE + 128];
	int length;

	if (record->native != 0)
		length = snprintf(line, sizeof(line), "ndx %s: %s (%s, native %d)\n",
		                  ndx_log_level_name(record->level), record->text, record->where,
		                  record->native);
	else
		length = snprintf(line, sizeof(line), "ndx %s: %s (%s)\n",
		                  ndx_log_level_name(record->level), record->text, record->where);
	if (length < 0)
		return;
	if ((size_t)length >= sizeof(line)) {
		length = (int)sizeof(line) - 1;
		line[length - 1] = '\n';
	}
	/* Where stderr takes no more there is no place left to report that. */
	(void)!write(STDERR_FILENO, line, (size_t)length);
}

static void emit(enum ndx_log_level level, const char *where, int native, const char *text)
{
	ndx_log_sink *sink = sink_for(level);
	struct ndx_log_record record = {
		.level = level, .where = where, .native = native, .text = text};

	if (sink != NULL)
		sink(__atomic_load_n(&log_config.arg, __ATOMIC_RELAXED), &record);
	if (goes_to_stderr(level))
		write_to_stderr(&record);
}

/* $NDX_LOG, for programs whose user cannot change them. */
__attribute__((constructor)) static void read_environment(void)
{
	const char *wanted = secure_getenv("NDX_LOG");

	if (wanted == NULL || wanted[0] == '\0')
		return;
	for (int level = NDX_LOG_ERROR; level <= (int)NDX_LOG_DEBUG; level++) {
		if (strcmp(wanted, ndx_log_level_name((enum ndx_log_level)level)) == 0) {
			log_config.user_stderr = level;
			return;
		}
	}
	log_config.user_stderr = NDX_LOG_WARN;
	log_warn(0, "NDX_LOG is \"%.32s\", which is no level; there are: error, warn, info, debug",
	         wanted);
}

/* A record is one line, but text from a file, a URI or a peer may contain any byte. */
static void make_one_line(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

/* `text` was truncated to `size` bytes: cut it after a whole word and append "...". */
static void end_at_word(char *text, size_t size)
{
	static const char dots[] = "...";
	const size_t most = size - sizeof(dots);
	size_t length = most;

	while (length > 0 && text[length] != ' ')
		length--;
	while (length > 0 && text[length - 1] == ' ')
		length--;
	memcpy(text + (length > 0 ? length : most), dots, sizeof(dots));
}

void base_text_copy(char *out, size_t size, const char *text)
{
	const int wanted = snprintf(out, size, "%s", text);

	if (wanted >= 0 && (size_t)wanted >= size)
		end_at_word(out, size);
}

/* " (5: Input/output error)", or only the number if this system has no such errno. */
static size_t native_text(char text[NATIVE_SIZE], int native)
{
	const bool plausible = native > -ERRNO_END && native < ERRNO_END;
	const char *name = plausible ? strerrordesc_np(native < 0 ? -native : native) : NULL;

	text[0] = '\0';
	if (native == 0)
		return 0;
	if (name != NULL)
		(void)snprintf(text, NATIVE_SIZE, " (%d: %s)", native, name);
	else
		(void)snprintf(text, NATIVE_SIZE, " (native %d)", native);
	return strlen(text);
}

/* Keep the native cause whole; truncate the text before it, marked by "...". */
__attribute__((format(printf, 3, 0))) static void format_text(char text[TEXT_SIZE], int native,
                                                              const char *fmt, va_list args)
{
	char cause[NATIVE_SIZE];
	const size_t room = TEXT_SIZE - native_text(cause, native);
	const int wanted = vsnprintf(text, room, fmt, args);

	if (wanted < 0)
		(void)snprintf(text, room, "%s", fmt);
	else if ((size_t)wanted >= room)
		end_at_word(text, room);
	memcpy(text + strlen(text), cause, strlen(cause) + 1);
	make_one_line(text);
}

void base_text_failure(char text[BASE_FAILURE_TEXT], int native, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	format_text(text, native, fmt, args);
	va_end(args);
}

/* A program may ask by a call what an adapter can do: the answer no is then no failure. */
static enum ndx_log_level failure_level(enum ndx_status status)
{
	return status == NDX_E_NOT_SUPPORTED ? NDX_LOG_INFO : NDX_LOG_ERROR;
}

void base_log_failure(enum ndx_status status, const char *where, int native, const char *text)
{
	const enum ndx_log_level level = failure_level(status);
	const int saved = errno;

	if (ndxp_log_enabled(level))
		emit(level, where, native, text);
	errno = saved;
}

void base_log_list(enum ndx_log_level level, const char *where, int native, const char *fmt,
                   va_list args)
{
	int saved = errno;
	char text[TEXT_SIZE];

	if (!ndxp_log_enabled(level))
		return;
	format_text(text, native, fmt, args);
	emit(level, where, native, text);
	errno = saved;
}

void ndxp_log(enum ndx_log_level level, const char *where, int native, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	base_log_list(level, where, native, fmt, args);
	va_end(args);
}

void base_fail_list(enum ndx_status status, const char *where, int native, const char *fmt,
                    va_list args)
{
	const enum ndx_log_level level = failure_level(status);
	int saved = errno;
	char text[TEXT_SIZE]; /* a copy: the arguments may point into the old text */
	char record[RECORD_SIZE];

	format_text(text, native, fmt, args);
	memcpy(last_error, text, sizeof(last_error));
	if (held == 0 && ndxp_log_enabled(level)) {
		(void)snprintf(record, sizeof(record), "%s: %s", ndx_status_name(status), text);
		emit(level, where, native, record);
	}
	errno = saved;
}

enum ndx_status ndxp_fail(enum ndx_status status, const char *where, int native, const char *fmt,
                          ...)
{
	va_list args;

	va_start(args, fmt);
	base_fail_list(status, where, native, fmt, args);
	va_end(args);
	return status;
}

void ndxp_fail_hold(bool hold)
{
	if (hold)
		held++;
	else if (held > 0)
		held--;
}

void base_set_last_error_list(const char *fmt, va_list args)
{
	int saved = errno;
	char text[TEXT_SIZE];

	format_text(text, 0, fmt, args);
	memcpy(last_error, text, sizeof(last_error));
	errno = saved;
}

void ndxp_set_last_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	base_set_last_error_list(fmt, args);
	va_end(args);
}

void base_log_backtrace(const char *what)
{
	void *frames[BACKTRACE_MOST];
	char **names;
	int count;

	if (!ndxp_log_enabled(NDX_LOG_ERROR))
		return;
	count = backtrace(frames, BACKTRACE_MOST);
	names = backtrace_symbols(frames, count);
	/* Frame 0 is this function. */
	for (int i = 1; names != NULL && i < count; i++)
		log_error(0, "%s: #%d %s", what, i, names[i]);
	free(names);
}
