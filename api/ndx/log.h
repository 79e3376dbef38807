/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Log sink. The library writes log records to the program's sink, and prints nothing by itself. It
 * writes them to stderr as well where the program (ndx_log_to_stderr()) or its user asks for that:
 * `NDX_LOG=error`, `warn`, `info` or `debug` in the environment makes any program write its records
 * up to this level to stderr, beside its sink. Set-user-id programs ignore `NDX_LOG`.
 */
#ifndef NDX_LOG_H
#define NDX_LOG_H

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Importance of a record. A level includes the levels listed before it. */
enum ndx_log_level {
	NDX_LOG_ERROR, /**< a failure; one record, written where it was first detected */
	NDX_LOG_WARN,  /**< works, but deserves attention */
	NDX_LOG_INFO,  /**< one per life-cycle step: opened, listening, connected, disconnected; and
	                  what ended NDX_E_NOT_SUPPORTED, as programs ask in this way */
	NDX_LOG_DEBUG, /**< one per change of state */
};

/** One record. The strings are valid during the call of the sink only. */
struct ndx_log_record {
	enum ndx_log_level level;
	const char *where; /**< name of the function that wrote the record */
	int native;        /**< errno or provider code of a failure, 0 if none */
	const char *text;  /**< one line, no newline */
};

/**
 * Takes a record. The library calls a sink from any thread, also concurrently, and possibly while
 * it holds its own locks. So a sink must not call the library, and must not wait for anything that
 * a caller of the library may hold. A Python sink, for example, queues its records and does not
 * take the interpreter lock.
 */
typedef void ndx_log_sink(void *arg, const struct ndx_log_record *record);

/**
 * Set the sink of the process; NULL discards all records (the default).
 *
 * @param sink   called for every record up to @p level
 * @param arg    passed to @p sink
 * @param level  records above this level are dropped before they are formatted
 *
 * Thread safety: call before other threads use the library, and not from a sink. Does not block.
 */
void ndx_log_set_sink(ndx_log_sink *sink, void *arg, enum ndx_log_level level);

/**
 * Write the records up to @p level to stderr, beside the sink: one line and one write() for each
 * record, "ndx error: TEXT (FUNCTION, native CODE)". Another call changes the level.
 *
 * Thread safety: any thread, also in a sink. Blocks: no; later calls of the library block as long
 * as stderr does.
 */
void ndx_log_to_stderr(enum ndx_log_level level);

/** Name of a level, for example "error". Never NULL. */
const char *ndx_log_level_name(enum ndx_log_level level);

NDX_DECLS_END

#endif
