/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, receives and completions of libfabric's verbs provider. */
#include <endian.h>
#include <errno.h>

#include "ofi_verbs.h"

/* ---- requests; the queue pair's lock held ---- */

static void **descriptors(void **desc, size_t count)
{
	return count > 0 ? desc : NULL; /* libfabric reads the first descriptor of a list */
}

static int submit_send(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const struct fi_msg msg = {
		.msg_iov = tx->iov,
		.desc = descriptors(tx->desc, tx->iov_count),
		.iov_count = tx->iov_count,
		.context = &tx->op,
		.data = tx->immediate,
	};
	const uint64_t data = tx->ctrl_flags & OFI_CTRL_IMMEDIATE ? FI_REMOTE_CQ_DATA : 0;

	return -(int)fi_sendmsg(qp->ep, &msg, FI_COMPLETION | data);
}

static int submit_rma(struct ofi_qp *qp, struct ofi_tx *tx)
{
	/* in ND a request without bytes needs no key: use that of the control region */
	const bool nothing = tx->length == 0;
	const struct fi_rma_iov remote = {
		.addr = nothing ? qp->peer_address : tx->address,
		.len = tx->length,
		.key = nothing ? qp->peer_key : be32toh(tx->key),
	};
	const struct fi_msg_rma msg = {
		.msg_iov = tx->iov,
		.desc = descriptors(tx->desc, tx->iov_count),
		.iov_count = tx->iov_count,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &tx->op,
		.data = tx->immediate,
	};
	const uint64_t data = tx->ctrl_flags & OFI_CTRL_IMMEDIATE ? FI_REMOTE_CQ_DATA : 0;
	int err;

	/* some networks drop such a request: write what the peer knows already */
	if (nothing && tx->base.type == NDX_REQUEST_WRITE && data == 0)
		return ofi_verbs_mail(qp, NDXP_RC_CREDITS, 0, &tx->op);
	if (tx->base.type == NDX_REQUEST_WRITE)
		return -(int)fi_writemsg(qp->ep, &msg, FI_COMPLETION | data);
	err = -(int)fi_readmsg(qp->ep, &msg, FI_COMPLETION);
	qp->reads += err == 0;
	return err;
}

int ofi_verbs_submit(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const bool takes_receive =
		tx->base.type == NDX_REQUEST_SEND || (tx->ctrl_flags & OFI_CTRL_IS_WRITE);
	const int err =
		tx->base.type == NDX_REQUEST_SEND ? submit_send(qp, tx) : submit_rma(qp, tx);

	if (err == 0 && takes_receive) {
		qp->credits--;
		qp->verbs.used++;
	}
	return err;
}

/* ---- completions ---- */

/* Lock held. */
static void take_message(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e)
{
	ofi_rx_returned(qp, rx);
	qp->verbs.arrived++;
	if (qp->base.state == NDXP_QP_IDLE) {
		ofi_rx_done(qp, rx, NDX_E_CANCELED, 0);
		ofi_link_break(qp->link, 0, "a message before the connection was complete");
		return;
	}
	rx->base.bytes = (uint32_t)e->len;
	if (e->flags & FI_REMOTE_CQ_DATA) {
		rx->base.immediate = (uint32_t)e->data;
		rx->base.result_flags |= NDX_RESULT_IMMEDIATE;
	}
	if (e->flags & FI_REMOTE_WRITE)
		rx->base.result_flags |= NDX_RESULT_WRITTEN;
	ofi_rx_done(qp, rx, NDX_OK, 0);
	if (qp->taker.srq != NULL)
		ofi_srq_arrived(qp);
	if (qp->rx_next != qp->base.receive.tail)
		ofi_post_receives(qp);
	else
		ofi_send_credits(qp);
	/* credits may have come before the message */
	if (qp->base.rnr_since != 0)
		ofi_submit(qp);
}

/* The bell: the peer's goodbye has come, and all that it has sent before. */
static bool is_bell(const struct ofi_qp *qp, const struct fi_cq_data_entry *e)
{
	return (e->flags & FI_REMOTE_WRITE) != 0 && e->len == sizeof(uint64_t) &&
	       e->data == NDXP_RC_BELL && qp->link != NULL && ofi_verbs_heard_goodbye(qp->link);
}

/* Lock not held: something has arrived. Without a receive no bell can come. */
static void look_for_goodbye(struct ofi_qp *qp, bool bell, bool empty)
{
	if (qp->link == NULL)
		return;
	if (bell)
		ofi_verbs_check_goodbye(qp->link);
	else if (empty)
		ofi_verbs_poll_soon(qp->link);
}

