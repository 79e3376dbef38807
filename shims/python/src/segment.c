/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory segments of a capture, by themselves: ndx.Segment. As a reassembly, a segment has no
 * threads, works in a forked child, and keeps the interpreter's lock. */
#include "pyndx.h"

#include <string.h>

struct segment {
	PyObject ob_base;
	struct ndx_rdma_segment *handle;
	uint64_t address;
	uint32_t length;
};

static struct segment *as_segment(PyObject *self)
{
	return (struct segment *)self;
}

/* Is the segment open? If not, raises. */
static bool open_still(PyObject *self)
{
	if (as_segment(self)->handle != NULL)
		return true;
	(void)pyndx_raise_named("ClosedError", "the segment is closed");
	return false;
}

static PyObject *placed(enum ndx_status status, const char *missing)
{
	if (status == NDX_OK)
		Py_RETURN_NONE;
	return pyndx_raise(status, status == NDX_E_NOT_FOUND ? missing : "", 0);
}

static bool small_enough(const Py_buffer *bytes)
{
	if (bytes->len <= (Py_ssize_t)INT32_MAX)
		return true;
	PyErr_SetString(PyExc_ValueError, "more than 2 GiB");
	return false;
}

static PyObject *segment_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"address", "length", "max_bytes", NULL};
	uint64_t address, max_bytes = UINT64_C(64) << 20;
	struct segment *self;
	enum ndx_status st;
	uint32_t length;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&|O&:Segment", names, pyndx_u64,
	                                 &address, pyndx_u32, &length, pyndx_u64, &max_bytes))
		return NULL;
	self = (struct segment *)PyType_GenericAlloc(type, 0);
	if (self == NULL)
		return NULL;
	self->address = address;
	self->length = length;
	st = ndx_rdma_segment_create(address, length, (size_t)max_bytes, &self->handle);
	if (st == NDX_OK)
		return &self->ob_base;
	(void)pyndx_raise(st, "", 0);
	Py_DECREF(&self->ob_base);
	return NULL;
}

static PyObject *segment_add_data(PyObject *self, PyObject *args)
{
	PyObject *result = NULL;
	Py_buffer bytes;
	uint64_t address;

	if (!PyArg_ParseTuple(args, "O&y*:add_data", pyndx_u64, &address, &bytes))
		return NULL;
	if (small_enough(&bytes) && open_still(self))
		result = placed(ndx_rdma_segment_add_data(as_segment(self)->handle, address,
		                                          bytes.buf, (uint32_t)bytes.len),
		                "the address is not in the segment");
	PyBuffer_Release(&bytes);
	return result;
}

static PyObject *segment_add_operation(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"psn", "address", "length", "path_mtu", NULL};
	uint32_t psn, length, path_mtu = 0;
	uint64_t address;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&O&|O&:add_operation", names, pyndx_u32,
	                                 &psn, pyndx_u64, &address, pyndx_u32, &length, pyndx_u32,
	                                 &path_mtu) ||
	    !open_still(self))
		return NULL;
	return placed(ndx_rdma_segment_add_operation(as_segment(self)->handle, psn, address, length,
	                                             path_mtu),
	              "the address is not in the segment");
}

static PyObject *segment_add_packet(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"psn", "data", "last", NULL};
	PyObject *result = NULL;
	Py_buffer bytes;
	uint32_t psn;
	int last = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&y*|p:add_packet", names, pyndx_u32, &psn,
	                                 &bytes, &last))
		return NULL;
	if (small_enough(&bytes) && open_still(self))
		result =
			placed(ndx_rdma_segment_add_packet(as_segment(self)->handle, psn, last != 0,
		                                           bytes.buf, (uint32_t)bytes.len),
		               "the packet fits to no operation");
	PyBuffer_Release(&bytes);
	return result;
}

static PyObject *segment_valid_psn(PyObject *self, PyObject *number)
{
	uint32_t psn;

	if (pyndx_u32(number, &psn) == 0 || !open_still(self))
		return NULL;
	return PyBool_FromLong(ndx_rdma_segment_valid_psn(as_segment(self)->handle, psn));
}

static PyObject *segment_add_request(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"sink_handle", "sink_offset", "source", "length", NULL};
	uint64_t sink_offset, source;
	uint32_t sink_handle, length;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&O&O&:add_request", names, pyndx_u32,
	                                 &sink_handle, pyndx_u64, &sink_offset, pyndx_u64, &source,
	                                 pyndx_u32, &length) ||
	    !open_still(self))
		return NULL;
	return placed(ndx_rdma_segment_add_request(as_segment(self)->handle, sink_handle,
	                                           sink_offset, source, length),
	              "the source is not in the segment");
}

static PyObject *segment_add_response(PyObject *self, PyObject *args)
{
	PyObject *result = NULL;
	uint64_t sink_offset;
	uint32_t sink_handle;
	Py_buffer bytes;

	if (!PyArg_ParseTuple(args, "O&O&y*:add_response", pyndx_u32, &sink_handle, pyndx_u64,
	                      &sink_offset, &bytes))
		return NULL;
	if (small_enough(&bytes) && open_still(self))
		result = placed(ndx_rdma_segment_add_response(as_segment(self)->handle, sink_handle,
		                                              sink_offset, bytes.buf,
		                                              (uint32_t)bytes.len),
		                "the data fit to no request");
	PyBuffer_Release(&bytes);
	return result;
}

