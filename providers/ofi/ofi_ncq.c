/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Native completion queues: who reads them. A consumer that polls is left alone: the control thread
 * then only looks at its count of polls now and then. Otherwise the control thread sleeps on the
 * queue's descriptor and reads by itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>

#include "base_linux.h"
#include "base_log.h"
#include "ofi.h"

#define READS 64 /* of a batch, before others get the lock */
#define TICK_MS 2u
#define IDLE_MAX 20000      /* empty wake-ups in a row, ... */
#define IDLE_NS 1000000000u /* ... and for so long, before we slow down */
#define ROUNDS 64           /* of reading until empty, before others get their turn */
#define CATCH_UP 4096       /* reads in a row, more than a queue ever holds between two polls */
#define NATIVE_SIZE 1024    /* advice: the queue grows */
#define MANY 8u             /* native queues below one of the consumer's, ... */
#define SHARERS 16u         /* links on one that is shared with care */
#define PATIENCE 64u        /* ... and one more missed tick is forgiven for so many */

/* ---- reading ---- */

static bool is_away(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) == OFI_NCQ_AWAY;
}

/*
 * The native queue's descriptor tells of new completions only while nobody reads: the provider
 * lowers its signal when it looks at its sockets, also when it has just found more there than this
 * read takes. So who reads reads all, unless somebody is sure to read again soon.
 */
unsigned ofi_ncq_progress(struct ofi_ncq *ncq)
{
	unsigned total = 0;
	bool again = true;

	ofi_tell_all_credits(ncq);
	for (int i = 0; again && i < READS; i++) {
		const ssize_t n = ofi_ncq_read(ncq);

		if (n > 0)
			total += (unsigned)n;
		/* A short read is the last, or ends before a failure. */
		again = n == OFI_BATCH || (n > 0 && !is_away(ncq));
	}
	if (again && !is_away(ncq))
		ofi_ncq_kick(ncq);
	return total;
}

void ofi_ncq_poll(struct ofi_ncq *ncq, struct base_cq *cq, size_t count)
{
	ssize_t n = OFI_BATCH;

	if (!is_away(ncq)) {
		(void)ofi_ncq_progress(ncq);
		return;
	}
	ofi_tell_all_credits(ncq);
	for (int i = 0; n == OFI_BATCH && i < READS && !base_cq_has(cq, count); i++)
		n = ofi_ncq_read(ncq);
	if (n == OFI_BATCH && !is_away(ncq))
		ofi_ncq_kick(ncq);
}

void ofi_ncq_catch_up_locked(struct ofi_ncq *ncq)
{
	for (int i = 0; i < CATCH_UP && ofi_ncq_progress(ncq) > 0; i++) {
		/* all of it happens in progress */
	}
}

void ofi_ncq_catch_up(struct ofi_ncq *ncq)
{
	base_lock_acquire(&ncq->lock);
	ofi_ncq_catch_up_locked(ncq);
	base_lock_release(&ncq->lock);
}

/* ---- who reads ---- */

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
static void stop_watching(struct ofi_ncq *ncq)
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
		stop_watching(ncq);
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

/* ---- life ---- */

/* Where it does not grow it has room for all that the queue pair may have under way. */
static size_t native_size(const struct ofi_qp *qp)
{
	const uint32_t controls = ofi_flavour_of(qp)->controls;

	if (controls == 0)
		return NATIVE_SIZE;
	return (size_t)qp->base.initiator.depth + qp->base.receive.depth + controls;
}

