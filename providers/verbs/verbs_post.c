/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting. A request with silent success is unsignaled: its success has no completion, and its slot
 * becomes free with the completion of a later request. So one unsignaled request in a few is
 * signaled nevertheless, and also the one that uses the last free slot. A sweep makes the device
 * complete all that was posted.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "base_post.h"
#include "verbs_ofi.h"
#include "verbs_wr.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNSIGNALED_PART 4u /* this part of a queue's depth may be unsignaled in a row */

/* The parameters of a post. */
struct op {
	void *context;
	const struct ndx_sge *sge;
	size_t count;
	uint32_t flags;
	uint32_t allowed;
	uint64_t remote_address;
	uint32_t remote_token;
	uint32_t immediate;
	uint8_t type; /* enum ndx_request_type */
	enum ibv_wr_opcode opcode;
};

/* base.lock held: is the request that was admitted last to be signaled? */
static inline bool is_signaled(const struct verbs_qp *qp, uint32_t flags)
{
	const struct base_queue *q = &qp->base.initiator;

	/* an unsignaled request needs a later completion: see verbs_wr_post_sweep() */
	return (flags & NDX_OP_SILENT_SUCCESS) == 0 || qp->noop_write.length == 0 ||
	       qp->unsignaled >= q->depth / UNSIGNALED_PART ||
	       q->tail - __atomic_load_n(&q->freed, __ATOMIC_RELAXED) >= q->depth;
}

/* The flags that a request may have; most requests have none. */
static inline unsigned native_flags(uint32_t flags, bool signaled)
{
	unsigned native = signaled ? IBV_SEND_SIGNALED : 0;

	if (flags == 0)
		return native;
	if (flags & NDX_OP_READ_FENCE)
		native |= IBV_SEND_FENCE;
	if (flags & NDX_OP_SOLICIT_EVENT)
		native |= IBV_SEND_SOLICITED;
	if (flags & NDX_OP_INLINE)
		native |= IBV_SEND_INLINE;
	return native;
}

/* For software RoCE keep the list, to find out later why a request failed. For a peer on ofi:verbs
 * count the messages, because the goodbye tells their number. */
static __attribute__((noinline, cold)) void keep_books(struct verbs_qp *qp,
                                                       struct verbs_initiator *own,
                                                       const struct ndx_sge *sge, size_t count,
                                                       uint32_t flags)
{
	if (qp->soft_roce) {
		own->count = (flags & NDX_OP_INLINE) != 0 ? 0 : (uint32_t)count;
		if (own->count > 0)
			memcpy(own->sge, sge, own->count * sizeof(*sge));
	}
	if (qp->ofi != NULL && own->req.needs_receive)
		qp->ofi->sent++;
}

/* The device has refused a request. */
static __attribute__((noinline, cold)) enum ndx_status
undo(struct verbs_qp *qp, const struct verbs_initiator *own, int err)
{
	if (qp->ofi != NULL && own->req.needs_receive)
		qp->ofi->sent--;
	return verbs_wr_undo(&qp->base.initiator, err);
}

/* An inline request may have more entries than the device takes. */
__attribute__((noinline)) static int post_gathered(struct ibv_qp *native, struct ibv_send_wr *wr,
                                                   const struct ndx_sge *sge, size_t count)
{
	char bytes[VERBS_MAX_INLINE];
	struct ibv_sge one = {.addr = (uintptr_t)bytes};
	struct ibv_send_wr *bad;

	for (size_t i = 0; i < count; i++) {
		if (sge[i].length > 0)
			memcpy(bytes + one.length, sge[i].buffer, sge[i].length);
		one.length += sge[i].length;
	}
	wr->sg_list = &one;
	wr->num_sge = one.length > 0 ? 1 : 0;
	return ibv_post_send(native, wr, &bad);
}

/* Sets only the members that a request of this opcode needs: the structure is larger than two cache
 * lines. */
