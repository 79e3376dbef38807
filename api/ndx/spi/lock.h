/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock of four bytes for the data path: two atomic operations without contention, a futex with
 * contention. (pthread_mutex costs about three times the instructions.) */
#ifndef NDX_SPI_LOCK_H
#define NDX_SPI_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndxp_lock {
	uint32_t word; /* 0 free, 1 held, 2 held and threads may sleep */
};

void ndxp_lock_slow(struct ndxp_lock *lock) NDXP_SHARED;
void ndxp_lock_wake(struct ndxp_lock *lock) NDXP_SHARED;

static inline void ndxp_lock_acquire(struct ndxp_lock *lock)
{
	uint32_t unlocked = 0;

	if (!__atomic_compare_exchange_n(&lock->word, &unlocked, 1, false, __ATOMIC_ACQUIRE,
	                                 __ATOMIC_RELAXED))
		ndxp_lock_slow(lock);
}

static inline bool ndxp_lock_try(struct ndxp_lock *lock)
{
	uint32_t unlocked = 0;

	return __atomic_compare_exchange_n(&lock->word, &unlocked, 1, false, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

static inline void ndxp_lock_release(struct ndxp_lock *lock)
{
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		ndxp_lock_wake(lock);
}

/* The caller holds the lock: may another thread be waiting for the lock? */
static inline bool ndxp_lock_is_wanted(const struct ndxp_lock *lock)
{
	return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) == 2;
}

NDXP_DECLS_END

#endif
