/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The skeleton of a Python extension on the public API, to see that the API carries one: objects
 * that keep each other alive, memory that Python lends as buffers, waiting without the interpreter
 * lock and with Ctrl-C, results that bring Python objects back, descriptors for an event loop.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <arpa/inet.h>
#include <stdbool.h>

#include <ndx/ndx.h>

/* How long a wait goes on before it looks whether Ctrl-C was pressed. */
#define SLICE_MS 100u

struct state {
	PyObject *error;
};

struct py_adapter {
	PyObject ob_base;
	struct ndx_adapter *handle;
};

/** A posted request: what it needs stays alive until its result was taken. */
struct request {
	struct request *next, **link;
	PyObject *region, *context;
};

struct py_cq {
	PyObject ob_base;
	struct ndx_cq *handle;
	struct request *requests;
};

struct py_mr {
	PyObject ob_base;
	struct ndx_mr *handle;
	Py_buffer buffer;
};

struct py_qp {
	PyObject ob_base;
	struct ndx_qp *handle;
	PyObject *cq;
};

struct py_connector {
	PyObject ob_base;
	struct ndx_connector *handle;
	PyObject *qp;
};

static PyObject *raise_status(PyObject *self, enum ndx_status status, const char *cause)
{
	struct state *state = PyType_GetModuleState(Py_TYPE(self));
	PyObject *arguments = Py_BuildValue("(iss)", (int)status, ndx_status_name(status),
	                                    cause[0] != '\0' ? cause : ndx_status_text(status));

	if (arguments != NULL) {
		PyErr_SetObject(state->error, arguments);
		Py_DECREF(arguments);
	}
	return NULL;
}

/* For a call that has just failed on this thread. */
static PyObject *raise_last(PyObject *self, enum ndx_status status)
{
	return raise_status(self, status, ndx_last_error());
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	type->tp_free(self);
	Py_DECREF(type);
}

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
	raise_last(&self->ob_base, st);
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
	dealloc(self);
}

