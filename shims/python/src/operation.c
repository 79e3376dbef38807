/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Overlapped operations and ports. While an operation is in flight, its object has a reference to
 * it, so that the library never completes freed memory; and so has the port until it has returned
 * the operation.
 */
#include "pyndx.h"

struct port {
	PyObject ob_base;
	struct ndx_port *handle;
	struct operation *queued;
};

/* ---- operation ---- */

static struct operation *as_operation(PyObject *self)
{
	return (struct operation *)self;
}

struct operation *operation_new(PyObject *port, const char *what)
{
	struct operation *op;

	if (port != Py_None && !PyList_Check(port) && !pyndx_is(port, pyndx.port_type, "port"))
		return NULL;
	op = (struct operation *)PyType_GenericAlloc(pyndx.operation_type, 0);
	if (op == NULL)
		return NULL;
	op->what = what;
	if (port == Py_None)
		return op;
	if (PyList_Check(port)) {
		/* Now, because after the start it could fail. */
		if (PyList_Append(port, &op->ob_base) != 0) {
			Py_DECREF(&op->ob_base);
			return NULL;
		}
		Py_INCREF(port);
		op->started = port;
		return op;
	}
	if (((struct port *)port)->handle == NULL) {
		Py_DECREF(&op->ob_base);
		(void)pyndx_raise_named("ClosedError", "the port is closed");
		return NULL;
	}
	Py_INCREF(port);
	op->port = port;
	op->ov.port = ((struct port *)port)->handle;
	return op;
}

/* The object no longer needs to hold the operation. */
static void leave_owner(struct operation *op)
{
	if (op->owner == NULL)
		return;
	*op->link = op->next;
	if (op->next != NULL)
		op->next->link = op->link;
	op->owner = NULL;
	Py_CLEAR(op->keep);
	Py_DECREF(&op->ob_base);
}

/* Forget the operations that have completed and that the program has not asked about. */
static void reap(struct object *owner)
{
	struct operation *op = owner->operations;

	while (op != NULL) {
		struct operation *next = op->next;

		if (op->port == NULL && ndx_overlapped_status(&op->ov) != NDX_PENDING) {
			leave_owner(op);
			next = owner->operations; /* what was dropped may have changed the list */
		}
		op = next;
	}
}

bool operation_pending(struct object *owner)
{
	reap(owner);
	for (struct operation *op = owner->operations; op != NULL; op = op->next)
		if (ndx_overlapped_status(&op->ov) == NDX_PENDING)
			return true;
	return false;
}

/* The list of the caller keeps the operation only if it was started. */
static void leave_list(struct operation *op, bool started)
{
	PyObject *list = op->started;

	op->started = NULL;
	if (list != NULL && !started && PyList_SetSlice(list, 0, PyList_Size(list), NULL) != 0)
		PyErr_Clear();
	Py_XDECREF(list);
}

PyObject *operation_started(struct operation *op, struct object *owner, PyObject *keep,
                            enum ndx_status status)
{
	leave_list(op, status == NDX_PENDING);
	if (status != NDX_PENDING) {
		Py_DECREF(&op->ob_base);
		/* No call of this module completes at once with NDX_OK. */
		return pyndx_raise_last(status);
	}
	reap(owner);
	op->owner = owner;
	op->next = owner->operations;
	op->link = &owner->operations;
	if (op->next != NULL)
		op->next->link = &op->next;
	owner->operations = op;
	Py_INCREF(&op->ob_base);
	Py_XINCREF(keep);
	op->keep = keep;
	if (op->port != NULL) {
		struct port *port = (struct port *)op->port;

		op->queued = true;
		op->next_queued = port->queued;
		op->link_queued = &port->queued;
		if (op->next_queued != NULL)
			op->next_queued->link_queued = &op->next_queued;
		port->queued = op;
		Py_INCREF(&op->ob_base);
	}
	return &op->ob_base;
}

