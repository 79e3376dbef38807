/* SPDX-License-Identifier: BSD-2-Clause */
/* Frameworks with their plugins, and variants. */
#include "negotiation.h"

#include <stdlib.h>

static struct ndx_negotiation *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

static void close_framework(struct object *self)
{
	(void)ndx_negotiation_close(self->handle);
}

/* Variants and sessions have a reference to their framework, so it is freed last. */
static const struct kind framework_kind = {
	.name = "negotiation",
	.rank = RANK_ADAPTER,
	.close = close_framework,
};

static void close_variant(struct object *self)
{
	ndx_variant_close(self->handle);
}

static void drop_variant(struct object *self)
{
	Py_CLEAR(((struct variant *)self)->framework);
}

static const struct kind variant_kind = {
	.name = "variant",
	.rank = RANK_QUEUE,
	.close = close_variant,
	.drop = drop_variant,
};

static PyObject *framework_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_negotiation *handle = NULL;
	struct object *self;
	enum ndx_status st;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, ""))
		return NULL;
	self = object_new(type, &framework_kind);
	if (self == NULL)
		return NULL;
	st = ndx_negotiation_create(&handle);
	if (st == NDX_OK) {
		object_open(self, handle);
		return &self->ob_base;
	}
	(void)pyndx_raise_last(st);
	Py_DECREF(&self->ob_base);
	return NULL;
}

/* Refused, and open, while variants or sessions exist. */
static PyObject *framework_close(PyObject *self, PyObject *unused)
{
	struct object *object = (struct object *)self;
	PyObject *done = NULL;
	enum ndx_status st;

	(void)unused;
	if (object->closing || object->handle == NULL)
		Py_RETURN_NONE;
	if (!object_enter(object))
		return NULL;
	if (object->busy > 1) {
		(void)pyndx_raise(NDX_E_DEVICE_BUSY,
		                  "another thread is in a call of the negotiation", 0);
		goto leave;
	}
	if (!object_give(object))
		goto leave;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_close(object->handle);
	Py_END_ALLOW_THREADS;
	done = pyndx_done(st);
	if (st == NDX_OK)
		object_take(object);
	else
		object_keep(object);
leave:
	object_leave(object);
	return done;
}

