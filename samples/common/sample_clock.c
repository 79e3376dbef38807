/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_clock.h"

#include <time.h>

uint64_t sample_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sample_now_ms(void)
{
	return sample_now_ns() / 1000000;
}
