/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a plugin table from a Python module; support.py describes the module's content. */
#include "python.h"

#include <stdlib.h>

/* A row of _param() of support.py. */
static bool fill_param(PyObject *row, struct ndx_plugin_param *p)
{
	long long least;
	long long most;
	int required;
	int type;

	if (!PyArg_ParseTuple(row, "sipLLzzs", &p->name, &type, &required, &least, &most,
	                      &p->choices, &p->initial, &p->help))
		return false;
	p->type = (enum ndx_param_type)type;
	p->required = required != 0;
	p->least = least;
	p->most = most;
	return true;
}

static bool fill_params(PyObject *rows, const struct ndx_plugin_param **out)
{
	const Py_ssize_t count = PyList_Size(rows);
	struct ndx_plugin_param *params;

	if (count <= 0)
		return count == 0;
	params = calloc((size_t)count + 1, sizeof(*params));
	if (params == NULL) {
		(void)PyErr_NoMemory();
		return false;
	}
	*out = params;
	for (Py_ssize_t i = 0; i < count; i++)
		if (!fill_param(PyList_GetItem(rows, i), &params[i]))
			return false;
	return true;
}

/* A row of _variant() of support.py. */
static bool fill_variant(struct guest *g, PyObject *row, size_t i)
{
	struct ndx_plugin_variant *v = &g->list[i];
	struct guest_variant *state = &g->variants[i];
	PyObject *params;
	int available;
	int done;
	int reset;

	if (!PyArg_ParseTuple(row, "sssOOppp", &v->name, &v->help, &v->transport, &state->class,
	                      &params, &done, &reset, &available) ||
	    !fill_params(params, &v->params))
		return false;
	state->guest = g;
	state->ops = exchange_ops;
	if (!available)
		state->ops.available = NULL;
	if (!done)
		state->ops.done = NULL;
	if (!reset)
		state->ops.reset = NULL;
	v->ops = &state->ops;
	v->state = state;
	return true;
}

static bool fill_variants(struct guest *g, PyObject *rows)
{
	const size_t count = (size_t)PyList_Size(rows);

	g->list = calloc(count, sizeof(*g->list));
	g->variants = calloc(count, sizeof(*g->variants));
	if (g->list == NULL || g->variants == NULL) {
		(void)PyErr_NoMemory();
		return false;
	}
	g->table.list = g->list;
	g->table.count = count;
	for (size_t i = 0; i < count; i++)
		if (!fill_variant(g, PyList_GetItem(rows, (Py_ssize_t)i), i))
			return false;
	return true;
}

static bool fill_transports(struct guest *g, PyObject *rows)
{
	const size_t count = (size_t)PyList_Size(rows);

	if (count > TRANSPORTS_MOST) {
		(void)PyErr_Format(PyExc_ValueError, "TRANSPORTS has %zu classes, %u are allowed",
		                   count, TRANSPORTS_MOST);
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		const char *name;
		int takes_settings;
		int has_descriptor;

		if (!PyArg_ParseTuple(PyList_GetItem(rows, (Py_ssize_t)i), "sOpp", &name,
		                      &g->transport_classes[i], &takes_settings, &has_descriptor))
			return false;
		g->takes_settings[i] = takes_settings != 0;
		transport_fill(g, i, name, has_descriptor != 0);
	}
	if (count > 0) {
		g->table.transports = g->transports;
		g->table.more = g->more_list;
	}
	return true;
}

/* ---- the guest as a plugin ---- */

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	struct guest *g = *state;

	(void)why;
	(void)room;
	g->host = host;
	return NDX_OK;
}

static void finalize(void *state)
{
	(void)state; /* guest_close() follows and releases everything */
}

static bool fill_table(struct guest *g)
{
	PyObject *variants;
	PyObject *transports;

	g->table = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                               .size = sizeof(struct ndx_plugin),
	                               .initialize = initialize,
	                               .finalize = finalize};
	return PyArg_ParseTuple(g->tables, "sssOO", &g->table.name, &g->table.version,
	                        &g->table.vendor, &variants, &transports) &&
	       fill_variants(g, variants) && fill_transports(g, transports);
}

/* Interpreter lock held. */
static void release(struct guest *g)
{
	PyObject *dict = g->module != NULL ? PyModule_GetDict(g->module) : NULL;

	/* A thread that the module started may still log; without this entry it finds no guest. */
	if (dict != NULL && PyDict_DelItemString(dict, "__ndx_guest__") != 0)
		PyErr_Clear();
	Py_CLEAR(g->tables);
	Py_CLEAR(g->module);
	/* Classes are part of reference cycles, so only the garbage collector frees them. */
	(void)PyGC_Collect();
}

static void free_guest(struct guest *g)
{
	for (size_t i = 0; g->list != NULL && i < g->table.count; i++)
		free((void *)(uintptr_t)g->list[i].params);
	free(g->list);
	free(g->variants);
	free(g);
}

enum ndx_status guest_open(void *plugin, const char *path, const struct ndx_plugin **table,
                           void **out, char *why, size_t room)
{
	struct guest *g = calloc(1, sizeof(*g));
	PyGILState_STATE held;
	enum ndx_status st = NDX_OK;

	if (g == NULL || !py_enter(&held)) {
		(void)snprintf(why, room, g == NULL ? "out of memory" : "Python has ended");
		free(g);
		return NDX_E_DEVICE_NOT_READY;
	}
	g->host = ((const struct host_state *)plugin)->host;
	g->module = py_support("_load", Py_BuildValue("(sN)", path, PyCapsule_New(g, NULL, NULL)));
	if (g->module != NULL)
		g->tables = py_support("_tables", Py_BuildValue("(O)", g->module));
	if (g->tables == NULL || !fill_table(g)) {
		(void)py_why(g->host, why, room);
		release(g);
		st = NDX_E_INVALID_CONFIG;
	}
	py_leave(held);
	if (st != NDX_OK) {
		free_guest(g);
		return st;
	}
	*table = &g->table;
	*out = g;
	return NDX_OK;
}

void guest_close(void *plugin, const struct ndx_plugin *table, void *guest)
{
	PyGILState_STATE held;

	(void)plugin;
	(void)table;
	if (py_enter(&held)) {
		release(guest);
		py_leave(held);
	}
	free_guest(guest);
}
