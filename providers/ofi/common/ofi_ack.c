/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements of messages. A completion means that the peer's memory has the bytes, and
 * libfabric's tcp provider reports that only by a packet of its own for each message. So a send is
 * given to libfabric without asking for a completion, and completes when the peer has counted it
 * among those that have arrived in receives. The stream is in order, so one number is enough. The
 * peer's NDX does not see writes: libfabric has to acknowledge them.
 *
 * The number travels with every message that goes the other way. If no message goes, the number is sent alone, as
 * late as nobody waits for it:
 *  - when the consumer's polls find nothing more, or the consumer arms a notification;
 *  - when half of what the peer can have in flight is not acknowledged;
 *  - when the control thread reads the native queue, or looks at its next tick.
 *
 * A consumer that polls faster than messages come finds nothing after each of them. An
 * acknowledgement for each would double the packets of a stream. So where the next message comes
 * sooner than a peer could have sent it in answer to an acknowledgement, more polls have to find
 * nothing (`patience`).
 */
#include "ofi.h"

#define SOON 8u          /* polls that find nothing: less than a round trip */
#define PATIENCE_MAX 64u /* of such polls: some 50 us */

void ofi_acks_begin(struct ofi_qp *qp)
{
	qp->acks = (struct ofi_acks){.every = 1, .next = qp->tx_next};
}

uint16_t ofi_acks_every(uint32_t receive_depth, uint32_t initiator_depth)
{
	const uint32_t window = receive_depth < initiator_depth ? receive_depth : initiator_depth;

	return window >= 4 ? (uint16_t)(window / 2) : 1;
}

void ofi_ack_await(struct ofi_qp *qp, struct ofi_tx *tx)
{
	tx->unacked = true;
	qp->acks.waiting++;
}

const char *ofi_ack_take(struct ofi_qp *qp, uint16_t arrived)
{
	struct ndxp_queue *q = &qp->base.initiator;
	struct ofi_acks *acks = &qp->acks;
	uint16_t count = (uint16_t)(arrived - acks->confirmed);

	/* a number that goes backwards is a large step forwards */
	if (count > acks->waiting)
		return "an acknowledgement of messages that were not sent";
	if (count == 0)
		return NULL;
	acks->confirmed = arrived;
	acks->waiting -= count;
	/* requests before the head have left the ring */
	if (ofi_is_before(acks->next, q->head))
		acks->next = q->head;
	for (; count > 0 && ofi_is_before(acks->next, qp->tx_next); acks->next++) {
		struct ofi_tx *tx = ofi_tx_at(qp, acks->next);

		if (!tx->unacked)
			continue;
		tx->unacked = false;
		count--;
		/* it may have failed already */
		if (!tx->native)
			continue;
		tx->native = false;
		qp->tx_native--;
		ndxp_req_done(q, &tx->base, NDX_OK, 0);
	}
	ofi_submit(qp);
	ofi_check_drained(qp);
	return NULL;
}

/* ---- sending ---- */

void ofi_ack_later(struct ofi_qp *qp)
{
	struct ofi_ncq *ncq = qp->ncq;

	if (qp->acks.listed)
		return;
	qp->acks.listed = true;
	ndxp_lock_acquire(&ncq->credit_lock);
	ndxp_list_add(&ncq->untold, &qp->untold_node);
	__atomic_store_n(&ncq->has_untold, 1, __ATOMIC_SEQ_CST);
	ndxp_lock_release(&ncq->credit_lock);
}

void ofi_ack_look(struct ofi_ncq *ncq)
{
	struct ofi_adapter *adapter = ncq->adapter;

	/* This side stores the debt, then reads `looks`; the tick clears `looks`, then reads the
	 * debt. So at least one of them sees the other. */
	if (__atomic_load_n(&adapter->looks, __ATOMIC_SEQ_CST) == 0 &&
	    __atomic_exchange_n(&adapter->looks, 1, __ATOMIC_SEQ_CST) == 0)
		ndxp_loop_post(adapter->spi.loop, &adapter->look);
}

static struct ofi_qp *next_untold(struct ofi_ncq *ncq)
{
	struct ndxp_list *node;

	ndxp_lock_acquire(&ncq->credit_lock);
	node = ndxp_list_take(&ncq->untold);
	if (node == NULL)
		__atomic_store_n(&ncq->has_untold, 0, __ATOMIC_RELEASE);
	ndxp_lock_release(&ncq->credit_lock);
	return node != NULL ? container_of(node, struct ofi_qp, untold_node) : NULL;
}

bool ofi_ack_all(struct ofi_ncq *ncq)
{
	struct ofi_qp *qp;
	bool any = false;
	bool ok = true;

	while (ok && __atomic_load_n(&ncq->has_untold, __ATOMIC_SEQ_CST) != 0 &&
	       (qp = next_untold(ncq)) != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		qp->acks.listed = false;
		if (qp->open && ofi_acks_owed(qp) > 0) {
			ok = ofi_announce(qp);
			any = true;
		}
		/* libfabric has no memory for the moment */
		if (!ok)
			ofi_ack_later(qp);
		ndxp_lock_release(&qp->base.lock);
	}
	if (!ok)
		ofi_ack_look(ncq);
	return any;
}

/* ---- polls of a consumer that polls all the time ---- */

void ofi_ack_idle(struct ofi_ncq *ncq)
{
	if (__atomic_load_n(&ncq->has_untold, __ATOMIC_RELAXED) == 0) {
		ncq->since_acks++;
		return;
	}
	if (ncq->empty++ < ncq->patience)
		return;
	ncq->empty = 0;
	if (ofi_ack_all(ncq)) {
		ncq->acked = true;
		ncq->since_acks = 0;
	}
}

void ofi_ack_arrivals(struct ofi_ncq *ncq)
{
	if (ncq->empty > 0 || (ncq->acked && ncq->since_acks < SOON)) {
		if (ncq->patience < PATIENCE_MAX)
			ncq->patience += 1 + ncq->patience;
	} else if (ncq->acked) {
		ncq->patience /= 2;
	}
	ncq->empty = 0;
	ncq->acked = false;
}
