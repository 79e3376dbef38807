/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of requests. */
#include <arpa/inet.h>
#include <errno.h>

#include "verbs_conn.h"
#include "verbs_ofi.h"
#include "verbs_srq.h"

/* Statuses of both sides; NDX_PENDING: not in the table. */
static enum ndx_status common_status(enum ibv_wc_status native)
{
	static const struct {
		enum ibv_wc_status native;
		enum ndx_status status;
	} table[] = {
		{IBV_WC_SUCCESS, NDX_OK},
		{IBV_WC_WR_FLUSH_ERR, NDX_E_CANCELED},
		{IBV_WC_LOC_PROT_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_LOC_ACCESS_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_REM_ACCESS_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_MW_BIND_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_RETRY_EXC_ERR, NDX_E_IO_TIMEOUT},
		{IBV_WC_RNR_RETRY_EXC_ERR, NDX_E_IO_TIMEOUT},
		{IBV_WC_RESP_TIMEOUT_ERR, NDX_E_IO_TIMEOUT},
		{IBV_WC_REM_OP_ERR, NDX_E_REMOTE_ERROR},
		{IBV_WC_REM_ABORT_ERR, NDX_E_REMOTE_ERROR},
		{IBV_WC_BAD_RESP_ERR, NDX_E_REMOTE_ERROR},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].native == native)
			return table[i].status;
	}
	return NDX_PENDING;
}

static enum ndx_status initiator_status(const struct ndxp_req *req, enum ibv_wc_status native)
{
	const enum ndx_status st = common_status(native);

	if (req->type == NDX_REQUEST_INVALIDATE && st != NDX_OK && st != NDX_E_CANCELED)
		return NDX_E_INVALID_DEVICE_REQUEST;
	if (st != NDX_PENDING)
		return st;
	switch ((int)native) {
	case IBV_WC_LOC_LEN_ERR:
		return NDX_E_DATA_OVERRUN;
	case IBV_WC_LOC_QP_OP_ERR: /* software RoCE reports a wrong local key like this */
		return NDX_E_ACCESS_VIOLATION;
	case IBV_WC_REM_INV_REQ_ERR:
		return req->type == NDX_REQUEST_SEND ? NDX_E_DATA_OVERRUN : NDX_E_REMOTE_ERROR;
	default:
		return NDX_E_INTERNAL_ERROR;
	}
}

/* Software RoCE reports LOC_QP_OP for a message that is too long, and for memory that it must not
 * use. */
static enum ndx_status receive_status(struct verbs_qp *qp, const struct verbs_req *req,
                                      enum ibv_wc_status native)
{
	const struct verbs_receive *receive = (const struct verbs_receive *)(const void *)req;
	const enum ndx_status st = common_status(native);

	if (st != NDX_PENDING)
		return st;
	switch ((int)native) {
	case IBV_WC_LOC_LEN_ERR:
		return NDX_E_BUFFER_OVERFLOW;
	case IBV_WC_LOC_QP_OP_ERR:
		return verbs_list_is_good(qp->adapter, receive->sge, receive->count, true)
		               ? NDX_E_BUFFER_OVERFLOW
		               : NDX_E_ACCESS_VIOLATION;
	default:
		return NDX_E_INTERNAL_ERROR;
	}
}

/* The log shows the name of this errno. */
static int errno_of(enum ibv_wc_status native)
{
	switch ((int)native) {
	case IBV_WC_WR_FLUSH_ERR:
		return ECONNABORTED;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return ETIMEDOUT;
	default:
		return EIO;
	}
}

/*
 * The kernel of a peer whose process ends may free the process's memory before its queue pairs. The
 * queue pair then refuses a write into the mailbox, which is no fault of the program.
 */
static bool mailbox_is_gone(const struct verbs_req *req, enum ibv_wc_status native)
{
	return req->in_mailbox && native == IBV_WC_REM_ACCESS_ERR;
}

static const char *cause_of(const struct verbs_req *req, enum ibv_wc_status native)
{
	if (mailbox_is_gone(req, native))
		return "the peer's mailbox is gone: its process has ended";
	switch ((int)native) {
	case IBV_WC_WR_FLUSH_ERR:
		return "a request of the peer failed here";
	case IBV_WC_RETRY_EXC_ERR:
		return "the peer does not answer";
	default: /* a constant text, too */
		return ibv_wc_status_str(native);
	}
}

