/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapter, completion queue, memory region. */
#include "py_ndx.h"

/* ---- adapter ---- */

static PyObject *adapter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct py_adapter *self;
	const char *uri = NULL;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "|z", &uri))
		return NULL;
	self = (struct py_adapter *)type->tp_alloc(type, 0);
	if (self == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_adapter_open(uri, &self->handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		return &self->ob_base;
	py_raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void adapter_dealloc(PyObject *self)
{
	struct ndx_adapter *handle = ((struct py_adapter *)self)->handle;

	/* The device goes with the last object made from it, so no child needs to hold us. */
	Py_BEGIN_ALLOW_THREADS;
	ndx_adapter_close(handle);
	Py_END_ALLOW_THREADS;
	py_free(self);
}

static PyObject *adapter_query(PyObject *self, PyObject *unused)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	enum ndx_status st = ndx_adapter_query(((struct py_adapter *)self)->handle, &info);

	(void)unused;
	if (st != NDX_OK)
		return py_raise_last(self, st);
	return Py_BuildValue("{s:s,s:s,s:K,s:I}", "uri", info.uri, "provider", info.provider,
	                     "capabilities", (unsigned long long)info.capabilities,
	                     "max_transfer_length", info.max_transfer_length);
}

static PyMethodDef adapter_methods[] = {
	{"query", adapter_query, METH_NOARGS, "Limits and capabilities."},
	{NULL, NULL, 0, NULL},
};

/* ---- completion queue ---- */

static PyObject *cq_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct py_adapter *adapter;
	struct py_cq *self;
	unsigned depth;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "OI", &adapter, &depth))
		return NULL;
	self = (struct py_cq *)type->tp_alloc(type, 0);
	if (self == NULL)
		return NULL;
	st = ndx_cq_create_depth(adapter->handle, depth, &self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	py_raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void cq_dealloc(PyObject *self)
{
	struct py_cq *cq = (struct py_cq *)self;

	/* All queue pairs on it are closed: they hold us. No device touches a request any more. */
	Py_BEGIN_ALLOW_THREADS;
	ndx_cq_close(cq->handle);
	Py_END_ALLOW_THREADS;
	while (cq->requests != NULL)
		py_request_free(cq->requests);
	py_free(self);
}

static PyObject *list_of(const struct ndx_result *results, size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; i < count; i++) {
		struct request *r = results[i].request_context;
		PyObject *item = NULL;

		if (list != NULL)
			item = Py_BuildValue("(iIOII)", (int)results[i].status,
			                     results[i].bytes_transferred, r->context,
			                     results[i].flags, results[i].immediate);
		py_request_free(r);
		if (item != NULL)
			PyList_SET_ITEM(list, (Py_ssize_t)i, item);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *cq_get_results(PyObject *self, PyObject *unused)
{
	struct ndx_result results[16];

	(void)unused;
	return list_of(results, ndx_cq_get_results(((struct py_cq *)self)->handle, results, 16));
}

/* Wait for results, in slices, so that signals are seen; an empty list when time is over. */
static PyObject *cq_wait(PyObject *self, PyObject *args)
{
	struct ndx_cq *handle = ((struct py_cq *)self)->handle;
	struct ndx_result results[16];
	unsigned left;
	size_t got = 0;

	if (!PyArg_ParseTuple(args, "I", &left))
		return NULL;
	for (;;) {
		unsigned slice = left < SLICE_MS ? left : SLICE_MS;
		enum ndx_status st;

		Py_BEGIN_ALLOW_THREADS;
		st = ndx_cq_wait_results(handle, results, 16, slice, &got);
		Py_END_ALLOW_THREADS;
		if (st != NDX_OK && st != NDX_PENDING)
			return py_raise_last(self, st);
		left -= left == NDX_INFINITE ? 0 : slice;
		if (st == NDX_OK || left == 0)
			return list_of(results, got);
		if (PyErr_CheckSignals() != 0)
			return NULL;
	}
}

/* For asyncio's add_reader(): arm() before every wait, get_results() until empty after it. */
static PyObject *cq_fileno(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	int fd;

	(void)unused;
	st = ndx_cq_get_fd(((struct py_cq *)self)->handle, &fd);
	return st == NDX_OK ? PyLong_FromLong(fd) : py_raise_last(self, st);
}

static PyObject *cq_arm(PyObject *self, PyObject *unused)
{
	enum ndx_status st;

	(void)unused;
	st = ndx_cq_notify(((struct py_cq *)self)->handle, NDX_CQ_NOTIFY_ANY, NULL);
	if (st != NDX_OK)
		return py_raise_last(self, st);
	Py_RETURN_NONE;
}

static PyMethodDef cq_methods[] = {
	{"get_results", cq_get_results, METH_NOARGS, "What is there; never blocks."},
	{"wait", cq_wait, METH_VARARGS, "As get_results, waiting up to so many milliseconds."},
	{"fileno", cq_fileno, METH_NOARGS, "Descriptor for select and asyncio."},
	{"arm", cq_arm, METH_NOARGS, "Make the descriptor readable with the next result."},
	{NULL, NULL, 0, NULL},
};

/* ---- memory region ---- */

static PyObject *mr_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct py_adapter *adapter;
	PyObject *object;
	struct py_mr *self;
	unsigned flags;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "OOI", &adapter, &object, &flags))
		return NULL;
	self = (struct py_mr *)type->tp_alloc(type, 0);
	if (self == NULL)
		return NULL;
	/* The exporter may not move or free the memory while we hold its buffer. */
	if (PyObject_GetBuffer(object, &self->buffer,
	                       (flags & NDX_MR_ALLOW_LOCAL_WRITE) != 0 ? PyBUF_WRITABLE
	                                                               : PyBUF_SIMPLE) != 0) {
		Py_DECREF(self);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_mr_register_new(adapter->handle, self->buffer.buf, (size_t)self->buffer.len, flags,
	                         &self->handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		return &self->ob_base;
	py_raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void mr_dealloc(PyObject *self)
{
	struct py_mr *mr = (struct py_mr *)self;

	/* When close returns, the memory is out of reach: it may go back. */
	Py_BEGIN_ALLOW_THREADS;
	ndx_mr_close(mr->handle);
	Py_END_ALLOW_THREADS;
	if (mr->buffer.obj != NULL)
		PyBuffer_Release(&mr->buffer);
	py_free(self);
}

static PyObject *mr_remote(PyObject *self, PyObject *unused)
{
	struct py_mr *mr = (struct py_mr *)self;

	(void)unused;
	return Py_BuildValue("(KI)", (unsigned long long)(uintptr_t)mr->buffer.buf,
	                     ndx_mr_get_remote_token(mr->handle));
}

static PyMethodDef mr_methods[] = {
	{"remote", mr_remote, METH_NOARGS, "Address and token for the peer."},
	{NULL, NULL, 0, NULL},
};

int py_add_memory(PyObject *module)
{
	if (py_add_type(module, "ndx.Adapter", sizeof(struct py_adapter), adapter_new,
	                adapter_dealloc, adapter_methods) != 0 ||
	    py_add_type(module, "ndx.CompletionQueue", sizeof(struct py_cq), cq_new, cq_dealloc,
	                cq_methods) != 0)
		return -1;
	return py_add_type(module, "ndx.MemoryRegion", sizeof(struct py_mr), mr_new, mr_dealloc,
	                   mr_methods);
}
