/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting. A request with silent success is unsignaled: its success has no completion, and its slot
 * becomes free with the completion of a later request. So one unsignaled request in a few is
 * signaled nevertheless, and also the one that uses the last free slot. A sweep makes the device
 * complete all that was posted.
 */
#include <string.h>

#include "verbs_ofi.h"
#include "verbs_op.h"
#include "verbs_post_list.h"

/* The device has refused a request. */
static __attribute__((noinline, cold)) enum ndx_status
undo(struct verbs_qp *qp, const struct verbs_initiator *own, int err)
{
	verbs_wr_unkeep_books(qp, own);
	return verbs_wr_undo(&qp->base.initiator, err);
}

__attribute__((noinline)) static int post_gathered(struct ibv_qp *native, struct ibv_send_wr *wr,
                                                   const struct ndx_sge *sge, size_t count)
{
	char bytes[VERBS_MAX_INLINE];
	struct ibv_sge one = {.addr = (uintptr_t)bytes,
	                      .length = verbs_wr_gather(bytes, sge, count)};
	struct ibv_send_wr *bad;

	wr->sg_list = &one;
	wr->num_sge = one.length > 0 ? 1 : 0;
	return ibv_post_send(native, wr, &bad);
}

static int post_noop(const struct verbs_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_sge one;

	verbs_op_fill_noop(qp, wr, &one);
	return ibv_post_send(qp->native, wr, &bad);
}

/* base.lock held. Each type of request has its own copy of this function, in which `op` is mostly
 * constant. */
VERBS_OP_INLINE enum ndx_status post_admitted(struct verbs_qp *qp, const struct verbs_op *op,
                                              struct ndxp_req *req, uint32_t length)
{
	const struct verbs_initiator *own = (struct verbs_initiator *)(void *)req;
	struct ibv_sge list[VERBS_MAX_SGE];
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	enum ndx_status st;
	int err;

	st = verbs_op_prepare(qp, op, req, length, &wr);
	if (st != NDX_OK)
		return st;
	wr.sg_list = list;
	if (own->req.in_mailbox) {
		err = post_noop(qp, &wr);
	} else if (__builtin_expect(verbs_op_is_gathered(op), 0)) {
		err = post_gathered(qp->native, &wr, op->sge, op->count);
	} else {
		wr.num_sge = verbs_wr_copy_list(list, op->sge, op->count);
		err = ibv_post_send(qp->native, &wr, &bad);
	}
	if (__builtin_expect(err != 0, 0))
		return undo(qp, own, err);
	qp->unsignaled = own->req.signaled ? 0 : qp->unsignaled + 1;
	return NDX_OK;
}

/*
 * Most requests have one entry and no flags, and can be posted at once. NDX_PENDING: this one is
 * different, and nothing was done.
 */
VERBS_OP_INLINE enum ndx_status post_plain(struct verbs_qp *qp, const struct verbs_op *op)
{
	struct ndxp_queue *q = &qp->base.initiator;
	enum ndx_status st = NDX_PENDING;
	struct verbs_initiator *own;
	struct ibv_sge one;
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	int err;

	if (op->flags != 0 || op->count != 1 || op->opcode == IBV_WR_RDMA_READ)
		return NDX_PENDING;
	ndxp_lock_acquire(&qp->base.lock);
	/* a length of 0 is different, too */
	if (qp->base.state != NDXP_QP_UP || qp->keeps_books ||
	    op->sge->length - 1 >= qp->base.max_transfer)
		goto unlock;
	own = (struct verbs_initiator *)(void *)ndxp_queue_take(q, op->context, op->type, 0);
	if (__builtin_expect(own == NULL, 0))
		goto unlock;
	own->req.kind = VERBS_INITIATOR;
	own->req.needs_receive = op->opcode != IBV_WR_RDMA_WRITE;
	own->req.bad_invalidate = false;
	own->req.signaled = true;
	own->req.in_mailbox = false;
	one.addr = (uintptr_t)op->sge->buffer;
	one.length = op->sge->length;
	one.lkey = op->sge->token;
	verbs_op_fill_wr(&wr, op, &own->req.base);
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	qp->unsignaled = 0;
	err = ibv_post_send(qp->native, &wr, &bad);
	st = NDX_OK;
	if (__builtin_expect(err != 0, 0))
		st = verbs_wr_undo(q, err);
unlock:
	ndxp_lock_release(&qp->base.lock);
	return st;
}

static __attribute__((noinline)) enum ndx_status post_any(struct verbs_qp *qp,
                                                          const struct verbs_op *op)
{
	bool looked = false;
	struct ndxp_req *req;
	enum ndx_status st;
	uint32_t length;

	for (;;) {
		ndxp_lock_acquire(&qp->base.lock);
		st = ndxp_admit_initiator(&qp->base, op->type, op->context, op->sge, op->count,
		                          op->flags, op->allowed,
		                          qp->base.spi.attr.max_initiator_sge, &length, &req);
		if (st == NDX_OK)
			st = post_admitted(qp, op, req, length);
		ndxp_lock_release(&qp->base.lock);
		if (st != NDX_E_NO_MORE_ENTRIES || looked)
			return st == NDX_PENDING ? NDX_OK : st;
		/* unsignaled requests that are done free their slots when the queue is read */
		verbs_cq_try_poll(qp->initiator_cq);
		looked = true;
	}
}

/* Each type of request has its own copy of this function, in which `op` is mostly constant. */
VERBS_OP_INLINE enum ndx_status post_request(struct ndx_qp *pub, const struct verbs_op *op)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	const enum ndx_status st = post_plain(qp, op);
	struct verbs_op copy;

	if (__builtin_expect(st != NDX_PENDING, 1))
		return st;
	copy = *op; /* a copy, so that the compiler sees no address of the constants */
	return post_any(qp, &copy);
}

