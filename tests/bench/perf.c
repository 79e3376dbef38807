/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-perf: what NDX costs above the library below it. */
#include <stdio.h>
#include <stdlib.h>

#include "lane.h"
#include "measure.h"
#include "options.h"
#include "passive.h"
#include "report.h"

void lane_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-perf: %s: %s\n", what, why);
	/* Not exit(): other threads are still at work. */
	_Exit(1);
}

static struct measure_plan plan_of(const struct options *options)
{
	struct measure_plan plan = {
		.uris = {options->uris[0], options->uris[1]},
		.blocks = options->blocks,
		.block_ms = options->block_ms,
		.tries = options->tries,
		.deadline_ns = traffic_now_ns() + options->seconds * UINT64_C(1000000000),
	};

	for (unsigned k = 0; k < LANE_BESIDES; k++)
		plan.beside[k] = options->beside[k];
	if (plan.beside[LANE_UCX] && !lane_has_ucx())
		lane_die("--beside ucx", "built without UCX");
	lane_describe(plan.uris, &plan.below);
	if ((plan.below.stack == LANE_OFI && !lane_has_raw()) ||
	    (plan.below.stack == LANE_VERBS && !lane_has_verbs()))
		plan.below.stack = LANE_NOTHING;
	return plan;
}

struct cursor {
	const struct options *options;
	const struct measure_plan *plan;
	struct traffic *traffic;
	struct report *report;
	struct measure_row row;
	unsigned undecided;
};

static void measure_sizes(struct cursor *c)
{
	for (unsigned d = 0; d < c->options->depth_count; d++) {
		for (unsigned s = 0; s < c->options->size_count; s++) {
			c->row.size = c->options->sizes[s];
			c->row.depth = c->options->depths[d];
			measure_run(c->plan, c->traffic, &c->row);
			report_row(c->report, &c->row);
			c->undecided += measure_is_undecided(&c->row);
		}
	}
}

static void measure_all(struct cursor *c)
{
	for (int test = 0; test < TRAFFIC_TESTS; test++) {
		for (int mode = 0; mode < 2; mode++) {
			c->row.test = (enum traffic_test)test;
			c->row.wait = mode == 1;
			/* The arrival of a write is not reported. */
			if (c->row.wait && c->row.test == TRAFFIC_WRITE)
				continue;
			if (c->options->test[test] && c->options->mode[mode])
				measure_sizes(c);
		}
	}
}

static void measure_passive(const struct cursor *c)
{
	struct passive_row rows[PASSIVE_KINDS];

	for (unsigned kind = 0; kind < PASSIVE_KINDS; kind++) {
		rows[kind].kind = (enum passive_kind)kind;
		rows[kind].seconds = c->options->passive_seconds;
		passive_run(c->options->uris, &rows[kind]);
		report_passive(c->report, rows, kind);
	}
}

int main(int argc, char **argv)
{
	struct options options;
	struct measure_plan plan;
	struct cursor cursor = {.options = &options, .plan = &plan};
	const int over = options_read(argc, argv, &options);

	if (over != 0)
		return over - 1;
	srandom(options.seed);
	if (options.threads == 1)
		options.mode[1] = false;
	plan = plan_of(&options);
	(void)fprintf(stderr, "seed %u, %u blocks of %u ms\n", options.seed, plan.blocks,
	              plan.block_ms);
	cursor.traffic = traffic_start(options.threads);
	cursor.report = report_begin(&plan, options.json);
	measure_all(&cursor);
	if (options.passive)
		measure_passive(&cursor);
	traffic_stop(cursor.traffic);
	if (cursor.undecided > 0)
		(void)fprintf(stderr, "%u rows are undecided: the machine was not quiet enough\n",
		              cursor.undecided);
	return report_end(cursor.report) ? 0 : 1;
}
