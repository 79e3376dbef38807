/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. */
#include "pyndx.h"

static struct ndx_listener *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_listener_close(self->handle);
}

static const struct kind listener_kind = {
	.name = "listener",
	.rank = RANK_CONNECTION,
	.close = close_handle,
};

static PyObject *listener_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", "address", "backlog", NULL};
	struct ndx_listener *handle = NULL;
	struct sockaddr_storage local;
	struct object *self;
	PyObject *adapter;
	PyObject *address;
	socklen_t length;
	unsigned backlog = 0;
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O&:Listener", names, &adapter, &address,
	                                 pyndx_u32, &backlog) ||
	    !pyndx_is(adapter, pyndx.adapter_type, "adapter") ||
	    !pyndx_address(address, &local, &length))
		return NULL;
	self = object_new(type, &listener_kind);
	if (self == NULL || !object_enter((struct object *)adapter)) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_listen_on(((struct object *)adapter)->handle, (struct sockaddr *)&local, length,
	                   backlog, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(self, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave((struct object *)adapter);
	if (st == NDX_OK)
		return &self->ob_base;
	Py_DECREF(&self->ob_base);
	return NULL;
}

/* _start_request(connector, port) */
static PyObject *listener_start_request(PyObject *self, PyObject *args)
{
	struct operation *op;
	PyObject *result = NULL;
	PyObject *connector;
	PyObject *port;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OO", &connector, &port) ||
	    !pyndx_is(connector, pyndx.connector_type, "connector") ||
	    !object_enter((struct object *)self))
		return NULL;
	if (!object_enter((struct object *)connector)) {
		object_leave((struct object *)self);
		return NULL;
	}
	op = operation_new(port, "get_connection_request");
	if (op != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_listener_get_connection_request(
			handle_of(self), ((struct object *)connector)->handle, &op->ov);
		Py_END_ALLOW_THREADS;
		/* The close of either of the two completes the operation. */
		result = operation_started(op, (struct object *)self, connector, st);
	}
	object_leave((struct object *)connector);
	object_leave((struct object *)self);
	return result;
}

static PyObject *listener_cancel(PyObject *self, PyObject *unused)
{
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_listener_cancel(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *listener_address(PyObject *self, void *unused)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_listener_get_local_address(handle_of(self), (struct sockaddr *)&address, &length);
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_from_address(&address) : pyndx_raise_last(st);
}

static PyMethodDef listener_methods[] = {
	{"_start_request", listener_start_request, METH_VARARGS, NULL},
	{"cancel", listener_cancel, METH_NOARGS,
         "cancel(): operations in flight complete with CANCELED before the call returns."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef listener_getset[] = {
	{"address", listener_address, NULL, "Where the listener listens, with the port.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot listener_slots[] = {
	{Py_tp_new, listener_new},
	{Py_tp_methods, listener_methods},
	{Py_tp_getset, listener_getset},
	{Py_tp_doc, "Base of ndx.Listener and ndx.aio.Listener."},
	{0, NULL},
};

static PyType_Spec listener_spec = {
	.name = "ndx._ndx.Listener",
	.basicsize = sizeof(struct listener),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = listener_slots,
};

int pyndx_add_listeners(PyObject *module)
{
	return pyndx_add_type(module, &listener_spec, pyndx.object_type, &pyndx.listener_type);
}
