/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs, and the states of the native queue pair. The native queue pair stays in RESET until
 * a connection uses it: receives wait in this provider's records, so a failed attempt leaves them
 * unchanged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "verbs_conn.h"
#include "verbs_ofi.h"
#include "verbs_srq.h"
#include "verbs_wr.h"

#define ACK_TIMEOUT 14 /* 67 ms, 4.096 us * 2^14; a dead peer is noticed after seven times that */
#define RETRIES 6
#define RETRY_FOR_EVER 7 /* without limit, for software RoCE; see verbs_watch.c */
#define RNR_FOR_EVER 7   /* without limit: verbs_watch.c limits the wait for a receive */
#define RNR_PAUSE 14     /* 1.28 ms between two tries of a peer that finds no receive */

static struct verbs_receive *receive_at(const struct verbs_qp *qp, uint32_t index)
{
	return (struct verbs_receive *)(void *)ndxp_queue_at(&qp->base.receive, index);
}

/* ---- native states ---- */

static struct ibv_qp *create_native(struct verbs_qp *qp, const struct ndx_qp_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.qp_context = qp,
		.send_cq = qp->initiator_cq->native,
		.recv_cq = qp->receive_cq->native,
		.srq = qp->srq != NULL ? qp->srq->native : NULL,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = attr->initiator_depth + VERBS_CONTROLS,
	                .max_recv_wr =
	                        qp->srq != NULL ? 0 : attr->receive_depth + VERBS_FIRST_RECEIVES,
	                .max_send_sge = attr->max_initiator_sge,
	                .max_recv_sge = qp->srq != NULL ? 0 : attr->max_receive_sge,
	                .max_inline_data = attr->inline_size},
	};

	return ibv_create_qp(qp->adapter->pd, &init);
}

static int modify_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static uint8_t rnr_pause(const struct ndx_qp_attr *attr)
{
	return attr->rnr_timer == NDX_RNR_TIMER_DEFAULT ? RNR_PAUSE : (uint8_t)attr->rnr_timer;
}

/* One step up, with the attributes of the path and `ours`. */
static int step_up(struct verbs_qp *qp, const struct verbs_conn *conn, enum ibv_qp_state state,
                   const struct ibv_qp_attr *ours)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;

	/* rdma_cm knows nothing of an attempt that the peer has ended. On Ethernet, its attributes
	 * for INIT are known without it. */
	if (conn->oob.on || (state == IBV_QPS_INIT && qp->adapter->ethernet))
		verbs_oob_path_attr(conn, &attr, &mask);
	else if (rdma_init_qp_attr(conn->id, &attr, &mask) != 0)
		return errno == EINVAL ? ECONNABORTED : errno;
	if (mask & IBV_QP_DEST_QPN)
		qp->path.peer_number = attr.dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		qp->path.peer_psn = attr.rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		qp->path.own_psn = attr.sq_psn;
	if (mask & IBV_QP_ACCESS_FLAGS)
		attr.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = ours->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = rnr_pause(&qp->base.spi.attr);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = ours->max_rd_atomic;
	if (mask & IBV_QP_TIMEOUT)
		attr.timeout = ACK_TIMEOUT;
	if (mask & IBV_QP_RETRY_CNT)
		attr.retry_cnt = qp->adapter->soft_roce ? RETRY_FOR_EVER : RETRIES;
	if (mask & IBV_QP_RNR_RETRY)
		attr.rnr_retry = RNR_FOR_EVER;
	return ibv_modify_qp(qp->native, &attr, mask);
}

