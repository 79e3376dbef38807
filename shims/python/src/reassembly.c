/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly: the base of ndx.Reassembly. Events become objects of classes of ndx/_capture.py
 * during the callback, with a copy of their data, because the library's data end with the callback.
 * It has no threads, so it works in a forked child, too, and keeps the interpreter's lock.
 */
#include "reassembly.h"

#include <stdlib.h>

#define CONNECTIONS_MOST 8192

static struct reassembly *as_reassembly(PyObject *self)
{
	return (struct reassembly *)self;
}

/* Call the class @p name with what Py_BuildValue() makes of the rest; takes @p args. */
static PyObject *make(struct reassembly *self, const char *name, PyObject *args)
{
	PyObject *type = PyDict_GetItemString(self->make, name);
	PyObject *object = NULL;

	if (args != NULL && type != NULL)
		object = PyObject_CallObject(type, args);
	Py_XDECREF(args);
	return object;
}

static PyObject *endpoint_of(struct reassembly *self, const struct ndx_rdma_connection *c, int side)
{
	const struct ndx_rdma_endpoint *e = &c->side[side];
	PyObject *number = Py_None;

	if (e->number == NDX_RDMA_QPN_UNKNOWN)
		Py_INCREF(number);
	else
		number = PyLong_FromUnsignedLong(e->number);
	return make(self, "Endpoint",
	            Py_BuildValue("(iy#N)", (int)c->family, (const char *)e->address,
	                          (Py_ssize_t)sizeof(e->address), number));
}

static PyObject *connection_of(struct reassembly *self, const struct ndx_rdma_connection *c,
                               bool anew)
{
	PyObject *key;
	PyObject *known;

	if (c == NULL)
		Py_RETURN_NONE;
	key = PyLong_FromUnsignedLongLong(c->id);
	if (key == NULL)
		return NULL;
	known = anew ? NULL : PyDict_GetItemWithError(self->connections, key);
	Py_XINCREF(known);
	if (known == NULL && PyErr_Occurred() == NULL) {
		known = make(self, "Connection",
		             Py_BuildValue("(KNNN)", (unsigned long long)c->id,
		                           pyndx_enum(PYTHON_TRANSPORT, c->transport),
		                           endpoint_of(self, c, 0), endpoint_of(self, c, 1)));
		if (PyDict_Size(self->connections) >= CONNECTIONS_MOST)
			PyDict_Clear(self->connections);
		if (known != NULL && PyDict_SetItem(self->connections, key, known) != 0)
			Py_CLEAR(known);
	}
	Py_DECREF(key);
	return known;
}

/* ---- calls and replies ---- */

/* The canonical message as bytes. */
static PyObject *message_of(const struct ndx_rpc_message *rpc)
{
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rpc->length);
	size_t copied = 0;

	if (bytes == NULL)
		return NULL;
	copied = ndx_piece_copy(rpc->pieces, rpc->piece_count, (uint8_t *)PyBytes_AsString(bytes),
	                        rpc->length);
	if (copied == rpc->length)
		return bytes;
	Py_DECREF(bytes);
	PyErr_SetString(PyExc_SystemError, "a message is shorter than its length");
	return NULL;
}

/* The data of a chunk: a part of the message. Only a chunk at position 0 into which other chunks
 * were inserted is no part of the message as it is: its pieces stand behind those of the message.
 */
static PyObject *chunk_data(const struct ndx_rpc_message *rpc, const struct ndx_rpc_chunk *c,
                            PyObject *view)
{
	const struct ndx_piece *pieces = rpc->pieces + c->first_piece;
	Py_ssize_t begin = 0;
	Py_ssize_t size = 0;
	PyObject *bytes;
	PyObject *data;

	for (size_t p = 0; p < c->piece_count; p++)
		size += (Py_ssize_t)pieces[p].length;
	if (c->first_piece + c->piece_count <= rpc->piece_count) {
		for (size_t p = 0; p < c->first_piece; p++)
			begin += (Py_ssize_t)rpc->pieces[p].length;
		return PySequence_GetSlice(view, begin, begin + size);
	}
	bytes = PyBytes_FromStringAndSize(NULL, size);
	if (bytes == NULL)
		return NULL;
	(void)ndx_piece_copy(pieces, c->piece_count, (uint8_t *)PyBytes_AsString(bytes),
	                     (size_t)size);
	data = PyMemoryView_FromObject(bytes);
	Py_DECREF(bytes);
	return data;
}

