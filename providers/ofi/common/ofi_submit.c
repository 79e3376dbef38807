/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Initiator requests on their way to libfabric. They are submitted in posting order. A request that
 * has to wait (for a credit, a fence, or the read limit) delays all behind it. The ring of the
 * queue pair is the queue: tx_next is the first request that libfabric never had.
 */
#include <ndx/spi/system.h>
#include "ofi.h"

static uint8_t why_denied(const struct ofi_grant *grant, uint32_t right)
{
	if (grant->rights == 0)
		return OFI_DENIED_PEER;
	return grant->rights & right ? OFI_DENIED_BOUNDS : OFI_DENIED_RIGHT;
}

/* Are the peer's rights for the request known, and `verdict` set? false: the peer has been asked. A
 * request without bytes needs no right. */
static bool check_rights(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const uint32_t right = tx->base.type == NDX_REQUEST_READ ? OFI_GRANT_READ : OFI_GRANT_WRITE;
	const struct ofi_grant *grant = qp->grants.latest;

	if (tx->length == 0 || tx->base.type == NDX_REQUEST_SEND)
		return true;
	if (grant->token != tx->key)
		grant = ofi_grants_get(qp, tx->key);
	if (grant == NULL)
		return false;
	if (qp->peer_disc && grant->rights == 0) {
		/* A peer that has said goodbye may deregister its memory: no fault of this side.
		 * The drain of this side, which follows, ends here. */
		if (qp->draining)
			tx->verdict = NDX_E_CANCELED;
		return qp->draining;
	}
	if (!ofi_grant_covers(grant, tx->address, tx->length, right)) {
		tx->verdict = NDX_E_ACCESS_VIOLATION;
		tx->remote = true;
		tx->denied = why_denied(grant, right);
	}
	return true;
}

static bool takes_receive(const struct ofi_tx *tx)
{
	return tx->base.type == NDX_REQUEST_SEND || (tx->ctrl_flags & OFI_CTRL_IS_WRITE);
}

static bool may_go(struct ofi_qp *qp, struct ofi_tx *tx)
{
	if ((tx->base.op_flags & NDX_OP_READ_FENCE) && qp->reads > 0)
		return false;
	if (tx->verdict == NDX_OK && !ofi_backend_of(qp)->native_keys && !check_rights(qp, tx))
		return false;
	/* a request that will fail waits until the earlier ones have completed */
	if (tx->verdict != NDX_OK)
		return qp->tx_native == 0;
	if (tx->base.type == NDX_REQUEST_READ)
		return qp->reads < qp->read_limit;
	if (takes_receive(tx) && qp->credits == 0 && ofi_backend_of(qp)->refresh != NULL)
		ofi_backend_of(qp)->refresh(qp);
	if (takes_receive(tx) && qp->credits == 0) {
		if (!qp->peer_shared || ofi_srq_ask(qp))
			ofi_rnr_begin(qp);
		return false;
	}
	tx->verdict = ofi_sizes_check(qp, tx);
	tx->unfit = tx->verdict != NDX_OK;
	if (tx->unfit) /* there is a receive */
		ndxp_qp_rnr_end(&qp->base);
	return !tx->unfit || qp->tx_native == 0;
}

/* libfabric did not take the request, or only a part of it. */
static void handle_refusal(struct ofi_qp *qp, struct ofi_tx *tx, int err)
{
	/* a part that libfabric has uses the memory, and ends only with the rest or with the
	 * link */
	tx->native = tx->parts > 0;
	if (err == FI_EAGAIN) { /* out of memory for the moment */
		ndxp_qp_rnr_end(&qp->base);
		ofi_submit_later(qp);
		return;
	}
	if (!tx->native)
		ndxp_req_done(&qp->base.initiator, &tx->base,
		              tx->unfit ? tx->verdict : ofi_request_status(err), err);
	ofi_qp_break(qp, err, "libfabric refused a request");
}

/* False: the request has to wait, or has failed. */
static bool submit_one(struct ofi_qp *qp, struct ofi_tx *tx)
{
	int err;

	if (tx->verdict == NDX_E_CANCELED) {
		ofi_cancel_waiting(qp);
		ofi_check_drained(qp);
		return false;
	}
	if (tx->verdict != NDX_OK && !tx->unfit) {
		ofi_mw_skip(tx);
		if (!tx->native)
			ndxp_req_done(&qp->base.initiator, &tx->base, tx->verdict, 0);
		ofi_qp_break_with(qp, 0, "a request names %s that it must not use: %s",
		                  tx->remote ? "memory of the peer" : "local memory",
		                  ofi_denied_text((enum ofi_denied)tx->denied));
		return false;
	}
	if (tx->base.type == NDX_REQUEST_BIND || tx->base.type == NDX_REQUEST_INVALIDATE)
		return ofi_mw_run(qp, tx);
	/* set first: on a shared queue another thread may see the completion at once */
	tx->native = true;
	err = tx->unfit ? ofi_sizes_refuse(qp, tx) : ofi_backend_of(qp)->submit(qp, tx);
	if (err == 0) {
		ndxp_qp_rnr_end(&qp->base);
		qp->tx_native++;
		return true;
	}
	handle_refusal(qp, tx, err);
	return false;
}

