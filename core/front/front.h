/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of entry points share. */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include <stdint.h>

/* What a provider fills in: on failure the caller's own must stay as it was. */
struct affinity {
	uint64_t mask;
	uint16_t group;
};

#endif
