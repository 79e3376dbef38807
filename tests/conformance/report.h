/* SPDX-License-Identifier: BSD-2-Clause */
/* TAP 13 on stdout, and the same as JSON at the end. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "check.h"
#include "registry.h"
#include "sample_progress.h"

/* One case, all its runs together. */
struct verdict {
	const struct conf_case *which;
	enum outcome outcome;
	const struct deviation *deviation; /* NULL if none is listed */
	char reason[1280];                 /* first failure, or why skipped */
	char log[2600];                    /* the library's last words before that failure */
	uint64_t seed;                     /* of the first failure, else of the first run */
	unsigned runs;
	unsigned failed_runs;
	double seconds;
};

struct report {
	FILE *tap;
	struct verdict *verdicts; /* room for all selected cases */
	size_t count;
	size_t planned;
	unsigned passed;
	unsigned failed;
	unsigned skipped;
	unsigned deviated;
	struct totals totals;
	struct sample_progress progress;
};

/* False if there is no memory. */
bool report_begin(struct report *r, FILE *tap, size_t planned);
void report_case(struct report *r, const struct verdict *verdict);
/* A case goes on: at a terminal, show how long the rest of a long run takes. */
void report_alive(struct report *r);
/* A line of diagnosis; each line of the text gets its '#'. */
__attribute__((format(printf, 2, 3))) void report_note(struct report *r, const char *fmt, ...);
void report_summary(struct report *r);
/* What report_case() has told so far, as JSON. */
json_t *report_json(const struct report *r, const char *const uris[2]);
void report_end(struct report *r);

#endif
