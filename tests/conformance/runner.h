/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the selected cases, as often as asked. */
#ifndef RUNNER_H
#define RUNNER_H

#include "report.h"
#include "world.h"

struct options {
	const char *uris[2]; /* the second is NULL: one adapter for both sides */
	const char *filter;  /* glob, NULL: all */
	const char *json;    /* file, NULL: none */
	uint64_t seed;
	unsigned repeat;
	bool list;
	bool verbose; /* the library's log as diagnosis */
};

/* Slow cases take part in this many repetitions only. */
enum { SLOW_REPEATS = 3 };

bool case_selected(const struct options *o, const struct conf_case *one);
size_t count_selected(const struct options *o);

/* Runs them; false if one failed that was not expected to. */
bool run_cases(const struct options *o, struct world *world, struct report *report);

#endif
