/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, and the records of posted requests. */
#include "pyndx.h"

#define BATCH 64

static struct queue *as_queue(PyObject *self)
{
	return (struct queue *)self;
}

/* ---- requests ---- */

struct request *request_new(struct queue *queue, PyObject *qp_context, PyObject *keep,
                            PyObject *context)
{
	struct request *r = NULL;

	if (queue->base.closing)
		(void)pyndx_raise_named("ClosedError", "the completion queue is closed");
	else if ((r = PyMem_Malloc(sizeof(*r))) == NULL)
		PyErr_NoMemory();
	if (r == NULL) {
		Py_DECREF(keep);
		return NULL;
	}
	Py_INCREF(context);
	Py_INCREF(qp_context);
	r->context = context;
	r->qp_context = qp_context;
	r->keep = keep;
	r->shared = false;
	r->next = queue->requests;
	r->link = &queue->requests;
	if (r->next != NULL)
		r->next->link = &r->next;
	queue->requests = r;
	return r;
}

static void unlink_request(struct request *r)
{
	*r->link = r->next;
	if (r->next != NULL)
		r->next->link = r->link;
}

void request_free(struct request *r)
{
	unlink_request(r);
	Py_DECREF(r->context);
	Py_DECREF(r->keep);
	Py_DECREF(r->qp_context);
	PyMem_Free(r);
}

int requests_visit(const struct request *list, visitproc visit, void *arg)
{
	int rc = 0;

	for (const struct request *r = list; rc == 0 && r != NULL; r = r->next) {
		rc = visit(r->context, arg);
		if (rc == 0)
			rc = visit(r->keep, arg);
		if (rc == 0)
			rc = visit(r->qp_context, arg);
	}
	return rc;
}

/* ---- shared receive queues ---- */

bool queue_share(struct queue *queue, struct shared *shared, uint64_t number, PyObject *context)
{
	PyObject *key = PyLong_FromUnsignedLongLong(number);
	int has = -1;

	if (queue->shared == NULL)
		queue->shared = PyList_New(0);
	if (queue->contexts == NULL)
		queue->contexts = PyDict_New();
	if (key != NULL && queue->shared != NULL && queue->contexts != NULL &&
	    PyDict_SetItem(queue->contexts, key, context) == 0)
		has = PySequence_Contains(queue->shared, &shared->queue.base.ob_base);
	Py_XDECREF(key);
	if (has == 0 && PyList_Append(queue->shared, &shared->queue.base.ob_base) == 0) {
		shared->result_queues++;
		has = 1;
	}
	return has == 1;
}

void queue_unshare(struct queue *queue, uint64_t number)
{
	PyObject *key;

	if (queue->contexts == NULL)
		return;
	key = PyLong_FromUnsignedLongLong(number);
	if (key == NULL || PyDict_DelItem(queue->contexts, key) != 0)
		PyErr_Clear();
	Py_XDECREF(key);
}

/* No results of shared receive queues come any more: free the records that no other completion
 * queue waits for. */
static void leave_shared(struct queue *queue)
{
	PyObject *list = queue->shared;

	queue->shared = NULL;
	for (Py_ssize_t i = 0; list != NULL && i < PyList_Size(list); i++) {
		struct shared *shared = (struct shared *)PyList_GetItem(list, i);

		shared->result_queues--;
		while (shared->queue.base.handle == NULL && shared->result_queues == 0 &&
		       shared->queue.requests != NULL)
			request_free(shared->queue.requests);
	}
	Py_XDECREF(list);
	Py_CLEAR(queue->contexts);
}

/* The context of the queue pair of a result; a borrowed reference. */
static PyObject *pair_context(const struct queue *queue, const struct ndx_result *result)
{
	const struct request *r = result->request_context;
	PyObject *context = NULL;
	PyObject *key;

	if (r == NULL)
		return Py_None;
	if (!r->shared)
		return r->qp_context;
	key = PyLong_FromUnsignedLongLong((uintptr_t)result->queue_pair_context);
	if (key != NULL && queue->contexts != NULL)
		context = PyDict_GetItemWithError(queue->contexts, key);
	Py_XDECREF(key);
	PyErr_Clear();
	return context != NULL ? context : Py_None;
}

/* ---- the type ---- */

static void close_handle(struct object *self)
{
	ndx_cq_close(self->handle);
}