static enum ndx_status ncq_open(struct ofi_adapter *adapter, const struct ofi_cq *shared_by,
                                const struct ofi_qp *qp, struct ofi_ncq **out)
{
	struct fi_cq_attr attr = {
		.size = native_size(qp), .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct ofi_ncq *ncq = calloc(1, sizeof(*ncq));
	enum ndx_status st;
	int err;

	if (ncq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a native completion queue");
	ncq->adapter = adapter;
	ncq->shared = shared_by != NULL;
	ncq->shared_by = shared_by;
	base_list_init(&ncq->ties);
	base_list_init(&ncq->debtors);
	err = -fi_cq_open(adapter->domain, &attr, &ncq->cq, NULL);
	if (err != 0) {
		st = fail(ofi_status_of(err), err, "fi_cq_open: %s; see ulimit -n",
		          fi_strerror(err));
		goto free_ncq;
	}
	err = -fi_control(&ncq->cq->fid, FI_GETWAIT, &ncq->watch.fd);
	if (err != 0) {
		st = fail(NDX_E_INTERNAL_ERROR, err, "fi_control(FI_GETWAIT): %s",
		          fi_strerror(err));
		goto close_cq;
	}
	ncq->watch.fn = on_readable;
	ncq->watch.arg = ncq;
	ncq->mode = OFI_NCQ_ARMED;
	(void)may_wait(ncq);
	st = base_watch_add(adapter->spi.loop, &ncq->watch, POLLIN, true);
	if (st != NDX_OK)
		goto close_cq;
	ncq->watched = true;
	base_list_add(&adapter->ncqs, &ncq->node);
	*out = ncq;
	return NDX_OK;

close_cq:
	(void)fi_close(&ncq->cq->fid);
free_ncq:
	free(ncq);
	return st;
}

void ofi_ncq_put(struct ofi_ncq *ncq)
{
	if (--ncq->refs > 0)
		return;
	base_list_remove(&ncq->node);
	stop_watching(ncq);
	(void)fi_close(&ncq->cq->fid);
	free(ncq);
}

static struct ofi_tie *find_tie(struct ofi_ncq *ncq, const struct ofi_cq *cq)
{
	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ofi_tie *tie = container_of(n, struct ofi_tie, of_ncq);

		if (tie->cq == cq)
			return tie;
	}
	return NULL;
}

static enum ndx_status tie_to(struct ofi_ncq *ncq, struct ofi_cq *cq)
{
	struct ofi_tie *tie = find_tie(ncq, cq);

	if (tie != NULL) {
		tie->refs++;
		return NDX_OK;
	}
	tie = calloc(1, sizeof(*tie));
	if (tie == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to attach a completion queue");
	tie->cq = cq;
	tie->ncq = ncq;
	tie->refs = 1;
	base_lock_acquire(&cq->poll_lock);
	ofi_cq_unlend(cq);
	base_lock_acquire(&ncq->lock);
	base_list_add(&cq->ties, &tie->of_cq);
	base_list_add(&ncq->ties, &tie->of_ncq);
	base_lock_release(&ncq->lock);
	ofi_cq_tied(cq, ncq);
	base_lock_release(&cq->poll_lock);
	return NDX_OK;
}

static void untie_from(struct ofi_ncq *ncq, struct ofi_cq *cq)
{
	struct ofi_tie *tie = find_tie(ncq, cq);

	if (tie == NULL || --tie->refs > 0)
		return;
	base_lock_acquire(&cq->poll_lock);
	ofi_cq_unlend(cq);
	ofi_cq_untied(cq, ncq);
	base_lock_acquire(&ncq->lock);
	base_list_remove(&tie->of_cq);
	base_list_remove(&tie->of_ncq);
	base_lock_release(&ncq->lock);
	base_lock_release(&cq->poll_lock);
	free(tie);
}

static struct ofi_cq *receive_cq(const struct ofi_qp *qp)
{
	return (struct ofi_cq *)(void *)qp->base.spi.attr.receive_cq;
}

static struct ofi_cq *initiator_cq(const struct ofi_qp *qp)
{
	return (struct ofi_cq *)(void *)qp->base.spi.attr.initiator_cq;
}

void ofi_ncq_untie(struct ofi_ncq *ncq, const struct ofi_qp *qp)
{
	untie_from(ncq, receive_cq(qp));
	untie_from(ncq, initiator_cq(qp));
	/* What it was made for may go, and its address come back as another's. */
	if (ncq->shared_by != NULL && find_tie(ncq, ncq->shared_by) == NULL)
		ncq->shared_by = NULL;
}

static bool may_share(const struct ofi_adapter *adapter, const struct ofi_cq *cq, bool reads)
{
	switch (adapter->share) {
	case OFI_SHARE_ALWAYS:
		return true;
	case OFI_SHARE_UNLESS_READS:
		return !reads && __atomic_load_n(&cq->native, __ATOMIC_RELAXED) >= MANY;
	case OFI_SHARE_NEVER:
		break;
	}
	return false;
}

static bool has_room(const struct ofi_ncq *ncq)
{
	return ncq->adapter->share == OFI_SHARE_ALWAYS || ncq->refs < SHARERS;
}

static struct ofi_ncq *find_shared(struct ofi_adapter *adapter, const struct ofi_cq *cq)
{
	for (struct base_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_ncq, node);

		if (ncq->shared_by == cq && has_room(ncq))
			return ncq;
	}
	return NULL;
}

enum ndx_status ofi_ncq_get(struct ofi_adapter *adapter, const struct ofi_qp *qp, bool reads,
                            struct ofi_ncq **out)
{
	struct ofi_cq *shared_by =
		may_share(adapter, receive_cq(qp), reads) ? receive_cq(qp) : NULL;
	struct ofi_ncq *ncq = shared_by != NULL ? find_shared(adapter, shared_by) : NULL;
	enum ndx_status st = NDX_OK;

	if (ncq == NULL)
		st = ncq_open(adapter, shared_by, qp, &ncq);
	if (ncq == NULL)
		return st;
	ncq->refs++;
	st = tie_to(ncq, receive_cq(qp));
	if (st != NDX_OK)
		goto put_ncq;
	st = tie_to(ncq, initiator_cq(qp));
	if (st != NDX_OK)
		goto untie;
	*out = ncq;
	return NDX_OK;

untie:
	untie_from(ncq, receive_cq(qp));
put_ncq:
	ofi_ncq_put(ncq);
	return st;
}
