/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting lists: the queue pair is locked once, and the device gets the requests as native lists of
 * up to VERBS_LIST. Admission, signaling and books are those of a single request; if the device
 * refuses a part of a native list, all of them are taken back for just that part.
 */
#include <string.h>

#include "verbs_ofi.h"
#include "verbs_op.h"
#include "verbs_post_list.h"

/* Admitted requests that the device does not have yet. */
struct batch {
	size_t count;
	size_t sges;
	size_t gathered;
	uint32_t unsignaled; /* of the queue pair, before the first */
	struct ibv_send_wr wr[VERBS_LIST];
	struct ibv_sge sge[VERBS_LIST_SGES];
	char bytes[VERBS_MAX_INLINE];
};

static const enum ibv_wr_opcode opcodes[] = {
	[NDX_POST_SEND] = IBV_WR_SEND,
	[NDX_POST_SEND_IMMEDIATE] = IBV_WR_SEND_WITH_IMM,
	[NDX_POST_READ] = IBV_WR_RDMA_READ,
	[NDX_POST_WRITE] = IBV_WR_RDMA_WRITE,
	[NDX_POST_WRITE_IMMEDIATE] = IBV_WR_RDMA_WRITE_WITH_IMM,
};

static void begin_batch(struct batch *batch, const struct verbs_qp *qp)
{
	batch->count = 0;
	batch->sges = 0;
	batch->gathered = 0;
	batch->unsignaled = qp->unsignaled;
}

static bool op_of(const struct ndx_request *request, struct verbs_op *op)
{
	struct ndxp_post post;

	if (!ndxp_post_of(request, &post))
		return false;
	*op = (struct verbs_op){
		.context = post.context,
		.sge = post.sge,
		.count = post.count,
		.flags = post.flags,
		.allowed = post.allowed,
		.remote_address = post.remote_address,
		.remote_token = post.remote_token,
		.immediate = post.immediate,
		.type = post.type,
		.opcode = opcodes[request->type],
	};
	return true;
}

static bool is_full(const struct batch *batch, const struct verbs_qp *qp, const struct verbs_op *op)
{
	return batch->count == VERBS_LIST || batch->sges + VERBS_MAX_SGE > VERBS_LIST_SGES ||
	       (verbs_op_is_gathered(op) &&
	        batch->gathered + qp->base.spi.attr.inline_size > sizeof(batch->bytes));
}

static struct verbs_initiator *record_of(const struct ibv_send_wr *wr)
{
	return (struct verbs_initiator *)(uintptr_t)wr->wr_id;
}

/* The device has refused the request at `first`, and has none from there on. */
static __attribute__((noinline, cold)) enum ndx_status
undo(struct verbs_qp *qp, const struct batch *batch, size_t first, int err)
{
	enum ndx_status st = NDX_OK;

	for (size_t i = batch->count; i-- > first;) {
		verbs_wr_unkeep_books(qp, record_of(&batch->wr[i]));
		st = verbs_wr_undo(&qp->base.initiator, err);
	}
	qp->unsignaled = batch->unsignaled;
	for (size_t i = 0; i < first; i++)
		qp->unsignaled = record_of(&batch->wr[i])->req.signaled ? 0 : qp->unsignaled + 1;
	return st;
}

/* base.lock held: give the batch to the device, and begin a new one. */
static enum ndx_status flush(struct verbs_qp *qp, struct batch *batch, size_t *posted)
{
	struct ibv_send_wr *bad = batch->wr;
	enum ndx_status st = NDX_OK;
	size_t taken = batch->count;
	int err;

	if (batch->count == 0)
		return NDX_OK;
	batch->wr[batch->count - 1].next = NULL;
	err = ibv_post_send(qp->native, batch->wr, &bad);
	if (__builtin_expect(err != 0, 0)) {
		taken = (size_t)(bad - batch->wr);
		st = undo(qp, batch, taken, err);
	}
	*posted += taken;
	begin_batch(batch, qp);
	return st;
}

/* base.lock held; the batch has room. */
static enum ndx_status add(struct verbs_qp *qp, struct batch *batch, const struct verbs_op *op,
                           struct ndxp_req *req, uint32_t length)
{
	const struct verbs_initiator *own = (struct verbs_initiator *)(void *)req;
	struct ibv_send_wr *wr = &batch->wr[batch->count];
	struct ibv_sge *list = &batch->sge[batch->sges];
	const enum ndx_status st = verbs_op_prepare(qp, op, req, length, wr);
	char *bytes;

