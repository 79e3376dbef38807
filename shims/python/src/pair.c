/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creating, querying, flushing. Posting is in post.c. */
#include "post.h"

static struct pair *as_pair(PyObject *self)
{
	return (struct pair *)self;
}

static void close_handle(struct object *self)
{
	ndx_qp_close(self->handle);
}

static void drop(struct object *self)
{
	struct pair *pair = (struct pair *)self;

	if (pair->srq != NULL && pair->receive_cq != NULL)
		queue_unshare((struct queue *)pair->receive_cq, pair->number);
	Py_CLEAR(pair->srq);
	Py_CLEAR(pair->receive_cq);
	Py_CLEAR(pair->initiator_cq);
	Py_CLEAR(pair->context);
}

static const struct kind pair_kind = {
	.name = "queue pair",
	.rank = RANK_CONNECTION,
	.close = close_handle,
	.drop = drop,
};

struct arguments {
	PyObject *adapter, *receive_cq, *initiator_cq, *context, *srq;
	struct ndx_qp_attr attr;
};

static bool parse(PyObject *args, PyObject *kwargs, struct arguments *a)
{
	static char *names[] = {"adapter",
	                        "receive_cq",
	                        "initiator_cq",
	                        "receive_depth",
	                        "initiator_depth",
	                        "max_receive_sge",
	                        "max_initiator_sge",
	                        "inline_size",
	                        "no_receive_timeout_ms",
	                        "keepalive_ms",
	                        "rnr_timer",
	                        "context",
	                        "srq",
	                        NULL};

	ndx_qp_attr_init(&a->attr);
	a->initiator_cq = a->context = a->srq = Py_None;
	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "OO|O$O&O&O&O&O&O&O&O&OO:QueuePair", names, &a->adapter,
		    &a->receive_cq, &a->initiator_cq, pyndx_u32, &a->attr.receive_depth, pyndx_u32,
		    &a->attr.initiator_depth, pyndx_u32, &a->attr.max_receive_sge, pyndx_u32,
		    &a->attr.max_initiator_sge, pyndx_u32, &a->attr.inline_size, pyndx_u32,
		    &a->attr.no_receive_timeout_ms, pyndx_u32, &a->attr.keepalive_ms, pyndx_u32,
		    &a->attr.rnr_timer, &a->context, &a->srq))
		return false;
	if (a->initiator_cq == Py_None)
		a->initiator_cq = a->receive_cq;
	return pyndx_is(a->adapter, pyndx.adapter_type, "adapter") &&
	       pyndx_is(a->receive_cq, pyndx.queue_type, "receive_cq") &&
	       pyndx_is(a->initiator_cq, pyndx.queue_type, "initiator_cq") &&
	       (a->srq == Py_None || pyndx_is(a->srq, pyndx.shared_type, "srq"));
}

