/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: create, admit requests, cancel. */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "loop.h"

static struct loop_qp *qp_of(struct ndx_qp *qp)
{
	return (struct loop_qp *)(void *)qp;
}

static void copy_list(struct ndx_sge *to, const struct ndx_sge *from, size_t count)
{
	if (count > 0)
		memcpy(to, from, count * sizeof(*to));
}

/* The bytes are stored behind the only entry of the list. */
static void copy_inline(struct loop_req *req, const struct ndx_sge *sge, size_t count)
{
	char *data = (char *)&req->sge[1];

	req->sge[0] = (struct ndx_sge){.buffer = data, .length = req->length};
	for (size_t i = 0; i < count; i++) {
		if (sge[i].length > 0)
			memcpy(data, sge[i].buffer, sge[i].length);
		data += sge[i].length;
	}
}

/* Lock held. NDX_PENDING: admitted, and canceled at once. */
static enum ndx_status admit_req(struct loop_qp *qp, const struct ndxp_post *post,
                                 struct loop_req **out)
{
	struct ndxp_req *base;
	struct loop_req *req;
	enum ndx_status st;
	uint32_t length;

	st = ndxp_post_admit(&qp->base, post, &length, &base);
	if (st != NDX_OK)
		return st;
	req = (struct loop_req *)(void *)base;
	req->length = length;
	req->immediate = post->immediate;
	req->with_immediate = post->with_immediate;
	req->remote_address = post->remote_address;
	req->remote_token = post->remote_token;
	req->mw = NULL;
	ndxp_list_init(&req->pending);
	if ((post->flags & NDX_OP_INLINE) != 0)
		copy_inline(req, post->sge, post->count);
	else
		copy_list(req->sge, post->sge, post->count);
	*out = req;
	return NDX_OK;
}

/* Lock held. */
static enum ndx_status post_one(struct loop_qp *qp, const struct ndxp_post *post)
{
	struct loop_req *req;
	enum ndx_status st;

	if (post->type == NDX_REQUEST_READ && qp->base.state != NDXP_QP_IDLE &&
	    qp->outbound_reads == 0)
		return NDX_E_INVALID_DEVICE_REQUEST;
	st = admit_req(qp, post, &req);
	if (st == NDX_OK)
		loop_data_posted(qp->conn);
	return st;
}

static enum ndx_status post_request(struct ndxp_qp *base, const struct ndxp_post *post)
{
	struct loop_qp *qp = container_of(base, struct loop_qp, base);
	enum ndx_status st;

	loop_switch_lock(qp->adapter->sw);
	st = post_one(qp, post);
	loop_switch_unlock(qp->adapter->sw);
	return st;
}

static enum ndx_status qp_post_list(struct ndx_qp *pub, const struct ndx_request *list, size_t size,
                                    size_t count, size_t *posted)
{
	struct loop_qp *qp = qp_of(pub);
	enum ndx_status st = NDX_OK;
	struct ndxp_post post;
	size_t i;

	loop_switch_lock(qp->adapter->sw);
	for (i = 0; i < count; i++) {
		st = NDX_E_INVALID_PARAMETER;
		if (ndxp_post_of(ndxp_request_at(list, size, i), &post))
			st = post_one(qp, &post);
		if (st != NDX_OK && st != NDX_PENDING)
			break;
	}
	loop_switch_unlock(qp->adapter->sw);
	*posted = i;
	return st == NDX_PENDING ? NDX_OK : st;
}

/* Lock held. */
static enum ndx_status receive_one(struct loop_qp *qp, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	struct loop_receive *receive;
	struct ndxp_req *base;
	uint32_t length;
	enum ndx_status st;

	st = ndxp_admit_receive(&qp->base, context, sge, count, &length, &base);
	if (st == NDX_OK) {
		receive = (struct loop_receive *)(void *)base;
		receive->length = length;
		copy_list(receive->sge, sge, count);
	}
	return st;
}

