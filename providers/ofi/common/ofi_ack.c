/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements of messages. A completion means that the peer's memory has the bytes, and
 * libfabric's tcp provider reports that only by a packet of its own for each message. So a send is
 * given to libfabric without asking for a completion, and completes when the peer has counted the
 * message among those that have arrived in receives. The stream is in order, so one number is
 * enough. The peer's NDX does not see writes: libfabric has to acknowledge them.
 *
 * The number travels with every message that goes the other way. If no message goes, the number is
 * sent alone, as late as possible without keeping the peer waiting:
 *  - when the consumer's polls find nothing more, or the consumer arms a notification;
 *  - when half of what the peer can have in flight is not acknowledged;
 *  - when the control thread reads the native queue, or looks at its next tick.
 *
 * A consumer that polls faster than messages come finds nothing after each of them, and an
 * acknowledgement for each would double the packets of a stream. Only the sender knows whether it
 * waits. So a message has a flag (ACK_REQ, the AckReq of InfiniBand's BTH), and only what is asked
 * for is acknowledged when polls find nothing, or a notification is armed; the rest waits for the
 * next message, for half of the window, or for the control thread's tick. The sender asks with the
 * last message that it usually has in flight when its consumer begins to wait, and with every half
 * of so many. Where it was mistaken, and its consumer waits for messages behind the last one that
 * asked, a control message asks for them.
 */
#include "ofi.h"

/* Polls in a row that find nothing before ... */
#define EMPTY_TELL 2u /* ... the peer is told: a consumer may answer after the first of them */
#define EMPTY_ASK 16u /* ... the peer is asked, some 4 us */

const char *ofi_ack_take(struct ofi_qp *qp, uint16_t arrived)
{
	const char *wrong = ofi_ack_cover(qp, arrived);

	if (wrong != NULL)
		return wrong;
	ofi_submit(qp);
	ofi_check_drained(qp);
	return NULL;
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

/* ---- control messages ---- */

/* A queue pair stays in the list after a message has carried its acknowledgement. */
static struct ofi_qp *next_listed(struct ofi_ncq *ncq)
{
	struct ndxp_list *node;

	ndxp_lock_acquire(&ncq->credit_lock);
	node = ndxp_list_take(&ncq->ack_list);
	ndxp_lock_release(&ncq->credit_lock);
	return node != NULL ? container_of(node, struct ofi_qp, ack_node) : NULL;
}

bool ofi_ack_now(struct ofi_qp *qp)
{
	const bool ask = qp->acks.unasked > 0;
	bool ok;

	if (!qp->open || (!ask && ofi_acks_owed(qp) == 0))
		return true;
	qp->acks.ask = ask;
	ok = ofi_announce(qp);
	qp->acks.ask = false;
	if (ok)
		ofi_acks_end(qp);
	else
		ofi_ack_look(qp->ncq);
	return ok;
}

void ofi_ack_all(struct ofi_ncq *ncq)
{
	struct ofi_qp *qp;
	bool ok = true;

	ncq->empty = 0;
	__atomic_store_n(&ncq->asked, 0, __ATOMIC_RELAXED);
	while (ok && (ofi_ncq_owes(ncq) || ofi_ncq_has_unasked(ncq)) &&
	       (qp = next_listed(ncq)) != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		qp->acks.listed = false;
		ok = ofi_ack_now(qp);
		if (!ok)
			ofi_ack_list(qp);
		else if (!qp->releasing) /* then the last acknowledgement is still to be sent */
			ofi_acks_end(qp);
		ndxp_lock_release(&qp->base.lock);
	}
}

/* The consumer has found nothing, and may find nothing for long: what is asked for goes now. */
void ofi_ack_asked(struct ofi_ncq *ncq)
{
	const bool owes = ofi_ncq_owes(ncq);

	if ((owes && __atomic_load_n(&ncq->asked, __ATOMIC_RELAXED) != 0) ||
	    ofi_ncq_has_unasked(ncq))
		ofi_ack_all(ncq);
	else if (owes)
		ofi_ack_look(ncq);
}

void ofi_ack_armed(struct ofi_ncq *ncq)
{
	__atomic_store_n(&ncq->empty_polls, ncq->empty_polls + OFI_EMPTY_WAIT, __ATOMIC_RELAXED);
	ofi_ack_asked(ncq);
}

void ofi_ack_polled(struct ofi_ncq *ncq, bool found, bool away)
{
	const bool owes = ofi_ncq_owes(ncq);
	const bool asked = owes && __atomic_load_n(&ncq->asked, __ATOMIC_RELAXED) != 0;

	if (found) {
		ncq->empty = 0;
	} else {
		__atomic_store_n(&ncq->empty_polls, ncq->empty_polls + 1, __ATOMIC_RELAXED);
		ncq->empty++;
		if ((asked && ncq->empty >= EMPTY_TELL) ||
		    (ncq->empty >= EMPTY_ASK && ofi_ncq_has_unasked(ncq))) {
			ofi_ack_all(ncq);
			return;
		}
	}
	/* no tick looks after what a consumer owes that does not poll again */
	if (owes && !away)
		ofi_ack_look(ncq);
}
