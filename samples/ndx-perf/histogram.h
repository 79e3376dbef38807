/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of durations in nanoseconds, of fixed size: every power of two has 128 equal steps.
 * A percentile is the upper end of its step, so it is at most 1/128 (0.8 %) too high, and never
 * too low. Minimum, maximum, and mean are exact.
 */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEP_BITS 7
#define HISTOGRAM_STEPS (1u << HISTOGRAM_STEP_BITS)
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS)

/** Zero it before use. */
struct histogram {
	uint64_t count, min, max;
	double sum;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t ns);

/** Add the samples of @p more. */
void histogram_merge(struct histogram *h, const struct histogram *more);

/** The duration that `percent` percent of the samples do not exceed; 0 without samples. */
uint64_t histogram_percentile(const struct histogram *h, double percent);

double histogram_mean(const struct histogram *h);

/** The largest duration of a bucket. */
uint64_t histogram_top(unsigned bucket);

#endif
