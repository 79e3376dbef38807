/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement: blocks of the same traffic over all lanes, interleaved, and what they say. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"
#include "traffic.h"

#define MEASURE_AA_LIMIT 0.03 /* same against same may differ by so much */

struct measure_plan {
	const char *uris[2];
	struct lane_below below; /* what there is to compare with */
	bool beside[LANE_BESIDES];
	unsigned blocks; /* rounds, each with one block of every lane */
	unsigned block_ms;
	/* before each block, and not measured: a control thread leaves a queue to a consumer that
	 * begins to poll within two ticks of 2 ms */
	unsigned warm_up_ms;
	unsigned tries;       /* while the outcome is undecided */
	uint64_t deadline_ns; /* no further try behind it */
};

struct measure_row {
	enum traffic_test test;
	bool wait;
	uint32_t size;
	uint32_t depth;
	/* medians: microseconds for half a round trip, or messages a second */
	double ndx;
	bool compared;   /* with the same traffic straight on what is below: */
	bool plain;      /* ... also without NDX's guarantees */
	double raw_same; /* these and all below: only if so */
	double raw_plain;
	/* medians of the rounds' ratios ndx / raw, quartiles of the first */
	double ratio_same;
	double ratio_plain;
	double q1;
	double q3;
	double aa; /* raw_same / raw_same */
	/* beside those, if that is asked for and this traffic is possible there: */
	bool has_beside[LANE_BESIDES];
	double beside[LANE_BESIDES];       /* medians */
	double ratio_beside[LANE_BESIDES]; /* ... of ndx / beside */
};

/* test, wait, size and depth are given; fills the rest. */
void measure_run(const struct measure_plan *plan, struct traffic *traffic, struct measure_row *row);
/* Same against same differs by more than the limit: the machine was not quiet enough to tell. */
bool measure_is_undecided(const struct measure_row *row);
const char *measure_unit(const struct measure_row *row);

#endif
