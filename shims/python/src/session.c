/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: their calls are overlapped, and waited for in Python. */
#include "negotiation.h"

#include <string.h>

#define SERVERS 16

static struct session *as_session(PyObject *self)
{
	return (struct session *)self;
}

static struct ndx_session *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

/* ---- what it connects ---- */

bool resources_hold(struct resources *r, PyObject *connector, PyObject *qp, PyObject *region,
                    struct ndx_memory_description *memory)
{
	memset(memory, 0, sizeof(*memory));
	if ((connector != Py_None && !pyndx_is(connector, pyndx.connector_type, "connector")) ||
	    (qp != Py_None && !pyndx_is(qp, pyndx.pair_type, "qp")) ||
	    (region != Py_None && !pyndx_is(region, pyndx.region_type, "memory")))
		return false;
	if (connector != Py_None) {
		if (!object_enter((struct object *)connector))
			return false;
		r->connector = (struct object *)connector;
	}
	if (qp != Py_None) {
		if (!object_enter((struct object *)qp))
			return false;
		r->qp = (struct object *)qp;
	}
	if (region != Py_None) {
		struct region *mr = (struct region *)region;

		if (!object_enter(&mr->base))
			return false;
		r->region = region;
		memory->address = (uintptr_t)mr->buffer.buf;
		memory->length = (uint64_t)mr->buffer.len;
		memory->token = ndx_mr_get_remote_token(mr->base.handle);
	}
	return true;
}

void resources_drop(struct resources *r)
{
	struct resources held = *r;

	memset(r, 0, sizeof(*r));
	if (held.connector != NULL)
		object_leave(held.connector);
	if (held.qp != NULL)
		object_leave(held.qp);
	if (held.region != NULL)
		object_leave((struct object *)held.region);
}

/* ---- life ---- */

static void close_handle(struct object *self)
{
	ndx_session_close(self->handle);
}

static void drop(struct object *self)
{
	struct session *s = (struct session *)self;

	resources_drop(&s->resources);
	Py_CLEAR(s->variant);
}

static const struct kind session_kind = {
	.name = "session",
	.rank = RANK_SESSION,
	.close = close_handle,
	.drop = drop,
};

static void keep_handle(struct object *self)
{
	(void)self; /* the server's */
}

static const struct kind lent_kind = {
	.name = "session of the server",
	.rank = RANK_SESSION,
	.close = keep_handle,
	.drop = drop,
};

struct session *session_lent(struct ndx_session *handle)
{
	struct object *self = object_new(pyndx.session_type, &lent_kind);

	if (self != NULL)
		object_open(self, handle);
	return (struct session *)self;
}

void session_lent_end(struct session *session)
{
	object_close(&session->base);
	/* The library frees the handle next. The calls in progress of other threads do not wait. */
	object_wait_closed(&session->base, NDX_INFINITE);
}

struct texts {
	const char *at[SERVERS];
	size_t count;
};

/* The texts of a tuple, which keeps them. */
static bool texts_of(PyObject *tuple, struct texts *texts)
{
	Py_ssize_t size = PyTuple_Size(tuple);

	if (size > SERVERS) {
		PyErr_Format(PyExc_ValueError, "at most %d servers", SERVERS);
		return false;
	}
	for (texts->count = 0; (Py_ssize_t)texts->count < size; texts->count++) {
		const char *text = PyUnicode_AsUTF8AndSize(
			PyTuple_GetItem(tuple, (Py_ssize_t)texts->count), NULL);

		if (text == NULL)
			return false;
		texts->at[texts->count] = text;
	}
	return true;
}

struct arguments {
	PyObject *variant, *servers, *connector, *qp, *memory;
	struct ndx_session_attr attr;
};

