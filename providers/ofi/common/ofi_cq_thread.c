/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who reads a native completion queue. A consumer that polls all the time is left alone: the
 * control thread then only looks at its count of polls now and then. Otherwise the control thread
 * sleeps on the queue's descriptor and reads by itself.
 *
 * What a peer writes to a consumer's memory arrives only when somebody reads the native queue, and
 * a consumer that polls now and then may wait for just that. So the control thread stays on the
 * descriptor until several wake-ups in a row have found the consumer reading the queue itself, and
 * comes back to the descriptor when a tick has seen few polls.
 */
#include <poll.h>

#include "base_linux.h"
#include "ofi.h"

#define TICK_MS 2u
#define IDLE_MAX 20000      /* empty wake-ups in a row, ... */
#define IDLE_NS 1000000000u /* ... and for so long, before we slow down */
#define ROUNDS 64           /* of reading until empty, before others get their turn */
#define MANY 8u             /* native queues below one of the consumer's, ... */
#define PATIENCE 64u        /* ... and one more missed tick is forgiven for so many */
#define FEW 8u              /* polls and results of a tick: with fewer, a consumer has left */
#define BULK 16u            /* results of a poll: the consumer handles them, then polls again */
#define GLANCES 8           /* looks at whether a consumer reads */
#define SURE 4u             /* wake-ups in a row that found a consumer reading, ... */
#define SURE_NS 100000u     /* ... and for so long, before it is left alone */

/*
 * None of these waits for the lock: the ties change on this thread alone, and a consumer that polls
 * holds it nearly always. To wait for it would mean to be woken by each of its polls until one of
 * them is slow enough.
 */

/* Is somebody waiting for a notification that we have to give? */
static bool is_wanted(struct ofi_ncq *ncq)
{
	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		if (ofi_cq_needs_thread(container_of(n, struct ofi_tie, of_ncq)->cq))
			return true;
	}
	return false;
}

/* What consumers have done since the last look. */
static struct ofi_use look_back(struct ofi_ncq *ncq)
{
	const struct ofi_use before = ncq->seen;
	struct ofi_use now = {0, 0};

	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		const struct base_cq *cq = &container_of(n, struct ofi_tie, of_ncq)->cq->base;

		now.polls += __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
		now.results += (uint32_t)__atomic_load_n(&cq->taken, __ATOMIC_RELAXED);
	}
	ncq->seen = now;
	return (struct ofi_use){now.polls - before.polls, now.results - before.results};
}

/* Does a consumer get so many results at once that it handles them for long between two polls? It
 * is sure to poll again. */
static bool is_bulk(const struct ofi_use *use)
{
	return use->polls > 0 && use->results / use->polls >= BULK;
}

static bool is_readable(const struct ofi_ncq *ncq)
{
	struct pollfd native = {.fd = ncq->watch.fd, .events = POLLIN};

	return poll(&native, 1, 0) > 0;
}

/* Does a consumer sleep on the native queue's descriptor? The same event wakes it. */
static bool wakes_consumer(struct ofi_ncq *ncq)
{
	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		if (ofi_cq_sleeps_lent(container_of(n, struct ofi_tie, of_ncq)->cq))
			return true;
	}
	return false;
}

/* Woken by the descriptor: does a consumer read the queue at this moment, or has it read what we
 * were woken for? */
static bool is_being_read(struct ofi_ncq *ncq, bool polled)
{
	for (int i = 0; i < GLANCES; i++) {
		if (!base_lock_try(&ncq->lock))
			return true;
		base_lock_release(&ncq->lock);
		if (!polled)
			return false;
		if (!is_readable(ncq) || look_back(ncq).polls > 0)
			return true;
	}
	return false;
}

/* Has every wake-up for some time found that a consumer reads? Those of all native queues below its
 * queue count, so that many of them are left to it as fast as one. */
static bool is_sure(struct ofi_ncq *ncq, bool reads)
{
	const uint64_t now = reads ? base_now_ns() : 0;
	bool sure = false;

	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ofi_cq *cq = container_of(n, struct ofi_tie, of_ncq)->cq;

		if (!reads)
			cq->sightings = 0;
		else if (cq->sightings++ == 0)
			cq->sighted_ns = now;
		sure = sure || (cq->sightings >= SURE && now - cq->sighted_ns >= SURE_NS);
	}
	return sure;
}

