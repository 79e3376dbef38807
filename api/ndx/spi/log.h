/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_SPI_LOG_H
#define NDX_SPI_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/log.h>
#include <ndx/status.h>

#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* Ask before formatting, where the arguments of a record are expensive. */
bool ndxp_log_enabled(enum ndx_log_level level);

__attribute__((format(printf, 4, 5))) void ndxp_log(enum ndx_log_level level, const char *where,
                                                    int native, const char *fmt, ...) NDXP_SHARED;

/* The function that detects a failure calls this: the text (call, object, address, native cause,
 * next step) becomes ndx_last_error() of this thread and a log record, of level error, or of level
 * info if the status is NDX_E_NOT_SUPPORTED. Returns `status`. The callers above only pass the
 * status on. */
__attribute__((format(printf, 4, 5))) enum ndx_status
ndxp_fail(enum ndx_status status, const char *where, int native, const char *fmt, ...) NDXP_SHARED;

/* From a call with true to its call with false, ndxp_fail() in this thread sets the text but does
 * not log: the caller adds what it knows and writes the record. Such pairs may lie in each other.
 */
void ndxp_fail_hold(bool hold) NDXP_SHARED;

/* Set the text of this thread without logging (to add a suggestion to a failure). */
__attribute__((format(printf, 1, 2))) void ndxp_set_last_error(const char *fmt, ...);

/* The caller's buffer is too small: returns NDX_E_BUFFER_OVERFLOW with the text that all calls
 * give. `what` is plural: "addresses", "bytes of private data". No log record, because a program
 * may ask for the size in this way. */
static inline enum ndx_status ndxp_fail_room(const char *call, const char *what, size_t needed,
                                             size_t room)
{
	ndxp_set_last_error("%s: there are %zu %s, but room for %zu", call, needed, what, room);
	return NDX_E_BUFFER_OVERFLOW;
}

/** Records and failures that name the function that writes them. */
#define ndxp_log_error(native, ...) ndxp_log(NDX_LOG_ERROR, __func__, native, __VA_ARGS__)
#define ndxp_log_warn(native, ...) ndxp_log(NDX_LOG_WARN, __func__, native, __VA_ARGS__)
#define ndxp_log_info(...) ndxp_log(NDX_LOG_INFO, __func__, 0, __VA_ARGS__)
#define ndxp_log_debug(...) ndxp_log(NDX_LOG_DEBUG, __func__, 0, __VA_ARGS__)
#define ndxp_fail_here(status, native, ...) ndxp_fail(status, __func__, native, __VA_ARGS__)

/** The same in short, for sources that define this macro because they have no such names. */
#ifdef NDXP_SHORT_NAMES
#define log_error ndxp_log_error
#define log_warn ndxp_log_warn
#define log_info ndxp_log_info
#define log_debug ndxp_log_debug
#define fail ndxp_fail_here
#endif

NDXP_DECLS_END

#endif