ALWAYS_INLINE void fill_wr(struct ibv_send_wr *wr, const struct op *op, const struct base_req *req)
{
	wr->wr_id = (uintptr_t)req;
	wr->next = NULL;
	wr->opcode = op->opcode;
	if (op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = htonl(op->immediate);
	if (op->opcode != IBV_WR_SEND && op->opcode != IBV_WR_SEND_WITH_IMM) {
		wr->wr.rdma.remote_addr = op->remote_address;
		wr->wr.rdma.rkey = be32toh(op->remote_token);
	}
}

/*
 * A write of no bytes, which the peer does not notice. Some networks drop it, so a write of the
 * byte that changes nothing replaces it if the peer has granted memory for that.
 */
static int post_noop(struct verbs_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_sge one = {.addr = qp->noop_write.from,
	                      .length = qp->noop_write.length,
	                      .lkey = qp->noop_write.lkey};
	struct ibv_send_wr *bad;

	wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
	wr->sg_list = &one;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = qp->noop_write.to;
	wr->wr.rdma.rkey = qp->noop_write.rkey;
	return ibv_post_send(qp->native, wr, &bad);
}

/* A probe of a peer that has granted no memory for one, and that may break the connection because
 * of it. A request that names memory, with bytes or without, is the program's own affair. */
static inline bool is_unwelcome(const struct verbs_qp *qp, const struct op *op, uint32_t length)
{
	return length == 0 && op->opcode == IBV_WR_RDMA_WRITE && qp->noop_write.length == 0 &&
	       op->remote_token == 0 && op->remote_address == 0;
}

/* base.lock held. Each type of request has its own copy of this function, in which `op` is mostly
 * constant. */
ALWAYS_INLINE enum ndx_status post_admitted(struct verbs_qp *qp, const struct op *op,
                                            struct base_req *req, uint32_t length)
{
	const bool signaled = is_signaled(qp, op->flags);
	struct verbs_initiator *own = (struct verbs_initiator *)(void *)req;
	struct ibv_sge list[VERBS_MAX_SGE];
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	int err;

	/* the device would let the request wait without end */
	if (op->opcode == IBV_WR_RDMA_READ && qp->outbound_reads == 0) {
		(void)verbs_wr_undo(&qp->base.initiator, 0);
		return NDX_E_INVALID_DEVICE_REQUEST;
	}
	if (is_unwelcome(qp, op, length)) {
		(void)verbs_wr_undo(&qp->base.initiator, 0);
		return NDX_E_NOT_SUPPORTED;
	}
	fill_wr(&wr, op, req);
	wr.sg_list = list;
	wr.send_flags = native_flags(op->flags, signaled);
	own->req.needs_receive = op->opcode != IBV_WR_RDMA_READ && op->opcode != IBV_WR_RDMA_WRITE;
	own->req.bad_invalidate = false;
	own->req.signaled = signaled;
	own->req.in_mailbox =
		length == 0 && op->opcode == IBV_WR_RDMA_WRITE && qp->noop_write.length > 0;
	if (qp->keeps_books)
		keep_books(qp, own, op->sge, op->count, op->flags);
	if (own->req.in_mailbox) {
		err = post_noop(qp, &wr);
	} else if (__builtin_expect((op->flags & NDX_OP_INLINE) != 0 && op->count > 1, 0)) {
		err = post_gathered(qp->native, &wr, op->sge, op->count);
	} else {
		wr.num_sge = verbs_wr_copy_list(list, op->sge, op->count);
		err = ibv_post_send(qp->native, &wr, &bad);
	}
	if (__builtin_expect(err != 0, 0))
		return undo(qp, own, err);
	qp->unsignaled = signaled ? 0 : qp->unsignaled + 1;
	return NDX_OK;
}

/*
 * Most requests have one entry and no flags, and can be posted at once. NDX_PENDING: this one is
 * different, and nothing was done.
 */
ALWAYS_INLINE enum ndx_status post_plain(struct verbs_qp *qp, const struct op *op)
{
	struct base_queue *q = &qp->base.initiator;
	enum ndx_status st = NDX_PENDING;
	struct verbs_initiator *own;
	struct ibv_sge one;
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	int err;

	if (op->flags != 0 || op->count != 1 || op->opcode == IBV_WR_RDMA_READ)
		return NDX_PENDING;
	base_lock_acquire(&qp->base.lock);
	/* a length of 0 is different, too */
	if (qp->base.state != BASE_QP_UP || qp->keeps_books ||
	    op->sge->length - 1 >= qp->base.max_transfer)
		goto unlock;
	own = (struct verbs_initiator *)(void *)base_queue_take(q, op->context, op->type, 0);
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
	fill_wr(&wr, op, &own->req.base);
	wr.sg_list = &one;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	qp->unsignaled = 0;
	err = ibv_post_send(qp->native, &wr, &bad);
	st = NDX_OK;
	if (__builtin_expect(err != 0, 0))
		st = verbs_wr_undo(q, err);
unlock:
	base_lock_release(&qp->base.lock);
	return st;
}

static __attribute__((noinline)) enum ndx_status post_any(struct verbs_qp *qp, const struct op *op)
{
	bool looked = false;
	struct base_req *req;
	enum ndx_status st;
	uint32_t length;

	for (;;) {
		base_lock_acquire(&qp->base.lock);
		st = base_admit_initiator(&qp->base, op->type, op->context, op->sge, op->count,
		                          op->flags, op->allowed,
		                          qp->base.spi.attr.max_initiator_sge, &length, &req);
		if (st == NDX_OK)
			st = post_admitted(qp, op, req, length);
		base_lock_release(&qp->base.lock);
		if (st != NDX_E_NO_MORE_ENTRIES || looked)
			return st == NDX_PENDING ? NDX_OK : st;
		/* unsignaled requests that are done free their slots when the queue is read */
		verbs_cq_try_poll(qp->initiator_cq);
		looked = true;
	}
}

/* Each type of request has its own copy of this function, in which `op` is mostly constant. */
ALWAYS_INLINE enum ndx_status post_request(struct ndx_qp *pub, const struct op *op)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	const enum ndx_status st = post_plain(qp, op);
	struct op copy;

	if (__builtin_expect(st != NDX_PENDING, 1))
		return st;
	copy = *op; /* a copy, so that the compiler sees no address of the constants */
	return post_any(qp, &copy);
}

