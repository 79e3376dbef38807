/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread reads a native completion queue. A consumer that polls all the time reads the queue
 * itself: the control thread then only checks the count of polls now and then. Otherwise the
 * control thread sleeps on the queue's descriptor, and reads.
 *
 * What a peer writes into a consumer's memory arrives only when a thread reads the native queue,
 * and a consumer that polls now and then may wait for just that. So the control thread stays on the
 * descriptor until several wake-ups in a row have found the consumer reading the queue itself, and
 * returns to the descriptor when a tick has seen few polls.
 */
#include <poll.h>

#include <ndx/spi/system.h>
#include "ofi.h"

#define TICK_MS 2u
#define IDLE_MAX 20000      /* empty wake-ups in a row, ... */
#define IDLE_NS 1000000000u /* ... and for so long, before wake-ups are slowed down */
#define ROUNDS 64           /* of reading until empty, before other events get their turn */
#define MANY 8u             /* native queues of one consumer's queue ... */
#define PATIENCE 64u        /* ... for so many of which one more missed tick is tolerated */
#define FEW 8u    /* polls and results of a tick: with fewer, a consumer has stopped polling */
#define BULK 16u  /* results of a poll: the consumer handles them, then polls again */
#define GLANCES 8 /* checks whether a consumer reads */
#define SURE 4u   /* wake-ups in a row that found a consumer reading, ... */
#define SURE_NS 100000u /* ... and for so long, before the queue is left to the consumer */

/*
 * None of these functions waits for the lock. Only this thread changes the ties, and a consumer
 * that polls holds the lock nearly always: to wait for the lock would mean to be woken by each poll
 * until one of them is slow enough.
 */

/* Does a consumer wait for a notification that this thread has to give? */
static bool is_wanted(struct ofi_ncq *ncq)
{
	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		if (ofi_cq_needs_thread(container_of(n, struct ofi_tie, of_ncq)->cq))
			return true;
	}
	return false;
}

/* What consumers have done since the last check. */
static struct ofi_use look_back(struct ofi_ncq *ncq)
{
	const struct ofi_use before = ncq->seen;
	struct ofi_use now = {0, 0};

	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		const struct ndxp_cq *cq = &container_of(n, struct ofi_tie, of_ncq)->cq->base;

		now.polls += __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
		now.results += (uint32_t)__atomic_load_n(&cq->taken, __ATOMIC_RELAXED) +
		               (uint32_t)__atomic_load_n(&cq->direct, __ATOMIC_RELAXED);
	}
	ncq->seen = now;
	return (struct ofi_use){now.polls - before.polls, now.results - before.results};
}

/* Does a consumer get so many results at once that it handles them for long between two polls? It
 * will poll again. */
static bool is_bulk(const struct ofi_use *use)
{
	return use->polls > 0 && use->results / use->polls >= BULK;
}

/* Has a consumer posted so many requests since the queue was read here that it polls when its queue
 * pair takes no more? */
static bool is_posting(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->posts, __ATOMIC_RELAXED) - ncq->seen_posts >= BULK;
}

static bool is_readable(const struct ofi_ncq *ncq)
{
	struct pollfd native = {.fd = ncq->watch.fd, .events = POLLIN};

	return poll(&native, 1, 0) > 0;
}

/* Does a consumer sleep on the native queue's descriptor? The same event wakes it. */
static bool wakes_consumer(struct ofi_ncq *ncq)
{
	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		if (ofi_cq_sleeps_on_native(container_of(n, struct ofi_tie, of_ncq)->cq))
			return true;
	}
	return false;
}

/* After a wake-up by the descriptor: does a consumer read the queue at this moment, or has it read
 * the completions already? */
static bool is_being_read(struct ofi_ncq *ncq, bool polled)
{
	for (int i = 0; i < GLANCES; i++) {
		if (!ndxp_lock_try(&ncq->lock))
			return true;
		ndxp_lock_release(&ncq->lock);
		if (!polled)
			return false;
		if (!is_readable(ncq) || look_back(ncq).polls > 0)
			return true;
	}
	return false;
}

/* Have all wake-ups for some time found a consumer reading? Wake-ups of all native queues of the
 * same consumer's queue count, so that many of them are left to the consumer as fast as one. */
