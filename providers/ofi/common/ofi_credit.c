/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Give receives to libfabric, and tell the peer of them by credits. A peer sends only with a
 * credit, so a message always finds a receive. A message that found none would stop the whole
 * stream, control messages included.
 */
#include "ofi.h"

/* 0, or an errno of libfabric's. */
static int post_receive(struct ofi_qp *qp, struct ofi_rx *rx)
{
	const struct fi_msg msg = {
		.msg_iov = rx->iov,
		.desc = rx->iov_count > 0 ? rx->desc : NULL,
		.iov_count = rx->iov_count,
		.context = &rx->op,
	};

	return -(int)fi_recvmsg(qp->ep, &msg, FI_COMPLETION);
}

static uint32_t count_unannounced(const struct ofi_qp *qp)
{
	return qp->rx_native > qp->rx_credited ? qp->rx_native - qp->rx_credited : 0;
}

uint16_t ofi_take_credits(struct ofi_qp *qp)
{
	const uint32_t fresh = count_unannounced(qp);

	if (fresh == 0 || ofi_sizes_tell(qp) != 0)
		return 0;
	qp->rx_credited += fresh;
	return (uint16_t)fresh;
}

uint16_t ofi_first_credits(struct ofi_qp *qp)
{
	const uint32_t leading = ofi_sizes_leading(qp);
	const uint32_t fresh = count_unannounced(qp);

	qp->rx_credited = fresh < leading ? fresh : leading;
	return (uint16_t)qp->rx_credited;
}

/* Is a control message for credits alone justified? */
static bool credits_are_due(const struct ofi_qp *qp)
{
	const uint32_t fresh = count_unannounced(qp);

	if (!qp->open || qp->peer_disc || fresh == 0)
		return false;
	/* A fixed batch would dead-lock small queues: a peer without any credit needs the first
	 * one. */
	return qp->rx_credited == 0 || fresh >= qp->base.receive.depth / 2;
}

static bool is_due(const struct ofi_qp *qp)
{
	return credits_are_due(qp) || (qp->open && ofi_acks_owed(qp) >= qp->acks.every);
}

bool ofi_announce(struct ofi_qp *qp)
{
	const uint32_t fresh = count_unannounced(qp);
	int err = ofi_sizes_tell(qp);

	if (err == 0)
		err = ofi_backend_of(qp)->send_credits(qp, fresh);
	if (err != 0)
		return err != FI_EAGAIN;
	qp->rx_credited += fresh;
	ofi_ack_told(qp);
	qp->credit_ctrl_sent++;
	return true;
}

bool ofi_announce_all(struct ofi_qp *qp)
{
	return count_unannounced(qp) == 0 || ofi_announce(qp);
}

/* The peer may be waiting for the credit, and this end's consumer for the peer: if libfabric has no
 * memory, the timer tries again. */
static void announce(struct ofi_qp *qp)
{
	if (!ofi_announce(qp))
		ofi_submit_later(qp);
}

/* Does the consumer sleep, or are only native queues with completions polled? Then no poll would
 * send the credits soon. */
static bool must_announce_now(struct ndx_cq *handle)
{
	if (__atomic_load_n(&((struct ofi_cq *)(void *)handle)->swept, __ATOMIC_RELAXED) != 0)
		return true;
	return ndxp_cq_is_armed(ndxp_cq_of(handle));
}

void ofi_send_credits(struct ofi_qp *qp)
{
	const struct ndx_qp_attr *attr = &qp->base.spi.attr;
	struct ofi_ncq *ncq = qp->ncq;

	if (!is_due(qp))
		return;
	if (__atomic_load_n(&ncq->mode, __ATOMIC_RELAXED) != OFI_NCQ_POLLED ||
	    must_announce_now(attr->receive_cq) || must_announce_now(attr->initiator_cq)) {
		/* the thread that reads acknowledges when nothing is left to read */
		if (credits_are_due(qp))
			announce(qp);
		return;
	}
	/* A consumer that polls will probably send, and a send carries credits at no cost.
	 * Otherwise its next poll sends them, or the control thread at the next tick. */
	ndxp_lock_acquire(&ncq->credit_lock);
	if (ndxp_list_empty(&qp->credit_node))
		ndxp_list_add(&ncq->credit_pending, &qp->credit_node);
	__atomic_store_n(&ncq->has_credit_pending, 1, __ATOMIC_SEQ_CST);
	ndxp_lock_release(&ncq->credit_lock);
	/* The control thread may have taken the queue over in between, and may sleep already. This
	 * side stores the debt, then reads the mode; the control thread stores the mode, then reads
	 * the debt. So at least one of them sees the other. */
	if (__atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) != OFI_NCQ_POLLED)
		ofi_ncq_kick(ncq);
}

void ofi_post_receives(struct ofi_qp *qp)
{
	bool told = true;

	if (qp->ep == NULL || qp->recalling)
		return;
	while (qp->rx_next != qp->base.receive.tail) {
		struct ofi_rx *rx = ofi_rx_at(qp, qp->rx_next);

		if (!rx->base.done) {
			/* libfabric's queue is full: go on when a receive completes, or, if there
			 * is none, by the timer */
			rx->native = true;
			if (post_receive(qp, rx) != 0) {
				rx->native = false;
				if (qp->rx_native == 0)
					ofi_submit_later(qp);
				break;
			}
			qp->rx_native++;
			told = told && !rx->placed;
			ofi_sizes_place(qp, rx);
		}
		qp->rx_next++;
	}
	/* recalled receives have lost their memory, and the peer has credits for them; if libfabric
	 * has no memory now, the next credits tell */
	if (!told)
		(void)ofi_sizes_tell(qp);
	ofi_send_credits(qp);
}

static struct ofi_qp *next_credit_pending(struct ofi_ncq *ncq)
{
	struct ndxp_list *node;

	ndxp_lock_acquire(&ncq->credit_lock);
	node = ndxp_list_take(&ncq->credit_pending);
	if (node == NULL)
		__atomic_store_n(&ncq->has_credit_pending, 0, __ATOMIC_RELEASE);
	ndxp_lock_release(&ncq->credit_lock);
	return node != NULL ? container_of(node, struct ofi_qp, credit_node) : NULL;
}

void ofi_send_pending_credits(struct ofi_ncq *ncq)
{
	struct ofi_qp *qp;

	while (__atomic_load_n(&ncq->has_credit_pending, __ATOMIC_SEQ_CST) != 0 &&
	       (qp = next_credit_pending(ncq)) != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		if (is_due(qp))
			announce(qp);
		ndxp_lock_release(&qp->base.lock);
	}
}
