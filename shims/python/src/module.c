/* SPDX-License-Identifier: BSD-2-Clause */
/* The module _ndx. */
#include "pyndx.h"

static PyObject *version_function(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(ndx_version());
}

static PyMethodDef functions[] = {
	{"version", version_function, METH_NOARGS,
         "version() -> str: version of the loaded library, for example \"0.1.0\"."},
	{NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
	int (*const add[])(PyObject *) = {
		pyndx_add_errors,       pyndx_add_objects,      pyndx_add_operations,
		pyndx_add_adapters,     pyndx_add_regions,      pyndx_add_queues,
		pyndx_add_pairs,        pyndx_add_connectors,   pyndx_add_listeners,
		pyndx_add_reassemblies, pyndx_add_frames,       pyndx_add_receivers,
		pyndx_add_senders,      pyndx_add_negotiations, pyndx_add_sessions,
		pyndx_add_servers,      pyndx_add_segments,     pyndx_add_dissected,
		pyndx_add_log,          pyndx_add_events,       pyndx_add_windows,
		pyndx_add_shared,       pyndx_add_managers,
	};

	/* The library's threads call Python in the first interpreter, whose lock they take. */
	if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
		PyErr_SetString(PyExc_ImportError,
		                "ndx works in the main interpreter only, not in a sub-interpreter");
		return -1;
	}
	if (pyndx.loaded) {
		PyErr_SetString(PyExc_ImportError, "ndx._ndx is loaded already, and loads once");
		return -1;
	}
	pyndx.loaded = true;
	for (size_t i = 0; i < sizeof(add) / sizeof(add[0]); i++)
		if (add[i](module) != 0)
			return -1;
	return 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, (void *)module_exec},
#ifdef Py_mod_multiple_interpreters
	{Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
	{0, NULL},
};

static struct PyModuleDef module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "ndx._ndx",
	.m_doc = "The objects of the library; programs import ndx.",
	.m_methods = functions,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__ndx(void);
PyMODINIT_FUNC PyInit__ndx(void)
{
	return PyModuleDef_Init(&module);
}
