/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers: the base of ndx.Receiver. Connecting is in Python (ndx/_stream.py). */
#include "stream.h"

#include <string.h>

#define BATCH 64

static struct receiver *as_receiver(PyObject *self)
{
	return (struct receiver *)self;
}

static struct ndx_receiver *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_receiver_close(self->handle);
}

static void drop(struct object *self)
{
	struct receiver *r = (struct receiver *)self;

	lent_pair_end(&r->qp);
	for (int i = 0; i < NDX_RECEIVER_CONSUMERS; i++)
		Py_CLEAR(r->consumers[i].function);
	Py_CLEAR(r->on_end);
}

static const struct kind receiver_kind = {
	.name = "receiver",
	.rank = RANK_STREAM,
	.close = close_handle,
	.drop = drop,
	.calls = receiver_calls,
};

/* consumers: a sequence of (function, channel) */
static bool add_consumers(struct receiver *self, PyObject *consumers,
                          struct ndx_receiver_attr *attr)
{
	Py_ssize_t count = PySequence_Size(consumers);

	if (count < 0)
		return false;
	if (count > NDX_RECEIVER_CONSUMERS) {
		PyErr_Format(PyExc_ValueError, "a receiver has at most %d functions for frames",
		             NDX_RECEIVER_CONSUMERS);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *pair = PySequence_GetItem(consumers, i);
		PyObject *function = NULL;
		int channel = NDX_CHANNEL_ANY;
		bool good = pair != NULL &&
		            PyArg_ParseTuple(pair, "Oi;(function, channel)", &function, &channel);

		if (good && PyCallable_Check(function)) {
			Py_INCREF(function);
			self->consumers[i].function = function;
			self->consumers[i].receiver = self;
			attr->consumers[i].fn = consumer_frame;
			attr->consumers[i].context = &self->consumers[i];
			attr->consumers[i].channel = channel;
		} else if (good) {
			PyErr_SetString(PyExc_TypeError, "a function for frames is not callable");
			good = false;
		}
		Py_XDECREF(pair);
		if (!good)
			return false;
	}
	return true;
}

static bool parse(PyObject *args, PyObject *kwargs, PyObject **adapter, PyObject **consumers,
                  PyObject **on_end, struct ndx_receiver_attr *attr)
{
	static char *names[] = {"adapter",
	                        "consumers",
	                        "on_end",
	                        "mode",
	                        "slot_size",
	                        "slot_count",
	                        "copy_below",
	                        "copy_count",
	                        "sequence_wrap",
	                        "need_immediate",
	                        "pull",
	                        "send_depth",
	                        "no_receive_timeout_ms",
	                        "keepalive_ms",
	                        "idle_timeout_ms",
	                        "probe_ms",
	                        "probe_timeout_ms",
	                        "rnr_timer",
	                        "spin_us",
	                        "batch",
	                        NULL};
	int need_immediate = 0;
	int pull = 1;
	int mode = NDX_RECEIVER_SEND;

	ndx_receiver_attr_init(attr);
	*on_end = Py_None;
	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "OOO|$iO&O&O&O&O&ppO&O&O&O&O&O&O&O&O&:Receiver", names, adapter,
		    consumers, on_end, &mode, pyndx_u32, &attr->slot_size, pyndx_u32,
		    &attr->slot_count, pyndx_u32, &attr->copy_below, pyndx_u32, &attr->copy_count,
		    pyndx_u32, &attr->sequence_wrap, &need_immediate, &pull, pyndx_u32,
		    &attr->send_depth, pyndx_u32, &attr->no_receive_timeout_ms, pyndx_u32,
		    &attr->keepalive_ms, pyndx_u32, &attr->idle_timeout_ms, pyndx_u32,
		    &attr->probe_ms, pyndx_u32, &attr->probe_timeout_ms, pyndx_u32,
		    &attr->rnr_timer, pyndx_u32, &attr->spin_us, pyndx_u32, &attr->batch))
		return false;
	attr->mode = (enum ndx_receiver_mode)mode;
	attr->need_immediate = need_immediate != 0;
	attr->pull = pull != 0;
	return pyndx_is(*adapter, pyndx.adapter_type, "adapter");
}

