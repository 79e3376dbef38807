/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair, connector. */
#include <arpa/inet.h>
#include <stdbool.h>

#include "py_ndx.h"

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
	py_raise_last(&self->ob_base, st);
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
	py_free(self);
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
		return py_raise(self, NDX_E_INVALID_PARAMETER, "outside the region");
	request = py_request_new((struct py_cq *)qp->cq, region, context);
	if (request == NULL)
		return NULL;
	sge.buffer = (char *)((struct py_mr *)region)->buffer.buf + offset;
	sge.length = (uint32_t)length;
	sge.token = ndx_mr_get_local_token(((struct py_mr *)region)->handle);
	st = send ? ndx_qp_send(qp->handle, request, &sge, 1, 0)
	          : ndx_qp_receive(qp->handle, request, &sge, 1);
	if (st == NDX_OK)
		Py_RETURN_NONE;
	py_request_free(request);
	return py_raise(self, st, "");
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
	py_raise_last(&self->ob_base, st);
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
	py_free(self);
}

/* Wait for what was started on the connector; Ctrl-C cancels it. `ov` is on the caller's stack. */
static PyObject *finish(PyObject *self, enum ndx_status st, struct ndx_overlapped *ov)
{
	struct ndx_connector *handle = ((struct py_connector *)self)->handle;

	if (st != NDX_PENDING)
		return py_raise_last(self, st);
	for (;;) {
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_overlapped_wait(ov, SLICE_MS);
		Py_END_ALLOW_THREADS;
		if (st == NDX_OK)
			Py_RETURN_NONE;
		if (st != NDX_PENDING)
			return py_raise(self, st, "");
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
		return py_raise(self, NDX_E_INVALID_PARAMETER, "no IPv4 address");
	to.sin_port = htons(port);
	Py_INCREF(qp);
	Py_XSETREF(connector->qp, qp);
	ndx_overlapped_init(&ov);
	st = ndx_connector_connect(connector->handle, ((struct py_qp *)qp)->handle,
	                           (struct sockaddr *)&to, sizeof(to), NULL, &ov);
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

int py_add_connection(PyObject *module)
{
	if (py_add_type(module, "ndx.QueuePair", sizeof(struct py_qp), qp_new, qp_dealloc,
	                qp_methods) != 0)
		return -1;
	return py_add_type(module, "ndx.Connector", sizeof(struct py_connector), connector_new,
	                   connector_dealloc, connector_methods);
}
