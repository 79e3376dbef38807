/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: their calls are overlapped, and waited for in Python. */
#include "negotiation.h"

#include <stdlib.h>

static struct session *as_session(PyObject *self)
{
	return (struct session *)self;
}

static struct ndx_session *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
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
	groups_drop(&s->groups);
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
	(void)self; /* the server's or manager's */
}

static const struct kind lent_kind = {
	.name = "session of the server or manager",
	.rank = RANK_SESSION,
	.close = keep_handle,
	.drop = drop,
	.kept = "the session belongs to a server or manager",
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

/* The list of a tuple of queue pairs, for free(); NULL: it has none, or raised. */
static struct ndx_session_queue_pair *list_for(PyObject *tuple)
{
	size_t count = (size_t)PyTuple_Size(tuple);
	struct ndx_session_queue_pair *list;

	if (count > NDX_SESSION_QUEUE_PAIRS_MOST) {
		PyErr_Format(PyExc_ValueError, "at most %u queue pairs",
		             NDX_SESSION_QUEUE_PAIRS_MOST);
		return NULL;
	}
	if (count == 0)
		return NULL;
	list = calloc(count, sizeof(*list));
	if (list == NULL)
		PyErr_NoMemory();
	return list;
}

/* Hold the queue pairs of the attributes, which may be none. */
static bool hold_list(struct session *self, PyObject *tuple, struct ndx_session_queue_pair **list)
{
	*list = list_for(tuple);
	if (*list == NULL)
		return PyErr_Occurred() == NULL;
	self->groups = group_hold(tuple, *list);
	return self->groups != NULL;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_session_queue_pair *list = NULL;
	struct ndx_session *handle = NULL;
	struct session_arguments a;
	struct session *self;
	enum ndx_status st;

	if (!session_arguments(args, kwargs, &a))
		return NULL;
	self = (struct session *)object_new(type, &session_kind);
	if (self == NULL)
		goto fail;
	if (!resources_hold(&self->resources, a.connector, a.qp, a.memory, &a.attr.memory) ||
	    (a.queue_pairs != NULL && !hold_list(self, a.queue_pairs, &list)) ||
	    !object_enter((struct object *)a.variant))
		goto fail;
	Py_INCREF(a.variant);
	self->variant = a.variant;
	a.attr.variant = ((struct object *)a.variant)->handle;
	if (self->resources.connector != NULL)
		a.attr.connector = self->resources.connector->handle;
	if (self->resources.qp != NULL)
		a.attr.qp = self->resources.qp->handle;
	a.attr.queue_pairs = list;
	a.attr.queue_pair_count = list != NULL ? (size_t)PyTuple_Size(a.queue_pairs) : 0;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_create(&a.attr, &handle);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)a.variant);
	if (st == NDX_OK) {
		tls_free(&a.tls);
		free(list);
		object_open(&self->base, handle);
		return &self->base.ob_base;
	}
	(void)pyndx_raise_last(st);
fail:
	tls_free(&a.tls);
	free(list);
	Py_XDECREF((PyObject *)self);
	return NULL;
}

/* ---- calls ---- */

/* What to start; stages are 0 and more. */
#define CONNECT (-1)
#define RUN (-2)

/* Begin a call that is not for the session of a server or manager. */
static bool enter(PyObject *self)
{
	return object_is_own((struct object *)self) && object_enter((struct object *)self);
}

static PyObject *start(PyObject *self, PyObject *port, int what)
{
	struct operation *op;
	PyObject *result = NULL;
	enum ndx_status st;

	if (!enter(self))
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
	if (!enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	ndx_session_cancel(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	Py_RETURN_NONE;
}

/* _start_add(tuple, port): the operation's result is the index of the first one. */
static PyObject *session_start_add(PyObject *self, PyObject *args)
{
	struct ndx_session_queue_pair *list = NULL;
	struct session *s = as_session(self);
	struct group *group = NULL;
	PyObject *result = NULL;
	struct operation *op;
	PyObject *tuple, *port;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &tuple, &port) || !enter(self))
		return NULL;
	groups_settle(&s->groups);
	list = list_for(tuple);
	if (list != NULL)
		group = group_hold(tuple, list);
	else if (PyErr_Occurred() == NULL)
		PyErr_SetString(PyExc_ValueError, "no queue pair");
	op = group != NULL ? operation_new(port, "add_queue_pairs") : NULL;
	if (op == NULL)
		goto leave;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_add_queue_pairs_overlapped(handle_of(self), list, group->count, &op->ov);
	Py_END_ALLOW_THREADS;
	result = operation_started(op, &s->base, NULL, st);
	if (result != NULL) {
		Py_INCREF(result);
		group->adding = op;
		groups_add(&s->groups, group);
		group = NULL;
	}
leave:
	free(list);
	group_drop(group);
	object_leave(&s->base);
	return result;
}

static PyObject *session_settle(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!enter(self))
		return NULL;
	groups_settle(&as_session(self)->groups);
	object_leave((struct object *)self);
	Py_RETURN_NONE;
}

static PyObject *session_remove(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"first", "count", NULL};
	struct session *s = as_session(self);
	uint32_t count = 1;
	enum ndx_status st;
	uint32_t first;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&:remove_queue_pairs", names, pyndx_u32,
	                                 &first, pyndx_u32, &count) ||
	    !enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_remove_queue_pairs(handle_of(self), first, count);
	Py_END_ALLOW_THREADS;
	groups_settle(&s->groups);
	if (st == NDX_OK)
		groups_remove(&s->groups, first, count);
	object_leave(&s->base);
	return pyndx_done(st);
}

static PyMethodDef session_methods[] = {
	{"_start_connect", session_start_connect, METH_O, NULL},
	{"_start_run", session_start_run, METH_O, NULL},
	{"_start_execute", session_start_execute, METH_VARARGS, NULL},
	{"cancel", session_cancel, METH_NOARGS,
         "cancel(): the call in progress raises CanceledError, and so do later ones."},
	{"agreement", (PyCFunction)(void (*)(void))session_agreement, METH_VARARGS | METH_KEYWORDS,
         "agreement(queue_pair=None) -> dict: own, peer (descriptions), kind, mtu, client_reads, "
         "server_reads; of several queue pairs that of an index, None: the first one. Raises "
         "StateError before stage info has ended, InvalidParameterError (no such queue pair)."},
	{"_start_add", session_start_add, METH_VARARGS, NULL},
	{"_settle", session_settle, METH_NOARGS, NULL},
	{"_remove", (PyCFunction)(void (*)(void))session_remove, METH_VARARGS | METH_KEYWORDS,
         NULL},
	{"_error", session_error, METH_NOARGS, NULL},
	{"_add_error", session_add_error, METH_NOARGS, NULL},
	{"_history", session_history, METH_NOARGS, NULL},
	{"snapshot", session_snapshot, METH_NOARGS,
         "snapshot() -> str: state, agreement, failure and history as JSON."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef session_getset[] = {
	{"state", session_state, NULL, "ndx.SessionState.", NULL},
	{"id", session_id, NULL, "Number of the session, as in logs.", NULL},
	{"queue_pair_count", session_count, NULL,
         "Queue pairs of the session, without those that are being added or were removed.", NULL},
	{"server", session_server, NULL, "The server to which the session is connected, or \"\".",
         NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot session_slots[] = {
	{Py_tp_new, session_new},
	{Py_tp_methods, session_methods},
	{Py_tp_getset, session_getset},
	{Py_tp_doc, "Base of ndx.Session, and a session of a server or manager."},
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
