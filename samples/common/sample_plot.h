/* SPDX-License-Identifier: BSD-2-Clause */
/* Plots of lines: panels below each other. Lines differ in dashes and marks, not only in colour. */
#ifndef SAMPLE_PLOT_H
#define SAMPLE_PLOT_H

#include <stddef.h>

/** What an axis shows. All are logarithmic. */
enum sample_axis {
	SAMPLE_AXIS_NUMBER, /**< whole powers of 10 */
	SAMPLE_AXIS_BYTES,  /**< whole powers of 2, as 64, 1Ki, 1Mi */
	SAMPLE_AXIS_NINES,  /**< values are 1 / (1 - share), labels are 0 %, 90 %, 99 % ... */
};

struct sample_point {
	double x, y; /**< above 0; other points are left out */
};

/** A line; its points in the order of x. */
struct sample_line {
	const char *name; /**< NULL: none is shown */
	const struct sample_point *points;
	size_t count;
};

struct sample_panel {
	const char *title, *x_title;
	enum sample_axis x;
	const struct sample_line *lines;
	size_t count; /**< lines beyond 4 look like the first ones again */
};

/**
 * Write an SVG. Panels without a point are left out.
 *
 * @param path  a file, or "-": stdout
 * @return an enum sample_exit; a failure was printed
 */
int sample_plot_write(const char *program, const char *path, const struct sample_panel *panels,
                      size_t count);

#endif
