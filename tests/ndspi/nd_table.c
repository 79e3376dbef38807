/* SPDX-License-Identifier: BSD-2-Clause */
#include "nd_table.h"

#include <stdio.h>

static void use_adapter(const char *uri, const char *options)
{
	char text[512];

	if (options == NULL)
		(void)snprintf(text, sizeof(text), "%s", uri);
	else
		(void)snprintf(text, sizeof(text), "fault:%s%c%s", uri,
		               strchr(uri, '?') ? '&' : '?', options);
	assert_int_equal(setenv("NDX_ADAPTER", text, 1), 0);
}

static bool run_row(const struct nd_row *row)
{
	char what[128];
	struct nd_pair p;
	HRESULT expected;
	HRESULT status;

	nd_make(&p);
	status = row->provoke(&p);
	nd_drop(&p);
	(void)snprintf(what, sizeof(what), "%s %s", row->call, row->name);
	expected = nd_expected(what, row->status);
	if (status == expected)
		return true;
	print_error("%s%s%s: %08x, expected %08x\n", what, row->note ? " with " : "",
	            row->note ? row->note : "", (unsigned)status, (unsigned)expected);
	return false;
}

void nd_run_rows(const struct nd_row *rows, size_t count)
{
	static char uri[256]; /* of the first call: a test that failed leaves a `fault:` behind */
	size_t failed = 0;

	if (uri[0] == '\0')
		(void)snprintf(uri, sizeof(uri), "%s", nd_adapter());
	use_adapter(uri, NULL);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].provoke == NULL) {
			print_message("out of reach: %s %s: %s\n", rows[i].call, rows[i].name,
			              rows[i].note);
			continue;
		}
		use_adapter(uri, rows[i].note);
		failed += !run_row(&rows[i]);
	}
	use_adapter(uri, NULL);
	assert_int_equal(failed, 0);
}
