/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. Each has one native queue, and the thread that reads it moves its completions
 * to the stash. That is the consumer while it polls; otherwise it is the control thread, which an
 * event wakes: a connection can end, and a notification fire, without help of the consumer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/reorder.h>
#include "verbs.h"

#define FIRST_ROOM 64u
#define FIRST_ROOM_MOST 4096u /* the memory is pinned, and a depth may be only a limit */
#define TICK_MS 2u            /* to the first check of a consumer that has begun to poll, ... */
#define TICK_MOST_MS 16u      /* ... twice as long to each next check, up to this */
#define HELD 64u

static struct verbs_cq *cq_of(struct ndx_spi_cq *cq)
{
	return (struct verbs_cq *)(void *)cq;
}

/* ---- reading ---- */

static void read_hardware(struct verbs_cq *cq)
{
	struct ibv_wc wc[VERBS_BATCH];
	int n;

	do {
		n = ibv_poll_cq(cq->native, VERBS_BATCH, wc);
		for (int i = 0; i < n; i++)
			verbs_complete(&wc[i]);
	} while (n == VERBS_BATCH);
}

/* Software RoCE: completions of receives that have to wait for those of earlier requests. */
struct held {
	struct verbs_cq *cq;
	struct ibv_wc wc[HELD];
	unsigned count;
};

static bool is_receive(const struct ibv_wc *wc)
{
	const uint8_t kind = verbs_req_of(wc)->kind;

	return kind == VERBS_RECEIVE || kind == VERBS_OFI_RECEIVE || kind == VERBS_SHARED;
}

/* Pass on all but receives, and hold those. `wc` may point to the place where they are held. */
static void hold_receives(struct held *held, const struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++) {
		struct ibv_wc *to = &held->wc[held->count];

		if (!is_receive(&wc[i])) {
			verbs_complete(&wc[i]);
			continue;
		}
		if (to != &wc[i])
			*to = wc[i];
		held->count++;
	}
}

static int read_some(void *arg)
{
	struct held *held = arg;
	struct ibv_wc *wc = &held->wc[held->count];
	const unsigned room = HELD - held->count;
	int n;

	if (room == 0)
		return -1;
	n = ibv_poll_cq(held->cq->native, room < VERBS_BATCH ? (int)room : VERBS_BATCH, wc);
	hold_receives(held, wc, n);
	return n;
}

static bool oldest_signaled(const struct ndxp_qp *qp, uint32_t *index)
{
	const struct ndxp_queue *q = &qp->initiator;

	for (*index = q->head; *index != q->tail; (*index)++) {
		if (((const struct verbs_req *)(const void *)ndxp_queue_at(q, *index))->signaled)
			return true;
	}
	return false;
}

static void complete_held(struct held *held)
{
	for (unsigned i = 0; i < held->count; i++) {
		struct verbs_qp *qp = verbs_complete_qp_of(&held->wc[i]);

		if (qp != NULL && qp->initiator_cq == held->cq)
			ndxp_reorder_await(&qp->base, oldest_signaled, read_some, held);
		verbs_complete(&held->wc[i]);
	}
}

static void read_software(struct verbs_cq *cq)
{
	struct held held;
	int n;

	held.cq = cq;
	do {
		held.count = 0;
		n = read_some(&held);
		complete_held(&held);
	} while (n == VERBS_BATCH || held.count == HELD);
}

/* poll_lock held. */
static void read_all(struct verbs_cq *cq)
{
	if (cq->adapter->soft_roce)
		read_software(cq);
	else
		read_hardware(cq);
}

void verbs_cq_poll(struct verbs_cq *cq)
{
	ndxp_lock_acquire(&cq->poll_lock);
	read_all(cq);
	ndxp_lock_release(&cq->poll_lock);
}

/* A thread that holds the lock reads the queue for this caller, too. */
void verbs_cq_try_poll(struct verbs_cq *cq)
{
	if (!ndxp_lock_try(&cq->poll_lock))
		return;
	read_all(cq);
	ndxp_lock_release(&cq->poll_lock);
}

/* What the fast path has made of a completion. */
enum way {
	SLOW_PATH, /* nothing: verbs_complete() has to handle it */
	RESULT,    /* a result */
	NOTHING,   /* no result */
};

/* A receive of software RoCE's that has nothing to wait for; see complete_held(). Under base.lock.
 */
