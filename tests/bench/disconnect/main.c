/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-disconnect-figures: what disconnects lose and how long they take, by one command. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "sample_options.h"

enum { URIS_MAX = 8, ROWS_MAX = URIS_MAX + 2 };

static const char about[] =
	"Counts what is lost, doubled and late in many disconnects, and takes the time of a\n"
	"disconnect towards idle, busy, slow, silent and stopped peers. Without a URI over\n"
	"loop and ofi:tcp?iface=lo, and the same schedule straight on libfabric.";

static const char details[] = "Exit status: 0, or 1 if NDX lost, doubled or delayed anything or a "
			      "disconnect failed that\n"
			      "should not, 2 for wrong usage.";

/* False: the program ends with `code`. */
static bool parse(int argc, char **argv, struct options *o, size_t *operands, int *code)
{
	uint32_t times = (uint32_t)o->times;
	const struct sample_option options[] = {
		{"--disconnects", "N", "for each adapter (10000)", .wide_number = &o->disconnects,
	         .max = 100000000},
		{"--raw", "N", "straight on libfabric (2000; 0: not at all)",
	         .wide_number = &o->raw_disconnects, .max = 100000000},
		{"--times", "N", "disconnects whose time is taken, for each kind of peer (1000)",
	         .number = &times, .min = 1, .max = 1000000},
		{"--seed", "S", "of the schedule (1)", .wide_number = &o->seed},
		{"--json", "FILE", "also as JSON; - for standard output, then no text",
	         .text = &o->json},
	};
	const struct sample_program program = {
		.name = "ndx-disconnect-figures",
		.synopsis = "[URI...] [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = URIS_MAX,
	};

	if (!sample_parse(&program, argc, argv, operands, code))
		return false;
	o->times = times;
	return true;
}

/* Is it what the contract promises? */
static bool kept(const struct row *row)
{
	const struct tally *t = &row->tally;
	bool good = t->lost + t->cut_off + t->doubled + t->late + t->unanswered + t->corrupt +
	                    t->failed ==
	            0;

	for (unsigned kind = 0; kind < KINDS; kind++) {
		const struct timing *timing = &row->timings[kind];

		good = good && (timing->skipped || timing->succeeded == timing->count ||
		                kind == KIND_STOPPED);
	}
	return good;
}

static bool add_raw(struct row *rows, size_t *count, const struct options *o)
{
	static const char *const names[2] = {"libfabric, at once", "libfabric, own sends done"};

	for (unsigned i = 0; i < 2 && o->raw_disconnects > 0 && raw_available(); i++) {
		struct row *row = &rows[*count];

		row->name = names[i];
		row->raw = true;
		if (!raw_run(i == 1, o, &row->tally))
			return false;
		(*count)++;
	}
	return true;
}

int main(int argc, char **argv)
{
	static const char *const usual[2] = {"loop", "ofi:tcp?iface=lo"};
	struct options o = {
		.seed = 1, .disconnects = 10000, .raw_disconnects = 2000, .times = 1000};
	struct row rows[ROWS_MAX];
	size_t count = 0;
	size_t operands;
	size_t uris;
	bool good = true;
	int code;

	if (argc > 1 && strcmp(argv[1], "--peer") == 0)
		return stopped_main(argc, argv);
	(void)signal(SIGPIPE, SIG_IGN);
	memset(rows, 0, sizeof(rows));
	if (!parse(argc, argv, &o, &operands, &code))
		return code;
	uris = operands > 0 ? operands : 2;
	for (; count < uris; count++) {
		struct row *row = &rows[count];

		row->name = operands > 0 ? argv[1 + count] : usual[count];
		if (!account_run(row->name, &o, &row->tally) ||
		    !times_run(row->name, &o, row->timings))
			return EXIT_FAILURE;
		good = kept(row) && good;
	}
	if (!add_raw(rows, &count, &o))
		return EXIT_FAILURE;
	if (!o.json || strcmp(o.json, "-") != 0)
		report_text(rows, count, &o);
	if (o.json && !report_json(rows, count, &o))
		return EXIT_FAILURE;
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
