/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the host.
 *
 * A process has one interpreter: the host's, or the program's if the program is itself Python. The
 * interpreter stays until the process ends, because CPython cannot be started twice reliably; so
 * this library is never unmapped (linked with nodelete), however often plugins are loaded and
 * unloaded. Unloading a guest frees its module.
 *
 * Calls come on any thread. Each takes the interpreter lock for its duration; a guest that sleeps
 * or waits in Python releases it in the meantime. The host never waits for a lock of the framework
 * while it holds the interpreter lock.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ndx/spi/plugin.h>

/* Transports of one guest: each needs a connect function of its own. */
#define TRANSPORTS_MOST 4u

struct guest;

/* State of the host plugin. */
struct host_state {
	const struct ndx_plugin_host *host;
};

struct guest_variant {
	struct guest *guest;
	PyObject *class;
	struct ndx_variant_ops ops;
};

/* A module, and the plugin tables for it. The strings belong to `tables`. */
struct guest {
	struct ndx_plugin table;
	const struct ndx_plugin_host *host; /* of the guest; set when the guest is registered */
	PyObject *module;
	PyObject *tables;
	struct guest_variant *variants;
	struct ndx_plugin_variant *list;
	struct ndx_plugin_transport transports[TRANSPORTS_MOST + 1];
	struct ndx_plugin_transport_more more[TRANSPORTS_MOST];
	const struct ndx_plugin_transport_more *more_list[TRANSPORTS_MOST + 1];
	PyObject *transport_classes[TRANSPORTS_MOST]; /* borrowed from `tables` */
	bool takes_settings[TRANSPORTS_MOST];         /* the class wants the variant's settings */
};

/*
 * interpreter.c: start the interpreter unless it has been started. Returns NULL, or the reason why
 * it did not start, which stays valid.
 */
const char *py_start(void);
/* Take the interpreter lock until py_leave(); false: the interpreter has ended. */
bool py_enter(PyGILState_STATE *held);
void py_leave(PyGILState_STATE held);
/*
 * Call a function of support.py; NULL: an exception is set. Steals `args`; then `args` may be NULL.
 */
PyObject *py_support(const char *function, PyObject *args);
/* An attribute of support.py; borrowed reference. */
PyObject *py_support_get(const char *name);
/*
 * Clear the exception that is set: its last traceback line to `text`, all lines to the log of
 * `host`.
 */
enum ndx_plugin_error py_why(const struct ndx_plugin_host *host, char *text, size_t room);

/* description.c: on NULL or false an exception is set. */
PyObject *py_from_description(const struct ndx_peer_description *d);
bool py_to_description(PyObject *from, struct ndx_peer_description *d);
PyObject *py_from_agreement(const struct ndx_agreement *a);

/* guest.c */
enum ndx_status guest_open(void *plugin, const char *path, const struct ndx_plugin **table,
                           void **out, char *why, size_t room);
void guest_close(void *plugin, const struct ndx_plugin *table, void *guest);

/* exchange.c: the functions of every variant; the guest's tables say which variant it is. */
extern const struct ndx_variant_ops exchange_ops;
/* Values of parameters as a dict; NULL: an exception is set. */
PyObject *exchange_settings(const struct ndx_plugin_param *params,
                            const struct ndx_plugin_value *values);

/* transport.c: the tables of a transport; `name` is valid as long as the guest. `has_descriptor`:
 * the class has fileno(). */
void transport_fill(struct guest *g, unsigned index, const char *name, bool has_descriptor);

#endif
