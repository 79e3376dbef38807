/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: memory that Python objects export as buffers. */
#include "pyndx.h"

static struct region *as_region(PyObject *self)
{
	return (struct region *)self;
}

/* When this returns, the memory is out of reach of device and peer. */
static void close_handle(struct object *self)
{
	ndx_mr_close(self->handle);
}

static void drop(struct object *self)
{
	struct region *region = (struct region *)self;

	if (region->exported)
		PyBuffer_Release(&region->buffer);
	region->exported = false;
}

static const struct kind region_kind = {
	.name = "memory region",
	.rank = RANK_QUEUE,
	.close = close_handle,
	.drop = drop,
};

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", "memory", "access", NULL};
	PyObject *adapter;
	PyObject *memory;
	unsigned access = NDX_MR_ALLOW_LOCAL_WRITE;
	struct ndx_mr *handle = NULL;
	struct region *self;
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O&:MemoryRegion", names, &adapter,
	                                 &memory, pyndx_u32, &access) ||
	    !pyndx_is(adapter, pyndx.adapter_type, "adapter"))
		return NULL;
	self = (struct region *)object_new(type, &region_kind);
	if (self == NULL)
		return NULL;
	/* The exporter may not move or free the memory while we hold its buffer. */
	if (PyObject_GetBuffer(memory, &self->buffer,
	                       (access & (NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK)) != 0
	                               ? PyBUF_WRITABLE
	                               : PyBUF_SIMPLE) != 0)
		goto drop_self;
	self->exported = true;
	if (!object_enter((struct object *)adapter))
		goto drop_self;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_mr_register_new(((struct object *)adapter)->handle, self->buffer.buf,
	                         (size_t)self->buffer.len, access, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(&self->base, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave((struct object *)adapter);
	if (st == NDX_OK)
		return &self->base.ob_base;
drop_self:
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

static PyObject *region_memory(PyObject *self, void *unused)
{
	PyObject *view = NULL;
	PyObject *bytes = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	view = PyMemoryView_FromObject(as_region(self)->buffer.obj);
	if (view != NULL)
		bytes = PyObject_CallMethod(view, "cast", "s", "B");
	Py_XDECREF(view);
	object_leave((struct object *)self);
	return bytes;
}

static PyObject *region_address(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong((uintptr_t)as_region(self)->buffer.buf);
}

static Py_ssize_t region_length(PyObject *self)
{
	return as_region(self)->exported ? as_region(self)->buffer.len : 0;
}

static PyObject *token(PyObject *self, uint32_t (*get)(const struct ndx_mr *mr))
{
	uint32_t value;

	if (!object_enter((struct object *)self))
		return NULL;
	value = get(((struct object *)self)->handle);
	object_leave((struct object *)self);
	return PyLong_FromUnsignedLong(value);
}

static PyObject *region_remote_token(PyObject *self, void *unused)
{
	(void)unused;
	return token(self, ndx_mr_get_remote_token);
}

static PyObject *region_local_token(PyObject *self, void *unused)
{
	(void)unused;
	return token(self, ndx_mr_get_local_token);
}

static PyGetSetDef region_getset[] = {
	{"memory", region_memory, NULL, "The memory, as a memoryview of bytes.", NULL},
	{"address", region_address, NULL, "Address of the first byte, for the peer.", NULL},
	{"remote_token", region_remote_token, NULL,
         "Token for the peer's reads and writes; opaque: send its four bytes unchanged.", NULL},
	{"local_token", region_local_token, NULL, "Token of the own requests.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot region_slots[] = {
	{Py_tp_new, region_new},
	{Py_tp_getset, region_getset},
	{Py_sq_length, region_length},
	{Py_tp_doc,
         "MemoryRegion(adapter, memory, access=Access.LOCAL_WRITE): register the memory of any "
         "object with a contiguous buffer (bytearray, array, mmap, a NumPy array, ...).\n\n"
         "The region holds the buffer until it is closed, so Python refuses to resize the object "
         "(BufferError). close() revokes the access of device and peers before it returns.\n\n"
         "Raises BufferError (read-only memory with a right to write, or not contiguous), and "
         "Error: INVALID_BUFFER_SIZE (no bytes), INSUFFICIENT_RESOURCES (RLIMIT_MEMLOCK)."},
	{0, NULL},
};

static PyType_Spec region_spec = {
	.name = "ndx._ndx.MemoryRegion",
	.basicsize = sizeof(struct region),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = region_slots,
};

int pyndx_add_regions(PyObject *module)
{
	return pyndx_add_type(module, &region_spec, pyndx.object_type, &pyndx.region_type);
}