/* base.lock held: post the receives that were admitted so far. */
static int post_receives(struct verbs_qp *qp)
{
	const struct ndxp_queue *q = &qp->base.receive;
	const uint8_t kind = qp->ofi != NULL ? VERBS_OFI_RECEIVE : VERBS_RECEIVE;

	if (q->reqs != NULL && receive_at(qp, 0)->req.kind != kind) {
		for (uint32_t i = 0; i <= q->mask; i++)
			receive_at(qp, i)->req.kind = kind;
	}
	for (uint32_t i = q->head; i != q->tail; i++) {
		const int err = verbs_wr_post_receive(qp, receive_at(qp, i));

		if (err != 0)
			return err;
	}
	qp->receiving = true;
	qp->receives_plainly = qp->ofi == NULL;
	return 0;
}

uint32_t verbs_qp_patience(void)
{
	return (uint32_t)((RETRIES + 1) * (UINT64_C(4096) << ACK_TIMEOUT) / 1000000);
}

int verbs_qp_bring_up(struct verbs_qp *qp, const struct verbs_conn *conn)
{
	struct ibv_qp_attr ours = {
		.max_dest_rd_atomic = (uint8_t)conn->spi.inbound_read_limit,
		.max_rd_atomic = (uint8_t)conn->spi.outbound_read_limit,
	};
	int err;

	if (conn->ofi != NULL && ours.max_dest_rd_atomic == 0)
		ours.max_dest_rd_atomic = 1; /* for the number of receives, see verbs_ofi.h */
	ndxp_lock_acquire(&qp->base.lock);
	qp->killed = false;
	qp->rnr_expired = false;
	qp->last_receive = false;
	qp->receives_until_ns = 0;
	qp->peer_state = VERBS_PEER_CONNECTED;
	qp->peer_closed = false;
	qp->draining = false;
	qp->broken = false;
	qp->unsignaled = 0;
	qp->noop_write = (struct verbs_ctrl_write){.length = 0};
	qp->not_asked = (conn->oob.policy & NDX_PEER_NOT_ASKED) != 0;
	qp->outbound_reads = conn->spi.outbound_read_limit;
	qp->ofi = conn->ofi;
	qp->keeps_books = qp->soft_roce || qp->ofi != NULL;
	err = qp->native == NULL ? ENODEV : step_up(qp, conn, IBV_QPS_INIT, &ours);
	if (err == 0 && qp->ofi != NULL)
		err = verbs_ofi_begin(qp);
	if (err == 0)
		err = post_receives(qp);
	if (err == 0)
		err = step_up(qp, conn, IBV_QPS_RTR, &ours);
	if (err == 0)
		err = step_up(qp, conn, IBV_QPS_RTS, &ours);
	ndxp_lock_release(&qp->base.lock);
	return err;
}

void verbs_qp_bring_down(struct verbs_qp *qp)
{
	ndxp_lock_acquire(&qp->base.lock);
	qp->receiving = false;
	qp->receives_plainly = false;
	qp->controls_out = 0;
	qp->unsignaled = 0;
	if (qp->native != NULL && modify_state(qp->native, IBV_QPS_RESET) != 0)
		log_warn(errno, "a queue pair does not go back to RESET: %s", strerror(errno));
	ndxp_lock_release(&qp->base.lock);
	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	qp->ofi = NULL;
	ndxp_lock_release(&qp->base.lock);
}

void verbs_qp_kill(struct verbs_qp *qp)
{
	qp->base.state = NDXP_QP_DEAD;
	qp->draining = false;
	if (qp->killed)
		return;
	qp->killed = true;
	if (qp->srq != NULL && qp->receiving)
		qp->receives_until_ns = ndxp_deadline(VERBS_SHARED_MS);
	if (qp->native != NULL && qp->receiving && modify_state(qp->native, IBV_QPS_ERR) != 0)
		log_warn(errno, "a queue pair does not go to ERR: %s", strerror(errno));
	else if (qp->native != NULL && qp->receiving)
		verbs_wr_post_sweep(qp); /* the sweep is flushed last */
}

void verbs_qp_on_last_receive(struct verbs_qp *qp)
{
	ndxp_lock_acquire(&qp->base.lock);
	qp->last_receive = true;
	verbs_complete_check(qp);
	ndxp_lock_release(&qp->base.lock);
}