	if (st != NDX_OK)
		return st;
	wr->sg_list = list;
	if (own->req.in_mailbox) {
		verbs_op_fill_noop(qp, wr, list);
	} else if (verbs_op_is_gathered(op)) {
		bytes = batch->bytes + batch->gathered;
		*list = (struct ibv_sge){.addr = (uintptr_t)bytes, .length = length};
		batch->gathered += verbs_wr_gather(bytes, op->sge, op->count);
		wr->num_sge = length > 0 ? 1 : 0;
	} else {
		wr->num_sge = verbs_wr_copy_list(list, op->sge, op->count);
	}
	wr->next = wr + 1; /* flush() ends the list */
	batch->sges += (size_t)wr->num_sge;
	batch->count++;
	qp->unsignaled = own->req.signaled ? 0 : qp->unsignaled + 1;
	return NDX_OK;
}

/* base.lock held: any request. NDX_PENDING: the connection has ended, and the request is canceled;
 * then no request is native. */
static __attribute__((noinline)) enum ndx_status
add_any(struct verbs_qp *qp, struct batch *batch, const struct ndx_request *request, size_t *posted)
{
	enum ndx_status st = NDX_OK;
	struct ndxp_req *req;
	struct verbs_op op;
	uint32_t length;

	if (!op_of(request, &op))
		return NDX_E_INVALID_PARAMETER;
	if (is_full(batch, qp, &op))
		st = flush(qp, batch, posted);
	if (st == NDX_OK)
		st = ndxp_admit_initiator(&qp->base, op.type, op.context, op.sge, op.count,
		                          op.flags, op.allowed, qp->base.spi.attr.max_initiator_sge,
		                          &length, &req);
	if (st == NDX_PENDING)
		++*posted;
	return st == NDX_OK ? add(qp, batch, &op, req, length) : st;
}

#define BIT(type) (1u << (unsigned)(type))
#define PLAIN                                                                      \
	(BIT(NDX_POST_SEND) | BIT(NDX_POST_SEND_IMMEDIATE) | BIT(NDX_POST_WRITE) | \
	 BIT(NDX_POST_WRITE_IMMEDIATE))
#define WITH_IMMEDIATE (BIT(NDX_POST_SEND_IMMEDIATE) | BIT(NDX_POST_WRITE_IMMEDIATE))

/* Most requests have one entry that is not empty, and no flags. */
static inline bool is_plain(const struct ndx_request *r, uint32_t max_transfer)
{
	return r->flags == 0 && r->sge_count == 1 &&
	       (unsigned)r->type <= NDX_POST_WRITE_IMMEDIATE && (BIT(r->type) & PLAIN) != 0 &&
	       r->sge->length - 1 < max_transfer;
}

static inline void fill_plain(struct ibv_send_wr *wr, struct ibv_sge *one,
                              struct verbs_initiator *own, const struct ndx_request *r)
{
	own->req.kind = VERBS_INITIATOR;
	own->req.needs_receive = r->type != NDX_POST_WRITE;
	own->req.bad_invalidate = false;
	own->req.signaled = true;
	own->req.in_mailbox = false;
	one->addr = (uintptr_t)r->sge->buffer;
	one->length = r->sge->length;
	one->lkey = r->sge->token;
	wr->wr_id = (uintptr_t)own;
	wr->next = wr + 1; /* flush() ends the list */
	wr->sg_list = one;
	wr->num_sge = 1;
	wr->opcode = opcodes[r->type];
	wr->send_flags = IBV_SEND_SIGNALED;
	if ((BIT(r->type) & WITH_IMMEDIATE) != 0)
		wr->imm_data = htonl(r->immediate);
	if (r->type >= NDX_POST_WRITE) {
		wr->wr.rdma.remote_addr = r->remote_address;
		wr->wr.rdma.rkey = be32toh(r->remote_token);
	}
}

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* base.lock held; the queue pair is up and keeps no books: add plain requests from `first` on, as
 * post_plain() of verbs_post.c posts one. Returns the index of the first that is different, or for
 * which there is no room. */
static size_t add_plain(struct verbs_qp *qp, struct batch *batch, const struct ndx_request *list,
                        size_t size, size_t first, size_t count)
{
	const uint32_t max_transfer = qp->base.max_transfer;
	struct ibv_send_wr *wr = &batch->wr[batch->count];
	struct ibv_sge *one = &batch->sge[batch->sges];
	const size_t most = least(VERBS_LIST - batch->count, VERBS_LIST_SGES - batch->sges);
	const size_t end = first + least(most, count - first);
	size_t i = first;

	for (; i < end; i++) {
		const struct ndx_request *r = ndxp_request_at(list, size, i);
		struct ndxp_req *req;

		if (!is_plain(r, max_transfer))
			break;
		req = ndxp_queue_take(
			&qp->base.initiator, r->context,
			r->type >= NDX_POST_WRITE ? NDX_REQUEST_WRITE : NDX_REQUEST_SEND, 0);
		if (__builtin_expect(req == NULL, 0))
			break;
		fill_plain(wr++, one++, (struct verbs_initiator *)(void *)req, r);
	}
	batch->count += i - first;
	batch->sges += i - first;
	if (i > first)
		qp->unsignaled = 0;
	return i;
}

