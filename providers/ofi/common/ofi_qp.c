/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: create, destroy, and the entry points of the data path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "ofi.h"
#include "ofi_receive.h"

static struct ofi_qp *of_handle(struct ndx_qp *qp)
{
	return (struct ofi_qp *)(void *)qp;
}

/* ---- requests ---- */

/* Copy inline data into the slot's own buffer. */
static void copy_inline(struct ofi_qp *qp, struct ofi_tx *tx, const struct ndx_sge *sge,
                        size_t count)
{
	const size_t slot = (size_t)((char *)tx - qp->base.initiator.reqs) / sizeof(*tx);
	char *to;

	if (tx->length == 0)
		return;
	to = qp->bounce + slot * qp->base.spi.attr.inline_size;
	tx->tokens[0] = 0;
	tx->desc[0] = qp->verbs.bounce != NULL ? fi_mr_desc(qp->verbs.bounce) : NULL;
	tx->iov[0] = (struct iovec){.iov_base = to, .iov_len = tx->length};
	tx->iov_count = 1;
	for (size_t i = 0; i < count; i++) {
		if (sge[i].length > 0)
			memcpy(to, sge[i].buffer, sge[i].length);
		to += sge[i].length;
	}
}

static void deny(const struct ofi_qp *qp, struct ofi_tx *tx, uint32_t token, uint32_t right)
{
	if (tx->verdict == NDX_OK)
		tx->denied = ofi_mr_denied(&qp->adapter->regions, token, right);
	tx->verdict = NDX_E_ACCESS_VIOLATION;
}

/* Copy what the caller described. A violation is found here, and fails the request in its turn. */
static void fill_tx(struct ofi_qp *qp, struct ofi_tx *tx, const struct ndx_sge *sge, size_t count,
                    uint32_t right)
{
	tx->verdict = NDX_OK;
	tx->parts = 0;
	tx->native = false;
	tx->remote = false;
	tx->unacked = false;
	tx->unfit = false;
	tx->iov_count = 0;
	if (tx->base.op_flags & NDX_OP_INLINE) {
		copy_inline(qp, tx, sge, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (sge[i].length == 0)
			continue;
		if (!ofi_mr_allows(&qp->adapter->regions, sge[i].buffer, sge[i].length,
		                   sge[i].token, right))
			deny(qp, tx, sge[i].token, right);
		tx->desc[tx->iov_count] = ofi_desc_of(qp, sge[i].token);
		tx->tokens[tx->iov_count] = sge[i].token;
		tx->iov[tx->iov_count++] = (struct iovec){.iov_base = ndxp_sge_memory(&sge[i]),
		                                          .iov_len = sge[i].length};
	}
}

static uint8_t ctrl_flags_of(const struct ndxp_post *post)
{
	uint8_t flags = 0;

	if (post->with_immediate)
		flags |= OFI_CTRL_IMMEDIATE;
	if (post->with_immediate && post->type == NDX_REQUEST_WRITE)
		flags |= OFI_CTRL_IS_WRITE;
	if (post->flags & NDX_OP_SOLICIT_EVENT)
		flags |= OFI_CTRL_SOLICITED;
	return flags;
}

/* Lock held. The caller submits. */
static enum ndx_status post_one(struct ofi_qp *qp, const struct ndxp_post *post)
{
	const bool is_read = post->type == NDX_REQUEST_READ;
	struct ndxp_req *req;
	struct ofi_tx *tx;
	uint32_t length;
	enum ndx_status st;

	if (is_read && qp->base.state == NDXP_QP_UP && qp->read_limit == 0)
		return NDX_E_INVALID_DEVICE_REQUEST;
	st = ndxp_post_admit(&qp->base, post, &length, &req);
	if (st != NDX_OK)
		return st;
	tx = (struct ofi_tx *)(void *)req;
	tx->length = length;
	tx->address = post->remote_address;
	tx->key = post->remote_token;
	tx->immediate = post->immediate;
	tx->ctrl_flags = ctrl_flags_of(post);
	fill_tx(qp, tx, post->sge, post->count, is_read ? OFI_RIGHT_SINK : OFI_RIGHT_SOURCE);
	return NDX_OK;
}

static enum ndx_status post_request(struct ndxp_qp *base, const struct ndxp_post *post)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)base;
	enum ndx_status st;

	ndxp_lock_acquire(&base->lock);
	st = post_one(qp, post);
	if (st == NDX_OK)
		ofi_submit(qp);
	ndxp_lock_release(&base->lock);
	return st;
}

