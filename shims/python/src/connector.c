/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors: operations are started here, and waited for in Python (ndx/_connection.py,
 * ndx/aio.py). */
#include "pyndx.h"

#include <stdlib.h>

#define MAX_PRIVATE_DATA 1024

static struct connector *as_connector(PyObject *self)
{
	return (struct connector *)self;
}

static struct ndx_connector *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_connector_close(self->handle);
}

static void drop(struct object *self)
{
	Py_CLEAR(((struct connector *)self)->qp);
}

static const struct kind connector_kind = {
	.name = "connector",
	.rank = RANK_CONNECTION,
	.close = close_handle,
	.drop = drop,
};

static enum ndx_status create(struct ndx_adapter *adapter, const void *attr, void **out)
{
	struct ndx_connector *handle = NULL;
	enum ndx_status st = ndx_connector_create(adapter, attr, &handle);

	*out = handle;
	return st;
}

static PyObject *connector_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {
		"adapter", "drain_timeout_ms", "disconnect_timeout_ms", "connect_timeout_ms", "psn",
		NULL};
	struct ndx_connector_attr attr;
	PyObject *adapter;

	ndx_connector_attr_init(&attr);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O&O&O&O&:Connector", names, &adapter,
	                                 pyndx_u32, &attr.drain_timeout_ms, pyndx_u32,
	                                 &attr.disconnect_timeout_ms, pyndx_u32,
	                                 &attr.connect_timeout_ms, pyndx_u32, &attr.psn))
		return NULL;
	return object_new_on(type, &connector_kind, adapter, create, &attr);
}