static PyObject *chunks_of(struct reassembly *self, const struct ndx_rpc_message *rpc,
                           PyObject *view)
{
	PyObject *chunks = PyTuple_New((Py_ssize_t)rpc->chunk_count);

	for (size_t i = 0; chunks != NULL && i < rpc->chunk_count; i++) {
		const struct ndx_rpc_chunk *c = &rpc->chunks[i];
		PyObject *chunk =
			make(self, "Chunk",
		             Py_BuildValue("(NIIKN)", pyndx_enum(PYTHON_CHUNK_KIND, c->kind),
		                           c->position, c->segments, (unsigned long long)c->length,
		                           chunk_data(rpc, c, view)));

		if (chunk == NULL || PyTuple_SetItem(chunks, (Py_ssize_t)i, chunk) != 0)
			Py_CLEAR(chunks);
	}
	return chunks;
}

static PyObject *rpc_of(struct reassembly *self, const struct ndx_reassembly_event *event,
                        PyObject *head)
{
	const struct ndx_rpc_message *rpc = &event->rpc;
	PyObject *bytes = message_of(rpc);
	PyObject *view = bytes != NULL ? PyMemoryView_FromObject(bytes) : NULL;
	PyObject *chunks = view != NULL ? chunks_of(self, rpc, view) : NULL;

	Py_XDECREF(bytes);
	if (chunks == NULL) {
		Py_XDECREF(view);
		return NULL;
	}
	return make(
		self, event->type == NDX_REASSEMBLY_CALL ? "Call" : "Reply",
		Py_BuildValue("(OIIIIIIINKNy#N)", head, rpc->xid, rpc->version, rpc->header_type,
	                      rpc->credits, rpc->program, rpc->program_version, rpc->procedure,
	                      PyBool_FromLong(rpc->call_known),
	                      (unsigned long long)rpc->call_packet, view,
	                      (const char *)rpc->reduced, (Py_ssize_t)rpc->reduced_length, chunks));
}

/* ---- the other events ---- */

static PyObject *number_if(bool has, uint32_t number)
{
	if (!has)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLong(number);
}

static PyObject *send_of(struct reassembly *self, const struct ndx_rdma_send *send, PyObject *head)
{
	return make(self, "Send",
	            Py_BuildValue("(Oy#KIIINN)", head, (const char *)send->bytes,
	                          (Py_ssize_t)send->length, (unsigned long long)send->original,
	                          send->psn, send->packets, send->rpc_version,
	                          number_if(send->has_immediate, send->immediate),
	                          number_if(send->has_invalidate, send->invalidate)));
}

static PyObject *hole_of(struct reassembly *self, const struct ndx_hole *hole, PyObject *head)
{
	return make(self, "Hole",
	            Py_BuildValue("(ONIIKKNN)", head, pyndx_enum(PYTHON_HOLE_KIND, hole->kind),
	                          hole->xid, hole->handle, (unsigned long long)hole->offset,
	                          (unsigned long long)hole->length,
	                          number_if(hole->has_psn, hole->first_psn),
	                          number_if(hole->has_psn, hole->last_psn)));
}

