/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"
#include "passive.h"

static const char usage[] =
	"usage: ndx-perf [OPTIONS] [URI [URI2]]\n"
	"\n"
	"What NDX costs: traffic over the adapter URI (ofi:tcp?iface=lo) and, where there is one,\n"
	"straight over the library below it, in turn. Both ends are in this process; the second\n"
	"at URI2, if that is named.\n"
	"\n"
	"  --tests LIST     latency,stream (both); write: half a round trip of writes\n"
	"  --modes LIST     spin,wait (both); passive: writes to targets that do not poll, beside\n"
	"                   messages to one that sleeps, second by second\n"
	"  --passive-seconds N  of each of those, 1 .. 3600 (1)\n"
	"  --sizes LIST     of messages, in bytes (8,64,512,4096,65536,1048576)\n"
	"  --depths LIST    receives posted on each end (1,64)\n"
	"  --blocks N       blocks of each kind, 1 .. 10000 (40)\n"
	"  --block-ms N     how long a block of the library below takes, 1 .. 10000 (20)\n"
	"  --tries N        how often to measure while same against same is off by more than 3 %,\n"
	"                   1 .. 100 (3)\n"
	"  --seconds N      begin no further try after so long (600)\n"
	"  --threads N      2: one for each end (default); 1: one for both, which can only spin\n"
	"  --seed N         of the order of blocks (1)\n"
	"  --json           rows for programs\n";

static int misuse(const char *option, const char *value)
{
	(void)fprintf(stderr, "ndx-perf: --%s: '%s' will not do\n\n%s", option, value, usage);
	return 2 + 1;
}

static bool read_number(const char *text, unsigned long least, unsigned long most, uint32_t *out)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < least || value > most ||
	    text[0] == '-')
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool read_numbers(char *text, unsigned long least, unsigned long most, uint32_t *list,
                         unsigned *count)
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
		.tries = 3,
		.threads = 2,
		.seconds = 600,
		.passive_seconds = 1,
		.seed = 1,
	};
}

enum {
	TESTS = 256,
	MODES,
	SIZES,
	DEPTHS,
	BLOCKS,
	BLOCK_MS,
	TRIES,
	SECONDS,
	PASSIVE_FOR,
	THREADS,
	SEED,
	JSON
};

static const struct option table[] = {
	{"tests", required_argument, NULL, TESTS},
	{"modes", required_argument, NULL, MODES},
	{"sizes", required_argument, NULL, SIZES},
	{"depths", required_argument, NULL, DEPTHS},
	{"blocks", required_argument, NULL, BLOCKS},
	{"block-ms", required_argument, NULL, BLOCK_MS},
	{"tries", required_argument, NULL, TRIES},
	{"seconds", required_argument, NULL, SECONDS},
	{"passive-seconds", required_argument, NULL, PASSIVE_FOR},
	{"threads", required_argument, NULL, THREADS},
	{"seed", required_argument, NULL, SEED},
	{"json", no_argument, NULL, JSON},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

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

static bool take_option(struct options *out, int option, char *value)
{
	static const char *const tests[TRAFFIC_TESTS] = {"latency", "stream", "write"};

	switch (option) {
	case TESTS:
		return read_words(value, tests, out->test, TRAFFIC_TESTS);
	case MODES:
		return read_modes(out, value);
	case SIZES:
		return read_numbers(value, 0, 1u << 30, out->sizes, &out->size_count);
	case DEPTHS:
		return read_numbers(value, 1, 256, out->depths, &out->depth_count);
	case BLOCKS:
		return read_number(value, 1, 10000, &out->blocks);
	case BLOCK_MS:
		return read_number(value, 1, 10000, &out->block_ms);
	case TRIES:
		return read_number(value, 1, 100, &out->tries);
	case SECONDS:
		return read_number(value, 0, 1000000, &out->seconds);
	case PASSIVE_FOR:
		return read_number(value, 1, PASSIVE_SECONDS, &out->passive_seconds);
	case THREADS:
		return read_number(value, 1, 2, &out->threads);
	case SEED:
		return read_number(value, 0, UINT32_MAX, &out->seed);
	default: /* JSON */
		out->json = true;
		return true;
	}
}

static bool sizes_can_be_written(const struct options *options)
{
	for (unsigned i = 0; i < options->size_count; i++) {
		if (options->sizes[i] == 0 || options->sizes[i] % LANE_WRITE_LEAST != 0)
			return false;
	}
	return true;
}

int options_read(int argc, char **argv, struct options *out)
{
	char none[1] = "";
	char shown[256];
	int which = 0;
	int option;

	defaults(out);
	while ((option = getopt_long(argc, argv, "h", table, &which)) != -1) {
		if (option == 'h') {
			(void)fputs(usage, stdout);
			return 0 + 1;
		}
		if (option == '?') {
			(void)fputs(usage, stderr);
			return 2 + 1;
		}
		/* Reading a list cuts it up. */
		(void)snprintf(shown, sizeof(shown), "%s", optarg != NULL ? optarg : "");
		if (!take_option(out, option, optarg != NULL ? optarg : none))
			return misuse(table[which].name, shown);
	}
	for (int i = 0; i < 2 && optind < argc; i++) {
		out->uris[i] = argv[optind++];
		out->uris[1] = out->uris[i];
	}
	if (optind < argc) {
		(void)fprintf(stderr, "ndx-perf: two URIs at most, not also '%s'\n\n%s",
		              argv[optind], usage);
		return 2 + 1;
	}
	if (out->passive && !out->test[TRAFFIC_WRITE]) {
		(void)fputs("ndx-perf: --modes passive is of --tests write\n", stderr);
		return 2 + 1;
	}
	if (out->test[TRAFFIC_WRITE] && !sizes_can_be_written(out)) {
		(void)fprintf(stderr, "ndx-perf: writes are multiples of %zu bytes\n",
		              LANE_WRITE_LEAST);
		return 2 + 1;
	}
	return 0;
}