static enum ndx_status qp_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags)
{
	return post_request(qp, &(struct op){.type = NDX_REQUEST_SEND,
	                                     .opcode = IBV_WR_SEND,
	                                     .context = context,
	                                     .sge = sge,
	                                     .count = count,
	                                     .flags = flags,
	                                     .allowed = BASE_SEND_FLAGS});
}

static enum ndx_status qp_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct op){.type = NDX_REQUEST_SEND,
	                                     .opcode = IBV_WR_SEND_WITH_IMM,
	                                     .context = context,
	                                     .sge = sge,
	                                     .count = count,
	                                     .immediate = immediate,
	                                     .flags = flags,
	                                     .allowed = BASE_SEND_FLAGS});
}

static enum ndx_status qp_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	return post_request(qp, &(struct op){.type = NDX_REQUEST_WRITE,
	                                     .opcode = IBV_WR_RDMA_WRITE,
	                                     .context = context,
	                                     .sge = sge,
	                                     .count = count,
	                                     .remote_address = remote_address,
	                                     .remote_token = remote_token,
	                                     .flags = flags,
	                                     .allowed = BASE_WRITE_FLAGS});
}

static enum ndx_status qp_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct op){.type = NDX_REQUEST_WRITE,
	                                     .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	                                     .context = context,
	                                     .sge = sge,
	                                     .count = count,
	                                     .remote_address = remote_address,
	                                     .remote_token = remote_token,
	                                     .immediate = immediate,
	                                     .flags = flags,
	                                     .allowed = BASE_SEND_FLAGS});
}

static enum ndx_status qp_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags)
{
	return post_request(qp, &(struct op){.type = NDX_REQUEST_READ,
	                                     .opcode = IBV_WR_RDMA_READ,
	                                     .context = context,
	                                     .sge = sge,
	                                     .count = count,
	                                     .remote_address = remote_address,
	                                     .remote_token = remote_token,
	                                     .flags = flags,
	                                     .allowed = BASE_READ_FLAGS});
}

static __attribute__((noinline)) enum ndx_status
receive_any(struct verbs_qp *qp, void *context, const struct ndx_sge *sge, size_t count)
{
	struct verbs_receive *receive;
	struct base_req *req;
	uint32_t length;
	enum ndx_status st;
	int err = 0;

	base_lock_acquire(&qp->base.lock);
	st = base_admit_receive(&qp->base, context, sge, count, &length, &req);
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
	base_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

/* Like post_plain(): one entry, and the native queue pair takes receives. */
static inline enum ndx_status receive_plain(struct verbs_qp *qp, void *context,
                                            const struct ndx_sge *sge)
{
	struct base_queue *q = &qp->base.receive;
	enum ndx_status st = NDX_PENDING;
	struct verbs_receive *own;
	struct ibv_recv_wr *bad;
	struct ibv_recv_wr wr;
	struct ibv_sge one;
	int err;

	base_lock_acquire(&qp->base.lock);
	if (!qp->receives_plainly || qp->base.state == BASE_QP_DEAD ||
	    sge->length - 1 >= qp->base.max_transfer)
		goto unlock;
	/* with a shared receive queue this queue has no slots, so none is free */
	own = (struct verbs_receive *)(void *)base_queue_take(q, context, NDX_REQUEST_RECEIVE, 0);
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
	base_lock_release(&qp->base.lock);
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
};