void verbs_qp_cancel_initiator(struct verbs_qp *qp)
{
	const struct ndxp_queue *q = &qp->base.initiator;

	for (uint32_t i = q->head; i != q->tail; i++) {
		struct verbs_req *req = (struct verbs_req *)(void *)ndxp_queue_at(q, i);

		if (!req->base.done && req->mw != NULL)
			(void)verbs_mw_done(req, false);
	}
	ndxp_queue_cancel(&qp->base.initiator, NDX_E_CANCELED);
}

void verbs_qp_destroy_native(struct verbs_qp *qp)
{
	struct ibv_qp *native;

	verbs_mw_leave_qp(qp);
	/* from now on no completion may find this queue pair by its number, which another one may
	 * get */
	if (qp->srq != NULL) {
		verbs_qp_poll(qp);
		verbs_srq_unregister(qp);
		verbs_qp_poll(qp);
	}
	ndxp_lock_acquire(&qp->base.lock);
	native = qp->native;
	qp->native = NULL;
	qp->receiving = false;
	qp->receives_plainly = false;
	ndxp_lock_release(&qp->base.lock);
	if (native != NULL && ibv_destroy_qp(native) != 0)
		log_error(errno, "ibv_destroy_qp: %s", strerror(errno));
	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	qp->controls_out = 0;
	verbs_qp_cancel_initiator(qp);
	ndxp_queue_cancel(&qp->base.receive, NDX_E_CANCELED);
	ndxp_lock_release(&qp->base.lock);
}

void verbs_qp_poll(struct verbs_qp *qp)
{
	verbs_cq_poll(qp->initiator_cq);
	if (qp->receive_cq != qp->initiator_cq)
		verbs_cq_poll(qp->receive_cq);
}

/* ---- create and destroy ---- */

static void init_records(struct verbs_qp *qp, const struct ndxp_queue *q, enum verbs_kind kind)
{
	for (uint32_t i = 0; q->reqs != NULL && i <= q->mask; i++) {
		struct verbs_req *req = (struct verbs_req *)(void *)ndxp_queue_at(q, i);

		req->qp = qp;
		req->kind = (uint8_t)kind;
	}
}

static size_t receive_stride(const struct ndx_qp_attr *attr)
{
	const size_t size =
		sizeof(struct verbs_receive) + attr->max_receive_sge * sizeof(struct ndx_sge);

	return (size + 15) / 16 * 16;
}

static size_t initiator_stride(const struct verbs_adapter *adapter, const struct ndx_qp_attr *attr)
{
	const size_t list =
		adapter->soft_roce ? attr->max_initiator_sge * sizeof(struct ndx_sge) : 0;

	return (sizeof(struct verbs_initiator) + list + 15) / 16 * 16;
}

static enum ndx_status reserve_cqs(struct verbs_qp *qp, const struct ndx_qp_attr *attr)
{
	enum ndx_status st =
		verbs_cq_reserve(qp->initiator_cq, attr->initiator_depth + VERBS_CONTROLS);

	if (st != NDX_OK)
		return st;
	st = attr->srq != NULL
	             ? verbs_srq_join(qp, verbs_srq_of(attr->srq))
	             : verbs_cq_reserve(qp->receive_cq, attr->receive_depth + VERBS_FIRST_RECEIVES);
	if (st != NDX_OK)
		verbs_cq_unreserve(qp->initiator_cq, attr->initiator_depth + VERBS_CONTROLS);
	return st;
}

static void unreserve_cqs(struct verbs_qp *qp)
{
	verbs_cq_unreserve(qp->initiator_cq, qp->base.spi.attr.initiator_depth + VERBS_CONTROLS);
	if (qp->srq != NULL)
		verbs_srq_leave(qp);
	else
		verbs_cq_unreserve(qp->receive_cq,
		                   qp->base.spi.attr.receive_depth + VERBS_FIRST_RECEIVES);
}