static inline bool need_not_wait(const struct verbs_qp *qp)
{
	return !qp->soft_roce || ndxp_queue_outstanding(&qp->base.initiator) == 0 ||
	       qp->initiator_cq != qp->receive_cq;
}

/* poll_lock held. The usual case: the oldest request of an established connection has succeeded. */
static inline __attribute__((always_inline)) enum way fast_path(const struct ibv_wc *wc,
                                                                struct ndx_result *result)
{
	struct verbs_req *req = verbs_req_of(wc);
	enum way way = SLOW_PATH;
	struct ndxp_queue *q;
	struct verbs_qp *qp;

	if (__builtin_expect(wc->status != IBV_WC_SUCCESS || req->kind > VERBS_RECEIVE, 0))
		return SLOW_PATH;
	qp = req->qp;
	q = req->kind == VERBS_RECEIVE ? &qp->base.receive : &qp->base.initiator;
	ndxp_lock_acquire(&qp->base.lock);
	if (__builtin_expect(
		    &req->base == ndxp_queue_at(q, q->head) && qp->base.state == NDXP_QP_UP, 1)) {
		if (req->kind == VERBS_RECEIVE) {
			if (!need_not_wait(qp))
				goto unlock;
			verbs_complete_received(req, wc);
		}
		way = ndxp_queue_pop_result(q, &req->base, result) ? RESULT : NOTHING;
	}
unlock:
	ndxp_lock_release(&qp->base.lock);
	return way;
}

static size_t poll_stash(struct ndx_cq *pub, struct ndx_result *results, size_t count)
{
	struct verbs_cq *cq = verbs_cq_of(pub);

	verbs_cq_try_poll(cq);
	return ndxp_cq_take(&cq->base, results, count);
}

/* There may be more results, behind a full batch or on the slow path. */
static __attribute__((noinline)) size_t poll_rest(struct ndx_cq *pub, struct ndx_result *results,
                                                  size_t count, size_t taken)
{
	return taken == count ? taken : taken + poll_stash(pub, results + taken, count - taken);
}

static __attribute__((noinline)) void read_rest(struct verbs_cq *cq, const struct ibv_wc *wc, int n)
{
	struct held held;

	if (cq->adapter->soft_roce) {
		held.cq = cq;
		held.count = 0;
		hold_receives(&held, wc, n);
		complete_held(&held);
		return;
	}
	for (int i = 0; i < n; i++)
		verbs_complete(&wc[i]);
}

/*
 * Results go directly to the consumer, if no older result waits. From the first completion that
 * takes the slow path, all later ones take it, too: none may overtake.
 */
static size_t poll_results(struct ndx_cq *pub, struct ndx_result *results, size_t count)
{
	struct verbs_cq *cq = verbs_cq_of(pub);
	struct ndx_result *next = results;
	struct ibv_wc wc[VERBS_BATCH];
	bool more;
	int i = 0;
	int n;

	if (!ndxp_lock_try(&cq->poll_lock))
		return poll_stash(pub, results, count);
	/* lock first: the thread that held the lock before may have put results on the stash */
	if (!ndxp_cq_may_bypass(&cq->base)) {
		ndxp_lock_release(&cq->poll_lock);
		return poll_stash(pub, results, count);
	}
	n = ibv_poll_cq(cq->native, count < VERBS_BATCH ? (int)count : VERBS_BATCH, wc);
	more = n == VERBS_BATCH;
	for (; i < n; i++) {
		const enum way way = fast_path(&wc[i], next);

		if (__builtin_expect(way == SLOW_PATH, 0)) {
			read_rest(cq, &wc[i], n - i);
			more = true;
			break;
		}
		next += way == RESULT;
	}
	ndxp_cq_bypassed(&cq->base, (size_t)(next - results));
	ndxp_lock_release(&cq->poll_lock);
	if (__builtin_expect(more, 0))
		return poll_rest(pub, results, count, (size_t)(next - results));
	return (size_t)(next - results);
}

static const struct ndx_cq_ops cq_ops = {.size = sizeof(cq_ops), .get_results = poll_results};

/* ---- choosing the reader ---- */

/*
 * A completion does not show whether it was solicited, but an event does if the queue was armed for
 * solicited completions only. So a queue is armed like that unless a user needs all. While it is
 * armed like that, completions without an event are not solicited; completions that are read at
 * other times may be.
 */
static bool wants_all(struct verbs_cq *cq)
{
	return __atomic_load_n(&cq->watchers, __ATOMIC_SEQ_CST) != 0 ||
	       ndxp_cq_any_is_armed(&cq->base);
}