/* No result can be taken any more. A device that still has such a request is kept from the memory
 * by the close of the region. */
static void drop(struct object *self)
{
	while (((struct queue *)self)->requests != NULL)
		request_free(((struct queue *)self)->requests);
	leave_shared((struct queue *)self);
}

static const struct kind queue_kind = {
	.name = "completion queue",
	.rank = RANK_QUEUE,
	.close = close_handle,
	.drop = drop,
};

static enum ndx_status create(struct ndx_adapter *adapter, const void *attr, void **out)
{
	struct ndx_cq *handle = NULL;
	enum ndx_status st = ndx_cq_create(adapter, attr, &handle);

	*out = handle;
	return st;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"adapter", "depth", NULL};
	struct ndx_cq_attr attr;
	PyObject *adapter;

	ndx_cq_attr_init(&attr);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&:CompletionQueue", names, &adapter,
	                                 pyndx_u32, &attr.depth))
		return NULL;
	return object_new_on(type, &queue_kind, adapter, create, &attr);
}

static PyObject *result_of(const struct queue *queue, const struct ndx_result *result)
{
	struct request *r = result->request_context;
	PyObject *item = PyStructSequence_New(pyndx.result_type);
	PyObject *members[] = {
		pyndx_status(result->status),
		PyLong_FromUnsignedLong(result->bytes_transferred),
		r != NULL ? r->context : Py_None,
		pyndx_enum(PYTHON_REQUEST_TYPE, result->request_type),
		(result->flags & NDX_RESULT_IMMEDIATE) != 0
			? PyLong_FromUnsignedLong(result->immediate)
			: Py_None,
		PyBool_FromLong((result->flags & NDX_RESULT_SOLICITED) != 0),
		PyBool_FromLong((result->flags & NDX_RESULT_WRITTEN) != 0),
		PyLong_FromLong(result->native),
		pair_context(queue, result),
	};
	bool whole = item != NULL;

	Py_INCREF(members[2]);
	Py_INCREF(members[8]);
	if (members[4] == Py_None)
		Py_INCREF(Py_None);
	for (Py_ssize_t i = 0; i < (Py_ssize_t)(sizeof(members) / sizeof(members[0])); i++) {
		whole = whole && members[i] != NULL;
		if (item != NULL)
			PyStructSequence_SetItem(item, i, members[i]);
		else
			Py_XDECREF(members[i]);
	}
	if (r != NULL)
		request_free(r);
	if (!whole)
		Py_CLEAR(item);
	return item;
}

static PyObject *list_of(const struct queue *queue, const struct ndx_result *results, size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; i < count; i++) {
		PyObject *item = result_of(queue, &results[i]);

		if (list == NULL)
			Py_XDECREF(item);
		else if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
			Py_CLEAR(list);
	}
	return list;
}

static bool batch(PyObject *args, PyObject *kwargs, unsigned *most)
{
	static char *names[] = {"count", NULL};

	*most = BATCH;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&:results", names, pyndx_u32, most))
		return false;
	if (*most > BATCH)
		*most = BATCH;
	return true;
}

static PyObject *queue_results(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct ndx_result results[BATCH];
	PyObject *list;
	unsigned most;

	if (!batch(args, kwargs, &most) || !object_enter((struct object *)self))
		return NULL;
	list = list_of(as_queue(self), results,
	               ndx_cq_get_results(((struct object *)self)->handle, results, most));
	object_leave((struct object *)self);
	return list;
}

static PyObject *queue_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"timeout", "count", NULL};
	struct ndx_result results[BATCH];
	PyObject *timeout = Py_None;
	PyObject *list = NULL;
	struct deadline deadline;
	enum ndx_status st = NDX_PENDING;
	unsigned most = BATCH;
	bool closed = false;
	size_t got = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO&:wait", names, &timeout, pyndx_u32,
	                                 &most) ||
	    !pyndx_deadline(timeout, &deadline) || !object_enter((struct object *)self))
		return NULL;
	if (most > BATCH)
		most = BATCH;
	while (st == NDX_PENDING && !as_queue(self)->base.closing) {
		uint32_t slice = pyndx_slice(&deadline);

		Py_BEGIN_ALLOW_THREADS;
		st = ndx_cq_wait_results(((struct object *)self)->handle, results, most, slice,
		                         &got);
		Py_END_ALLOW_THREADS;
		if (st != NDX_OK && st != NDX_PENDING) {
			(void)pyndx_raise_last(st);
			goto leave;
		}
		if (st == NDX_PENDING && PyErr_CheckSignals() != 0)
			goto leave;
		if (slice == 0)
			break;
	}
	if (st == NDX_PENDING && as_queue(self)->base.closing)
		(void)pyndx_raise_named("ClosedError",
		                        "another thread has closed the completion queue");
	else
		list = list_of(as_queue(self), results, st == NDX_OK ? got : 0);