static enum ndx_status qp_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags)
{
	return post_request(qp, &(struct verbs_op){.type = NDX_REQUEST_SEND,
	                                           .opcode = IBV_WR_SEND,
	                                           .context = context,
	                                           .sge = sge,
	                                           .count = count,
	                                           .flags = flags,
	                                           .allowed = NDXP_SEND_FLAGS});
}

static enum ndx_status qp_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct verbs_op){.type = NDX_REQUEST_SEND,
	                                           .opcode = IBV_WR_SEND_WITH_IMM,
	                                           .context = context,
	                                           .sge = sge,
	                                           .count = count,
	                                           .immediate = immediate,
	                                           .flags = flags,
	                                           .allowed = NDXP_SEND_FLAGS});
}

static enum ndx_status qp_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	return post_request(qp, &(struct verbs_op){.type = NDX_REQUEST_WRITE,
	                                           .opcode = IBV_WR_RDMA_WRITE,
	                                           .context = context,
	                                           .sge = sge,
	                                           .count = count,
	                                           .remote_address = remote_address,
	                                           .remote_token = remote_token,
	                                           .flags = flags,
	                                           .allowed = NDXP_WRITE_FLAGS});
}

static enum ndx_status qp_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct verbs_op){.type = NDX_REQUEST_WRITE,
	                                           .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	                                           .context = context,
	                                           .sge = sge,
	                                           .count = count,
	                                           .remote_address = remote_address,
	                                           .remote_token = remote_token,
	                                           .immediate = immediate,
	                                           .flags = flags,
	                                           .allowed = NDXP_SEND_FLAGS});
}

static enum ndx_status qp_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags)
{
	return post_request(qp, &(struct verbs_op){.type = NDX_REQUEST_READ,
	                                           .opcode = IBV_WR_RDMA_READ,
	                                           .context = context,
	                                           .sge = sge,
	                                           .count = count,
	                                           .remote_address = remote_address,
	                                           .remote_token = remote_token,
	                                           .flags = flags,
	                                           .allowed = NDXP_READ_FLAGS});
}

static __attribute__((noinline)) enum ndx_status
receive_any(struct verbs_qp *qp, void *context, const struct ndx_sge *sge, size_t count)
{
	struct verbs_receive *receive;
	struct ndxp_req *req;
	uint32_t length;
	enum ndx_status st;
	int err = 0;

	ndxp_lock_acquire(&qp->base.lock);
	st = ndxp_admit_receive(&qp->base, context, sge, count, &length, &req);
	if (st == NDX_OK) {
		receive = (struct verbs_receive *)(void *)req;
		receive->count = (uint32_t)count;
		if (count > 0)
			memcpy(receive->sge, sge, count * sizeof(*sge));
		if (qp->receiving)
			err = verbs_wr_post_receive(qp, receive);
		if (err != 0)
			st = verbs_wr_undo(&qp->base.receive, err);
		else if (qp->ofi != NULL && qp->receiving)
			verbs_ofi_tell_credits(qp);
	}
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

/* Like post_plain(): one entry, and the native queue pair takes receives. */
static inline enum ndx_status receive_plain(struct verbs_qp *qp, void *context,
                                            const struct ndx_sge *sge)
{
	struct ndxp_queue *q = &qp->base.receive;
	enum ndx_status st = NDX_PENDING;
	struct verbs_receive *own;
	struct ibv_recv_wr *bad;
	struct ibv_recv_wr wr;
	struct ibv_sge one;
	int err;

	ndxp_lock_acquire(&qp->base.lock);
	if (!qp->receives_plainly || qp->base.state == NDXP_QP_DEAD ||
	    sge->length - 1 >= qp->base.max_transfer)
		goto unlock;
	/* with a shared receive queue this queue has no slots, so none is free */
	own = (struct verbs_receive *)(void *)ndxp_queue_take(q, context, NDX_REQUEST_RECEIVE, 0);
	if (__builtin_expect(own == NULL, 0))
		goto unlock;
	own->count = 1;
	own->sge[0] = *sge;
	one.addr = (uintptr_t)sge->buffer;
	one.length = sge->length;
	one.lkey = sge->token;
	wr.wr_id = (uintptr_t)own;
	wr.next = NULL;
	wr.sg_list = &one;
	wr.num_sge = 1;
	err = ibv_post_recv(qp->native, &wr, &bad);
	st = NDX_OK;
	if (__builtin_expect(err != 0, 0))
		st = verbs_wr_undo(q, err);
unlock:
	ndxp_lock_release(&qp->base.lock);
	return st;
}

static enum ndx_status qp_receive(struct ndx_qp *pub, void *context, const struct ndx_sge *sge,
                                  size_t count)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	const enum ndx_status st = count == 1 ? receive_plain(qp, context, sge) : NDX_PENDING;

	return __builtin_expect(st != NDX_PENDING, 1) ? st : receive_any(qp, context, sge, count);
}

const struct ndx_qp_ops verbs_qp_ops = {
	.size = sizeof(verbs_qp_ops),
	.send = qp_send,
	.receive = qp_receive,
	.read = qp_read,
	.write = qp_write,
	.send_immediate = qp_send_immediate,
	.write_immediate = qp_write_immediate,
	.bind = verbs_qp_bind,
	.invalidate = verbs_qp_invalidate,
	.post_list = verbs_qp_post_list,
	.receive_list = verbs_qp_receive_list,
};
