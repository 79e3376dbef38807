/* SPDX-License-Identifier: BSD-2-Clause */
/* A loop for each test, and futex words for which threads wait. */
#ifndef TESTS_BASE_LOOP_RIG_H
#define TESTS_BASE_LOOP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/system.h>
#include "base_loop.h"

static struct ndx_loop *loop;

static inline int make_loop(void **state)
{
	(void)state;
	return base_loop_create("ndx-test", &loop) == NDX_OK ? 0 : -1;
}

static inline int drop_loop(void **state)
{
	(void)state;
	base_loop_destroy(loop, NULL, NULL);
	return 0;
}

static inline void set_word(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(word, 1);
}

/* False if that has not happened within `ms`. */
static inline bool await(const uint32_t *word, uint32_t ms)
{
	const uint64_t deadline = ndxp_deadline(ms);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0 && ndxp_now_ns() < deadline)
		ndxp_futex_wait(word, 0, deadline);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0;
}

#endif
