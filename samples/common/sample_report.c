/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_options.h"

__attribute__((format(printf, 2, 0))) static void say(const char *program, const char *format,
                                                      va_list args, enum ndx_status status)
{
	char what[256];

	vsnprintf(what, sizeof(what), format, args);
	fprintf(stderr, "%s: %s: %s (%s)\n", program, what, ndx_status_name(status),
	        ndx_status_text(status));
}

int sample_failed(const char *program, enum ndx_status status, const char *format, ...)
{
	const char *cause = ndx_last_error();
	va_list args;

	va_start(args, format);
	say(program, format, args, status);
	va_end(args);
	if (cause[0] != '\0')
		fprintf(stderr, "  %s\n", cause);
	return SAMPLE_EXIT_FAILED;
}

int sample_end_output(const char *program, bool ok)
{
	if (ok && fflush(stdout) == 0)
		return SAMPLE_EXIT_OK;
	fprintf(stderr, "%s: the output cannot be written to stdout: %s\n", program,
	        strerror(errno));
	return SAMPLE_EXIT_FAILED;
}

int sample_open_adapter(const char *program, const char *uri, struct ndx_adapter **out)
{
	const enum ndx_status st = ndx_adapter_open(uri, out);

	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	(void)sample_failed(program, st, "open adapter %s", uri != NULL ? uri : "(default)");
	return SAMPLE_EXIT_NO_ADAPTER;
}

int sample_ended_badly(const char *program, const struct ndx_overlapped *ov, const char *format,
                       ...)
{
	va_list args;

	va_start(args, format);
	say(program, format, args, ov->status);
	va_end(args);
	if (ov->native != 0)
		fprintf(stderr, "  native cause: %d (as an errno: %s)\n", ov->native,
		        strerror(ov->native));
	return SAMPLE_EXIT_FAILED;
}

void sample_print_stats(const char *program, struct ndx_adapter *adapter)
{
	char *json = NULL;
	enum ndx_status st = ndx_adapter_snapshot(adapter, &json);

	if (st != NDX_OK) {
		(void)sample_failed(program, st, "take a snapshot");
		return;
	}
	fputs(json, stdout);
	fflush(stdout);
	free(json);
}
