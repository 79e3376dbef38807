/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting: from Python's arguments to SGEs and flags. Posts never wait, so they keep the
 * interpreter's lock. */
#include "post.h"

#define SGES 32

const char send_doc[] =
	"send(memory=None, offset=0, length=None, *, context=None, immediate=None, inline=False, "
	"silent=False, fence=False, solicit=False)\n\n"
	"Post a send. `memory` is a MemoryRegion, of which `length` bytes from `offset` on are "
	"sent (default: all); or a sequence of (region, offset, length), gathered; or None: no "
	"bytes. With inline=True it may be any object with a buffer, which is copied. The result "
	"has `context`; with silent=True there is a result only if the send fails, and the "
	"program keeps the region open until a later result of the queue pair has come.\n\n"
	"Raises QueueFullError (take results first), ConnectionFailedError (never connected), "
	"NotSupportedError (immediate without Capability.SEND_IMMEDIATE).";
const char receive_doc[] = "receive(memory=None, offset=0, length=None, *, context=None)\n\n"
			   "Post a receive. `memory` as for send(), with Access.LOCAL_WRITE.";
const char shared_receive_doc[] =
	"receive(memory=None, offset=0, length=None, *, context=None)\n\n"
	"Post a receive for whichever queue pair of the shared queue gets a message. `memory` as "
	"for QueuePair.send(), with Access.LOCAL_WRITE. The result comes to the receive_cq of that "
	"queue pair, and has its context as `queue_pair`.\n\n"
	"Raises QueueFullError (depth), Error with DATA_OVERRUN (max_sge).";
const char read_doc[] =
	"read(memory=None, offset=0, length=None, *, remote_address, remote_token, context=None, "
	"silent=False, fence=False)\n\n"
	"Post a read of the peer's memory into `memory`.";
const char write_doc[] =
	"write(memory=None, offset=0, length=None, *, remote_address, remote_token, context=None, "
	"immediate=None, inline=False, silent=False, fence=False, solicit=False)\n\n"
	"Post a write of `memory` to the peer's memory. With immediate data the peer gets a result "
	"on one of its receives.";

/* The arguments of a post. */
struct post {
	PyObject *memory, *length, *context, *immediate, *address, *token;
	Py_ssize_t offset;
	int is_inline, silent, fence, solicit;

	struct ndx_sge sge[SGES];
	size_t count;
	PyObject *keep;   /* what the request uses; a new reference */
	Py_buffer buffer; /* of inline data */
	bool exported;
	uint32_t flags, number, remote_token;
	uint64_t remote_address;
};

/* A part of a region as the next SGE. */
static bool add_region(struct post *p, PyObject *memory, Py_ssize_t offset, PyObject *length)
{
	struct region *region = (struct region *)memory;
	Py_ssize_t bytes;

	if (!pyndx_is(memory, pyndx.region_type, "memory"))
		return false;
	if (region->base.closing || region->base.handle == NULL) {
		(void)pyndx_raise_named("ClosedError", "the memory region is closed");
		return false;
	}
	if (!pyndx_part(region->buffer.len, offset, length, (Py_ssize_t)UINT32_MAX, &bytes))
		return false;
	if (p->count == SGES) {
		PyErr_Format(PyExc_ValueError, "a request has at most %d parts", SGES);
		return false;
	}
	p->sge[p->count].buffer = (char *)region->buffer.buf + offset;
	p->sge[p->count].length = (uint32_t)bytes;
	p->sge[p->count].token = ndx_mr_get_local_token(region->base.handle);
	p->count++;
	return true;
}

/* Regions, or (region, offset, length). The tuple that holds them is a copy, so that it stays as it
 * is. */
