/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lane.h"

#define HUGE_PAGE ((size_t)2 << 20)

char *lane_memory(size_t bytes)
{
	const size_t size = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	char *memory = aligned_alloc(HUGE_PAGE, size);

	if (memory == NULL)
		lane_die("no memory", "for the messages");
	/* advice: without huge pages the measurement is only less fair */
	(void)madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 1, size);
	return memory;
}
