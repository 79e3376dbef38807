/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders: the base of ndx.Sender. */
#include "stream.h"

#include <string.h>

static struct sender *as_sender(PyObject *self)
{
	return (struct sender *)self;
}

static struct ndx_sender *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_sender_close(self->handle);
}

static void drop(struct object *self)
{
	lent_pair_end(&((struct sender *)self)->qp);
	Py_CLEAR(((struct sender *)self)->receiver);
}

static const struct kind sender_kind = {
	.name = "sender",
	.rank = RANK_SESSION, /* before the receivers whose connections they use */
	.close = close_handle,
	.drop = drop,
};

static bool parse(PyObject *args, PyObject *kwargs, PyObject **adapter, PyObject **receiver,
                  struct ndx_sender_attr *attr)
{
	static char *names[] = {"adapter",
	                        "receiver",
	                        "mode",
	                        "slot_size",
	                        "slot_count",
	                        "window",
	                        "rate",
	                        "sequence_wrap",
	                        "peer_address",
	                        "peer_token",
	                        "peer_slot_size",
	                        "peer_slot_count",
	                        "no_receive_timeout_ms",
	                        "keepalive_ms",
	                        "spin_us",
	                        "close_timeout_ms",
	                        NULL};
	uint64_t peer_address = 0;
	int mode = NDX_RECEIVER_SEND;

	ndx_sender_attr_init(attr);
	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "OO|$iO&O&O&O&O&O&O&O&O&O&O&O&O&:Sender", names, adapter,
		    receiver, &mode, pyndx_u32, &attr->slot_size, pyndx_u32, &attr->slot_count,
		    pyndx_u32, &attr->window, pyndx_u32, &attr->rate, pyndx_u32,
		    &attr->sequence_wrap, pyndx_u64, &peer_address, pyndx_u32, &attr->peer_token,
		    pyndx_u32, &attr->peer_slot_size, pyndx_u32, &attr->peer_slot_count, pyndx_u32,
		    &attr->no_receive_timeout_ms, pyndx_u32, &attr->keepalive_ms, pyndx_u32,
		    &attr->spin_us, pyndx_u32, &attr->close_timeout_ms))
		return false;
	attr->mode = (enum ndx_receiver_mode)mode;
	attr->peer_address = peer_address;
	if (*receiver != Py_None && !pyndx_is(*receiver, pyndx.receiver_type, "receiver"))
		return false;
	return pyndx_is(*adapter, pyndx.adapter_type, "adapter");
}

