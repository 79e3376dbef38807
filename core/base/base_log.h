/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stddef.h>

#include <ndx/spi/log.h>

#include "base_private.h"

/* For situations that must not happen: log the call stack, a record for each frame, at error
 * level. */
void base_log_backtrace(const char *what) NDX_PRIVATE(base_log_backtrace);

/* Copy a text for people; if truncated, it ends after a whole word and "...". `size` is more than
 * 4. */
void base_text_copy(char *out, size_t size, const char *text) NDX_PRIVATE(base_text_copy);

/* The size of every text of a failure. */
#define BASE_FAILURE_TEXT 512

/* Format a text as ndxp_fail() does, for a thread that reports the failure later: one line, with
 * the native cause at its end. */
__attribute__((format(printf, 3, 4))) void base_text_failure(char text[BASE_FAILURE_TEXT],
                                                             int native, const char *fmt, ...);

/* Log a text of base_text_failure() as it is, at the level of that status. */
void base_log_failure(enum ndx_status status, const char *where, int native, const char *text);

/* The functions of <ndx/spi/log.h>, for struct ndx_spi_services. */
__attribute__((format(printf, 4, 0))) void base_log_list(enum ndx_log_level level,
                                                         const char *where, int native,
                                                         const char *fmt, va_list args);
__attribute__((format(printf, 4, 0))) void base_fail_list(enum ndx_status status, const char *where,
                                                          int native, const char *fmt,
                                                          va_list args);
__attribute__((format(printf, 1, 0))) void base_set_last_error_list(const char *fmt, va_list args);

#endif
