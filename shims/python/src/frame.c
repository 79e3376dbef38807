/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: buffers of slots of a receiver's slab. A memoryview of a frame holds the frame, and the
 * frame cannot be released while a view exists: release() ends the view that `data` returned, and
 * fails with BufferError if others exist. So no view ever shows a slot that was posted again.
 */
#include "stream.h"

#include <string.h>

#define RELEASE_MOST 64 /* slots that are released with one call */

struct frame {
	PyObject ob_base;
	const struct ndx_frame *handle; /* NULL: released */
	Py_ssize_t exports;
	PyObject *view; /* weak reference to what `data` returned */
};

static struct frame *as_frame(PyObject *self)
{
	return (struct frame *)self;
}

PyObject *frame_new(const struct ndx_frame *handle)
{
	struct frame *self = (struct frame *)PyType_GenericAlloc(pyndx.frame_type, 0);

	if (self == NULL) {
		ndx_frame_release(handle);
		return NULL;
	}
	self->handle = handle;
	return &self->ob_base;
}

static bool is_there(struct frame *self)
{
	if (pyndx.forked)
		return pyndx_usable();
	if (self->handle == NULL)
		PyErr_SetString(PyExc_ValueError, "the frame was released");
	return self->handle != NULL;
}

static int frame_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct frame *self = as_frame(object);
	void *data;

	view->obj = NULL;
	if (!is_there(self))
		return -1;
	memcpy(&data, &self->handle->data, sizeof(data)); /* read-only, as the buffer says */
	if (PyBuffer_FillInfo(view, object, data, (Py_ssize_t)self->handle->length, 1, flags) != 0)
		return -1;
	self->exports++;
	return 0;
}

static void frame_releasebuffer(PyObject *object, Py_buffer *view)
{
	(void)view;
	as_frame(object)->exports--;
}

/* The view that `data` returned, if it lives; a borrowed reference. */
static PyObject *living_view(struct frame *self)
{
	PyObject *view = self->view != NULL ? PyWeakref_GetObject(self->view) : NULL;

	return view == Py_None ? NULL : view;
}

static PyObject *frame_data(PyObject *object, void *unused)
{
	struct frame *self = as_frame(object);
	PyObject *view = living_view(self);
	PyObject *before = self->view;

	(void)unused;
	if (!is_there(self))
		return NULL;
	if (view != NULL) {
		Py_INCREF(view);
		return view;
	}
	view = PyMemoryView_FromObject(object);
	if (view == NULL)
		return NULL;
	self->view = PyWeakref_NewRef(view, NULL);
	Py_XDECREF(before);
	if (self->view == NULL)
		Py_CLEAR(view);
	return view;
}

/* End the view that `data` returned; false: raised, because other views exist. */
static bool end_view(struct frame *self)
{
	PyObject *view = living_view(self);
	PyObject *done;

	if (view != NULL && self->exports > 0) {
		Py_INCREF(view);
		done = PyObject_CallMethod(view, "release", NULL);
		Py_DECREF(view);
		if (done == NULL)
			return false;
		Py_DECREF(done);
		Py_CLEAR(self->view); /* if others are left, `data` gives a new one */
	}
	if (self->exports > 0) {
		PyErr_SetString(PyExc_BufferError,
		                "views of the frame exist: release or drop them first");
		return false;
	}
	return true;
}

/* Release the slot; false: raised, and the frame is still held. */
static bool release_slot(struct frame *self)
{
	if (self->handle == NULL)
		return true;
	if (!end_view(self))
		return false;
	if (!pyndx.forked)
		ndx_frame_release(self->handle);
	self->handle = NULL;
	return true;
}

/* Slots that are released together. */
struct release {
	const struct ndx_frame *handles[RELEASE_MOST];
	size_t count;
};

/* The lock of the slab may be held by the receiving thread while that posts or takes receives. */
static void let_go(struct release *r)
{
	if (r->count > 0 && !pyndx.forked) {
		Py_BEGIN_ALLOW_THREADS;
		ndx_frame_release_list(r->handles, r->count);
		Py_END_ALLOW_THREADS;
	}
	r->count = 0;
}

/* Add the slot of a frame; false: raised. */
static bool add_slot(struct release *r, PyObject *object)
{
	struct frame *self = as_frame(object);

	if (!PyObject_TypeCheck(object, pyndx.frame_type)) {
		PyErr_SetString(PyExc_TypeError, "not a frame");
		return false;
	}
	if (self->handle == NULL)
		return true;
	if ((self->exports > 0 || self->view != NULL) && !end_view(self))
		return false;
	r->handles[r->count++] = self->handle;
	self->handle = NULL;
	return true;
}

