/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_json.h"
#include "sample_options.h"

__attribute__((format(printf, 2, 0))) static void say(const char *program, const char *format,
                                                      va_list args, enum ndx_status status)
{
	char what[256];
	char line[512];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(line, sizeof(line), "%s: %s (%s)", what, ndx_status_name(status),
	         ndx_status_text(status));
	fprintf(stderr, "%s: %s\n", program, line);
	sample_json_error(line);
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

int sample_open_adapter(const char *program, const char *uri, struct ndx_adapter **out)
{
	const enum ndx_status st = ndx_adapter_open(uri, out);

	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	(void)sample_failed(program, st, "open adapter %s", uri != NULL ? uri : "(default)");
	return SAMPLE_EXIT_NO_ADAPTER;
}

bool sample_show_cause(struct ndx_connector *connector)
{
	char text[512] = "";
	size_t length = sizeof(text);

	if (connector == NULL || ndx_connector_get_error_text(connector, text, &length) != NDX_OK ||
	    text[0] == '\0')
		return false;
	fprintf(stderr, "  %s\n", text);
	return true;
}

int sample_ended_badly(const char *program, struct ndx_connector *connector,
                       const struct ndx_overlapped *ov, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(program, format, args, ov->status);
	va_end(args);
	if (!sample_show_cause(connector) && ov->native != 0)
		fprintf(stderr, "  native cause: %d (as an errno: %s)\n", ov->native,
		        strerror(ov->native));
	return SAMPLE_EXIT_FAILED;
}

int sample_no_answer(const char *program, const char *what, unsigned timeout_ms)
{
	char line[512];

	snprintf(line, sizeof(line), SAMPLE_NO_ANSWER, what, timeout_ms);
	fprintf(stderr, "%s: %s\n", program, line);
	sample_json_error(line);
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
