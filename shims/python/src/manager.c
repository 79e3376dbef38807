/* SPDX-License-Identifier: BSD-2-Clause */
/* Session managers: the base of ndx.SessionManager. */
#include "manager.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct manager *as_manager(PyObject *self)
{
	return (struct manager *)self;
}

static struct ndx_session_manager *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

/* ---- life ---- */

static void close_handle(struct object *self)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	/* In a callback of another object the library waits for nothing. */
	while (ndx_session_manager_close(self->handle, 1000) == NDX_PENDING)
		(void)nanosleep(&pause, NULL);
}

static void drop(struct object *self)
{
	struct manager *m = (struct manager *)self;

	for (int i = 0; i < MANAGER_FUNCTIONS; i++)
		Py_CLEAR(m->functions[i]);
	Py_CLEAR(m->records);
	Py_CLEAR(m->events);
	Py_CLEAR(m->negotiation);
}

static bool calls(const struct object *self, unsigned long thread)
{
	return running_on(((const struct manager *)self)->running, thread);
}

static const struct kind manager_kind = {
	.name = "session manager",
	.rank = RANK_SERVER,
	.close = close_handle,
	.drop = drop,
	.calls = calls,
};

static bool parse(PyObject *args, PyObject *kwargs, PyObject **negotiation, PyObject **functions,
                  struct ndx_session_manager_attr *attr)
{
	static char *names[] = {
		"negotiation",    "provide",       "reclaim",    "on_event",        "max_sessions",
		"max_connecting", "attempts",      "backoff_ms", "backoff_most_ms", "stable_ms",
		"max_events",     "end_with_peer", NULL};
	int end_with_peer = 0;

	ndx_session_manager_attr_init(attr);
	for (int i = 0; i < MANAGER_FUNCTIONS; i++)
		functions[i] = Py_None;
	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "O|$OOOO&O&O&O&O&O&O&p:SessionManager", names, negotiation,
		    &functions[ON_PROVIDE], &functions[ON_RECLAIM], &functions[ON_EVENT], pyndx_u32,
		    &attr->max_sessions, pyndx_u32, &attr->max_connecting, pyndx_u32,
		    &attr->attempts, pyndx_u32, &attr->backoff_ms, pyndx_u32,
		    &attr->backoff_most_ms, pyndx_u32, &attr->stable_ms, pyndx_u32,
		    &attr->max_events, &end_with_peer))
		return false;
	attr->end_with_peer = end_with_peer != 0;
	return pyndx_is(*negotiation, pyndx.framework_type, "negotiation");
}

static PyObject *manager_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_session_manager *handle = NULL;
	struct ndx_session_manager_attr attr;
	PyObject *functions[MANAGER_FUNCTIONS];
	PyObject *negotiation;
	struct manager *self;
	enum ndx_status st;

	if (!parse(args, kwargs, &negotiation, functions, &attr))
		return NULL;
	self = (struct manager *)object_new(type, &manager_kind);
	if (self == NULL)
		return NULL;
	Py_INCREF(negotiation);
	self->negotiation = negotiation;
	for (int i = 0; i < MANAGER_FUNCTIONS; i++) {
		Py_INCREF(functions[i]);
		self->functions[i] = functions[i];
	}
	self->records = PyDict_New();
	self->events = PyList_New(0);
	if (self->records == NULL || self->events == NULL ||
	    !object_enter((struct object *)negotiation))
		goto fail;
	attr.negotiation = ((struct object *)negotiation)->handle;
	manager_set_events(self, &attr);
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_create(&attr, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(&self->base, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave((struct object *)negotiation);
	if (st == NDX_OK)
		return &self->base.ob_base;
fail:
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

/* ---- sessions ---- */

/* Add a session whose record is there. */
static PyObject *add(struct manager *self, struct session_arguments *a, uint64_t number)
{
	PyObject *result = NULL;
	enum ndx_status st;
	uint64_t id = 0;

	if (!object_enter((struct object *)a->variant))
		return NULL;
	a->attr.variant = ((struct object *)a->variant)->handle;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_add(self->base.handle, &a->attr, (void *)(uintptr_t)number, &id);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK) {
		Py_DECREF(manager_context(self, (void *)(uintptr_t)number, id));
		result = PyLong_FromUnsignedLongLong(id);
	} else {
		(void)pyndx_raise_last(st);
	}
	object_leave((struct object *)a->variant);
	return result;
}

/* _add(context, variant, servers, ...) */
static PyObject *manager_add(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct manager *m = as_manager(self);
	PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_Size(args));
	PyObject *capsule = NULL;
	struct session_arguments a;
	PyObject *result = NULL;
	PyObject *key = NULL;
	uint64_t number;

	if (rest == NULL)
		return NULL;
	if (PyTuple_Size(args) == 0) {
		PyErr_SetString(PyExc_TypeError, "no context");
		goto out;
	}
	if (!session_arguments(rest, kwargs, &a))
		goto out;
	capsule = manager_record_new(PyTuple_GetItem(args, 0), &a);
	if (capsule == NULL || !object_enter(&m->base))
		goto out;
	number = ++m->last;
	key = PyLong_FromUnsignedLongLong(number);
	if (key != NULL && PyDict_SetItem(m->records, key, capsule) == 0)
		result = add(m, &a, number);
	if (result == NULL) {
		PyObject *type, *value, *trace;

		PyErr_Fetch(&type, &value, &trace);
		manager_forget(m, number);
		PyErr_Restore(type, value, trace);
	}
	object_leave(&m->base);
out:
	Py_XDECREF(key);
	Py_XDECREF(capsule);
	Py_DECREF(rest);
	return result;
}

