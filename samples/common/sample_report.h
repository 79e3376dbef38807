/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of the samples: failures with their cause, and the library's log on request. */
#ifndef SAMPLE_REPORT_H
#define SAMPLE_REPORT_H

#include <stdbool.h>

#include <ndx/ndx.h>

/**
 * Print to stderr that a call failed: program, action, status, and the text of the library. Returns
 * SAMPLE_EXIT_FAILED, so that a caller can `return sample_failed(...)`.
 */
int sample_failed(const char *program, enum ndx_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Open an adapter; NULL: the default. Returns an enum sample_exit; a failure was printed. */
int sample_open_adapter(const char *program, const char *uri, struct ndx_adapter **out);

/** As sample_failed(), for an overlapped operation: the object has the cause. */
int sample_ended_badly(const char *program, const struct ndx_overlapped *ov, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/**
 * The output is written, if @p ok: a full disk shows at the latest now. Returns an enum
 * sample_exit; a failure was printed.
 */
int sample_end_output(const char *program, bool ok);

/** Print the snapshot of an adapter to stdout, as JSON. */
void sample_print_stats(const char *program, struct ndx_adapter *adapter);

#endif
