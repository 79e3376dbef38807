/* SPDX-License-Identifier: BSD-2-Clause */
/* All cases, in the order of cases.def, and which numbered promises they cover. */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct check;

enum {
	LIST_LINES = 77, /* numbered promises */

	/* struct conf_case.flags */
	CASE_SLOW = 1 << 0,      /* waits for time-outs: seconds, or many connections */
	CASE_DESCRIBED = 1 << 1, /* both sides describe their queue pairs, in the same kind */
};

struct conf_case {
	const char *name;  /* "group.promise" */
	const char *lines; /* numbers of promises, "65 66"; "" if the promise is only ND's */
	uint64_t needs;    /* capabilities, OR of enum ndx_capability */
	unsigned flags;
	void (*run)(struct check *c);
};

extern const struct conf_case conf_cases[];
extern const size_t conf_case_count;

bool conf_case_covers(const struct conf_case *one, unsigned line);

/* A gap of a backend that is known and argued for. */
struct deviation {
	const char *uri;   /* prefix of the URI that the adapter calls itself */
	const char *cases; /* glob */
	const char *reason;
};

/* NULL if the case is expected to pass there. */
const struct deviation *deviation_find(const char *uri, const char *name);
/* At most six per backend, none without effect. Says on `out` what is wrong. */
bool deviations_valid(FILE *out);

/* Every line has a case or a reason, every case names lines that exist. Says what is wrong. */
bool coverage_valid(FILE *out);
/* What --list shows. */
void coverage_print(FILE *out);

#endif
