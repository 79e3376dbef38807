/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: the log. */
#include <stdio.h>

#include <ndx/ndx.h>

/* A sink of the program's own. Any thread calls it; it must not call NDX. */
void example_sink(void *arg, const struct ndx_log_record *record)
{
	fprintf(arg, "ndx %s: %s (native %d)\n", ndx_log_level_name(record->level), record->text,
	        record->native);
}

/* Log to a file; or, where there is none, to stderr. */
void example_log(FILE *file)
{
	if (file != NULL)
		ndx_log_set_sink(example_sink, file, NDX_LOG_INFO);
	else
		ndx_log_to_stderr(NDX_LOG_WARN);
}