static PyObject *event_of(struct reassembly *self, const struct ndx_reassembly_event *e,
                          PyObject *head)
{
	switch (e->type) {
	case NDX_REASSEMBLY_CALL:
	case NDX_REASSEMBLY_REPLY:
		return rpc_of(self, e, head);
	case NDX_REASSEMBLY_SEND:
		return send_of(self, &e->send, head);
	case NDX_REASSEMBLY_ERROR:
		return make(self, "RpcError",
		            Py_BuildValue("(OIIII)", head, e->error.xid, e->error.code,
		                          e->error.low, e->error.high));
	case NDX_REASSEMBLY_HOLE:
		return hole_of(self, &e->hole, head);
	case NDX_REASSEMBLY_DUPLICATE:
		return make(self, "Duplicate",
		            Py_BuildValue("(OIIN)", head, e->duplicate.psn,
		                          (unsigned)e->duplicate.opcode,
		                          PyBool_FromLong(e->duplicate.send)));
	case NDX_REASSEMBLY_ORPHAN:
		return make(self, "Orphan",
		            Py_BuildValue("(ONIIIK)", head,
		                          pyndx_enum(PYTHON_ORPHAN_KIND, e->orphan.kind),
		                          e->orphan.psn, e->orphan.handle, e->orphan.xid,
		                          (unsigned long long)e->orphan.length));
	case NDX_REASSEMBLY_EVICTION:
		return make(self, "Eviction",
		            Py_BuildValue("(ONIIK)", head,
		                          pyndx_enum(PYTHON_EVICTION_REASON, e->eviction.reason),
		                          e->eviction.xid, e->eviction.segments,
		                          (unsigned long long)e->eviction.bytes));
	case NDX_REASSEMBLY_CONNECTION:
	case NDX_REASSEMBLY_BAD_CRC:
		break;
	}
	return make(self, "Event", Py_BuildValue("(O)", head));
}

static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	struct reassembly *self = context;
	bool news = event->type == NDX_REASSEMBLY_CONNECTION;
	PyObject *head = NULL;
	PyObject *object = NULL;
	PyObject *connection;

	/* After a failure nothing is added: the call raises. */
	if (PyErr_Occurred() != NULL || (!news && (self->wanted >> event->type & 1) == 0))
		return;
	connection = connection_of(self, event->connection, news);
	if (connection == NULL || (self->wanted >> event->type & 1) == 0) {
		Py_XDECREF(connection);
		return;
	}
	head = Py_BuildValue("(NIKKN)", pyndx_enum(PYTHON_EVENT_TYPE, event->type),
	                     event->direction, (unsigned long long)event->packet,
	                     (unsigned long long)event->time_ns, connection);
	if (head != NULL)
		object = event_of(self, event, head);
	if (object != NULL)
		(void)PyList_Append(self->list, object);
	Py_XDECREF(object);
	Py_XDECREF(head);
}

/* ---- the type ---- */

static PyObject *reassembly_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_reassembly_attr attr;
	struct reassembly *self;
	PyObject *classes;
	uint64_t max_age;
	uint64_t wanted;
	Py_ssize_t max_bytes;
	enum ndx_status st;
	int check_crc;

	(void)kwargs;
	ndx_reassembly_attr_init(&attr);
	if (!PyArg_ParseTuple(args, "O!O&nO&O&O&O&p", &PyDict_Type, &classes, pyndx_u64, &wanted,
	                      &max_bytes, pyndx_u64, &max_age, pyndx_u32, &attr.max_segments,
	                      pyndx_u32, &attr.max_connections, pyndx_u32, &attr.reorder_packets,
	                      &check_crc))
		return NULL;
	if (max_bytes < 0) {
		PyErr_SetString(PyExc_ValueError, "max_bytes is less than 0");
		return NULL;
	}
	self = (struct reassembly *)PyType_GenericAlloc(type, 0);
	if (self == NULL)
		return NULL;
	Py_INCREF(classes);
	self->make = classes;
	self->wanted = wanted;
	self->connections = PyDict_New();
	attr.max_bytes = (size_t)max_bytes;
	attr.max_age_ns = max_age;
	attr.check_crc = check_crc != 0;
	attr.on_event = on_event;
	attr.context = self;
	if (self->connections == NULL)
		goto fail;
	st = ndx_reassembly_create(&attr, &self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	(void)pyndx_raise(st, "", 0);
fail:
	Py_DECREF(&self->ob_base);
	return NULL;
}

bool reassembly_collect(struct reassembly *self)
{
	if (self->handle == NULL) {
		(void)pyndx_raise_named("ClosedError", "the reassembly is closed");
		return false;
	}
	if (self->list != NULL) {
		(void)pyndx_raise(NDX_E_DEVICE_BUSY, "another thread is in a call", 0);
		return false;
	}
	self->list = PyList_New(0);
	return self->list != NULL;
}

