/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters. */
#include "pyndx.h"

#include <stdlib.h>
#include <string.h>

static struct ndx_adapter *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_handle(struct object *self)
{
	ndx_adapter_close(self->handle);
}

static void drop(struct object *self)
{
	Py_CLEAR(((struct adapter *)self)->events);
}

static const struct kind adapter_kind = {
	.name = "adapter",
	.rank = RANK_ADAPTER,
	.close = close_handle,
	.drop = drop,
};

static PyObject *adapter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"uri", NULL};
	const char *uri = NULL;
	struct ndx_adapter *handle = NULL;
	struct object *self;
	enum ndx_status st;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:Adapter", names, &uri))
		return NULL;
	self = object_new(type, &adapter_kind);
	if (self == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_adapter_open(uri, &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK) {
		object_open(self, handle);
		return &self->ob_base;
	}
	(void)pyndx_raise_last(st);
	Py_DECREF(&self->ob_base);
	return NULL;
}

static bool put_limits(PyObject *dict, const struct ndx_adapter_info *info)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"adapter_id", info->adapter_id},
		{"vendor_id", info->vendor_id},
		{"device_id", info->device_id},
		{"max_registration_size", info->max_registration_size},
		{"max_window_size", info->max_window_size},
		{"max_initiator_sge", info->max_initiator_sge},
		{"max_receive_sge", info->max_receive_sge},
		{"max_read_sge", info->max_read_sge},
		{"max_transfer_length", info->max_transfer_length},
		{"max_inline_data_size", info->max_inline_data_size},
		{"inline_request_threshold", info->inline_request_threshold},
		{"large_request_threshold", info->large_request_threshold},
		{"max_inbound_read_limit", info->max_inbound_read_limit},
		{"max_outbound_read_limit", info->max_outbound_read_limit},
		{"max_receive_queue_depth", info->max_receive_queue_depth},
		{"max_initiator_queue_depth", info->max_initiator_queue_depth},
		{"max_shared_receive_queue_depth", info->max_shared_receive_queue_depth},
		{"max_completion_queue_depth", info->max_completion_queue_depth},
		{"max_caller_data", info->max_caller_data},
		{"max_callee_data", info->max_callee_data},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!pyndx_put(dict, numbers[i].name,
		               PyLong_FromUnsignedLongLong(numbers[i].value)))
			return false;
	return true;
}

static PyObject *adapter_query(PyObject *self, PyObject *unused)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	enum ndx_status st;
	PyObject *dict;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_adapter_query(handle_of(self), &info);
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	dict = PyDict_New();
	if (dict != NULL && pyndx_put(dict, "uri", PyUnicode_FromString(info.uri)) &&
	    pyndx_put(dict, "provider", PyUnicode_FromString(info.provider)) &&
	    pyndx_put(dict, "device", PyUnicode_FromString(info.device)) &&
	    pyndx_put(dict, "capabilities",
	              pyndx_enum(PYTHON_CAPABILITY, (long)info.capabilities)) &&
	    put_limits(dict, &info))
		return dict;
	Py_XDECREF(dict);
	return NULL;
}

static PyObject *addresses_of(const struct sockaddr_storage *list, size_t count)
{
	PyObject *addresses = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; addresses != NULL && i < count; i++) {
		PyObject *address = pyndx_from_address(&list[i]);

		if (address == NULL || PyList_SetItem(addresses, (Py_ssize_t)i, address) != 0)
			Py_CLEAR(addresses);
	}
	return addresses;
}

static PyObject *adapter_addresses(PyObject *self, PyObject *unused)
{
	struct sockaddr_storage *list = NULL;
	size_t count = 0;
	enum ndx_status st;
	PyObject *addresses = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_adapter_query_addresses(handle_of(self), NULL, &count);
	/* Another thread may add addresses in between. */
	while (st == NDX_E_BUFFER_OVERFLOW) {
		free(list);
		list = calloc(count, sizeof(*list));
		if (list == NULL)
			st = NDX_E_NO_MEMORY;
		else
			st = ndx_adapter_query_addresses(handle_of(self), list, &count);
	}
	object_leave((struct object *)self);
	if (st == NDX_OK)
		addresses = addresses_of(list, count);
	else
		(void)pyndx_raise_last(st);
	free(list);
	return addresses;
}

