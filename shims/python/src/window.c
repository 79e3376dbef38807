/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: rights to a part of a region, for the peer of one queue pair. */
#include "pyndx.h"

struct window {
	struct object base; /* struct ndx_mw */
	PyObject *region; /* of the latest bind: it stays open as long as the window may be bound */
};

static struct window *as_window(PyObject *self)
{
	return (struct window *)self;
}

static void close_handle(struct object *self)
{
	ndx_mw_close(self->handle);
}

static void drop(struct object *self)
{
	Py_CLEAR(((struct window *)self)->region);
}

/* Closed before the regions and the queue pairs. */
static const struct kind window_kind = {
	.name = "memory window",
	.rank = RANK_STREAM,
	.close = close_handle,
	.drop = drop,
};

static enum ndx_status create(struct ndx_adapter *adapter, const void *attr, void **out)
{
	struct ndx_mw *handle = NULL;
	enum ndx_status st = ndx_mw_create(adapter, &handle);

	(void)attr;
	*out = handle;
	return st;
}

static PyObject *window_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", NULL};
	PyObject *adapter;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:MemoryWindow", names, &adapter))
		return NULL;
	return object_new_on(type, &window_kind, adapter, create, NULL);
}

/* The arguments of a request of a window. */
struct order {
	PyObject *qp, *region, *length, *context;
	Py_ssize_t offset;
	uint32_t access;
	int silent, fence;
};

/* The part of the region; false: raised. */
static bool part_of(const struct order *o, const struct region *region, size_t *bytes)
{
	Py_ssize_t size;

	if (!pyndx_part(region->buffer.len, o->offset, o->length, PY_SSIZE_T_MAX, &size))
		return false;
	*bytes = (size_t)size;
	return true;
}

static enum ndx_status begin(PyObject *self, const struct order *o, struct request *request,
                             size_t bytes)
{
	struct ndx_qp *qp = ((struct object *)o->qp)->handle;
	struct ndx_mw *mw = ((struct object *)self)->handle;
	uint32_t flags =
		(o->silent ? NDX_OP_SILENT_SUCCESS : 0u) | (o->fence ? NDX_OP_READ_FENCE : 0u);
	const struct region *region = (struct region *)o->region;

	if (region == NULL)
		return ndx_qp_invalidate(qp, request, mw, flags);
	if ((o->access & NDX_MR_ALLOW_REMOTE_READ) == NDX_MR_ALLOW_REMOTE_READ)
		flags |= NDX_OP_ALLOW_READ;
	if ((o->access & NDX_MR_ALLOW_REMOTE_WRITE) == NDX_MR_ALLOW_REMOTE_WRITE)
		flags |= NDX_OP_ALLOW_WRITE;
	return ndx_qp_bind(qp, request, region->base.handle, mw,
	                   (char *)region->buffer.buf + o->offset, bytes, flags);
}

/* Post a bind, or an invalidation where there is no region. As all posts, without a wait, and so
 * with the interpreter's lock. */
static PyObject *post(PyObject *self, const struct order *o)
{
	struct object *const all[] = {(struct object *)self, (struct object *)o->qp,
	                              (struct object *)o->region};
	const size_t count = o->region != NULL ? 3 : 2;
	struct pair *pair = (struct pair *)o->qp;
	struct request *request = NULL;
	PyObject *done = NULL;
	enum ndx_status st;
	PyObject *before;
	size_t bytes = 0;

	if (!pyndx_is(o->qp, pyndx.pair_type, "qp") ||
	    (o->region != NULL && !pyndx_is(o->region, pyndx.region_type, "region")) ||
	    !objects_enter(all, count))
		return NULL;
	if (pair->initiator_cq == NULL) {
		(void)pyndx_raise(NDX_E_INVALID_DEVICE_STATE,
		                  "the queue pair belongs to a receiver or sender", 0);
		goto leave;
	}
	if (o->region != NULL && !part_of(o, (struct region *)o->region, &bytes))
		goto leave;
	if (!o->silent) {
		PyObject *keep = o->region != NULL ? PyTuple_Pack(2, self, o->region)
		                                   : PyTuple_Pack(1, self);

		if (keep != NULL)
			request = request_new((struct queue *)pair->initiator_cq, pair->context,
			                      keep, o->context);
		if (request == NULL)
			goto leave;
	}
	st = begin(self, o, request, bytes);
	if (st != NDX_OK) {
		if (request != NULL)
			request_free(request);
		(void)pyndx_raise(st, "", 0);
		goto leave;
	}
	if (o->region != NULL) {
		before = as_window(self)->region;
		Py_INCREF(o->region);
		as_window(self)->region = o->region;
		Py_XDECREF(before);
	}
	Py_INCREF(Py_None);
	done = Py_None;
leave:
	objects_leave(all, count);
	return done;
}