PyObject *reassembly_collected(struct reassembly *self)
{
	PyObject *list = self->list;

	self->list = NULL;
	if (PyErr_Occurred() != NULL)
		Py_CLEAR(list);
	return list;
}

/* _feed(bytes, time_ns, link_type, original) */
static PyObject *reassembly_feed(PyObject *object, PyObject *args)
{
	struct reassembly *self = as_reassembly(object);
	struct ndx_packet packet = {.captured = 0};
	uint32_t original;
	Py_buffer bytes;
	PyObject *list = NULL;

	if (!PyArg_ParseTuple(args, "y*O&O&O&", &bytes, pyndx_u64, &packet.time_ns, pyndx_u32,
	                      &packet.link_type, pyndx_u32, &original))
		return NULL;
	if (bytes.len > (Py_ssize_t)INT32_MAX) {
		PyErr_SetString(PyExc_ValueError, "a packet of more than 2 GiB");
	} else if (reassembly_collect(self)) {
		packet.bytes = bytes.buf;
		packet.captured = (uint32_t)bytes.len;
		packet.original = original > packet.captured ? original : packet.captured;
		(void)ndx_reassembly_feed(self->handle, &packet);
		list = reassembly_collected(self);
	}
	PyBuffer_Release(&bytes);
	return list;
}

#define RECORD_HEAD \
	16u /* of a packet in a classic capture: seconds, fraction, captured, original */

static uint32_t word_at(const uint8_t *bytes, bool big)
{
	if (big)
		return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
		       (uint32_t)bytes[2] << 8 | bytes[3];
	return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 |
	       bytes[0];
}

/* Feed the records that are whole; returns the number of bytes that they have. */
static size_t feed_records(struct reassembly *self, const uint8_t *bytes, size_t size, bool big,
                           unsigned scale, unsigned link_type)
{
	size_t at = 0;

	while (size - at >= RECORD_HEAD && PyErr_Occurred() == NULL) {
		const uint8_t *head = bytes + at;
		const uint32_t captured = word_at(head + 8, big);
		const uint32_t original = word_at(head + 12, big);
		const struct ndx_packet packet = {
			.bytes = head + RECORD_HEAD,
			.captured = captured,
			.original = original > captured ? original : captured,
			.time_ns = (uint64_t)word_at(head, big) * 1000000000u +
		                   (uint64_t)word_at(head + 4, big) * scale,
			.link_type = link_type,
		};

		if (captured > size - at - RECORD_HEAD)
			break;
		(void)ndx_reassembly_feed(self->handle, &packet);
		at += RECORD_HEAD + captured;
	}
	return at;
}

/* _feed_pcap(bytes, big, scale, link_type) -> (events, used): the whole records at the beginning of
 * these bytes, which are a part of a classic capture */
static PyObject *reassembly_feed_pcap(PyObject *object, PyObject *args)
{
	struct reassembly *self = as_reassembly(object);
	PyObject *list = NULL;
	unsigned link_type;
	unsigned scale;
	Py_buffer bytes;
	size_t used = 0;
	int big;

	if (!PyArg_ParseTuple(args, "y*pO&O&", &bytes, &big, pyndx_u32, &scale, pyndx_u32,
	                      &link_type))
		return NULL;
	if (reassembly_collect(self)) {
		used = feed_records(self, bytes.buf, (size_t)bytes.len, big != 0, scale, link_type);
		list = reassembly_collected(self);
	}
	PyBuffer_Release(&bytes);
	return list != NULL ? Py_BuildValue("(Nn)", list, (Py_ssize_t)used) : NULL;
}

static PyObject *reassembly_flush(PyObject *object, PyObject *unused)
{
	struct reassembly *self = as_reassembly(object);

	(void)unused;
	if (!reassembly_collect(self))
		return NULL;
	ndx_reassembly_flush(self->handle);
	return reassembly_collected(self);
}

static bool put_opcodes(PyObject *dict, const char *key, const uint64_t *counts, unsigned size,
                        const char *(*name)(uint8_t opcode))
{
	PyObject *opcodes = PyDict_New();

	for (unsigned i = 0; opcodes != NULL && i < size; i++)
		if (counts[i] != 0 &&
		    !pyndx_put(opcodes, name((uint8_t)i), PyLong_FromUnsignedLongLong(counts[i])))
			Py_CLEAR(opcodes);
	return pyndx_put(dict, key, opcodes);
}

