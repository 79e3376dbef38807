/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_plot.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sample_options.h"
#include "sample_svg.h"

#define WIDTH 520.0 /* of the area of a panel */
#define HEIGHT 320.0
#define LEFT 80.0
#define TOP 50.0
#define PANEL 460.0 /* from the top of one panel to the next */
#define MARKED 64u  /* points of a line that are marked; more would run into each other */

static const struct {
	const char *colour, *dashes;
} styles[] = {{"#1f4e79", ""}, {"#b00000", "9 4"}, {"#1a7f37", "3 3"}, {"#6a3d9a", "10 3 2 3"}};

#define STYLES (sizeof(styles) / sizeof(styles[0]))

/* What an axis shows: whole powers of its base. */
struct axis {
	enum sample_axis kind;
	double base;
	int low, high; /* exponents */
};

static struct axis axis_of(enum sample_axis kind, double least, double most)
{
	struct axis axis = {.kind = kind, .base = kind == SAMPLE_AXIS_BYTES ? 2 : 10};

	axis.low = (int)floor(log(least) / log(axis.base) + 1e-9);
	axis.high = (int)ceil(log(most) / log(axis.base) - 1e-9);
	if (axis.high <= axis.low)
		axis.high = axis.low + 1;
	return axis;
}

/* 0 .. 1 */
static double place(const struct axis *axis, double value)
{
	return (log(value) / log(axis->base) - axis->low) / (axis->high - axis->low);
}

static void value_text(const struct axis *axis, double value, char *text, size_t room)
{
	if (axis->kind == SAMPLE_AXIS_NINES)
		(void)snprintf(text, room, "%.10g %%", 100 - 100 / value);
	else if (axis->kind == SAMPLE_AXIS_BYTES && value >= 1048576)
		(void)snprintf(text, room, "%.0fMi", value / 1048576);
	else if (axis->kind == SAMPLE_AXIS_BYTES && value >= 1024)
		(void)snprintf(text, room, "%.0fKi", value / 1024);
	else
		(void)snprintf(text, room, "%g", value);
}

static void x_tick(FILE *out, const struct axis *x, double value, double top)
{
	const double at = LEFT + WIDTH * place(x, value);
	char text[32];

	value_text(x, value, text, sizeof(text));
	fprintf(out, "<path d=\"M%.1f %.1fv%.1f\" stroke=\"#ddd\"/>\n", at, top, HEIGHT);
	sample_svg_text(out, at, top + HEIGHT + 18, "text-anchor=\"middle\"", text);
}

static void y_tick(FILE *out, const struct axis *y, double value, double top)
{
	const double at = top + HEIGHT * (1 - place(y, value));
	char text[32];

	value_text(y, value, text, sizeof(text));
	fprintf(out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#ddd\"/>\n", LEFT, at, WIDTH);
	sample_svg_text(out, LEFT - 6, at + 4, "text-anchor=\"end\"", text);
}

/* Powers of the base; of few powers of 10 also their 2- and 5-fold. */
static void ticks(FILE *out, const struct axis *axis, double top,
                  void (*tick)(FILE *, const struct axis *, double, double))
{
	const int powers = axis->high - axis->low;
	const bool between = axis->kind == SAMPLE_AXIS_NUMBER && powers <= 3;
	const int step = (powers + 11) / 12;

	for (int e = axis->low; e <= axis->high; e += step) {
		const double value = pow(axis->base, e);

		tick(out, axis, value, top);
		if (between && e < axis->high) {
			tick(out, axis, 2 * value, top);
			tick(out, axis, 5 * value, top);
		}
	}
}

static void draw_frame(FILE *out, const struct sample_panel *panel, const struct axis *x,
                       const struct axis *y, double top)
{
	sample_svg_text(out, LEFT, top - 16, "font-weight=\"bold\"", panel->title);
	fprintf(out,
	        "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" "
	        "stroke=\"#444\"/>\n",
	        LEFT, top, WIDTH, HEIGHT);
	ticks(out, x, top, x_tick);
	ticks(out, y, top, y_tick);
	sample_svg_text(out, LEFT + WIDTH / 2, top + HEIGHT + 36, "text-anchor=\"middle\"",
	                panel->x_title);
}

/* A circle, a square, a triangle, or a diamond. */
static void draw_mark(FILE *out, size_t style, double x, double y)
{
	static const char *const marks[STYLES] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
	                                          "m-3.5 -3.5h7v7h-7z", "m0 -4.5l4.5 8h-9z",
	                                          "m0 -5l5 5l-5 5l-5 -5z"};

	fprintf(out, "<path d=\"M%.1f %.1f%s\" fill=\"%s\" stroke=\"%s\"/>\n", x, y, marks[style],
	        style % 2 == 0 ? styles[style].colour : "white", styles[style].colour);
}

