/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/completion_queue.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/queue_pair.h>

static struct ndxp_cq *of(struct ndx_spi_cq *cq)
{
	return (struct ndxp_cq *)(void *)cq;
}

enum ndx_status ndxp_cq_init(struct ndxp_cq *cq, const struct ndx_cq_ops *ops, uint32_t depth)
{
	memset(cq, 0, sizeof(*cq));
	cq->spi.pub.ops = ops;
	cq->spi.depth = depth;
	cq->fd = -1;
	cq->fd_fired = UINT32_MAX; /* at no poll */
	return NDX_OK;
}

void ndxp_cq_fini(struct ndxp_cq *cq)
{
	ndxp_fd_close(cq->fd);
	free(cq->ring);
}

/* Enlarge the ring; entry number n stays at n & (size - 1). */
static bool grow(struct ndxp_cq *cq, uint64_t need)
{
	uint64_t size = cq->size == 0 ? 16 : cq->size;
	struct ndxp_cq_entry *ring;

	while (size < need)
		size *= 2;
	if (size == cq->size)
		return true;
	if (size > UINT32_MAX / 2)
		return false;
	/* malloc, not calloc: entries that are never used need no memory. */
	ring = malloc((size_t)size * sizeof(*ring));
	if (ring == NULL)
		return false;
	for (uint64_t n = cq->taken; n != cq->pushed; n++)
		ring[n & (size - 1)] = cq->ring[n & (cq->size - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->size = (uint32_t)size;
	return true;
}

enum ndx_status ndxp_cq_attach(struct ndxp_cq *cq, uint32_t depth)
{
	bool ok;

	ndxp_lock_acquire(&cq->lock);
	/* Results that wait now may belong to queue pairs that were destroyed. */
	ok = grow(cq, (uint64_t)cq->reserved + depth + (cq->pushed - cq->taken));
	if (ok)
		cq->reserved += depth;
	ndxp_lock_release(&cq->lock);
	return ok ? NDX_OK
	          : fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for the results of %u more requests",
	                 depth);
}

void ndxp_cq_detach(struct ndxp_cq *cq, struct ndxp_queue *queue)
{
	ndxp_lock_acquire(&cq->lock);
	cq->reserved -= queue->depth;
	for (uint64_t n = cq->taken; n != cq->pushed; n++) {
		struct ndxp_cq_entry *entry = &cq->ring[n & (cq->size - 1)];

		if (entry->queue == queue)
			entry->queue = NULL;
	}
	ndxp_lock_release(&cq->lock);
}

/* Lock held. ndxp_cq_may_bypass() and ndxp_cq_poll_take() read `armed` without the lock: the thread
 * that reads that the queue has fired must read the result behind that, too. */
static void arm(struct ndxp_cq *cq, bool armed)
{
	__atomic_store_n(&cq->armed, armed, __ATOMIC_RELEASE);
}

/* Lock held; not before the descriptor exists. */
static void set_fd(struct ndxp_cq *cq, bool readable)
{
	if (cq->fd_tracked && cq->fd_readable == readable)
		return;
	cq->fd_readable = readable;
	if (readable)
		ndxp_eventfd_set(cq->fd);
	else
		ndxp_eventfd_clear(cq->fd);
}

/* Lock held: fire the descriptor, or the notifications, as far as they are armed. */
static void fire(struct ndxp_cq *cq, bool fd, bool ovs, enum ndx_status status)
{
	if (cq->armed)
		cq->fired++;
	cq->triggered = cq->pushed;
	if (fd && cq->fd_armed) {
		cq->fd_armed = false;
		cq->fd_fired = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
		set_fd(cq, true);
	}
	if (ovs)
		ndxp_ov_complete_all(&cq->notifies, status);
	arm(cq, cq->fd_armed || cq->notifies.head != NULL);
}

/* Lock held: the number of entries that fire nothing any more: taken, or already notified. */
static uint64_t old_ones(const struct ndxp_cq *cq)
{
	return cq->triggered > cq->taken ? cq->triggered : cq->taken;
}

/* Lock held: whether there is a result that fires a notification of this type. */
static bool due(const struct ndxp_cq *cq, enum ndx_cq_notify_type type)
{
	switch (type) {
	case NDX_CQ_NOTIFY_ANY:
		return cq->pushed > old_ones(cq);
	case NDX_CQ_NOTIFY_SOLICITED:
		return cq->last_solicited > old_ones(cq);
	case NDX_CQ_NOTIFY_ERRORS:
		break;
	}
	return false;
}

/* Lock held: whether the descriptor, or a notification, is armed for this type. */
static bool fd_waits(const struct ndxp_cq *cq, enum ndx_cq_notify_type type)
{
	return cq->fd_armed && cq->fd_type == type;
}

static bool ovs_wait(const struct ndxp_cq *cq, enum ndx_cq_notify_type type)
{
	return cq->notifies.head != NULL && cq->ov_type == type;
}

static bool waits(const struct ndxp_cq *cq, enum ndx_cq_notify_type type)
{
	return fd_waits(cq, type) || ovs_wait(cq, type);
}

/* Lock held. */
static void fire_due(struct ndxp_cq *cq)
{
	const bool fd = cq->fd_armed && due(cq, cq->fd_type);
	const bool ovs = cq->notifies.head != NULL && due(cq, cq->ov_type);

	if (fd && !ovs &&
	    __atomic_load_n(&cq->poller, __ATOMIC_RELAXED) == (uintptr_t)pthread_self()) {
		__atomic_store_n(&cq->fd_postponed, true, __ATOMIC_RELAXED);
		return;
	}
	if (fd || ovs)
		fire(cq, fd, ovs, NDX_OK);
}

void ndxp_cq_add(struct ndxp_cq *cq, const struct ndxp_cq_entry *entry)
{
	__atomic_store_n(&cq->pushed, cq->pushed + 1, __ATOMIC_RELAXED);
	if (entry->result.status != NDX_OK) {
		cq->last_solicited = cq->pushed;
		ndxp_count_status(cq->failures, entry->result.status);
	} else if ((entry->result.flags & NDX_RESULT_SOLICITED) ||
	           (cq->assume_solicited && entry->result.request_type == NDX_REQUEST_RECEIVE)) {
		cq->last_solicited = cq->pushed;
	}
	if (cq->armed)
		fire_due(cq);
}

void ndxp_cq_push_end(struct ndxp_cq *cq, const struct ndxp_cq_entry *entry)
{
	ndxp_cq_add(cq, entry);
	ndxp_lock_release(&cq->lock);
}

void ndxp_cq_push(struct ndxp_cq *cq, struct ndxp_queue *queue, const struct ndx_result *result)
{
	struct ndxp_cq_entry *entry = ndxp_cq_push_begin(cq, queue);

	entry->result = *result;
	ndxp_cq_push_end(cq, entry);
}

/* Lock held: copy results out, and give their slots back, to each queue in one piece. */
static void copy_out(const struct ndxp_cq *cq, struct ndx_result *results, size_t count)
{
	struct ndxp_queue *queue = NULL;
	uint32_t slots = 0;

	for (size_t n = 0; n < count; n++) {
		const struct ndxp_cq_entry *entry = &cq->ring[(cq->taken + n) & (cq->size - 1)];

		results[n] = entry->result;
		if (entry->queue != queue && slots > 0)
			ndxp_queue_give_back(queue, slots);
		slots = entry->queue == queue ? slots + 1 : 1;
		queue = entry->queue;
		if (queue == NULL)
			slots = 0;
	}
	if (slots > 0)
		ndxp_queue_give_back(queue, slots);
}

static inline void count_poll(struct ndxp_cq *cq)
{
	__atomic_store_n(&cq->polls, __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) + 1,
	                 __ATOMIC_RELAXED);
}

