/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-conformance: does an adapter keep what the interface promises? */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "logring.h"
#include "peer.h"
#include "runner.h"

enum { EXIT_USAGE = 2, REPEAT_MAX = 1000000 };

static const char usage_text[] =
	"usage: ndx-conformance URI [URI2] [options]\n"
	"       ndx-conformance --list\n"
	"Checks whether adapters keep the promises of the NDX interface. Side A of every\n"
	"connection is at URI, side B at URI2, or at the same open adapter without it.\n"
	"  --list         cases, and what covers each line of conformance-list.md\n"
	"  --filter GLOB  only cases whose name matches, e.g. 'disconnect*'\n"
	"  --repeat N     every case N times, each time with another seed\n"
	"  --seed S       start of the random choices; printed with each failure\n"
	"  --json FILE    results as JSON\n"
	"  --verbose      the library's log, too\n"
	"Exit code: 0 if nothing failed, 1 if something did, 2 for wrong usage.\n";

static bool parse_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool parse_repeat(const char *text, unsigned *out)
{
	uint64_t number;

	if (!parse_number(text, &number) || number == 0 || number > REPEAT_MAX)
		return false;
	*out = (unsigned)number;
	return true;
}

static bool parse_option(struct options *o, int option)
{
	switch (option) {
	case 'l':
		o->list = true;
		return true;
	case 'f':
		o->filter = optarg;
		return true;
	case 'r':
		return parse_repeat(optarg, &o->repeat);
	case 's':
		return parse_number(optarg, &o->seed);
	case 'j':
		o->json = optarg;
		return true;
	case 'v':
		o->verbose = true;
		return true;
	default:
		return false;
	}
}

static bool parse(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{"list", no_argument, NULL, 'l'},
		{"filter", required_argument, NULL, 'f'},
		{"repeat", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"json", required_argument, NULL, 'j'},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	struct timespec now;
	int option;

	memset(o, 0, sizeof(*o));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	o->seed = (uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec;
	o->repeat = 1;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (!parse_option(o, option))
			return false;
	}
	for (int i = 0; optind < argc && i < 2; i++)
		o->uris[i] = argv[optind++];
	return optind == argc && (o->uris[0] || o->list);
}

static int run(const struct options *o)
{
	const char *uris[2] = {o->uris[0], o->uris[1] ? o->uris[1] : o->uris[0]};
	struct report report;
	struct world world;
	bool fine;

	if (count_selected(o) == 0) {
		(void)fprintf(stderr, "no case matches '%s'; --list shows them\n", o->filter);
		return EXIT_USAGE;
	}
	if (!report_begin(&report, stdout, count_selected(o)))
		return EXIT_FAILURE;
	report_note(&report, "ndx %s, A at %s, B at %s, seed 0x%" PRIx64, ndx_version(), uris[0],
	            o->uris[1] ? o->uris[1] : "the same adapter", o->seed);
	if (!world_open(&world, o->uris[0], o->uris[1])) {
		(void)printf("Bail out! no adapter\n");
		report_end(&report);
		return EXIT_FAILURE;
	}
	fine = run_cases(o, &world, &report);
	world_close(&world);
	report_summary(&report);
	if (o->json && !report_json(&report, o->json, uris)) {
		(void)fprintf(stderr, "cannot write %s: %s\n", o->json, strerror(errno));
		fine = false;
	}
	report_end(&report);
	return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options options;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	if (peer_wanted(argc, argv))
		return peer_main(argc, argv);
	if (!parse(&options, argc, argv)) {
		(void)fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	if (!deviations_valid(stdout)) {
		(void)printf("Bail out! the list of deviations contradicts the list of cases\n");
		return EXIT_FAILURE;
	}
	if (options.list) {
		coverage_print(stdout);
		return coverage_valid(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	logring_begin(options.verbose);
	return run(&options);
}
