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

struct where {
	struct sockaddr_storage local;
	socklen_t length;
	uint32_t backlog;
};

static enum ndx_status listen_on(struct ndx_adapter *adapter, const void *attr, void **out)
{
	const struct where *where = attr;
	struct ndx_listener *handle = NULL;
	enum ndx_status st = ndx_listen_on(adapter, (const struct sockaddr *)&where->local,
	                                   where->length, where->backlog, &handle);

	*out = handle;
	return st;
}

static PyObject *listener_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", "address", "backlog", NULL};
	struct where where = {.backlog = 0};
	PyObject *adapter;
	PyObject *address;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O&:Listener", names, &adapter, &address,
	                                 pyndx_u32, &where.backlog) ||
	    !pyndx_address(address, &where.local, &where.length))
		return NULL;
	return object_new_on(type, &listener_kind, adapter, listen_on, &where);
}

/* _start_request(connector, port) */
static PyObject *listener_start_request(PyObject *self, PyObject *args)
{
	struct object *both[2];
	struct operation *op;
	PyObject *result = NULL;
	PyObject *connector;
	PyObject *port;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OO", &connector, &port) ||
	    !pyndx_is(connector, pyndx.connector_type, "connector"))
		return NULL;
	both[0] = (struct object *)self;
	both[1] = (struct object *)connector;
	if (!objects_enter(both, 2))
		return NULL;
	op = operation_new(port, "get_connection_request");
	if (op != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_listener_get_connection_request(
			handle_of(self), ((struct object *)connector)->handle, &op->ov);
		Py_END_ALLOW_THREADS;
		/* The close of either of the two completes the operation. */
		result = operation_started(op, (struct object *)self, connector, st);
	}
	objects_leave(both, 2);
	return result;
}

static enum ndx_status cancel(void *handle)
{
	return ndx_listener_cancel(handle);
}

static PyObject *listener_cancel(PyObject *self, PyObject *unused)
{
	(void)unused;
	return object_call(self, cancel);
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
