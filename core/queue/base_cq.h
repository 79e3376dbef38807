/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider-independent half of a completion queue: the stash and notification. The provider
 * fills the stash without the consumer's help, and get_results reads the stash first.
 *
 * The stash has room for every slot of every queue that is attached, so a push cannot fail: a slot
 * becomes free only when its result is taken.
 */
#ifndef BASE_CQ_H
#define BASE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include "base_lock.h"
#include "base_ov.h"
#include "base_stats.h"

struct base_queue;

struct base_cq_entry {
	struct ndx_result result;
	struct base_queue *queue; /* the owner of the slot; NULL once the queue pair is destroyed */
};

struct base_cq {
	struct ndx_spi_cq spi;
	struct base_lock lock;
	struct base_cq_entry *ring;
	uint32_t size;     /* entries of ring, a power of two */
	uint32_t reserved; /* slots of the attached queues */
	uint64_t pushed;   /* entries ever pushed, taken, ... */
	uint64_t taken;
	uint64_t triggered;      /* ... and already notified */
	uint64_t last_solicited; /* 1 + number of the newest entry that counts as solicited */
	uint32_t polls;          /* counts get_results; the control thread reads it */
	struct base_ov_list notifies;
	enum ndx_cq_notify_type ov_type; /* the strongest type of `notifies` */
	enum ndx_cq_notify_type fd_type;
	bool armed; /* notifies not empty, or fd_armed */
	bool fd_armed;
	int fd;                 /* -1 until the consumer asks for it */
	enum ndx_status failed; /* NDX_OK, or the status of an overrun or device failure */
	bool assume_solicited;  /* all receives count as solicited: the provider cannot tell */
	uint64_t asked;         /* entries that no longer fired when solicited ones were armed */
	/* For statistics. */
	uint64_t high_water; /* the most results that a poll found waiting */
	uint64_t direct;     /* results that bypassed the stash; atomic */
	uint64_t fired;      /* notifications */
	uint64_t failures[NDX_STATS_STATUSES];
};

enum ndx_status base_cq_init(struct base_cq *cq, const struct ndx_cq_ops *ops, uint32_t depth);
void base_cq_fini(struct base_cq *cq);

/* Make room for a queue of `depth` slots. */
enum ndx_status base_cq_attach(struct base_cq *cq, uint32_t depth);
/* Detach a queue that is being destroyed: its results stay. */
void base_cq_detach(struct base_cq *cq, struct base_queue *queue);

/* Push a result and fire notifications; takes the lock. */
void base_cq_push(struct base_cq *cq, struct base_queue *queue, const struct ndx_result *result);

/* A push in two steps, which saves a copy of the result: the caller fills all of `result` of the
 * entry that base_cq_push_begin() returns, then calls base_cq_push_end(). The lock is held in
 * between. */
static inline struct base_cq_entry *base_cq_push_begin(struct base_cq *cq, struct base_queue *queue)
{
	struct base_cq_entry *entry;

	base_lock_acquire(&cq->lock);
	entry = &cq->ring[cq->pushed & (cq->size - 1)];
	entry->queue = queue;
	return entry;
}

void base_cq_push_end(struct base_cq *cq, const struct base_cq_entry *entry);

/* Whether at least `count` results wait. */
static inline bool base_cq_has(struct base_cq *cq, size_t count)
{
	bool has;

	base_lock_acquire(&cq->lock);
	has = cq->pushed - cq->taken >= count;
	base_lock_release(&cq->lock);
	return has;
}

/*
 * Does the consumer wait for a notification? The control thread that leaves a native queue to its
 * consumer stores that first, and asks this afterwards. A consumer that begins to wait arms first,
 * and checks afterwards which thread reads the native queue. So at least one side sees the other.
 */
static inline bool base_cq_is_armed(struct base_cq *cq)
{
	bool armed;

	base_lock_acquire(&cq->lock);
	armed = cq->armed;
	base_lock_release(&cq->lock);
	return armed;
}

/*
 * Whether a provider may hand results from its native queue directly to the polling consumer: only
 * if the stash is empty and no notification is armed. The provider's own lock keeps others from
 * filling the stash. The completion queue's lock is not needed: a consumer that arms at this moment
 * could as well arm a moment later.
 */
static inline bool base_cq_may_bypass(const struct base_cq *cq)
{
	return __atomic_load_n(&cq->pushed, __ATOMIC_RELAXED) ==
	               __atomic_load_n(&cq->taken, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
}

/* Record how many results a poll found. Of two polls with a new maximum either value may stay. */
static inline void base_cq_saw(struct base_cq *cq, uint64_t waiting)
{
	if (waiting > __atomic_load_n(&cq->high_water, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->high_water, waiting, __ATOMIC_RELAXED);
}

/* Count a poll that bypassed the stash. One thread at a time. */
static inline void base_cq_bypassed(struct base_cq *cq, uint64_t results)
{
	__atomic_store_n(&cq->polls, __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) + 1,
	                 __ATOMIC_RELAXED);
	if (results == 0)
		return;
	__atomic_store_n(&cq->direct, cq->direct + results, __ATOMIC_RELAXED);
	base_cq_saw(cq, results);
}

/* Take results from the stash; a provider without a native queue needs nothing else for
 * get_results. */
size_t base_cq_take(struct base_cq *cq, struct ndx_result *results, size_t count);

/* Implementations of the provider operations of the same names. */
enum ndx_status base_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                               struct ndx_overlapped *ov);
void base_cq_cancel(struct ndx_spi_cq *spi, enum ndx_status status);
enum ndx_status base_cq_get_fd(struct ndx_spi_cq *spi, int *fd);
enum ndx_status base_cq_resize(struct ndx_spi_cq *spi, uint32_t depth);

void base_cq_get_stats(struct ndx_spi_cq *spi, struct ndx_cq_stats *stats);

/* For a provider that cannot tell which receives were solicited: count all as solicited. Returns
 * the previous setting. */
bool base_cq_assume_solicited(struct base_cq *cq, bool assume_solicited);
/* The device reports a solicited receive, which is among those pushed until now or follows. */
void base_cq_solicit(struct base_cq *cq);
/* Whether a notification of type ANY is armed. */
bool base_cq_any_is_armed(struct base_cq *cq);

/* Fail the queue: fires everything that is armed with `status`, now and later. */
void base_cq_fail(struct base_cq *cq, enum ndx_status status);

static inline struct base_cq *base_cq_of(struct ndx_cq *cq)
{
	return (struct base_cq *)(void *)cq;
}

#endif
