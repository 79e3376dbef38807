/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of objects: calls in progress, close, the collector, and the end of the interpreter. */
#include "pyndx.h"

#include <string.h>
#include <time.h>

struct object *object_new(PyTypeObject *type, const struct kind *kind)
{
	struct object *self;

	if (!pyndx_usable())
		return NULL;
	self = (struct object *)PyType_GenericAlloc(type, 0);
	if (self != NULL)
		self->kind = kind;
	return self;
}

void object_open(struct object *self, void *handle)
{
	self->handle = handle;
	self->next = pyndx.objects;
	self->link = &pyndx.objects;
	if (self->next != NULL)
		self->next->link = &self->next;
	pyndx.objects = self;
}

static void unlink_object(struct object *self)
{
	if (self->link == NULL)
		return;
	*self->link = self->next;
	if (self->next != NULL)
		self->next->link = self->link;
	self->next = NULL;
	self->link = NULL;
}

/* Close the handle. No call is in progress, and none begins. */
static void finish(struct object *self)
{
	self->finishing = true;
	unlink_object(self);
	if (self->handle != NULL) {
		/* In the child of a fork the handle is lost: its threads and locks are not there.
		 */
		if (!pyndx.forked) {
			Py_BEGIN_ALLOW_THREADS;
			self->kind->close(self);
			Py_END_ALLOW_THREADS;
		}
		self->handle = NULL;
	}
	operation_end_all(self);
	if (self->kind->drop != NULL)
		self->kind->drop(self);
}

/* Does that thread run a callback of the object? 0: does any? */
static bool calls(const struct object *self, unsigned long thread)
{
	return self->kind->calls != NULL && self->kind->calls(self, thread);
}

bool object_in_callback(const struct object *self)
{
	char text[100];

	if (!calls(self, PyThread_get_thread_ident()))
		return false;
	(void)snprintf(text, sizeof(text),
	               "called in a callback of the %s: let another thread do it",
	               self->kind->name);
	(void)pyndx_raise(NDX_E_DEVICE_BUSY, text, 0);
	return true;
}

bool object_is_own(const struct object *self)
{
	if (self->kind == NULL || self->kind->kept == NULL)
		return true;
	(void)pyndx_raise(NDX_E_INVALID_DEVICE_STATE, self->kind->kept, 0);
	return false;
}

/* Let other threads run. */
static void pause_ms(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	Py_BEGIN_ALLOW_THREADS;
	(void)nanosleep(&t, NULL);
	Py_END_ALLOW_THREADS;
}

void object_close(struct object *self)
{
	if (self->closing)
		return;
	self->closing = true;
	/* The call in progress may be one of a callback, whose thread cannot close what waits for
	 * the callback. Such calls do not wait, and no other call begins. */
	while (self->busy > 0 && calls(self, 0))
		pause_ms(1);
	if (self->busy == 0 && !self->finishing)
		finish(self);
}

void object_wait_closed(struct object *self, uint32_t most_ms)
{
	Py_INCREF(&self->ob_base);
	for (uint32_t ms = 0; self->handle != NULL && (most_ms == NDX_INFINITE || ms < most_ms);
	     ms++)
		pause_ms(1);
	Py_DECREF(&self->ob_base);
}

void object_halt(void)
{
	/* Python ends the thread in one of the pauses. */
	for (int ms = 0; pyndx.ending && ms < 1000; ms += 10)
		pause_ms(10);
}

bool object_give(struct object *self)
{
	if (operation_pending(self)) {
		char text[120];

		(void)snprintf(text, sizeof(text),
		               "an operation of the %s is in flight: wait for it, or cancel it",
		               self->kind->name);
		(void)pyndx_raise(NDX_E_DEVICE_BUSY, text, 0);
		return false;
	}
	self->leaving = true;
	return true;
}

void object_take(struct object *self)
{
	unlink_object(self);
	self->handle = NULL;
	self->closing = true;
	self->leaving = false;
	operation_end_all(self); /* complete: object_give() */
	if (self->kind->drop != NULL)
		self->kind->drop(self);
}

void object_keep(struct object *self)
{
	self->leaving = false;
}

