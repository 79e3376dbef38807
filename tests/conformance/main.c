/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-conformance: does an adapter keep what the interface promises? */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "logring.h"
#include "peer.h"
#include "runner.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_stop.h"

#define WHO "ndx-conformance"

enum { REPEAT_MAX = 1000000 };

static const char about[] =
	"Checks whether adapters keep the promises of the NDX interface. Side A of every\n"
	"connection is at URI, side B at URI2, or at the same open adapter without it.";

static const char details[] =
	"SIGINT and SIGTERM print the summary so far, and the JSON, and end the program (130 and\n"
	"143 for a shell).\n\n"
	"Exit status: 0 nothing failed, 1 a case failed, 2 command line, 3 the adapter could not\n"
	"be opened.";

static const char examples[] =
	"All promises of an adapter, 1 to 2 minutes\n"
	"  ndx-conformance 'ofi:tcp?iface=lo'\n"
	"The disconnect, ten times, with results for programs\n"
	"  ndx-conformance loop --filter 'disconnect*' --repeat 10 --json=results.json\n"
	"A failure again, with the seed that was printed\n"
	"  ndx-conformance loop --filter data.sends_of_all_sizes --seed 0x1234";

static bool parse(struct options *o, int argc, char **argv, int *code)
{
	uint32_t repeat = 1;
	const struct sample_option options[] = {
		{"--list", NULL, "cases, and which numbered promises they cover", .flag = &o->list},
		{"--filter", "CASES", "only cases whose name matches, e.g. 'disconnect*'",
	         .text = &o->filter},
		{"--repeat", "N", "every case N times, each time with another seed (1)",
	         .number = &repeat, .min = 1, .max = REPEAT_MAX},
		{"--seed", "S", "start of the random choices; printed with each failure",
	         .wide_number = &o->seed},
		{"--json", "FILE", "results as JSON, to stdout or FILE, and nothing else",
	         .text = &o->json, .value_optional = true, .value_may_follow = true},
		{"--verbose", NULL, "the library's log, too", .flag = &o->verbose, .letter = 'v'},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "URI [URI2] [options]\n       ndx-conformance --list",
		.about = about,
		.details = details,
		.examples = examples,
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

/* A run, as far as it got. */
struct session {
	const char *uris[2];
	struct report report;
	FILE *json; /* NULL: none */
};

/* What was found so far; ends the JSON. Locked. Returns the exit status. */
static int tell_results(struct session *s, int rc)
{
	FILE *const out = s->json;

	s->json = NULL;
	report_summary(&s->report);
	return sample_json_end(WHO, out, out != NULL ? report_json(&s->report, s->uris) : NULL, rc);
}

/* A signal came. */
static void tell_so_far(void *arg)
{
	struct session *s = arg;

	report_note(&s->report, "ended by a signal after %zu of %zu cases", s->report.count,
	            s->report.planned);
	sample_json_error("ended by a signal");
	(void)tell_results(s, s->report.failed > 0 ? SAMPLE_EXIT_FAILED : SAMPLE_EXIT_OK);
}

static int check_world(const struct options *o, struct session *s, struct world *world)
{
	int rc;

	if (!report_begin(&s->report, stdout, count_selected(o)))
		return SAMPLE_EXIT_FAILED;
	report_note(&s->report, "ndx %s, A at %s, B at %s, seed 0x%" PRIx64, ndx_version(),
	            s->uris[0], o->uris[1] ? o->uris[1] : "the same adapter", o->seed);
	rc = sample_stop_with(WHO, tell_so_far, s);
	if (rc == SAMPLE_EXIT_OK && !run_cases(o, world, &s->report))
		rc = SAMPLE_EXIT_FAILED;
	sample_stop_lock(); /* for good: a signal has nothing left to tell */
	rc = tell_results(s, rc);
	report_end(&s->report);
	return rc;
}

static int run(const struct options *o)
{
	struct session s = {.uris = {o->uris[0], o->uris[1] ? o->uris[1] : o->uris[0]}};
	struct world world;
	int rc;

	if (count_selected(o) == 0) {
		(void)fprintf(stderr, WHO ": no case matches '%s'; --list shows them\n", o->filter);
		return SAMPLE_EXIT_USAGE;
	}
	rc = sample_json_open(WHO, o->json, &s.json);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	if (!world_open(&world, o->uris[0], o->uris[1])) {
		(void)printf("TAP version 13\nBail out! no adapter: %s\n", ndx_last_error());
		return sample_json_end(WHO, s.json, NULL, SAMPLE_EXIT_NO_ADAPTER);
	}
	rc = check_world(o, &s, &world);
	world_close(&world);
	return rc;
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
		return SAMPLE_EXIT_FAILED;
	}
	if (options.list) {
		coverage_print(stdout);
		return sample_end(WHO,
		                  coverage_valid(stdout) ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED);
	}
	logring_begin(options.verbose);
	return sample_end(WHO, run(&options));
}
