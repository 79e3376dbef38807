/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request on its way to the device, singly (verbs_post.c) or in a list (verbs_post_list.c). The
 * queue pair's base.lock is held.
 */
#ifndef VERBS_OP_H
#define VERBS_OP_H

#include <arpa/inet.h>
#include <endian.h>

#include <ndx/spi/post.h>
#include "verbs_wr.h"

#define VERBS_OP_INLINE static inline __attribute__((always_inline))
#define VERBS_UNSIGNALED_PART 4u /* this part of a queue's depth may be unsignaled in a row */

/* The parameters of a post. */
struct verbs_op {
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
static inline bool verbs_op_is_signaled(const struct verbs_qp *qp, uint32_t flags)
{
	const struct ndxp_queue *q = &qp->base.initiator;

	/* an unsignaled request needs a later completion: see verbs_wr_post_sweep() */
	return (flags & NDX_OP_SILENT_SUCCESS) == 0 || qp->noop_write.length == 0 ||
	       qp->unsignaled >= q->depth / VERBS_UNSIGNALED_PART ||
	       q->tail - __atomic_load_n(&q->freed, __ATOMIC_RELAXED) >= q->depth;
}

/* The flags that a request may have; most requests have none. */
static inline unsigned verbs_op_native_flags(uint32_t flags, bool signaled)
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

/* Sets only the members that a request of this opcode needs: the structure is larger than two cache
 * lines. */
VERBS_OP_INLINE void verbs_op_fill_wr(struct ibv_send_wr *wr, const struct verbs_op *op,
                                      const struct ndxp_req *req)
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
static inline void verbs_op_fill_noop(const struct verbs_qp *qp, struct ibv_send_wr *wr,
                                      struct ibv_sge *one)
{
	*one = (struct ibv_sge){.addr = qp->noop_write.from,
	                        .length = qp->noop_write.length,
	                        .lkey = qp->noop_write.lkey};
	wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
	wr->sg_list = one;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = qp->noop_write.to;
	wr->wr.rdma.rkey = qp->noop_write.rkey;
}

/* An inline request may have more entries than the device takes: gather its bytes. */
static inline bool verbs_op_is_gathered(const struct verbs_op *op)
{
	return (op->flags & NDX_OP_INLINE) != 0 && op->count > 1;
}

/* A probe of a peer that has granted no memory for one, and that may break the connection because
 * of it. A request that names memory, with bytes or without, is the program's own affair. */
static inline bool verbs_op_is_unwelcome(const struct verbs_qp *qp, const struct verbs_op *op,
                                         uint32_t length)
{
	return length == 0 && op->opcode == IBV_WR_RDMA_WRITE &&
	       (qp->noop_write.length == 0 || qp->not_asked) && op->remote_token == 0 &&
	       op->remote_address == 0;
}

/* Fill `wr`, but for its list of entries, and the record of an admitted request. If that fails, the
 * slot is given back. */
VERBS_OP_INLINE enum ndx_status verbs_op_prepare(struct verbs_qp *qp, const struct verbs_op *op,
                                                 struct ndxp_req *req, uint32_t length,
                                                 struct ibv_send_wr *wr)
{
	const bool signaled = verbs_op_is_signaled(qp, op->flags);
	struct verbs_initiator *own = (struct verbs_initiator *)(void *)req;

	/* the device would let the request wait without end */
	if (op->opcode == IBV_WR_RDMA_READ && qp->outbound_reads == 0) {
		(void)verbs_wr_undo(&qp->base.initiator, 0);
		return NDX_E_INVALID_DEVICE_REQUEST;
	}
	if (verbs_op_is_unwelcome(qp, op, length)) {
		(void)verbs_wr_undo(&qp->base.initiator, 0);
		return NDX_E_NOT_SUPPORTED;
	}
	verbs_op_fill_wr(wr, op, req);
	wr->send_flags = verbs_op_native_flags(op->flags, signaled);
	own->req.needs_receive = op->opcode != IBV_WR_RDMA_READ && op->opcode != IBV_WR_RDMA_WRITE;
	own->req.bad_invalidate = false;
	own->req.signaled = signaled;
	own->req.in_mailbox =
		length == 0 && op->opcode == IBV_WR_RDMA_WRITE && qp->noop_write.length > 0;
	if (qp->keeps_books)
		verbs_wr_keep_books(qp, own, op->sge, op->count, op->flags);
	return NDX_OK;
}

#endif
