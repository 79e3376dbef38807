/* SPDX-License-Identifier: BSD-2-Clause */
/* The plot: latency and bandwidth over the size of a message, a line for each operation. */
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_plot.h"

/* The points of one line, from `next`; returns where the next line begins. */
static struct sample_point *make_line(const struct plot_point *points, unsigned count,
                                      enum perf_kind kind, unsigned op, struct sample_point *next,
                                      struct sample_line *line)
{
	line->name = perf_op_name((enum perf_op)op);
	line->points = next;
	for (unsigned i = 0; i < count; i++) {
		if (points[i].kind == kind && strcmp(points[i].name, line->name) == 0) {
			next->x = points[i].x;
			next->y = points[i].y;
			next++;
		}
	}
	line->count = (size_t)(next - line->points);
	return next;
}

int plot_write(const char *program, const char *path, const struct plot_point *points,
               unsigned count)
{
	static const char *const titles[PERF_KINDS] = {
		[PERF_LATENCY] = "Latency, median (us)",
		[PERF_BANDWIDTH] = "Bandwidth (Gbit/s)",
	};
	struct sample_line lines[PERF_KINDS][PERF_OPS];
	struct sample_panel panels[PERF_KINDS];
	struct sample_point *sorted = calloc((size_t)count + 1, sizeof(*sorted));
	struct sample_point *next = sorted;
	int rc;

	if (sorted == NULL)
		return sample_error(program, "no memory for the plot");
	for (unsigned kind = 0; kind < PERF_KINDS; kind++) {
		for (unsigned op = 0; op < PERF_OPS; op++)
			next = make_line(points, count, (enum perf_kind)kind, op, next,
			                 &lines[kind][op]);
		panels[kind] = (struct sample_panel){.title = titles[kind],
		                                     .x_title = "bytes",
		                                     .x = SAMPLE_AXIS_BYTES,
		                                     .lines = lines[kind],
		                                     .count = PERF_OPS};
	}
	rc = sample_plot_write(program, path, panels, PERF_KINDS);
	free(sorted);
	return rc;
}
