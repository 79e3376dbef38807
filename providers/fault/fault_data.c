/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs and shared receive queues: their data-path tables are replaced by copies. */
#include <stdlib.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include "fault.h"

/* Whether the table of the inner provider, which may be older, has this function. Without one for
 * lists, the entries pass through the calls above one by one, and count there. */
#define OFFERS(ops, function) \
	((ops)->size > offsetof(__typeof__(*(ops)), function) && (ops)->function != NULL)

struct fault_qp {
	struct ndx_qp_ops ops;
	const struct ndx_qp_ops *inner;
	struct fault_adapter *fa;
	uint32_t ending; /* the connection ends, so posts may complete at once; atomic */
};

struct fault_srq {
	struct ndx_srq_ops ops;
	const struct ndx_srq_ops *inner;
	struct fault_adapter *fa;
};

static struct fault_qp *qp_of(const struct ndx_qp *qp)
{
	return container_of((struct ndx_qp_ops *)(uintptr_t)qp->ops, struct fault_qp, ops);
}

static struct fault_srq *srq_of(const struct ndx_srq *srq)
{
	return container_of((struct ndx_srq_ops *)(uintptr_t)srq->ops, struct fault_srq, ops);
}

/* The results of a post behind the end of a connection are not delayed: the consumer knows of the
 * end. */
static enum ndx_status after_post(struct fault_qp *q, enum ndx_status status)
{
	if (__atomic_load_n(&q->ending, __ATOMIC_ACQUIRE) != 0)
		fault_cqs_end_delay(q->fa);
	return status;
}

static enum ndx_status qp_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st = fault_inject(q->fa, FAULT_CALL_send);

	if (st == NDX_OK)
		st = q->inner->send(qp, context, sge, count, flags);
	return after_post(q, st);
}

static enum ndx_status qp_receive(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                  size_t count)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st = fault_inject(q->fa, FAULT_CALL_receive);

	if (st == NDX_OK)
		st = q->inner->receive(qp, context, sge, count);
	return after_post(q, st);
}

static enum ndx_status qp_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st = fault_inject(q->fa, FAULT_CALL_read);

	if (st == NDX_OK)
		st = q->inner->read(qp, context, sge, count, remote_address, remote_token, flags);
	return after_post(q, st);
}

static enum ndx_status qp_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st = fault_inject(q->fa, FAULT_CALL_write);

	if (st == NDX_OK)
		st = q->inner->write(qp, context, sge, count, remote_address, remote_token, flags);
	return after_post(q, st);
}

static enum ndx_status qp_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st;

	if (q->inner->send_immediate == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(q->fa, FAULT_CALL_send_immediate);
	if (st == NDX_OK)
		st = q->inner->send_immediate(qp, context, sge, count, immediate, flags);
	return after_post(q, st);
}

static enum ndx_status qp_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st;

	if (q->inner->write_immediate == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(q->fa, FAULT_CALL_write_immediate);
	if (st == NDX_OK)
		st = q->inner->write_immediate(qp, context, sge, count, remote_address,
		                               remote_token, immediate, flags);
	return after_post(q, st);
}

static enum ndx_status qp_bind(struct ndx_qp *qp, void *context, struct ndx_mr *mr,
                               struct ndx_mw *mw, void *buffer, size_t length, uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st;

	if (q->inner->bind == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(q->fa, FAULT_CALL_bind);
	if (st == NDX_OK)
		st = q->inner->bind(qp, context, mr, mw, buffer, length, flags);
	return after_post(q, st);
}

static enum ndx_status qp_invalidate(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
                                     uint32_t flags)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st;

	if (q->inner->invalidate == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(q->fa, FAULT_CALL_invalidate);
	if (st == NDX_OK)
		st = q->inner->invalidate(qp, context, mw, flags);
	return after_post(q, st);
}

/* Each entry of a list counts as a call of its kind. So the inner provider gets the entries before
 * the first one that is made to fail, and the consumer sees a list that is refused there. */
static enum fault_call call_of(const struct ndx_request *request)
{
	switch (request->type) {
	case NDX_POST_SEND:
		return FAULT_CALL_send;
	case NDX_POST_SEND_IMMEDIATE:
		return FAULT_CALL_send_immediate;
	case NDX_POST_READ:
		return FAULT_CALL_read;
	case NDX_POST_WRITE:
		return FAULT_CALL_write;
	case NDX_POST_WRITE_IMMEDIATE:
		return FAULT_CALL_write_immediate;
	}
	return FAULT_CALLS; /* the inner provider refuses it */
}

static enum ndx_status qp_post_list(struct ndx_qp *qp, const struct ndx_request *list, size_t size,
                                    size_t count, size_t *posted)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status st = NDX_OK;
	enum ndx_status inner;
	enum fault_call call;
	size_t n = 0;

	if (!OFFERS(q->inner, post_list))
		return ndxp_post_singly(qp, list, size, count, posted);
	for (; n < count && st == NDX_OK; n += st == NDX_OK) {
		call = call_of(ndxp_request_at(list, size, n));
		if (call == FAULT_CALLS)
			break;
		st = fault_inject(q->fa, call);
	}
	inner = q->inner->post_list(qp, list, size, st == NDX_OK ? count : n, posted);
	return after_post(q, inner != NDX_OK ? inner : st);
}

