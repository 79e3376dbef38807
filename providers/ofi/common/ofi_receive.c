/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives, and the credits that tell the peer of them. A peer sends only with a credit, so a
 * message always finds its receive: one that did not would stop the whole stream, control words
 * included.
 */
#include <errno.h>
#include <string.h>

#include "base_log.h"
#include "ofi.h"

/* 0, or an errno of libfabric's. */
static int hand_over(struct ofi_qp *qp, struct ofi_rx *rx)
{
	const struct fi_msg msg = {
		.msg_iov = rx->iov,
		.desc = rx->iov_count > 0 ? rx->desc : NULL,
		.iov_count = rx->iov_count,
		.context = &rx->op,
	};

	return -(int)fi_recvmsg(qp->ep, &msg, FI_COMPLETION);
}

void ofi_post_receives(struct ofi_qp *qp)
{
	if (qp->ep == NULL || qp->recalling)
		return;
	while (qp->rx_next != qp->base.receive.tail) {
		struct ofi_rx *rx = ofi_rx_at(qp, qp->rx_next);

		if (!rx->base.done) {
			/* A refusal means that its queue is full: later, when one is done. */
			rx->native = true;
			if (hand_over(qp, rx) != 0) {
				rx->native = false;
				break;
			}
			qp->rx_native++;
		}
		qp->rx_next++;
	}
	ofi_tell_credits(qp);
}

static uint32_t untold(const struct ofi_qp *qp)
{
	return qp->rx_native > qp->rx_told ? qp->rx_native - qp->rx_told : 0;
}

uint16_t ofi_take_credits(struct ofi_qp *qp)
{
	const uint32_t fresh = untold(qp);

	qp->rx_told += fresh;
	return (uint16_t)fresh;
}

/* Is it time for a word of its own? */
static bool is_due(const struct ofi_qp *qp)
{
	const uint32_t fresh = untold(qp);

	if (!qp->open || qp->mute || fresh == 0)
		return false;
	/* Fixed batches would deadlock small queues: who has none left must hear of one. */
	return qp->rx_told == 0 || fresh >= qp->base.receive.depth / 2;
}

static void tell_now(struct ofi_qp *qp)
{
	const uint32_t fresh = untold(qp);

	if (ofi_flavour_of(qp)->tell(qp, fresh) == 0) {
		qp->rx_told += fresh;
		qp->credit_words_sent++;
	}
}

/* The consumer sleeps, or is about to; or its polls ask only those that have something. */
static bool must_hear_now(struct ndx_cq *handle)
{
	struct base_cq *cq = base_cq_of(handle);
	bool armed;

	if (__atomic_load_n(&((struct ofi_cq *)(void *)handle)->swept, __ATOMIC_RELAXED) != 0)
		return true;
	base_lock_acquire(&cq->lock);
	armed = cq->armed;
	base_lock_release(&cq->lock);
	return armed;
}

void ofi_tell_credits(struct ofi_qp *qp)
{
	const struct ndx_qp_attr *attr = &qp->base.spi.attr;
	struct ofi_ncq *ncq = qp->ncq;

	if (!is_due(qp))
		return;
	if (__atomic_load_n(&ncq->mode, __ATOMIC_RELAXED) != OFI_NCQ_AWAY ||
	    must_hear_now(attr->receive_cq) || must_hear_now(attr->initiator_cq)) {
		tell_now(qp);
		return;
	}
	/* A consumer that polls will most likely send, and a send takes credits along for nothing;
	 * if not, it polls soon, or the control thread looks after it at the next tick. */
	base_lock_acquire(&ncq->debtors_lock);
	if (base_list_empty(&qp->debtor))
		base_list_add(&ncq->debtors, &qp->debtor);
	__atomic_store_n(&ncq->owing, 1, __ATOMIC_SEQ_CST);
	base_lock_release(&ncq->debtors_lock);
	/* The control thread may have taken over in between, and sleep already: first the debt,
	 * then the look at the mode; it does it the other way round. */
	if (__atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) != OFI_NCQ_AWAY)
		ofi_ncq_kick(ncq);
}

static struct ofi_qp *take_debtor(struct ofi_ncq *ncq)
{
	struct base_list *node;