static void set_mode(struct ofi_ncq *ncq, enum ofi_ncq_mode mode)
{
	__atomic_store_n(&ncq->mode, mode, __ATOMIC_SEQ_CST);
}

/* Look again at the next tick. */
static void go_away(struct ofi_ncq *ncq)
{
	set_mode(ncq, OFI_NCQ_AWAY);
	if (!ncq->adapter->tick.armed)
		base_timer_set(ncq->adapter->spi.loop, &ncq->adapter->tick, TICK_MS);
}

/*
 * A descriptor that is watched, if only by a watch that is silent, makes every packet dearer: the
 * kernel passes each wake-up on. A consumer that polls does not pay for that.
 */
void ofi_ncq_unwatch(struct ofi_ncq *ncq)
{
	if (!ncq->watched)
		return;
	base_watch_remove(ncq->adapter->spi.loop, &ncq->watch);
	ncq->watched = false;
}

static bool watch(struct ofi_ncq *ncq)
{
	if (ncq->watched)
		base_watch_rearm(ncq->adapter->spi.loop, &ncq->watch, POLLIN);
	else
		ncq->watched =
			base_watch_add(ncq->adapter->spi.loop, &ncq->watch, POLLIN, true) == NDX_OK;
	return ncq->watched;
}

/* Lock held. A wait may begin: nothing is left, and the descriptor will tell of what comes. */
static bool may_wait(struct ofi_ncq *ncq)
{
	struct fid *fids[1] = {&ncq->cq->fid};

	return fi_trywait(ncq->adapter->fabric, fids, 1) == 0 && ofi_ncq_progress(ncq) == 0;
}

/* How many bytes the kernel has received on the connections of all links; false if that is not
 * known of each. */
static bool count_traffic(const struct ofi_ncq *ncq, uint64_t *bytes)
{
	*bytes = 0;
	for (size_t i = 0; i < OFI_NCQ_BUCKETS; i++) {
		for (struct ofi_link *link = ncq->buckets[i]; link != NULL; link = link->next) {
			struct base_traffic now;

			if (!ofi_life_traffic(link, &now))
				return false;
			*bytes += now.in;
		}
	}
	return true;
}

/* After many wake-ups that completed nothing: what a peer writes to memory completes nothing here
 * either, but takes a byte at the least for each of them. */
static bool has_moved(struct ofi_ncq *ncq)
{
	uint64_t bytes;

	if (count_traffic(ncq, &bytes) && bytes - ncq->traffic < ncq->idle)
		return false;
	ncq->traffic = bytes;
	return true;
}

/*
 * Is the descriptor readable for nothing? A message that finds no receive stops its stream and
 * keeps the descriptor readable (libfabric to 1.17). That is to be expected of a link that takes no
 * messages any more, and else only of a peer that sends without credit.
 */
static bool is_in_vain(struct ofi_ncq *ncq, bool any)
{
	if (any) {
		ncq->idle = 0;
		return false;
	}
	if (ncq->deaf > 0 && ncq->adapter->share != OFI_SHARE_ALWAYS)
		return is_readable(ncq);
	if (ncq->idle++ == 0)
		ncq->idle_since = base_now_ns();
	if (ncq->idle <= IDLE_MAX || base_now_ns() - ncq->idle_since <= IDLE_NS)
		return false;
	if (!has_moved(ncq))
		return true;
	ncq->idle = 0;
	return false;
}

/* Sleep on the descriptor. */
static void arm(struct ofi_ncq *ncq)
{
	set_mode(ncq, OFI_NCQ_ARMED);
	if (!watch(ncq))
		go_away(ncq); /* no room for the watch: every tick tries again */
}

/* A consumer reads: it is not to be disturbed. False: somebody waits for a notification that we
 * have to give. */
static bool leave(struct ofi_ncq *ncq, bool was_away)
{
	/* First the mode, then the look: who begins to wait does it the other way round. */
	if (is_sure(ncq, true) || was_away)
		go_away(ncq);
	else
		arm(ncq);
	return !is_wanted(ncq);
}

/*
 * Take the lock, unless a consumer has it that polls again: to wait for it would mean to be woken
 * by each of its polls, to find the lock taken by the next.
 */
static bool take_over(struct ofi_ncq *ncq, bool was_away)
{
	if (base_lock_try(&ncq->lock))
		return true;
	if (leave(ncq, was_away))
		return false;
	set_mode(ncq, OFI_NCQ_BUSY);
	base_lock_acquire(&ncq->lock);
	return true;
}