static bool add_parts(struct post *p)
{
	PyObject *parts = PySequence_Tuple(p->memory);
	Py_ssize_t size = parts != NULL ? PyTuple_Size(parts) : 0;

	p->keep = parts;
	for (Py_ssize_t i = 0; i < size; i++) {
		PyObject *part = PyTuple_GetItem(parts, i);
		PyObject *length = Py_None;
		PyObject *memory = part;
		Py_ssize_t offset = 0;

		if (PyTuple_Check(part) &&
		    !PyArg_ParseTuple(part, "O|nO;a part is (region, offset, length)", &memory,
		                      &offset, &length))
			return false;
		if (!add_region(p, memory, offset, length))
			return false;
	}
	return parts != NULL;
}

static bool add_inline(struct post *p)
{
	Py_ssize_t bytes;

	if (PyObject_GetBuffer(p->memory, &p->buffer, PyBUF_SIMPLE) != 0)
		return false;
	p->exported = true;
	if (!pyndx_part(p->buffer.len, p->offset, p->length, (Py_ssize_t)UINT32_MAX, &bytes))
		return false;
	p->sge[0].buffer = (char *)p->buffer.buf + p->offset;
	p->sge[0].length = (uint32_t)bytes;
	p->sge[0].token = 0;
	p->count = 1;
	return true;
}

static bool add_memory(struct post *p)
{
	int is_region = PyObject_IsInstance(p->memory, (PyObject *)pyndx.region_type);

	if (is_region < 0)
		return false;
	if (p->memory == Py_None || is_region == 1 || p->is_inline) {
		Py_INCREF(p->memory);
		p->keep = p->memory;
	}
	if (p->memory == Py_None)
		return true;
	if (is_region == 1)
		return add_region(p, p->memory, p->offset, p->length);
	return p->is_inline ? add_inline(p) : add_parts(p);
}

static bool complete(struct post *p)
{
	uint64_t number = 0;

	p->flags = (p->silent ? NDX_OP_SILENT_SUCCESS : 0) | (p->fence ? NDX_OP_READ_FENCE : 0) |
	           (p->solicit ? NDX_OP_SOLICIT_EVENT : 0) | (p->is_inline ? NDX_OP_INLINE : 0);
	if (p->immediate != Py_None &&
	    !pyndx_number(p->immediate, "immediate", UINT32_MAX, &number))
		return false;
	p->number = (uint32_t)number;
	if (p->address != NULL &&
	    !pyndx_number(p->address, "remote_address", UINT64_MAX, &p->remote_address))
		return false;
	if (p->token != NULL) {
		if (!pyndx_number(p->token, "remote_token", UINT32_MAX, &number))
			return false;
		p->remote_token = (uint32_t)number;
	}
	return add_memory(p);
}

static void post_init(struct post *p)
{
	p->memory = p->length = p->context = p->immediate = Py_None;
	p->address = p->token = p->keep = NULL;
	p->offset = 0;
	p->is_inline = p->silent = p->fence = p->solicit = 0;
	p->count = 0;
	p->exported = false;
	p->remote_address = 0;
	p->remote_token = 0;
}

typedef enum ndx_status post_fn(struct ndx_qp *qp, void *context, const struct post *p);

/* Post what was parsed. */
static PyObject *post(PyObject *self, struct post *p, PyObject *queue, post_fn *fn)
{
	struct pair *pair = (struct pair *)self;
	struct request *request = NULL;
	PyObject *done = NULL;
	enum ndx_status st;

	if (!object_enter((struct object *)self))
		return NULL;
	if (queue == NULL) {
		(void)pyndx_raise(NDX_E_INVALID_DEVICE_STATE,
		                  "the queue pair belongs to a receiver or sender", 0);
		goto leave;
	}
	if (!complete(p))
		goto leave;
	if (!p->silent) {
		request = request_new((struct queue *)queue, pair->context, p->keep, p->context);
		p->keep = NULL;
		if (request == NULL)
			goto leave;
	}
	st = fn(pair->base.handle, request, p);
	if (st == NDX_OK) {
		Py_INCREF(Py_None);
		done = Py_None;
	} else {
		if (request != NULL)
			request_free(request);
		(void)pyndx_raise(st, "", 0);
	}
leave:
	if (p->exported)
		PyBuffer_Release(&p->buffer);
	Py_XDECREF(p->keep);
	object_leave((struct object *)self);
	return done;
}

