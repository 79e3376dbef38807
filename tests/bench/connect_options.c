/* SPDX-License-Identifier: BSD-2-Clause */
#include "connect_options.h"

#include <stddef.h>

#include "connect_results.h"
#include "sample_options.h"

static const char about[] =
	"Measures what connections cost to open and to end: all at once, then one after the\n"
	"other. Before each end messages are sent, which the disconnect has to drain.";

static const char details[] =
	"SIGINT and SIGTERM print how far it came, and the JSON, and end the program (130 and 143\n"
	"for a shell).\n\n"
	"Exit status: 0 every message arrived, 1 something failed, 2 command line, 3 an adapter\n"
	"could not be opened.";

static const char examples[] = "A hundred connections at once and one by one\n"
			       "  ndx-connect 'ofi:tcp?iface=lo'\n"
			       "A thousand, as JSON\n"
			       "  ndx-connect loop --count 1000 --json";

bool connect_parse(struct connect_options *o, int argc, char **argv, int *code)
{
	const struct sample_option options[] = {
		{"--count", "N", "connections at once (100)", .number = &o->count, .min = 1,
	         .max = 10000},
		{"--single", "N", "connections one after the other (100)", .number = &o->singles,
	         .max = 1000000},
		{"--messages", "N", "before each end (4)", .number = &o->messages,
	         .max = CONNECT_MESSAGES_MAX},
		{"--ends", "N", "compare so often the end of all with the end of one (0)",
	         .number = &o->ends, .max = CONNECT_ENDS_MAX},
		{"--srq", NULL, "the queue pairs of a side share a receive queue",
	         .flag = &o->shared},
		{"--port", NULL, "the main thread begins each step, not a callback",
	         .flag = &o->by_port},
		SAMPLE_ROW_JSON(o->json),
		SAMPLE_ROW_QUIET(o->quiet),
	};
	const struct sample_program program = {
		.name = RESULTS_WHO,
		.synopsis = "URI [URI2] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = CONNECT_SIDES,
	};
	size_t operands;

	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	if (operands == 0) {
		*code = sample_usage(&program, "which URI?");
		return false;
	}
	o->uris[0] = argv[1];
	o->uris[1] = argv[operands];
	return true;
}