void ofi_submit(struct ofi_qp *qp)
{
	const uint32_t before = qp->tx_native;

	while (qp->tx_next != qp->base.initiator.tail) {
		struct ofi_tx *tx = ofi_tx_at(qp, qp->tx_next);

		/* done already: canceled, or admitted after the end of the connection */
		if (!tx->base.done) {
			if (!qp->open || qp->broken || qp->sizes.refused || !may_go(qp, tx) ||
			    !submit_one(qp, tx))
				break;
		}
		qp->tx_next++;
	}
	if (qp->tx_native != before)
		__atomic_store_n(&qp->ncq->posts,
		                 __atomic_load_n(&qp->ncq->posts, __ATOMIC_RELAXED) + 1,
		                 __ATOMIC_RELAXED);
}

void ofi_tx_done(struct ofi_qp *qp, struct ofi_tx *tx, int err)
{
	const enum ndx_status status = ofi_request_status(err);

	/* libfabric 1.17 completes a read twice that a local shutdown has cut off. A message is
	 * complete when the peer has acknowledged it. */
	if (!tx->native || (err == 0 && tx->unacked))
		return;
	tx->native = false;
	qp->tx_native--;
	if (tx->base.type == NDX_REQUEST_READ)
		qp->reads--;
	if (tx->unfit) {
		if (tx->verdict == NDX_E_DATA_OVERRUN)
			ofi_qp_break_with(qp, 0,
			                  "a message is longer than the peer's receive: %u bytes, "
			                  "for %u",
			                  tx->length, qp->sizes.refused_room);
		else
			ofi_qp_break(qp, 0,
			             "the peer's receive names memory that must not be written");
		ndxp_req_done(&qp->base.initiator, &tx->base, tx->verdict, 0);
		ofi_check_drained(qp);
		return;
	}
	/* libfabric cancels requests by itself when the link is lost. Report the loss first, so
	 * that the core does not take the empty queue for a completed drain. */
	if (err != 0)
		ofi_qp_break(qp, err,
		             status == NDX_E_CANCELED ? ofi_link_lost
		                                      : "a request failed in libfabric");
	else
		ofi_ack_imply(qp, tx);
	ndxp_req_done(&qp->base.initiator, &tx->base, status, err);
	ofi_submit(qp);
	ofi_check_drained(qp);
}

void ofi_cancel_waiting(struct ofi_qp *qp)
{
	struct ndxp_queue *q = &qp->base.initiator;

	for (; qp->tx_next != q->tail; qp->tx_next++) {
		struct ofi_tx *tx = ofi_tx_at(qp, qp->tx_next);

		if (tx->base.done || tx->native)
			continue;
		ofi_mw_skip(tx);
		ndxp_req_done(q, &tx->base, NDX_E_CANCELED, 0);
	}
	qp->invalidating = NULL;
	ndxp_qp_rnr_end(&qp->base);
}

/* The send at tx_next has waited too long for a receive. */
static void give_up_send(struct ofi_qp *qp)
{
	struct ofi_tx *tx = ofi_tx_at(qp, qp->tx_next);

	ndxp_qp_rnr_end(&qp->base);
	ndxp_req_done(&qp->base.initiator, &tx->base, NDX_E_IO_TIMEOUT, 0);
	ofi_qp_break_with(qp, 0, "the peer posted no receive in no_receive_timeout_ms (%u ms)",
	                  qp->base.spi.attr.no_receive_timeout_ms);
}

void ofi_on_rnr_timer(void *arg)
{
	struct ofi_qp *qp = arg;
	uint32_t left;

	ndxp_lock_acquire(&qp->base.lock);
	qp->timer_set = false;
	qp->retrying = false;
	ofi_submit(qp);
	if (qp->taker.srq != NULL)
		ofi_srq_tell(qp);
	else
		ofi_post_receives(qp);
	if (qp->base.rnr_since != 0 && !qp->broken && qp->open) {
		left = qp->peer_shared ? NDX_INFINITE
		                       : ndxp_qp_rnr_left_ms(&qp->base, qp->base.rnr_since);
		if (left == 0)
			give_up_send(qp);
		else if (!qp->retrying)
			ofi_await_credits(qp, left); /* later than the next try */
	}
	ndxp_lock_release(&qp->base.lock);
}
