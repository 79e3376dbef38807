/* SPDX-License-Identifier: BSD-2-Clause */
/* Transports in Python: one object of the class per connection. */
#include "python.h"

#include <limits.h>
#include <stdlib.h>

struct ndx_plugin_stream {
	const struct guest *guest;
	PyObject *object;
	uint32_t cancelled; /* atomic; explains any later failure of the object */
};

/* Clear the exception that is set, and return its status. */
static enum ndx_status status_of_exception(const struct guest *g, char *why, size_t room)
{
	enum ndx_status st = NDX_E_UNSUCCESSFUL;

	if (PyErr_ExceptionMatches(PyExc_TimeoutError))
		st = NDX_E_IO_TIMEOUT;
	else if (PyErr_ExceptionMatches(PyExc_ConnectionRefusedError))
		st = NDX_E_CONNECTION_REFUSED;
	else if (PyErr_ExceptionMatches(PyExc_ConnectionError) ||
	         PyErr_ExceptionMatches(PyExc_EOFError))
		st = NDX_E_CONNECTION_ABORTED;
	else if (PyErr_ExceptionMatches(PyExc_OSError))
		st = NDX_E_HOST_UNREACHABLE;
	else if (PyErr_ExceptionMatches(PyExc_ValueError))
		st = NDX_E_INVALID_ADDRESS;
	if (st == NDX_E_UNSUCCESSFUL || st == NDX_E_INVALID_ADDRESS) {
		(void)py_why(g->host, why, room);
	} else {
		/* A network failure is ordinary: log one line, no traceback. */
		PyObject *type;
		PyObject *value;
		PyObject *trace;
		PyObject *text;

		PyErr_Fetch(&type, &value, &trace);
		text = value != NULL ? PyObject_Str(value) : NULL;
		(void)snprintf(why, room, "%s",
		               text != NULL ? PyUnicode_AsUTF8(text) : "an exception");
		Py_XDECREF(text);
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(trace);
		PyErr_Clear();
	}
	return st;
}

static double seconds(uint32_t timeout_ms)
{
	return (double)timeout_ms / 1000;
}

/* Interpreter lock held. The class is called with what it takes. */
static PyObject *make_object(const struct guest *g, unsigned index, const char *address,
                             uint32_t timeout_ms, const struct ndx_plugin_dial *dial)
{
	PyObject *class = g->transport_classes[index];
	PyObject *settings;
	PyObject *arguments;
	PyObject *keywords;
	PyObject *object = NULL;

	if (dial == NULL || !g->takes_settings[index])
		return PyObject_CallFunction(class, "(sd)", address, seconds(timeout_ms));
	settings = exchange_settings(dial->variant->params, dial->values);
	keywords = settings != NULL ? Py_BuildValue("{sN}", "settings", settings) : NULL;
	arguments = keywords != NULL ? Py_BuildValue("(sd)", address, seconds(timeout_ms)) : NULL;
	if (arguments != NULL)
		object = PyObject_Call(class, arguments, keywords);
	Py_XDECREF(arguments);
	Py_XDECREF(keywords);
	return object;
}

static enum ndx_status connect_as(const struct guest *g, unsigned index, const char *address,
                                  uint32_t timeout_ms, const struct ndx_plugin_dial *dial,
                                  struct ndx_plugin_stream **out, char *why, size_t room)
{
	struct ndx_plugin_stream *stream = calloc(1, sizeof(*stream));
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;

	if (stream == NULL || !py_enter(&held)) {
		(void)snprintf(why, room, stream == NULL ? "out of memory" : "Python has ended");
		free(stream);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	stream->guest = g;
	stream->object = make_object(g, index, address, timeout_ms, dial);
	if (stream->object == NULL)
		st = status_of_exception(g, why, room);
	py_leave(held);
	if (st == NDX_OK)
		*out = stream;
	else
		free(stream);
	return st;
}

static enum ndx_status dial_any(const struct ndx_plugin_dial *dial, struct ndx_plugin_stream **out,
                                char *why, size_t room)
{
	const struct guest *g = dial->plugin;
	unsigned index = 0;

	while (index + 1 < TRANSPORTS_MOST &&
	       strcmp(g->transports[index].name, dial->transport->name) != 0)
		index++;
	return connect_as(g, index, dial->address, dial->timeout_ms, dial, out, why, room);
}

/* For a framework that does not know `dial`. The connect function of a table is not told its index,
 * so there is one function per index. */
#define CONNECT(index)                                                                       \
	static enum ndx_status connect_##index(                                              \
		void *plugin, const char *address, uint32_t timeout_ms,                      \
		struct ndx_plugin_stream **out, char *why, size_t room)                      \
	{                                                                                    \
		return connect_as(plugin, index, address, timeout_ms, NULL, out, why, room); \
	}

CONNECT(0)
CONNECT(1)
CONNECT(2)
CONNECT(3)

