/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues; posting is in post.c. */
#include "post.h"

static struct shared *as_shared(PyObject *self)
{
	return (struct shared *)self;
}

static struct ndx_srq *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_srq_close(self->handle);
}

static void drop(struct object *self)
{
	struct shared *shared = (struct shared *)self;

	/* Otherwise the last of those completion queues does that. */
	while (shared->result_queues == 0 && shared->queue.requests != NULL)
		request_free(shared->queue.requests);
}

static const struct kind shared_kind = {
	.name = "shared receive queue",
	.rank = RANK_QUEUE,
	.close = close_handle,
	.drop = drop,
};

static enum ndx_status create(struct ndx_adapter *adapter, const void *attr, void **out)
{
	struct ndx_srq *handle = NULL;
	enum ndx_status st = ndx_srq_create(adapter, attr, &handle);

	*out = handle;
	return st;
}

static PyObject *shared_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", "depth", "max_sge", "threshold", NULL};
	struct ndx_srq_attr attr;
	PyObject *adapter;

	ndx_srq_attr_init(&attr);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&$O&O&:SharedReceiveQueue", names,
	                                 &adapter, pyndx_u32, &attr.depth, pyndx_u32, &attr.max_sge,
	                                 pyndx_u32, &attr.threshold))
		return NULL;
	return object_new_on(type, &shared_kind, adapter, create, &attr);
}

static PyObject *shared_modify(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"depth", "threshold", NULL};
	uint32_t depth = 0, threshold = 0;
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O&O&:modify", names, pyndx_u32, &depth,
	                                 pyndx_u32, &threshold) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_srq_modify(handle_of(self), depth, threshold);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static enum ndx_status notify(void *handle, struct ndx_overlapped *ov)
{
	return ndx_srq_notify(handle, ov);
}

static PyObject *shared_start_notify(PyObject *self, PyObject *port)
{
	return object_start(self, port, notify, "notify");
}

static enum ndx_status cancel(void *handle)
{
	return ndx_srq_cancel(handle);
}

static PyObject *shared_cancel(PyObject *self, PyObject *unused)
{
	(void)unused;
	return object_call(self, cancel);
}

static int shared_traverse(PyObject *self, visitproc visit, void *arg)
{
	int rc = pyndx_visit(self, NULL, 0, visit, arg);

	return rc != 0 ? rc : requests_visit(as_shared(self)->queue.requests, visit, arg);
}

static int shared_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef shared_methods[] = {
	{"receive", (PyCFunction)(void (*)(void))shared_receive, METH_VARARGS | METH_KEYWORDS,
         shared_receive_doc},
	{"modify", (PyCFunction)(void (*)(void))shared_modify, METH_VARARGS | METH_KEYWORDS,
         "modify(*, depth=0, threshold=0): 0 leaves a value as it is. Raises InvalidParameterError "
         "(above the adapter's limit), Error with BUFFER_OVERFLOW (more receives are posted)."},
	{"_start_notify", shared_start_notify, METH_O, NULL},
	{"cancel", shared_cancel, METH_NOARGS, "cancel(): end the waits of wait_low()."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot shared_slots[] = {
	{Py_tp_new, shared_new},
	{Py_tp_methods, shared_methods},
	{Py_tp_traverse, shared_traverse},
	{Py_tp_clear, shared_clear},
	{Py_tp_doc, "Base of ndx.SharedReceiveQueue."},
	{0, NULL},
};

static PyType_Spec shared_spec = {
	.name = "ndx._ndx.SharedReceiveQueue",
	.basicsize = sizeof(struct shared),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = shared_slots,
};

int pyndx_add_shared(PyObject *module)
{
	return pyndx_add_type(module, &shared_spec, pyndx.object_type, &pyndx.shared_type);
}