static enum ndx_status qp_receive(struct ndx_qp *pub, void *context, const struct ndx_sge *sge,
                                  size_t count)
{
	struct loop_qp *qp = qp_of(pub);
	enum ndx_status st;

	loop_switch_lock(qp->adapter->sw);
	st = receive_one(qp, context, sge, count);
	if (st == NDX_OK && qp->conn != NULL)
		loop_data_pump(qp->conn->peer);
	loop_switch_unlock(qp->adapter->sw);
	return st == NDX_PENDING ? NDX_OK : st;
}

static enum ndx_status qp_receive_list(struct ndx_qp *pub, const struct ndx_receive *list,
                                       size_t size, size_t count, size_t *posted)
{
	struct loop_qp *qp = qp_of(pub);
	enum ndx_status st = NDX_OK;
	size_t i;

	loop_switch_lock(qp->adapter->sw);
	for (i = 0; i < count; i++) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = receive_one(qp, r->context, r->sge, r->sge_count);
		if (st != NDX_OK && st != NDX_PENDING)
			break;
	}
	if (i > 0 && qp->conn != NULL)
		loop_data_pump(qp->conn->peer);
	loop_switch_unlock(qp->adapter->sw);
	*posted = i;
	return st == NDX_PENDING ? NDX_OK : st;
}

/*
 * Windows and regions are opaque to the application: its pointers are those of the SPI's heads. A
 * bind that can be refused is refused before a slot is used, and only while connected: after the
 * end of the connection every request is canceled.
 */
static enum ndx_status qp_bind(struct ndx_qp *pub, void *context, struct ndx_mr *mr_front,
                               struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags)
{
	struct loop_qp *qp = qp_of(pub);
	struct loop_mr *mr = (struct loop_mr *)(void *)mr_front;
	struct loop_mw *mw = (struct loop_mw *)(void *)mw_front;
	struct ndxp_post post = {
		.type = NDX_REQUEST_BIND,
		.context = context,
		.flags = flags,
		.allowed = NDXP_BIND_FLAGS,
		.remote_address = (uintptr_t)buffer,
	};
	struct loop_req *req;
	enum ndx_status st = NDX_OK;

	loop_switch_lock(qp->adapter->sw);
	if (qp->base.state == NDXP_QP_UP)
		st = loop_mw_check_bind(qp->adapter, mr, mw, buffer, length, flags,
		                        &post.remote_token);
	if (st == NDX_OK)
		st = admit_req(qp, &post, &req);
	if (st == NDX_OK) {
		req->region_token = mr->local.token;
		req->window_length = length;
		loop_mw_plan(qp->adapter, req, mw);
		loop_data_posted(qp->conn);
	}
	loop_switch_unlock(qp->adapter->sw);
	return st == NDX_PENDING ? NDX_OK : st;
}

static enum ndx_status qp_invalidate(struct ndx_qp *pub, void *context, struct ndx_mw *mw_front,
                                     uint32_t flags)
{
	struct loop_qp *qp = qp_of(pub);
	struct loop_mw *mw = (struct loop_mw *)(void *)mw_front;
	const struct ndxp_post post = {
		.type = NDX_REQUEST_INVALIDATE,
		.context = context,
		.flags = flags,
		.allowed = NDXP_INVALIDATE_FLAGS,
	};
	struct loop_req *req;
	enum ndx_status st;

	if (mw == NULL || mw->adapter != qp->adapter)
		return NDX_E_INVALID_PARAMETER;
	loop_switch_lock(qp->adapter->sw);
	st = admit_req(qp, &post, &req);
	if (st == NDX_OK) {
		loop_mw_plan(qp->adapter, req, mw);
		loop_data_posted(qp->conn);
	}
	loop_switch_unlock(qp->adapter->sw);
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
	.bind = qp_bind,
	.invalidate = qp_invalidate,
	.post_list = qp_post_list,
	.receive_list = qp_receive_list,
};

/* Size of a record with its list or its inline bytes, such that the next record is aligned. */
static size_t stride(size_t record, size_t list, size_t inline_bytes)
{
	size_t room = sizeof(struct ndx_sge) + inline_bytes;

	if (room < list)
		room = list;
	return (record + room + 15) / 16 * 16;
}