static bool is_shown(const struct sample_point *point)
{
	return point->x > 0 && point->y > 0 && isfinite(point->x) && isfinite(point->y);
}

static void draw_path(FILE *out, size_t style)
{
	fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"", styles[style].colour);
	if (styles[style].dashes[0] != '\0')
		fprintf(out, " stroke-dasharray=\"%s\"", styles[style].dashes);
	fputs(" d=\"", out);
}

/* A line, and beside the panel its name. */
static void draw_line(FILE *out, const struct sample_line *line, size_t index, const struct axis *x,
                      const struct axis *y, double top)
{
	const size_t style = index % STYLES;
	const double legend = top + 12 + 20 * (double)index;
	size_t shown = 0;

	for (size_t i = 0; i < line->count; i++) {
		if (!is_shown(&line->points[i]))
			continue;
		if (shown == 0)
			draw_path(out, style);
		fprintf(out, "%c%.1f %.1f ", shown++ == 0 ? 'M' : 'L',
		        LEFT + WIDTH * place(x, line->points[i].x),
		        top + HEIGHT * (1 - place(y, line->points[i].y)));
	}
	if (shown == 0)
		return;
	fputs("\"/>\n", out);
	for (size_t i = 0; i < line->count && shown <= MARKED; i++) {
		if (is_shown(&line->points[i]))
			draw_mark(out, style, LEFT + WIDTH * place(x, line->points[i].x),
			          top + HEIGHT * (1 - place(y, line->points[i].y)));
	}
	if (line->name == NULL)
		return;
	draw_path(out, style);
	fprintf(out, "M%.1f %.1fh36\"/>\n", LEFT + WIDTH + 10, legend);
	if (shown <= MARKED)
		draw_mark(out, style, LEFT + WIDTH + 28, legend);
	sample_svg_text(out, LEFT + WIDTH + 52, legend + 4, "", line->name);
}

/* False: there is nothing to be shown. */
static bool draw_panel(FILE *out, const struct sample_panel *panel, double top)
{
	double least[2] = {INFINITY, INFINITY}, most[2] = {0, 0};
	struct axis x, y;

	for (size_t l = 0; l < panel->count; l++) {
		for (size_t i = 0; i < panel->lines[l].count; i++) {
			const struct sample_point *point = &panel->lines[l].points[i];

			if (!is_shown(point))
				continue;
			least[0] = fmin(least[0], point->x);
			most[0] = fmax(most[0], point->x);
			least[1] = fmin(least[1], point->y);
			most[1] = fmax(most[1], point->y);
		}
	}
	if (most[0] <= 0)
		return false;
	x = axis_of(panel->x, least[0], most[0]);
	y = axis_of(SAMPLE_AXIS_NUMBER, least[1], most[1]);
	draw_frame(out, panel, &x, &y, top);
	for (size_t l = 0; l < panel->count; l++)
		draw_line(out, &panel->lines[l], l, &x, &y, top);
	return true;
}

int sample_plot_write(const char *program, const char *path, const struct sample_panel *panels,
                      size_t count)
{
	double top = TOP;
	FILE *out;
	int rc = sample_svg_open(program, path, &out);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	sample_svg_begin(out, 740, (double)count * PANEL, "sans-serif");
	for (size_t i = 0; i < count; i++) {
		if (draw_panel(out, &panels[i], top))
			top += PANEL;
	}
	return sample_svg_close(program, path, out, rc);
}