void ofi_verbs_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e)
{
	const bool bell = is_bell(qp, e);
	bool empty;

	ndxp_lock_acquire(&qp->base.lock);
	if (!rx->native) {
		ndxp_lock_release(&qp->base.lock);
		return;
	}
	if (bell)
		ofi_rx_returned(qp, rx);
	else
		take_message(qp, rx, e);
	empty = !ofi_verbs_has_receive(qp);
	ndxp_lock_release(&qp->base.lock);
	look_for_goodbye(qp, bell, empty);
}

/* The lock is held. NULL, or the peer's violation of the protocol. */
static const char *take_want(struct ofi_qp *qp, const struct fi_cq_data_entry *e)
{
	if ((e->flags & FI_REMOTE_WRITE) == 0 || (e->flags & FI_REMOTE_CQ_DATA) == 0)
		return "a message without a credit";
	if (e->data == 0 || e->data > OFI_MAX_DEPTH)
		return "WANT for no message, or for more than a queue holds";
	return ofi_srq_want(qp, (uint32_t)e->data);
}

void ofi_verbs_wanted(struct ofi_qp *qp, const struct fi_cq_data_entry *e)
{
	const bool bell = is_bell(qp, e);
	const char *wrong = NULL;
	bool empty;

	ndxp_lock_acquire(&qp->base.lock);
	qp->verbs.awaits_want = false;
	if (!bell)
		wrong = take_want(qp, e);
	empty = !ofi_verbs_has_receive(qp);
	ndxp_lock_release(&qp->base.lock);
	if (wrong == NULL)
		look_for_goodbye(qp, bell, empty);
	else if (qp->link != NULL)
		ofi_link_break(qp->link, 0, wrong);
}

void ofi_verbs_want_failed(struct ofi_qp *qp, int err)
{
	if (!qp->verbs.awaits_want)
		return;
	qp->verbs.awaits_want = false;
	if (!qp->releasing)
		ofi_qp_break(qp, err,
		             err == ECANCELED ? ofi_link_lost : "a message without a credit");
}

/* Status of the device; the numbers are those of <infiniband/verbs.h>. */
enum wc_status {
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_LOC_ACCESS_ERR = 8,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_REM_ABORT_ERR = 16,
	WC_RESP_TIMEOUT_ERR = 20,
};

static int error_of_receive(const struct ofi_rx *rx, int native)
{
	/* Software RoCE reports the same for a message that is too long and for memory that it must
	 * not use. The memory was checked when the receive was posted. */
	if (native == WC_LOC_LEN_ERR || (native == WC_LOC_QP_OP_ERR && !rx->poisoned))
		return FI_ETRUNC;
	return EFAULT;
}

static int error_of_request(const struct ofi_tx *tx, int native)
{
	if (native == WC_LOC_LEN_ERR)
		return EMSGSIZE;
	if (native == WC_REM_INV_REQ_ERR)
		return tx->base.type == NDX_REQUEST_SEND ? EMSGSIZE : EREMOTEIO;
	return native == WC_LOC_QP_OP_ERR ? EFAULT : EIO;
}

int ofi_verbs_error_of(const struct fi_cq_err_entry *e)
{
	struct ofi_op *op = e->op_context;

	switch ((enum wc_status)e->prov_errno) {
	case WC_WR_FLUSH_ERR:
		return ECANCELED;
	case WC_LOC_PROT_ERR:
	case WC_LOC_ACCESS_ERR:
		return EFAULT;
	case WC_REM_ACCESS_ERR:
		return EACCES;
	case WC_REM_OP_ERR:
	case WC_REM_ABORT_ERR:
		return EREMOTEIO;
	case WC_RETRY_EXC_ERR:
	case WC_RNR_RETRY_EXC_ERR:
	case WC_RESP_TIMEOUT_ERR:
		return ETIMEDOUT;
	case WC_LOC_LEN_ERR:
	case WC_LOC_QP_OP_ERR:
	case WC_REM_INV_REQ_ERR:
		break;
	}
	if (op != NULL && (op->kind == OFI_OP_RX || op->kind == OFI_OP_SHARED))
		return error_of_receive(container_of(op, struct ofi_rx, op), e->prov_errno);
	if (op != NULL && op->kind == OFI_OP_TX)
		return error_of_request(container_of(op, struct ofi_tx, op), e->prov_errno);
	return EIO;
}