/* Take results from the stash for a consumer that has `given` already. */
static inline size_t take_waiting(struct ndxp_cq *cq, struct ndx_result *results, size_t count,
                                  size_t given)
{
	uint64_t waiting;

	ndxp_lock_acquire(&cq->lock);
	/* The number grows only between two polls, so this is its maximum. */
	waiting = cq->pushed - cq->taken;
	ndxp_cq_saw(cq, given + waiting);
	if (count > waiting)
		count = waiting;
	copy_out(cq, results, count);
	__atomic_store_n(&cq->taken, cq->taken + count, __ATOMIC_RELAXED);
	ndxp_lock_release(&cq->lock);
	return count;
}

size_t ndxp_cq_take(struct ndxp_cq *cq, struct ndx_result *results, size_t count)
{
	count_poll(cq);
	return take_waiting(cq, results, count, 0);
}

void ndxp_cq_poll_begin(struct ndxp_cq *cq)
{
	__atomic_store_n(&cq->poller, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
}

void ndxp_cq_poll_into(struct ndxp_cq *cq, struct ndx_result *results, size_t count)
{
	cq->into = results;
	cq->room = count;
	ndxp_cq_poll_begin(cq);
}

struct ndx_result *ndxp_cq_poll_own(struct ndxp_cq *cq)
{
	if (__atomic_load_n(&cq->poller, __ATOMIC_RELAXED) != (uintptr_t)pthread_self() ||
	    cq->room == 0 || !ndxp_cq_may_bypass(cq))
		return NULL;
	cq->room--;
	cq->given++;
	return cq->into++;
}

size_t ndxp_cq_poll_take(struct ndxp_cq *cq)
{
	const size_t given = cq->given;

	cq->given = 0;
	count_poll(cq);
	if (given > 0)
		__atomic_store_n(&cq->direct, cq->direct + given, __ATOMIC_RELAXED);
	/* No lock in the usual case: what another thread pushes at this moment could as well be
	 * pushed a moment later. But what fires the descriptor counts as seen if a poll comes
	 * later (`fd_fired`), and only the lock says what is later. */
	if (__atomic_load_n(&cq->armed, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&cq->pushed, __ATOMIC_RELAXED) !=
	            __atomic_load_n(&cq->taken, __ATOMIC_RELAXED))
		return given + take_waiting(cq, cq->into, cq->room, given);
	ndxp_cq_saw(cq, given);
	return given;
}

void ndxp_cq_poll_end(struct ndxp_cq *cq)
{
	cq->room = 0;
	__atomic_store_n(&cq->poller, 0, __ATOMIC_RELAXED);
	/* only this thread has set it; another one that arms anew clears it */
	if (!__atomic_load_n(&cq->fd_postponed, __ATOMIC_RELAXED))
		return;
	ndxp_lock_acquire(&cq->lock);
	if (cq->fd_postponed) {
		__atomic_store_n(&cq->fd_postponed, false, __ATOMIC_RELAXED);
		fire_due(cq);
		cq->fd_answered = cq->fd_armed;
	}
	ndxp_lock_release(&cq->lock);
}

void ndxp_cq_wake(struct ndxp_cq *cq, bool up)
{
	ndxp_lock_acquire(&cq->lock);
	if (cq->fd >= 0)
		set_fd(cq, up);
	ndxp_lock_release(&cq->lock);
}

/* The stronger of the armed type and the requested type. */
static enum ndx_cq_notify_type stronger(bool armed, enum ndx_cq_notify_type old,
                                        enum ndx_cq_notify_type type)
{
	return !armed || type == NDX_CQ_NOTIFY_ANY || old == NDX_CQ_NOTIFY_ERRORS ? type : old;
}

/*
 * Lock held: whether a result of this type fired the descriptor, and the consumer has not polled
 * since. A consumer that polls while the descriptor is armed, and arms again without a look at the
 * descriptor, has no other news of that result.
 */
static bool fd_fired_unseen(const struct ndxp_cq *cq, enum ndx_cq_notify_type type)
{
	const uint64_t newest = type == NDX_CQ_NOTIFY_ANY ? cq->pushed : cq->last_solicited;

	return type != NDX_CQ_NOTIFY_ERRORS && newest > cq->taken &&
	       cq->fd_fired == __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
}

enum ndx_status ndxp_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                               struct ndx_overlapped *ov)
{
	struct ndxp_cq *cq = of(spi);
	enum ndx_status st = NDX_OK;
	bool unseen = false;
	int fd;

