/* SPDX-License-Identifier: BSD-2-Clause */
/* Which numbered promise of NetworkDirect is covered by what; checked at every start. */
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "registry.h"

struct line_note {
	unsigned line;
	const char *text;
};

/* Lines without a case, and what a case cannot show of the others. */
static const struct line_note notes[] = {
#include "coverage.def"
};

static const char *note_of(unsigned line)
{
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (notes[i].line == line)
			return notes[i].text;
	}
	return NULL;
}

static bool has_case(unsigned line)
{
	for (size_t i = 0; i < conf_case_count; i++) {
		if (conf_case_covers(&conf_cases[i], line))
			return true;
	}
	return false;
}

/* Are the numbers of a case lines that exist, and nothing else? */
static bool lines_exist(const char *lines)
{
	char *end;

	for (const char *at = lines; *at != '\0'; at = end) {
		unsigned long line = strtoul(at, &end, 10);

		if (end == at || line < 1 || line > LIST_LINES)
			return false;
	}
	return true;
}

bool coverage_valid(FILE *out)
{
	bool valid = true;

	for (unsigned line = 1; line <= LIST_LINES; line++) {
		if (!has_case(line) && !note_of(line)) {
			(void)fprintf(out, "# line %u has neither a case nor a reason\n", line);
			valid = false;
		}
	}
	for (size_t i = 0; i < conf_case_count; i++) {
		if (!lines_exist(conf_cases[i].lines)) {
			(void)fprintf(out, "# %s names a line that does not exist: \"%s\"\n",
			              conf_cases[i].name, conf_cases[i].lines);
			valid = false;
		}
	}
	return valid;
}

static void print_needs(FILE *out, uint64_t needs)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		const char *name;

		if (bit > 30 || !(needs & (UINT64_C(1) << bit)))
			continue;
		name = ndx_capability_name((enum ndx_capability)(1 << bit));
		(void)fprintf(out, " needs=%s", name ? name : "?");
	}
}

void coverage_print(FILE *out)
{
	(void)fprintf(out, "# numbered promises of NetworkDirect, and what covers each\n");
	for (unsigned line = 1; line <= LIST_LINES; line++) {
		const char *note = note_of(line);

		(void)fprintf(out, "%2u", line);
		for (size_t i = 0; i < conf_case_count; i++) {
			if (conf_case_covers(&conf_cases[i], line))
				(void)fprintf(out, " %s", conf_cases[i].name);
		}
		if (note)
			(void)fprintf(out, "%s%s", has_case(line) ? " | " : " no case: ", note);
		(void)fputc('\n', out);
	}
	(void)fprintf(out, "# cases\n");
	for (size_t i = 0; i < conf_case_count; i++) {
		(void)fprintf(out, "%s lines=%s", conf_cases[i].name,
		              conf_cases[i].lines[0] != '\0' ? conf_cases[i].lines : "-");
		print_needs(out, conf_cases[i].needs);
		(void)fprintf(out, "%s\n", conf_cases[i].flags & CASE_SLOW ? " slow" : "");
	}
	(void)fprintf(out, "# %zu cases\n", conf_case_count);
}
