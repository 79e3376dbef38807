/* SPDX-License-Identifier: BSD-2-Clause */
/* Command line of ndx-perf compare. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"
#include "traffic.h"

#define OPTIONS_LIST 16u

struct options {
	const char *uris[2];
	bool json;
	bool test[TRAFFIC_TESTS]; /* enum traffic_test */
	bool mode[2];             /* spin, wait */
	bool beside[LANE_BESIDES];
	bool passive;             /* writes to targets that do not poll (passive.h), ... */
	uint32_t passive_seconds; /* for so long each */
	uint32_t sizes[OPTIONS_LIST];
	unsigned size_count;
	uint32_t depths[OPTIONS_LIST];
	unsigned depth_count;
	uint32_t blocks;
	uint32_t block_ms;
	uint32_t warm_up_ms;
	uint32_t tries;
	uint32_t threads;
	uint32_t seconds; /* no further try behind it */
	uint32_t seed;
};

/* 0, or what to exit with + 1. */
int options_read(int argc, char **argv, struct options *out);

#endif
