/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing verdicts. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "sample_json.h"
#include "sample_stop.h"

bool report_begin(struct report *r, FILE *tap, size_t planned)
{
	memset(r, 0, sizeof(*r));
	r->tap = tap;
	r->planned = planned;
	r->verdicts = calloc(planned ? planned : 1, sizeof(*r->verdicts));
	if (!r->verdicts)
		return false;
	(void)fprintf(tap, "TAP version 13\n1..%zu\n", planned);
	sample_progress_begin(&r->progress, "ndx-conformance", "cases", planned > 0 ? planned : 1,
	                      true);
	return true;
}

void report_alive(struct report *r)
{
	sample_stop_lock(); /* a signal prints the summary so far on another thread */
	sample_progress_show(&r->progress, r->count);
	sample_stop_unlock();
}

void report_note(struct report *r, const char *fmt, ...)
{
	char text[4096];
	va_list args;
	char *rest = NULL;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	sample_progress_wipe(&r->progress);
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

static void tell_case(struct report *r, const struct verdict *v)
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

void report_case(struct report *r, const struct verdict *v)
{
	sample_stop_lock(); /* a signal prints the summary so far on another thread */
	sample_progress_wipe(&r->progress);
	tell_case(r, v);
	(void)fflush(r->tap);
	sample_progress_show(&r->progress, r->count);
	sample_stop_unlock();
}

void report_summary(struct report *r)
{
	if (r->totals.sends_ok || r->totals.received || r->totals.missing)
		report_note(r, "sends ok %" PRIu64 ", received %" PRIu64 ", missing %" PRIu64,
		            r->totals.sends_ok, r->totals.received, r->totals.missing);
	report_note(r, "%u passed, %u failed, %u skipped, %u deviations", r->passed, r->failed,
	            r->skipped, r->deviated);
}

static json_t *hexadecimal(uint64_t number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, number);
	return json_string(text);
}

static json_t *verdict_json(const struct verdict *v)
{
	static const char *const names[] = {"passed", "failed", "skipped"};
	const bool deviates = v->outcome == OUTCOME_FAILED && v->deviation;
	json_t *one = json_object();
	json_t *lines = json_array();

	for (unsigned line = 1; line <= LIST_LINES; line++) {
		if (conf_case_covers(v->which, line))
			json_array_append_new(lines, json_integer(line));
	}
	json_object_set_new(one, "case", json_string(v->which->name));
	json_object_set_new(one, "lines", lines);
	json_object_set_new(one, "result", json_string(deviates ? "deviation" : names[v->outcome]));
	json_object_set_new(one, "reason", sample_json_text(v->reason));
	json_object_set_new(one, "seconds", json_real(v->seconds));
	json_object_set_new(one, "seed", hexadecimal(v->seed));
	json_object_set_new(one, "runs", json_integer(v->runs));
	json_object_set_new(one, "failed_runs", json_integer(v->failed_runs));
	return one;
}

json_t *report_json(const struct report *r, const char *const uris[2])
{
	json_t *root = json_object();
	json_t *cases = json_array();

	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(cases, verdict_json(&r->verdicts[i]));
	json_object_set_new(
		root, "adapters",
		json_pack("[o, o]", sample_json_text(uris[0]), sample_json_text(uris[1])));
	json_object_set_new(root, "planned", json_integer((json_int_t)r->planned));
	json_object_set_new(root, "cases", cases);
	json_object_set_new(root, "passed", json_integer(r->passed));
	json_object_set_new(root, "failed", json_integer(r->failed));
	json_object_set_new(root, "skipped", json_integer(r->skipped));
	json_object_set_new(root, "deviations", json_integer(r->deviated));
	json_object_set_new(root, "sends_ok", json_integer((json_int_t)r->totals.sends_ok));
	json_object_set_new(root, "received", json_integer((json_int_t)r->totals.received));
	json_object_set_new(root, "missing", json_integer((json_int_t)r->totals.missing));
	return root;
}

void report_end(struct report *r)
{
	free(r->verdicts);
	r->verdicts = NULL;
}
