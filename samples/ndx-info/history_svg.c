/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lives of connections as a picture. A row for each transition, all of the same height, so that
 * no texts overlap however short the time between them; a line leads from each row to the place of
 * its time on a scale at the left, which is linear. Sides, states and failures differ in form, not
 * in colour.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "history.h"
#include "sample_svg.h"

#define WIDTH 1080.0
#define SCALE 86.0   /* x of the linear scale */
#define ROWS 150.0   /* x at which the lines from it end */
#define ACTIVE 625.0 /* x of the two lanes */
#define PASSIVE 700.0
#define ALONE 275.0 /* x of the lane if there is one */
#define GAP 12.0    /* between a lane and its texts */
#define LINE 14.0   /* height of a line of text */
#define ROW 24.0    /* height of a row with one line */
#define COLUMNS 46u /* of a text beside a lane */
#define WIDE 110u   /* of a text beside the only lane */
#define HEAD 26.0   /* of a connection: for its title */
#define FOOT 40.0
#define LEGEND 34.0

/* One connection's place in the picture. */
struct canvas {
	FILE *out;
	const struct history_life *life;
	double top; /* of the rows */
	double bottom;
	bool both;
	double lanes[2];
};

static size_t columns(const struct canvas *c)
{
	return c->both ? COLUMNS : WIDE;
}

/* Lines of the cause of a row. */
static size_t cause_lines(const struct canvas *c, const struct history_row *row)
{
	char text[512];
	const char *rest = history_cause(row->entry, text, sizeof(text)), *line;
	size_t count = 0;

	while (history_fold(&rest, columns(c), &line) > 0)
		count++;
	return count;
}

static double row_height(const struct canvas *c, const struct history_row *row)
{
	return ROW + LINE * (double)cause_lines(c, row);
}

static double rows_height(const struct canvas *c)
{
	double height = 0;

	for (size_t i = 0; i < c->life->count; i++)
		height += row_height(c, &c->life->rows[i]);
	return height;
}

/* ---- the head of a connection ---- */

/* Lines of the head, which are also drawn if there is a canvas to draw on. */
static size_t head_line(FILE *out, double top, size_t line, const char *more, const char *text)
{
	if (out != NULL)
		sample_svg_text(out, 20, top + HEAD + LINE * 1.25 * (double)line, more, text);
	return line + 1;
}

static size_t folded_lines(FILE *out, double top, size_t line, const char *more, const char *text)
{
	const char *begin;
	char copy[160];
	size_t length;

	while ((length = history_fold(&text, 140, &begin)) > 0) {
		(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, begin);
		line = head_line(out, top, line, more, copy);
	}
	return line;
}

static size_t side_line(FILE *out, double top, size_t line, const struct history_side *side)
{
	char text[400], name[64], local[64], peer[64], state[32], reason[32], file[64];
	int used;

	used = snprintf(
		text, sizeof(text), "%s side: %s, %s -> %s, %s",
		side->passive ? "passive" : "active", history_name(side, name, sizeof(name)),
		side->local != NULL ? history_clean(side->local, local, sizeof(local)) : "?",
		side->peer != NULL ? history_clean(side->peer, peer, sizeof(peer)) : "?",
		side->state != NULL ? history_clean(side->state, state, sizeof(state))
				    : "failed, and closed");
	if (side->reason != NULL && used > 0)
		used += snprintf(text + used, sizeof(text) - (size_t)used, ", end: %s",
		                 history_clean(side->reason, reason, sizeof(reason)));
	if (side->dropped > 0 && used > 0)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
		                 "; %" PRIu64 " transitions before are not in the file",
		                 side->dropped);
	if (used > 0)
		(void)snprintf(text + used, sizeof(text) - (size_t)used, "; in %s",
		               history_clean(side->file, file, sizeof(file)));
	return folded_lines(out, top, line, line == 0 ? "font-weight=\"bold\"" : "", text);
}

static double draw_head(FILE *out, double top, const struct history_life *life)
{
	char text[512], state[24], event[24];
	size_t line = 0;

	for (unsigned s = 0; s < 2; s++) {
		if (life->sides[s] != NULL)
			line = side_line(out, top, line, life->sides[s]);
	}
	if (life->fatal != SIZE_MAX) {
		const struct history_entry *e = life->rows[life->fatal].entry;
		const char *meaning = history_meaning(e);

		(void)snprintf(text, sizeof(text),
		               "Ended badly at the %s side, in state %s, by %s%s%s.",
		               life->rows[life->fatal].side == 0 ? "active" : "passive",
		               history_clean(e->from, state, sizeof(state)),
		               history_clean(e->event, event, sizeof(event)),
		               meaning[0] != '\0' ? ": " : "", meaning);
		line = folded_lines(out, top, line, "", text);
	}
	line = folded_lines(out, top, line, "font-style=\"italic\"",
	                    history_remark(life, text, sizeof(text)));
	return HEAD + LINE * 1.25 * (double)line + 30;
}

