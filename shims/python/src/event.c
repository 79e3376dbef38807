/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of adapters: operations whose event lies in a bytes object until they complete. */
#include "pyndx.h"

#include <string.h>

/* _event_events(adapter) -> list: events that a wait got, and that no call has returned yet, as
 * buffers, the oldest first. */
static PyObject *events_function(PyObject *module, PyObject *object)
{
	struct adapter *adapter = (struct adapter *)object;
	PyObject *events;

	(void)module;
	if (!pyndx_is(object, pyndx.adapter_type, "adapter") || !object_enter(&adapter->base))
		return NULL;
	if (adapter->events == NULL)
		adapter->events = PyList_New(0);
	events = adapter->events;
	Py_XINCREF(events);
	object_leave(&adapter->base);
	return events;
}

bool events_add(PyObject *started, PyObject *op, PyObject *buffer)
{
	PyObject *pair = Py_BuildValue("(NN)", op, buffer);
	const int rc = pair != NULL ? PyList_Append(started, pair) : -1;

	Py_XDECREF(pair);
	return rc == 0;
}

/* _event_start(adapter, port, started): adds (operation, buffer) to a list. It is no result: Ctrl-C
 * can take the results of calls away. */
static PyObject *start_function(PyObject *module, PyObject *args)
{
	struct ndx_adapter_event *event;
	PyObject *adapter, *port, *started;
	PyObject *result = NULL;
	struct operation *op;
	PyObject *buffer;
	enum ndx_status st;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOO!", &adapter, &port, &PyList_Type, &started) ||
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
	if (!events_add(started, result, buffer))
		return NULL;
	Py_RETURN_NONE;
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

bool events_end(PyObject *started, struct object *owner, PyObject *const *events,
                void (*cancel)(struct object *owner))
{
	PyObject *op, *buffer;
	enum ndx_status st;

	for (Py_ssize_t i = 0; i < PyList_Size(started);) {
		if (!PyArg_ParseTuple(PyList_GetItem(started, i), "O!O", pyndx.operation_type, &op,
		                      &buffer))
			return false;
		st = operation_observe((struct operation *)op);
		if (st == NDX_PENDING) {
			cancel(owner);
			st = operation_observe((struct operation *)op);
		}
		if (st == NDX_PENDING) { /* its port has it */
			i++;
			continue;
		}
		if (st == NDX_OK && *events != NULL && PyList_Append(*events, buffer) != 0)
			return false;
		if (PyList_SetSlice(started, i, i + 1, NULL) != 0)
			return false;
	}
	return true;
}

static void cancel_waits(struct object *adapter)
{
	PyObject *done = cancel_function(NULL, &adapter->ob_base);

	PyErr_Clear(); /* closed: then the operation is complete */
	Py_XDECREF(done);
}

/* _event_end(adapter, started): the waits of the list are over. */
static PyObject *end_function(PyObject *module, PyObject *args)
{
	PyObject *adapter, *started;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO!", &adapter, &PyList_Type, &started) ||
	    !pyndx_is(adapter, pyndx.adapter_type, "adapter") ||
	    !events_end(started, (struct object *)adapter, &((struct adapter *)adapter)->events,
	                cancel_waits))
		return NULL;
	Py_RETURN_NONE;
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
	{"_event_events", events_function, METH_O, NULL},
	{"_event_end", end_function, METH_VARARGS, NULL},
	{"_event_start", start_function, METH_VARARGS, NULL},
	{"_event_cancel", cancel_function, METH_O, NULL},
	{"_event_of", of_function, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_events(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
