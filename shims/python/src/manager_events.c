/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of session managers: threads of the library's pool call Python functions. */
#include "manager.h"

struct call {
	struct manager *manager;
	PyObject *capsule; /* NULL: the session was removed */
	struct running running;
	PyGILState_STATE held;
};

static bool begin(struct call *call, struct manager *manager, const void *number, uint64_t id)
{
	if (pyndx.ended)
		return false;
	call->manager = manager;
	call->held = PyGILState_Ensure();
	running_begin(&manager->base, &manager->running, &call->running);
	call->capsule = manager_find(manager, number);
	if (call->capsule != NULL)
		manager_record(call->capsule)->id = id;
	return true;
}

static void end(struct call *call)
{
	PyErr_Clear();
	Py_XDECREF(call->capsule);
	running_end(&call->manager->base, &call->running);
	PyGILState_Release(call->held);
}

/* The status of the exception that is set: that of an ndx.Error, or UNSUCCESSFUL. */
static enum ndx_status status_of_exception(void)
{
	PyObject *type, *value, *trace;
	PyObject *status;
	long number = 0;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	status = value != NULL ? PyObject_GetAttrString(value, "status") : NULL;
	if (status != NULL && PyLong_Check(status))
		number = PyLong_AsLong(status);
	Py_XDECREF(status);
	PyErr_Clear();
	PyErr_Restore(type, value, trace);
	return number < 0 && number > -1000 ? (enum ndx_status)number : NDX_E_UNSUCCESSFUL;
}

/* The function returns None, or (connector, queue pair[, region]). */
static bool ask(const struct call *call, uint64_t id, struct ndx_session_resources *out)
{
	struct record *record = manager_record(call->capsule);
	PyObject *connector = Py_None;
	PyObject *qp = Py_None;
	PyObject *region = Py_None;
	PyObject *answer;
	bool good;

	answer = PyObject_CallFunction(call->manager->functions[ON_PROVIDE], "KO",
	                               (unsigned long long)id, record->context);
	good = answer != NULL;
	if (good && answer != Py_None && !PyTuple_Check(answer)) {
		PyErr_SetString(PyExc_TypeError,
		                "provide returns None or (connector, qp[, memory])");
		good = false;
	} else if (good && answer != Py_None) {
		good = PyArg_ParseTuple(answer, "OO|O", &connector, &qp, &region) &&
		       resources_hold(&record->resources, connector, qp, region, &out->memory);
	}
	if (good && record->resources.connector != NULL)
		out->connector = record->resources.connector->handle;
	if (good && record->resources.qp != NULL)
		out->qp = record->resources.qp->handle;
	out->inbound_read_limit = record->inbound_read_limit;
	out->outbound_read_limit = record->outbound_read_limit;
	if (!good)
		resources_drop(&record->resources); /* `reclaim` is not called */
	Py_XDECREF(answer);
	return good;
}

static enum ndx_status provide(void *arg, uint64_t id, void *number,
                               struct ndx_session_resources *resources)
{
	enum ndx_status st = NDX_OK;
	struct call call;

	if (!begin(&call, arg, number, id))
		return NDX_E_CANCELED;
	if (call.capsule == NULL) {
		st = NDX_E_CANCELED;
	} else if (!ask(&call, id, resources)) {
		st = status_of_exception();
		PyErr_WriteUnraisable(call.manager->functions[ON_PROVIDE]);
	}
	end(&call);
	return st;
}

static PyObject *or_none(void *object)
{
	return object != NULL ? object : Py_None;
}

static void reclaim(void *arg, uint64_t id, void *number,
                    const struct ndx_session_resources *resources)
{
	PyObject *function, *result;
	struct record *record;
	struct call call;

	(void)resources;
	if (!begin(&call, arg, number, id))
		return;
	function = call.manager->functions[ON_RECLAIM];
	if (call.capsule != NULL) {
		record = manager_record(call.capsule);
		if (function != Py_None) {
			result = PyObject_CallFunction(
				function, "KOOOO", (unsigned long long)id, record->context,
				or_none(record->resources.connector), or_none(record->resources.qp),
				or_none(record->resources.region));
			if (result == NULL)
				PyErr_WriteUnraisable(function);
			Py_XDECREF(result);
		}
		/* What the function has closed is closed now. */
		resources_drop(&record->resources);
	}
	end(&call);
}

static void told(void *arg, const struct ndx_managed_event *event)
{
	struct session *session = NULL;
	PyObject *function;
	PyObject *result = NULL;
	struct call call;

	if (!begin(&call, arg, event->context, event->id))
		return;
	function = call.manager->functions[ON_EVENT];
	if (event->session != NULL)
		session = session_lent((struct ndx_session *)(uintptr_t)event->session);
	if (session != NULL || event->session == NULL)
		result = PyObject_CallFunction(function, "NO", manager_event(call.manager, event),
		                               or_none(session));
	if (result == NULL)
		PyErr_WriteUnraisable(function);
	Py_XDECREF(result);
	if (session != NULL) {
		session_lent_end(session);
		Py_DECREF((PyObject *)session);
	}
	end(&call);
}

void manager_set_events(struct manager *manager, struct ndx_session_manager_attr *attr)
{
	attr->events.arg = manager;
	if (manager->functions[ON_PROVIDE] != Py_None) {
		attr->events.provide = provide;
		attr->events.reclaim = reclaim;
	}
	if (manager->functions[ON_EVENT] != Py_None)
		attr->events.event = told;
}
