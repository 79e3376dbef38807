/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements of messages, as numbers: which messages this end's sends wait for, what has
 * arrived here, what is told and what is asked. ofi_ack.c decides when to speak.
 */
#include "ofi.h"

/* With fewer in flight, always the last one asks. With more, that would acknowledge ever smaller
 * parts of a window that is full all the time. */
#define FEW 16u

void ofi_acks_begin(struct ofi_qp *qp)
{
	qp->acks = (struct ofi_acks){.every = 1, .window = 1, .usual = 1, .next = qp->tx_next};
}

void ofi_acks_open(struct ofi_qp *qp, uint32_t peer_initiator_depth)
{
	const uint32_t inbound = qp->base.receive.depth < peer_initiator_depth
	                                 ? qp->base.receive.depth
	                                 : peer_initiator_depth;
	const uint32_t outbound = qp->base.initiator.depth < qp->peer_depth
	                                  ? qp->base.initiator.depth
	                                  : qp->peer_depth;

	qp->acks.every = inbound >= 4 ? (uint16_t)(inbound / 2) : 1;
	qp->acks.window = outbound;
}

/* The queue pair has something for ofi_ack_all(). */
void ofi_ack_list(struct ofi_qp *qp)
{
	if (qp->acks.listed)
		return;
	qp->acks.listed = true;
	ndxp_lock_acquire(&qp->ncq->credit_lock);
	ndxp_list_add(&qp->ncq->ack_list, &qp->ack_node);
	ndxp_lock_release(&qp->ncq->credit_lock);
}

/* ---- the sender of messages ---- */

/* What happens between polls of one consumer, for all queue pairs of the native queue. */
static uint32_t count_empty_polls(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->empty_polls, __ATOMIC_RELAXED);
}

static void set_unasked(struct ofi_qp *qp, uint32_t unasked)
{
	struct ofi_acks *acks = &qp->acks;

	if (acks->unasked == 0 && unasked > 0) {
		(void)__atomic_add_fetch(&qp->ncq->unasked, 1, __ATOMIC_RELAXED);
		ofi_ack_list(qp);
	} else if (acks->unasked > 0 && unasked == 0) {
		(void)__atomic_sub_fetch(&qp->ncq->unasked, 1, __ATOMIC_RELAXED);
	}
	acks->unasked = unasked;
}

/* Are the polls of the consumer of the queue pair's sends not counted? */
static bool is_swept(const struct ofi_qp *qp)
{
	const struct ofi_cq *cq =
		(const struct ofi_cq *)(const void *)qp->base.spi.attr.initiator_cq;

	return __atomic_load_n(&cq->swept, __ATOMIC_RELAXED) != 0;
}

uint8_t ofi_ack_request(const struct ofi_qp *qp)
{
	const struct ofi_acks *acks = &qp->acks;
	const uint32_t unasked = acks->unasked + 1;
	const bool last = acks->waiting + 1 >= acks->usual &&
	                  (acks->usual < FEW || unasked >= acks->usual / 4);

	return last || unasked >= acks->usual / 2 || is_swept(qp) ? OFI_CTRL_ACK_REQ : 0;
}

void ofi_ack_await(struct ofi_qp *qp, struct ofi_tx *tx, uint8_t flags)
{
	struct ofi_acks *acks = &qp->acks;

	/* No earlier one waits. Requests that are no messages may have gone half around the numbers
	 * since, and the last one looks as if it came later. */
	if (acks->waiting == acks->implied)
		acks->next = qp->tx_next;
	tx->unacked = true;
	acks->waiting++;
	acks->empty_polls = count_empty_polls(qp->ncq);
	set_unasked(qp, flags & OFI_CTRL_ACK_REQ ? 0 : acks->unasked + 1);
}

/* An acknowledgement has come. Has the consumer waited for it, and with how many in flight? */
static void learn(struct ofi_qp *qp)
{
	struct ofi_acks *acks = &qp->acks;

	if (count_empty_polls(qp->ncq) - acks->empty_polls >= OFI_EMPTY_WAIT)
		acks->usual = acks->waiting;
	else if (acks->usual < acks->window)
		acks->usual = 2 * acks->usual < acks->window ? 2 * acks->usual : acks->window;
}

