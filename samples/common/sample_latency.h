/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of durations in nanoseconds: fixed size, error at most 3 %, no allocation. */
#ifndef SAMPLE_LATENCY_H
#define SAMPLE_LATENCY_H

#include <stdint.h>

/** Each power of two has this many equal steps. */
#define SAMPLE_LATENCY_STEPS 32u

/** Zero it before use. */
struct sample_latency {
	uint64_t count;
	uint64_t max;
	uint64_t buckets[64 * SAMPLE_LATENCY_STEPS];
};

void sample_latency_add(struct sample_latency *latency, uint64_t ns);

/** The duration that `percent` percent of the samples do not exceed; 0 without samples. */
uint64_t sample_latency_percentile(const struct sample_latency *latency, double percent);

/** Nanoseconds of a monotonic clock. */
uint64_t sample_now_ns(void);

#endif
