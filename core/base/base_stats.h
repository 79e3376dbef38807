/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stdint.h>

#include <ndx/stats.h>

/* The index of a status in an array of NDX_STATS_STATUSES counters. */
static inline unsigned base_status_index(enum ndx_status status)
{
	const unsigned index = (unsigned)-(int)status;

	return index < NDX_STATS_STATUSES ? index : NDX_STATS_STATUSES - 1;
}

/* Count a status. */
static inline void base_count_status(uint64_t *counts, enum ndx_status status)
{
	counts[base_status_index(status)]++;
}

#endif
