/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: results that are delayed, reordered, or lost.
 *
 * Delay: a poll that empties a queue begins a delay, in which polls do not look into the inner
 * queue. Results remain in the inner queue, so slots and order are those of the inner provider. No
 * delay begins while a notification of the inner queue is armed, and none is armed in a delay.
 * Otherwise a notification could fire for a result that the consumer cannot see yet, and no other
 * would follow. So this provider keeps the consumer's notifications, and arms one of its own in the
 * inner queue behind the delay. A result of another queue and an upcall can tell the consumer of a
 * result, too: each ends the delays of all queues first.
 */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"
#include "fault.h"

#define TYPES (NDX_CQ_NOTIFY_SOLICITED + 1)

struct fault_cq;

/* A notification of this provider in the inner queue. */
struct fault_notify {
	struct ndx_overlapped ov;
	struct fault_cq *owner;
	bool armed;
	bool merged; /* fired together with another one, so its own event does not count */
};

struct fault_cq {
	struct ndx_cq_ops ops;
	const struct ndx_cq_ops *inner;
	struct fault_adapter *fa;
	struct ndx_spi_cq *cq;
	struct ndxp_list node; /* in fault_adapter.cqs */
	struct ndxp_lock lock; /* guards the members below */
	uint64_t delay_until;
	uint32_t delays_ended_before; /* fault_adapter.delays_ended when the delay began */
	uint32_t fired;               /* count of notifications of the inner queue */
	struct ndxp_ov_list kept;
	bool kept_fd;
	bool wants[TYPES]; /* types of the notifications that are kept */
	bool missed_event; /* a notification of the inner queue fired while none was kept */
	bool fd_event;     /* the descriptor fired, and no poll has looked since */
	bool gone; /* destroyed; the last notification of the inner queue frees this object */
	struct fault_notify below[TYPES];
};

static struct fault_cq *of_pub(const struct ndx_cq *pub)
{
	return container_of((struct ndx_cq_ops *)(uintptr_t)pub->ops, struct fault_cq, ops);
}

static uint32_t get_delays_ended(struct fault_adapter *fa)
{
	return __atomic_load_n(&fa->delays_ended, __ATOMIC_ACQUIRE);
}

/* Lock held. */
static bool is_delaying(const struct fault_cq *c, uint64_t now)
{
	return now < c->delay_until && c->delays_ended_before == get_delays_ended(c->fa);
}

static bool is_armed_inner(const struct fault_cq *c)
{
	return c->below[0].armed || c->below[1].armed || c->below[2].armed;
}

static bool any_is_armed(const struct fault_cq *c)
{
	return c->wants[0] || c->wants[1] || c->wants[2];
}

static void set_wants(struct fault_cq *c, unsigned type, bool wants)
{
	const bool before = any_is_armed(c);

	c->wants[type] = wants;
	if (before != any_is_armed(c))
		(void)__atomic_add_fetch(&c->fa->waiting, before ? -1u : 1u, __ATOMIC_ACQ_REL);
}

/* ---- notifying the consumer; lock held ---- */

static void complete_notifications(struct fault_cq *c, enum ndx_status status)
{
	for (unsigned type = 0; type < TYPES; type++)
		set_wants(c, type, false);
	if (c->kept_fd) {
		fault_cq_wake(c->cq, true);
		c->fd_event = true;
	}
	c->kept_fd = false;
	ndxp_ov_complete_all(&c->kept, status);
}

/* The descriptor is armed again, which clears it. The inner queue does not fire twice for the same
 * result. Which type of result has fired is not known here. */
static void repeat_fd_event(struct fault_cq *c, enum ndx_cq_notify_type type)
{
	if (!c->kept_fd || !c->fd_event || type == NDX_CQ_NOTIFY_ERRORS)
		return;
	fault_cq_wake(c->cq, true);
	c->kept_fd = false;
	for (unsigned i = 0; c->kept.head == NULL && i < TYPES; i++)
		set_wants(c, i, false);
}

static bool keeps_any(const struct fault_cq *c)
{
	return c->kept.head != NULL || c->kept_fd;
}

static void arm_inner(struct fault_cq *c, unsigned type)
{
	struct fault_notify *below = &c->below[type];
	enum ndx_status st = base_ov_begin(&below->ov, c->fa->loop);

	below->armed = st == NDX_OK;
	if (st != NDX_OK)
		return;
	st = c->fa->ops->cq_notify(c->cq, (enum ndx_cq_notify_type)type, &below->ov);
	if (st == NDX_PENDING)
		return;
	base_ov_abandon(&below->ov);
	below->armed = false;
	complete_notifications(c, st);
}

static void arm_wanted(struct fault_cq *c)
{
	for (unsigned type = 0; type < TYPES; type++) {
		if (c->wants[type] && !c->below[type].armed)
			arm_inner(c, type);
	}
}

