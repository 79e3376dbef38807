/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that follow from a seed, and the clock. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* 0 .. limit - 1 */
static inline uint32_t below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((random_next(state) >> 32) % limit);
}

static inline bool chance(uint64_t *state, uint32_t percent)
{
	return below(state, 100) < percent;
}

/* The same for all processes of this host. */
static inline uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
