/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_SPI_STATS_H
#define NDX_SPI_STATS_H

#include <stdint.h>

#include <ndx/stats.h>

/* The index of a status in an array of NDX_STATS_STATUSES counters. */
static inline unsigned ndxp_status_index(enum ndx_status status)
{
	const unsigned index = 0U - (unsigned)status;

	return index < NDX_STATS_STATUSES ? index : NDX_STATS_STATUSES - 1;
}

/* The bucket of a value in a histogram of NDX_STATS_BUCKETS: [n] counts 2^n to 2^(n + 1) - 1, [0]
 * also 0, and the last one also every larger value. */
static inline unsigned ndxp_stats_bucket(uint64_t value)
{
	const unsigned n = value < 2 ? 0 : 63u - (unsigned)__builtin_clzll(value);

	return n < NDX_STATS_BUCKETS ? n : NDX_STATS_BUCKETS - 1;
}

/* Count a status. */
static inline void ndxp_count_status(uint64_t *counts, enum ndx_status status)
{
	counts[ndxp_status_index(status)]++;
}

#endif
