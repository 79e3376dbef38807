/* SPDX-License-Identifier: BSD-2-Clause */
/* Types that the entry points share. */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include <stdint.h>

/* The provider fills this copy, so that the caller's variables stay unchanged on failure. */
struct affinity {
	uint64_t mask;
	uint16_t group;
};

#endif
