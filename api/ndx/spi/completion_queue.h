/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider-independent half of a completion queue: the stash and notification. The provider
 * fills the stash without the consumer's help, and get_results reads the stash first.
 *
 * The stash has room for every slot of every queue that is attached, so a push cannot fail: a slot
 * becomes free only when its result is taken.
 */
#ifndef NDX_SPI_COMPLETION_QUEUE_H
#define NDX_SPI_COMPLETION_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/overlapped.h>
#include <ndx/spi/stats.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndxp_queue;

struct ndxp_cq_entry {
	struct ndx_result result;
	struct ndxp_queue *queue; /* the owner of the slot; NULL once the queue pair is destroyed */
};

struct ndxp_cq {
	struct ndx_spi_cq spi;
	struct ndxp_lock lock;
	struct ndxp_cq_entry *ring;
	uint32_t size;     /* entries of ring, a power of two */
	uint32_t reserved; /* slots of the attached queues */
	uint64_t pushed;   /* entries ever pushed, taken, ... */
	uint64_t taken;
	uint64_t triggered;      /* ... and already notified */
	uint64_t last_solicited; /* 1 + number of the newest entry that counts as solicited */
	uint32_t polls;          /* counts get_results; the control thread reads it */
	struct ndxp_ov_list notifies;
	enum ndx_cq_notify_type ov_type; /* the strongest type of `notifies` */
	enum ndx_cq_notify_type fd_type;
	bool armed; /* notifies not empty, or fd_armed */
	bool fd_armed;
	int fd;            /* -1 until the consumer asks for it */
	uint32_t fd_fired; /* `polls` when the descriptor fired last */
	bool fd_tracked;   /* only the functions here set and clear it (ndxp_cq_wake), ... */
	bool fd_readable;  /* ... so this is known, and needs no system call */
	bool fd_answered;  /* a poll has taken what it was armed for; it stays armed */
	bool fd_postponed; /* it is due, and the thread that polls may take all of that; atomic */
	uintptr_t poller;  /* the thread between begin and end of a poll, or 0; atomic */
	/* The poller's (ndxp_cq_poll_into()): where the next result goes that bypasses the stash.
	 */
	struct ndx_result *into;
	size_t room;            /* entries from there on */
	size_t given;           /* results before */
	enum ndx_status failed; /* NDX_OK, or the status of an overrun or device failure */
	bool assume_solicited;  /* all receives count as solicited: the provider cannot tell */
	uint64_t asked;         /* entries that no longer fired when solicited ones were armed */
	/* For statistics. */
	uint64_t high_water; /* the most results that a poll found waiting */
	uint64_t direct;     /* results that bypassed the stash; atomic */
	uint64_t fired;      /* notifications */
	uint64_t failures[NDX_STATS_STATUSES];
};

enum ndx_status ndxp_cq_init(struct ndxp_cq *cq, const struct ndx_cq_ops *ops, uint32_t depth);
void ndxp_cq_fini(struct ndxp_cq *cq);

/* Make room for a queue of `depth` slots. */
enum ndx_status ndxp_cq_attach(struct ndxp_cq *cq, uint32_t depth);
/* Detach a queue that is being destroyed: its results stay. */
void ndxp_cq_detach(struct ndxp_cq *cq, struct ndxp_queue *queue);

/* Push a result and fire notifications; takes the lock. */
void ndxp_cq_push(struct ndxp_cq *cq, struct ndxp_queue *queue, const struct ndx_result *result);

/* A push in two steps, which saves a copy of the result: the caller fills all of `result` of the
 * entry that ndxp_cq_push_begin() returns, then calls ndxp_cq_push_end(). The lock is held in
 * between. */
static inline struct ndxp_cq_entry *ndxp_cq_next(struct ndxp_cq *cq, struct ndxp_queue *queue)
{
	struct ndxp_cq_entry *entry = &cq->ring[cq->pushed & (cq->size - 1)];

	entry->queue = queue;
	return entry;
}

static inline struct ndxp_cq_entry *ndxp_cq_push_begin(struct ndxp_cq *cq, struct ndxp_queue *queue)
{
	ndxp_lock_acquire(&cq->lock);
	return ndxp_cq_next(cq, queue);
}

void ndxp_cq_push_end(struct ndxp_cq *cq, const struct ndxp_cq_entry *entry);

/* For several results under one lock, which the caller holds: ndxp_cq_next() and ndxp_cq_add() for
 * each. */
void ndxp_cq_add(struct ndxp_cq *cq, const struct ndxp_cq_entry *entry);

/* Whether at least `count` results wait, or were given to the poll under way, whose thread asks.
 * Another thread may push or take at any moment, so the lock would not make the answer better. */
static inline bool ndxp_cq_has(const struct ndxp_cq *cq, size_t count)
{
	return cq->given + (__atomic_load_n(&cq->pushed, __ATOMIC_RELAXED) -
	                    __atomic_load_n(&cq->taken, __ATOMIC_RELAXED)) >=
	       count;
}

/* Lock held: is the descriptor armed, and has no poll taken what it was armed for? */
static inline bool ndxp_cq_fd_waits(const struct ndxp_cq *cq)
{
	return cq->fd_armed && !cq->fd_answered;
}

/*
 * Does the consumer wait for a notification? The control thread that leaves a native queue to its
 * consumer stores that first, and asks this afterwards. A consumer that begins to wait arms first,
 * and checks afterwards which thread reads the native queue. So at least one side sees the other.
 */