void operation_end_all(struct object *owner)
{
	while (owner->operations != NULL)
		leave_owner(owner->operations);
}

/* The port has returned the operation, or is closed. */
static void leave_port(struct operation *op)
{
	if (!op->queued)
		return;
	*op->link_queued = op->next_queued;
	if (op->next_queued != NULL)
		op->next_queued->link_queued = op->link_queued;
	op->queued = false;
	Py_DECREF(&op->ob_base);
}

enum ndx_status operation_observe(struct operation *op)
{
	enum ndx_status st = NDX_PENDING;

	/* With a port the operation is complete when the port has returned it. */
	if (!op->queued)
		st = ndx_overlapped_status(&op->ov);
	if (st != NDX_PENDING)
		leave_owner(op);
	return st;
}

static PyObject *operation_wait(PyObject *self, PyObject *timeout)
{
	struct operation *op = as_operation(self);
	struct deadline deadline;
	enum ndx_status st = operation_observe(op);

	if (op->port != NULL && st == NDX_PENDING) {
		PyErr_SetString(PyExc_ValueError, "the operation has a port: take it from there");
		return NULL;
	}
	if (!pyndx_deadline(timeout, &deadline))
		return NULL;
	while (st == NDX_PENDING) {
		uint32_t slice = pyndx_slice(&deadline);

		if (pyndx.forked && !pyndx_usable())
			return NULL;
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_overlapped_wait(&op->ov, slice);
		Py_END_ALLOW_THREADS;
		if (st == NDX_E_WOULD_BLOCK)
			return pyndx_raise_last(st);
		if (PyErr_CheckSignals() != 0)
			return NULL;
		if (slice == 0)
			break;
	}
	return PyBool_FromLong(operation_observe(op) != NDX_PENDING);
}

static PyObject *operation_done(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyBool_FromLong(operation_observe(as_operation(self)) != NDX_PENDING);
}

static PyObject *operation_result(PyObject *self, PyObject *unused)
{
	struct operation *op = as_operation(self);
	enum ndx_status st = operation_observe(op);

	(void)unused;
	if (st == NDX_OK)
		return PyLong_FromUnsignedLong(op->ov.information);
	if (st == NDX_PENDING)
		return pyndx_raise(st, "the operation is in flight", 0);
	{
		char text[160];

		(void)snprintf(text, sizeof(text), "%s: %s", op->what, ndx_status_text(st));
		return pyndx_raise(st, text, op->ov.native);
	}
}

static PyObject *operation_status(PyObject *self, void *unused)
{
	(void)unused;
	return pyndx_status(operation_observe(as_operation(self)));
}

static PyObject *operation_native(PyObject *self, void *unused)
{
	struct operation *op = as_operation(self);

	(void)unused;
	return PyLong_FromLong(operation_observe(op) != NDX_PENDING ? op->ov.native : 0);
}

static int operation_traverse(PyObject *self, visitproc visit, void *arg)
{
	return pyndx_visit(self, &as_operation(self)->port, 1, visit, arg);
}

static int operation_clear(PyObject *self)
{
	/* The port drops its references itself: it must be closed before the operation is freed. */
	if (!as_operation(self)->queued)
		Py_CLEAR(as_operation(self)->port);
	return 0;
}

static void operation_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(self);
	Py_CLEAR(as_operation(self)->keep);
	Py_CLEAR(as_operation(self)->port);
	release(self);
	Py_DECREF(type);
}

