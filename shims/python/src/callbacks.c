/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Python functions that the receiving thread calls. The thread takes the interpreter's lock for
 * that; so every call of the library that waits for the receiving thread is made without it.
 */
#include "stream.h"

bool receiver_calls(const struct object *self, unsigned long thread)
{
	const struct receiver *r = (const struct receiver *)self;

	return r->thread != 0 && (thread == 0 || thread == r->thread);
}

static void drop_receiver(struct receiver *r)
{
	r->thread = 0;
	object_drop_later(&r->base);
}

bool consumer_frame(void *context, const struct ndx_frame *handle)
{
	struct consumer *consumer = context;
	struct receiver *r = consumer->receiver;
	PyGILState_STATE state;
	PyObject *result = NULL;
	PyObject *frame;
	bool good;

	if (pyndx.ended)
		return false;
	state = PyGILState_Ensure();
	if (Py_REFCNT(&r->base.ob_base) == 0) {
		PyGILState_Release(state); /* the object is being freed */
		return false;
	}
	Py_INCREF(&r->base.ob_base);
	r->thread = PyThread_get_thread_ident();
	frame = frame_new(ndx_frame_retain(handle));
	if (frame != NULL)
		result = PyObject_CallFunctionObjArgs(consumer->function, frame, NULL);
	Py_XDECREF(frame);
	good = result != NULL && result != Py_False;
	if (result == NULL)
		PyErr_WriteUnraisable(consumer->function);
	Py_XDECREF(result);
	drop_receiver(r);
	PyGILState_Release(state);
	return good;
}

void receiver_ended(void *context, struct ndx_receiver *handle, enum ndx_receiver_state state)
{
	struct receiver *r = context;
	PyGILState_STATE held;
	PyObject *member;
	PyObject *result = NULL;

	(void)handle;
	if (pyndx.ended)
		return;
	held = PyGILState_Ensure();
	if (Py_REFCNT(&r->base.ob_base) > 0 && r->on_end != NULL) {
		Py_INCREF(&r->base.ob_base);
		r->thread = PyThread_get_thread_ident();
		member = pyndx_enum(PYTHON_RECEIVER_STATE, state);
		if (member != NULL)
			result = PyObject_CallFunctionObjArgs(r->on_end, member, NULL);
		if (result == NULL)
			PyErr_WriteUnraisable(r->on_end);
		Py_XDECREF(result);
		Py_XDECREF(member);
		drop_receiver(r);
	}
	PyGILState_Release(held);
}