enum ndx_status verbs_qp_create(struct ndx_spi_adapter *spi, const struct ndx_qp_attr *attr,
                                struct ndx_spi_qp **out)
{
	struct verbs_adapter *adapter = verbs_adapter_of(spi);
	enum ndx_status st = verbs_is_there(adapter, "create a queue pair");
	struct verbs_qp *qp;

	if (st != NDX_OK)
		return st;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
	qp->adapter = adapter;
	qp->soft_roce = adapter->soft_roce;
	qp->keeps_books = adapter->soft_roce;
	qp->initiator_cq = verbs_cq_of(attr->initiator_cq);
	qp->receive_cq = verbs_cq_of(attr->receive_cq);
	st = ndxp_qp_init(&qp->base, &verbs_qp_ops, attr, adapter->max_transfer,
	                  initiator_stride(adapter, attr), receive_stride(attr));
	if (st != NDX_OK)
		goto free_qp;
	init_records(qp, &qp->base.initiator, VERBS_INITIATOR);
	init_records(qp, &qp->base.receive, VERBS_RECEIVE);
	for (unsigned i = 0; i < VERBS_CONTROLS; i++)
		qp->controls[i] =
			(struct verbs_req){.qp = qp, .kind = VERBS_CONTROL, .in_mailbox = true};
	st = reserve_cqs(qp, attr);
	if (st != NDX_OK)
		goto fini_base;
	qp->native = create_native(qp, attr);
	if (qp->native == NULL) {
		st = fail(verbs_refusal(adapter, errno), errno,
		          "ibv_create_qp for %u + %u requests: %s", attr->initiator_depth,
		          attr->receive_depth, strerror(errno));
		goto unreserve;
	}
	if (qp->srq != NULL)
		verbs_srq_register(qp);
	*out = &qp->base.spi;
	return NDX_OK;

unreserve:
	unreserve_cqs(qp);
fini_base:
	ndxp_qp_fini(&qp->base);
free_qp:
	free(qp);
	return st;
}

void verbs_qp_destroy(struct ndx_spi_qp *spi)
{
	struct verbs_qp *qp = verbs_qp_of(spi);

	verbs_qp_destroy_native(qp);
	unreserve_cqs(qp);
	ndxp_qp_fini(&qp->base);
	free(qp);
}

void verbs_qp_cancel(struct ndx_spi_qp *spi)
{
	struct verbs_qp *qp = verbs_qp_of(spi);

	ndxp_lock_acquire(&qp->base.lock);
	ndxp_queue_cancel(&qp->base.receive, NDX_E_CANCELED);
	ndxp_lock_release(&qp->base.lock);
}

void verbs_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats)
{
	struct verbs_qp *qp = verbs_qp_of(spi);

	ndxp_lock_acquire(&qp->base.lock);
	ndxp_qp_get_stats(&qp->base, stats);
	ndxp_lock_release(&qp->base.lock);
}

static const char *state_name(enum ibv_qp_state state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

void verbs_qp_query(struct ndx_spi_qp *spi, struct ndx_qp_info *info)
{
	struct verbs_qp *qp = verbs_qp_of(spi);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int err = ENODEV;

	ndxp_lock_acquire(&qp->base.lock);
	if (qp->native != NULL) {
		info->device_qp = qp->native->qp_num;
		err = ibv_query_qp(qp->native, &attr,
		                   IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU, &init);
	}
	ndxp_lock_release(&qp->base.lock);
	/* a device that was removed does not answer */
	(void)snprintf(info->device_state, sizeof(info->device_state), "%s",
	               err == 0 ? state_name(attr.qp_state) : "?");
	if (err != 0 || attr.qp_state == IBV_QPS_RESET || attr.qp_state == IBV_QPS_INIT)
		return;
	info->peer_device_qp = attr.dest_qp_num;
	info->mtu = 128u << (unsigned)attr.path_mtu; /* IBV_MTU_256 is 1 */
}
