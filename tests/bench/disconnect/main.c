/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-disconnect-figures: what disconnects lose and how long they take, by one command. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

enum { EXIT_USAGE = 2, URIS_MAX = 8, ROWS_MAX = URIS_MAX + 2 };

static const char usage_text[] =
	"usage: ndx-disconnect-figures [URI...] [options]\n"
	"Counts what is lost, doubled and late in many disconnects, and takes the time of a\n"
	"disconnect towards idle, busy, slow, silent and stopped peers. Without a URI over\n"
	"loop and ofi:tcp?iface=lo, and the same schedule straight on libfabric.\n"
	"  --disconnects N  per adapter (10000)\n"
	"  --raw N          straight on libfabric (2000; 0: not at all)\n"
	"  --times N        disconnects whose time is taken, per kind of peer (1000)\n"
	"  --seed S         of the schedule (1)\n"
	"  --json FILE      also as JSON; - for standard output, then no text\n"
	"Exit code: 0, or 1 if NDX lost, doubled or delayed anything or a disconnect failed that\n"
	"should not, 2 for wrong usage.\n";

static bool parse_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool parse_option(struct options *o, int option)
{
	uint64_t number = 0;

	switch (option) {
	case 'd':
		return parse_number(optarg, &o->disconnects) && o->disconnects <= 100000000;
	case 'r':
		return parse_number(optarg, &o->raw_disconnects) && o->raw_disconnects <= 100000000;
	case 't':
		if (!parse_number(optarg, &number) || number == 0 || number > 1000000)
			return false;
		o->times = number;
		return true;
	case 's':
		return parse_number(optarg, &o->seed);
	case 'j':
		o->json = optarg;
		return true;
	default:
		return false;
	}
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"disconnects", required_argument, NULL, 'd'},
		{"raw", required_argument, NULL, 'r'},
		{"times", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 's'},
		{"json", required_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(usage_text, stdout);
			exit(EXIT_SUCCESS);
		}
		if (!parse_option(o, option))
			return false;
	}
	return argc - optind <= URIS_MAX;
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
	size_t uris;
	bool good = true;

	if (argc > 1 && strcmp(argv[1], "--peer") == 0)
		return stopped_main(argc, argv);
	(void)signal(SIGPIPE, SIG_IGN);
	memset(rows, 0, sizeof(rows));
	if (!parse(argc, argv, &o)) {
		(void)fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	uris = argc > optind ? (size_t)(argc - optind) : 2;
	for (; count < uris; count++) {
		struct row *row = &rows[count];

		row->name = argc > optind ? argv[optind + (int)count] : usual[count];
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