/* base.lock held. The native queue pair has failed by itself. */
static void report_broken(struct verbs_qp *qp, const struct verbs_req *req,
                          enum ibv_wc_status native)
{
	if (qp->killed || qp->conn == NULL)
		return;
	if (native == IBV_WC_WR_FLUSH_ERR)
		qp->conn->refused = true;
	if (native == IBV_WC_RETRY_EXC_ERR && qp->peer_state == VERBS_PEER_SAID_GOODBYE)
		qp->peer_closed = true;
	if (qp->peer_closed) /* none of the peer's data was lost, and the own requests have ended */
		return;
	qp->broken = true;
	verbs_host(qp->adapter)
		->report(&qp->conn->spi, NDX_REPORT_ABORT, errno_of(native), cause_of(req, native));
}

void verbs_complete_check(struct verbs_qp *qp)
{
	struct verbs_conn *conn = qp->conn;

	if (conn == NULL)
		return;
	if (qp->draining && !qp->broken && ndxp_queue_outstanding(&qp->base.initiator) == 0) {
		qp->draining = false;
		verbs_host(qp->adapter)->report(&conn->spi, NDX_REPORT_DRAINED, 0, NULL);
	}
	if (qp->quieting && verbs_qp_is_quiet(qp))
		ndxp_loop_post(qp->adapter->spi.loop, &conn->work);
}

/* Software RoCE of Linux 6.12 flushes a request whose own memory is invalid, as if an earlier one
 * had failed. That of Linux 6.1 leaves a long request undone until its time is over. */
static bool has_failed(struct verbs_qp *qp, const struct verbs_req *req)
{
	const struct verbs_initiator *own = (const struct verbs_initiator *)(const void *)req;

	return qp->adapter->soft_roce && (!qp->killed || qp->rnr_expired) &&
	       (req->bad_invalidate || !verbs_list_is_good(qp->adapter, own->sge, own->count,
	                                                   req->base.type == NDX_REQUEST_READ));
}

/* The status of the oldest request, which the device has flushed. */
static enum ndx_status first_flushed_status(struct verbs_qp *qp, const struct verbs_req *req)
{
	enum ndx_status st = NDX_E_CANCELED;

	if (has_failed(qp, req))
		st = req->bad_invalidate ? NDX_E_INVALID_DEVICE_REQUEST : NDX_E_ACCESS_VIOLATION;
	else if (qp->rnr_expired)
		st = NDX_E_IO_TIMEOUT;
	qp->rnr_expired = false;
	return st;
}

/* The requests before one with a completion have succeeded: a failure always has a completion. */
static void complete_before(struct ndxp_queue *q, uint32_t index)
{
	for (uint32_t i = q->head; i != index; i++) {
		struct ndxp_req *req = ndxp_queue_at(q, i);

		if (req->done)
			continue;
		req->status = NDX_OK;
		req->native = 0;
		req->done = true;
	}
	ndxp_queue_retire(q);
}

static void complete_before_request(struct ndxp_queue *q, const struct ndxp_req *req)
{
	uint32_t index = q->head;

	while (index != q->tail && ndxp_queue_at(q, index) != req)
		index++;
	complete_before(q, index);
}

static void initiator_done(struct verbs_qp *qp, struct verbs_req *req, const struct ibv_wc *wc)
{
	struct ndxp_queue *q = &qp->base.initiator;
	enum ndx_status st = initiator_status(&req->base, wc->status);

	if (__builtin_expect(&req->base != ndxp_queue_at(q, q->head), 0))
		complete_before_request(q, &req->base);
	if (wc->status == IBV_WC_RETRY_EXC_ERR && qp->peer_state != VERBS_PEER_CONNECTED)
		st = NDX_E_CANCELED;
	if (mailbox_is_gone(req, wc->status))
		st = NDX_E_CANCELED;
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		st = first_flushed_status(qp, req);
	if (req->mw != NULL && !verbs_mw_done(req, st == NDX_OK) && st == NDX_OK &&
	    req->base.type == NDX_REQUEST_BIND)
		st = NDX_E_CANCELED;
	ndxp_req_done(q, &req->base, st, wc->status == IBV_WC_SUCCESS ? 0 : (int)wc->status);
}