static enum ndx_status outcome(struct ndx_plugin_stream *stream, enum ndx_status st)
{
	return __atomic_load_n(&stream->cancelled, __ATOMIC_ACQUIRE) != 0 ? NDX_E_CANCELED : st;
}

/* Interpreter lock held. `answer` is the result of a method. */
static enum ndx_status failed(struct ndx_plugin_stream *stream)
{
	const enum ndx_status st = outcome(stream, NDX_OK);
	char why[160];

	if (st == NDX_OK)
		return status_of_exception(stream->guest, why, sizeof(why));
	PyErr_Clear(); /* an exception after the cancel does not matter */
	return st;
}

static enum ndx_status stream_send(struct ndx_plugin_stream *stream, const void *data,
                                   size_t length, uint32_t timeout_ms)
{
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;
	PyObject *answer;

	if (!py_enter(&held))
		return NDX_E_CONNECTION_ABORTED;
	answer = PyObject_CallMethod(stream->object, "send", "(y#d)", data, (Py_ssize_t)length,
	                             seconds(timeout_ms));
	if (answer == NULL)
		st = failed(stream);
	Py_XDECREF(answer);
	py_leave(held);
	return outcome(stream, st);
}

/* No bytes mean the end of the stream. */
static enum ndx_status take_bytes(PyObject *answer, void *data, size_t room, size_t *length)
{
	Py_buffer view;

	if (PyObject_GetBuffer(answer, &view, PyBUF_SIMPLE) != 0)
		return NDX_E_UNSUCCESSFUL;
	*length = (size_t)view.len;
	if (*length > 0 && *length <= room)
		memcpy(data, view.buf, *length);
	PyBuffer_Release(&view);
	return *length > 0 ? NDX_OK : NDX_E_CONNECTION_ABORTED;
}

static enum ndx_status stream_receive(struct ndx_plugin_stream *stream, void *data, size_t room,
                                      size_t *length, uint32_t timeout_ms)
{
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;
	PyObject *answer;

	if (!py_enter(&held))
		return NDX_E_CONNECTION_ABORTED;
	answer = PyObject_CallMethod(stream->object, "receive", "(nd)", (Py_ssize_t)room,
	                             seconds(timeout_ms));
	if (answer != NULL)
		st = take_bytes(answer, data, room, length);
	if (PyErr_Occurred() != NULL)
		st = failed(stream);
	Py_XDECREF(answer);
	py_leave(held);
	return outcome(stream, st);
}

static void call_plain(struct ndx_plugin_stream *stream, const char *method)
{
	PyGILState_STATE held;
	PyObject *answer;
	char why[160];

	if (!py_enter(&held))
		return;
	answer = PyObject_CallMethod(stream->object, method, NULL);
	if (answer == NULL)
		(void)py_why(stream->guest->host, why, sizeof(why));
	Py_XDECREF(answer);
	py_leave(held);
}

static void stream_cancel(struct ndx_plugin_stream *stream)
{
	__atomic_store_n(&stream->cancelled, 1, __ATOMIC_RELEASE);
	call_plain(stream, "cancel");
}

static void stream_close(struct ndx_plugin_stream *stream)
{
	PyGILState_STATE held;

	call_plain(stream, "close");
	if (py_enter(&held)) {
		Py_CLEAR(stream->object);
		py_leave(held);
	}
	free(stream);
}

static int stream_descriptor(struct ndx_plugin_stream *stream)
{
	PyGILState_STATE held;
	PyObject *answer;
	char why[160];
	long fd = -1;

	if (!py_enter(&held))
		return -1;
	answer = PyObject_CallMethod(stream->object, "fileno", NULL);
	if (answer != NULL)
		fd = PyLong_AsLong(answer);
	if (PyErr_Occurred() != NULL)
		(void)py_why(stream->guest->host, why, sizeof(why));
	Py_XDECREF(answer);
	py_leave(held);
	return fd >= 0 && fd <= INT_MAX ? (int)fd : -1;
}

void transport_fill(struct guest *g, unsigned index, const char *name, bool has_descriptor)
{
	static const struct ndx_plugin_transport each[TRANSPORTS_MOST] = {
		{.connect = connect_0},
		{.connect = connect_1},
		{.connect = connect_2},
		{.connect = connect_3},
	};

	g->transports[index] = (struct ndx_plugin_transport){.name = name,
	                                                     .connect = each[index].connect,
	                                                     .send = stream_send,
	                                                     .receive = stream_receive,
	                                                     .cancel = stream_cancel,
	                                                     .close = stream_close};
	g->more[index] = (struct ndx_plugin_transport_more){
		.size = sizeof(g->more[index]),
		.name = name,
		.dial = dial_any,
		.descriptor = has_descriptor ? stream_descriptor : NULL};
	g->more_list[index] = &g->more[index];
}
