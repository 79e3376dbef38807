/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"

static json_t *number(uint64_t value, bool known)
{
	return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *tally_json(const struct row *row)
{
	const struct tally *t = &row->tally;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "disconnects",
		number(t->connections, true), "posted", number(t->posted, true), "completed",
		number(t->completed, true), "delivered", number(t->delivered, true), "lost",
		number(t->lost, true), "cut_off", number(t->cut_off, true), "doubled",
		number(t->doubled, true), "late", number(t->late, !row->raw), "no_result",
		number(t->unanswered, true), "corrupt", number(t->corrupt, true), "failed",
		number(t->failed, !row->raw), "microseconds", number(t->microseconds, true));
}

static json_t *timing_json(const struct timing *t, enum kind kind)
{
	if (t->skipped)
		return json_pack("{s:s, s:s}", "peer", kind_name(kind), "skipped", t->skipped);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "peer", kind_name(kind), "count",
	                 number(t->count, true), "succeeded", number(t->succeeded, true), "p50_us",
	                 number(t->p50, true), "p99_us", number(t->p99, true), "max_us",
	                 number(t->max, true));
}

static json_t *row_json(const struct row *row)
{
	json_t *times = json_array();

	for (unsigned kind = 0; kind < KINDS && !row->raw; kind++)
		(void)json_array_append_new(times,
		                            timing_json(&row->timings[kind], (enum kind)kind));
	return json_pack("{s:s, s:b, s:o, s:o}", "name", row->name, "raw", row->raw, "account",
	                 tally_json(row), "times", times);
}

bool report_json(const struct row *rows, size_t count, const struct options *o)
{
	json_t *list = json_array();
	json_t *root;
	bool written = false;

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, row_json(&rows[i]));
	root = json_pack("{s:o, s:o}", "seed", number(o->seed, true), "rows", list);
	if (root && strcmp(o->json, "-") == 0)
		written = json_dumpf(root, stdout, JSON_INDENT(1)) == 0 && putchar('\n') == '\n';
	else if (root)
		written = json_dump_file(root, o->json, JSON_INDENT(1)) == 0;
	json_decref(root);
	if (!written)
		(void)fprintf(stderr, "ndx-disconnect-figures: cannot write %s\n", o->json);
	return written;
}