static PyObject *window_bind(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"qp",      "region", "offset", "length", "access",
	                        "context", "silent", "fence",  NULL};
	struct order o = {
		.length = Py_None, .context = Py_None, .access = NDX_MR_ALLOW_REMOTE_READ};

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|nO$O&Opp:bind", names, &o.qp, &o.region,
	                                 &o.offset, &o.length, pyndx_u32, &o.access, &o.context,
	                                 &o.silent, &o.fence))
		return NULL;
	return post(self, &o);
}

static PyObject *window_invalidate(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"qp", "context", "silent", "fence", NULL};
	struct order o = {.length = Py_None, .context = Py_None};

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Opp:invalidate", names, &o.qp,
	                                 &o.context, &o.silent, &o.fence))
		return NULL;
	return post(self, &o);
}

static PyObject *get_remote_token(PyObject *self, void *unused)
{
	uint32_t token;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	token = ndx_mw_get_remote_token(((struct object *)self)->handle);
	object_leave((struct object *)self);
	return PyLong_FromUnsignedLong(token);
}

static int window_traverse(PyObject *self, visitproc visit, void *arg)
{
	return pyndx_visit(self, &as_window(self)->region, 1, visit, arg);
}

static int window_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef window_methods[] = {
	{"bind", (PyCFunction)(void (*)(void))window_bind, METH_VARARGS | METH_KEYWORDS,
         "bind(qp, region, offset=0, length=None, *, access=Access.REMOTE_READ, context=None, "
         "silent=False, fence=False)\n\n"
         "Post a bind of the window to `length` bytes of a region from `offset` on (default: all). "
         "From then on `remote_token` is the new one; only the peer of `qp` may use it, with the "
         "address of the bytes in the region. The result is of type BIND. The window keeps the "
         "region until it is bound anew or closed. With silent=True there is a result only if the "
         "bind fails.\n\n"
         "Raises Error with ACCESS_VIOLATION (the region lacks the right), BusyError (bound: "
         "invalidate first), QueueFullError, ConnectionFailedError, ValueError (not in the "
         "region)."},
	{"invalidate", (PyCFunction)(void (*)(void))window_invalidate, METH_VARARGS | METH_KEYWORDS,
         "invalidate(qp, *, context=None, silent=False, fence=False)\n\n"
         "Post the end of the binding, after the earlier requests of `qp`. A peer that uses the "
         "token later ends the connection. The result is of type INVALIDATE: with "
         "INVALID_DEVICE_REQUEST if the window was not bound."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef window_getset[] = {
	{"remote_token", get_remote_token, NULL, "Token for the peer, as of the latest bind.",
         NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot window_slots[] = {
	{Py_tp_new, window_new},
	{Py_tp_methods, window_methods},
	{Py_tp_getset, window_getset},
	{Py_tp_traverse, window_traverse},
	{Py_tp_clear, window_clear},
	{Py_tp_doc,
         "MemoryWindow(adapter)\n\nRights to a part of a region, which a connected queue pair "
         "binds "
         "and ends at any time, without a new registration. close() ends the binding.\n\n"
         "Raises NotSupportedError without Capability.MEMORY_WINDOW."},
	{0, NULL},
};

static PyType_Spec window_spec = {
	.name = "ndx._ndx.MemoryWindow",
	.basicsize = sizeof(struct window),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = window_slots,
};

int pyndx_add_windows(PyObject *module)
{
	PyTypeObject *type = NULL;

	return pyndx_add_type(module, &window_spec, pyndx.object_type, &type);
}
