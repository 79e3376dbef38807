/* SPDX-License-Identifier: BSD-2-Clause */
#include "histogram.h"

#include <math.h>

#include "sample_steps.h"

uint64_t histogram_top(unsigned bucket)
{
	return sample_step_top(bucket, HISTOGRAM_STEP_BITS);
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	if (h->count == 0 || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->count++;
	h->sum += (double)ns;
	h->buckets[sample_step_of(ns, HISTOGRAM_STEP_BITS)]++;
}

void histogram_merge(struct histogram *h, const struct histogram *more)
{
	if (more->count == 0)
		return;
	if (h->count == 0 || more->min < h->min)
		h->min = more->min;
	if (more->max > h->max)
		h->max = more->max;
	h->count += more->count;
	h->sum += more->sum;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->buckets[i] += more->buckets[i];
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	const uint64_t wanted = (uint64_t)ceil((double)h->count * percent / 100.0);
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen > 0 && seen >= wanted)
			return histogram_top(i) < h->max ? histogram_top(i) : h->max;
	}
	return h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->count > 0 ? h->sum / (double)h->count : 0;
}