static bool is_sure(struct ofi_ncq *ncq, bool reads)
{
	const uint64_t now = reads ? ndxp_now_ns() : 0;
	bool sure = false;

	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
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

/* Check again at the next tick. */
static void leave_until_tick(struct ofi_ncq *ncq)
{
	set_mode(ncq, OFI_NCQ_POLLED);
	if (!ncq->adapter->tick.armed)
		ndxp_timer_set(ncq->adapter->spi.loop, &ncq->adapter->tick, TICK_MS);
}

/*
 * A watched descriptor makes every packet more expensive, even if the watch is disarmed: the kernel
 * passes each wake-up on. A consumer that polls should not pay for that.
 */
void ofi_ncq_unwatch(struct ofi_ncq *ncq)
{
	if (!ncq->watched)
		return;
	ndxp_watch_remove(ncq->adapter->spi.loop, &ncq->watch);
	ncq->watched = false;
}

static bool watch_fd(struct ofi_ncq *ncq)
{
	if (ncq->watched)
		ndxp_watch_rearm(ncq->adapter->spi.loop, &ncq->watch, POLLIN);
	else
		ncq->watched =
			ndxp_watch_add(ncq->adapter->spi.loop, &ncq->watch, POLLIN, true) == NDX_OK;
	return ncq->watched;
}

/* Lock held. May a wait begin? Nothing is left then, and the descriptor will report new
 * completions. */
static bool may_wait(struct ofi_ncq *ncq)
{
	struct fid *fids[1] = {&ncq->cq->fid};

	return fi_trywait(ncq->adapter->fabric, fids, 1) == 0 && ofi_ncq_progress(ncq) == 0;
}

/* The bytes that the kernel has received on the connections of all links; false if that is not
 * known for each. */
static bool count_traffic(const struct ofi_ncq *ncq, uint64_t *bytes)
{
	*bytes = 0;
	for (struct ndxp_table_node *n = ndxp_table_walk(&ncq->links, NULL); n != NULL;
	     n = ndxp_table_walk(&ncq->links, n)) {
		struct ndxp_traffic now;

		if (!ofi_liveness_traffic(container_of(n, struct ofi_link, by_id), &now))
			return false;
		*bytes += now.in;
	}
	return true;
}

/* After many wake-ups without a completion: has anything moved? A peer's writes into memory
 * complete nothing here, but move at least one byte for each wake-up. */
static bool has_moved(struct ofi_ncq *ncq)
{
	uint64_t bytes;

	if (count_traffic(ncq, &bytes) && bytes - ncq->traffic < ncq->idle)
		return false;
	ncq->traffic = bytes;
	return true;
}

/*
 * Is the descriptor readable without a cause? A message that finds no receive stops its stream and
 * keeps the descriptor readable (libfabric to 1.17). That happens to a link that takes no more
 * messages, and otherwise only if a peer sends without credit.
 */
static bool is_in_vain(struct ofi_ncq *ncq, bool any)
{
	if (any) {
		ncq->idle = 0;
		return false;
	}
	if (ncq->draining_links > 0 && ncq->adapter->share != OFI_SHARE_ALWAYS)
		return is_readable(ncq);
	if (ncq->idle++ == 0)
		ncq->idle_since = ndxp_now_ns();
	if (ncq->idle <= IDLE_MAX || ndxp_now_ns() - ncq->idle_since <= IDLE_NS)
		return false;
	if (!has_moved(ncq))
		return true;
	ncq->idle = 0;
	return false;
}

/* Sleep on the descriptor. */
static void arm_native(struct ofi_ncq *ncq)
{
	set_mode(ncq, OFI_NCQ_ARMED);
	if (!watch_fd(ncq))
		leave_until_tick(ncq); /* no memory for the watch: every tick tries again */
}

/* A consumer reads: leave the queue to it. False: a consumer waits for a notification that this
 * thread has to give. */
static bool leave_to_consumer(struct ofi_ncq *ncq, bool was_away)
{
	/* first leave the queue, then look for consumers that wait: see ndxp_cq_is_armed() */
	if (is_sure(ncq, true) || was_away)
		leave_until_tick(ncq);
	else
		arm_native(ncq);
	return !is_wanted(ncq);
}

/*
 * Take the lock, unless a consumer holds it that will poll again: to wait for the lock would mean
 * to be woken by each poll and to find the lock taken by the next.
 */
static bool take_over(struct ofi_ncq *ncq, bool was_away)
{
	if (ndxp_lock_try(&ncq->lock))
		return true;
	if (leave_to_consumer(ncq, was_away))
		return false;
	set_mode(ncq, OFI_NCQ_BUSY);
	ndxp_lock_acquire(&ncq->lock);
	return true;
}

/* Lock held, nothing is left to read. A consumer that has polled will probably poll again, or send:
 * both acknowledge. A consumer that is notified may do anything, also in a callback on this
 * thread. */
static void acknowledge(struct ofi_ncq *ncq)
{
	uint32_t polls = 0;
	uint64_t notified = 0;

	if (!ofi_ncq_owes(ncq))
		return;
	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ndxp_cq *cq = &container_of(n, struct ofi_tie, of_ncq)->cq->base;

		polls += __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
		notified += ndxp_cq_count_notified(cq);
	}
	if (polls != ncq->seen_polls && notified == ncq->seen_notified)
		ofi_ack_look(ncq);
	else
		ofi_ack_asked(ncq);
	ncq->seen_polls = polls;
	ncq->seen_notified = notified;
}