static PyObject *frames_release(PyObject *module, PyObject *list)
{
	struct release release = {.count = 0};
	PyObject *type = NULL;
	PyObject *value = NULL;
	PyObject *trace = NULL;

	(void)module;
	if (!PyList_Check(list)) {
		PyErr_SetString(PyExc_TypeError, "not a list of frames");
		return NULL;
	}
	/* The list may change while the lock is away, or while a view ends. */
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
		PyObject *frame = PyList_GetItem(list, i);

		Py_INCREF(frame);
		if (!add_slot(&release, frame)) {
			Py_XDECREF(type);
			Py_XDECREF(value);
			Py_XDECREF(trace);
			PyErr_Fetch(&type, &value, &trace);
		}
		Py_DECREF(frame);
		if (release.count == RELEASE_MOST)
			let_go(&release);
	}
	let_go(&release);
	if (type != NULL) {
		PyErr_Restore(type, value, trace);
		return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *frame_release(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!release_slot(as_frame(self)))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *frame_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!is_there(as_frame(self)))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *frame_exit(PyObject *self, PyObject *args)
{
	(void)args;
	if (!release_slot(as_frame(self)))
		return NULL;
	Py_RETURN_FALSE;
}

static Py_ssize_t frame_length(PyObject *object)
{
	struct frame *self = as_frame(object);

	return is_there(self) ? (Py_ssize_t)self->handle->length : -1;
}

/* What a number of a frame is; the closure of its getter. */
enum member { SLOT, IMMEDIATE, SEQUENCE, CHANNEL, LOST, TIME, COPIED, WRITTEN, RELEASED };

static PyObject *frame_get(PyObject *object, void *closure)
{
	const struct ndx_frame *f = as_frame(object)->handle;
	enum member member = (enum member)(intptr_t)closure;

	if (member == RELEASED)
		return PyBool_FromLong(f == NULL);
	if (!is_there(as_frame(object)))
		return NULL;
	if ((member == IMMEDIATE || member == SEQUENCE) && (f->flags & NDX_FRAME_IMMEDIATE) == 0)
		Py_RETURN_NONE;
	switch (member) {
	case SLOT:
		return PyLong_FromUnsignedLong(f->slot);
	case IMMEDIATE:
		return PyLong_FromUnsignedLong(f->immediate);
	case SEQUENCE:
		return PyLong_FromUnsignedLong(f->sequence);
	case CHANNEL:
		return PyLong_FromUnsignedLong(f->channel);
	case LOST:
		return PyLong_FromUnsignedLong(f->lost);
	case TIME:
		return PyLong_FromUnsignedLongLong(f->time_ns);
	case COPIED:
		return PyBool_FromLong((f->flags & NDX_FRAME_COPIED) != 0);
	case WRITTEN:
		return PyBool_FromLong((f->flags & NDX_FRAME_WRITTEN) != 0);
	case RELEASED:
		break;
	}
	Py_RETURN_NONE;
}

static void frame_dealloc(PyObject *object)
{
	struct frame *self = as_frame(object);
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	/* No view is left: each holds the frame. */
	if (self->handle != NULL && !pyndx.forked)
		ndx_frame_release(self->handle);
	Py_XDECREF(self->view);
	release(object);
	Py_DECREF(type);
}

static PyMethodDef frame_methods[] = {
	{"release", frame_release, METH_NOARGS,
         "release(): give the slot back to the receiver. The view that `data` returned ends: its "
         "use raises ValueError. Raises BufferError while other views exist (slices of it, NumPy "
         "arrays on it). Releasing twice does nothing."},
	{"__enter__", frame_enter, METH_NOARGS, NULL},
	{"__exit__", frame_exit, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef frame_getset[] = {
	{"data", frame_data, NULL, "The bytes in place, as a read-only memoryview.", NULL},
	{"slot", frame_get, NULL, "Slot of the slab.", (void *)SLOT},
	{"immediate", frame_get, NULL, "Immediate data; None: none came.", (void *)IMMEDIATE},
	{"sequence", frame_get, NULL, "Sequence number; None without immediate data.",
         (void *)SEQUENCE},
	{"channel", frame_get, NULL, "Channel, 0 .. 255.", (void *)CHANNEL},
	{"lost", frame_get, NULL, "Frames that are missing directly before this one.",
         (void *)LOST},
	{"time_ns", frame_get, NULL, "Monotonic clock, when the frame was taken.", (void *)TIME},
	{"copied", frame_get, NULL, "The data are a copy; the slot is posted again already.",
         (void *)COPIED},
	{"written", frame_get, NULL, "Written by the peer, see ReceiverMode.WRITE.",
         (void *)WRITTEN},
	{"released", frame_get, NULL, "True after release().", (void *)RELEASED},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot frame_slots[] = {
	{Py_tp_dealloc, frame_dealloc},
	{Py_tp_methods, frame_methods},
	{Py_tp_getset, frame_getset},
	{Py_bf_getbuffer, frame_getbuffer},
	{Py_bf_releasebuffer, frame_releasebuffer},
	{Py_sq_length, frame_length},
	{Py_tp_doc,
         "A received message, in place: a buffer (memoryview, NumPy) of a slot. Release it "
         "soon, by `with` or release(): the peer cannot fill a slot that is held."},
	{0, NULL},
};

static PyType_Spec frame_spec = {
	.name = "ndx._ndx.Frame",
	.basicsize = sizeof(struct frame),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = frame_slots,
};

static PyMethodDef functions[] = {
	{"_release", frames_release, METH_O,
         "Release the frames of a list. Raises the last failure at the end."},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_frames(PyObject *module)
{
	if (PyModule_AddFunctions(module, functions) != 0)
		return -1;
	return pyndx_add_type(module, &frame_spec, NULL, &pyndx.frame_type);
}
