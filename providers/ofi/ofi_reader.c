/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who reads a native completion queue. A consumer that polls is left alone: the control thread then
 * only looks at its count of polls now and then. Otherwise the control thread sleeps on the queue's
 * descriptor and reads by itself.
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

/*
 * Neither of the two takes the lock: the ties change on this thread alone, and a consumer that
 * polls holds it nearly always. To wait for it would mean to be woken by each of its polls until
 * one of them is slow enough.
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

/* Has a consumer polled since we last looked? */
static bool is_polled(struct ofi_ncq *ncq)
{
	uint32_t polls = 0;
	bool changed;

	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next)
		polls += __atomic_load_n(&container_of(n, struct ofi_tie, of_ncq)->cq->base.polls,
		                         __ATOMIC_RELAXED);
	changed = polls != ncq->seen_polls;
	ncq->seen_polls = polls;
	return changed;
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

/*
 * Is the descriptor readable for nothing? A message that finds no receive stops its stream and
 * keeps the descriptor readable (libfabric to 1.17). That is to be expected of a link that takes no
 * messages any more, and else only of a peer that sends without credit. (Empty wake-ups alone mean
 * little: a long write comes in pieces that complete nothing.)
 */
static bool is_in_vain(struct ofi_ncq *ncq, bool any)
{
	if (any) {
		ncq->idle = 0;
		return false;
	}
	if (ncq->deaf > 0 && ncq->adapter->share != OFI_SHARE_ALWAYS)
		return true;
	if (ncq->idle++ == 0)
		ncq->idle_since = base_now_ns();
	return ncq->idle > IDLE_MAX && base_now_ns() - ncq->idle_since > IDLE_NS;
}

/*
 * Take the lock, unless a consumer has it that polls again: to wait for him would mean to be woken
 * by each of his polls, to find the lock taken by the next. Every tick tries again.
 */
static bool take_over(struct ofi_ncq *ncq)
{
	if (base_lock_try(&ncq->lock))
		return true;
	/* First the mode, then the look: who begins to wait does it the other way round. */
	go_away(ncq);
	if (!is_wanted(ncq))
		return false;
	set_mode(ncq, OFI_NCQ_BUSY);
	base_lock_acquire(&ncq->lock);
	return true;
}

/* Read all there is, then sleep on the descriptor. */
static void run(struct ofi_ncq *ncq)
{
	const uint32_t posts = __atomic_load_n(&ncq->posts, __ATOMIC_RELAXED);
	bool any = posts != ncq->seen_posts;
	bool quiet = false;
	unsigned n;

	set_mode(ncq, OFI_NCQ_BUSY);
	ncq->missed = 0;
	ncq->seen_posts = posts;
	for (int rounds = 0; !quiet && rounds < ROUNDS; rounds++) {
		if (!take_over(ncq))
			return;
		n = ofi_ncq_progress(ncq);
		quiet = n == 0 && may_wait(ncq);
		base_lock_release(&ncq->lock);
		any = any || n > 0;
	}
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
	set_mode(ncq, OFI_NCQ_ARMED);
	if (!watch(ncq))
		go_away(ncq); /* no room for the watch: every tick tries again */
}

static void on_readable(void *arg, uint32_t events)
{
	struct ofi_ncq *ncq = arg;

	(void)events;
	ofi_count(&ncq->adapter->counts.wakeups);
	if (is_polled(ncq)) {
		/* First the mode, then the look: who begins to wait does it the other way round. */
		go_away(ncq);
		if (!is_wanted(ncq))
			return;
	}
	run(ncq);
}

/*
 * Has the consumer given up polling? A poll that finds results in many native queues is long, and a
 * consumer that handles them does not poll meanwhile. To take all the queues from it and give them
 * back, one by one, costs a wake-up for each: so the more there are, the longer we wait and see.
 */
static bool has_left(struct ofi_ncq *ncq)
{
	uint32_t native = 0;

	if (is_polled(ncq)) {
		ncq->missed = 0;
		return false;
	}
	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next)
		native += __atomic_load_n(&container_of(n, struct ofi_tie, of_ncq)->cq->native,
		                          __ATOMIC_RELAXED);
	return native < MANY || ncq->missed++ > native / PATIENCE;
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

void ofi_ncq_on_tick(void *arg)
{
	struct ofi_adapter *adapter = arg;

	for (struct base_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (__atomic_load_n(&ncq->mode, __ATOMIC_RELAXED) != OFI_NCQ_AWAY)
			continue;
		if (!has_left(ncq)) {
			ncq->naps = 0;
		} else if (!ofi_ncq_is_lent(ncq)) {
			run(ncq);
			continue;
		}
		/* Not before it has polled for a while: a consumer that is told of each result, and
		 * polls then, would pay for watching anew. */
		ofi_ncq_unwatch(ncq);
		go_away(ncq);
	}
}

void ofi_ncq_kick(struct ofi_ncq *ncq)
{
	__atomic_store_n(&ncq->kicked, 1, __ATOMIC_RELEASE);
	base_loop_post(ncq->adapter->spi.loop, &ncq->adapter->kick);
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
