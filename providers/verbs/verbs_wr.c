/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting to the device: requests of consumers, and control requests. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "verbs_ofi.h"
#include "verbs_wr.h"

int verbs_wr_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count)
{
	return verbs_wr_copy_list(to, from, count);
}

enum ndx_status verbs_wr_undo(struct ndxp_queue *q, int err)
{
	if (q->tail-- == 0)
		q->laps--;
	return err == ENOMEM ? NDX_E_NO_MORE_ENTRIES : NDX_E_INTERNAL_ERROR;
}

void verbs_wr_keep_books(struct verbs_qp *qp, struct verbs_initiator *own,
                         const struct ndx_sge *sge, size_t count, uint32_t flags)
{
	if (qp->soft_roce) {
		own->count = (flags & NDX_OP_INLINE) != 0 ? 0 : (uint32_t)count;
		if (own->count > 0)
			memcpy(own->sge, sge, own->count * sizeof(*sge));
	}
	if (qp->ofi != NULL && own->req.needs_receive)
		qp->ofi->sent++;
}

void verbs_wr_unkeep_books(struct verbs_qp *qp, const struct verbs_initiator *own)
{
	if (qp->ofi != NULL && own->req.needs_receive)
		qp->ofi->sent--;
}

uint32_t verbs_wr_gather(char *bytes, const struct ndx_sge *sge, size_t count)
{
	uint32_t length = 0;

	for (size_t i = 0; i < count; i++) {
		if (sge[i].length > 0)
			memcpy(bytes + length, sge[i].buffer, sge[i].length);
		length += sge[i].length;
	}
	return length;
}

void verbs_wr_add_receive(struct verbs_receive_batch *batch, const void *record,
                          const struct ndx_sge *sge, size_t count)
{
	struct ibv_recv_wr *wr = &batch->wr[batch->count];
	struct ibv_sge *list = &batch->sge[batch->sges];

	*wr = (struct ibv_recv_wr){.wr_id = (uintptr_t)record,
	                           .sg_list = list,
	                           .num_sge = verbs_wr_list(list, sge, count)};
	if (batch->count > 0)
		wr[-1].next = wr;
	batch->sges += (size_t)wr->num_sge;
	batch->count++;
}

int verbs_wr_post_receive(struct verbs_qp *qp, struct verbs_receive *receive)
{
	struct ibv_sge list[VERBS_MAX_SGE];
	struct ibv_recv_wr wr = {
		.wr_id = (uintptr_t)receive,
		.sg_list = list,
		.num_sge = verbs_wr_list(list, receive->sge, receive->count),
	};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp->native, &wr, &bad);
}

int verbs_wr_post_control(struct verbs_qp *qp, enum verbs_control which,
                          const struct verbs_ctrl_write *write)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[VERBS_CTRL_WRITE] = IBV_WR_RDMA_WRITE,
		[VERBS_CTRL_WRITE_IMMEDIATE] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[VERBS_CTRL_SEND] = IBV_WR_SEND,
	};
	struct ibv_sge list = {.addr = write->from, .length = write->length, .lkey = write->lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&qp->controls[which],
		.sg_list = &list,
		.num_sge = write->length > 0 ? 1 : 0,
		.opcode = opcodes[write->how],
		.imm_data = htonl(write->immediate),
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	if (qp->controls_out & (1u << which))
		return 0;
	if (qp->native == NULL || (qp->killed && which != VERBS_LAST))
		return ENOTCONN;
	if (write->length == 0 && which != VERBS_LAST)
		return EDESTADDRREQ;
	wr.wr.rdma.remote_addr = write->to;
	wr.wr.rdma.rkey = write->rkey;
	err = ibv_post_send(qp->native, &wr, &bad);
	if (err != 0)
		return err;
	qp->controls_out |= 1u << which;
	qp->controls_at[which] = qp->base.initiator.tail;
	qp->unsignaled = 0;
	return 0;
}

void verbs_wr_post_sweep(struct verbs_qp *qp)
{
	static const struct verbs_ctrl_write nothing;

	if (qp->unsignaled > 0 && qp->killed)
		(void)verbs_wr_post_control(qp, VERBS_LAST, &nothing);
	else if (qp->unsignaled > 0)
		(void)verbs_wr_post_control(qp, VERBS_SWEEP, &qp->noop_write);
}
