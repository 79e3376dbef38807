/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreter: its start, its lock, and calls of the functions of support.py. */
#include "python.h"

#include <dlfcn.h>
#include <pthread.h>

#include "support_py.h" /* support.py, as bytes */

/* The one interpreter of the process, and what the host keeps about it: see python.h. */
static struct {
	pthread_once_t once;
	PyObject *support; /* the module of support.py; NULL: it did not start */
	char why[160];
} interpreter = {.once = PTHREAD_ONCE_INIT};

bool py_enter(PyGILState_STATE *held)
{
	/* A program that is itself Python may have ended the interpreter. */
	if (!Py_IsInitialized())
		return false;
	*held = PyGILState_Ensure();
	return true;
}

void py_leave(PyGILState_STATE held)
{
	PyGILState_Release(held);
}

PyObject *py_support_get(const char *name)
{
	return PyDict_GetItemString(PyModule_GetDict(interpreter.support), name);
}

PyObject *py_support(const char *function, PyObject *args)
{
	PyObject *result;

	if (args == NULL)
		return NULL;
	result = PyObject_CallObject(py_support_get(function), args);
	Py_DECREF(args);
	return result;
}

/* The sink may take any lock, so call it without the interpreter lock. */
static void write_log(const struct ndx_plugin_host *host, enum ndx_log_level level,
                      const char *text)
{
	PyThreadState *thread = PyEval_SaveThread();

	host->log(host, level, text);
	PyEval_RestoreThread(thread);
}

static void log_lines(const struct ndx_plugin_host *host, PyObject *lines)
{
	for (Py_ssize_t i = 0; i < PyList_Size(lines); i++) {
		const char *line = PyUnicode_AsUTF8(PyList_GetItem(lines, i));

		if (line != NULL)
			write_log(host, NDX_LOG_WARN, line);
	}
}

enum ndx_plugin_error py_why(const struct ndx_plugin_host *host, char *text, size_t room)
{
	int error = NDX_PLUGIN_VENDOR;
	const char *last = "an exception that cannot be told";
	PyObject *type = NULL;
	PyObject *value = NULL;
	PyObject *trace = NULL;
	PyObject *lines = NULL;
	PyObject *told;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	told = py_support("_why", Py_BuildValue("(OOO)", type != NULL ? type : Py_None,
	                                        value != NULL ? value : Py_None,
	                                        trace != NULL ? trace : Py_None));
	if (told != NULL && PyArg_ParseTuple(told, "siO", &last, &error, &lines))
		log_lines(host, lines);
	(void)snprintf(text, room, "%s", last);
	PyErr_Clear();
	Py_XDECREF(told);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return error > NDX_PLUGIN_OK && error <= NDX_PLUGIN_CONFIGURATION
	               ? (enum ndx_plugin_error)error
	               : NDX_PLUGIN_VENDOR;
}

/* The guest of the calling Python function; the module's globals hold it. */
static const struct guest *calling_guest(void)
{
	PyObject *globals = PyEval_GetGlobals();
	PyObject *capsule = globals != NULL ? PyDict_GetItemString(globals, "__ndx_guest__") : NULL;

	return capsule != NULL ? PyCapsule_GetPointer(capsule, NULL) : NULL;
}

/* ndx_plugin.log(level, text) */
static PyObject *log_call(PyObject *self, PyObject *args)
{
	const struct guest *guest = calling_guest();
	enum ndx_log_level level = NDX_LOG_ERROR;
	const char *name;
	const char *text;

	(void)self;
	if (!PyArg_ParseTuple(args, "ss", &name, &text))
		return NULL;
	if (strcmp(name, "debug") == 0)
		level = NDX_LOG_DEBUG;
	else if (strcmp(name, "info") == 0)
		level = NDX_LOG_INFO;
	else if (strcmp(name, "warn") == 0)
		level = NDX_LOG_WARN;
	else if (strcmp(name, "error") != 0)
		return PyErr_Format(PyExc_ValueError,
		                    "level is \"%s\", it may be error, warn, info or debug", name);
	if (guest != NULL)
		write_log(guest->host, level, text);
	Py_INCREF(Py_None);
	return Py_None;
}

static PyMethodDef log_method = {"log", log_call, METH_VARARGS, "log(level, text)"};

/* Create the module ndx_plugin from the bytes of support.py. */
static PyObject *make_support(void)
{
	PyObject *module = PyImport_AddModule("ndx_plugin");
	PyObject *dict = module != NULL ? PyModule_GetDict(module) : NULL;
	PyObject *log = PyCFunction_New(&log_method, NULL);
	PyObject *code;
	PyObject *result = NULL;

	if (dict == NULL || log == NULL || PyDict_SetItemString(dict, "log", log) != 0 ||
	    PyDict_SetItemString(dict, "__builtins__", PyEval_GetBuiltins()) != 0)
		return NULL;
	code = Py_CompileString((const char *)support_py, "ndx_plugin", Py_file_input);
	if (code != NULL)
		result = PyEval_EvalCode(code, dict, dict);
	Py_XDECREF(code);
	Py_XDECREF(result);
	if (result == NULL)
		return NULL;
	Py_INCREF(module);
	return module;
}

/* Python's own extension modules need the interpreter's symbols in the global scope. */
static void show_symbols(void)
{
	Dl_info info;

	if (dladdr((const void *)(uintptr_t)Py_IsInitialized, &info) != 0)
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* Start without the user's environment, without signal handlers, and without writing files. */
static bool start_own(void)
{
	PyConfig config;
	PyStatus st;

	PyConfig_InitIsolatedConfig(&config);
	config.write_bytecode = 0;
	st = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(st)) {
		(void)snprintf(interpreter.why, sizeof(interpreter.why),
		               "Python does not start: %s",
		               st.err_msg != NULL ? st.err_msg : "no reason given");
		return false;
	}
	return true;
}

static void start(void)
{
	const bool ours = !Py_IsInitialized();
	PyGILState_STATE held = PyGILState_UNLOCKED;

	show_symbols();
	if (ours && !start_own())
		return;
	if (!ours)
		held = PyGILState_Ensure();
	interpreter.support = make_support();
	if (interpreter.support == NULL) {
		PyErr_Clear();
		(void)snprintf(interpreter.why, sizeof(interpreter.why),
		               "Python %s cannot run what plugins need", Py_GetVersion());
	}
	if (ours)
		(void)PyEval_SaveThread();
	else
		PyGILState_Release(held);
}

const char *py_start(void)
{
	(void)pthread_once(&interpreter.once, start);
	return interpreter.support == NULL ? interpreter.why : NULL;
}
