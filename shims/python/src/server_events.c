/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of servers: threads of the library's pool call Python functions. */
#include "negotiation.h"

/* The session's object; a new reference, or NULL. */
static struct session *find(struct server *server, struct ndx_session *handle)
{
	PyObject *key = PyLong_FromVoidPtr(handle);
	PyObject *session = key != NULL ? PyDict_GetItemWithError(server->sessions, key) : NULL;

	Py_XINCREF(session);
	Py_XDECREF(key);
	return (struct session *)session;
}

static bool remember(struct server *server, struct ndx_session *handle, struct session *session)
{
	PyObject *key = PyLong_FromVoidPtr(handle);
	int rc = -1;

	if (key != NULL && session != NULL)
		rc = PyDict_SetItem(server->sessions, key, &session->base.ob_base);
	else if (key != NULL)
		rc = PyDict_DelItem(server->sessions, key);
	Py_XDECREF(key);
	return rc == 0;
}

/* The function returns None, or (connector, queue pair[, region]). */
static bool ask(struct server *server, struct session *session, struct ndx_session_resources *out)
{
	PyObject *answer;
	PyObject *connector = Py_None;
	PyObject *qp = Py_None;
	PyObject *region = Py_None;
	bool good;

	if (server->functions[ON_OPEN] == Py_None)
		return true;
	answer = PyObject_CallFunctionObjArgs(server->functions[ON_OPEN], &session->base.ob_base,
	                                      NULL);
	good = answer != NULL;
	if (good && answer != Py_None && !PyTuple_Check(answer)) {
		PyErr_SetString(PyExc_TypeError,
		                "on_open returns None or (connector, qp[, memory])");
		good = false;
	} else if (good && answer != Py_None) {
		good = PyArg_ParseTuple(answer, "OO|O", &connector, &qp, &region) &&
		       resources_hold(&session->resources, connector, qp, region, &out->memory);
	}
	if (good && session->resources.connector != NULL)
		out->connector = session->resources.connector->handle;
	if (good && session->resources.qp != NULL)
		out->qp = session->resources.qp->handle;
	Py_XDECREF(answer);
	return good;
}

/* The queue pairs that a function returned, whose reference this takes, are of the session from now
 * on, from that index. */
static bool take_many(struct session *session, PyObject *answer, uint32_t first, uint32_t count,
                      struct ndx_session_queue_pair *list)
{
	PyObject *tuple = answer != NULL ? PySequence_Tuple(answer) : NULL;
	struct group *group = NULL;

	if (tuple != NULL && PyTuple_Size(tuple) != (Py_ssize_t)count)
		PyErr_Format(PyExc_ValueError, "%zd queue pairs, in place of %u",
		             PyTuple_Size(tuple), (unsigned)count);
	else if (tuple != NULL)
		group = group_hold(tuple, list);
	Py_XDECREF(tuple);
	Py_XDECREF(answer);
	if (group == NULL)
		return false;
	group->first = first;
	groups_add(&session->groups, group);
	return true;
}

static bool ask_many(struct server *server, struct session *session, uint32_t count,
                     struct ndx_session_queue_pair *list)
{
	PyObject *answer = PyObject_CallFunction(server->functions[ON_OPEN_MANY], "OI",
	                                         (PyObject *)session, (unsigned)count);

	return take_many(session, answer, 0, count, list);
}

/* A new session; `list` is NULL if the client asks for one queue pair. */
static enum ndx_status open_session(struct server *server, struct ndx_session *handle,
                                    uint32_t count, struct ndx_session_queue_pair *list,
                                    struct ndx_session_resources *resources)
{
	struct running running;
	PyGILState_STATE held;
	struct session *session;
	bool good;

