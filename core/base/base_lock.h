/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock of four bytes for the data path: two atomic operations without contention, a futex with
 * contention. (pthread_mutex costs about three times the instructions.) */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base_private.h"

struct base_lock {
	uint32_t word; /* 0 free, 1 held, 2 held and threads may sleep */
};

void base_lock_slow(struct base_lock *lock) NDX_PRIVATE(base_lock_slow);
void base_lock_wake(struct base_lock *lock) NDX_PRIVATE(base_lock_wake);

static inline void base_lock_acquire(struct base_lock *lock)
{
	uint32_t unlocked = 0;

	if (!__atomic_compare_exchange_n(&lock->word, &unlocked, 1, false, __ATOMIC_ACQUIRE,
	                                 __ATOMIC_RELAXED))
		base_lock_slow(lock);
}

static inline bool base_lock_try(struct base_lock *lock)
{
	uint32_t unlocked = 0;

	return __atomic_compare_exchange_n(&lock->word, &unlocked, 1, false, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

static inline void base_lock_release(struct base_lock *lock)
{
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		base_lock_wake(lock);
}

#endif