static PyMethodDef operation_methods[] = {
	{"wait", operation_wait, METH_O,
         "wait(timeout) -> bool: wait up to so many seconds (None: no limit) for the completion; "
         "False when the time is over. Ctrl-C interrupts the wait, not the operation."},
	{"done", operation_done, METH_NOARGS, "Is the operation complete?"},
	{"result", operation_result, METH_NOARGS,
         "The additional result of the complete operation; raises its failure."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef operation_getset[] = {
	{"status", operation_status, NULL, "ndx.Status; PENDING while in flight.", NULL},
	{"native", operation_native, NULL, "errno or provider code of a failure; 0: none.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot operation_slots[] = {
	{Py_tp_dealloc, operation_dealloc},
	{Py_tp_traverse, operation_traverse},
	{Py_tp_clear, operation_clear},
	{Py_tp_methods, operation_methods},
	{Py_tp_getset, operation_getset},
	{Py_tp_doc, "An overlapped operation: started, and complete later."},
	{0, NULL},
};

static PyType_Spec operation_spec = {
	.name = "ndx._ndx.Operation",
	.basicsize = sizeof(struct operation),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = operation_slots,
};

/* ---- port ---- */

static struct port *as_port(PyObject *self)
{
	return (struct port *)self;
}

static PyObject *port_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct port *self;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "") || !pyndx_usable())
		return NULL;
	self = (struct port *)PyType_GenericAlloc(type, 0);
	if (self == NULL)
		return NULL;
	st = ndx_port_create(&self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	Py_DECREF(&self->ob_base);
	return pyndx_raise_last(st);
}

static PyObject *port_fileno(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromLong(ndx_port_get_fd(as_port(self)->handle));
}

static PyObject *port_get(PyObject *self, PyObject *unused)
{
	struct ndx_overlapped *ovs[64];
	PyObject *list;
	size_t count;

	(void)unused;
	if (pyndx.forked && !pyndx_usable())
		return NULL;
	list = PyList_New(0);
	if (list == NULL || as_port(self)->handle == NULL)
		return list;
	do {
		count = ndx_port_get(as_port(self)->handle, ovs, 64, 0);
		for (size_t i = 0; i < count; i++) {
			struct operation *op = (struct operation *)((char *)ovs[i] -
			                                            offsetof(struct operation, ov));

			Py_INCREF(&op->ob_base);
			leave_port(op);
			leave_owner(op);
			if (PyList_Append(list, &op->ob_base) != 0)
				PyErr_WriteUnraisable(self); /* it is out of the port already */
			Py_DECREF(&op->ob_base);
		}
	} while (count == 64);
	return list;
}

static int port_traverse(PyObject *self, visitproc visit, void *arg)
{
	int rc = pyndx_visit(self, NULL, 0, visit, arg);

	for (struct operation *op = as_port(self)->queued; rc == 0 && op != NULL;
	     op = op->next_queued)
		rc = visit(&op->ob_base, arg);
	return rc;
}

/* No operation is in flight: the objects of those would hold them, and so the port. */
static int port_clear(PyObject *self)
{
	struct port *port = as_port(self);

	if (port->handle != NULL && !pyndx.forked)
		ndx_port_close(port->handle);
	port->handle = NULL;
	while (port->queued != NULL)
		leave_port(port->queued);
	return 0;
}

static void port_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(self);
	(void)port_clear(self);
	release(self);
	Py_DECREF(type);
}

static PyMethodDef port_methods[] = {
	{"fileno", port_fileno, METH_NOARGS,
         "Descriptor that is readable while get() has operations; -1 when closed."},
	{"get", port_get, METH_NOARGS, "The operations that have completed. Does not wait."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot port_slots[] = {
	{Py_tp_new, port_new},
	{Py_tp_dealloc, port_dealloc},
	{Py_tp_traverse, port_traverse},
	{Py_tp_clear, port_clear},
	{Py_tp_methods, port_methods},
	{Py_tp_doc, "Port(): a queue of completed operations, with a descriptor for event loops."},
	{0, NULL},
};

static PyType_Spec port_spec = {
	.name = "ndx._ndx.Port",
	.basicsize = sizeof(struct port),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = port_slots,
};

int pyndx_add_operations(PyObject *module)
{
	if (pyndx_add_type(module, &operation_spec, NULL, &pyndx.operation_type) != 0)
		return -1;
	return pyndx_add_type(module, &port_spec, NULL, &pyndx.port_type);
}
