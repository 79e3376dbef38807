/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "lane.h"
#include "passive.h"
#include "sample_number.h"
#include "sample_options.h"

#define LIST_TEXT 512u /* of a list on the command line */

static const char about[] =
	"Measures what NDX costs: traffic over the adapter URI (ofi:tcp?iface=lo) and, where\n"
	"there is one, straight over the library below it, in turn. Both ends are in this\n"
	"process; the second at URI2, if that is named.";

static const char details[] =
	"Test write is half a round trip of writes. In mode passive targets of writes do not\n"
	"poll, beside messages to one that sleeps, second by second.\n\n"
	"What --beside names uses the adapter's network interface, and promises less than NDX:\n"
	"a send ends when the kernel has taken its bytes (tcp), or when its memory may be used\n"
	"again (ucx); a message that finds no receive waits in a buffer. Neither has writes.\n\n"
	"Exit status: 0 measured, 1 something failed, 2 command line.";

static const char examples[] =
	"What NDX costs above libfabric, on this host\n"
	"  ndx-perf compare 'ofi:tcp?iface=lo'\n"
	"Latency of small messages, beside plain sockets, as JSON\n"
	"  ndx-perf compare --tests latency --sizes 8,64 --beside tcp --json";

static bool read_number(const char *text, uint64_t least, uint64_t most, uint32_t *out)
{
	uint64_t value;

	if (!sample_number(text, &value) || value < least || value > most)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool read_numbers(char *text, uint64_t least, uint64_t most, uint32_t *list, unsigned *count)
{
	char *rest = NULL;

	*count = 0;
	for (char *word = strtok_r(text, ",", &rest); word != NULL;
	     word = strtok_r(NULL, ",", &rest)) {
		if (*count == OPTIONS_LIST || !read_number(word, least, most, &list[*count]))
			return false;
		(*count)++;
	}
	return *count > 0;
}

static bool read_words(char *text, const char *const names[], bool flags[], unsigned count)
{
	char *rest = NULL;
	bool any = false;

	for (unsigned i = 0; i < count; i++)
		flags[i] = false;
	for (char *word = strtok_r(text, ",", &rest); word != NULL;
	     word = strtok_r(NULL, ",", &rest)) {
		unsigned which = 0;

		while (which < count && strcmp(word, names[which]) != 0)
			which++;
		if (which == count)
			return false;
		flags[which] = true;
		any = true;
	}
	return any;
}

static void defaults(struct options *out)
{
	*out = (struct options){
		.uris = {"ofi:tcp?iface=lo", "ofi:tcp?iface=lo"},
		.test = {true, true},
		.mode = {true, true},
		.sizes = {8, 64, 512, 4096, 65536, 1048576},
		.size_count = 6,
		.depths = {1, 64},
		.depth_count = 2,
		.blocks = 40,
		.block_ms = 20,
		.warm_up_ms = 5,
		.tries = 3,
		.threads = 2,
		.seconds = 600,
		.passive_seconds = 1,
		.seed = 1,
	};
}

static bool read_modes(struct options *out, char *value)
{
	static const char *const modes[3] = {"spin", "wait", "passive"};
	bool flags[3];

	if (!read_words(value, modes, flags, 3))
		return false;
	out->mode[0] = flags[0];
	out->mode[1] = flags[1];
	out->passive = flags[2];
	return true;
}

/* The lists of the command line; NULL: the default. */
struct lists {
	const char *tests;
	const char *modes;
	const char *sizes;
	const char *depths;
	const char *beside;
};

/* What the option's list may have. */
static const char *allowed(const char *option)
{
	if (strcmp(option, "--tests") == 0)
		return "latency, stream and write";
	if (strcmp(option, "--modes") == 0)
		return "spin, wait and passive";
	if (strcmp(option, "--beside") == 0)
		return "tcp and ucx";
	if (strcmp(option, "--sizes") == 0)
		return "numbers from 0 to 1Gi";
	return "numbers from 1 to 256";
}

/* Which option has a list that will not do; NULL: none. */
static const char *read_lists(struct options *out, const struct lists *lists, const char **value)
{
	static const char *const tests[TRAFFIC_TESTS] = {"latency", "stream", "write"};
	static const char *const besides[LANE_BESIDES] = {"tcp", "ucx"};
	const char *const texts[] = {lists->tests, lists->modes, lists->sizes, lists->depths,
	                             lists->beside};
	static const char *const names[] = {"--tests", "--modes", "--sizes", "--depths",
	                                    "--beside"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char copy[LIST_TEXT]; /* reading a list cuts it up */
		bool good = true;

		if (texts[i] == NULL)
			continue;
		*value = texts[i];
		if (snprintf(copy, sizeof(copy), "%s", texts[i]) >= (int)sizeof(copy))
			return names[i];
		if (i == 0)
			good = read_words(copy, tests, out->test, TRAFFIC_TESTS);
		else if (i == 1)
			good = read_modes(out, copy);
		else if (i == 2)
			good = read_numbers(copy, 0, 1u << 30, out->sizes, &out->size_count);
		else if (i == 3)
			good = read_numbers(copy, 1, 256, out->depths, &out->depth_count);
		else
			good = read_words(copy, besides, out->beside, LANE_BESIDES);
		if (!good)
			return names[i];
	}
	return NULL;
}

static bool sizes_can_be_written(const struct options *options)
{
	for (unsigned i = 0; i < options->size_count; i++) {
		if (options->sizes[i] == 0 || options->sizes[i] % LANE_WRITE_LEAST != 0)
			return false;
	}
	return true;
}

static bool some_are_empty(const struct options *options)
{
	for (unsigned i = 0; i < options->size_count; i++) {
		if (options->sizes[i] == 0)
			return true;
	}
	return false;
}

/* What options mean together. */
static int check(const struct sample_program *program, const struct options *out)
{
	if (out->passive && !out->test[TRAFFIC_WRITE])
		return sample_usage(program, "--modes passive is of --tests write") + 1;
	if (out->test[TRAFFIC_WRITE] && !sizes_can_be_written(out))
		return sample_usage(program, "writes are multiples of %zu bytes",
		                    LANE_WRITE_LEAST) +
		       1;
	if (out->beside[LANE_TCP] && some_are_empty(out))
		return sample_usage(program, "--beside tcp: sockets know no empty messages") + 1;
	return 0;
}

int options_read(int argc, char **argv, struct options *out)
{
	struct lists lists = {0};
	const struct sample_option options[] = {
		{"--tests", "latency|stream|write,...", "which (latency,stream)",
	         .text = &lists.tests},
		{"--modes", "spin|wait|passive,...", "of waiting (spin,wait)",
	         .text = &lists.modes},
		{"--passive-seconds", "N", "of mode passive, for each test (1)",
	         .number = &out->passive_seconds, .min = 1, .max = PASSIVE_SECONDS},
		{"--sizes", "N,...", "of messages, in bytes (8,64,512,4Ki,64Ki,1Mi)",
	         .text = &lists.sizes},
		{"--depths", "N,...", "receives posted on each end (1,64)", .text = &lists.depths},
		{"--beside", "tcp|ucx,...", "also over plain sockets, over UCX's TCP (neither)",
	         .text = &lists.beside},
		{"--blocks", "N", "blocks of each kind (40)", .number = &out->blocks, .min = 1,
	         .max = 10000},
		{"--block-ms", "N", "how long a block of the library below takes (20)",
	         .number = &out->block_ms, .min = 1, .max = 10000},
		{"--warm-up-ms", "N", "... and how long before that, which does not count (5)",
	         .number = &out->warm_up_ms, .max = 10000},
		{"--tries", "N",
	         "how often to measure while same against same is off by more than 3 % (3)",
	         .number = &out->tries, .min = 1, .max = 100},
		{"--seconds", "N", "begin no further try after so long (600)",
	         .number = &out->seconds, .max = 1000000},
		{"--threads", "N", "2: one for each end; 1: one for both, which can only spin (2)",
	         .number = &out->threads, .min = 1, .max = 2},
		{"--seed", "N", "of the order of blocks (1)", .number = &out->seed,
	         .max = UINT32_MAX},
		{"--json", NULL, "rows for programs", .flag = &out->json},
	};
	const struct sample_program program = {
		.name = "ndx-perf-compare",
		.synopsis = "[URI [URI2]] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	const char *value = NULL;
	const char *wrong;
	size_t operands;
	int code;

	defaults(out);
	if (!sample_parse(&program, argc, argv, &operands, &code))
		return code + 1;
	wrong = read_lists(out, &lists, &value);
	if (wrong != NULL)
		return sample_usage(&program, "%s %s: give a list of %s, separated by commas",
		                    wrong, value, allowed(wrong)) +
		       1;
	for (size_t i = 0; i < operands; i++) {
		out->uris[i] = argv[i + 1];
		out->uris[1] = out->uris[i];
	}
	return check(&program, out);
}
