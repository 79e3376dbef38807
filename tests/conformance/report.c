/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing verdicts. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

bool report_begin(struct report *r, FILE *tap, size_t planned)
{
	memset(r, 0, sizeof(*r));
	r->tap = tap;
	r->planned = planned;
	r->verdicts = calloc(planned ? planned : 1, sizeof(*r->verdicts));
	if (!r->verdicts)
		return false;
	(void)fprintf(tap, "TAP version 13\n1..%zu\n", planned);
	return true;
}

void report_note(struct report *r, const char *fmt, ...)
{
	char text[4096];
	va_list args;
	char *rest = NULL;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		(void)fprintf(r->tap, "# %s\n", line);
}

/* TAP ends a description at '#', and a line is a line. */
static void print_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++)
		(void)fputc(*text == '#' || *text == '\n' ? ' ' : *text, out);
}

static void print_failure(struct report *r, const struct verdict *v)
{
	(void)fprintf(r->tap, "not ok %zu - %s", r->count, v->which->name);
	if (v->deviation) {
		r->deviated++;
		(void)fprintf(r->tap, " # TODO ");
		print_text(r->tap, v->deviation->reason);
	} else {
		r->failed++;
	}
	(void)fputc('\n', r->tap);
	report_note(r, "%s", v->reason);
	if (v->log[0] != '\0')
		report_note(r, "the library's log before that:\n%s", v->log);
	report_note(r, "%u of %u runs failed; again with: --filter '%s' --seed 0x%" PRIx64,
	            v->failed_runs, v->runs, v->which->name, v->seed);
}

void report_case(struct report *r, const struct verdict *v)
{
	r->verdicts[r->count++] = *v;
	switch (v->outcome) {
	case OUTCOME_PASSED:
		r->passed++;
		(void)fprintf(r->tap, "ok %zu - %s\n", r->count, v->which->name);
		if (v->deviation)
			report_note(r,
			            "listed as a deviation of %s, but it passes: shorten the list",
			            v->deviation->uri);
		break;
	case OUTCOME_SKIPPED:
		r->skipped++;
		(void)fprintf(r->tap, "ok %zu - %s # SKIP ", r->count, v->which->name);
		print_text(r->tap, v->reason);
		(void)fputc('\n', r->tap);
		break;
	case OUTCOME_FAILED:
		print_failure(r, v);
		break;
	}
}

void report_summary(struct report *r)
{
	if (r->totals.sends_ok || r->totals.received || r->totals.missing)
		report_note(r, "sends ok %" PRIu64 ", received %" PRIu64 ", missing %" PRIu64,
		            r->totals.sends_ok, r->totals.received, r->totals.missing);
	report_note(r, "%u passed, %u failed, %u skipped, %u deviations", r->passed, r->failed,
	            r->skipped, r->deviated);
}

static void print_json_string(FILE *out, const char *text)
{
	(void)fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			(void)fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			(void)fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			(void)fputc(*text, out);
	}
	(void)fputc('"', out);
}

static void print_json_lines(FILE *out, const struct conf_case *which)
{
	const char *comma = "";

	(void)fprintf(out, ", \"lines\": [");
	for (unsigned line = 1; line <= LIST_LINES; line++) {
		if (!conf_case_covers(which, line))
			continue;
		(void)fprintf(out, "%s%u", comma, line);
		comma = ", ";
	}
	(void)fputc(']', out);
}

static void print_json_verdict(FILE *out, const struct verdict *v)
{
	static const char *const names[] = {"passed", "failed", "skipped"};
	bool deviates = v->outcome == OUTCOME_FAILED && v->deviation;

	(void)fprintf(out, "    {\"case\": \"%s\"", v->which->name);
	print_json_lines(out, v->which);
	(void)fprintf(out, ", \"result\": \"%s\", \"reason\": ",
	              deviates ? "deviation" : names[v->outcome]);
	print_json_string(out, v->reason);
	(void)fprintf(out, ", \"seconds\": %.6f, \"seed\": \"0x%" PRIx64 "\"", v->seconds, v->seed);
	(void)fprintf(out, ", \"runs\": %u, \"failed_runs\": %u}", v->runs, v->failed_runs);
}

bool report_json(const struct report *r, const char *path, const char *const uris[2])
{
	FILE *out = fopen(path, "we");
	bool written;

	if (!out)
		return false;
	(void)fprintf(out, "{\n  \"adapters\": [");
	print_json_string(out, uris[0]);
	(void)fprintf(out, ", ");
	print_json_string(out, uris[1]);
	(void)fprintf(out, "],\n  \"cases\": [\n");
	for (size_t i = 0; i < r->count; i++) {
		print_json_verdict(out, &r->verdicts[i]);
		(void)fprintf(out, "%s\n", i + 1 < r->count ? "," : "");
	}
	(void)fprintf(
		out,
		"  ],\n  \"passed\": %u, \"failed\": %u, \"skipped\": %u, \"deviations\": %u,\n",
		r->passed, r->failed, r->skipped, r->deviated);
	(void)fprintf(out,
	              "  \"sends_ok\": %" PRIu64 ", \"received\": %" PRIu64
	              ", \"missing\": %" PRIu64 "\n}\n",
	              r->totals.sends_ok, r->totals.received, r->totals.missing);
	written = !ferror(out);
	return fclose(out) == 0 && written;
}

void report_end(struct report *r)
{
	free(r->verdicts);
	r->verdicts = NULL;
}