/*
 * From now on an event reports what is waited for; what is there already is read. Arming cannot be
 * undone: a queue that is armed for all remains so until its event has come.
 */
static void arm_cq(struct verbs_cq *cq)
{
	uint32_t mode;

	ndxp_lock_acquire(&cq->poll_lock);
	mode = wants_all(cq) ? VERBS_CQ_ARMED : VERBS_CQ_SOLICITED;
	if (mode > cq->mode) {
		__atomic_store_n(&cq->mode, mode, __ATOMIC_SEQ_CST);
		(void)ndxp_cq_assume_solicited(&cq->base, true);
		(void)ibv_req_notify_cq(cq->native, mode == VERBS_CQ_SOLICITED);
	}
	read_all(cq);
	(void)ndxp_cq_assume_solicited(&cq->base, cq->mode != VERBS_CQ_SOLICITED);
	ndxp_lock_release(&cq->poll_lock);
}

/* The event has come: the device will not raise another one. */
static void disarm(struct verbs_cq *cq)
{
	bool blind;

	ndxp_lock_acquire(&cq->poll_lock);
	__atomic_store_n(&cq->mode, VERBS_CQ_AWAY, __ATOMIC_SEQ_CST);
	blind = ndxp_cq_assume_solicited(&cq->base, true);
	ndxp_lock_release(&cq->poll_lock);
	if (!blind)
		ndxp_cq_solicit(&cq->base);
}

/* Control thread: has a consumer polled since the last check? */
static bool is_polled(struct verbs_cq *cq)
{
	const uint32_t polls = __atomic_load_n(&cq->base.polls, __ATOMIC_RELAXED);
	const bool changed = polls != cq->seen_polls;

	cq->seen_polls = polls;
	return changed;
}

static void look_again(struct verbs_adapter *adapter, uint32_t ms)
{
	adapter->tick_ms = ms < TICK_MOST_MS ? ms : TICK_MOST_MS;
	ndxp_timer_set(adapter->spi.loop, &adapter->tick, adapter->tick_ms);
}

void verbs_cq_watch(struct verbs_cq *cq, bool on)
{
	(void)__atomic_add_fetch(&cq->watchers, on ? 1u : UINT32_MAX, __ATOMIC_SEQ_CST);
	if (on)
		arm_cq(cq);
}

void verbs_cq_attend(struct verbs_cq *cq)
{
	(void)is_polled(cq); /* only polls from now on count */
	arm_cq(cq);
}

/* Leave the queue to its consumer if it polls, or if it was waiting and has just been notified: it
 * will poll next. */
static bool is_left_alone(struct verbs_cq *cq, bool polled, bool waited)
{
	if (ndxp_cq_is_armed(&cq->base))
		return false;
	return polled || (waited && __atomic_load_n(&cq->watchers, __ATOMIC_SEQ_CST) == 0);
}

static void on_completion(struct verbs_cq *cq)
{
	struct verbs_adapter *adapter = cq->adapter;
	const bool polled = is_polled(cq);
	const bool waited = ndxp_cq_is_armed(&cq->base);

	disarm(cq);
	if (ndxp_cq_is_armed(&cq->base))
		verbs_cq_poll(cq);
	if (!is_left_alone(cq, polled, waited)) {
		arm_cq(cq);
		return;
	}
	if (!adapter->tick.armed || adapter->tick_ms > TICK_MS)
		look_again(adapter, TICK_MS);
}

/* A queue is destroyed only after its events were acknowledged: until then `cq` is valid. */
void verbs_cq_on_event(void *arg, uint32_t events)
{
	struct verbs_adapter *adapter = arg;
	struct ibv_cq *native;
	void *cq;

	(void)events;
	while (ibv_get_cq_event(adapter->completions, &native, &cq) == 0) {
		on_completion(cq);
		ibv_ack_cq_events(native, 1);
	}
}

void verbs_cq_on_tick(void *arg)
{
	struct verbs_adapter *adapter = arg;
	bool again = false;

	ndxp_lock_acquire(&adapter->lock);
	for (struct ndxp_list *n = adapter->cqs.next; n != &adapter->cqs; n = n->next) {
		struct verbs_cq *cq = container_of(n, struct verbs_cq, node);

		if (__atomic_load_n(&cq->mode, __ATOMIC_RELAXED) != VERBS_CQ_AWAY)
			continue;
		if (is_polled(cq))
			again = true;
		else
			arm_cq(cq);
	}
	ndxp_lock_release(&adapter->lock);
	if (again)
		look_again(adapter, 2 * adapter->tick_ms);
}

