/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-perf compare: what NDX costs above the library below it. */
#include <stdio.h>
#include <stdlib.h>

#include "lane.h"
#include "measure.h"
#include "options.h"
#include "passive.h"
#include "report.h"
#include "sample_options.h"
#include "sample_progress.h"
#include "sample_stop.h"

void lane_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-perf-compare: %s: %s\n", what, why);
	/* Not exit(): other threads are still at work. */
	_Exit(1);
}

static struct measure_plan plan_of(const struct options *options)
{
	struct measure_plan plan = {
		.uris = {options->uris[0], options->uris[1]},
		.blocks = options->blocks,
		.block_ms = options->block_ms,
		.warm_up_ms = options->warm_up_ms,
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
	unsigned planned, done; /* rows */
	struct sample_progress progress;
};

/* A signal came: what was measured so far. The lock of sample_stop is held. */
static void tell_so_far(void *arg)
{
	struct cursor *c = arg;

	sample_progress_wipe(&c->progress);
	if (c->report != NULL)
		(void)report_end(c->report);
	(void)fprintf(stderr, "ended by a signal after %u of %u rows\n", c->done, c->planned);
}

static void add_row(struct cursor *c)
{
	sample_stop_lock();
	sample_progress_wipe(&c->progress);
	report_row(c->report, &c->row);
	c->undecided += measure_is_undecided(&c->row);
	c->done++;
	sample_progress_show(&c->progress, c->done);
	sample_stop_unlock();
}

static void measure_sizes(struct cursor *c)
{
	for (unsigned d = 0; d < c->options->depth_count; d++) {
		for (unsigned s = 0; s < c->options->size_count; s++) {
			c->row.size = c->options->sizes[s];
			c->row.depth = c->options->depths[d];
			measure_run(c->plan, c->traffic, &c->row);
			add_row(c);
		}
	}
}

/* With `count`, only count the rows. */
static void measure_all(struct cursor *c, bool count)
{
	for (int test = 0; test < TRAFFIC_TESTS; test++) {
		for (int mode = 0; mode < 2; mode++) {
			c->row.test = (enum traffic_test)test;
			c->row.wait = mode == 1;
			/* The arrival of a write is not reported. */
			if (c->row.wait && c->row.test == TRAFFIC_WRITE)
				continue;
			if (!c->options->test[test] || !c->options->mode[mode])
				continue;
			if (count)
				c->planned += c->options->depth_count * c->options->size_count;
			else
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
	/* Before there are threads, which would die by the signals. */
	if (sample_stop_with("ndx-perf compare", tell_so_far, &cursor) != SAMPLE_EXIT_OK)
		return SAMPLE_EXIT_FAILED;
	srandom(options.seed);
	if (options.threads == 1)
		options.mode[1] = false;
	plan = plan_of(&options);
	(void)fprintf(stderr, "seed %u, %u blocks of %u ms after %u ms\n", options.seed,
	              plan.blocks, plan.block_ms, plan.warm_up_ms);
	cursor.traffic = traffic_start(options.threads);
	sample_stop_lock();
	cursor.report = report_begin(&plan, options.json);
	measure_all(&cursor, true);
	sample_progress_begin(&cursor.progress, "ndx-perf compare", "rows",
	                      cursor.planned > 0 ? cursor.planned : 1, true);
	sample_stop_unlock();
	measure_all(&cursor, false);
	sample_stop_lock();
	sample_progress_wipe(&cursor.progress);
	sample_stop_unlock();
	if (options.passive)
		measure_passive(&cursor);
	sample_stop_lock(); /* for good: a signal has nothing left to tell */
	traffic_stop(cursor.traffic);
	if (cursor.undecided > 0)
		(void)fprintf(stderr, "%u rows are undecided: the machine was not quiet enough\n",
		              cursor.undecided);
	if (report_end(cursor.report))
		return SAMPLE_EXIT_OK;
	(void)fprintf(stderr, "ndx-perf compare: stdout cannot be written\n");
	return SAMPLE_EXIT_FAILED;
}