static PyObject *segment_gaps(PyObject *self, PyObject *unused)
{
	uint64_t offset = 0, length = 0;
	PyObject *gaps;

	(void)unused;
	if (!open_still(self))
		return NULL;
	gaps = PyList_New(0);
	while (gaps != NULL &&
	       ndx_rdma_segment_gap(as_segment(self)->handle, offset + length, &offset, &length)) {
		PyObject *gap = Py_BuildValue("(KK)", (unsigned long long)offset,
		                              (unsigned long long)length);

		if (gap == NULL || PyList_Append(gaps, gap) != 0)
			Py_CLEAR(gaps);
		Py_XDECREF(gap);
	}
	return gaps;
}

static PyObject *segment_data(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"padded", NULL};
	PyObject *data;
	size_t size;
	int padded = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:data", names, &padded) ||
	    !open_still(self))
		return NULL;
	size = ndx_rdma_segment_get_data(as_segment(self)->handle, padded != 0, NULL, 0);
	data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
	if (data != NULL)
		(void)ndx_rdma_segment_get_data(as_segment(self)->handle, padded != 0,
		                                (uint8_t *)PyBytes_AsString(data), size);
	return data;
}

static PyObject *segment_close(PyObject *self, PyObject *unused)
{
	(void)unused;
	ndx_rdma_segment_close(as_segment(self)->handle);
	as_segment(self)->handle = NULL;
	Py_RETURN_NONE;
}

static PyObject *get_address(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(as_segment(self)->address);
}

static PyObject *get_size(PyObject *self, void *unused)
{
	(void)unused;
	if (!open_still(self))
		return NULL;
	return PyLong_FromUnsignedLongLong(ndx_rdma_segment_size(as_segment(self)->handle));
}

static Py_ssize_t segment_length(PyObject *self)
{
	return (Py_ssize_t)as_segment(self)->length;
}

static void segment_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	ndx_rdma_segment_close(as_segment(object)->handle);
	release(object);
	Py_DECREF(type);
}

static PyMethodDef segment_methods[] = {
	{"add_data", segment_add_data, METH_VARARGS,
         "add_data(address, data): place bytes by their address. Bytes that are present stay; "
         "those "
         "behind the end are left out. Raises NotFoundError (not in the segment), Error with "
         "NO_MEMORY (max_bytes is reached)."},
	{"add_operation", (PyCFunction)(void *)segment_add_operation, METH_VARARGS | METH_KEYWORDS,
         "add_operation(psn, address, length, path_mtu=0): a write or read of InfiniBand, whose "
         "first packet has that number (24 bits). path_mtu 0: its packets show it. Raises "
         "NotFoundError (not in the segment), InvalidParameterError (psn, path_mtu), "
         "QueueFullError (1024 operations)."},
	{"add_packet", (PyCFunction)(void *)segment_add_packet, METH_VARARGS | METH_KEYWORDS,
         "add_packet(psn, data, last=False): place a packet's data by its number, through the "
         "oldest operation to which it fits. last: the opcode marks the operation's last packet, "
         "or the only one. Raises NotFoundError (fits to none), Error with NO_MEMORY."},
	{"valid_psn", segment_valid_psn, METH_O,
         "valid_psn(psn) -> bool: is the packet part of an operation of the segment?"},
	{"add_request", (PyCFunction)(void *)segment_add_request, METH_VARARGS | METH_KEYWORDS,
         "add_request(sink_handle, sink_offset, source, length): a read request of iWARP; source "
         "is an address in the segment. Raises NotFoundError (it is not), QueueFullError (1024 "
         "requests)."},
	{"add_response", segment_add_response, METH_VARARGS,
         "add_response(sink_handle, sink_offset, data): place the data of a read response of "
         "iWARP, through the newest request to which they fit. Raises NotFoundError (fit to none), "
         "Error with NO_MEMORY."},
	{"gaps", segment_gaps, METH_NOARGS,
         "gaps() -> list[tuple[int, int]]: (offset, length) of the bytes that are missing."},
	{"data", (PyCFunction)(void *)segment_data, METH_VARARGS | METH_KEYWORDS,
         "data(padded=False) -> bytes: all bytes, zeros for those that are missing. padded: with "
         "zeros up to a multiple of 4."},
	{"close", segment_close, METH_NOARGS,
         "close(): drop the data. Later calls raise ClosedError."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef segment_getset[] = {
	{"address", get_address, NULL, "Address of the first byte.", NULL},
	{"size", get_size, NULL, "Number of bytes that are present; len() has all.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot segment_slots[] = {
	{Py_tp_new, segment_new},
	{Py_tp_dealloc, segment_dealloc},
	{Py_tp_methods, segment_methods},
	{Py_tp_getset, segment_getset},
	{Py_sq_length, segment_length},
	{Py_tp_doc,
         "Segment(address, length, max_bytes=64 MiB)\n\nA memory segment of a capture: bytes with "
         "addresses, of which some are present. Data come by address, by packet sequence number "
         "(add_operation, add_packet) or by read request (add_request, add_response). Memory is "
         "used where data arrive, 32 KiB at a time, up to max_bytes. One thread at a time.\n\n"
         "Raises InvalidParameterError (length 0, addresses that wrap around)."},
	{0, NULL},
};

static PyType_Spec segment_spec = {
	.name = "ndx._ndx.Segment",
	.basicsize = sizeof(struct segment),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = segment_slots,
};

int pyndx_add_segments(PyObject *module)
{
	PyTypeObject *type = NULL;

	return pyndx_add_type(module, &segment_spec, NULL, &type);
}
