/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of adapters: operations whose event lies in a bytes object until they complete. */
#include "pyndx.h"

#include <string.h>

/* _event_start(adapter, port) -> (operation, buffer) */
static PyObject *start_function(PyObject *module, PyObject *args)
{
	struct ndx_adapter_event *event;
	PyObject *adapter, *port;
	PyObject *result = NULL;
	struct operation *op;
	PyObject *buffer;
	enum ndx_status st;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO", &adapter, &port) ||
	    !pyndx_is(adapter, pyndx.adapter_type, "adapter"))
		return NULL;
	buffer = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(*event));
	if (buffer == NULL)
		return NULL;
	event = (struct ndx_adapter_event *)(void *)PyBytes_AsString(buffer);
	memset(event, 0, sizeof(*event));
	event->size = sizeof(*event);
	if (!object_enter((struct object *)adapter)) {
		Py_DECREF(buffer);
		return NULL;
	}
	op = operation_new(port, "event");
	if (op != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_adapter_get_event(((struct object *)adapter)->handle, event, &op->ov);
		Py_END_ALLOW_THREADS;
		result = operation_started(op, (struct object *)adapter, buffer, st);
	}
	object_leave((struct object *)adapter);
	if (result == NULL) {
		Py_DECREF(buffer);
		return NULL;
	}
	return Py_BuildValue("(NN)", result, buffer);
}

static PyObject *cancel_function(PyObject *module, PyObject *adapter)
{
	enum ndx_status st;

	(void)module;
	if (!pyndx_is(adapter, pyndx.adapter_type, "adapter") ||
	    !object_enter((struct object *)adapter))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_adapter_cancel(((struct object *)adapter)->handle);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)adapter);
	return pyndx_done(st);
}

/* _event_of(buffer): the event of an operation that has completed. */
static PyObject *of_function(PyObject *module, PyObject *buffer)
{
	struct ndx_adapter_event event;
	char *bytes = NULL;
	Py_ssize_t size = 0;

	(void)module;
	if (PyBytes_AsStringAndSize(buffer, &bytes, &size) != 0)
		return NULL;
	if (size != (Py_ssize_t)sizeof(event)) {
		PyErr_SetString(PyExc_ValueError, "no event");
		return NULL;
	}
	memcpy(&event, bytes, sizeof(event));
	event.text[sizeof(event.text) - 1] = '\0';
	return Py_BuildValue("(iIiKKKss)", (int)event.type, event.port, (int)event.native,
	                     (unsigned long long)event.time_ns, (unsigned long long)event.number,
	                     (unsigned long long)event.lost, ndx_adapter_event_name(event.type),
	                     event.text);
}

static PyMethodDef functions[] = {
	{"_event_start", start_function, METH_VARARGS, NULL},
	{"_event_cancel", cancel_function, METH_O, NULL},
	{"_event_of", of_function, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_events(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
