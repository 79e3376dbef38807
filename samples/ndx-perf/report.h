/* SPDX-License-Identifier: BSD-2-Clause */
/* What the client prints on stdout: a table, JSON or CSV; and the plot. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <jansson.h>

#include "perf.h"

struct report;

/** NULL: no memory. */
struct report *report_begin(const struct perf_options *options, const char *adapter);

void report_row(struct report *report, const struct perf_row *row);

/**
 * Write the plot, and release. Returns an exit status.
 *
 * @param[out] object  with --json: the rows, for the caller; else NULL
 */
int report_end(struct report *report, json_t **object);

/** A point of the plot. */
struct plot_point {
	enum perf_kind kind;
	const char *name; /* of the line; a constant */
	double x, y;
};

/**
 * Write an SVG: latency and bandwidth over the size of a message. Returns an exit status; a failure
 * was printed.
 */
int plot_write(const char *program, const char *path, const struct plot_point *points,
               unsigned count);

#endif