/* ---- the linear scale ---- */

struct unit {
	const char *name;
	double ns;
};

static struct unit unit_of(double span)
{
	static const struct unit units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t i = 0;

	while (i < 2 && span >= 10 * units[i + 1].ns)
		i++;
	return units[i];
}

static double place(const struct canvas *c, int64_t at_ns)
{
	const int64_t span = c->life->rows[c->life->count - 1].at_ns;

	return c->top + (span > 0 ? (c->bottom - c->top) * ((double)at_ns / (double)span) : 0);
}

static void draw_scale(const struct canvas *c)
{
	const double span = (double)c->life->rows[c->life->count - 1].at_ns;
	const struct unit unit = unit_of(span);
	const double wanted = span / unit.ns / fmax(1, (c->bottom - c->top) / 40);
	double step = pow(10, floor(log10(fmax(wanted, 1e-3))));
	char text[48];

	step *= wanted <= step ? 1 : wanted <= 2 * step ? 2 : wanted <= 5 * step ? 5 : 10;
	(void)snprintf(text, sizeof(text), "time (%s)", unit.name);
	sample_svg_text(c->out, SCALE - 66, c->top - 16, "", text);
	fprintf(c->out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"black\"/>\n", SCALE, c->top,
	        c->bottom);
	for (unsigned i = 0; i * step * unit.ns <= span; i++) {
		const double at = i * step, y = place(c, (int64_t)(at * unit.ns));

		fprintf(c->out, "<path d=\"M%.1f %.1fh-6\" stroke=\"black\"/>\n", SCALE, y);
		(void)snprintf(text, sizeof(text), "%.10g", at);
		sample_svg_text(c->out, SCALE - 9, y + 4, "text-anchor=\"end\"", text);
		if (span <= 0)
			break;
	}
}

/* ---- rows and lanes ---- */

static bool is_over(const char *state)
{
	return strncmp(state, "CLOSED_", 7) == 0 || strcmp(state, "FAILED") == 0;
}

/* Of a lane between two of its transitions. */
static void draw_stretch(const struct canvas *c, unsigned side, double from, double to,
                         const char *state)
{
	const bool up = strcmp(state, "UP") == 0;

	if (is_over(state))
		return;
	fprintf(c->out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"black\" stroke-width=\"%d\"%s/>\n",
	        c->lanes[side], from, to, up ? 5 : 1, up ? "" : " stroke-dasharray=\"4 3\"");
}

/* The active side's are round, the passive side's square; a bad one is crossed. */
static void draw_mark(const struct canvas *c, unsigned side, double y, bool bad)
{
	const double x = c->lanes[side], r = bad ? 7 : 5;

	if (side == 0)
		fprintf(c->out,
		        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\" fill=\"%s\" "
		        "stroke=\"black\"/>\n",
		        x, y, r, bad ? "white" : "black");
	else
		fprintf(c->out,
		        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" fill=\"white\" "
		        "stroke=\"black\" stroke-width=\"%d\"/>\n",
		        x - r, y - r, 2 * r, 2 * r, bad ? 1 : 2);
	if (bad)
		fprintf(c->out,
		        "<path d=\"M%.1f %.1fl10 10m0 -10l-10 10\" stroke=\"black\" "
		        "stroke-width=\"2.5\"/>\n",
		        x - 5, y - 5);
}

static void draw_row(const struct canvas *c, const struct history_row *row, double y)
{
	const bool left = c->both && row->side == 0, bad = history_is_bad(row->entry);
	const double x = c->lanes[row->side] + (left ? -GAP : GAP);
	const double on_scale = place(c, row->at_ns);
	char text[512], copy[160], more[80];
	const char *rest, *line;
	size_t length;

	fprintf(c->out,
	        "<path d=\"M%.1f %.1fL%.1f %.1fh8\" fill=\"none\" stroke=\"#888\"/>"
	        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n",
	        SCALE, on_scale, ROWS - 8, y, SCALE, on_scale);
	if (row->at_ns < 100000000000)
		(void)snprintf(text, sizeof(text), "%.3f ms", (double)row->at_ns / 1e6);
	else
		(void)snprintf(text, sizeof(text), "%.6f s", (double)row->at_ns / 1e9);
	sample_svg_text(c->out, ROWS + 3, y + 4, "", text);
	(void)snprintf(more, sizeof(more), "text-anchor=\"%s\"%s", left ? "end" : "start",
	               bad ? " font-weight=\"bold\"" : "");
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)columns(c),
	               history_transition(row->entry, text, sizeof(text)));
	sample_svg_text(c->out, x, y + 4, more, copy);
	(void)snprintf(more, sizeof(more), "text-anchor=\"%s\" font-size=\"11\"",
	               left ? "end" : "start");
	rest = history_cause(row->entry, text, sizeof(text));
	while ((length = history_fold(&rest, columns(c), &line)) > 0) {
		(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, line);
		y += LINE;
		sample_svg_text(c->out, x, y + 4, more, copy);
	}
}

