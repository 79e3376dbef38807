/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lane.h"

struct report {
	const struct measure_plan *plan;
	json_t *rows; /* NULL: for people */
};

struct beside_name {
	const char *name;
	const char *over; /* of the ratio, in a table */
	const char *ratio;
};

static const struct beside_name beside_names[LANE_BESIDES] = {
	[LANE_TCP] = {"tcp", "/tcp", "ratio_tcp"}, [LANE_UCX] = {"ucx", "/ucx", "ratio_ucx"}};

struct report *report_begin(const struct measure_plan *plan, bool json)
{
	static const char *const against[] = {[LANE_NOTHING] = "",
	                                      [LANE_OFI] = " against libfabric's ",
	                                      [LANE_VERBS] = " against ibverbs on "};
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
	(void)printf("%s%s%s%s%s\n", plan->uris[0], plan->uris[1] != plan->uris[0] ? " " : "",
	             plan->uris[1] != plan->uris[0] ? plan->uris[1] : "",
	             against[plan->below.stack],
	             plan->below.stack != LANE_NOTHING ? plan->below.devices[0] : "");
	(void)printf("%-8s %-5s %8s %6s %11s %11s %11s  %6s %-15s %6s %6s", "test", "mode", "size",
	             "depth", "ndx", "raw same", "raw plain", "/same", "[quartiles]", "/plain",
	             "a/a");
	for (unsigned k = 0; k < LANE_BESIDES; k++) {
		if (plan->beside[k])
			(void)printf(" %11s %6s", beside_names[k].name, beside_names[k].over);
	}
	(void)puts("");
	return report;
}

static const char *test_name(const struct measure_row *row)
{
	static const char *const names[TRAFFIC_TESTS] = {[TRAFFIC_LATENCY] = "latency",
	                                                 [TRAFFIC_STREAM] = "stream",
	                                                 [TRAFFIC_WRITE] = "write"};

	return names[row->test];
}

static const char *mode_name(const struct measure_row *row)
{
	return row->wait ? "wait" : "spin";
}

/* NaN and infinity are no JSON: nothing was compared. */
static json_t *number(bool known, double value)
{
	return known ? json_real(value) : json_null();
}

static void add(struct report *report, const struct measure_row *row)
{
	json_t *object = json_pack(
		"{ss ss ss sI sI sf so so ss so so so so so}", "provider", report->plan->uris[0],
		"test", test_name(row), "mode", mode_name(row), "size", (json_int_t)row->size,
		"depth", (json_int_t)row->depth, "ndx", row->ndx, "raw_same",
		number(row->compared, row->raw_same), "raw_plain",
		number(row->plain, row->raw_plain), "unit", measure_unit(row), "ratio_same",
		number(row->compared, row->ratio_same), "ratio_plain",
		number(row->plain, row->ratio_plain), "q1", number(row->compared, row->q1), "q3",
		number(row->compared, row->q3), "aa", number(row->compared, row->aa));
	bool good = object != NULL;

	for (unsigned k = 0; good && k < LANE_BESIDES; k++) {
		const bool known = row->has_beside[k];

		if (!report->plan->beside[k])
			continue;
		good = json_object_set_new(object, beside_names[k].name,
		                           number(known, row->beside[k])) == 0 &&
		       json_object_set_new(object, beside_names[k].ratio,
		                           number(known, row->ratio_beside[k])) == 0;
	}
	if (!good || json_array_append_new(report->rows, object) != 0)
		lane_die("no memory", "for the report");
}

/* What an empty place has to have so that the columns behind it stay where they are. */
#define COMPARED_WIDTH 62

static void print_compared(FILE *to, const struct measure_row *row, int digits)
{
	char quartiles[64];

	(void)fprintf(to, " %11.*f", digits, row->raw_same);
	if (row->plain)
		(void)fprintf(to, " %11.*f", digits, row->raw_plain);
	else
		(void)fprintf(to, " %11s", "");
	(void)snprintf(quartiles, sizeof(quartiles), "[%.3f %.3f]", row->q1, row->q3);
	(void)fprintf(to, "  %6.3f %-15s", row->ratio_same, quartiles);
	if (row->plain)
		(void)fprintf(to, " %6.3f", row->ratio_plain);
	else
		(void)fprintf(to, " %6s", "");
	(void)fprintf(to, " %6.3f", row->aa);
}