static PyObject *adapter_query(PyObject *self, PyObject *unused)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	enum ndx_status st = ndx_adapter_query(((struct py_adapter *)self)->handle, &info);

	(void)unused;
	if (st != NDX_OK)
		return raise_last(self, st);
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
	st = ndx_cq_create(adapter->handle, depth, 0, 0, &self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

/* A new request on the list of its queue, which is where it ends if nobody takes its result. */
static struct request *request_new(struct py_cq *cq, PyObject *region, PyObject *context)
{
	struct request *r = PyMem_Malloc(sizeof(*r));

	if (r == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	Py_INCREF(region);
	Py_INCREF(context);
	r->region = region;
	r->context = context;
	r->next = cq->requests;
	r->link = &cq->requests;
	if (r->next != NULL)
		r->next->link = &r->next;
	cq->requests = r;
	return r;
}

static void request_free(struct request *r)
{
	*r->link = r->next;
	if (r->next != NULL)
		r->next->link = r->link;
	Py_DECREF(r->region);
	Py_DECREF(r->context);
	PyMem_Free(r);
}

static void cq_dealloc(PyObject *self)
{
	struct py_cq *cq = (struct py_cq *)self;

	/* All queue pairs on it are closed: they hold us. No device touches a request any more. */
	Py_BEGIN_ALLOW_THREADS;
	ndx_cq_close(cq->handle);
	Py_END_ALLOW_THREADS;
	while (cq->requests != NULL)
		request_free(cq->requests);
	dealloc(self);
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
		request_free(r);
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
			return raise_last(self, st);
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
	return st == NDX_OK ? PyLong_FromLong(fd) : raise_last(self, st);
}

static PyObject *cq_arm(PyObject *self, PyObject *unused)
{
	enum ndx_status st;

	(void)unused;
	st = ndx_cq_notify(((struct py_cq *)self)->handle, NDX_CQ_NOTIFY_ANY, NULL);
	if (st != NDX_OK)
		return raise_last(self, st);
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
	raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void mr_dealloc(PyObject *self)
{
	struct py_mr *mr = (struct py_mr *)self;

	/* When close returns nobody reaches the memory any more: it may go back. */
	Py_BEGIN_ALLOW_THREADS;
	ndx_mr_close(mr->handle);
	Py_END_ALLOW_THREADS;
	if (mr->buffer.obj != NULL)
		PyBuffer_Release(&mr->buffer);
	dealloc(self);
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

/* ---- queue pair ---- */

static PyObject *qp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct py_adapter *adapter;
	struct ndx_qp_attr attr;
	struct py_qp *self;
	PyObject *cq;
	enum ndx_status st;

	(void)kwargs;
	ndx_qp_attr_init(&attr);
	if (!PyArg_ParseTuple(args, "OO|II", &adapter, &cq, &attr.receive_depth,
	                      &attr.initiator_depth))
		return NULL;
	self = (struct py_qp *)type->tp_alloc(type, 0);
	if (self == NULL)
		return NULL;
	attr.receive_cq = attr.initiator_cq = ((struct py_cq *)cq)->handle;
	st = ndx_qp_create(adapter->handle, &attr, &self->handle);
	if (st == NDX_OK) {
		Py_INCREF(cq);
		self->cq = cq;
		return &self->ob_base;
	}
	raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void qp_dealloc(PyObject *self)
{
	struct py_qp *qp = (struct py_qp *)self;

	Py_BEGIN_ALLOW_THREADS;
	ndx_qp_close(qp->handle);
	Py_END_ALLOW_THREADS;
	Py_XDECREF(qp->cq);
	dealloc(self);
}

/* send(region, offset, length, context) and receive() alike. */
static PyObject *post(PyObject *self, PyObject *args, bool send)
{
	struct py_qp *qp = (struct py_qp *)self;
	Py_ssize_t offset, length;
	struct request *request;
	PyObject *region, *context;
	struct ndx_sge sge;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OnnO", &region, &offset, &length, &context))
		return NULL;
	if (offset < 0 || length < 0 || length > (Py_ssize_t)UINT32_MAX ||
	    offset > ((struct py_mr *)region)->buffer.len - length)
		return raise_status(self, NDX_E_INVALID_PARAMETER, "outside the region");
	request = request_new((struct py_cq *)qp->cq, region, context);
	if (request == NULL)
		return NULL;
	sge.buffer = (char *)((struct py_mr *)region)->buffer.buf + offset;
	sge.length = (uint32_t)length;
	sge.token = ndx_mr_get_local_token(((struct py_mr *)region)->handle);
	st = send ? ndx_qp_send(qp->handle, request, &sge, 1, 0)
	          : ndx_qp_receive(qp->handle, request, &sge, 1);
	if (st == NDX_OK)
		Py_RETURN_NONE;
	request_free(request);
	return raise_status(self, st, "");
}

static PyObject *qp_send(PyObject *self, PyObject *args)
{
	return post(self, args, true);
}

static PyObject *qp_receive(PyObject *self, PyObject *args)
{
	return post(self, args, false);
}

static PyMethodDef qp_methods[] = {
	{"send", qp_send, METH_VARARGS, "send(region, offset, length, context)"},
	{"receive", qp_receive, METH_VARARGS, "receive(region, offset, length, context)"},
	{NULL, NULL, 0, NULL},
};

/* ---- connector ---- */

static PyObject *connector_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct py_adapter *adapter;
	struct py_connector *self;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "O", &adapter))
		return NULL;
	self = (struct py_connector *)type->tp_alloc(type, 0);
	if (self == NULL)
		return NULL;
	st = ndx_connector_create(adapter->handle, NULL, &self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	raise_last(&self->ob_base, st);
	Py_DECREF(self);
	return NULL;
}

static void connector_dealloc(PyObject *self)
{
	struct py_connector *connector = (struct py_connector *)self;

	Py_BEGIN_ALLOW_THREADS;
	ndx_connector_close(connector->handle);
	Py_END_ALLOW_THREADS;
	Py_XDECREF(connector->qp);
	dealloc(self);
}

/* Wait for what was started on the connector; Ctrl-C cancels it. `ov` is on the caller's stack. */
static PyObject *finish(PyObject *self, enum ndx_status st, struct ndx_overlapped *ov)
{
	struct ndx_connector *handle = ((struct py_connector *)self)->handle;

	if (st != NDX_PENDING)
		return raise_last(self, st);
	for (;;) {
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_overlapped_wait(ov, SLICE_MS);
		Py_END_ALLOW_THREADS;
		if (st == NDX_OK)
			Py_RETURN_NONE;
		if (st != NDX_PENDING)
			return raise_status(self, st, "");
		if (PyErr_CheckSignals() != 0) {
			Py_BEGIN_ALLOW_THREADS;
			(void)ndx_connector_cancel(handle);
			Py_END_ALLOW_THREADS;
			return NULL;
		}
	}
}

static PyObject *connector_connect(PyObject *self, PyObject *args)
{
	struct py_connector *connector = (struct py_connector *)self;
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct ndx_overlapped ov;
	unsigned short port;
	const char *host;
	PyObject *qp, *connected;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OsH", &qp, &host, &port))
		return NULL;
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		return raise_status(self, NDX_E_INVALID_PARAMETER, "no IPv4 address");
	to.sin_port = htons(port);
	Py_INCREF(qp);
	Py_XSETREF(connector->qp, qp);
	ndx_overlapped_init(&ov);
	st = ndx_connector_connect(connector->handle, ((struct py_qp *)qp)->handle,
	                           (struct sockaddr *)&to, sizeof(to), 0, 0, NULL, 0, &ov);
	connected = finish(self, st, &ov);
	if (connected == NULL)
		return NULL;
	Py_DECREF(connected);
	ndx_overlapped_init(&ov);
	st = ndx_connector_complete_connect(connector->handle, &ov);
	return finish(self, st, &ov);
}

static PyObject *connector_disconnect(PyObject *self, PyObject *unused)
{
	struct ndx_overlapped ov;

	(void)unused;
	ndx_overlapped_init(&ov);
	return finish(self, ndx_connector_disconnect(((struct py_connector *)self)->handle, &ov),
	              &ov);
}

static PyObject *connector_reason(PyObject *self, PyObject *unused)
{
	struct ndx_connector *handle = ((struct py_connector *)self)->handle;

	(void)unused;
	return PyUnicode_FromString(
		ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(handle)));
}

static PyMethodDef connector_methods[] = {
	{"connect", connector_connect, METH_VARARGS, "connect(qp, host, port)"},
	{"disconnect", connector_disconnect, METH_NOARGS, "Say goodbye, wait for the peer's."},
	{"reason", connector_reason, METH_NOARGS, "How the connection ended so far."},
	{NULL, NULL, 0, NULL},
};

/* ---- module ---- */

static int add_type(PyObject *module, const char *name, size_t size, newfunc make,
                    destructor destroy, PyMethodDef *methods)
{
	PyType_Slot slots[] = {
		{Py_tp_new, (void *)make},
		{Py_tp_dealloc, (void *)destroy},
		{Py_tp_methods, methods},
		{0, NULL},
	};
	PyType_Spec spec = {
		.name = name,
		.basicsize = (int)size,
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};
	PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
	int rc;

	if (type == NULL)
		return -1;
	rc = PyModule_AddType(module, (PyTypeObject *)type);
	Py_DECREF(type);
	return rc;
}

static int module_exec(PyObject *module)
{
	struct state *state = PyModule_GetState(module);

	state->error = PyErr_NewException("ndx.Error", NULL, NULL);
	if (state->error == NULL || PyModule_AddObjectRef(module, "Error", state->error) != 0)
		return -1;
	if (add_type(module, "ndx.Adapter", sizeof(struct py_adapter), adapter_new, adapter_dealloc,
	             adapter_methods) != 0 ||
	    add_type(module, "ndx.CompletionQueue", sizeof(struct py_cq), cq_new, cq_dealloc,
	             cq_methods) != 0 ||
	    add_type(module, "ndx.MemoryRegion", sizeof(struct py_mr), mr_new, mr_dealloc,
	             mr_methods) != 0)
		return -1;
	if (add_type(module, "ndx.QueuePair", sizeof(struct py_qp), qp_new, qp_dealloc,
	             qp_methods) != 0)
		return -1;
	return add_type(module, "ndx.Connector", sizeof(struct py_connector), connector_new,
	                connector_dealloc, connector_methods);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	Py_VISIT(((struct state *)PyModule_GetState(module))->error);
	return 0;
}

static int module_clear(PyObject *module)
{
	Py_CLEAR(((struct state *)PyModule_GetState(module))->error);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, (void *)module_exec},
	{0, NULL},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "ndx",
	.m_doc = "The NetworkDirect object model.",
	.m_size = sizeof(struct state),
	.m_slots = module_slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
};

PyMODINIT_FUNC PyInit_ndx(void);
PyMODINIT_FUNC PyInit_ndx(void)
{
	return PyModuleDef_Init(&module);
}