/* The number of receives before the one that is made to fail, with `*status`; `count`, if none
 * is. */
static size_t receives_before(struct fault_adapter *fa, enum fault_call call, size_t count,
                              enum ndx_status *status)
{
	size_t n = 0;

	*status = NDX_OK;
	for (; n < count && *status == NDX_OK; n += *status == NDX_OK)
		*status = fault_inject(fa, call);
	return n;
}

static enum ndx_status qp_receive_list(struct ndx_qp *qp, const struct ndx_receive *list,
                                       size_t size, size_t count, size_t *posted)
{
	struct fault_qp *q = qp_of(qp);
	enum ndx_status inner;
	enum ndx_status st;
	size_t n;

	if (!OFFERS(q->inner, receive_list))
		return ndxp_receive_singly(qp, list, size, count, posted);
	n = receives_before(q->fa, FAULT_CALL_receive, count, &st);
	inner = q->inner->receive_list(qp, list, size, n, posted);
	return after_post(q, inner != NDX_OK ? inner : st);
}

/* The table has all functions, so that the core does not replace it: it leads to the object. */
static void make_ops(struct fault_qp *q)
{
	q->ops = (struct ndx_qp_ops){
		.size = sizeof(q->ops),
		.send = qp_send,
		.receive = qp_receive,
		.read = qp_read,
		.write = qp_write,
		.send_immediate = qp_send_immediate,
		.write_immediate = qp_write_immediate,
		.bind = qp_bind,
		.invalidate = qp_invalidate,
		.post_list = qp_post_list,
		.receive_list = qp_receive_list,
	};
}

enum ndx_status fault_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                                struct ndx_spi_qp **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	struct fault_qp *q;
	enum ndx_status st = fault_inject(fa, FAULT_CALL_qp_create);

	if (st != NDX_OK) {
		*out = fault_bad_pointer();
		return st;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "queue pair: out of memory");
	st = fa->ops->qp_create(adapter, attr, out);
	if (st != NDX_OK) {
		free(q);
		return st;
	}
	q->inner = (*out)->pub.ops;
	if (!OFFERS(q->inner, send) || !OFFERS(q->inner, receive) || !OFFERS(q->inner, read) ||
	    !OFFERS(q->inner, write)) {
		fa->ops->qp_destroy(*out);
		free(q);
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "fault:%s: a queue pair lacks a function of the data path; report it "
		            "to the provider's author",
		            fa->inner.provider->name);
	}
	q->fa = fa;
	make_ops(q);
	(*out)->pub.ops = &q->ops;
	return NDX_OK;
}

void fault_qp_destroy(struct ndx_spi_qp *qp)
{
	struct fault_qp *q = qp_of(&qp->pub);

	qp->pub.ops = q->inner;
	q->fa->ops->qp_destroy(qp);
	fault_cqs_end_delay(q->fa);
	free(q);
}

void fault_qp_ending(struct ndx_spi_qp *qp)
{
	if (qp != NULL)
		__atomic_store_n(&qp_of(&qp->pub)->ending, 1, __ATOMIC_RELEASE);
}

void fault_qp_cancel(struct ndx_spi_qp *qp)
{
	struct fault_adapter *fa = fault_of(qp->object.native);

	fa->ops->qp_cancel(qp);
	fault_cqs_end_delay(fa);
}

static enum ndx_status srq_receive(struct ndx_srq *srq, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	const struct fault_srq *s = srq_of(srq);
	const enum ndx_status st = fault_inject(s->fa, FAULT_CALL_srq_receive);

	return st == NDX_OK ? s->inner->receive(srq, context, sge, count) : st;
}

static enum ndx_status srq_receive_list(struct ndx_srq *srq, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	const struct fault_srq *s = srq_of(srq);
	enum ndx_status inner;
	enum ndx_status st;
	size_t n;

	if (!OFFERS(s->inner, receive_list))
		return ndxp_srq_receive_singly(srq, list, size, count, posted);
	n = receives_before(s->fa, FAULT_CALL_srq_receive, count, &st);
	inner = s->inner->receive_list(srq, list, size, n, posted);
	return inner != NDX_OK ? inner : st;
}

enum ndx_status fault_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                                 struct ndx_spi_srq **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	struct fault_srq *s;
	enum ndx_status st;

	if (fa->ops->srq_create == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(fa, FAULT_CALL_srq_create);
	if (st != NDX_OK) {
		*out = fault_bad_pointer();
		return st;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "shared receive queue: out of memory");
	st = fa->ops->srq_create(adapter, attr, out);
	if (st != NDX_OK) {
		free(s);
		return st;
	}
	s->inner = (*out)->pub.ops;
	if (!OFFERS(s->inner, receive)) {
		fa->ops->srq_destroy(*out);
		free(s);
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "fault:%s: a shared receive queue lacks receive; report it to the "
		            "provider's author",
		            fa->inner.provider->name);
	}
	s->fa = fa;
	s->ops = (struct ndx_srq_ops){
		.size = sizeof(s->ops), .receive = srq_receive, .receive_list = srq_receive_list};
	(*out)->pub.ops = &s->ops;
	return NDX_OK;
}

void fault_srq_destroy(struct ndx_spi_srq *srq)
{
	struct fault_srq *s = srq_of(&srq->pub);

	srq->pub.ops = s->inner;
	s->fa->ops->srq_destroy(srq);
	free(s);
}
