/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "lane.h"

struct report {
	const struct measure_plan *plan;
	json_t *rows; /* NULL: for people */
};

struct report *report_begin(const struct measure_plan *plan, bool json)
{
	struct report *report = calloc(1, sizeof(*report));

	if (report == NULL)
		lane_die("no memory", "for the report");
	report->plan = plan;
	if (json) {
		report->rows = json_array();
		if (report->rows == NULL)
			lane_die("no memory", "for the report");
		return report;
	}
	(void)printf("%s%s%s\n", plan->uri, plan->device[0] != '\0' ? " against libfabric's " : "",
	             plan->device);
	(void)printf("%-8s %-5s %8s %6s %11s %11s %11s  %6s %-15s %6s %6s\n", "test", "mode",
	             "size", "depth", "ndx", "raw same", "raw plain", "/same", "[quartiles]",
	             "/plain", "a/a");
	return report;
}

static const char *test_name(const struct measure_row *row)
{
	return row->test == TRAFFIC_LATENCY ? "latency" : "stream";
}

static const char *mode_name(const struct measure_row *row)
{
	return row->wait ? "wait" : "spin";
}

/* NaN and infinity are no JSON: nothing was compared. */
static json_t *number(const struct report *report, double value)
{
	return report->plan->device[0] != '\0' ? json_real(value) : json_null();
}

static void add(struct report *report, const struct measure_row *row)
{
	json_t *object = json_pack(
		"{ss ss ss sI sI sf so so ss so so so so so}", "provider", report->plan->uri,
		"test", test_name(row), "mode", mode_name(row), "size", (json_int_t)row->size,
		"depth", (json_int_t)row->depth, "ndx", row->ndx, "raw_same",
		number(report, row->raw_same), "raw_plain", number(report, row->raw_plain), "unit",
		measure_unit(row), "ratio_same", number(report, row->ratio_same), "ratio_plain",
		number(report, row->ratio_plain), "q1", number(report, row->q1), "q3",
		number(report, row->q3), "aa", number(report, row->aa));

	if (object == NULL || json_array_append_new(report->rows, object) != 0)
		lane_die("no memory", "for the report");
}

void report_row(struct report *report, const struct measure_row *row)
{
	const int digits = row->test == TRAFFIC_LATENCY ? 2 : 0;
	FILE *to = report->rows != NULL ? stderr : stdout;

	if (report->rows != NULL)
		add(report, row);
	(void)fprintf(to, "%-8s %-5s %8u %6u %11.*f", test_name(row), mode_name(row), row->size,
	              row->depth, digits, row->ndx);
	if (report->plan->device[0] != '\0')
		(void)fprintf(to, " %11.*f %11.*f  %6.3f [%.3f %.3f] %6.3f %6.3f", digits,
		              row->raw_same, digits, row->raw_plain, row->ratio_same, row->q1,
		              row->q3, row->ratio_plain, row->aa);
	(void)fprintf(to, " %s%s\n", measure_unit(row),
	              measure_is_undecided(report->plan, row) ? " undecided" : "");
	(void)fflush(to);
}

bool report_end(struct report *report)
{
	bool ok = true;

	if (report->rows != NULL) {
		/* One row a line, for those who compare versions. */
		(void)puts("[");
		for (size_t i = 0; ok && i < json_array_size(report->rows); i++) {
			ok = json_dumpf(json_array_get(report->rows, i), stdout,
			                JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5)) == 0;
			(void)puts(i + 1 < json_array_size(report->rows) ? "," : "");
		}
		(void)puts("]");
		json_decref(report->rows);
	}
	free(report);
	return fflush(stdout) == 0 && ok;
}