enum ndx_status verbs_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                                struct ndx_overlapped *ov)
{
	struct verbs_cq *cq = cq_of(spi);
	const enum ndx_status st = ndxp_cq_notify(spi, type, ov);

	if (st >= 0 && __atomic_load_n(&cq->mode, __ATOMIC_SEQ_CST) != VERBS_CQ_ARMED)
		arm_cq(cq);
	return st;
}

/* ---- create and destroy ---- */

/*
 * The room that queue pairs need is known when they are created, but the queue would then grow step
 * by step while connections are made. So it begins with the depth that the consumer asks for and
 * half as much again, for control requests.
 */
static int first_room(const struct verbs_adapter *adapter, uint32_t depth)
{
	uint64_t room = (uint64_t)depth + depth / 2;

	if (room > FIRST_ROOM_MOST)
		room = FIRST_ROOM_MOST;
	if (room > (uint64_t)adapter->attr.max_cqe)
		room = (uint64_t)adapter->attr.max_cqe;
	return (int)(room > FIRST_ROOM ? room : FIRST_ROOM);
}

enum ndx_status verbs_cq_create(struct ndx_spi_adapter *spi, const struct ndx_cq_attr *attr,
                                struct ndx_spi_cq **out)
{
	struct verbs_adapter *adapter = verbs_adapter_of(spi);
	enum ndx_status st = verbs_is_there(adapter, "create a completion queue");
	struct verbs_cq *cq;
	int vector = 0;

	if (st != NDX_OK)
		return st;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a completion queue");
	st = ndxp_cq_init(&cq->base, &cq_ops, attr->depth);
	if (st != NDX_OK)
		goto free_cq;
	/* completion vectors are usually spread over the processors: take the first one asked
	 * for */
	if (attr->affinity != 0)
		vector = __builtin_ctzll(attr->affinity) % adapter->context->num_comp_vectors;
	cq->adapter = adapter;
	cq->native = ibv_create_cq(adapter->context, first_room(adapter, attr->depth), cq,
	                           adapter->completions, vector);
	if (cq->native == NULL)
		cq->native = ibv_create_cq(adapter->context, FIRST_ROOM, cq, adapter->completions,
		                           vector);
	if (cq->native == NULL) {
		st = fail(verbs_refusal(adapter, errno), errno, "ibv_create_cq: %s",
		          strerror(errno));
		goto fini_base;
	}
	arm_cq(cq);
	ndxp_lock_acquire(&adapter->lock);
	ndxp_list_add(&adapter->cqs, &cq->node);
	ndxp_lock_release(&adapter->lock);
	*out = &cq->base.spi;
	return NDX_OK;

fini_base:
	ndxp_cq_fini(&cq->base);
free_cq:
	free(cq);
	return st;
}

void verbs_cq_destroy(struct ndx_spi_cq *spi)
{
	struct verbs_cq *cq = cq_of(spi);

	ndxp_lock_acquire(&cq->adapter->lock);
	ndxp_list_remove(&cq->node);
	ndxp_lock_release(&cq->adapter->lock);
	if (ibv_destroy_cq(cq->native) != 0)
		log_warn(errno, "ibv_destroy_cq: %s", strerror(errno));
	ndxp_cq_fini(&cq->base);
	free(cq);
}

enum ndx_status verbs_cq_reserve(struct verbs_cq *cq, uint32_t entries)
{
	int err = 0;
	uint32_t room;

	ndxp_lock_acquire(&cq->poll_lock);
	room = cq->room + entries;
	if (room > (uint32_t)cq->native->cqe)
		err = ibv_resize_cq(cq->native, (int)room);
	if (err == 0)
		cq->room = room;
	ndxp_lock_release(&cq->poll_lock);
	if (err != 0)
		return fail(verbs_refusal(cq->adapter, err), err,
		            "a completion queue with room for all requests of its queue pairs, %u "
		            "entries: ibv_resize_cq: %s",
		            room, strerror(err));
	return NDX_OK;
}

void verbs_cq_unreserve(struct verbs_cq *cq, uint32_t entries)
{
	ndxp_lock_acquire(&cq->poll_lock);
	cq->room -= entries;
	ndxp_lock_release(&cq->poll_lock);
}