leave:
	closed = as_queue(self)->base.closing;
	object_leave((struct object *)self);
	if (closed)
		object_halt();
	return list;
}

static PyObject *queue_fileno(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	int fd = -1;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_cq_get_fd(((struct object *)self)->handle, &fd);
	object_leave((struct object *)self);
	return st == NDX_OK ? PyLong_FromLong(fd) : pyndx_raise_last(st);
}

static PyObject *queue_arm(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"solicited", NULL};
	enum ndx_status st;
	int solicited = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:arm", names, &solicited) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_cq_notify(((struct object *)self)->handle,
	                   solicited ? NDX_CQ_NOTIFY_SOLICITED : NDX_CQ_NOTIFY_ANY, NULL);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static PyObject *queue_resize(PyObject *self, PyObject *depth)
{
	enum ndx_status st;
	uint64_t number;

	if (!pyndx_number(depth, "depth", UINT32_MAX, &number) ||
	    !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_cq_resize(((struct object *)self)->handle, (uint32_t)number);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

static int queue_traverse(PyObject *self, visitproc visit, void *arg)
{
	PyObject *const objects[] = {as_queue(self)->shared, as_queue(self)->contexts};
	int rc = pyndx_visit(self, objects, 2, visit, arg);

	return rc != 0 ? rc : requests_visit(as_queue(self)->requests, visit, arg);
}

static int queue_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef queue_methods[] = {
	{"results", (PyCFunction)(void (*)(void))queue_results, METH_VARARGS | METH_KEYWORDS,
         "results(count=64) -> list[Result]: results that are there, at most 64. Does not wait."},
	{"_wait", (PyCFunction)(void (*)(void))queue_wait, METH_VARARGS | METH_KEYWORDS, NULL},
	{"fileno", queue_fileno, METH_NOARGS,
         "Descriptor for select and event loops: readable when a result has come after arm()."},
	{"arm", (PyCFunction)(void (*)(void))queue_arm, METH_VARARGS | METH_KEYWORDS,
         "arm(solicited=False): make the descriptor readable with the next result. Then take "
         "results until there are none, because some may have come before."},
	{"resize", queue_resize, METH_O,
         "resize(depth): raises NotSupportedError without Capability.CQ_RESIZE."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot queue_slots[] = {
	{Py_tp_new, queue_new},
	{Py_tp_methods, queue_methods},
	{Py_tp_traverse, queue_traverse},
	{Py_tp_clear, queue_clear},
	{Py_tp_doc, "CompletionQueue(adapter, depth=64): results of the queue pairs that use it."},
	{0, NULL},
};

static PyType_Spec queue_spec = {
	.name = "ndx._ndx.CompletionQueue",
	.basicsize = sizeof(struct queue),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = queue_slots,
};

static PyStructSequence_Field result_fields[] = {
	{"status", "ndx.Status"},
	{"bytes", "receives: length of the message"},
	{"context", "the context that the post was given"},
	{"type", "ndx.RequestType"},
	{"immediate", "the peer's immediate data; None: none came"},
	{"solicited", "the peer's send asked for an event"},
	{"written", "a write of the peer; the receive's own memory was not used"},
	{"native", "the provider's code of a failure; 0: none"},
	{"queue_pair",
         "the context of the queue pair; None for the failure of a silent request, and for a "
         "receive of a shared queue whose queue pair is closed"},
	{NULL, NULL},
};

static PyStructSequence_Desc result_desc = {
	.name = "ndx.Result",
	.doc = "One finished request.",
	.fields = result_fields,
	.n_in_sequence = 9,
};

int pyndx_add_queues(PyObject *module)
{
	pyndx.result_type = PyStructSequence_NewType(&result_desc);
	if (pyndx.result_type == NULL || PyModule_AddType(module, pyndx.result_type) != 0)
		return -1;
	return pyndx_add_type(module, &queue_spec, pyndx.object_type, &pyndx.queue_type);
}