static PyObject *framework_load(PyObject *self, PyObject *path)
{
	PyObject *bytes = NULL;
	enum ndx_status st;

	if (PyUnicode_FSConverter(path, &bytes) == 0)
		return NULL;
	if (!object_enter((struct object *)self)) {
		Py_DECREF(bytes);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_load(handle_of(self), PyBytes_AsString(bytes));
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	Py_DECREF(bytes);
	return pyndx_done(st);
}

static PyObject *framework_discover(PyObject *self, PyObject *args)
{
	const char *directory = NULL;
	size_t count = 0;
	enum ndx_status st;

	if (!PyArg_ParseTuple(args, "|z", &directory) || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_discover(handle_of(self), directory, &count);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? PyLong_FromSize_t(count) : pyndx_raise_last(st);
}

static PyObject *framework_unregister(PyObject *self, PyObject *name)
{
	const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
	enum ndx_status st;

	if (text == NULL || !object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_unregister(handle_of(self), text);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return pyndx_done(st);
}

/* (name, type, required, least, most, choices, initial, help) of each parameter */
static PyObject *params_of(const struct ndx_plugin_param *p)
{
	PyObject *list = PyList_New(0);

	for (; list != NULL && p != NULL && p->name != NULL; p++) {
		PyObject *param = Py_BuildValue(
			"(siNLLzzs)", p->name, (int)p->type, PyBool_FromLong(p->required),
			(long long)p->least, (long long)p->most, p->choices, p->initial, p->help);

		if (param == NULL || PyList_Append(list, param) != 0)
			Py_CLEAR(list);
		Py_XDECREF(param);
	}
	return list;
}

static PyObject *framework_list(PyObject *self, PyObject *unused)
{
	struct ndx_plugin_entry *entries = NULL;
	size_t count = 0;
	enum ndx_status st;
	PyObject *list;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_list(handle_of(self), &entries, &count);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	list = PyList_New((Py_ssize_t)count);
	for (size_t i = 0; list != NULL && i < count; i++) {
		const struct ndx_plugin_entry *e = &entries[i];
		PyObject *entry =
			Py_BuildValue("(ssssNszsNN)", e->plugin, e->version, e->vendor, e->origin,
		                      PyBool_FromLong(e->state == NDX_PLUGIN_FAILED), e->text,
		                      e->variant, e->help != NULL ? e->help : "",
		                      PyBool_FromLong(e->available), params_of(e->params));

		if (entry == NULL || PyList_SetItem(list, (Py_ssize_t)i, entry) != 0)
			Py_CLEAR(list);
	}
	ndx_negotiation_list_free(entries);
	return list;
}

/* ---- variants ---- */

/* The items of a dict of texts; takes nothing. */
static bool settings_of(PyObject *dict, struct ndx_setting *settings, Py_ssize_t room,
                        size_t *count)
{
	Py_ssize_t at = 0;
	PyObject *value;
	PyObject *name;

	*count = 0;
	while (PyDict_Next(dict, &at, &name, &value)) {
		struct ndx_setting *s = &settings[*count];

		if ((Py_ssize_t)*count == room)
			break;
		s->name = PyUnicode_AsUTF8AndSize(name, NULL);
		s->value = s->name != NULL ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
		if (s->value == NULL)
			return false;
		(*count)++;
	}
	return true;
}

/* Variant(negotiation, plugin, variant, settings) */
static PyObject *variant_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_setting *settings = NULL;
	struct ndx_variant *handle = NULL;
	struct variant *self = NULL;
	PyObject *framework;
	PyObject *dict;
	const char *plugin;
	const char *name;
	enum ndx_status st;
	size_t count;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "OssO!", &framework, &plugin, &name, &PyDict_Type, &dict) ||
	    !pyndx_is(framework, pyndx.framework_type, "negotiation"))
		return NULL;
	settings = calloc((size_t)PyDict_Size(dict) + 1, sizeof(*settings));
	if (settings == NULL)
		return PyErr_NoMemory();
	if (settings_of(dict, settings, PyDict_Size(dict), &count))
		self = (struct variant *)object_new(type, &variant_kind);
	if (self == NULL || !object_enter((struct object *)framework)) {
		Py_XDECREF((PyObject *)self);
		free(settings);
		return NULL;
	}
	Py_INCREF(framework);
	self->framework = framework;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_get_variant(handle_of(framework), plugin, name, settings, count,
	                                 &handle);
	Py_END_ALLOW_THREADS;
	if (st == NDX_OK)
		object_open(&self->base, handle);
	else
		(void)pyndx_raise_last(st);
	object_leave((struct object *)framework);
	free(settings);
	if (st == NDX_OK)
		return &self->base.ob_base;
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

static PyObject *variant_plugin(PyObject *self, void *unused)
{
	PyObject *text;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	text = PyUnicode_FromString(ndx_variant_plugin_name(((struct object *)self)->handle));
	object_leave((struct object *)self);
	return text;
}

static PyObject *variant_name(PyObject *self, void *unused)
{
	PyObject *text;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	text = PyUnicode_FromString(ndx_variant_name(((struct object *)self)->handle));
	object_leave((struct object *)self);
	return text;
}

static PyObject *variant_setting(PyObject *self, PyObject *name)
{
	const char *key = PyUnicode_AsUTF8AndSize(name, NULL);
	PyObject *value;

	if (key == NULL || !object_enter((struct object *)self))
		return NULL;
	value = Py_BuildValue("z", ndx_variant_setting(((struct object *)self)->handle, key));
	object_leave((struct object *)self);
	return value;
}

static PyMethodDef framework_methods[] = {
	{"close", framework_close, METH_NOARGS,
         "close(): unload the plugins. Raises BusyError while variants or sessions exist."},
	{"load", framework_load, METH_O,
         "load(path): load a plugin from a file; a .py file is run by ndx-host-py. Raises Error "
         "(INVALID_PARAMETER: not absolute; DEVICE_NOT_READY: may not be loaded; ABI_MISMATCH)."},
	{"discover", framework_discover, METH_VARARGS,
         "discover(directory=None) -> int: load the plugins of a directory; None: those of "
         "$NDX_PLUGIN_PATH and of the installation."},
	{"unregister", framework_unregister, METH_O, "unregister(name): unload a plugin."},
	{"_list", framework_list, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot framework_slots[] = {
	{Py_tp_new, framework_new},
	{Py_tp_methods, framework_methods},
	{Py_tp_doc, "Base of ndx.Negotiation."},
	{0, NULL},
};

static PyType_Spec framework_spec = {
	.name = "ndx._ndx.Negotiation",
	.basicsize = sizeof(struct framework),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = framework_slots,
};

static PyMethodDef variant_methods[] = {
	{"setting", variant_setting, METH_O,
         "setting(name) -> str | None: value of a parameter, as given or initial."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef variant_getset[] = {
	{"plugin", variant_plugin, NULL, "Name of the plugin.", NULL},
	{"name", variant_name, NULL, "Name of the variant.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot variant_slots[] = {
	{Py_tp_new, variant_new},
	{Py_tp_methods, variant_methods},
	{Py_tp_getset, variant_getset},
	{Py_tp_doc, "An instance of a variant; Negotiation.variant() makes it."},
	{0, NULL},
};

static PyType_Spec variant_spec = {
	.name = "ndx._ndx.Variant",
	.basicsize = sizeof(struct variant),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = variant_slots,
};

int pyndx_add_negotiations(PyObject *module)
{
	if (pyndx_add_type(module, &framework_spec, pyndx.object_type, &pyndx.framework_type) != 0)
		return -1;
	return pyndx_add_type(module, &variant_spec, pyndx.object_type, &pyndx.variant_type);
}
