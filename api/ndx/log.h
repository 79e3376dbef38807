/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Where the library's log records go. It never prints by itself.
 */
#ifndef NDX_LOG_H
#define NDX_LOG_H

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** How much a record matters. A level includes those above it. */
enum ndx_log_level {
	NDX_LOG_ERROR, /**< something failed; one record per failure, where it was first seen */
	NDX_LOG_WARN,  /**< works, but somebody should look */
	NDX_LOG_INFO,  /**< once per object: opened, listening, connected, disconnected */
	NDX_LOG_DEBUG, /**< one per change of state */
};

/** One record. Strings live only for the duration of the sink call. */
struct ndx_log_record {
	enum ndx_log_level level;
	const char *where; /**< function that wrote it */
	int native;        /**< errno or provider code behind the record, 0 if none */
	const char *text;  /**< one line, no newline */
};

/**
 * Called from any thread, also concurrently, and possibly with locks of the library held: it must
 * not call back into the library, nor wait for anything that a caller of the library may hold (a
 * Python sink queues its records rather than take the interpreter lock).
 */
typedef void ndx_log_sink(void *arg, const struct ndx_log_record *record);

/**
 * Set the process-wide sink; NULL silences (the default).
 *
 * @param sink   called for every record up to @p level
 * @param arg    handed to @p sink
 * @param level  records beyond this level are dropped before they are formatted
 *
 * Thread safety: call before other threads use the library, and not from a sink. Does not block.
 */
void ndx_log_set_sink(ndx_log_sink *sink, void *arg, enum ndx_log_level level);

/** Name of a level, "error". Never NULL. */
const char *ndx_log_level_name(enum ndx_log_level level);

NDX_DECLS_END

#endif