void verbs_complete_received(struct verbs_req *req, const struct ibv_wc *wc)
{
	req->base.bytes = wc->byte_len;
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		req->base.immediate = ntohl(wc->imm_data);
		req->base.result_flags |= NDX_RESULT_IMMEDIATE;
	}
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		req->base.result_flags |= NDX_RESULT_WRITTEN;
}

static void receive_done(struct verbs_qp *qp, struct verbs_req *req, const struct ibv_wc *wc)
{
	const int native = wc->status == IBV_WC_SUCCESS ? 0 : (int)wc->status;
	const enum ndx_status st = receive_status(qp, req, wc->status);

	if (qp->ofi != NULL && verbs_ofi_took_bell(qp, req, wc))
		return;
	if (wc->status == IBV_WC_SUCCESS)
		verbs_complete_received(req, wc);
	if (req->kind == VERBS_SHARED)
		verbs_srq_done(qp, req, st, native);
	else
		ndxp_req_done(&qp->base.receive, &req->base, st, native);
	if (qp->ofi != NULL && wc->status == IBV_WC_SUCCESS)
		verbs_ofi_tell_credits(qp);
}

/* A peer that has disconnected does not wait for this end's goodbye, and may have closed its queue
 * pair. */
static bool is_needless(const struct verbs_qp *qp, const struct verbs_req *req)
{
	return qp->peer_state != VERBS_PEER_CONNECTED && req == &qp->controls[VERBS_GOODBYE];
}

static void control_done(struct verbs_qp *qp, const struct verbs_req *req, const struct ibv_wc *wc)
{
	const size_t which = (size_t)(req - qp->controls);
	const uint32_t bit = 1u << which;
	struct ndxp_queue *q = &qp->base.initiator;

	if ((int32_t)(qp->controls_at[which] - q->head) > 0)
		complete_before(q, qp->controls_at[which]);
	qp->controls_out &= ~bit;
	if (qp->conn != NULL && qp->conn->control_native == IBV_WC_SUCCESS)
		qp->conn->control_native = wc->status;
	if (which == VERBS_CREDIT && qp->ofi != NULL && wc->status == IBV_WC_SUCCESS) {
		verbs_ofi_tell_credits(qp); /* for receives that were posted after the write */
		return;
	}
	if ((wc->status != IBV_WC_SUCCESS && !is_needless(qp, req)) || qp->conn == NULL)
		return;
	qp->conn->controls_done |= bit;
	ndxp_loop_post(qp->adapter->spi.loop, &qp->conn->work);
}

struct verbs_qp *verbs_complete_qp_of(const struct ibv_wc *wc)
{
	const struct verbs_req *req = verbs_req_of(wc);

	return req->kind == VERBS_SHARED ? verbs_srq_taker(req->srq, wc->qp_num) : req->qp;
}

void verbs_complete(const struct ibv_wc *wc)
{
	struct verbs_req *req = verbs_req_of(wc);
	struct verbs_qp *qp = verbs_complete_qp_of(wc);

	if (qp == NULL) {
		verbs_srq_drop(req->srq, req);
		return;
	}
	ndxp_lock_acquire(&qp->base.lock);
	/* report first: the consumer of the result may ask at once why the connection has ended */
	if (wc->status != IBV_WC_SUCCESS && !is_needless(qp, req))
		report_broken(qp, req, wc->status);
	switch ((enum verbs_kind)req->kind) {
	case VERBS_INITIATOR:
	case VERBS_WINDOW:
		initiator_done(qp, req, wc);
		break;
	case VERBS_RECEIVE:
	case VERBS_OFI_RECEIVE:
	case VERBS_SHARED:
		receive_done(qp, req, wc);
		break;
	case VERBS_FIRST_RECEIVE:
		verbs_ofi_first_done(qp, wc);
		break;
	case VERBS_CONTROL:
		control_done(qp, req, wc);
		break;
	}
	verbs_complete_check(qp);
	ndxp_lock_release(&qp->base.lock);
}
