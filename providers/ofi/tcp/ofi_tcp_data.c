/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and messages of libfabric's tcp provider. */
#include "ofi_tcp.h"

/* Without FI_COMPLETION: the peer's acknowledgement completes the message. The call with one buffer
 * has no flags of its own, and adapt_info() sees to it that the endpoint has none, either. */
static int give_message(const struct ofi_qp *qp, struct ofi_tx *tx, size_t iov_count, uint64_t data)
{
	const struct fi_msg msg = {
		.msg_iov = tx->iov,
		.iov_count = iov_count,
		.context = &tx->op,
		.data = data,
	};

	if (iov_count == 1) /* the usual case, for which libfabric needs fewer instructions */
		return -(int)fi_senddata(qp->ep, tx->iov[0].iov_base, tx->iov[0].iov_len, NULL,
		                         data, FI_ADDR_UNSPEC, &tx->op);
	return -(int)fi_sendmsg(qp->ep, &msg, FI_REMOTE_CQ_DATA);
}

static int submit_send(struct ofi_qp *qp, struct ofi_tx *tx, size_t iov_count)
{
	const uint16_t credits = ofi_take_credits(qp);
	const uint16_t arrived = qp->acks.arrived;
	const uint8_t flags = tx->ctrl_flags | ofi_ack_request(qp);
	const int err = give_message(qp, tx, iov_count,
	                             ofi_ctrl_encode_data(flags, credits, arrived, tx->immediate));

	if (err != 0) {
		qp->rx_credited -= credits;
		return err;
	}
	qp->credits--;
	ofi_sizes_sent(qp);
	ofi_ack_told(qp);
	ofi_ack_await(qp, tx, flags);
	return 0;
}

/*
 * A write with immediate data: the write, with the lower half of its length; a control message with
 * the upper half; and a Send without bytes, whose delivery is also the write's, because it follows
 * the write. If libfabric has no memory for one of them, the rest follows later.
 */
static int submit_written(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const struct iovec nothing = {0};
	const struct fi_rma_iov remote = {.addr = tx->address, .len = tx->length, .key = tx->key};
	const struct fi_msg_rma msg = {
		.msg_iov = tx->iov,
		.iov_count = tx->iov_count,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &qp->adapter->silent,
		.data = ofi_ctrl_encode(OFI_CTRL_WRITTEN, (uint16_t)tx->length, 0, qp->peer_id),
	};
	int err = 0;

	if (tx->length > 0 && tx->parts == 0) {
		err = -(int)fi_writemsg(qp->ep, &msg, FI_REMOTE_CQ_DATA);
		tx->parts += err == 0;
	}
	if (err == 0 && tx->length > UINT16_MAX && tx->parts == 1) {
		err = ofi_qp_send_ctrl(qp, OFI_CTRL_WRITTEN_HIGH, (uint16_t)(tx->length >> 16), 0,
		                       &nothing);
		tx->parts += err == 0;
	}
	return err == 0 ? submit_send(qp, tx, 0) : err;
}

