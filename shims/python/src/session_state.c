/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session knows: state, agreement, failure, history. */
#include "stream.h"

#include "negotiation.h"

#include <stdlib.h>

static struct ndx_session *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

PyObject *session_state(PyObject *self, void *unused)
{
	enum ndx_session_state state;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	state = ndx_session_get_state(handle_of(self));
	object_leave((struct object *)self);
	return pyndx_enum(PYTHON_SESSION_STATE, state);
}

PyObject *session_id(PyObject *self, void *unused)
{
	uint64_t id;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	id = ndx_session_get_id(handle_of(self));
	object_leave((struct object *)self);
	return PyLong_FromUnsignedLongLong(id);
}

PyObject *session_server(PyObject *self, void *unused)
{
	PyObject *text;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	text = pyndx_text(ndx_session_get_server(handle_of(self)));
	object_leave((struct object *)self);
	return text;
}

PyObject *session_count(PyObject *self, void *unused)
{
	uint32_t count;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	count = ndx_session_get_queue_pair_count(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return PyLong_FromUnsignedLong(count);
}

PyObject *session_agreement(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"queue_pair", NULL};
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;
	PyObject *number = Py_None;
	uint64_t index = 0;
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:agreement", names, &number) ||
	    (number != Py_None && !pyndx_number(number, "queue_pair", UINT32_MAX, &index)) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	if (number == Py_None)
		st = ndx_session_get_agreement(handle_of(self), &own, &peer, &agreed);
	else
		st = ndx_session_get_queue_pair_agreement(handle_of(self), (uint32_t)index, &own,
		                                          &peer, &agreed);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("{s:N,s:N,s:I,s:I,s:I,s:I}", "own", description_to(&own), "peer",
	                     description_to(&peer), "kind", agreed.kind, "mtu", agreed.mtu,
	                     "client_reads", agreed.client_reads, "server_reads",
	                     agreed.server_reads);
}

typedef enum ndx_status error_fn(const struct ndx_session *session,
                                 struct ndx_session_error *error);

static PyObject *error_by(PyObject *self, error_fn *get)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	PyObject *index;
	enum ndx_status st;

	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = get(handle_of(self), &e);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	index = e.of_queue_pair != 0 ? PyLong_FromUnsignedLong(e.queue_pair) : Py_None;
	if (index == Py_None)
		Py_INCREF(Py_None);
	return Py_BuildValue(
		"(NNNNNINN)", pyndx_status(e.status), pyndx_enum(PYTHON_LAYER, e.layer),
		pyndx_enum(PYTHON_PLUGIN_ERROR, e.plugin_error), PyBool_FromLong(e.remote),
		pyndx_enum(PYTHON_STAGE, e.stage), e.round, pyndx_text(e.text), index);
}

PyObject *session_error(PyObject *self, PyObject *unused)
{
	(void)unused;
	return error_by(self, ndx_session_get_error);
}

PyObject *session_add_error(PyObject *self, PyObject *unused)
{
	(void)unused;
	return error_by(self, ndx_session_get_add_error);
}

static PyObject *entry_of(const struct ndx_history_entry *e)
{
	char line[160];

	return Py_BuildValue(
		"(KKNNIINNN)", (unsigned long long)e->at_us, (unsigned long long)e->duration_us,
		pyndx_enum(PYTHON_HISTORY_KIND, e->kind), pyndx_enum(PYTHON_STAGE, e->stage),
		e->round, e->bytes, pyndx_status(e->status), pyndx_text(e->text),
		pyndx_text(ndx_history_entry_text(e, line, sizeof(line))));
}

PyObject *session_history(PyObject *self, PyObject *unused)
{
	struct ndx_history_entry *list;
	size_t count = 1024;
	PyObject *entries = NULL;
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	list = calloc(count, sizeof(*list));
	if (list == NULL) {
		object_leave((struct object *)self);
		return PyErr_NoMemory();
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_get_history(handle_of(self), list, &count, NULL);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st == NDX_OK)
		entries = PyList_New((Py_ssize_t)count);
	else
		(void)pyndx_raise_last(st);
	for (size_t i = 0; entries != NULL && i < count; i++) {
		PyObject *entry = entry_of(&list[i]);

		if (entry == NULL || PyList_SetItem(entries, (Py_ssize_t)i, entry) != 0)
			Py_CLEAR(entries);
	}
	free(list);
	return entries;
}

PyObject *session_snapshot(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	char *json = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_snapshot(handle_of(self), &json);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_take_text(json) : pyndx_raise_last(st);
}