static enum ndx_status qp_post_list(struct ndx_qp *handle, const struct ndx_request *list,
                                    size_t size, size_t count, size_t *posted)
{
	struct ofi_qp *qp = of_handle(handle);
	enum ndx_status st = NDX_OK;
	struct ndxp_post post;
	bool any = false;
	size_t i;

	ndxp_lock_acquire(&qp->base.lock);
	for (i = 0; i < count; i++) {
		st = NDX_E_INVALID_PARAMETER;
		if (ndxp_post_of(ndxp_request_at(list, size, i), &post))
			st = post_one(qp, &post);
		if (st != NDX_OK && st != NDX_PENDING)
			break;
		any |= st == NDX_OK;
	}
	if (any)
		ofi_submit(qp);
	ndxp_lock_release(&qp->base.lock);
	*posted = i;
	return st == NDX_PENDING ? NDX_OK : st;
}

/* The receive names memory that it must not write. If the peer can be told, the receive fails when
 * a message comes for it. */
static void reject_receive(struct ofi_qp *qp, struct ndxp_req *req)
{
	const bool over = qp->broken || qp->peer_disc;
	struct ofi_rx *rx = (struct ofi_rx *)(void *)req;

	if (ofi_backend_of(qp)->tells_sizes) {
		rx->poisoned = true;
		rx->iov_count = 0;
		return;
	}
	/* when no message can come any more, it is canceled */
	ndxp_req_done(&qp->base.receive, req, over ? NDX_E_CANCELED : NDX_E_ACCESS_VIOLATION, 0);
	/* those before it in a list */
	ofi_post_receives(qp);
	if (!over)
		ofi_qp_break_with(qp, 0, "a receive names memory that it must not write: %s",
		                  ofi_denied_text((enum ofi_denied)rx->denied));
}

/* Lock held. The caller gives the receives to libfabric. */
static enum ndx_status receive_one(struct ofi_qp *qp, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct ndxp_req *req;
	uint32_t length;
	enum ndx_status st;

	st = ndxp_admit_receive(&qp->base, context, sge, count, &length, &req);
	if (st == NDX_OK && !ofi_rx_fill(qp, (struct ofi_rx *)(void *)req, sge, count))
		reject_receive(qp, req);
	return st;
}

static enum ndx_status qp_receive(struct ndx_qp *handle, void *context, const struct ndx_sge *sge,
                                  size_t count)
{
	struct ofi_qp *qp = of_handle(handle);
	enum ndx_status st;

	ndxp_lock_acquire(&qp->base.lock);
	st = receive_one(qp, context, sge, count);
	if (st == NDX_OK)
		ofi_post_receives(qp);
	ndxp_lock_release(&qp->base.lock);
	return st == NDX_PENDING ? NDX_OK : st;
}

static enum ndx_status qp_receive_list(struct ndx_qp *handle, const struct ndx_receive *list,
                                       size_t size, size_t count, size_t *posted)
{
	struct ofi_qp *qp = of_handle(handle);
	enum ndx_status st = NDX_OK;
	bool any = false;
	size_t i;

	ndxp_lock_acquire(&qp->base.lock);
	for (i = 0; i < count; i++) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = receive_one(qp, r->context, r->sge, r->sge_count);
		if (st != NDX_OK && st != NDX_PENDING)
			break;
		any |= st == NDX_OK;
	}
	if (any)
		ofi_post_receives(qp);
	ndxp_lock_release(&qp->base.lock);
	*posted = i;
	return st == NDX_PENDING ? NDX_OK : st;
}

static const struct ndx_qp_ops qp_ops = {
	.size = sizeof(qp_ops),
	.send = ndxp_post_send,
	.receive = qp_receive,
	.read = ndxp_post_read,
	.write = ndxp_post_write,
	.send_immediate = ndxp_post_send_immediate,
	.write_immediate = ndxp_post_write_immediate,
	.bind = ofi_mw_bind,
	.invalidate = ofi_mw_invalidate,
	.post_list = qp_post_list,
	.receive_list = qp_receive_list,
};

static const struct ndx_qp_ops qp_ops_without_windows = {
	.size = sizeof(qp_ops_without_windows),
	.send = ndxp_post_send,
	.receive = qp_receive,
	.read = ndxp_post_read,
	.write = ndxp_post_write,
	.send_immediate = ndxp_post_send_immediate,
	.write_immediate = ndxp_post_write_immediate,
	.post_list = qp_post_list,
	.receive_list = qp_receive_list,
};