static PyObject *reassembly_stats(PyObject *object, PyObject *unused)
{
	static const char *const names[] = {
		"packets",
		"bytes",
		"rdma_packets",
		"connections",
		"sends",
		"calls",
		"replies",
		"replies_unmatched",
		"errors",
		"calls_incomplete",
		"replies_incomplete",
		"calls_unanswered",
		"holes",
		"duplicates",
		"duplicate_sends",
		"orphans",
		"evictions",
		"malformed",
		"truncated",
		"bad_crc",
		"crc_checked",
		"ip_fragments",
		"bytes_held",
		"bytes_peak",
		"segments",
	};
	struct ndx_reassembly_stats stats = {.size = sizeof(stats)};
	const uint64_t *counters = &stats.packets;
	PyObject *dict;

	_Static_assert(offsetof(struct ndx_reassembly_stats, opcodes) -
	                               offsetof(struct ndx_reassembly_stats, packets) ==
	                       sizeof(names) / sizeof(names[0]) * sizeof(uint64_t),
	               "a name for each counter");
	(void)unused;
	if (as_reassembly(object)->handle == NULL)
		return pyndx_raise_named("ClosedError", "the reassembly is closed");
	if (ndx_reassembly_get_stats(as_reassembly(object)->handle, &stats) != NDX_OK)
		return pyndx_raise(NDX_E_INVALID_PARAMETER, "", 0);
	dict = PyDict_New();
	for (size_t i = 0; dict != NULL && i < sizeof(names) / sizeof(names[0]); i++)
		if (!pyndx_put(dict, names[i], PyLong_FromUnsignedLongLong(counters[i])))
			Py_CLEAR(dict);
	if (dict != NULL &&
	    put_opcodes(dict, "opcodes", stats.opcodes, 256, ndx_rdma_opcode_name) &&
	    put_opcodes(dict, "rdmap", stats.rdmap, 16, ndx_rdmap_opcode_name))
		return dict;
	Py_XDECREF(dict);
	return NULL;
}

static PyObject *reassembly_close(PyObject *object, PyObject *unused)
{
	struct reassembly *self = as_reassembly(object);

	(void)unused;
	if (self->list != NULL)
		return pyndx_raise(NDX_E_DEVICE_BUSY, "the reassembly is in a call", 0);
	ndx_reassembly_close(self->handle);
	self->handle = NULL;
	Py_RETURN_NONE;
}

static void reassembly_dealloc(PyObject *object)
{
	struct reassembly *self = as_reassembly(object);
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	ndx_reassembly_close(self->handle);
	Py_XDECREF(self->make);
	Py_XDECREF(self->connections);
	release(object);
	Py_DECREF(type);
}

static PyMethodDef reassembly_methods[] = {
	{"_feed", reassembly_feed, METH_VARARGS, NULL},
	{"_feed_pcap", reassembly_feed_pcap, METH_VARARGS, NULL},
	{"flush", reassembly_flush, METH_NOARGS,
         "flush() -> list[Event]: give up what is incomplete, at the end of a capture. Connections "
         "stay known, so that the next file of a series may follow."},
	{"stats", reassembly_stats, METH_NOARGS,
         "stats() -> dict: counters since creation, by the names of struct ndx_reassembly_stats."},
	{"close", reassembly_close, METH_NOARGS, "close(): drop everything, without reports."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot reassembly_slots[] = {
	{Py_tp_new, reassembly_new},
	{Py_tp_dealloc, reassembly_dealloc},
	{Py_tp_methods, reassembly_methods},
	{Py_tp_doc, "Base of ndx.Reassembly."},
	{0, NULL},
};

static PyType_Spec reassembly_spec = {
	.name = "ndx._ndx.Reassembly",
	.basicsize = sizeof(struct reassembly),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = reassembly_slots,
};

int pyndx_add_reassemblies(PyObject *module)
{
	return pyndx_add_type(module, &reassembly_spec, NULL, &pyndx.reassembly_type);
}
