/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_latency.h"

#include "sample_steps.h"

#define STEP_BITS 5 /* SAMPLE_LATENCY_STEPS is 2 to this */

void sample_latency_add(struct sample_latency *latency, uint64_t ns)
{
	latency->count++;
	latency->buckets[sample_step_of(ns, STEP_BITS)]++;
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
			return sample_step_top(i, STEP_BITS) < latency->max
			               ? sample_step_top(i, STEP_BITS)
			               : latency->max;
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
	*ns = sample_step_top(*bucket, STEP_BITS);
	if (*ns > latency->max)
		*ns = latency->max;
	*count = latency->buckets[*bucket];
	(*bucket)++;
	return true;
}
