/* SPDX-License-Identifier: BSD-2-Clause */
/* What ndx-perf compare prints: a table for people, or rows for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>

#include "measure.h"
#include "passive.h"

struct report;

struct report *report_begin(const struct measure_plan *plan, bool json);
void report_row(struct report *report, const struct measure_row *row);
/* The last of those that there are by now; the one of its kind in messages is before it. */
void report_passive(struct report *report, const struct passive_row *rows, unsigned which);
/* Prints what is left to print, and frees; false: it could not be printed. */
bool report_end(struct report *report);

#endif
