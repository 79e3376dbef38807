/* SPDX-License-Identifier: BSD-2-Clause */
/* Exceptions, members of enums, and whether this process may use the library. */
#include "pyndx.h"

#include <pthread.h>

struct pyndx pyndx;

PyObject *pyndx_enum(enum python_enum which, long value)
{
	PyObject *member;

	/* Of several values of a result, an earlier one may have met Ctrl-C. */
	if (PyErr_Occurred() != NULL)
		return NULL;
	member = PyObject_CallFunction(pyndx.enums[which], "l", value);
	if (member != NULL || !PyErr_ExceptionMatches(PyExc_ValueError))
		return member;
	PyErr_Clear(); /* of a later version of the library */
	return PyLong_FromLong(value);
}

PyObject *pyndx_status(enum ndx_status status)
{
	int64_t at = 1 - (int64_t)status;

	if (at < 0 || at >= (int64_t)(sizeof(pyndx.statuses) / sizeof(pyndx.statuses[0])))
		return pyndx_enum(PYTHON_STATUS, status);
	if (pyndx.statuses[at] == NULL)
		pyndx.statuses[at] = pyndx_enum(PYTHON_STATUS, status);
	Py_XINCREF(pyndx.statuses[at]);
	return pyndx.statuses[at];
}

PyObject *pyndx_raise(enum ndx_status status, const char *text, int native)
{
	PyObject *member = pyndx_status(status);
	PyObject *error;

	if (member == NULL)
		return NULL;
	error = PyObject_CallFunction(pyndx.make_error, "NNi", member,
	                              pyndx_text(text[0] != '\0' ? text : ndx_status_text(status)),
	                              native);
	if (error != NULL) {
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
		Py_DECREF(error);
	}
	return NULL;
}

PyObject *pyndx_raise_last(enum ndx_status status)
{
	return pyndx_raise(status, ndx_last_error(), 0);
}

PyObject *pyndx_raise_named(const char *name, const char *text)
{
	PyObject *error = PyObject_CallFunction(pyndx.make_error, "ssi", name, text, 0);

	if (error != NULL) {
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
		Py_DECREF(error);
	}
	return NULL;
}

PyObject *pyndx_done(enum ndx_status status)
{
	if (status != NDX_OK)
		return pyndx_raise_last(status);
	Py_RETURN_NONE;
}

/* The child of a fork has no threads of the library, and its locks are as they were. */
static void note_fork(void)
{
	if (pyndx.used)
		pyndx.forked = true;
}

bool pyndx_usable(void)
{
	if (pyndx.forked) {
		(void)pyndx_raise_named(
			"ForkedError",
			"this process was forked from one that used ndx, whose threads and "
			"connections do not exist here: start the process by spawn "
			"(multiprocessing: "
			"set_start_method(\"spawn\")), or fork before the first call of ndx");
		return false;
	}
	if (pyndx.ended) {
		(void)pyndx_raise_named("ClosedError", "the interpreter ends");
		return false;
	}
	pyndx.used = true;
	return true;
}

static const char *const enum_names[PYTHON_ENUMS] = {
	[PYTHON_STATUS] = "Status",
	[PYTHON_REQUEST_TYPE] = "RequestType",
	[PYTHON_REASON] = "DisconnectReason",
	[PYTHON_QP_STATE] = "QueuePairState",
	[PYTHON_CAPABILITY] = "Capability",
	[PYTHON_RECEIVER_STATE] = "ReceiverState",
	[PYTHON_RECEIVER_END] = "ReceiverEnd",
	[PYTHON_STAGE] = "Stage",
	[PYTHON_LAYER] = "ErrorLayer",
	[PYTHON_SESSION_STATE] = "SessionState",
	[PYTHON_HISTORY_KIND] = "HistoryKind",
	[PYTHON_PLUGIN_ERROR] = "PluginErrorKind",
	[PYTHON_TRANSPORT] = "Transport",
	[PYTHON_CHUNK_KIND] = "ChunkKind",
	[PYTHON_HOLE_KIND] = "HoleKind",
	[PYTHON_ORPHAN_KIND] = "OrphanKind",
	[PYTHON_EVICTION_REASON] = "EvictionReason",
	[PYTHON_EVENT_TYPE] = "EventType",
	[PYTHON_MANAGED_STATE] = "ManagedState",
	[PYTHON_MANAGED_EVENT] = "ManagedEventKind",
};

int pyndx_add_errors(PyObject *module)
{
	PyObject *enums = PyImport_ImportModule("ndx._enums");
	PyObject *errors = PyImport_ImportModule("ndx._errors");
	int rc = -1;

	(void)module;
	if (enums == NULL || errors == NULL)
		goto out;
	for (int i = 0; i < PYTHON_ENUMS; i++) {
		pyndx.enums[i] = PyObject_GetAttrString(enums, enum_names[i]);
		if (pyndx.enums[i] == NULL)
			goto out;
	}
	pyndx.make_error = PyObject_GetAttrString(errors, "make_error");
	if (pyndx.make_error == NULL)
		goto out;
	if (pthread_atfork(NULL, NULL, note_fork) != 0) {
		PyErr_NoMemory();
		goto out;
	}
	rc = 0;
out:
	Py_XDECREF(enums);
	Py_XDECREF(errors);
	return rc;
}