/* Results of the SRQ's receives use slots of this queue pair, as many as the SRQ's depth is now. */
static enum ndx_status attach_srq(struct loop_qp *qp, struct loop_srq *srq)
{
	enum ndx_status st;
	uint32_t depth;

	loop_switch_lock(qp->adapter->sw);
	depth = srq->depth;
	loop_switch_unlock(qp->adapter->sw);
	st = ndxp_cq_attach(&qp->receive_cq->base, depth);
	if (st != NDX_OK)
		return st;
	qp->from_srq.qp = &qp->base;
	qp->from_srq.cq = &qp->receive_cq->base;
	qp->from_srq.depth = depth;
	qp->srq = srq;
	return NDX_OK;
}

/* attr->keepalive_ms needs no code: a peer in the same process always reports its end. */
enum ndx_status loop_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                               struct ndx_spi_qp **out)
{
	struct loop_qp *qp = calloc(1, sizeof(*qp));
	enum ndx_status st;

	if (qp == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "queue pair: out of memory");
	qp->adapter = loop_adapter_of(adapter);
	qp->receive_cq = container_of(ndxp_cq_of(attr->receive_cq), struct loop_cq, base);
	ndxp_list_init(&qp->windows);
	st = ndxp_qp_init(&qp->base, &qp_ops, attr, LOOP_MAX_TRANSFER,
	                  stride(sizeof(struct loop_req),
	                         attr->max_initiator_sge * sizeof(struct ndx_sge),
	                         attr->inline_size),
	                  stride(sizeof(struct loop_receive),
	                         attr->max_receive_sge * sizeof(struct ndx_sge), 0));
	if (st != NDX_OK)
		goto free_qp;
	if (attr->srq != NULL) {
		st = attach_srq(qp, loop_srq_of(attr->srq));
		if (st != NDX_OK)
			goto fini_base;
	}
	qp->base.post = post_request;
	*out = &qp->base.spi;
	return NDX_OK;
fini_base:
	ndxp_qp_fini(&qp->base);
free_qp:
	free(qp);
	return st;
}

void loop_qp_cancel_initiator(struct loop_qp *qp)
{
	struct ndxp_queue *q = &qp->base.initiator;

	for (uint32_t i = q->head; i != q->tail; i++) {
		struct loop_req *req = (struct loop_req *)(void *)ndxp_queue_at(q, i);

		if (!req->base.done && (req->base.type == NDX_REQUEST_BIND ||
		                        req->base.type == NDX_REQUEST_INVALIDATE))
			loop_mw_forget(req);
	}
	ndxp_queue_cancel(q, NDX_E_CANCELED);
	ndxp_qp_rnr_end(&qp->base);
}

void loop_qp_cancel(struct ndx_spi_qp *spi)
{
	struct loop_qp *qp = loop_qp_of(spi);

	loop_switch_lock(qp->adapter->sw);
	loop_qp_cancel_initiator(qp);
	ndxp_queue_cancel(&qp->base.receive, NDX_E_CANCELED);
	loop_switch_unlock(qp->adapter->sw);
}

void loop_qp_destroy(struct ndx_spi_qp *spi)
{
	struct loop_qp *qp = loop_qp_of(spi);

	loop_qp_cancel(spi);
	loop_switch_lock(qp->adapter->sw);
	/* a window serves the peer of one queue pair, and that queue pair is gone */
	while (!ndxp_list_empty(&qp->windows))
		loop_mw_unbind(container_of(qp->windows.next, struct loop_mw, of_qp));
	loop_switch_unlock(qp->adapter->sw);
	if (qp->srq != NULL)
		ndxp_cq_detach(&qp->receive_cq->base, &qp->from_srq);
	ndxp_qp_fini(&qp->base);
	free(qp);
}

void loop_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats)
{
	struct loop_qp *qp = loop_qp_of(spi);

	loop_switch_lock(qp->adapter->sw);
	ndxp_qp_get_stats(&qp->base, stats);
	if (qp->srq != NULL)
		ndxp_queue_get_stats(&qp->from_srq, &stats->receive);
	loop_switch_unlock(qp->adapter->sw);
}
