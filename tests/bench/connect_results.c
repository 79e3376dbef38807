/* SPDX-License-Identifier: BSD-2-Clause */
#include "connect_results.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lane.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_progress.h"
#include "sample_stop.h"

/* All but the file behind the lock of sample_stop. */
static struct {
	FILE *json; /* NULL: none */
	unsigned done, total;
	struct sample_progress progress;
} results;

int results_open(const char *json)
{
	return sample_json_open(RESULTS_WHO, json, &results.json);
}

void lane_die(const char *what, const char *why)
{
	char text[512];

	sample_stop_lock(); /* for good */
	(void)fflush(stdout);
	(void)snprintf(text, sizeof(text), "%s: %s", what, why);
	(void)fprintf(stderr, RESULTS_WHO ": %s\n", text);
	sample_json_error(text);
	_Exit(sample_json_end(RESULTS_WHO, results.json, NULL, SAMPLE_EXIT_FAILED));
}

/* A signal came. */
static void tell_so_far(void *arg)
{
	(void)arg;
	sample_progress_wipe(&results.progress);
	(void)printf("ended by a signal after %u of %u measurements\n", results.done,
	             results.total);
	sample_json_error("ended by a signal");
	(void)sample_json_end(RESULTS_WHO, results.json, NULL, SAMPLE_EXIT_OK);
}

int results_begin(unsigned total, bool progress)
{
	results.total = total;
	sample_progress_begin(&results.progress, RESULTS_WHO, "measurements", total, progress);
	return sample_stop_with(RESULTS_WHO, tell_so_far, NULL);
}

void results_tell(const char *name, json_t *json, const char *format, ...)
{
	va_list args;

	sample_stop_lock();
	sample_progress_wipe(&results.progress);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)fflush(stdout);
	sample_json_add(name, json);
	sample_stop_unlock();
}

void results_step(void)
{
	sample_stop_lock();
	sample_progress_show(&results.progress, ++results.done);
	sample_stop_unlock();
}

int results_end(int rc)
{
	return sample_end(RESULTS_WHO, sample_json_end(RESULTS_WHO, results.json, NULL, rc));
}