static bool parse(PyObject *args, PyObject *kwargs, struct arguments *a)
{
	static char *names[] = {"variant",
	                        "servers",
	                        "connector",
	                        "qp",
	                        "memory",
	                        "inbound_read_limit",
	                        "outbound_read_limit",
	                        "connect_timeout_ms",
	                        "attempts",
	                        "backoff_ms",
	                        "backoff_most_ms",
	                        "stage_timeout_ms",
	                        "session_timeout_ms",
	                        "max_message",
	                        "max_rounds",
	                        "max_history",
	                        NULL};
	struct ndx_session_attr *attr = &a->attr;

	ndx_session_attr_init(attr);
	a->connector = a->qp = a->memory = Py_None;
	return PyArg_ParseTupleAndKeywords(
		       args, kwargs, "OO!|$OOOO&O&O&O&O&O&O&O&O&O&O&:Session", names, &a->variant,
		       &PyTuple_Type, &a->servers, &a->connector, &a->qp, &a->memory, pyndx_u32,
		       &attr->inbound_read_limit, pyndx_u32, &attr->outbound_read_limit, pyndx_u32,
		       &attr->connect_timeout_ms, pyndx_u32, &attr->attempts, pyndx_u32,
		       &attr->backoff_ms, pyndx_u32, &attr->backoff_most_ms, pyndx_u32,
		       &attr->stage_timeout_ms, pyndx_u32, &attr->session_timeout_ms, pyndx_u32,
		       &attr->max_message, pyndx_u32, &attr->max_rounds, pyndx_u32,
		       &attr->max_history) &&
	       pyndx_is(a->variant, pyndx.variant_type, "variant");
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_session *handle = NULL;
	struct session *self;
	struct arguments a;
	struct texts servers;
	enum ndx_status st;

	if (!parse(args, kwargs, &a) || !texts_of(a.servers, &servers))
		return NULL;
	self = (struct session *)object_new(type, &session_kind);
	if (self == NULL)
		return NULL;
	if (!resources_hold(&self->resources, a.connector, a.qp, a.memory, &a.attr.memory) ||
	    !object_enter((struct object *)a.variant))
		goto fail;
	Py_INCREF(a.variant);
	self->variant = a.variant;
	a.attr.variant = ((struct object *)a.variant)->handle;
	a.attr.servers = servers.at;
	a.attr.server_count = servers.count;
	if (self->resources.connector != NULL)
		a.attr.connector = self->resources.connector->handle;
	if (self->resources.qp != NULL)
		a.attr.qp = self->resources.qp->handle;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_create(&a.attr, &handle);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)a.variant);
	if (st == NDX_OK) {
		object_open(&self->base, handle);
		return &self->base.ob_base;
	}
	(void)pyndx_raise_last(st);
fail:
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

/* ---- calls ---- */

/* What to start; stages are 0 and more. */
#define CONNECT (-1)
#define RUN (-2)

static PyObject *start(PyObject *self, PyObject *port, int what)
{
	struct operation *op;
	PyObject *result = NULL;
	enum ndx_status st;

	if (!object_enter((struct object *)self))
		return NULL;
	op = operation_new(port, "session");
	if (op != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		if (what == CONNECT)
			st = ndx_session_connect_overlapped(handle_of(self), &op->ov);
		else if (what == RUN)
			st = ndx_session_run_overlapped(handle_of(self), &op->ov);
		else
			st = ndx_session_execute_overlapped(handle_of(self), (enum ndx_stage)what,
			                                    &op->ov);
		Py_END_ALLOW_THREADS;
		result = operation_started(op, (struct object *)self, NULL, st);
	}
	object_leave((struct object *)self);
	return result;
}

static PyObject *session_start_connect(PyObject *self, PyObject *port)
{
	return start(self, port, CONNECT);
}

static PyObject *session_start_run(PyObject *self, PyObject *port)
{
	return start(self, port, RUN);
}

/* _start_execute(stage, port) */
static PyObject *session_start_execute(PyObject *self, PyObject *args)
{
	PyObject *port;
	unsigned stage;

	if (!PyArg_ParseTuple(args, "O&O", pyndx_u32, &stage, &port))
		return NULL;
	if (stage > NDX_STAGE_DONE) {
		PyErr_SetString(PyExc_ValueError, "there is no such stage");
		return NULL;
	}
	return start(self, port, (int)stage);
}

static PyObject *session_cancel(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (as_session(self)->variant == NULL)
		return pyndx_raise(NDX_E_INVALID_DEVICE_STATE, "the session belongs to a server",
		                   0);
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	ndx_session_cancel(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	Py_RETURN_NONE;
}

static PyMethodDef session_methods[] = {
	{"_start_connect", session_start_connect, METH_O, NULL},
	{"_start_run", session_start_run, METH_O, NULL},
	{"_start_execute", session_start_execute, METH_VARARGS, NULL},
	{"cancel", session_cancel, METH_NOARGS,
         "cancel(): the call in progress raises CanceledError, and so do later ones."},
	{"agreement", session_agreement, METH_NOARGS,
         "agreement() -> dict: own, peer (descriptions), kind, mtu, client_reads, server_reads. "
         "Raises StateError before stage info has ended."},
	{"_error", session_error, METH_NOARGS, NULL},
	{"_history", session_history, METH_NOARGS, NULL},
	{"snapshot", session_snapshot, METH_NOARGS,
         "snapshot() -> str: state, agreement, failure and history as JSON."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef session_getset[] = {
	{"state", session_state, NULL, "ndx.SessionState.", NULL},
	{"id", session_id, NULL, "Number of the session, as in logs.", NULL},
	{"server", session_server, NULL, "The server to which the session is connected, or \"\".",
         NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot session_slots[] = {
	{Py_tp_new, session_new},
	{Py_tp_methods, session_methods},
	{Py_tp_getset, session_getset},
	{Py_tp_doc, "Base of ndx.Session, and a session of a server."},
	{0, NULL},
};

static PyType_Spec session_spec = {
	.name = "ndx._ndx.Session",
	.basicsize = sizeof(struct session),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = session_slots,
};

int pyndx_add_sessions(PyObject *module)
{
	return pyndx_add_type(module, &session_spec, pyndx.object_type, &pyndx.session_type);
}
