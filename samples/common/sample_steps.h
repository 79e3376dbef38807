/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a histogram of durations: every power of two has 2 to @p bits equal ones; below
 * that, each duration is a step of its own. */
#ifndef SAMPLE_STEPS_H
#define SAMPLE_STEPS_H

#include <stdint.h>

static inline unsigned sample_step_of(uint64_t ns, unsigned bits)
{
	const unsigned steps = 1u << bits;
	unsigned shift;

	if (ns < steps)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - bits;
	return (shift + 1) * steps + (unsigned)((ns >> shift) & (steps - 1));
}

/** The longest duration of a step. */
static inline uint64_t sample_step_top(unsigned step, unsigned bits)
{
	const unsigned steps = 1u << bits;

	if (step < steps)
		return step;
	return ((uint64_t)(steps + step % steps + 1) << (step / steps - 1)) - 1;
}

#endif