static PyObject *connector_bind(PyObject *self, PyObject *address)
{
	struct sockaddr_storage local;
	enum ndx_status st;
	socklen_t length;

	if (!pyndx_address(address, &local, &length) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_connector_bind(handle_of(self), (struct sockaddr *)&local, length);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static void hold_qp(struct connector *self, PyObject *qp)
{
	PyObject *before = self->qp;

	Py_INCREF(qp);
	self->qp = qp;
	Py_XDECREF(before);
}

/* _start_connect(qp, destination, private_data, inbound, outbound, port); destination None: accept
 */
static PyObject *connector_start_connect(PyObject *self, PyObject *args)
{
	struct object *both[2];
	struct ndx_connect_attr attr;
	struct sockaddr_storage address;
	struct operation *op = NULL;
	PyObject *destination;
	PyObject *result = NULL;
	PyObject *port;
	PyObject *qp;
	Py_buffer data;
	socklen_t length = 0;
	enum ndx_status st;

	ndx_connect_attr_init(&attr);
	if (!PyArg_ParseTuple(args, "OOy*O&O&O", &qp, &destination, &data, pyndx_u32,
	                      &attr.inbound_read_limit, pyndx_u32, &attr.outbound_read_limit,
	                      &port))
		return NULL;
	attr.private_data = data.buf;
	attr.private_data_len = (size_t)data.len;
	both[0] = (struct object *)self;
	both[1] = (struct object *)qp;
	if (!pyndx_is(qp, pyndx.pair_type, "qp") ||
	    (destination != Py_None && !pyndx_address(destination, &address, &length)) ||
	    !objects_enter(both, 2))
		goto release;
	op = operation_new(port, destination == Py_None ? "accept" : "connect");
	if (op == NULL)
		goto leave;
	hold_qp(as_connector(self), qp);
	Py_BEGIN_ALLOW_THREADS;
	if (destination == Py_None)
		st = ndx_connector_accept(handle_of(self), ((struct object *)qp)->handle, &attr,
		                          &op->ov);
	else
		st = ndx_connector_connect(handle_of(self), ((struct object *)qp)->handle,
		                           (struct sockaddr *)&address, length, &attr, &op->ov);
	Py_END_ALLOW_THREADS;
	result = operation_started(op, (struct object *)self, NULL, st);
leave:
	objects_leave(both, 2);
release:
	PyBuffer_Release(&data);
	return result;
}

static enum ndx_status complete(void *handle, struct ndx_overlapped *ov)
{
	return ndx_connector_complete_connect(handle, ov);
}

static enum ndx_status disconnect(void *handle, struct ndx_overlapped *ov)
{
	return ndx_connector_disconnect(handle, ov);
}

static enum ndx_status notify(void *handle, struct ndx_overlapped *ov)
{
	return ndx_connector_notify_disconnect(handle, ov);
}

static PyObject *connector_start_complete(PyObject *self, PyObject *port)
{
	return object_start(self, port, complete, "complete_connect");
}

static PyObject *connector_start_disconnect(PyObject *self, PyObject *port)
{
	return object_start(self, port, disconnect, "disconnect");
}

static PyObject *connector_start_notify(PyObject *self, PyObject *port)
{
	return object_start(self, port, notify, "notify_disconnect");
}

static enum ndx_status cancel(void *handle)
{
	return ndx_connector_cancel(handle);
}

static PyObject *connector_cancel(PyObject *self, PyObject *unused)
{
	(void)unused;
	return object_call(self, cancel);
}

static PyObject *connector_reject(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"private_data", NULL};
	Py_buffer data = {.buf = NULL};
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|y*:reject", names, &data))
		return NULL;
	if (!object_enter((struct object *)self)) {
		if (data.obj != NULL)
			PyBuffer_Release(&data);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_connector_reject(handle_of(self), data.buf, (size_t)data.len);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (data.obj != NULL)
		PyBuffer_Release(&data);
	return pyndx_done(st);
}

/* ---- properties ---- */

static PyObject *connector_private_data(PyObject *self, void *unused)
{
	char data[MAX_PRIVATE_DATA];
	size_t length = sizeof(data);
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_connector_get_private_data(handle_of(self), data, &length);
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return PyBytes_FromStringAndSize(data, (Py_ssize_t)length);
}

static PyObject *connector_read_limits(PyObject *self, void *unused)
{
	uint32_t outbound;
	uint32_t inbound;
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_connector_get_read_limits(handle_of(self), &inbound, &outbound);
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("(II)", inbound, outbound);
}

static PyObject *address_by(PyObject *self,
                            enum ndx_status (*get)(struct ndx_connector *connector,
                                                   struct sockaddr *address, socklen_t *length))
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	enum ndx_status st;

	if (!object_enter((struct object *)self))
		return NULL;
	st = get(handle_of(self), (struct sockaddr *)&address, &length);
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_from_address(&address) : pyndx_raise_last(st);
}

static PyObject *connector_local_address(PyObject *self, void *unused)
{
	(void)unused;
	return address_by(self, ndx_connector_get_local_address);
}

static PyObject *connector_peer_address(PyObject *self, void *unused)
{
	(void)unused;
	return address_by(self, ndx_connector_get_peer_address);
}

static PyObject *connector_reason(PyObject *self, void *unused)
{
	enum ndx_disconnect_reason reason;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	reason = ndx_connector_get_disconnect_reason(handle_of(self));
	object_leave((struct object *)self);
	return pyndx_enum(PYTHON_REASON, reason);
}

static PyObject *connector_error_text(PyObject *self, void *unused)
{
	char text[512]; /* always suffices */
	size_t length = sizeof(text);
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_connector_get_error_text(handle_of(self), text, &length);
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return pyndx_text(text);
}

static PyObject *connector_qp(PyObject *self, void *unused)
{
	PyObject *qp = as_connector(self)->qp;

	(void)unused;
	if (qp == NULL)
		Py_RETURN_NONE;
	Py_INCREF(qp);
	return qp;
}

static int connector_traverse(PyObject *self, visitproc visit, void *arg)
{
	return pyndx_visit(self, &as_connector(self)->qp, 1, visit, arg);
}

static int connector_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef connector_methods[] = {
	{"bind", connector_bind, METH_O, "bind(address): use this local address for connect()."},
	{"_start_connect", connector_start_connect, METH_VARARGS, NULL},
	{"_start_complete", connector_start_complete, METH_O, NULL},
	{"_start_disconnect", connector_start_disconnect, METH_O, NULL},
	{"_start_notify", connector_start_notify, METH_O, NULL},
	{"cancel", connector_cancel, METH_NOARGS,
         "cancel(): operations in flight complete with CANCELED before the call returns."},
	{"reject", (PyCFunction)(void (*)(void))connector_reject, METH_VARARGS | METH_KEYWORDS,
         "reject(private_data=b\"\"): refuse the request of a listener, or the accepted connect."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef connector_getset[] = {
	{"private_data", connector_private_data, NULL,
         "The bytes that the peer sent with its connect, accept or reject.", NULL},
	{"read_limits", connector_read_limits, NULL, "(inbound, outbound), as agreed.", NULL},
	{"local_address", connector_local_address, NULL, "As the module socket has it.", NULL},
	{"peer_address", connector_peer_address, NULL, "As the module socket has it.", NULL},
	{"disconnect_reason", connector_reason, NULL,
         "ndx.DisconnectReason; NONE: still connected.", NULL},
	{"error_text", connector_error_text, NULL,
         "Why the connector failed, or how its connection ended; \"\": neither happened.", NULL},
	{"qp", connector_qp, NULL, "The queue pair of the latest attempt, or None.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot connector_slots[] = {
	{Py_tp_new, connector_new},
	{Py_tp_methods, connector_methods},
	{Py_tp_getset, connector_getset},
	{Py_tp_traverse, connector_traverse},
	{Py_tp_clear, connector_clear},
	{Py_tp_doc, "Base of ndx.Connector and ndx.aio.Connector."},
	{0, NULL},
};

static PyType_Spec connector_spec = {
	.name = "ndx._ndx.Connector",
	.basicsize = sizeof(struct connector),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = connector_slots,
};

int pyndx_add_connectors(PyObject *module)
{
	return pyndx_add_type(module, &connector_spec, pyndx.object_type, &pyndx.connector_type);
}
