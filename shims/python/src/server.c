/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of negotiations: threads of the library's pool call Python functions. */
#include "negotiation.h"

#include <stdlib.h>
#include <string.h>

#define VARIANTS 64

static struct server *as_server(PyObject *self)
{
	return (struct server *)self;
}

static void close_handle(struct object *self)
{
	ndx_negotiation_server_close(self->handle);
}

static void drop(struct object *self)
{
	struct server *s = (struct server *)self;

	Py_CLEAR(s->variants);
	Py_CLEAR(s->on_open);
	Py_CLEAR(s->on_staged);
	Py_CLEAR(s->on_closed);
	Py_CLEAR(s->sessions);
}

static const struct kind server_kind = {
	.name = "server",
	.rank = RANK_SERVER,
	.close = close_handle,
	.drop = drop,
};

/* ---- callbacks ---- */

/* The server stays until the callback returns; but when it is being freed, it waits for that. */
static void begin_callback(struct server *server, struct running *running)
{
	running->thread = PyThread_get_thread_ident();
	running->counted = Py_REFCNT(&server->base.ob_base) > 0;
	if (running->counted)
		Py_INCREF(&server->base.ob_base);
	running->next = server->running;
	running->link = &server->running;
	if (running->next != NULL)
		running->next->link = &running->next;
	server->running = running;
}

static void end_callback(struct server *server, struct running *running)
{
	*running->link = running->next;
	if (running->next != NULL)
		running->next->link = running->link;
	if (running->counted)
		object_drop_later(&server->base);
}

/* The end of the server waits for its callbacks. */
static PyObject *server_close(PyObject *self, PyObject *unused)
{
	unsigned long thread = PyThread_get_thread_ident();

	(void)unused;
	for (const struct running *r = as_server(self)->running; r != NULL; r = r->next)
		if (r->thread == thread)
			return pyndx_raise(
				NDX_E_DEVICE_BUSY,
				"called in a callback of the server: let another thread do it", 0);
	object_close((struct object *)self);
	Py_RETURN_NONE;
}

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

	if (server->on_open == Py_None)
		return true;
	answer = PyObject_CallFunctionObjArgs(server->on_open, &session->base.ob_base, NULL);
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

static enum ndx_status on_open(void *arg, struct ndx_session *handle,
                               struct ndx_session_resources *resources)
{
	struct server *server = arg;
	struct running running;
	PyGILState_STATE held;
	struct session *session;
	bool good;