static PyObject *sender_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_sender *handle = NULL;
	struct ndx_sender_attr attr;
	struct object *above;
	struct sender *self;
	PyObject *receiver;
	PyObject *adapter;
	enum ndx_status st;

	if (!parse(args, kwargs, &adapter, &receiver, &attr))
		return NULL;
	above = (struct object *)(receiver != Py_None ? receiver : adapter);
	self = (struct sender *)object_new(type, &sender_kind);
	if (self == NULL || !object_enter(above)) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	if (receiver != Py_None) {
		attr.receiver = above->handle;
		Py_INCREF(receiver);
		self->receiver = receiver;
	} else {
		attr.adapter = above->handle;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_create(&attr, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(&self->base, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave(above);
	if (st == NDX_OK)
		return &self->base.ob_base;
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

/* Begin a call: one at a time, as the library asks for. */
static bool enter(PyObject *self)
{
	struct object *object = (struct object *)self;

	/* Calls of the queue pair, which are calls of the sender, too, are not meant. */
	if (object->busy > object->lent) {
		(void)pyndx_raise(NDX_E_DEVICE_BUSY, "another thread is in a call of the sender",
		                  0);
		return false;
	}
	return object_enter(object);
}

static enum ndx_status start(void *handle, struct ndx_connector *connector)
{
	return ndx_sender_start(handle, connector);
}

static PyObject *sender_start(PyObject *self, PyObject *connector)
{
	if (!pyndx_is(connector, pyndx.connector_type, "connector") || !enter(self))
		return NULL;
	return lent_start((struct object *)self, (struct object *)connector, start);
}

static PyObject *sender_qp(PyObject *self, void *unused)
{
	PyObject *pair;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	pair = lent_pair((struct object *)self, &as_sender(self)->qp,
	                 ndx_sender_get_qp(handle_of(self)));
	object_leave((struct object *)self);
	return pair;
}

static PyObject *sender_describe(PyObject *self, PyObject *role)
{
	struct ndx_peer_description description;
	enum ndx_status st;
	uint64_t number;

	if (!pyndx_number(role, "role", 1, &number) || !enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_describe(handle_of(self), (enum ndx_role)number, &description);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? description_to(&description) : pyndx_raise_last(st);
}

static PyObject *sender_set_oob(PyObject *self, PyObject *fd)
{
	enum ndx_status st;
	long number = PyLong_AsLong(fd);

	if ((number == -1 && PyErr_Occurred() != NULL) || !enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_set_oob_stream(handle_of(self), (int)number);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *sender_connect_peer(PyObject *self, PyObject *args)
{
	struct ndx_peer_description description;
	PyObject *peer;
	unsigned timeout_ms;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OO&", &peer, pyndx_u32, &timeout_ms) ||
	    !description_from(peer, &description) || !enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_connect_peer(handle_of(self), &description, timeout_ms);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* _set_memory(address, length, token, slot_size, slot_count) */
static PyObject *sender_set_memory(PyObject *self, PyObject *args)
{
	struct ndx_memory_description memory;
	uint32_t slot_size, slot_count, token;
	uint64_t address, length;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "O&O&O&O&O&", pyndx_u64, &address, pyndx_u64, &length,
	                      pyndx_u32, &token, pyndx_u32, &slot_size, pyndx_u32, &slot_count) ||
	    !enter(self))
		return NULL;
	memset(&memory, 0, sizeof(memory));
	memory.address = address;
	memory.length = length;
	memory.token = token;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_set_memory(handle_of(self), &memory, slot_size, slot_count);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* ---- frames ---- */

static PyObject *closed_beside(void)
{
	object_halt();
	return pyndx_raise_named("ClosedError", "another thread has closed the sender");
}

/* _send(data, channel, timeout) -> bool: False: the time is over */
static PyObject *sender_send(PyObject *self, PyObject *args)
{
	enum ndx_status st = NDX_PENDING;
	struct deadline deadline;
	bool interrupted = false;
	bool closed = false;
	unsigned channel;
	PyObject *timeout;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "y*O&O", &data, pyndx_u32, &channel, &timeout))
		return NULL;
	if (data.len > (Py_ssize_t)UINT32_MAX)
		PyErr_SetString(PyExc_ValueError, "a frame of 4 GiB or more");
	else
		(void)pyndx_deadline(timeout, &deadline);
	if (PyErr_Occurred() != NULL || !enter(self)) {
		PyBuffer_Release(&data);
		return NULL;
	}
	while (st == NDX_PENDING && !interrupted) {
		uint32_t slice = pyndx_slice(&deadline);

		Py_BEGIN_ALLOW_THREADS;
		st = ndx_sender_send(handle_of(self), data.buf, (uint32_t)data.len, channel, slice);
		Py_END_ALLOW_THREADS;
		interrupted = st == NDX_PENDING && PyErr_CheckSignals() != 0;
		closed = st == NDX_PENDING && ((struct object *)self)->closing;
		if (slice == 0 || closed)
			break;
	}
	PyBuffer_Release(&data);
	object_leave((struct object *)self);
	if (interrupted)
		return NULL;
	if (closed)
		return closed_beside();
	if (st != NDX_OK && st != NDX_PENDING)
		return pyndx_raise_last(st);
	return PyBool_FromLong(st == NDX_OK);
}

/* _flush(timeout) -> bool */
static PyObject *sender_flush(PyObject *self, PyObject *timeout)
{
	enum ndx_status st = NDX_PENDING;
	struct deadline deadline;
	bool interrupted = false;
	bool closed = false;

	if (!pyndx_deadline(timeout, &deadline) || !enter(self))
		return NULL;
	while (st == NDX_PENDING && !interrupted) {
		uint32_t slice = pyndx_slice(&deadline);

		Py_BEGIN_ALLOW_THREADS;
		st = ndx_sender_flush(handle_of(self), slice);
		Py_END_ALLOW_THREADS;
		interrupted = st == NDX_PENDING && PyErr_CheckSignals() != 0;
		closed = st == NDX_PENDING && ((struct object *)self)->closing;
		if (slice == 0 || closed)
			break;
	}
	object_leave((struct object *)self);
	if (interrupted)
		return NULL;
	if (closed)
		return closed_beside();
	if (st != NDX_OK && st != NDX_PENDING)
		return pyndx_raise_last(st);
	return PyBool_FromLong(st == NDX_OK);
}

static PyObject *sender_reset(PyObject *self, PyObject *unused)
{
	struct sender *s = as_sender(self);
	PyObject *done = NULL;
	enum ndx_status st;

	(void)unused;
	if (!enter(self))
		return NULL;
	if (!object_recall(&s->base))
		goto leave;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_reset(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_recalled(&s->base);
	done = pyndx_done(st);
	if (st == NDX_OK)
		lent_pair_end(&s->qp);
	else
		lent_pair_recalled(&s->qp, ndx_sender_get_qp(handle_of(self)));
leave:
	object_leave(&s->base);
	return done;
}

static PyObject *sender_stats(PyObject *self, PyObject *unused)
{
	struct ndx_sender_stats s = {.size = sizeof(s)};
	enum ndx_status st;

	(void)unused;
	if (!enter(self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_sender_get_stats(handle_of(self), &s);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("{s:K,s:K,s:K,s:I,s:I,s:N}", "frames", (unsigned long long)s.frames,
	                     "bytes", (unsigned long long)s.bytes, "waits",
	                     (unsigned long long)s.waits, "under_way", s.under_way,
	                     "most_under_way", s.most_under_way, "failed", pyndx_status(s.failed));
}

static PyMethodDef sender_methods[] = {
	{"_start", sender_start, METH_O, NULL},
	{"_describe", sender_describe, METH_O, NULL},
	{"_set_oob_stream", sender_set_oob, METH_O, NULL},
	{"_connect_peer", sender_connect_peer, METH_VARARGS, NULL},
	{"_set_memory", sender_set_memory, METH_VARARGS, NULL},
	{"_send", sender_send, METH_VARARGS, NULL},
	{"_flush", sender_flush, METH_O, NULL},
	{"reset", sender_reset, METH_NOARGS,
         "reset(): a new queue pair after the connection has ended, to connect again."},
	{"stats", sender_stats, METH_NOARGS,
         "stats() -> dict: counters by the names of struct ndx_sender_stats."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef sender_getset[] = {
	{"qp", sender_qp, NULL, "The queue pair, to be connected by other means; until reset().",
         NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot sender_slots[] = {
	{Py_tp_new, sender_new},
	{Py_tp_methods, sender_methods},
	{Py_tp_getset, sender_getset},
	{Py_tp_doc, "Base of ndx.Sender."},
	{0, NULL},
};

static PyType_Spec sender_spec = {
	.name = "ndx._ndx.Sender",
	.basicsize = sizeof(struct sender),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = sender_slots,
};

int pyndx_add_senders(PyObject *module)
{
	return pyndx_add_type(module, &sender_spec, pyndx.object_type, &pyndx.sender_type);
}
