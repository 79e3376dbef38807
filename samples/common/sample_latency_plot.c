/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of durations as a picture; apart, as it needs the mathematics library. */
#include <stdio.h>
#include <stdlib.h>

#include "sample_latency.h"
#include "sample_options.h"
#include "sample_plot.h"

#define STEPS ((size_t)64 * SAMPLE_LATENCY_STEPS)

/* The last point of `shares` is the maximum, which no share is beyond. */
static size_t make_points(const struct sample_latency *latency, struct sample_point *counts,
                          struct sample_point *shares)
{
	uint64_t ns, count, seen = 0;
	unsigned bucket = 0;
	size_t n = 0;

	while (n < STEPS && sample_latency_next(latency, &bucket, &ns, &count)) {
		seen += count;
		counts[n].x = (double)ns / 1e3;
		counts[n].y = (double)count;
		shares[n].x = (double)latency->count /
		              (seen < latency->count ? (double)(latency->count - seen) : 1.0);
		shares[n].y = (double)ns / 1e3;
		n++;
	}
	return n;
}

int sample_latency_plot(const char *program, const char *path, const char *title,
                        const struct sample_latency *latency)
{
	struct sample_point *points = calloc(2 * STEPS, sizeof(*points));
	struct sample_line lines[2] = {{.points = points}, {.points = points + STEPS}};
	char titles[2][128];
	int rc;

	if (points == NULL) {
		fprintf(stderr, "%s: no memory for the plot\n", program);
		return SAMPLE_EXIT_FAILED;
	}
	lines[0].count = lines[1].count = make_points(latency, points, points + STEPS);
	(void)snprintf(titles[0], sizeof(titles[0]), "%s: how many took how long", title);
	(void)snprintf(titles[1], sizeof(titles[1]), "%s: time that a share stays below (us)",
	               title);
	const struct sample_panel panels[] = {
		{.title = titles[0], .x_title = "us", .lines = &lines[0], .count = 1},
		{.title = titles[1],
	         .x_title = "share",
	         .x = SAMPLE_AXIS_NINES,
	         .lines = &lines[1],
	         .count = 1},
	};
	rc = sample_plot_write(program, path, panels, 2);
	free(points);
	return rc;
}