static PyObject *pair_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static uint64_t numbers;
	struct ndx_qp *handle = NULL;
	struct object *entered[4];
	struct arguments a;
	struct pair *self;
	enum ndx_status st;
	size_t wanted = 3;

	if (!parse(args, kwargs, &a))
		return NULL;
	entered[0] = (struct object *)a.adapter;
	entered[1] = (struct object *)a.receive_cq;
	entered[2] = (struct object *)a.initiator_cq;
	if (a.srq != Py_None)
		entered[wanted++] = (struct object *)a.srq;
	self = (struct pair *)object_new(type, &pair_kind);
	if (self == NULL)
		return NULL;
	if (!objects_enter(entered, wanted))
		goto drop_self;
	a.attr.receive_cq = entered[1]->handle;
	a.attr.initiator_cq = entered[2]->handle;
	if (wanted == 4) {
		a.attr.srq = entered[3]->handle;
		self->number = ++numbers;
		a.attr.context = (void *)(uintptr_t)self->number;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_qp_create(entered[0]->handle, &a.attr, &handle);
	Py_END_ALLOW_THREADS;
	if (st != NDX_OK) {
		(void)pyndx_raise_last(st);
		goto leave;
	}
	object_open(&self->base, handle);
	Py_INCREF(a.receive_cq);
	Py_INCREF(a.initiator_cq);
	Py_INCREF(a.context);
	self->receive_cq = a.receive_cq;
	self->initiator_cq = a.initiator_cq;
	self->context = a.context;
	if (wanted == 4) {
		Py_INCREF(a.srq);
		self->srq = a.srq;
		if (!queue_share((struct queue *)a.receive_cq, (struct shared *)a.srq, self->number,
		                 a.context))
			goto leave;
	}
	objects_leave(entered, wanted);
	return &self->base.ob_base;
leave:
	objects_leave(entered, wanted);
drop_self:
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

static enum ndx_status flush(void *handle)
{
	return ndx_qp_flush(handle);
}

static PyObject *pair_flush(PyObject *self, PyObject *unused)
{
	(void)unused;
	return object_call(self, flush);
}

static PyObject *count_or_none(uint64_t count)
{
	if (count == NDX_QP_NOT_COUNTED)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(count);
}

static bool put_attr(PyObject *dict, const struct ndx_qp_attr *attr)
{
	return pyndx_put(dict, "receive_depth", PyLong_FromUnsignedLong(attr->receive_depth)) &&
	       pyndx_put(dict, "initiator_depth", PyLong_FromUnsignedLong(attr->initiator_depth)) &&
	       pyndx_put(dict, "max_receive_sge", PyLong_FromUnsignedLong(attr->max_receive_sge)) &&
	       pyndx_put(dict, "max_initiator_sge",
	                 PyLong_FromUnsignedLong(attr->max_initiator_sge)) &&
	       pyndx_put(dict, "inline_size", PyLong_FromUnsignedLong(attr->inline_size));
}

static bool put_info(PyObject *dict, const struct ndx_qp_info *info)
{
	return pyndx_put(dict, "id", PyLong_FromUnsignedLong(info->id)) &&
	       pyndx_put(dict, "state", pyndx_enum(PYTHON_QP_STATE, info->state)) &&
	       pyndx_put(dict, "reason", pyndx_enum(PYTHON_REASON, info->reason)) &&
	       pyndx_put(dict, "local", pyndx_from_address(&info->local)) &&
	       pyndx_put(dict, "peer", pyndx_from_address(&info->peer)) &&
	       pyndx_put(dict, "initiator_outstanding",
	                 count_or_none(info->initiator_outstanding)) &&
	       pyndx_put(dict, "receive_outstanding", count_or_none(info->receive_outstanding)) &&
	       pyndx_put(dict, "failure", pyndx_status(info->failure)) &&
	       pyndx_put(dict, "failure_cause", PyUnicode_FromString(info->failure_cause)) &&
	       pyndx_put(dict, "inbound_read_limit",
	                 PyLong_FromUnsignedLong(info->inbound_read_limit)) &&
	       pyndx_put(dict, "outbound_read_limit",
	                 PyLong_FromUnsignedLong(info->outbound_read_limit)) &&
	       pyndx_put(dict, "device_state", PyUnicode_FromString(info->device_state)) &&
	       pyndx_put(dict, "device_qp", PyLong_FromUnsignedLong(info->device_qp)) &&
	       pyndx_put(dict, "mtu", PyLong_FromUnsignedLong(info->mtu));
}

static PyObject *pair_query(PyObject *self, PyObject *unused)
{
	struct ndx_qp_info info = {.size = sizeof(info)};
	struct ndx_qp_attr attr = {.size = sizeof(attr)};
	enum ndx_status st;
	PyObject *dict;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_qp_query(((struct object *)self)->handle, &attr, &info);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	dict = PyDict_New();
	if (dict != NULL && put_info(dict, &info) && put_attr(dict, &attr))
		return dict;
	Py_XDECREF(dict);
	return NULL;
}

static int pair_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyObject *const objects[] = {as_pair(self)->receive_cq, as_pair(self)->initiator_cq,
	                             as_pair(self)->context, as_pair(self)->srq};

	return pyndx_visit(self, objects, 4, visit, arg);
}

static int pair_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef pair_methods[] = {
	{"send", (PyCFunction)(void (*)(void))pair_send, METH_VARARGS | METH_KEYWORDS, send_doc},
	{"receive", (PyCFunction)(void (*)(void))pair_receive, METH_VARARGS | METH_KEYWORDS,
         receive_doc},
	{"read", (PyCFunction)(void (*)(void))pair_read, METH_VARARGS | METH_KEYWORDS, read_doc},
	{"write", (PyCFunction)(void (*)(void))pair_write, METH_VARARGS | METH_KEYWORDS, write_doc},
	{"flush", pair_flush, METH_NOARGS,
         "flush(): cancel all requests; their results can be taken when the call returns. This "
         "aborts a connection."},
	{"query", pair_query, METH_NOARGS,
         "query() -> dict: state, limits as granted, addresses, requests in flight, and the latest "
         "failure."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot pair_slots[] = {
	{Py_tp_new, pair_new},
	{Py_tp_methods, pair_methods},
	{Py_tp_traverse, pair_traverse},
	{Py_tp_clear, pair_clear},
	{Py_tp_doc,
         "QueuePair(adapter, receive_cq, initiator_cq=None, *, receive_depth=64, "
         "initiator_depth=64, max_receive_sge=1, max_initiator_sge=1, inline_size=0, "
         "no_receive_timeout_ms=4000, keepalive_ms=30000, rnr_timer=..., context=None, "
         "srq=None)\n\n"
         "Results of receives go to receive_cq, all others to initiator_cq (default: the same). "
         "Each result has `context` as `queue_pair`. With a SharedReceiveQueue as srq, receives "
         "are "
         "posted there. close() of a connected queue pair "
         "disconnects."},
	{0, NULL},
};

static PyType_Spec pair_spec = {
	.name = "ndx._ndx.QueuePair",
	.basicsize = sizeof(struct pair),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = pair_slots,
};

int pyndx_add_pairs(PyObject *module)
{
	return pyndx_add_type(module, &pair_spec, pyndx.object_type, &pyndx.pair_type);
}
