/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/log.h>
#include <ndx/status.h>

#include "base_private.h"

/* Ask before formatting, where the arguments of a record are expensive. */
bool base_log_enabled(enum ndx_log_level level);

__attribute__((format(printf, 4, 5))) void base_log(enum ndx_log_level level, const char *where,
                                                    int native, const char *fmt, ...)
	NDX_PRIVATE(base_log);

/* The function that detects a failure calls this: the text (call, object, address, native cause,
 * next step) becomes ndx_last_error() of this thread and a log record. Returns `status`. The
 * callers above only pass the status on. */
__attribute__((format(printf, 4, 5))) enum ndx_status
base_fail(enum ndx_status status, const char *where, int native, const char *fmt, ...)
	NDX_PRIVATE(base_fail);

/* While true, base_fail() in this thread sets the text but does not log: the caller adds what it
 * knows and writes the record. */
void base_fail_hold(bool hold) NDX_PRIVATE(base_fail_hold);

/* For situations that must not happen: log the call stack, a record for each frame, at error
 * level. */
void base_log_backtrace(const char *what) NDX_PRIVATE(base_log_backtrace);

/* Set the text of this thread without logging (to add a suggestion to a failure). */
__attribute__((format(printf, 1, 2))) void base_set_last_error(const char *fmt, ...);

/* The caller's buffer is too small: returns NDX_E_BUFFER_OVERFLOW with the text that all calls
 * give. `what` is plural: "addresses", "bytes of private data". No log record, because a program
 * may ask for the size in this way. */
enum ndx_status base_fail_room(const char *call, const char *what, size_t needed, size_t room);

/* Copy a text for people; if truncated, it ends after a whole word and "...". `size` is more than
 * 4. */
void base_text_copy(char *out, size_t size, const char *text) NDX_PRIVATE(base_text_copy);

#define log_error(native, ...) base_log(NDX_LOG_ERROR, __func__, native, __VA_ARGS__)
#define log_warn(native, ...) base_log(NDX_LOG_WARN, __func__, native, __VA_ARGS__)
#define log_info(...) base_log(NDX_LOG_INFO, __func__, 0, __VA_ARGS__)
#define log_debug(...) base_log(NDX_LOG_DEBUG, __func__, 0, __VA_ARGS__)
#define fail(status, native, ...) base_fail(status, __func__, native, __VA_ARGS__)

#endif