/* ---- create and destroy ---- */

static void init_records(struct ofi_qp *qp)
{
	const struct ndxp_queue *q = &qp->base.initiator;

	for (uint32_t i = 0; i <= q->mask; i++)
		ofi_tx_at(qp, i)->op = (struct ofi_op){.kind = OFI_OP_TX, .owner = qp};
	q = &qp->base.receive;
	for (uint32_t i = 0; i <= q->mask; i++)
		ofi_rx_at(qp, i)->op = (struct ofi_op){
			.kind = qp->taker.srq != NULL ? OFI_OP_SHARED : OFI_OP_RX, .owner = qp};
}

/* One buffer for each entry of the ring, which may have more entries than the depth. */
static enum ndx_status make_bounce(struct ofi_qp *qp)
{
	const struct ndx_qp_attr *attr = &qp->base.spi.attr;
	const size_t places = (size_t)qp->base.initiator.mask + 1;
	int err = 0;

	if (attr->inline_size == 0)
		return NDX_OK;
	qp->bounce = calloc(places, attr->inline_size);
	if (qp->bounce == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for %u inline requests",
		            attr->initiator_depth);
	if (ofi_backend_of(qp)->native_keys)
		err = -fi_mr_reg(qp->adapter->domain, qp->bounce, places * attr->inline_size,
		                 FI_SEND, 0, 0, 0, &qp->verbs.bounce, NULL);
	if (err == 0)
		return NDX_OK;
	free(qp->bounce);
	return fail(NDX_E_INSUFFICIENT_RESOURCES, err,
	            "fi_mr_reg of room for inline requests: %s; see ulimit -l", fi_strerror(err));
}

enum ndx_status ofi_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_spi_qp **out)
{
	struct ofi_qp *qp = calloc(1, sizeof(*qp));
	enum ndx_status st;

	if (qp == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a queue pair");
	qp->adapter = ofi_adapter_of(adapter);
	st = ndxp_qp_init(&qp->base,
	                  ofi_backend_of(qp)->windows ? &qp_ops : &qp_ops_without_windows, attr,
	                  qp->adapter->max_transfer, sizeof(struct ofi_tx), sizeof(struct ofi_rx));
	if (st != NDX_OK)
		goto free_qp;
	if (attr->srq != NULL)
		st = ofi_srq_join(qp);
	if (st != NDX_OK)
		goto fini_base;
	st = make_bounce(qp);
	if (st != NDX_OK)
		goto leave_srq;
	qp->base.post = post_request;
	init_records(qp);
	ndxp_list_init(&qp->credit_node);
	ndxp_list_init(&qp->ack_node);
	ofi_grants_init(&qp->grants);
	ndxp_list_init(&qp->windows);
	qp->timer = (struct ndxp_timer){.fn = ofi_on_rnr_timer, .arg = qp};
	ndxp_lock_acquire(&qp->adapter->qps_lock);
	ndxp_list_add(&qp->adapter->qps, &qp->node);
	ndxp_lock_release(&qp->adapter->qps_lock);
	*out = &qp->base.spi;
	return NDX_OK;

leave_srq:
	ofi_srq_leave(qp);
fini_base:
	ndxp_qp_fini(&qp->base);
free_qp:
	free(qp);
	return st;
}

void ofi_qp_destroy(struct ndx_spi_qp *spi)
{
	struct ofi_qp *qp = ofi_qp_of(spi);

	ndxp_lock_acquire(&qp->adapter->qps_lock);
	ndxp_list_remove(&qp->node);
	ndxp_lock_release(&qp->adapter->qps_lock);
	ofi_qp_cancel(spi);
	ofi_mw_leave_qp(qp);
	ofi_srq_leave(qp);
	ndxp_qp_fini(&qp->base);
	if (qp->verbs.bounce != NULL)
		(void)fi_close(&qp->verbs.bounce->fid);
	free(qp->bounce);
	free(qp);
}

void ofi_qp_cancel(struct ndx_spi_qp *spi)
{
	struct ofi_qp *qp = ofi_qp_of(spi);

	/* the core has given up an attempt to connect: libfabric has no request of the queue
	 * pair */
	ndxp_lock_acquire(&qp->base.lock);
	ndxp_queue_cancel(&qp->base.receive, NDX_E_CANCELED);
	qp->rx_next = qp->base.receive.tail;
	ndxp_lock_release(&qp->base.lock);
}