/* base.lock held: post from the entry at *posted on. */
static enum ndx_status post_rest(struct verbs_qp *qp, const struct ndx_request *list, size_t size,
                                 size_t count, size_t *posted)
{
	const bool plainly = qp->base.state == NDXP_QP_UP && !qp->keeps_books;
	enum ndx_status st = NDX_OK;
	enum ndx_status flushed;
	struct batch batch;
	size_t i = *posted;

	begin_batch(&batch, qp);
	for (;;) {
		if (plainly)
			i = add_plain(qp, &batch, list, size, i, count);
		if (i == count)
			break;
		st = add_any(qp, &batch, ndxp_request_at(list, size, i), posted);
		if (st != NDX_OK && st != NDX_PENDING)
			break;
		i++;
	}
	flushed = flush(qp, &batch, posted);
	return flushed != NDX_OK || st == NDX_PENDING ? flushed : st;
}

enum ndx_status verbs_qp_post_list(struct ndx_qp *pub, const struct ndx_request *list, size_t size,
                                   size_t count, size_t *posted)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	size_t looked_at = SIZE_MAX;
	enum ndx_status st;

	for (;;) {
		ndxp_lock_acquire(&qp->base.lock);
		st = post_rest(qp, list, size, count, posted);
		ndxp_lock_release(&qp->base.lock);
		if (st != NDX_E_NO_MORE_ENTRIES || *posted == looked_at)
			return st;
		/* as for a single request: read the queue once for each refused entry */
		looked_at = *posted;
		verbs_cq_try_poll(qp->initiator_cq);
	}
}

/* ---- receives ---- */

/* base.lock held: give the batch to the device, and begin a new one. */
static enum ndx_status flush_receives(struct verbs_qp *qp, struct verbs_receive_batch *batch,
                                      size_t *posted)
{
	struct ibv_recv_wr *bad = batch->wr;
	enum ndx_status st = NDX_OK;
	size_t taken = batch->count;
	int err;

	if (batch->count == 0)
		return NDX_OK;
	err = ibv_post_recv(qp->native, batch->wr, &bad);
	if (__builtin_expect(err != 0, 0)) {
		taken = (size_t)(bad - batch->wr);
		for (size_t i = taken; i < batch->count; i++)
			st = verbs_wr_undo(&qp->base.receive, err);
	}
	*posted += taken;
	batch->count = 0;
	batch->sges = 0;
	return st;
}

/* base.lock held. NDX_PENDING: taken, and the device does not get the receive now. */
static enum ndx_status add_receive(struct verbs_qp *qp, struct verbs_receive_batch *batch,
                                   const struct ndx_receive *entry)
{
	struct verbs_receive *receive;
	struct ndxp_req *req;
	uint32_t length;
	enum ndx_status st;

	st = ndxp_admit_receive(&qp->base, entry->context, entry->sge, entry->sge_count, &length,
	                        &req);
	if (st != NDX_OK)
		return st;
	receive = (struct verbs_receive *)(void *)req;
	receive->count = (uint32_t)entry->sge_count;
	if (receive->count > 0)
		memcpy(receive->sge, entry->sge, receive->count * sizeof(*entry->sge));
	if (!qp->receiving)
		return NDX_PENDING;
	verbs_wr_add_receive(batch, receive, receive->sge, receive->count);
	return NDX_OK;
}

/* base.lock held. */
static enum ndx_status receive_all(struct verbs_qp *qp, const struct ndx_receive *list, size_t size,
                                   size_t count, size_t *posted)
{
	enum ndx_status flushed = NDX_OK;
	enum ndx_status st = NDX_OK;
	struct verbs_receive_batch batch;

	batch.count = 0;
	batch.sges = 0;
	for (size_t i = 0; i < count; i++) {
		if (verbs_wr_is_full(&batch))
			flushed = flush_receives(qp, &batch, posted);
		if (flushed != NDX_OK)
			return flushed;
		st = add_receive(qp, &batch, ndxp_receive_at(list, size, i));
		if (st == NDX_PENDING)
			++*posted;
		else if (st != NDX_OK)
			break;
	}
	flushed = flush_receives(qp, &batch, posted);
	return flushed != NDX_OK || st == NDX_PENDING ? flushed : st;
}

enum ndx_status verbs_qp_receive_list(struct ndx_qp *pub, const struct ndx_receive *list,
                                      size_t size, size_t count, size_t *posted)
{
	struct verbs_qp *qp = (struct verbs_qp *)(void *)pub;
	enum ndx_status st;

	ndxp_lock_acquire(&qp->base.lock);
	st = receive_all(qp, list, size, count, posted);
	if (*posted > 0 && qp->ofi != NULL && qp->receiving)
		verbs_ofi_tell_credits(qp);
	ndxp_lock_release(&qp->base.lock);
	return st;
}
