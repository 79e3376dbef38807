/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "sample_clock.h"

#define SECOND UINT64_C(1000000000) /* in nanoseconds */
#define SHORT_RUN (5 * SECOND)
#define PERIOD (SECOND / 4)

void sample_progress_begin(struct sample_progress *progress, const char *program,
                           const char *things, uint64_t total, bool wanted)
{
	*progress = (struct sample_progress){.program = program,
	                                     .things = things,
	                                     .total = total,
	                                     .began_ns = sample_now_ns(),
	                                     .on = wanted && isatty(STDERR_FILENO) != 0};
}

void sample_progress_text(uint64_t done, uint64_t total, const char *things, uint64_t elapsed_ns,
                          char *text, uint64_t size)
{
	const double part = (double)done / (double)total;
	uint64_t left;

	if (done == 0 || done > total) {
		snprintf(text, size, "%" PRIu64 " of %" PRIu64 " %s", done, total, things);
		return;
	}
	left = (uint64_t)((double)elapsed_ns / 1e9 * (1 - part) / part + 0.5);
	snprintf(text, size,
	         "%" PRIu64 " of %" PRIu64 " %s (%.0f %%), about %" PRIu64 ":%02" PRIu64 " left",
	         done, total, things, 100 * part, left / 60, left % 60);
}

void sample_progress_show(struct sample_progress *progress, uint64_t done)
{
	char text[160];
	uint64_t now;

	if (!progress->on)
		return;
	now = sample_now_ns();
	if (now - progress->began_ns < SHORT_RUN || now - progress->shown_ns < PERIOD)
		return;
	progress->shown_ns = now;
	progress->line = true;
	sample_progress_text(done, progress->total, progress->things, now - progress->began_ns,
	                     text, sizeof(text));
	fprintf(stderr, "\r%s: %s\033[K", progress->program, text);
}

void sample_progress_wipe(struct sample_progress *progress)
{
	if (progress->line)
		fputs("\r\033[K", stderr);
	progress->line = false;
	progress->shown_ns = 0;
}