bool object_recall(struct object *self)
{
	if (self->lent > 0) {
		(void)pyndx_raise(NDX_E_DEVICE_BUSY,
		                  "a session or another thread uses the queue pair", 0);
		return false;
	}
	self->recall++;
	return true;
}

void object_recalled(struct object *self)
{
	self->recall--;
}

static int drop_reference(void *object)
{
	Py_DECREF((PyObject *)object);
	return 0;
}

void object_drop_later(struct object *self)
{
	if (Py_REFCNT(&self->ob_base) > 1)
		Py_DECREF(&self->ob_base);
	else if (Py_AddPendingCall(drop_reference, self) != 0)
		(void)0; /* rather a leak than a thread that waits for itself */
}

/* Raises if no call of the object may begin. */
static bool may_enter(const struct object *self)
{
	if (self->closing || self->handle == NULL) {
		char text[80];

		(void)snprintf(text, sizeof(text), "the %s is closed",
		               self->kind != NULL ? self->kind->name : "object");
		(void)pyndx_raise_named("ClosedError", text);
		return false;
	}
	if (self->leaving || (self->lender != NULL && self->lender->recall > 0)) {
		(void)pyndx_raise(NDX_E_DEVICE_BUSY, "another thread ends the object", 0);
		return false;
	}
	return true;
}

static void enter_one(struct object *self)
{
	Py_INCREF(&self->ob_base);
	self->busy++;
}

bool object_enter(struct object *self)
{
	if (pyndx.forked)
		return pyndx_usable();
	/* The lender of a closed object may be gone. */
	if (!may_enter(self) || (self->lender != NULL && !may_enter(self->lender)))
		return false;
	if (self->lender != NULL) {
		enter_one(self->lender);
		self->lender->lent++;
	}
	enter_one(self);
	return true;
}

static void leave_one(struct object *self)
{
	self->busy--;
	/* In a callback: the thread that closes the object waits for this call. */
	if (self->busy == 0 && self->closing && self->handle != NULL && !self->finishing &&
	    !calls(self, PyThread_get_thread_ident())) {
		PyObject *type, *value, *trace;

		PyErr_Fetch(&type, &value, &trace);
		finish(self);
		PyErr_Restore(type, value, trace);
	}
	Py_DECREF(&self->ob_base);
}

void object_leave(struct object *self)
{
	struct object *lender = self->lender;

	leave_one(self);
	if (lender != NULL) {
		lender->lent--;
		leave_one(lender);
	}
}

bool objects_enter(struct object *const *objects, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!object_enter(objects[i])) {
			objects_leave(objects, i);
			return false;
		}
	}
	return true;
}

void objects_leave(struct object *const *objects, size_t count)
{
	while (count > 0)
		object_leave(objects[--count]);
}

/* ---- calls of the library ---- */

PyObject *object_new_on(PyTypeObject *type, const struct kind *kind, PyObject *adapter,
                        object_create_fn *create, const void *attr)
{
	struct object *above = (struct object *)adapter;
	struct object *self;
	void *handle = NULL;
	enum ndx_status st;

	if (!pyndx_is(adapter, pyndx.adapter_type, "adapter"))
		return NULL;
	self = object_new(type, kind);
	if (self == NULL || !object_enter(above)) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = create(above->handle, attr, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(self, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave(above);
	if (st == NDX_OK)
		return &self->ob_base;
	Py_DECREF(&self->ob_base);
	return NULL;
}

PyObject *object_call(PyObject *self, object_call_fn *fn)
{
	struct object *object = (struct object *)self;
	enum ndx_status st;

	if (!object_enter(object))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = fn(object->handle);
	Py_END_ALLOW_THREADS;
	object_leave(object);
	return pyndx_done(st);
}

PyObject *object_start(PyObject *self, PyObject *port, object_start_fn *fn, const char *what)
{
	struct object *object = (struct object *)self;
	struct operation *op;
	PyObject *result = NULL;
	enum ndx_status st;

	if (!object_enter(object))
		return NULL;
	op = operation_new(port, what);
	if (op != NULL) {
		Py_BEGIN_ALLOW_THREADS;
		st = fn(object->handle, &op->ov);
		Py_END_ALLOW_THREADS;
		result = operation_started(op, object, NULL, st);
	}
	object_leave(object);
	return result;
}

/* ---- the type ---- */

static void object_dealloc(PyObject *object)
{
	struct object *self = (struct object *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	PyObject *error_type, *value, *trace;

	if ((PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC) != 0)
		PyObject_GC_UnTrack(object);
	if (self->kind != NULL && (!self->closing || self->handle != NULL)) {
		PyErr_Fetch(&error_type, &value, &trace);
		self->closing = true;
		finish(self);
		PyErr_Restore(error_type, value, trace);
	}
	release(object);
	Py_DECREF(type);
}

void object_finalize(PyObject *self)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	if (((struct object *)self)->kind != NULL)
		object_close((struct object *)self);
	PyErr_Restore(type, value, trace);
}

PyObject *object_close_method(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (((struct object *)self)->kind != NULL) {
		if (!object_is_own((struct object *)self) ||
		    object_in_callback((struct object *)self))
			return NULL;
		object_close((struct object *)self);
	}
	Py_RETURN_NONE;
}

static PyObject *enter_method(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	object_leave((struct object *)self);
	Py_INCREF(self);
	return self;
}

static PyObject *exit_method(PyObject *self, PyObject *args)
{
	PyObject *done;

	(void)args;
	/* By name, so that a class in Python can do more. */
	done = PyObject_CallMethod(self, "close", NULL);
	if (done == NULL)
		return NULL;
	Py_DECREF(done);
	Py_RETURN_FALSE;
}

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct object *)self)->closing ||
	                       ((struct object *)self)->handle == NULL);
}