static int submit_rma(struct ofi_qp *qp, struct ofi_tx *tx)
{
	/* In ND a request without bytes needs no key. libfabric wants one: that of the control
	 * region. */
	const bool nothing = tx->length == 0;
	const struct fi_rma_iov remote = {
		.addr = nothing ? qp->peer_address : tx->address,
		.len = tx->length,
		.key = nothing ? qp->peer_key : tx->key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = tx->iov,
		.iov_count = tx->iov_count,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &tx->op,
	};
	int err;

	if (tx->base.type == NDX_REQUEST_READ) {
		err = -(int)fi_readmsg(qp->ep, &msg, FI_COMPLETION);
		qp->reads += err == 0;
		return err;
	}
	/* The peer's NDX does not see writes, so libfabric has to acknowledge them. */
	return -(int)fi_writemsg(qp->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

int ofi_tcp_submit(struct ofi_qp *qp, struct ofi_tx *tx)
{
	/* Beside immediate data there is room for 8 bits. The result of a send has to come before
	 * the answer to it, so the acknowledgement may not come later. */
	if ((tx->ctrl_flags & OFI_CTRL_IMMEDIATE) && ofi_acks_owed(qp) > UINT8_MAX &&
	    !ofi_announce(qp))
		return FI_EAGAIN;
	if (tx->base.type == NDX_REQUEST_SEND)
		return submit_send(qp, tx, tx->iov_count);
	if (tx->ctrl_flags & OFI_CTRL_IS_WRITE)
		return submit_written(qp, tx);
	return submit_rma(qp, tx);
}

/* Act on the control message in a message; false: a violation of the protocol. Inline, because of
 * the receives that are not shared. */
static inline __attribute__((always_inline)) bool check_ctrl(struct ofi_qp *qp, size_t len,
                                                             const struct ofi_ctrl *ctrl)
{
	const char *wrong = ofi_ctrl_check_data(ctrl);
	uint16_t arrived = ctrl->arrived;

	if (wrong == NULL && qp->base.state == NDXP_QP_IDLE)
		wrong = "a message before the connection was complete";
	if (wrong == NULL && (ctrl->flags & OFI_CTRL_IS_WRITE) && len > 0)
		wrong = "a message with bytes that reports a write";
	if (wrong == NULL && ctrl->count > qp->peer_depth - qp->credits)
		wrong = "more credits than the peer's receive queue holds";
	if (wrong == NULL)
		qp->credits += ctrl->count;
	if (wrong == NULL && (ctrl->flags & OFI_CTRL_IMMEDIATE))
		arrived = ofi_ack_complete(qp, (uint8_t)ctrl->arrived);
	if (wrong == NULL)
		wrong = ofi_ack_cover(qp, arrived);
	if (wrong == NULL)
		return true;
	if (qp->base.state != NDXP_QP_IDLE)
		ofi_qp_break(qp, 0, wrong);
	else if (qp->link != NULL)
		ofi_link_break(qp->link, 0, wrong);
	return false;
}

/* What the message says about its receive. */
static inline __attribute__((always_inline)) void describe(struct ofi_qp *qp, struct ofi_rx *rx,
                                                           size_t len, const struct ofi_ctrl *ctrl)
{
	rx->base.bytes = (uint32_t)len;
	rx->base.immediate = ctrl->value;
	if (ctrl->flags & OFI_CTRL_IMMEDIATE)
		rx->base.result_flags |= NDX_RESULT_IMMEDIATE;
	if (ctrl->flags & OFI_CTRL_SOLICITED)
		rx->base.result_flags |= NDX_RESULT_SOLICITED;
	if (ctrl->flags & OFI_CTRL_IS_WRITE) {
		rx->base.result_flags |= NDX_RESULT_WRITTEN;
		rx->base.bytes = qp->written;
		qp->written = 0;
		qp->written_parts = 0;
	}
}

static void rx_done(struct ofi_qp *qp, struct ofi_rx *rx, size_t len, const struct ofi_ctrl *ctrl)
{
	if (!rx->native)
		return;
	ofi_rx_returned(qp, rx);
	if (!check_ctrl(qp, len, ctrl)) {
		/* the message has overwritten the buffer, so the receive cannot be used again */
		ndxp_req_done(&qp->base.receive, &rx->base, NDX_E_CANCELED, 0);
		return;
	}
	describe(qp, rx, len, ctrl);
	ndxp_req_done(&qp->base.receive, &rx->base, NDX_OK, 0);
	ofi_ack_later(qp, (ctrl->flags & OFI_CTRL_ACK_REQ) != 0);
	if (qp->rx_next != qp->base.receive.tail)
		ofi_post_receives(qp);
	else
		ofi_send_credits(qp);
	/* last, so that what goes now tells of this message, too */
	ofi_submit(qp);
	ofi_check_drained(qp);
}

/* The same for a receive of a shared queue. */
static void shared_done(struct ofi_qp *qp, struct ofi_rx *rx, size_t len,
                        const struct ofi_ctrl *ctrl)
{
	if (!rx->native)
		return;
	ofi_rx_returned(qp, rx);
	if (!check_ctrl(qp, len, ctrl)) {
		/* no result: the next message overwrites what this one has left */
		ofi_srq_done(qp, rx, NDX_E_CANCELED, 0);
		return;
	}
	describe(qp, rx, len, ctrl);
	ofi_srq_done(qp, rx, NDX_OK, 0);
	ofi_ack_later(qp, (ctrl->flags & OFI_CTRL_ACK_REQ) != 0);
	ofi_srq_arrived(qp);
	ofi_send_credits(qp);
	ofi_submit(qp);
	ofi_check_drained(qp);
}

int ofi_tcp_send_credits(struct ofi_qp *qp, uint32_t fresh)
{
	const struct iovec nothing = {0};

	return ofi_qp_send_ctrl(qp, OFI_CTRL_CREDIT, (uint16_t)fresh, 0, &nothing);
}

int ofi_tcp_send_want(struct ofi_qp *qp, uint16_t count)
{
	const struct iovec nothing = {0};

	return ofi_qp_send_ctrl(qp, OFI_CTRL_WANT, count, 0, &nothing);
}

uint16_t ofi_tcp_count_sent(const struct ofi_qp *qp)
{
	return (uint16_t)(qp->acks.confirmed + qp->acks.waiting);
}

void ofi_tcp_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e)
{
	/* without data it is no message of NDX, and 0 is no control message either */
	const struct ofi_ctrl ctrl = ofi_ctrl_split(e->flags & FI_REMOTE_CQ_DATA ? e->data : 0);

	ndxp_lock_acquire(&qp->base.lock);
	rx_done(qp, rx, e->len, &ctrl);
	ndxp_lock_release(&qp->base.lock);
}

void ofi_tcp_received_shared(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e)
{
	const struct ofi_ctrl ctrl = ofi_ctrl_split(e->flags & FI_REMOTE_CQ_DATA ? e->data : 0);

	ndxp_lock_acquire(&qp->base.lock);
	shared_done(qp, rx, e->len, &ctrl);
	ndxp_lock_release(&qp->base.lock);
}

int ofi_tcp_error_of(const struct fi_cq_err_entry *e)
{
	return e->err > 0 ? e->err : EIO;
}