	if (ov == NULL)
		st = ndxp_cq_get_fd(spi, &fd);
	if (st != NDX_OK)
		return st;
	st = NDX_PENDING;
	ndxp_lock_acquire(&cq->lock);
	if (!waits(cq, NDX_CQ_NOTIFY_SOLICITED))
		cq->asked = old_ones(cq);
	if (ov != NULL) {
		cq->ov_type = stronger(cq->notifies.head != NULL, cq->ov_type, type);
		ndxp_ov_push(&cq->notifies, ov);
	} else {
		unseen = fd_fired_unseen(cq, type);
		cq->fd_type = stronger(cq->fd_armed && !cq->fd_answered, cq->fd_type, type);
		cq->fd_armed = true;
		cq->fd_answered = false;
		__atomic_store_n(&cq->fd_postponed, false, __ATOMIC_RELAXED);
		set_fd(cq, false);
	}
	arm(cq, true);
	/* A readable descriptor cannot carry a status: return the status from the call. */
	if (cq->failed != NDX_OK && ov == NULL)
		st = cq->failed;
	if (cq->failed != NDX_OK)
		fire(cq, true, true, cq->failed);
	else
		fire_due(cq);
	if (unseen && cq->fd_armed)
		fire(cq, true, false, NDX_OK);
	ndxp_lock_release(&cq->lock);
	return st;
}

