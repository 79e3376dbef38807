/* SPDX-License-Identifier: BSD-2-Clause */
/* A monotonic clock. A handler of a signal may ask it. */
#ifndef SAMPLE_CLOCK_H
#define SAMPLE_CLOCK_H

#include <stdint.h>

uint64_t sample_now_ns(void);
uint64_t sample_now_ms(void);

#endif