static PyObject *manager_cancel(PyObject *self, PyObject *args)
{
	enum ndx_status st;
	uint64_t id;

	if (!PyArg_ParseTuple(args, "O&:cancel", pyndx_u64, &id) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_cancel(handle_of(self), id);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *manager_remove(PyObject *self, PyObject *args)
{
	enum ndx_status st;
	uint64_t id;

	if (!PyArg_ParseTuple(args, "O&:remove", pyndx_u64, &id) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_remove(handle_of(self), id);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		manager_forget_id(as_manager(self), id);
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *manager_report(PyObject *self, PyObject *args)
{
	enum ndx_status st;
	uint32_t life;
	uint64_t id;
	int status;

	if (!PyArg_ParseTuple(args, "O&O&i:report", pyndx_u64, &id, pyndx_u32, &life, &status) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_report(handle_of(self), id, life, (enum ndx_status)status);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *entry_of(const struct manager *manager, const struct ndx_managed_entry *e)
{
	return Py_BuildValue("(KNNIIINNNN)", (unsigned long long)e->id,
	                     manager_context(manager, e->context, e->id),
	                     pyndx_enum(PYTHON_MANAGED_STATE, e->state), e->life, e->attempts,
	                     e->failures, pyndx_status(e->status),
	                     pyndx_enum(PYTHON_LAYER, e->layer), pyndx_text(e->server),
	                     pyndx_text(e->text));
}

/* All entries, for free(); *count of them. NULL: raised. */
static struct ndx_managed_entry *entries(PyObject *self, size_t *count)
{
	struct ndx_managed_entry *list = NULL;
	enum ndx_status st;
	size_t total = 0;

	*count = 0;
	do {
		*count = total + 16; /* some may come in the meantime */
		free(list);
		list = calloc(*count, sizeof(*list));
		if (list == NULL) {
			PyErr_NoMemory();
			return NULL;
		}
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_session_manager_list(handle_of(self), list, count, &total);
		Py_END_ALLOW_THREADS;
	} while (st == NDX_OK && total > *count);
	if (st == NDX_OK)
		return list;
	free(list);
	(void)pyndx_raise_last(st);
	return NULL;
}

static PyObject *manager_list(PyObject *self, PyObject *unused)
{
	struct ndx_managed_entry *all;
	PyObject *list = NULL;
	size_t count;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	all = entries(self, &count);
	if (all != NULL)
		list = PyList_New((Py_ssize_t)count);
	for (size_t i = 0; list != NULL && i < count; i++) {
		PyObject *entry = entry_of(as_manager(self), &all[i]);

		if (entry == NULL || PyList_SetItem(list, (Py_ssize_t)i, entry) != 0)
			Py_CLEAR(list);
	}
	free(all);
	object_leave((struct object *)self);
	return list;
}

static PyObject *manager_stats(PyObject *self, PyObject *unused)
{
	struct ndx_session_manager_stats s = {.size = sizeof(s)};
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_get_stats(handle_of(self), &s);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:I,s:I,s:I,s:I,s:I}", "added",
		(unsigned long long)s.added, "attempts", (unsigned long long)s.attempts, "failed",
		(unsigned long long)s.failed, "lives", (unsigned long long)s.lives, "lost",
		(unsigned long long)s.lost, "gave_up", (unsigned long long)s.gave_up, "canceled",
		(unsigned long long)s.canceled, "ended", (unsigned long long)s.ended, "events_lost",
		(unsigned long long)s.events_lost, "sessions", s.sessions, "queued", s.queued,
		"connecting", s.connecting, "up", s.up, "waiting", s.waiting, "over", s.over);
}

/* ---- events ---- */

/* _events() -> list: events that event() got, and that it has not returned yet, as buffers, the
 * oldest first. */
static PyObject *manager_events(PyObject *self, PyObject *unused)
{
	PyObject *events;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	events = as_manager(self)->events;
	Py_INCREF(events);
	object_leave((struct object *)self);
	return events;
}

/* The event is there, or add (operation, buffer) to the list. */
static bool start_event(PyObject *self, PyObject *port, PyObject *started, PyObject *buffer)
{
	struct ndx_managed_event *event =
		(struct ndx_managed_event *)(void *)PyBytes_AsString(buffer);
	struct operation *op = operation_new(port, "event");
	PyObject *result;
	enum ndx_status st;

	if (op == NULL)
		return false;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_session_manager_get_event(handle_of(self), event, &op->ov);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK) {
		Py_DECREF(&op->ob_base);
		return PyList_Append(as_manager(self)->events, buffer) == 0;
	}
	result = operation_started(op, (struct object *)self, buffer, st);
	if (result == NULL)
		return false;
	Py_INCREF(buffer);
	return events_add(started, result, buffer);
}

/* _start_event(port, started): an event that is there is added to _events(); else (operation,
 * buffer) to the list. Neither is a result: Ctrl-C can take the results of calls away. */
static PyObject *manager_start_event(PyObject *self, PyObject *args)
{
	PyObject *port, *started;
	PyObject *buffer;
	bool good = false;

	if (!PyArg_ParseTuple(args, "OO!", &port, &PyList_Type, &started))
		return NULL;
	buffer = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(struct ndx_managed_event));
	if (buffer == NULL)
		return NULL;
	memset(PyBytes_AsString(buffer), 0, sizeof(struct ndx_managed_event));
	if (object_enter((struct object *)self)) {
		good = start_event(self, port, started, buffer);
		object_leave((struct object *)self);
	}
	Py_DECREF(buffer);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}

static void cancel_event(struct object *self)
{
	if (object_enter(self)) {
		/* With the interpreter's lock, so that the request is that of the caller: another
		 * thread's can begin only when it is over. The call does not wait. */
		ndx_session_manager_cancel_event(self->handle);
		object_leave(self);
	}
	PyErr_Clear(); /* closed: then the operation is complete */
}

/* _end_event(started): the waits of the list are over. */
static PyObject *manager_end_event(PyObject *self, PyObject *started)
{
	if (!PyList_Check(started)) {
		PyErr_SetString(PyExc_TypeError, "no list");
		return NULL;
	}
	if (!events_end(started, (struct object *)self, &as_manager(self)->events, cancel_event))
		return NULL;
	Py_RETURN_NONE;
}

/* _event_of(buffer): the event of an operation that has completed. */
static PyObject *manager_event_of(PyObject *self, PyObject *buffer)
{
	struct ndx_managed_event event;
	char *bytes = NULL;
	Py_ssize_t size = 0;

	if (PyBytes_AsStringAndSize(buffer, &bytes, &size) != 0)
		return NULL;
	if (size != (Py_ssize_t)sizeof(event)) {
		PyErr_SetString(PyExc_ValueError, "no event");
		return NULL;
	}
	memcpy(&event, bytes, sizeof(event));
	event.server[sizeof(event.server) - 1] = '\0';
	event.text[sizeof(event.text) - 1] = '\0';
	return manager_event(as_manager(self), &event);
}

/* ---- the type ---- */

static int manager_traverse(PyObject *self, visitproc visit, void *arg)
{
	const struct manager *m = as_manager(self);
	int rc = pyndx_visit(self, m->functions, MANAGER_FUNCTIONS, visit, arg);
	PyObject *key, *capsule;
	Py_ssize_t at = 0;

	/* The capsules of the records, which the collector does not see into, are the manager's. */
	while (rc == 0 && m->records != NULL && PyDict_Next(m->records, &at, &key, &capsule)) {
		const struct record *record = manager_record(capsule);

		rc = visit(record->context, arg);
		if (rc == 0)
			rc = resources_visit(&record->resources, visit, arg);
	}
	return rc;
}

static int manager_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef manager_methods[] = {
	{"_add", (PyCFunction)(void (*)(void))manager_add, METH_VARARGS | METH_KEYWORDS, NULL},
	{"cancel", manager_cancel, METH_VARARGS,
         "cancel(id): end a session's attempt or life; the event CANCELED follows, and no attempt "
         "begins any more. Disconnect first to end a connection gracefully. Raises NotFoundError."},
	{"remove", manager_remove, METH_VARARGS,
         "remove(id): take a session that is over from the list. Raises BusyError (it is not over, "
         "or its last event is being told), NotFoundError."},
	{"_report", manager_report, METH_VARARGS, NULL},
	{"_list", manager_list, METH_NOARGS, NULL},
	{"stats", manager_stats, METH_NOARGS,
         "stats() -> dict: counters by the names of struct ndx_session_manager_stats."},
	{"_events", manager_events, METH_NOARGS, NULL},
	{"_start_event", manager_start_event, METH_VARARGS, NULL},
	{"_end_event", manager_end_event, METH_O, NULL},
	{"_event_of", manager_event_of, METH_O, NULL},
	{"close", object_close_method, METH_NOARGS,
         "close(): cancel all sessions, and wait for their last events. Raises BusyError in a "
         "callback of the manager."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot manager_slots[] = {
	{Py_tp_new, manager_new},
	{Py_tp_methods, manager_methods},
	{Py_tp_traverse, manager_traverse},
	{Py_tp_clear, manager_clear},
	{Py_tp_finalize, object_finalize},
	{Py_tp_doc, "Base of ndx.SessionManager and ndx.aio.SessionManager."},
	{0, NULL},
};

static PyType_Spec manager_spec = {
	.name = "ndx._ndx.SessionManager",
	.basicsize = sizeof(struct manager),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = manager_slots,
};

int pyndx_add_managers(PyObject *module)
{
	PyTypeObject *type = NULL;

	return pyndx_add_type(module, &manager_spec, pyndx.object_type, &type);
}
