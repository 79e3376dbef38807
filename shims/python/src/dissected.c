/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets and operations that the program has dissected: a Reassembly that takes them. */
#include "reassembly.h"

#include <string.h>

/** Both forms begin with these arguments. */
struct path {
	Py_buffer bytes, source, destination;
	uint64_t time_ns;
	uint32_t transport, family, source_number, destination_number, length;
};

static void release(struct path *path)
{
	PyBuffer_Release(&path->bytes);
	PyBuffer_Release(&path->source);
	PyBuffer_Release(&path->destination);
}

/* Sizes that C cannot see; false: raised. */
static bool check(struct path *path)
{
	if (path->bytes.len > (Py_ssize_t)INT32_MAX) {
		PyErr_SetString(PyExc_ValueError, "more than 2 GiB");
		return false;
	}
	if (path->source.len != 16 || path->destination.len != 16) {
		PyErr_SetString(PyExc_ValueError, "an address has 16 bytes");
		return false;
	}
	if (path->length < (uint32_t)path->bytes.len)
		path->length = (uint32_t)path->bytes.len;
	return true;
}

static PyObject *done(struct reassembly *self, enum ndx_status status)
{
	PyObject *list = reassembly_collected(self);

	if (status == NDX_OK || list == NULL)
		return list;
	Py_DECREF(list);
	return pyndx_raise(status, "no such transport, family, kind, number or length", 0);
}

/* _feed_transport(bytes, time_ns, transport, family, source, number, destination, number, length,
 * sequence, acknowledged, flags) */
static PyObject *feed_transport(PyObject *object, PyObject *args)
{
	struct reassembly *self = (struct reassembly *)object;
	struct ndx_transport_packet packet = {.size = sizeof(packet)};
	struct path path;
	PyObject *list = NULL;

	if (!PyArg_ParseTuple(args, "y*O&O&O&y*O&y*O&O&O&O&O&", &path.bytes, pyndx_u64,
	                      &path.time_ns, pyndx_u32, &path.transport, pyndx_u32, &path.family,
	                      &path.source, pyndx_u32, &path.source_number, &path.destination,
	                      pyndx_u32, &path.destination_number, pyndx_u32, &path.length,
	                      pyndx_u32, &packet.sequence, pyndx_u32, &packet.acknowledged,
	                      pyndx_u32, &packet.tcp_flags))
		return NULL;
	if (check(&path) && reassembly_collect(self)) {
		packet.time_ns = path.time_ns;
		packet.transport = (enum ndx_rdma_transport)path.transport;
		packet.family = (enum ndx_rdma_address)path.family;
		memcpy(packet.source.address, path.source.buf, 16);
		memcpy(packet.destination.address, path.destination.buf, 16);
		packet.source.number = path.source_number;
		packet.destination.number = path.destination_number;
		packet.captured = (uint32_t)path.bytes.len;
		packet.length = path.length;
		packet.bytes = path.bytes.buf;
		list = done(self, ndx_reassembly_feed_transport(self->handle, &packet));
	}
	release(&path);
	return list;
}

/* A number, or None; false: raised. */
static bool optional(PyObject *object, bool *has, uint32_t *number)
{
	*has = object != Py_None;
	return !*has || pyndx_u32(object, number) != 0;
}

/* _feed_operation(bytes, time_ns, transport, family, source, number, destination, number, length,
 * kind, handle, address, immediate, invalidate) */
static PyObject *feed_operation(PyObject *object, PyObject *args)
{
	struct reassembly *self = (struct reassembly *)object;
	struct ndx_rdma_operation op = {.size = sizeof(op)};
	PyObject *immediate, *invalidate;
	struct path path;
	PyObject *list = NULL;
	uint32_t kind;

	if (!PyArg_ParseTuple(args, "y*O&O&O&y*O&y*O&O&O&O&O&OO", &path.bytes, pyndx_u64,
	                      &path.time_ns, pyndx_u32, &path.transport, pyndx_u32, &path.family,
	                      &path.source, pyndx_u32, &path.source_number, &path.destination,
	                      pyndx_u32, &path.destination_number, pyndx_u32, &path.length,
	                      pyndx_u32, &kind, pyndx_u32, &op.handle, pyndx_u64, &op.address,
	                      &immediate, &invalidate))
		return NULL;
	if (check(&path) && optional(immediate, &op.has_immediate, &op.immediate) &&
	    optional(invalidate, &op.has_invalidate, &op.invalidate) && reassembly_collect(self)) {
		op.time_ns = path.time_ns;
		op.transport = (enum ndx_rdma_transport)path.transport;
		op.family = (enum ndx_rdma_address)path.family;
		op.kind = (enum ndx_rdma_operation_kind)kind;
		memcpy(op.source.address, path.source.buf, 16);
		memcpy(op.destination.address, path.destination.buf, 16);
		op.source.number = path.source_number;
		op.destination.number = path.destination_number;
		op.captured = (uint32_t)path.bytes.len;
		op.length = path.length;
		op.bytes = path.bytes.buf;
		list = done(self, ndx_reassembly_feed_operation(self->handle, &op));
	}
	release(&path);
	return list;
}

static PyMethodDef dissected_methods[] = {
	{"_feed_transport", feed_transport, METH_VARARGS, NULL},
	{"_feed_operation", feed_operation, METH_VARARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot dissected_slots[] = {
	{Py_tp_methods, dissected_methods},
	{Py_tp_doc, "Base of ndx.Reassembly, with what takes parts of packets."},
	{0, NULL},
};

static PyType_Spec dissected_spec = {
	.name = "ndx._ndx.Dissected",
	.basicsize = sizeof(struct reassembly),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = dissected_slots,
};

int pyndx_add_dissected(PyObject *module)
{
	PyTypeObject *type = NULL;

	return pyndx_add_type(module, &dissected_spec, pyndx.reassembly_type, &type);
}
