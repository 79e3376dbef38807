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

/** As sample_failed(), for an overlapped operation of a connector: the connector has the text. */
int sample_ended_badly(const char *program, struct ndx_connector *connector,
                       const struct ndx_overlapped *ov, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** For a step of a connection that took too long: its name, and a time in milliseconds. */
#define SAMPLE_NO_ANSWER                                                                          \
	"%s: no answer in %u ms; the peer is stopped or busy, or has no descriptor left for a "   \
	"connection (see ulimit -n), or a firewall drops the packets; NDX_LOG=warn at both ends " \
	"says more"

/** Print that a step of a connection took too long. Returns SAMPLE_EXIT_FAILED. */
int sample_no_answer(const char *program, const char *what, unsigned timeout_ms);

/** Print why the connector failed, or how its connection ended; false: there is nothing to say. */
bool sample_show_cause(struct ndx_connector *connector);

/** Print the snapshot of an adapter to stdout, as JSON. */
void sample_print_stats(const char *program, struct ndx_adapter *adapter);

#endif