	if (pyndx.ended)
		return NDX_E_CANCELED;
	held = PyGILState_Ensure();
	running_begin(&server->base, &server->running, &running);
	resources->inbound_read_limit = server->inbound_read_limit;
	resources->outbound_read_limit = server->outbound_read_limit;
	session = session_lent(handle);
	good = session != NULL && remember(server, handle, session);
	if (good && !(list == NULL ? ask(server, session, resources)
	                           : ask_many(server, session, count, list))) {
		PyErr_WriteUnraisable(server->functions[list == NULL ? ON_OPEN : ON_OPEN_MANY]);
		session_lent_end(session); /* `closed` is not called */
		(void)remember(server, handle, NULL);
		good = false;
	}
	PyErr_Clear();
	Py_XDECREF((PyObject *)session);
	running_end(&server->base, &running);
	PyGILState_Release(held);
	return good ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status on_open(void *arg, struct ndx_session *handle,
                               struct ndx_session_resources *resources)
{
	return open_session(arg, handle, 1, NULL, resources);
}

static enum ndx_status on_open_many(void *arg, struct ndx_session *handle, uint32_t count,
                                    struct ndx_session_queue_pair *list,
                                    struct ndx_session_resources *resources)
{
	return open_session(arg, handle, count, list, resources);
}

/* A callback of a session that is open. */
struct call {
	struct server *server;
	struct session *session; /* NULL: it was never opened */
	struct running running;
	PyGILState_STATE held;
};

static bool begin(struct call *call, struct server *server, struct ndx_session *handle)
{
	if (pyndx.ended)
		return false;
	call->server = server;
	call->held = PyGILState_Ensure();
	running_begin(&server->base, &server->running, &call->running);
	call->session = find(server, handle);
	return true;
}

static void end(struct call *call)
{
	PyErr_Clear();
	Py_XDECREF((PyObject *)call->session);
	running_end(&call->server->base, &call->running);
	PyGILState_Release(call->held);
}

/* Takes the result of the function. */
static void finish(const struct call *call, enum server_function which, PyObject *result)
{
	if (result == NULL)
		PyErr_WriteUnraisable(call->server->functions[which]);
	Py_XDECREF(result);
}

static void on_staged(void *arg, struct ndx_session *handle, enum ndx_stage stage)
{
	struct call call;

	if (!begin(&call, arg, handle))
		return;
	if (call.session != NULL && call.server->functions[ON_STAGED] != Py_None)
		finish(&call, ON_STAGED,
		       PyObject_CallFunction(call.server->functions[ON_STAGED], "ON",
		                             (PyObject *)call.session,
		                             pyndx_enum(PYTHON_STAGE, stage)));
	end(&call);
}

static void on_closed(void *arg, struct ndx_session *handle)
{
	struct call call;

	if (!begin(&call, arg, handle))
		return;
	if (call.session != NULL) {
		if (call.server->functions[ON_CLOSED] != Py_None)
			finish(&call, ON_CLOSED,
			       PyObject_CallFunctionObjArgs(call.server->functions[ON_CLOSED],
			                                    (PyObject *)call.session, NULL));
		(void)remember(call.server, handle, NULL);
		session_lent_end(call.session);
	}
	end(&call);
}

static enum ndx_status on_add_many(void *arg, struct ndx_session *handle, uint32_t first,
                                   uint32_t count, struct ndx_session_queue_pair *list)
{
	PyObject *answer;
	struct call call;
	bool good = false;

	if (!begin(&call, arg, handle))
		return NDX_E_CANCELED;
	if (call.session != NULL) {
		answer = PyObject_CallFunction(call.server->functions[ON_ADD_MANY], "OII",
		                               (PyObject *)call.session, (unsigned)first,
		                               (unsigned)count);
		good = take_many(call.session, answer, first, count, list);
		if (!good)
			PyErr_WriteUnraisable(call.server->functions[ON_ADD_MANY]);
	}
	end(&call);
	return good ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static void on_added(void *arg, struct ndx_session *handle, uint32_t first, uint32_t count,
                     enum ndx_status status)
{
	struct call call;

	if (!begin(&call, arg, handle))
		return;
	if (call.session != NULL) {
		finish(&call, ON_ADDED,
		       PyObject_CallFunction(call.server->functions[ON_ADDED], "OIIN",
		                             (PyObject *)call.session, (unsigned)first,
		                             (unsigned)count, pyndx_status(status)));
		/* What the function has closed is closed now. */
		if (status != NDX_OK)
			groups_remove(&call.session->groups, first, count);
	}
	end(&call);
}

static void on_removed(void *arg, struct ndx_session *handle, uint32_t index)
{
	struct call call;

	if (!begin(&call, arg, handle))
		return;
	if (call.session != NULL) {
		finish(&call, ON_REMOVED,
		       PyObject_CallFunction(call.server->functions[ON_REMOVED], "OI",
		                             (PyObject *)call.session, (unsigned)index));
		groups_remove(&call.session->groups, index, 1);
	}
	end(&call);
}

void server_set_events(struct server *server, struct ndx_negotiation_server_attr *attr)
{
	attr->events =
		(struct ndx_negotiation_server_events){on_open, on_staged, on_closed, server};
	/* Without the others, the library refuses clients, or the program owns what it gave after
	 * `closed`. */
	if (server->functions[ON_OPEN_MANY] != Py_None)
		attr->open_many = on_open_many;
	if (server->functions[ON_ADD_MANY] != Py_None)
		attr->add_many = on_add_many;
	if (server->functions[ON_ADDED] != Py_None)
		attr->added = on_added;
	if (server->functions[ON_REMOVED] != Py_None)
		attr->removed = on_removed;
}
