/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress of a run that takes longer than 5 s: how much is done, and how long the rest takes at
 * the same pace. On stderr, and only if that is a terminal.
 */
#ifndef SAMPLE_PROGRESS_H
#define SAMPLE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/** One thread uses it at a time. */
struct sample_progress {
	const char *program;
	const char *things; /* "cases" */
	uint64_t total;
	uint64_t began_ns, shown_ns;
	bool on;   /* stderr is a terminal, and progress is wanted */
	bool line; /* a line is on the screen */
};

/** @p total may not be 0. @p wanted: false prints nothing, ever. */
void sample_progress_begin(struct sample_progress *progress, const char *program,
                           const char *things, uint64_t total, bool wanted);

/** @p done things are done; prints at most four times a second, and nothing in the first 5 s. */
void sample_progress_show(struct sample_progress *progress, uint64_t done);

/** Wipe the line off, before something else is printed, or at the end. */
void sample_progress_wipe(struct sample_progress *progress);

/**
 * What sample_progress_show() prints after @p elapsed_ns, without control characters:
 * "12 of 48 cases (25 %), about 1:30 left". For tests, and for programs with a line of their own.
 */
void sample_progress_text(uint64_t done, uint64_t total, const char *things, uint64_t elapsed_ns,
                          char *text, uint64_t size);

#endif
