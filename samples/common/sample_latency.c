/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_latency.h"

#define STEP_BITS 5 /* SAMPLE_LATENCY_STEPS is 2 to this */

static unsigned bucket_of(uint64_t ns)
{
	unsigned power;

	if (ns < SAMPLE_LATENCY_STEPS)
		return (unsigned)ns;
	power = 63u - (unsigned)__builtin_clzll(ns);
	return (power - STEP_BITS + 1) * SAMPLE_LATENCY_STEPS +
	       (unsigned)((ns >> (power - STEP_BITS)) & (SAMPLE_LATENCY_STEPS - 1));
}

/* The largest duration of a bucket. */
static uint64_t top_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < SAMPLE_LATENCY_STEPS)
		return bucket;
	shift = bucket / SAMPLE_LATENCY_STEPS - 1;
	return ((uint64_t)(SAMPLE_LATENCY_STEPS + bucket % SAMPLE_LATENCY_STEPS + 1) << shift) - 1;
}

void sample_latency_add(struct sample_latency *latency, uint64_t ns)
{
	latency->count++;
	latency->buckets[bucket_of(ns)]++;
	if (ns > latency->max)
		latency->max = ns;
}

uint64_t sample_latency_percentile(const struct sample_latency *latency, double percent)
{
	uint64_t wanted = (uint64_t)((double)latency->count * percent / 100.0 + 0.5);
	uint64_t seen = 0;

	if (latency->count == 0)
		return 0;
	for (unsigned i = 0; i < sizeof(latency->buckets) / sizeof(latency->buckets[0]); i++) {
		seen += latency->buckets[i];
		if (seen >= wanted && seen > 0)
			return top_of(i) < latency->max ? top_of(i) : latency->max;
	}
	return latency->max;
}

bool sample_latency_next(const struct sample_latency *latency, unsigned *bucket, uint64_t *ns,
                         uint64_t *count)
{
	const unsigned buckets = sizeof(latency->buckets) / sizeof(latency->buckets[0]);

	while (*bucket < buckets && latency->buckets[*bucket] == 0)
		(*bucket)++;
	if (*bucket == buckets)
		return false;
	*ns = top_of(*bucket) < latency->max ? top_of(*bucket) : latency->max;
	*count = latency->buckets[*bucket];
	(*bucket)++;
	return true;
}