/* Control thread. */
static void on_inner_notify(struct ndx_overlapped *ov)
{
	struct fault_notify *below = container_of(ov, struct fault_notify, ov);
	struct fault_cq *c = below->owner;

	ndxp_lock_acquire(&c->lock);
	below->armed = false;
	if (c->gone) {
		const bool last = !is_armed_inner(c);

		ndxp_lock_release(&c->lock);
		if (last)
			free(c);
		return;
	}
	if (ov->status == NDX_E_CANCELED || below->merged) {
		/* the consumer has asked for these types after the event */
		below->merged = false;
		arm_wanted(c);
	} else {
		/* One event fires all notifications that are armed. */
		for (unsigned type = 0; type < TYPES; type++)
			c->below[type].merged = c->below[type].armed;
		c->fired++;
		c->delay_until = 0;
		c->missed_event = !keeps_any(c);
		complete_notifications(c, ov->status);
	}
	ndxp_lock_release(&c->lock);
}

/* ---- taking results ---- */

/* Swap adjacent results at random. Results of one queue pair keep their order, unless
 * FAULT_REORDER_ANY is set. */
static void reorder_results(struct fault_adapter *fa, struct ndx_result *results, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const bool may = fa->options.reorder == FAULT_REORDER_ANY ||
		                 results[i].queue_pair_context != results[i - 1].queue_pair_context;

		if (may && fault_random(fa, 2) == 0) {
			const struct ndx_result other = results[i - 1];

			results[i - 1] = results[i];
			results[i] = other;
		}
	}
}

static size_t drop_result(struct fault_cq *c, struct ndx_result *results, size_t count)
{
	const uint64_t after = __atomic_add_fetch(&c->fa->results, count, __ATOMIC_ACQ_REL);
	const uint64_t number = c->fa->options.drop;
	size_t at;

	if (number == 0 || number > after || number <= after - count)
		return count;
	at = (size_t)(number - (after - count) - 1);
	log_warn(0, "result %llu is lost", (unsigned long long)number);
	memmove(&results[at], &results[at + 1], (count - at - 1) * sizeof(*results));
	/* fewer results than asked for would mean that the queue is empty: fill the gap */
	return count - 1 + c->inner->get_results(&c->cq->pub, &results[count - 1], 1);
}

/* A poll has emptied the queue; `delays_ended` and `fired` are from before that poll. */
static void begin_delay(struct fault_cq *c, uint32_t delays_ended, uint32_t fired)
{
	const uint64_t ns = fault_random(c->fa, c->fa->options.delay_ms + 1u) * NDXP_NS_PER_MS;

	ndxp_lock_acquire(&c->lock);
	c->missed_event = false;
	if (c->fired == fired && !is_armed_inner(c) && delays_ended == get_delays_ended(c->fa)) {
		c->delay_until = ndxp_now_ns() + ns;
		c->delays_ended_before = delays_ended;
	}
	ndxp_lock_release(&c->lock);
}

static size_t poll_delayed(struct fault_cq *c, struct ndx_result *results, size_t count)
{
	uint32_t delays_ended = get_delays_ended(c->fa);
	uint32_t fired;
	size_t n;
	bool delaying;

	ndxp_lock_acquire(&c->lock);
	delaying = is_delaying(c, ndxp_now_ns());
	fired = c->fired;
	/* A notification that was asked for while the queue was delaying has to fire for the
	 * results that this poll could take. */
	if (!delaying) {
		arm_wanted(c);
		c->fd_event = false;
	}
	ndxp_lock_release(&c->lock);
	if (delaying)
		return 0;
	n = c->inner->get_results(&c->cq->pub, results, count);
	if (n > 0) {
		fault_cqs_end_delay(c->fa);
		delays_ended++;
	}
	if (n < count)
		begin_delay(c, delays_ended, fired);
	return n;
}

static bool has_failure(const struct ndx_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (results[i].status != NDX_OK)
			return true;
	}
	return false;
}

static size_t get_results(struct ndx_cq *pub, struct ndx_result *results, size_t count)
{
	struct fault_cq *c = of_pub(pub);
	size_t n;

	if (c->fa->options.delay_ms == 0)
		n = c->inner->get_results(pub, results, count);
	else
		n = poll_delayed(c, results, count);
	if (n > 1 && c->fa->options.reorder != FAULT_REORDER_NONE)
		reorder_results(c->fa, results, n);
	if (has_failure(results, n))
		fault_events_flush_ends(c->fa);
	return n > 0 ? drop_result(c, results, n) : 0;
}

/* ---- notification ---- */

/* The inner provider's descriptor becomes not readable. */
static enum ndx_status clear_fd(struct fault_cq *c)
{
	int fd;
	const enum ndx_status st = c->fa->ops->cq_get_fd(c->cq, &fd);

	if (st == NDX_OK)
		fault_cq_wake(c->cq, false);
	return st;
}

