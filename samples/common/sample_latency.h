/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of durations in nanoseconds: fixed size, error at most 3 %, no allocation. */
#ifndef SAMPLE_LATENCY_H
#define SAMPLE_LATENCY_H

#include <stdbool.h>
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

/**
 * Walk the durations that occur, shortest first. @p bucket is 0 before the first call.
 *
 * @param[out] ns     the longest duration of the step
 * @param[out] count  how many samples it has
 * @return false if there are no more
 */
bool sample_latency_next(const struct sample_latency *latency, unsigned *bucket, uint64_t *ns,
                         uint64_t *count);

/**
 * Write an SVG: how many samples took how long, and which share took at most that. Without samples
 * it has no lines.
 *
 * @param title  of what the durations are
 * @return an enum sample_exit; a failure was printed
 */
int sample_latency_plot(const char *program, const char *path, const char *title,
                        const struct sample_latency *latency);

#endif