static PyMethodDef object_methods[] = {
	{"close", object_close_method, METH_NOARGS,
         "Close the object. Later calls raise ClosedError. While another thread is in a call of "
         "the object, the object closes when that call returns. Closing twice does nothing."},
	{"__enter__", enter_method, METH_NOARGS, NULL},
	{"__exit__", exit_method, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef object_getset[] = {
	{"closed", get_closed, NULL, "True after close().", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot object_slots[] = {
	{Py_tp_dealloc, object_dealloc},
	{Py_tp_methods, object_methods},
	{Py_tp_getset, object_getset},
	{Py_tp_doc, "Base of all objects of the library."},
	{0, NULL},
};

static PyType_Spec object_spec = {
	.name = "ndx._ndx.Object",
	.basicsize = sizeof(struct object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = object_slots,
};

/* Wait for the calls of closed objects of that rank: threads notice the close within a slice. */
static void wait_for_rank(enum rank rank)
{
	struct object *o = pyndx.objects;

	for (uint32_t left = 1000; o != NULL && left > 0;) {
		if (o->kind->rank != rank || !o->closing) {
			o = o->next;
			continue;
		}
		object_wait_closed(o, 5);
		left -= 5;
		o = pyndx.objects; /* the list may have changed */
	}
}

/* At the end of the interpreter, while it can still run callbacks: close all that is open. */
static PyObject *shutdown_function(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	pyndx.ending = true;
	for (int rank = RANK_SERVER; !pyndx.forked && rank <= RANK_ADAPTER; rank++) {
		struct object *o = pyndx.objects;

		while (o != NULL) {
			if (o->kind->rank != (enum rank)rank || o->closing) {
				o = o->next;
				continue;
			}
			Py_INCREF(&o->ob_base);
			object_close(o);
			Py_DECREF(&o->ob_base);
			o = pyndx.objects; /* the list may have changed */
		}
		wait_for_rank((enum rank)rank);
	}
	pyndx.ended = true;
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"_shutdown", shutdown_function, METH_NOARGS, "Close all objects."},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_objects(PyObject *module)
{
	PyObject *atexit = PyImport_ImportModule("atexit");
	PyObject *shutdown = NULL;
	PyObject *registered = NULL;
	int rc = -1;

	if (atexit == NULL || PyModule_AddFunctions(module, functions) != 0)
		goto out;
	shutdown = PyObject_GetAttrString(module, "_shutdown");
	if (shutdown == NULL)
		goto out;
	registered = PyObject_CallMethod(atexit, "register", "O", shutdown);
	if (registered == NULL)
		goto out;
	rc = pyndx_add_type(module, &object_spec, NULL, &pyndx.object_type);
out:
	Py_XDECREF(registered);
	Py_XDECREF(shutdown);
	Py_XDECREF(atexit);
	return rc;
}