/* Read all completions, then sleep on the descriptor. */
static void read_native(struct ofi_ncq *ncq)
{
	const bool was_away = ncq->mode == OFI_NCQ_POLLED;
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
		if (n == 0)
			acknowledge(ncq);
		ndxp_lock_release(&ncq->lock);
		any = any || n > 0;
	}
	__atomic_store_n(&ncq->awaited, 0, __ATOMIC_RELAXED);
	if (!any)
		ofi_count(&ncq->adapter->counts.vain);
	if (is_in_vain(ncq, any)) {
		leave_until_tick(ncq);
		return;
	}
	if (any && !quiet) {
		/* Other events get their turn. The descriptor need not report what is left. */
		ofi_ncq_kick(ncq);
		return;
	}
	arm_native(ncq);
}

static void on_readable(void *arg, uint32_t events)
{
	struct ofi_ncq *ncq = arg;
	const struct ofi_use use = look_back(ncq);

	(void)events;
	ofi_count(&ncq->adapter->counts.wakeups);
	if (wakes_consumer(ncq) || is_being_read(ncq, use.polls > 0)) {
		if (leave_to_consumer(ncq, false))
			return;
	} else if (is_sure(ncq, is_bulk(&use) || is_posting(ncq))) {
		/* the same order as in leave_to_consumer() */
		leave_until_tick(ncq);
		if (!is_wanted(ncq))
			return;
	}
	read_native(ncq);
}

enum ndx_status ofi_ncq_watch(struct ofi_ncq *ncq)
{
	enum ndx_status st;

	ncq->watch.fn = on_readable;
	ncq->watch.arg = ncq;
	ncq->mode = OFI_NCQ_ARMED;
	(void)may_wait(ncq);
	st = ndxp_watch_add(ncq->adapter->spi.loop, &ncq->watch, POLLIN, true);
	ncq->watched = st == NDX_OK;
	return st;
}

/*
 * Has the consumer stopped polling? A poll that finds results in many native queues takes long, and
 * the consumer does not poll while it handles them. Taking all the queues from the consumer and
 * leaving them to it again costs a wake-up for each. So the more queues there are, the longer this
 * thread waits, except for a queue that it needs itself.
 */
static bool has_left(struct ofi_ncq *ncq)
{
	const struct ofi_use use = look_back(ncq);
	uint32_t native = 0;
	bool lent = false;

	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		const struct ofi_cq *cq = container_of(n, struct ofi_tie, of_ncq)->cq;

		native += __atomic_load_n(&cq->native, __ATOMIC_RELAXED);
		lent = lent || __atomic_load_n(&cq->fds_shared, __ATOMIC_RELAXED) != 0;
	}
	/* a consumer that sleeps between two polls is woken by the descriptor itself */
	if (use.polls + use.results >= FEW || (lent && use.polls > 0)) {
		ncq->missed = 0;
		ncq->idle_ticks = 0;
		return false;
	}
	return native < MANY || __atomic_load_n(&ncq->awaited, __ATOMIC_RELAXED) != 0 ||
	       ncq->missed++ > native / PATIENCE;
}

void ofi_ncq_on_look(void *arg)
{
	struct ofi_adapter *adapter = arg;

	/* the adapter may be closed, and has no native queue then */
	if (ndxp_list_empty(&adapter->ncqs))
		__atomic_store_n(&adapter->looks, 0, __ATOMIC_SEQ_CST);
	else if (!adapter->tick.armed)
		ndxp_timer_set(adapter->spi.loop, &adapter->tick, TICK_MS);
}

/* Acknowledge what a consumer has not acknowledged by a message or a poll since it read. */
static void send_owed(struct ofi_ncq *ncq)
{
	if (!ofi_ncq_owes(ncq))
		return;
	if (!ndxp_lock_try(&ncq->lock)) {
		ofi_ack_look(ncq);
		return;
	}
	ofi_ack_all(ncq);
	ndxp_lock_release(&ncq->lock);
}

void ofi_ncqs_acknowledge(struct ofi_adapter *adapter)
{
	for (struct ndxp_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next)
		send_owed(container_of(n, struct ofi_ncq, node));
}

void ofi_ncq_on_tick(void *arg)
{
	struct ofi_adapter *adapter = arg;

	ofi_count(&adapter->counts.ticks);
	__atomic_store_n(&adapter->looks, 0, __ATOMIC_SEQ_CST);
	for (struct ndxp_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		send_owed(ncq);
		if (__atomic_load_n(&ncq->mode, __ATOMIC_RELAXED) != OFI_NCQ_POLLED)
			continue;
		if (has_left(ncq) && !ofi_ncq_is_left_alone(ncq)) {
			read_native(ncq);
			continue;
		}
		/* only after it has polled for a while: a consumer that is notified of each result
		 * and then polls would pay for watching again */
		ofi_ncq_unwatch(ncq);
		leave_until_tick(ncq);
	}
}

void ofi_ncq_on_kick(void *arg)
{
	struct ofi_adapter *adapter = arg;

	for (struct ndxp_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (__atomic_exchange_n(&ncq->kicked, 0, __ATOMIC_ACQUIRE) != 0)
			read_native(ncq);
	}
}