static void print_beside(FILE *to, const struct measure_plan *plan, const struct measure_row *row,
                         int digits)
{
	for (unsigned k = 0; k < LANE_BESIDES; k++) {
		if (plan->beside[k] && row->has_beside[k])
			(void)fprintf(to, " %11.*f %6.3f", digits, row->beside[k],
			              row->ratio_beside[k]);
		else if (plan->beside[k])
			(void)fprintf(to, " %11s %6s", "", "");
	}
}

void report_row(struct report *report, const struct measure_row *row)
{
	const int digits = row->test == TRAFFIC_STREAM ? 0 : 2;
	FILE *to = report->rows != NULL ? stderr : stdout;

	if (report->rows != NULL)
		add(report, row);
	(void)fprintf(to, "%-8s %-5s %8u %6u %11.*f", test_name(row), mode_name(row), row->size,
	              row->depth, digits, row->ndx);
	if (row->compared)
		print_compared(to, row, digits);
	else if (report->plan->beside[LANE_TCP] || report->plan->beside[LANE_UCX])
		(void)fprintf(to, "%*s", COMPARED_WIDTH, "");
	print_beside(to, report->plan, row, digits);
	(void)fprintf(to, " %s%s\n", measure_unit(row),
	              measure_is_undecided(row) ? " undecided" : "");
	(void)fflush(to);
}

/* ---- targets that do not poll ---- */

struct passive_name {
	const char *name;
	enum passive_kind beside;
};

static const struct passive_name passive_names[PASSIVE_KINDS] = {
	[PASSIVE_MESSAGES] = {"messages, asleep", PASSIVE_MESSAGES},
	[PASSIVE_ASLEEP] = {"writes, asleep", PASSIVE_MESSAGES},
	[PASSIVE_SPIN] = {"writes, memory", PASSIVE_MESSAGES},
	[PASSIVE_SPIN_POLL] = {"writes, memory and a poll each ms", PASSIVE_MESSAGES},
	[PASSIVE_PING_MESSAGES] = {"round trip of messages, asleep", PASSIVE_PING_MESSAGES},
	[PASSIVE_PING_MEMORY] = {"round trip of writes, memory", PASSIVE_PING_MESSAGES},
};

static int compare_counts(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of all seconds: the median, and the least. */
static uint64_t middle(const struct passive_row *row, uint64_t *least)
{
	uint64_t sorted[PASSIVE_SECONDS];

	memcpy(sorted, row->done, row->seconds * sizeof(sorted[0]));
	qsort(sorted, row->seconds, sizeof(sorted[0]), compare_counts);
	*least = sorted[0];
	return sorted[row->seconds / 2];
}

static void add_passive(struct report *report, const struct passive_row *row, uint64_t median,
                        double ratio)
{
	json_t *seconds = json_array();
	json_t *object;

	for (unsigned i = 0; seconds != NULL && i < row->seconds; i++)
		(void)json_array_append_new(seconds, json_integer((json_int_t)row->done[i]));
	object = json_pack("{ss ss ss ss sI sf so}", "provider", report->plan->uris[0], "test",
	                   "write", "mode", "passive", "kind", passive_names[row->kind].name,
	                   "median", (json_int_t)median, "ratio", ratio, "seconds", seconds);
	if (object == NULL || json_array_append_new(report->rows, object) != 0)
		lane_die("no memory", "for the report");
}

void report_passive(struct report *report, const struct passive_row *rows, unsigned which)
{
	const struct passive_row *row = &rows[which];
	const struct passive_name *name = &passive_names[row->kind];
	FILE *to = report->rows != NULL ? stderr : stdout;
	uint64_t least;
	uint64_t beside;
	uint64_t median;
	double ratio;

	beside = middle(&rows[name->beside], &least);
	median = middle(row, &least);
	ratio = beside > 0 ? (double)median / (double)beside : 0;
	if (report->rows != NULL)
		add_passive(report, row, median, ratio);
	if (which == 0)
		(void)fprintf(to, "\n%-34s %9s %9s %9s %9s %6s %9s\n", "in a second", "first",
		              "least", "last", "median", "ratio", "us each");
	(void)fprintf(to, "%-34s %9llu %9llu %9llu %9llu %6.2f %9.1f\n", name->name,
	              (unsigned long long)row->done[0], (unsigned long long)least,
	              (unsigned long long)row->done[row->seconds - 1], (unsigned long long)median,
	              ratio, median > 0 ? 1e6 / (double)median : 0.0);
	(void)fflush(to);
}

bool report_end(struct report *report)
{
	bool ok = true;

	if (report->rows != NULL) {
		/* One row a line, so that versions can be compared. */
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
	return fflush(stdout) == 0 && ferror(stdout) == 0 && ok;
}
