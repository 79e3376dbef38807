/* SPDX-License-Identifier: BSD-2-Clause */
/* The module, and what its types share. */
#include "py_ndx.h"

PyObject *py_raise(PyObject *self, enum ndx_status status, const char *cause)
{
	struct state *state = PyType_GetModuleState(Py_TYPE(self));
	PyObject *arguments = Py_BuildValue("(iss)", (int)status, ndx_status_name(status),
	                                    cause[0] != '\0' ? cause : ndx_status_text(status));

	if (arguments != NULL) {
		PyErr_SetObject(state->error, arguments);
		Py_DECREF(arguments);
	}
	return NULL;
}

PyObject *py_raise_last(PyObject *self, enum ndx_status status)
{
	return py_raise(self, status, ndx_last_error());
}

void py_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	type->tp_free(self);
	Py_DECREF(type);
}

struct request *py_request_new(struct py_cq *cq, PyObject *region, PyObject *context)
{
	struct request *r = PyMem_Malloc(sizeof(*r));

	if (r == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	Py_INCREF(region);
	Py_INCREF(context);
	r->region = region;
	r->context = context;
	r->next = cq->requests;
	r->link = &cq->requests;
	if (r->next != NULL)
		r->next->link = &r->next;
	cq->requests = r;
	return r;
}

void py_request_free(struct request *r)
{
	*r->link = r->next;
	if (r->next != NULL)
		r->next->link = r->link;
	Py_DECREF(r->region);
	Py_DECREF(r->context);
	PyMem_Free(r);
}

/* ---- module ---- */

int py_add_type(PyObject *module, const char *name, size_t size, newfunc make, destructor destroy,
                PyMethodDef *methods)
{
	PyType_Slot slots[] = {
		{Py_tp_new, (void *)make},
		{Py_tp_dealloc, (void *)destroy},
		{Py_tp_methods, methods},
		{0, NULL},
	};
	PyType_Spec spec = {
		.name = name,
		.basicsize = (int)size,
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};
	PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
	int rc;

	if (type == NULL)
		return -1;
	rc = PyModule_AddType(module, (PyTypeObject *)type);
	Py_DECREF(type);
	return rc;
}

static int module_exec(PyObject *module)
{
	struct state *state = PyModule_GetState(module);

	state->error = PyErr_NewException("ndx.Error", NULL, NULL);
	if (state->error == NULL || PyModule_AddObjectRef(module, "Error", state->error) != 0)
		return -1;
	if (py_add_memory(module) != 0)
		return -1;
	return py_add_connection(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	Py_VISIT(((struct state *)PyModule_GetState(module))->error);
	return 0;
}

static int module_clear(PyObject *module)
{
	Py_CLEAR(((struct state *)PyModule_GetState(module))->error);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, (void *)module_exec},
	{0, NULL},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "ndx",
	.m_doc = "The NetworkDirect object model.",
	.m_size = sizeof(struct state),
	.m_slots = module_slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
};

PyMODINIT_FUNC PyInit_ndx(void);
PyMODINIT_FUNC PyInit_ndx(void)
{
	return PyModuleDef_Init(&module);
}