static PyObject *receiver_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_receiver *handle = NULL;
	struct ndx_receiver_attr attr;
	struct receiver *self;
	PyObject *consumers;
	PyObject *adapter;
	PyObject *on_end;
	enum ndx_status st;

	if (!parse(args, kwargs, &adapter, &consumers, &on_end, &attr))
		return NULL;
	self = (struct receiver *)object_new(type, &receiver_kind);
	if (self == NULL || !add_consumers(self, consumers, &attr) ||
	    !object_enter((struct object *)adapter)) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	if (on_end != Py_None) {
		Py_INCREF(on_end);
		self->on_end = on_end;
		attr.on_end = receiver_ended;
		attr.context = self;
	}
	attr.adapter = ((struct object *)adapter)->handle;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_create(&attr, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(&self->base, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave((struct object *)adapter);
	if (st == NDX_OK)
		return &self->base.ob_base;
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

/* ---- connecting ---- */

typedef enum ndx_status step_fn(struct ndx_receiver *receiver);

static PyObject *step(PyObject *self, step_fn *fn)
{
	enum ndx_status st;

	if (object_in_callback((struct object *)self) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = fn(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *receiver_prepare(PyObject *self, PyObject *unused)
{
	(void)unused;
	return step(self, ndx_receiver_prepare);
}

/* A call that ends the queue pair. */
static PyObject *last_step(PyObject *self, step_fn *fn)
{
	struct receiver *r = as_receiver(self);
	PyObject *done = NULL;
	enum ndx_status st;

	if (object_in_callback(&r->base) || !object_enter(&r->base))
		return NULL;
	if (!object_recall(&r->base))
		goto leave;
	Py_BEGIN_ALLOW_THREADS;
	st = fn(handle_of(self));
	Py_END_ALLOW_THREADS;
	object_recalled(&r->base);
	done = pyndx_done(st);
	if (st == NDX_OK)
		lent_pair_end(&r->qp);
	else
		lent_pair_recalled(&r->qp, ndx_receiver_get_qp(handle_of(self)));
leave:
	object_leave(&r->base);
	return done;
}

static PyObject *receiver_stop(PyObject *self, PyObject *unused)
{
	(void)unused;
	return last_step(self, ndx_receiver_stop);
}

static PyObject *receiver_reset(PyObject *self, PyObject *unused)
{
	(void)unused;
	return last_step(self, ndx_receiver_reset);
}

static enum ndx_status start(void *handle, struct ndx_connector *connector)
{
	return ndx_receiver_start(handle, connector);
}

static PyObject *receiver_start(PyObject *self, PyObject *connector)
{
	if (!pyndx_is(connector, pyndx.connector_type, "connector") ||
	    !object_enter((struct object *)self))
		return NULL;
	return lent_start((struct object *)self, (struct object *)connector, start);
}

static PyObject *receiver_qp(PyObject *self, void *unused)
{
	PyObject *pair;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	pair = lent_pair((struct object *)self, &as_receiver(self)->qp,
	                 ndx_receiver_get_qp(handle_of(self)));
	object_leave((struct object *)self);
	return pair;
}

static PyObject *receiver_describe(PyObject *self, PyObject *role)
{
	struct ndx_peer_description description;
	enum ndx_status st;
	uint64_t number;

	if (!pyndx_number(role, "role", 1, &number) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_describe(handle_of(self), (enum ndx_role)number, &description);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? description_to(&description) : pyndx_raise_last(st);
}

static PyObject *receiver_set_oob(PyObject *self, PyObject *fd)
{
	enum ndx_status st;
	long number = PyLong_AsLong(fd);

	if ((number == -1 && PyErr_Occurred() != NULL) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_set_oob_stream(handle_of(self), (int)number);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* _connect_peer(description, milliseconds) */
static PyObject *receiver_connect_peer(PyObject *self, PyObject *args)
{
	struct ndx_peer_description description;
	PyObject *peer;
	unsigned timeout_ms;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "OO&", &peer, pyndx_u32, &timeout_ms) ||
	    !description_from(peer, &description) || object_in_callback((struct object *)self) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_connect_peer(handle_of(self), &description, timeout_ms);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* ---- numbers of a device that does not run NDX ---- */

static PyObject *receiver_numbers(PyObject *self, PyObject *unused)
{
	struct ndx_receiver_numbers n;
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_get_numbers(handle_of(self), &n);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("{s:I,s:I,s:I,s:I,s:I,s:y#,s:s,s:K,s:I,s:I,s:I}", "qpn", n.qpn,
	                     "send_psn", n.send_psn, "receive_psn", n.receive_psn, "mtu", n.mtu,
	                     "lid", (unsigned)n.lid, "gid", (const char *)n.gid,
	                     (Py_ssize_t)sizeof(n.gid), "gid_text", n.gid_text, "address",
	                     (unsigned long long)n.address, "length", n.length, "remote_token",
	                     n.remote_token, "rkey", n.rkey);
}

/* _complete(gid, qpn, rq_psn, sq_psn, lid, mtu, probe_address, probe_rkey, milliseconds) */
static PyObject *receiver_complete(PyObject *self, PyObject *args)
{
	struct ndx_receiver_peer peer;
	uint64_t probe_address;
	unsigned timeout_ms;
	Py_ssize_t size;
	const char *gid;
	enum ndx_status st;

	memset(&peer, 0, sizeof(peer));
	if (!PyArg_ParseTuple(args, "y#O&O&O&O&O&O&O&O&", &gid, &size, pyndx_u32, &peer.qpn,
	                      pyndx_u32, &peer.rq_psn, pyndx_u32, &peer.sq_psn, pyndx_u16,
	                      &peer.lid, pyndx_u32, &peer.mtu, pyndx_u64, &probe_address, pyndx_u32,
	                      &peer.probe_rkey, pyndx_u32, &timeout_ms))
		return NULL;
	if (size != (Py_ssize_t)sizeof(peer.gid)) {
		PyErr_SetString(PyExc_ValueError, "a GID has 16 bytes");
		return NULL;
	}
	memcpy(peer.gid, gid, sizeof(peer.gid));
	peer.probe_address = probe_address;
	if (object_in_callback((struct object *)self) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_complete_connection(handle_of(self), &peer, timeout_ms);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* ---- frames ---- */

static PyObject *frames_of(const struct ndx_frame **frames, size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; i < count; i++) {
		PyObject *frame;

		if (list == NULL) {
			ndx_frame_release(frames[i]);
			continue;
		}
		frame = frame_new(frames[i]);
		if (frame == NULL || PyList_SetItem(list, (Py_ssize_t)i, frame) != 0)
			Py_CLEAR(list);
	}
	return list;
}

/* _pull(count, timeout): a list, empty when the time is over; None: no frame is left, and the
 * receiver does not run */
static PyObject *receiver_pull(PyObject *self, PyObject *args)
{
	const struct ndx_frame *frames[BATCH];
	struct deadline deadline;
	enum ndx_status st = NDX_PENDING;
	PyObject *list = NULL;
	PyObject *timeout;
	bool closed = false;
	unsigned count;
	size_t got = 0;

	if (!PyArg_ParseTuple(args, "O&O", pyndx_u32, &count, &timeout) ||
	    !pyndx_deadline(timeout, &deadline))
		return NULL;
	if (count == 0 || count > BATCH)
		count = BATCH;
	if (object_in_callback((struct object *)self) || !object_enter((struct object *)self))
		return NULL;
	/* Frames that are there already: the lock of their queue is never held for long. */
	st = ndx_receiver_pull(handle_of(self), frames, count, 0, &got);
	while (st == NDX_PENDING) {
		uint32_t slice = pyndx_slice(&deadline);

		Py_BEGIN_ALLOW_THREADS;
		st = ndx_receiver_pull(handle_of(self), frames, count, slice, &got);
		Py_END_ALLOW_THREADS;
		if (st == NDX_PENDING && PyErr_CheckSignals() != 0)
			goto leave;
		if (slice == 0 || ((struct object *)self)->closing)
			break;
	}
	if (st == NDX_E_CANCELED) {
		Py_INCREF(Py_None);
		list = Py_None;
	} else if (st == NDX_OK || st == NDX_PENDING) {
		list = frames_of(frames, got);
	} else {
		(void)pyndx_raise_last(st);
	}
leave:
	closed = ((struct object *)self)->closing;
	object_leave((struct object *)self);
	if (closed)
		object_halt();
	return list;
}

static PyObject *receiver_fileno(PyObject *self, PyObject *unused)
{
	long fd;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	fd = ndx_receiver_get_fd(handle_of(self));
	object_leave((struct object *)self);
	return PyLong_FromLong(fd);
}

static int receiver_traverse(PyObject *self, visitproc visit, void *arg)
{
	const struct receiver *r = as_receiver(self);
	PyObject *objects[NDX_RECEIVER_CONSUMERS + 1];

	for (int i = 0; i < NDX_RECEIVER_CONSUMERS; i++)
		objects[i] = r->consumers[i].function;
	objects[NDX_RECEIVER_CONSUMERS] = r->on_end;
	return pyndx_visit(self, objects, NDX_RECEIVER_CONSUMERS + 1, visit, arg);
}

static int receiver_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef receiver_methods[] = {
	{"_prepare", receiver_prepare, METH_NOARGS, NULL},
	{"_start", receiver_start, METH_O, NULL},
	{"_describe", receiver_describe, METH_O, NULL},
	{"_set_oob_stream", receiver_set_oob, METH_O, NULL},
	{"_connect_peer", receiver_connect_peer, METH_VARARGS, NULL},
	{"numbers", receiver_numbers, METH_NOARGS,
         "numbers() -> dict: the numbers of this end, for a device that does not run NDX. Raises "
         "NotSupportedError where connections are not made by numbers (loop, ofi:tcp)."},
	{"_complete", receiver_complete, METH_VARARGS, NULL},
	{"_pull", receiver_pull, METH_VARARGS, NULL},
	{"fileno", receiver_fileno, METH_NOARGS,
         "Descriptor that is readable while pull() would not wait; -1 without pull."},
	{"_stop", receiver_stop, METH_NOARGS, NULL},
	{"reset", receiver_reset, METH_NOARGS,
         "reset(): after ENDED or FAILED: a new queue pair on the same slab, to connect again."},
	{"close", object_close_method, METH_NOARGS,
         "close(): stop and release. Frames that are held stay valid. Raises BusyError in a "
         "callback of the receiver."},
	{"_cause", receiver_cause, METH_NOARGS, NULL},
	{"_memory", receiver_memory, METH_NOARGS, NULL},
	{"snapshot", receiver_snapshot, METH_NOARGS,
         "snapshot() -> str: state, cause and counters as JSON (docs/receiver.md)."},
	{"stats", receiver_stats, METH_NOARGS,
         "stats() -> dict: counters by the names of struct ndx_receiver_stats."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef receiver_getset[] = {
	{"state", receiver_state, NULL, "ndx.ReceiverState.", NULL},
	{"qp", receiver_qp, NULL,
         "The queue pair, to be connected by other means; until the next reset or stop.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot receiver_slots[] = {
	{Py_tp_new, receiver_new},
	{Py_tp_methods, receiver_methods},
	{Py_tp_getset, receiver_getset},
	{Py_tp_traverse, receiver_traverse},
	{Py_tp_clear, receiver_clear},
	{Py_tp_finalize, object_finalize},
	{Py_tp_doc, "Base of ndx.Receiver."},
	{0, NULL},
};

static PyType_Spec receiver_spec = {
	.name = "ndx._ndx.Receiver",
	.basicsize = sizeof(struct receiver),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = receiver_slots,
};

int pyndx_add_receivers(PyObject *module)
{
	return pyndx_add_type(module, &receiver_spec, pyndx.object_type, &pyndx.receiver_type);
}