static inline bool ndxp_cq_is_armed(struct ndxp_cq *cq)
{
	bool armed;

	ndxp_lock_acquire(&cq->lock);
	armed = cq->notifies.head != NULL || ndxp_cq_fd_waits(cq);
	ndxp_lock_release(&cq->lock);
	return armed;
}

/* How many notifications were given. */
static inline uint64_t ndxp_cq_count_notified(struct ndxp_cq *cq)
{
	uint64_t count;

	ndxp_lock_acquire(&cq->lock);
	count = cq->fired;
	ndxp_lock_release(&cq->lock);
	return count;
}

/*
 * Whether a provider may hand results from its native queue directly to the polling consumer: only
 * if the stash is empty and no notification is armed. The provider's own lock keeps others from
 * filling the stash. The completion queue's lock is not needed: a consumer that arms at this moment
 * could as well arm a moment later.
 */
static inline bool ndxp_cq_may_bypass(const struct ndxp_cq *cq)
{
	return __atomic_load_n(&cq->pushed, __ATOMIC_RELAXED) ==
	               __atomic_load_n(&cq->taken, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&cq->armed, __ATOMIC_RELAXED);
}

/* Record how many results a poll found. Of two polls with a new maximum either value may stay. */
static inline void ndxp_cq_saw(struct ndxp_cq *cq, uint64_t waiting)
{
	if (waiting > __atomic_load_n(&cq->high_water, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->high_water, waiting, __ATOMIC_RELAXED);
}

/* Count a poll that bypassed the stash. One thread at a time. */
static inline void ndxp_cq_bypassed(struct ndxp_cq *cq, uint64_t results)
{
	__atomic_store_n(&cq->polls, __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) + 1,
	                 __ATOMIC_RELAXED);
	if (results == 0)
		return;
	__atomic_store_n(&cq->direct, cq->direct + results, __ATOMIC_RELAXED);
	ndxp_cq_saw(cq, results);
}

/*
 * For providers whose get_results finds results by itself and takes them in the same call. A
 * consumer that is woken by a native descriptor, and polls, has no use for the own descriptor's
 * news of what this poll returns: two system calls for each result. Between these two, what the
 * calling thread pushes does not set the descriptor until the poll leaves a result behind. Then the
 * descriptor stays armed, so another thread that sleeps on it misses nothing. One thread at a time.
 */
void ndxp_cq_poll_begin(struct ndxp_cq *cq);
void ndxp_cq_poll_end(struct ndxp_cq *cq);

/*
 * The same with the consumer's array: until ndxp_cq_poll_take(), ndxp_queue_retire() puts a success
 * that this thread retires directly into the array, if ndxp_cq_may_bypass() says so. That saves a
 * copy and two locks for each result. The results of a queue pair keep their order: they are
 * retired under its lock, and one that went into the stash before keeps the later ones from the
 * array until it is taken. ndxp_cq_poll_take() adds what the stash has, and returns how many
 * results there are.
 */
void ndxp_cq_poll_into(struct ndxp_cq *cq, struct ndx_result *results, size_t count);
size_t ndxp_cq_poll_take(struct ndxp_cq *cq);

/* An entry of the array for a success, if this thread polls and the result may bypass the stash;
 * else NULL. */
struct ndx_result *ndxp_cq_poll_own(struct ndxp_cq *cq);
static inline struct ndx_result *ndxp_cq_poll_entry(struct ndxp_cq *cq)
{
	return __atomic_load_n(&cq->poller, __ATOMIC_RELAXED) == 0 ? NULL : ndxp_cq_poll_own(cq);
}

/* For the operation `cq_wake`: set or clear the descriptor, if the consumer has asked for it. */
void ndxp_cq_wake(struct ndxp_cq *cq, bool up);

/* Take results from the stash; a provider without a native queue needs nothing else for
 * get_results. */
size_t ndxp_cq_take(struct ndxp_cq *cq, struct ndx_result *results, size_t count);

/* Implementations of the provider operations of the same names. */
enum ndx_status ndxp_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                               struct ndx_overlapped *ov);
void ndxp_cq_cancel(struct ndx_spi_cq *spi, enum ndx_status status);
enum ndx_status ndxp_cq_get_fd(struct ndx_spi_cq *spi, int *fd);
enum ndx_status ndxp_cq_resize(struct ndx_spi_cq *spi, uint32_t depth);

void ndxp_cq_get_stats(struct ndx_spi_cq *spi, struct ndx_cq_stats *stats);

/* For a provider that cannot tell which receives were solicited: count all as solicited. Returns
 * the previous setting. */
bool ndxp_cq_assume_solicited(struct ndxp_cq *cq, bool assume_solicited);
/* The device reports a solicited receive, which is among those pushed until now or follows. */
void ndxp_cq_solicit(struct ndxp_cq *cq);
/* Whether a notification of type ANY is armed. */
bool ndxp_cq_any_is_armed(struct ndxp_cq *cq);

/* Fail the queue: fires everything that is armed with `status`, now and later. */
void ndxp_cq_fail(struct ndxp_cq *cq, enum ndx_status status);

static inline struct ndxp_cq *ndxp_cq_of(struct ndx_cq *cq)
{
	return (struct ndxp_cq *)(void *)cq;
}

NDXP_DECLS_END

#endif
