/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software half of a completion queue: the stash, which a provider fills without the consumer's
 * help and get_results reads first, and notification.
 *
 * The stash has room for every slot of every queue pair side attached to it, so a push cannot fail:
 * a slot is given back only when its result was taken.
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
	struct base_queue *queue; /* whose slot it holds; NULL once the queue pair is gone */
};

struct base_cq {
	struct ndx_spi_cq spi;
	struct base_lock lock;
	struct base_cq_entry *ring;
	uint32_t size;     /* entries of ring, a power of two */
	uint32_t reserved; /* slots of attached queues */
	uint64_t pushed;   /* entries ever pushed, taken, ... */
	uint64_t taken;
	uint64_t triggered;      /* ... that have fired a notification already */
	uint64_t last_solicited; /* 1 + number of the newest entry that counts as solicited */
	uint32_t polls;          /* counts get_results; read by the control thread */
	struct base_ov_list notifies;
	enum ndx_cq_notify_type ov_type; /* strongest of notifies */
	enum ndx_cq_notify_type fd_type;
	bool armed; /* notifies not empty, or fd_armed */
	bool fd_armed;
	int fd;                 /* -1 until asked for */
	enum ndx_status failed; /* overrun or device failure; NDX_OK otherwise */
	bool blind;             /* whether a receive was solicited is not known: all count */
	uint64_t asked;         /* entries that were no news when solicited ones were asked for */
	/* For whoever asks how it goes. */
	uint64_t high_water; /* the most that a poll found waiting */
	uint64_t direct;     /* results that never were in the stash; atomic */
	uint64_t fired;      /* notifications */
	uint64_t failures[NDX_STATS_STATUSES];
};

enum ndx_status base_cq_init(struct base_cq *cq, const struct ndx_cq_ops *ops, uint32_t depth);
void base_cq_fini(struct base_cq *cq);

/* Make room for a queue of `depth` slots. */
enum ndx_status base_cq_attach(struct base_cq *cq, uint32_t depth);
/* The queue goes: its results stay. */
void base_cq_detach(struct base_cq *cq, struct base_queue *queue);

/* Push a result; takes the lock. Fires notifications. */
void base_cq_push(struct base_cq *cq, struct base_queue *queue, const struct ndx_result *result);

/* The same in two halves, for who would otherwise write the result twice: `result` of what the
 * first returns is filled in between, all of it; the lock is held meanwhile. */
static inline struct base_cq_entry *base_cq_push_begin(struct base_cq *cq, struct base_queue *queue)
{
	struct base_cq_entry *entry;

#ifndef NDX_PLANT_RACE /* a test build leaves the lock out, to see that the race is reported */
	base_lock_acquire(&cq->lock);
#endif
	entry = &cq->ring[cq->pushed & (cq->size - 1)];
	entry->queue = queue;
	return entry;
}

void base_cq_push_end(struct base_cq *cq, const struct base_cq_entry *entry);

/* Are there so many results to take? */
static inline bool base_cq_has(struct base_cq *cq, size_t count)
{
	bool has;

	base_lock_acquire(&cq->lock);
	has = cq->pushed - cq->taken >= count;
	base_lock_release(&cq->lock);
	return has;
}

/*
 * May a provider hand what it reads from its native queue straight to the consumer that polls?
 * Only if nothing older waits in the stash, and nobody waits to be notified. The provider's own
 * lock keeps others from filling the stash meanwhile. Without the queue's: who arms it at this
 * moment could as well have come a moment later.
 */
static inline bool base_cq_may_bypass(const struct base_cq *cq)
{
	return __atomic_load_n(&cq->pushed, __ATOMIC_RELAXED) ==
	               __atomic_load_n(&cq->taken, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
}

/* A poll found so many. Two that find the most at once may remember either. */
static inline void base_cq_saw(struct base_cq *cq, uint64_t waiting)
{
	if (waiting > __atomic_load_n(&cq->high_water, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->high_water, waiting, __ATOMIC_RELAXED);
}

/* A poll that bypassed the stash is over. One thread at a time. */
static inline void base_cq_bypassed(struct base_cq *cq, uint64_t results)
{
	__atomic_store_n(&cq->polls, __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) + 1,
	                 __ATOMIC_RELAXED);
	if (results == 0)
		return;
	__atomic_store_n(&cq->direct, cq->direct + results, __ATOMIC_RELAXED);
	base_cq_saw(cq, results);
}

/* Take results; the whole of get_results for a provider without native queue. */
size_t base_cq_take(struct base_cq *cq, struct ndx_result *results, size_t count);

/* Bodies of the provider operations of the same names. */
enum ndx_status base_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                               struct ndx_overlapped *ov);
void base_cq_cancel(struct ndx_spi_cq *spi, enum ndx_status status);
enum ndx_status base_cq_get_fd(struct ndx_spi_cq *spi, int *fd);
enum ndx_status base_cq_resize(struct ndx_spi_cq *spi, uint32_t depth);

void base_cq_get_stats(struct ndx_spi_cq *spi, struct ndx_cq_stats *stats);

/* For a provider that cannot tell which receives were solicited. What was it before? */
bool base_cq_set_blind(struct base_cq *cq, bool blind);
/* ... and hears of a solicited one from its device: it is among those pushed until now, or comes.
 */
void base_cq_solicit(struct base_cq *cq);
/* Does anybody wait for whatever comes? */
bool base_cq_wants_any(struct base_cq *cq);

/* The queue is dead: fires everything with `status`, now and from now on. */
void base_cq_fail(struct base_cq *cq, enum ndx_status status);

static inline struct base_cq *base_cq_of(struct ndx_cq *cq)
{
	return (struct base_cq *)(void *)cq;
}

#endif