bool ndxp_cq_assume_solicited(struct ndxp_cq *cq, bool assume_solicited)
{
	bool before;

	ndxp_lock_acquire(&cq->lock);
	before = cq->assume_solicited;
	cq->assume_solicited = assume_solicited;
	ndxp_lock_release(&cq->lock);
	return before;
}

/* The result may have been taken since it was pushed: notify the consumer that armed before. */
void ndxp_cq_solicit(struct ndxp_cq *cq)
{
	ndxp_lock_acquire(&cq->lock);
	cq->last_solicited = cq->pushed;
	if (waits(cq, NDX_CQ_NOTIFY_SOLICITED) && cq->pushed > cq->asked)
		fire(cq, fd_waits(cq, NDX_CQ_NOTIFY_SOLICITED),
		     ovs_wait(cq, NDX_CQ_NOTIFY_SOLICITED), NDX_OK);
	else
		fire_due(cq);
	ndxp_lock_release(&cq->lock);
}

bool ndxp_cq_any_is_armed(struct ndxp_cq *cq)
{
	bool any;

	ndxp_lock_acquire(&cq->lock);
	any = waits(cq, NDX_CQ_NOTIFY_ANY);
	ndxp_lock_release(&cq->lock);
	return any;
}

void ndxp_cq_cancel(struct ndx_spi_cq *spi, enum ndx_status status)
{
	struct ndxp_cq *cq = of(spi);

	ndxp_lock_acquire(&cq->lock);
	ndxp_ov_complete_all(&cq->notifies, status);
	arm(cq, cq->fd_armed);
	ndxp_lock_release(&cq->lock);
}

enum ndx_status ndxp_cq_get_fd(struct ndx_spi_cq *spi, int *fd)
{
	struct ndxp_cq *cq = of(spi);
	bool ok;
	int err = 0;

	ndxp_lock_acquire(&cq->lock);
	if (cq->fd < 0) {
		cq->fd = ndxp_eventfd_create();
		err = errno;
	}
	ok = cq->fd >= 0;
	if (ok)
		*fd = cq->fd;
	ndxp_lock_release(&cq->lock);
	return ok ? NDX_OK
	          : fail(NDX_E_INSUFFICIENT_RESOURCES, err,
	                 "no descriptor for a completion queue; see ulimit -n");
}

enum ndx_status ndxp_cq_resize(struct ndx_spi_cq *spi, uint32_t depth)
{
	struct ndxp_cq *cq = of(spi);
	uint64_t waiting;

	ndxp_lock_acquire(&cq->lock);
	waiting = cq->pushed - cq->taken;
	if (waiting <= depth)
		spi->depth = depth;
	ndxp_lock_release(&cq->lock);
	if (waiting > depth)
		return fail(NDX_E_BUFFER_OVERFLOW, 0,
		            "ndx_cq_resize: %llu results are waiting, more than %u; take them "
		            "first",
		            (unsigned long long)waiting, depth);
	return NDX_OK;
}

void ndxp_cq_get_stats(struct ndx_spi_cq *spi, struct ndx_cq_stats *stats)
{
	struct ndxp_cq *cq = of(spi);
	const uint64_t direct = __atomic_load_n(&cq->direct, __ATOMIC_RELAXED);
	uint64_t failures = 0;

	ndxp_lock_acquire(&cq->lock);
	stats->depth = spi->depth;
	stats->reserved = cq->reserved;
	stats->waiting = (uint32_t)(cq->pushed - cq->taken);
	stats->high_water = (uint32_t)__atomic_load_n(&cq->high_water, __ATOMIC_RELAXED);
	if (stats->high_water < stats->waiting)
		stats->high_water = stats->waiting;
	stats->polls = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
	stats->results = cq->pushed + direct;
	stats->taken = cq->taken + direct;
	stats->notifications = cq->fired;
	for (size_t i = 1; i < NDX_STATS_STATUSES; i++) {
		stats->by_status[i] = cq->failures[i];
		failures += cq->failures[i];
	}
	stats->by_status[0] = stats->results - failures;
	stats->failed = cq->failed;
	ndxp_lock_release(&cq->lock);
}

void ndxp_cq_fail(struct ndxp_cq *cq, enum ndx_status status)
{
	ndxp_lock_acquire(&cq->lock);
	if (cq->failed == NDX_OK)
		cq->failed = status;
	fire(cq, true, true, status);
	ndxp_lock_release(&cq->lock);
}
