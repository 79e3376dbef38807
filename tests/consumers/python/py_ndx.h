/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The skeleton of a Python extension on the public API, to see that the API carries one: objects
 * that keep each other alive, memory that Python lends as buffers, waiting without the interpreter
 * lock and with Ctrl-C, results that bring Python objects back, descriptors for an event loop.
 */
#ifndef PY_NDX_H
#define PY_NDX_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ndx/ndx.h>

/* How long a wait goes on before it looks whether Ctrl-C was pressed. */
#define SLICE_MS 100u

struct state {
	PyObject *error;
};

struct py_adapter {
	PyObject ob_base;
	struct ndx_adapter *handle;
};

/** A posted request: what it needs stays alive until its result was taken. */
struct request {
	struct request *next, **link;
	PyObject *region, *context;
};

struct py_cq {
	PyObject ob_base;
	struct ndx_cq *handle;
	struct request *requests;
};

struct py_mr {
	PyObject ob_base;
	struct ndx_mr *handle;
	Py_buffer buffer;
};

struct py_qp {
	PyObject ob_base;
	struct ndx_qp *handle;
	PyObject *cq;
};

struct py_connector {
	PyObject ob_base;
	struct ndx_connector *handle;
	PyObject *qp;
};

/** Raise ndx.Error(number, name, cause); returns NULL. An empty cause: the status' own text. */
PyObject *py_raise(PyObject *self, enum ndx_status status, const char *cause);
/** For a call that has just failed on this thread. */
PyObject *py_raise_last(PyObject *self, enum ndx_status status);
/** The end of every object. */
void py_free(PyObject *self);

/** A new request on the list of its queue, which is where it ends if its result is never taken. */
struct request *py_request_new(struct py_cq *cq, PyObject *region, PyObject *context);
void py_request_free(struct request *request);

/* Each adds its types to the module; -1: failed. */
int py_add_type(PyObject *module, const char *name, size_t size, newfunc make, destructor destroy,
                PyMethodDef *methods);
int py_add_memory(PyObject *module);
int py_add_connection(PyObject *module);

#endif