static PyObject *adapter_snapshot(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	char *json = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_adapter_snapshot(handle_of(self), &json);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_take_text(json) : pyndx_raise_last(st);
}

static PyMethodDef adapter_methods[] = {
	{"_query", adapter_query, METH_NOARGS, NULL},
	{"addresses", adapter_addresses, METH_NOARGS,
         "addresses() -> list: local addresses as the module socket has them, with port 0."},
	{"snapshot", adapter_snapshot, METH_NOARGS,
         "snapshot() -> str: the adapter and all its objects as JSON (docs/observability.md)."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot adapter_slots[] = {
	{Py_tp_new, adapter_new},
	{Py_tp_methods, adapter_methods},
	{Py_tp_doc, "Adapter(uri=None): base of ndx.Adapter."},
	{0, NULL},
};

static PyType_Spec adapter_spec = {
	.name = "ndx._ndx.Adapter",
	.basicsize = sizeof(struct adapter),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = adapter_slots,
};

/* ---- functions ---- */

static PyObject *entry_of(const struct ndx_adapter_entry *e)
{
	PyObject *addresses = addresses_of(e->addresses, e->address_count);
	PyObject *status = pyndx_status(e->state);

	if (addresses != NULL && status != NULL)
		return Py_BuildValue("(ssssNKNs)", e->uri, e->provider, e->device,
		                     e->interface_name, addresses,
		                     (unsigned long long)e->adapter_id, status, e->hint);
	Py_XDECREF(addresses);
	Py_XDECREF(status);
	return NULL;
}

static PyObject *list_function(PyObject *module, PyObject *unused)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	enum ndx_status st;
	PyObject *list;

	(void)module;
	(void)unused;
	if (!pyndx_usable())
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_adapter_list(&entries, &count);
	Py_END_ALLOW_THREADS;
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	list = PyList_New((Py_ssize_t)count);
	for (size_t i = 0; list != NULL && i < count; i++) {
		PyObject *entry = entry_of(&entries[i]);

		if (entry == NULL || PyList_SetItem(list, (Py_ssize_t)i, entry) != 0)
			Py_CLEAR(list);
	}
	ndx_adapter_list_free(entries);
	return list;
}

static PyObject *resolve_function(PyObject *module, PyObject *remote)
{
	struct sockaddr_storage address;
	struct sockaddr_storage local;
	socklen_t length;
	char uri[256];
	size_t size = sizeof(uri);
	enum ndx_status st;

	(void)module;
	if (!pyndx_usable() || !pyndx_address(remote, &address, &length))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_resolve((struct sockaddr *)&address, length, uri, &size, &local);
	Py_END_ALLOW_THREADS;
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("(sN)", uri, pyndx_from_address(&local));
}

static PyObject *default_function(PyObject *module, PyObject *unused)
{
	char uri[256];
	size_t size = sizeof(uri);
	enum ndx_status st;

	(void)module;
	(void)unused;
	if (!pyndx_usable())
		return NULL;
	st = ndx_adapter_default(uri, &size);
	if (st == NDX_E_NOT_FOUND)
		Py_RETURN_NONE;
	return st == NDX_OK ? PyUnicode_FromString(uri) : pyndx_raise_last(st);
}

static PyMethodDef functions[] = {
	{"_list", list_function, METH_NOARGS, NULL},
	{"_resolve", resolve_function, METH_O, NULL},
	{"_default", default_function, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_adapters(PyObject *module)
{
	if (PyModule_AddFunctions(module, functions) != 0)
		return -1;
	return pyndx_add_type(module, &adapter_spec, pyndx.object_type, &pyndx.adapter_type);
}