/* Complete the unacknowledged messages from acks->next on: up to `end`, and `most` of them. Returns
 * how many these are. */
static uint32_t complete_messages(struct ofi_qp *qp, uint32_t end, uint32_t most)
{
	struct ofi_acks *acks = &qp->acks;
	uint32_t count = 0;

	for (; count < most && ofi_is_before(acks->next, end); acks->next++) {
		struct ofi_tx *tx = ofi_tx_at(qp, acks->next);

		if (!tx->unacked)
			continue;
		tx->unacked = false;
		count++;
		/* it may have failed already */
		if (!tx->native)
			continue;
		tx->native = false;
		qp->tx_native--;
		tx->base.status = NDX_OK;
		tx->base.native = 0;
		tx->base.done = true;
	}
	return count;
}

/* Requests before the head have left the ring. */
static void skip_retired(struct ofi_qp *qp)
{
	if (ofi_is_before(qp->acks.next, qp->base.initiator.head))
		qp->acks.next = qp->base.initiator.head;
}

const char *ofi_ack_cover(struct ofi_qp *qp, uint16_t arrived)
{
	struct ofi_acks *acks = &qp->acks;
	uint32_t count = (uint16_t)(arrived - acks->confirmed);

	/* a number that goes backwards is a large step forwards */
	if (count > acks->waiting)
		return "an acknowledgement of messages that were not sent";
	if (count == 0)
		return NULL;
	learn(qp);
	acks->confirmed = arrived;
	acks->waiting -= count;
	if (acks->unasked > acks->waiting)
		set_unasked(qp, acks->waiting);
	if (count > acks->implied) {
		skip_retired(qp);
		(void)complete_messages(qp, qp->tx_next, count - acks->implied);
		count = acks->implied;
	}
	acks->implied -= count;
	ndxp_queue_retire(&qp->base.initiator);
	return NULL;
}

/*
 * The stream is in order: what came before a write that libfabric has acknowledged, or a read that
 * has its data, is in the peer's memory, whether or not the peer's NDX has counted it yet. Without
 * this, a request could succeed behind one that is canceled.
 */
void ofi_ack_imply(struct ofi_qp *qp, const struct ofi_tx *tx)
{
	const struct ndxp_queue *q = &qp->base.initiator;
	const uint32_t slot = (uint32_t)(((const char *)tx - q->reqs) / q->stride);
	uint32_t index;

	if (qp->acks.waiting == qp->acks.implied)
		return;
	skip_retired(qp);
	index = qp->acks.next + ((slot - qp->acks.next) & q->mask);
	/* otherwise all before it are complete */
	if (ofi_is_before(index, qp->tx_next))
		qp->acks.implied += complete_messages(qp, index, UINT32_MAX);
}

/* ---- the receiver of messages ---- */

void ofi_ack_later(struct ofi_qp *qp, bool asked)
{
	struct ofi_ncq *ncq = qp->ncq;

	if (ofi_acks_owed(qp) == 0) {
		(void)__atomic_add_fetch(&ncq->owing, 1, __ATOMIC_SEQ_CST);
		ofi_ack_list(qp);
	}
	qp->acks.arrived++;
	if (asked)
		__atomic_store_n(&ncq->asked, 1, __ATOMIC_RELAXED);
}

void ofi_ack_told(struct ofi_qp *qp)
{
	if (ofi_acks_owed(qp) == 0)
		return;
	qp->acks.told = qp->acks.arrived;
	if (__atomic_sub_fetch(&qp->ncq->owing, 1, __ATOMIC_SEQ_CST) == 0)
		__atomic_store_n(&qp->ncq->asked, 0, __ATOMIC_RELAXED);
}

void ofi_acks_end(struct ofi_qp *qp)
{
	ofi_ack_told(qp);
	set_unasked(qp, 0);
}