static enum ndx_status keep_notification(struct fault_cq *c, enum ndx_cq_notify_type type,
                                         struct ndx_overlapped *ov)
{
	uint64_t due = UINT64_MAX;
	enum ndx_status st = NDX_OK;

	ndxp_lock_acquire(&c->lock);
	if (ov == NULL)
		st = clear_fd(c);
	if (st == NDX_OK) {
		if (ov != NULL)
			ndxp_ov_push(&c->kept, ov);
		else
			c->kept_fd = true;
		set_wants(c, (unsigned)type, true);
		if (c->missed_event)
			complete_notifications(c, NDX_OK);
		c->missed_event = false;
		if (ov == NULL)
			repeat_fd_event(c, type);
		if (is_delaying(c, ndxp_now_ns()))
			due = c->delay_until;
		else
			arm_wanted(c);
	}
	ndxp_lock_release(&c->lock);
	fault_wake_at(c->fa, due);
	return st == NDX_OK ? NDX_PENDING : st;
}

enum ndx_status fault_cq_notify(struct ndx_spi_cq *cq, enum ndx_cq_notify_type type,
                                struct ndx_overlapped *ov)
{
	struct fault_cq *c = of_pub(&cq->pub);
	const enum ndx_status st = fault_inject(c->fa, FAULT_CALL_cq_notify);

	if (st != NDX_OK)
		return st;
	if (c->fa->options.delay_ms == 0)
		return c->fa->ops->cq_notify(cq, type, ov);
	return keep_notification(c, type, ov);
}

void fault_cq_cancel(struct ndx_spi_cq *cq, enum ndx_status status)
{
	struct fault_cq *c = of_pub(&cq->pub);

	ndxp_lock_acquire(&c->lock);
	for (unsigned type = 0; !c->kept_fd && type < TYPES; type++)
		set_wants(c, type, false);
	ndxp_ov_complete_all(&c->kept, status);
	ndxp_lock_release(&c->lock);
	c->fa->ops->cq_cancel(cq, status);
}

uint64_t fault_cqs_tick(struct fault_adapter *fa, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	ndxp_lock_acquire(&fa->cqs_lock);
	for (struct ndxp_list *n = fa->cqs.next; n != &fa->cqs; n = n->next) {
		struct fault_cq *c = container_of(n, struct fault_cq, node);

		ndxp_lock_acquire(&c->lock);
		if (!is_delaying(c, now))
			arm_wanted(c);
		else if (any_is_armed(c) && c->delay_until < next)
			next = c->delay_until;
		ndxp_lock_release(&c->lock);
	}
	ndxp_lock_release(&fa->cqs_lock);
	return next;
}

/* ---- create and destroy ---- */

static void init_cq(struct fault_cq *c, struct fault_adapter *fa, struct ndx_spi_cq *cq)
{
	c->fa = fa;
	c->cq = cq;
	c->inner = cq->pub.ops;
	c->ops = (struct ndx_cq_ops){.size = sizeof(c->ops), .get_results = get_results};
	for (unsigned type = 0; type < TYPES; type++) {
		c->below[type].owner = c;
		c->below[type].ov.callback = on_inner_notify;
	}
	cq->pub.ops = &c->ops;
	ndxp_lock_acquire(&fa->cqs_lock);
	ndxp_list_add(&fa->cqs, &c->node);
	ndxp_lock_release(&fa->cqs_lock);
}

enum ndx_status fault_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                                struct ndx_spi_cq **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	struct fault_cq *c;
	enum ndx_status st = fault_inject(fa, FAULT_CALL_cq_create);

	if (st != NDX_OK) {
		*out = fault_bad_pointer();
		return st;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "completion queue: out of memory");
	st = fa->ops->cq_create(adapter, attr, out);
	if (st == NDX_OK)
		init_cq(c, fa, *out);
	else
		free(c);
	return st;
}

void fault_cq_destroy(struct ndx_spi_cq *cq)
{
	struct fault_cq *c = of_pub(&cq->pub);
	bool last;

	ndxp_lock_acquire(&c->fa->cqs_lock);
	ndxp_list_remove(&c->node);
	ndxp_lock_release(&c->fa->cqs_lock);
	ndxp_lock_acquire(&c->lock);
	for (unsigned type = 0; type < TYPES; type++)
		set_wants(c, type, false);
	c->kept_fd = false;
	ndxp_lock_release(&c->lock);
	if (c->fa->options.delay_ms != 0)
		c->fa->ops->cq_cancel(cq, NDX_E_CANCELED);
	cq->pub.ops = c->inner;
	c->fa->ops->cq_destroy(cq);
	ndxp_lock_acquire(&c->lock);
	c->gone = true;
	last = !is_armed_inner(c);
	ndxp_lock_release(&c->lock);
	if (last)
		free(c);
}