	base_lock_acquire(&ncq->debtors_lock);
	node = base_list_take(&ncq->debtors);
	if (node == NULL)
		__atomic_store_n(&ncq->owing, 0, __ATOMIC_RELEASE);
	base_lock_release(&ncq->debtors_lock);
	return node != NULL ? container_of(node, struct ofi_qp, debtor) : NULL;
}

void ofi_tell_all_credits(struct ofi_ncq *ncq)
{
	struct ofi_qp *qp;

	while (__atomic_load_n(&ncq->owing, __ATOMIC_SEQ_CST) != 0 &&
	       (qp = take_debtor(ncq)) != NULL) {
		base_lock_acquire(&qp->base.lock);
		if (is_due(qp))
			tell_now(qp);
		base_lock_release(&qp->base.lock);
	}
}

/* The stack has given it back, one way or another. */
static void take_back(struct ofi_qp *qp, struct ofi_rx *rx)
{
	rx->native = false;
	qp->rx_native--;
	if (qp->rx_told > 0)
		qp->rx_told--;
}

/* What the message's control word says of the peer; false: nonsense. */
static bool take_word(struct ofi_qp *qp, size_t len, const struct ofi_word *word)
{
	const char *wrong = ofi_word_check_data(word);

	if (wrong == NULL && qp->base.state == BASE_QP_IDLE)
		wrong = "a message before the connection was complete";
	if (wrong == NULL && (word->flags & OFI_WORD_IS_WRITE) && len > 0)
		wrong = "a message with bytes that stands for a write";
	if (wrong == NULL && word->count > qp->peer_depth - qp->credits)
		wrong = "more credits than its queue holds";
	if (wrong == NULL) {
		qp->credits += word->count;
		return true;
	}
	if (qp->base.state != BASE_QP_IDLE)
		ofi_qp_break(qp, 0, wrong);
	else if (qp->link != NULL)
		ofi_link_break(qp->link, 0, wrong);
	return false;
}

void ofi_rx_done(struct ofi_qp *qp, struct ofi_rx *rx, size_t len, const struct ofi_word *word)
{
	if (!rx->native)
		return;
	take_back(qp, rx);
	if (!take_word(qp, len, word)) {
		/* The buffer has been written: it cannot go back among those that wait. */
		base_req_done(&qp->base.receive, &rx->base, NDX_E_CANCELED, 0);
		return;
	}
	rx->base.bytes = (uint32_t)len;
	rx->base.immediate = word->value;
	if (word->flags & OFI_WORD_IMMEDIATE)
		rx->base.result_flags |= NDX_RESULT_IMMEDIATE;
	if (word->flags & OFI_WORD_SOLICITED)
		rx->base.result_flags |= NDX_RESULT_SOLICITED;
	if (word->flags & OFI_WORD_IS_WRITE) {
		rx->base.result_flags |= NDX_RESULT_WRITTEN;
		rx->base.bytes = qp->written;
		qp->written = 0;
		qp->written_words = 0;
	}
	base_req_done(&qp->base.receive, &rx->base, NDX_OK, 0);
	if (qp->rx_next != qp->base.receive.tail)
		ofi_post_receives(qp);
	else
		ofi_tell_credits(qp);
	if (word->count > 0)
		ofi_issue(qp);
}

static const char *cause_of(const struct ofi_rx *rx, enum ndx_status status)
{
	if (status == NDX_E_CANCELED)
		return "the link was lost";
	if (status == NDX_E_BUFFER_OVERFLOW)
		return "a message was longer than its receive";
	if (status == NDX_E_ACCESS_VIOLATION && rx->poisoned)
		return "a message came for memory that was deregistered";
	return "a receive failed in libfabric";
}

void ofi_rx_failed(struct ofi_qp *qp, struct ofi_rx *rx, int err)
{
	enum ndx_status status = ofi_request_status(err);

	if (!rx->native)
		return;
	if (qp->recalling && status == NDX_E_CANCELED) {
		/* It goes back soon: what the peer knows of stays true. */
		rx->native = false;
		qp->rx_native--;
		return;
	}
	take_back(qp, rx);
	/* Not connected yet: it waits for the next attempt. */
	if (qp->base.state == BASE_QP_IDLE)
		return;
	if (rx->poisoned && status == NDX_E_BUFFER_OVERFLOW)
		status = NDX_E_ACCESS_VIOLATION;
	if (!qp->releasing)
		ofi_qp_break(qp, err, cause_of(rx, status));
	base_req_done(&qp->base.receive, &rx->base, status, err);
}