/* Read all there is, then sleep on the descriptor. */
static void run(struct ofi_ncq *ncq)
{
	const bool was_away = ncq->mode == OFI_NCQ_AWAY;
	const uint32_t posts = __atomic_load_n(&ncq->posts, __ATOMIC_RELAXED);
	bool any = posts != ncq->seen_posts;
	bool quiet = false;
	unsigned n;

	set_mode(ncq, OFI_NCQ_BUSY);
	ncq->missed = 0;
	ncq->seen_posts = posts;
	for (int rounds = 0; !quiet && rounds < ROUNDS; rounds++) {
		if (!take_over(ncq, was_away))
			return;
		n = ofi_ncq_progress(ncq);
		quiet = n == 0 && may_wait(ncq);
		base_lock_release(&ncq->lock);
		any = any || n > 0;
	}
	__atomic_store_n(&ncq->awaited, 0, __ATOMIC_RELAXED);
	if (!any)
		ofi_count(&ncq->adapter->counts.vain);
	if (is_in_vain(ncq, any)) {
		go_away(ncq);
		return;
	}
	if (any && !quiet) {
		/* Others get their turn. The descriptor need not tell of what is left. */
		ofi_ncq_kick(ncq);
		return;
	}
	arm(ncq);
}

static void on_readable(void *arg, uint32_t events)
{
	struct ofi_ncq *ncq = arg;
	const struct ofi_use use = look_back(ncq);

	(void)events;
	ofi_count(&ncq->adapter->counts.wakeups);
	if (wakes_consumer(ncq) || is_being_read(ncq, use.polls > 0)) {
		if (leave(ncq, false))
			return;
	} else if (is_sure(ncq, is_bulk(&use))) {
		/* As in leave(). */
		go_away(ncq);
		if (!is_wanted(ncq))
			return;
	}
	run(ncq);
}

enum ndx_status ofi_ncq_watch(struct ofi_ncq *ncq)
{
	enum ndx_status st;

	ncq->watch.fn = on_readable;
	ncq->watch.arg = ncq;
	ncq->mode = OFI_NCQ_ARMED;
	(void)may_wait(ncq);
	st = base_watch_add(ncq->adapter->spi.loop, &ncq->watch, POLLIN, true);
	ncq->watched = st == NDX_OK;
	return st;
}

/*
 * Has the consumer given up polling? A poll that finds results in many native queues is long, and a
 * consumer that handles them does not poll meanwhile. To take all the queues from it and give them
 * back, one by one, costs a wake-up for each: so the more there are, the longer we wait and see,
 * but for what the control thread needs itself.
 */
static bool has_left(struct ofi_ncq *ncq)
{
	const struct ofi_use use = look_back(ncq);
	uint32_t native = 0;
	bool lent = false;

	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		const struct ofi_cq *cq = container_of(n, struct ofi_tie, of_ncq)->cq;

		native += __atomic_load_n(&cq->native, __ATOMIC_RELAXED);
		lent = lent || __atomic_load_n(&cq->lent, __ATOMIC_RELAXED) != 0;
	}
	/* Who sleeps between two polls is woken by the descriptor itself. */
	if (use.polls + use.results >= FEW || (lent && use.polls > 0)) {
		ncq->missed = 0;
		ncq->naps = 0;
		return false;
	}
	return native < MANY || __atomic_load_n(&ncq->awaited, __ATOMIC_RELAXED) != 0 ||
	       ncq->missed++ > native / PATIENCE;
}

void ofi_ncq_on_tick(void *arg)
{
	struct ofi_adapter *adapter = arg;

	ofi_count(&adapter->counts.ticks);
	for (struct base_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (__atomic_load_n(&ncq->mode, __ATOMIC_RELAXED) != OFI_NCQ_AWAY)
			continue;
		if (has_left(ncq) && !ofi_ncq_is_lent(ncq)) {
			run(ncq);
			continue;
		}
		/* Not before it has polled for a while: a consumer that is told of each result, and
		 * polls then, would pay for watching anew. */
		ofi_ncq_unwatch(ncq);
		go_away(ncq);
	}
}

void ofi_ncq_on_kick(void *arg)
{
	struct ofi_adapter *adapter = arg;

	for (struct base_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (__atomic_exchange_n(&ncq->kicked, 0, __ATOMIC_ACQUIRE) != 0)
			run(ncq);
	}
}