/* A message, from the lane of the one side to that of the other. */
static void draw_arrow(const struct canvas *c, unsigned to, double from_y, double to_y)
{
	const double sign = to == 1 ? 1 : -1;
	const double x0 = c->lanes[to == 1 ? 0 : 1] + 9 * sign, x1 = c->lanes[to] - 9 * sign;
	const double length = hypot(x1 - x0, to_y - from_y);
	const double dx = (x1 - x0) / length, dy = (to_y - from_y) / length;

	fprintf(c->out,
	        "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"black\"/>"
	        "<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fz\"/>\n",
	        x0, from_y, x1, to_y, x1, to_y, x1 - 9 * dx + 4 * dy, to_y - 9 * dy - 4 * dx,
	        x1 - 9 * dx - 4 * dy, to_y - 9 * dy + 4 * dx);
}

static double row_y(const struct canvas *c, size_t index)
{
	double y = c->top;

	for (size_t i = 0; i < index; i++)
		y += row_height(c, &c->life->rows[i]);
	return y;
}

/* The lanes first, and the marks last, so that the marks lie above. */
static void draw_rows(const struct canvas *c)
{
	const struct history_life *life = c->life;
	const char *states[2] = {NULL, NULL};
	double since[2] = {0, 0}, y = c->top;

	for (size_t i = 0; i < life->count; i++) {
		const struct history_row *row = &life->rows[i];

		if (states[row->side] != NULL)
			draw_stretch(c, row->side, since[row->side], y, states[row->side]);
		states[row->side] = row->entry->to;
		since[row->side] = y;
		draw_row(c, row, y);
		if (row->from != SIZE_MAX)
			draw_arrow(c, row->side, row_y(c, row->from), y);
		y += row_height(c, row);
	}
	for (unsigned s = 0; s < 2; s++) {
		if (states[s] != NULL)
			draw_stretch(c, s, since[s], c->bottom + 12, states[s]);
	}
	y = c->top;
	for (size_t i = 0; i < life->count; i++) {
		draw_mark(c, life->rows[i].side, y, history_is_bad(life->rows[i].entry));
		y += row_height(c, &life->rows[i]);
	}
}

static struct canvas canvas_of(FILE *out, const struct history_life *life, double top)
{
	struct canvas c = {.out = out, .life = life};

	c.both = life->sides[0] != NULL && life->sides[1] != NULL;
	c.lanes[0] = c.both ? ACTIVE : ALONE;
	c.lanes[1] = c.both ? PASSIVE : ALONE;
	c.top = top + draw_head(NULL, top, life);
	c.bottom = c.top + rows_height(&c) - row_height(&c, &life->rows[life->count - 1]);
	return c;
}

static double life_height(const struct history_life *life)
{
	const struct canvas c = canvas_of(NULL, life, 0);

	return c.bottom + row_height(&c, &life->rows[life->count - 1]) + FOOT;
}

static void draw_life(FILE *out, const struct history_life *life, double top)
{
	const struct canvas c = canvas_of(out, life, top);

	(void)draw_head(out, top, life);
	for (unsigned s = 0; s < 2; s++) {
		if (life->sides[s] != NULL)
			sample_svg_text(out, c.lanes[s], c.top - 16, "text-anchor=\"middle\"",
			                s == 0 ? "active" : "passive");
	}
	draw_scale(&c);
	draw_rows(&c);
}

void history_draw(FILE *out, const struct history_life *lives, size_t count)
{
	double height = LEGEND, top = 0;

	for (size_t i = 0; i < count; i++)
		height += life_height(&lives[i]);
	sample_svg_begin(out, WIDTH, height, "monospace");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			fprintf(out, "<path d=\"M20 %.1fh%.0f\" stroke=\"black\"/>\n", top,
			        WIDTH - 40);
		draw_life(out, &lives[i], top);
		top += life_height(&lives[i]);
	}
	sample_svg_text(
		out, 20, height - 14, "font-size=\"11\"",
		"thick line: established (UP); dashed: connecting or ending; crossed: failed; "
		"arrow: a message. Rows are in order; the scale at the left is linear.");
}
