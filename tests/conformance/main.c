/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-conformance: does an adapter keep what the interface promises? */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "logring.h"
#include "peer.h"
#include "runner.h"
#include "sample_options.h"

enum { EXIT_USAGE = SAMPLE_EXIT_USAGE, REPEAT_MAX = 1000000 };

static const char about[] =
	"Checks whether adapters keep the promises of the NDX interface. Side A of every\n"
	"connection is at URI, side B at URI2, or at the same open adapter without it.";

static const char details[] =
	"Exit status: 0 nothing failed, 1 a case failed or no adapter could be opened, 2 command\n"
	"line.";

static bool parse(struct options *o, int argc, char **argv, int *code)
{
	uint32_t repeat = 1;
	const struct sample_option options[] = {
		{"--list", NULL, "cases, and what covers each line of conformance-list.md",
	         .flag = &o->list},
		{"--filter", "CASES", "only cases whose name matches, e.g. 'disconnect*'",
	         .text = &o->filter},
		{"--repeat", "N", "every case N times, each time with another seed (1)",
	         .number = &repeat, .min = 1, .max = REPEAT_MAX},
		{"--seed", "S", "start of the random choices; printed with each failure",
	         .wide_number = &o->seed},
		{"--json", "FILE", "results as JSON", .text = &o->json},
		{"--verbose", NULL, "the library's log, too", .flag = &o->verbose},
	};
	const struct sample_program program = {
		.name = "ndx-conformance",
		.synopsis = "URI [URI2] [options]\n       ndx-conformance --list",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	struct timespec now;
	size_t operands;

	memset(o, 0, sizeof(*o));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	o->seed = (uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec;
	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	if (operands == 0 && !o->list) {
		*code = sample_usage(&program, "which URI?");
		return false;
	}
	for (size_t i = 0; i < operands; i++)
		o->uris[i] = argv[i + 1];
	o->repeat = repeat;
	return true;
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
	int code;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	if (peer_wanted(argc, argv))
		return peer_main(argc, argv);
	if (!parse(&options, argc, argv, &code))
		return code;
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
