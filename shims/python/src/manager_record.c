/* SPDX-License-Identifier: BSD-2-Clause */
/* What the module keeps of the sessions of a manager. */
#include "manager.h"

struct record *manager_record(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, NULL);
}

static void free_record(PyObject *capsule)
{
	struct record *record = manager_record(capsule);

	resources_drop(&record->resources);
	tls_free(&record->tls);
	Py_DECREF(record->tls_object);
	Py_DECREF(record->context);
	PyMem_Free(record);
}

PyObject *manager_record_new(PyObject *context, struct session_arguments *a)
{
	struct record *record = PyMem_Calloc(1, sizeof(*record));
	PyObject *capsule = record != NULL ? PyCapsule_New(record, NULL, free_record) : NULL;

	if (capsule == NULL) {
		PyMem_Free(record);
		tls_free(&a->tls);
		return PyErr_Occurred() != NULL ? NULL : PyErr_NoMemory();
	}
	Py_INCREF(context);
	Py_INCREF(a->tls_object);
	record->context = context;
	record->tls_object = a->tls_object;
	record->tls = a->tls;
	record->inbound_read_limit = a->attr.inbound_read_limit;
	record->outbound_read_limit = a->attr.outbound_read_limit;
	a->attr.tls = a->tls.wanted ? &record->tls.attr : NULL;
	return capsule;
}

PyObject *manager_find(const struct manager *manager, const void *number)
{
	PyObject *type, *value, *trace;
	PyObject *capsule = NULL;
	PyObject *key;

	PyErr_Fetch(&type, &value, &trace); /* that of an earlier value of a result */
	key = PyLong_FromUnsignedLongLong((uintptr_t)number);
	if (key != NULL && manager->records != NULL)
		capsule = PyDict_GetItemWithError(manager->records, key);
	Py_XINCREF(capsule);
	Py_XDECREF(key);
	PyErr_Restore(type, value, trace);
	return capsule;
}

PyObject *manager_context(const struct manager *manager, const void *number, uint64_t id)
{
	PyObject *capsule = manager_find(manager, number);
	PyObject *context = Py_None;

	if (capsule != NULL) {
		manager_record(capsule)->id = id;
		context = manager_record(capsule)->context;
	}
	Py_INCREF(context);
	Py_XDECREF(capsule);
	return context;
}

void manager_forget(struct manager *manager, uint64_t number)
{
	PyObject *key = PyLong_FromUnsignedLongLong(number);

	if (key == NULL || PyDict_DelItem(manager->records, key) != 0)
		PyErr_Clear();
	Py_XDECREF(key);
}

void manager_forget_id(struct manager *manager, uint64_t id)
{
	PyObject *key, *capsule;
	Py_ssize_t at = 0;

	while (PyDict_Next(manager->records, &at, &key, &capsule)) {
		if (manager_record(capsule)->id == id) {
			manager_forget(manager, PyLong_AsUnsignedLongLong(key));
			return;
		}
	}
}

PyObject *manager_event(const struct manager *manager, const struct ndx_managed_event *e)
{
	return Py_BuildValue("(NKINNNIINN)", pyndx_enum(PYTHON_MANAGED_EVENT, e->kind),
	                     (unsigned long long)e->id, e->life,
	                     manager_context(manager, e->context, e->id), pyndx_status(e->status),
	                     pyndx_enum(PYTHON_LAYER, e->layer), e->failures, e->pause_ms,
	                     pyndx_text(e->server), pyndx_text(e->text));
}