static enum ndx_status do_send(struct ndx_qp *qp, void *context, const struct post *p)
{
	if (p->immediate != Py_None)
		return ndx_qp_send_immediate(qp, context, p->sge, p->count, p->number, p->flags);
	return ndx_qp_send(qp, context, p->sge, p->count, p->flags);
}

static enum ndx_status do_receive(struct ndx_qp *qp, void *context, const struct post *p)
{
	return ndx_qp_receive(qp, context, p->sge, p->count);
}

static enum ndx_status do_read(struct ndx_qp *qp, void *context, const struct post *p)
{
	return ndx_qp_read(qp, context, p->sge, p->count, p->remote_address, p->remote_token,
	                   p->flags);
}

static enum ndx_status do_write(struct ndx_qp *qp, void *context, const struct post *p)
{
	if (p->immediate != Py_None)
		return ndx_qp_write_immediate(qp, context, p->sge, p->count, p->remote_address,
		                              p->remote_token, p->number, p->flags);
	return ndx_qp_write(qp, context, p->sge, p->count, p->remote_address, p->remote_token,
	                    p->flags);
}

PyObject *pair_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"memory", "offset", "length", "context", "immediate",
	                        "inline", "silent", "fence",  "solicit", NULL};
	struct post p;

	post_init(&p);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OnO$OOpppp:send", names, &p.memory,
	                                 &p.offset, &p.length, &p.context, &p.immediate,
	                                 &p.is_inline, &p.silent, &p.fence, &p.solicit))
		return NULL;
	return post(self, &p, ((struct pair *)self)->initiator_cq, do_send);
}

PyObject *pair_receive(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"memory", "offset", "length", "context", NULL};
	struct post p;

	post_init(&p);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OnO$O:receive", names, &p.memory,
	                                 &p.offset, &p.length, &p.context))
		return NULL;
	return post(self, &p, ((struct pair *)self)->receive_cq, do_receive);
}

PyObject *shared_receive(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"memory", "offset", "length", "context", NULL};
	struct object *base = (struct object *)self;
	struct request *request;
	PyObject *done = NULL;
	enum ndx_status st;
	struct post p;

	post_init(&p);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OnO$O:receive", names, &p.memory,
	                                 &p.offset, &p.length, &p.context) ||
	    !object_enter(base))
		return NULL;
	if (!complete(&p))
		goto leave;
	request = request_new((struct queue *)self, Py_None, p.keep, p.context);
	p.keep = NULL;
	if (request == NULL)
		goto leave;
	request->shared = true;
	st = ndx_srq_receive(base->handle, request, p.sge, p.count);
	if (st == NDX_OK) {
		Py_INCREF(Py_None);
		done = Py_None;
	} else {
		request_free(request);
		(void)pyndx_raise(st, "", 0);
	}
leave:
	Py_XDECREF(p.keep);
	object_leave(base);
	return done;
}

PyObject *pair_read(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"memory",         "offset",       "length",
	                        "remote_address", "remote_token", "context",
	                        "silent",         "fence",        NULL};
	struct post p;

	post_init(&p);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OnO$OOOpp:read", names, &p.memory,
	                                 &p.offset, &p.length, &p.address, &p.token, &p.context,
	                                 &p.silent, &p.fence))
		return NULL;
	return post(self, &p, ((struct pair *)self)->initiator_cq, do_read);
}

PyObject *pair_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"memory",       "offset",  "length",    "remote_address",
	                        "remote_token", "context", "immediate", "inline",
	                        "silent",       "fence",   "solicit",   NULL};
	struct post p;

	post_init(&p);
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OnO$OOOOpppp:write", names, &p.memory,
	                                 &p.offset, &p.length, &p.address, &p.token, &p.context,
	                                 &p.immediate, &p.is_inline, &p.silent, &p.fence,
	                                 &p.solicit))
		return NULL;
	return post(self, &p, ((struct pair *)self)->initiator_cq, do_write);
}