	if (pyndx.ended)
		return NDX_E_CANCELED;
	held = PyGILState_Ensure();
	begin_callback(server, &running);
	session = session_lent(handle);
	good = session != NULL && remember(server, handle, session);
	if (good && !ask(server, session, resources)) {
		PyErr_WriteUnraisable(server->on_open);
		session_lent_end(session); /* `closed` is not called */
		(void)remember(server, handle, NULL);
		good = false;
	}
	PyErr_Clear();
	Py_XDECREF((PyObject *)session);
	end_callback(server, &running);
	PyGILState_Release(held);
	return good ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static void call_about(struct server *server, PyObject *function, PyObject *session,
                       PyObject *stage)
{
	PyObject *result;

	if (function == Py_None || function == NULL)
		return;
	result = PyObject_CallFunctionObjArgs(function, session, stage, NULL);
	if (result == NULL)
		PyErr_WriteUnraisable(function);
	Py_XDECREF(result);
	(void)server;
}

static void on_staged(void *arg, struct ndx_session *handle, enum ndx_stage stage)
{
	struct server *server = arg;
	struct session *session;
	struct running running;
	PyGILState_STATE held;
	PyObject *member;

	if (pyndx.ended)
		return;
	held = PyGILState_Ensure();
	begin_callback(server, &running);
	session = find(server, handle);
	member = pyndx_enum(PYTHON_STAGE, stage);
	if (session != NULL && member != NULL)
		call_about(server, server->on_staged, &session->base.ob_base, member);
	Py_XDECREF(member);
	Py_XDECREF((PyObject *)session);
	PyErr_Clear();
	end_callback(server, &running);
	PyGILState_Release(held);
}

static void on_closed(void *arg, struct ndx_session *handle)
{
	struct server *server = arg;
	struct session *session;
	struct running running;
	PyGILState_STATE held;

	if (pyndx.ended)
		return;
	held = PyGILState_Ensure();
	begin_callback(server, &running);
	session = find(server, handle);
	if (session != NULL) {
		call_about(server, server->on_closed, &session->base.ob_base, NULL);
		(void)remember(server, handle, NULL);
		session_lent_end(session);
	}
	Py_XDECREF((PyObject *)session);
	PyErr_Clear();
	end_callback(server, &running);
	PyGILState_Release(held);
}

/* ---- the type ---- */

struct arguments {
	PyObject *variants, *functions[3];
	struct ndx_negotiation_server_attr attr;
};

static bool parse(PyObject *args, PyObject *kwargs, struct arguments *a)
{
	static char *names[] = {"address",
	                        "variants",
	                        "on_open",
	                        "on_staged",
	                        "on_closed",
	                        "max_sessions",
	                        "workers",
	                        "workers_most",
	                        "hello_timeout_ms",
	                        "stage_timeout_ms",
	                        "session_timeout_ms",
	                        "plugin_warn_ms",
	                        "max_message",
	                        "max_rounds",
	                        "max_history",
	                        NULL};
	struct ndx_negotiation_server_attr *attr = &a->attr;

	ndx_negotiation_server_attr_init(attr);
	a->functions[0] = a->functions[1] = a->functions[2] = Py_None;
	return PyArg_ParseTupleAndKeywords(
		       args, kwargs, "sO!|$OOOO&O&O&O&O&O&O&O&O&O&:Server", names, &attr->address,
		       &PyTuple_Type, &a->variants, &a->functions[0], &a->functions[1],
		       &a->functions[2], pyndx_u32, &attr->max_sessions, pyndx_u32, &attr->workers,
		       pyndx_u32, &attr->workers_most, pyndx_u32, &attr->hello_timeout_ms,
		       pyndx_u32, &attr->stage_timeout_ms, pyndx_u32, &attr->session_timeout_ms,
		       pyndx_u32, &attr->plugin_warn_ms, pyndx_u32, &attr->max_message, pyndx_u32,
		       &attr->max_rounds, pyndx_u32, &attr->max_history) != 0;
}

/* The handles of a tuple of variants; enters each. */
static size_t enter_variants(PyObject *variants, struct ndx_variant **out)
{
	Py_ssize_t size = PyTuple_Size(variants);
	size_t count = 0;

	if (size > VARIANTS)
		PyErr_Format(PyExc_ValueError, "at most %d variants", VARIANTS);
	while (size <= VARIANTS && (Py_ssize_t)count < size) {
		PyObject *variant = PyTuple_GetItem(variants, (Py_ssize_t)count);

		if (!pyndx_is(variant, pyndx.variant_type, "variant") ||
		    !object_enter((struct object *)variant))
			break;
		out[count++] = ((struct object *)variant)->handle;
	}
	return count;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_negotiation_server *handle = NULL;
	struct ndx_variant *variants[VARIANTS];
	enum ndx_status st = NDX_E_INVALID_PARAMETER;
	struct server *self;
	struct arguments a;
	size_t count;

	if (!parse(args, kwargs, &a))
		return NULL;
	self = (struct server *)object_new(type, &server_kind);
	if (self == NULL)
		return NULL;
	Py_INCREF(a.variants);
	self->variants = a.variants;
	for (int i = 0; i < 3; i++)
		Py_INCREF(a.functions[i]);
	self->on_open = a.functions[0];
	self->on_staged = a.functions[1];
	self->on_closed = a.functions[2];
	self->sessions = PyDict_New();
	count = enter_variants(a.variants, variants);
	if (PyErr_Occurred() == NULL) {
		a.attr.variants = variants;
		a.attr.variant_count = count;
		a.attr.events =
			(struct ndx_negotiation_server_events){on_open, on_staged, on_closed, self};
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_negotiation_server_create(&a.attr, &handle);
		Py_END_ALLOW_THREADS;
		if (st == NDX_OK)
			object_open(&self->base, handle);
		else
			(void)pyndx_raise_last(st);
	}
	while (count > 0)
		object_leave((struct object *)PyTuple_GetItem(a.variants, (Py_ssize_t)--count));
	if (st == NDX_OK)
		return &self->base.ob_base;
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

static PyObject *server_address(PyObject *self, void *unused)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_negotiation_server_get_address(((struct object *)self)->handle,
	                                        (struct sockaddr *)&address, &length);
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_from_address(&address) : pyndx_raise_last(st);
}

static PyObject *server_stats(PyObject *self, PyObject *unused)
{
	struct ndx_negotiation_server_stats s = {.size = sizeof(s)};
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_server_get_stats(((struct object *)self)->handle, &s);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:I}", "accepted", (unsigned long long)s.accepted,
		"refused", (unsigned long long)s.refused, "without_hello",
		(unsigned long long)s.without_hello, "completed", (unsigned long long)s.completed,
		"failed", (unsigned long long)s.failed, "resumed", (unsigned long long)s.resumed,
		"alive", s.alive, "threads", s.threads);
}

static PyObject *server_snapshot(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	char *json = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_server_snapshot(((struct object *)self)->handle, &json);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_take_text(json) : pyndx_raise_last(st);
}

static int server_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyObject *const objects[] = {as_server(self)->on_open, as_server(self)->on_staged,
	                             as_server(self)->on_closed};

	return pyndx_visit(self, objects, 3, visit, arg);
}

static int server_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef server_methods[] = {
	{"close", server_close, METH_NOARGS,
         "close(): end the server and its sessions. Raises BusyError in a callback of the server."},
	{"stats", server_stats, METH_NOARGS,
         "stats() -> dict: counters by the names of struct ndx_negotiation_server_stats."},
	{"snapshot", server_snapshot, METH_NOARGS,
         "snapshot() -> str: counters, limits and sessions as JSON (docs/observability.md)."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef server_getset[] = {
	{"address", server_address, NULL, "Where the server listens, with the port.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot server_slots[] = {
	{Py_tp_new, server_new},
	{Py_tp_methods, server_methods},
	{Py_tp_getset, server_getset},
	{Py_tp_traverse, server_traverse},
	{Py_tp_clear, server_clear},
	{Py_tp_doc, "Base of ndx.Server."},
	{0, NULL},
};

static PyType_Spec server_spec = {
	.name = "ndx._ndx.Server",
	.basicsize = sizeof(struct server),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = server_slots,
};

int pyndx_add_servers(PyObject *module)
{
	return pyndx_add_type(module, &server_spec, pyndx.object_type, &pyndx.server_type);
}
