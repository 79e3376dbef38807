/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host's files share.
 *
 * There is one interpreter in a process: ours, or the one of the program if that is Python itself.
 * It stays to the end: CPython cannot be started twice in good order, so this file is never
 * unmapped (its link says nodelete), however often plugins come and go. What goes with a guest is
 * its module.
 *
 * Calls come on any thread. Each takes the interpreter's lock for its duration; a guest that sleeps
 * or waits in Python lets go of it meanwhile. No lock of the framework's is ever waited for while
 * it is held.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ndx/spi/plugin.h>

/* Transports of one guest: each needs a function of its own. */
#define TRANSPORTS_MOST 4u

struct guest;

/* The host plugin, as its framework knows it. */
struct host_state {
	const struct ndx_plugin_host *host;
};

struct guest_variant {
	struct guest *guest;
	PyObject *class;
	struct ndx_variant_ops ops;
};

/* A module, and the tables that stand for it. Strings are those of `tables`. */
struct guest {
	struct ndx_plugin table;
	const struct ndx_plugin_host *host; /* the guest's own, once it is registered */
	PyObject *module;
	PyObject *tables;
	struct guest_variant *variants;
	struct ndx_plugin_variant *list;
	struct ndx_plugin_transport transports[TRANSPORTS_MOST + 1];
	PyObject *transport_classes[TRANSPORTS_MOST]; /* of `tables` */
};

/* python.c: from here to py_leave() the interpreter is ours; false: it has ended. */
bool py_enter(PyGILState_STATE *held);
void py_leave(PyGILState_STATE held);
/* Call a function of support.py; NULL: an exception is set. Takes `args`, which may be NULL then.
 */
PyObject *py_support(const char *function, PyObject *args);
/* Something of support.py; borrowed. */
PyObject *py_support_get(const char *name);
/* Take the exception that is set: the traceback's last line, all of it to the log of `host`. */
enum ndx_plugin_error py_why(const struct ndx_plugin_host *host, char *text, size_t room);

/* description.c: NULL, false: an exception is set. */
PyObject *py_from_description(const struct ndx_peer_description *d);
bool py_to_description(PyObject *from, struct ndx_peer_description *d);
PyObject *py_from_agreement(const struct ndx_agreement *a);

/* guest.c */
enum ndx_status guest_open(void *plugin, const char *path, const struct ndx_plugin **table,
                           void **out, char *why, size_t room);
void guest_close(void *plugin, const struct ndx_plugin *table, void *guest);

/* exchange.c: what every variant does; which of it, the guest says. */
extern const struct ndx_variant_ops exchange_ops;

/* transport.c: `name` lives as long as the guest. */
void transport_fill(struct ndx_plugin_transport *out, unsigned index, const char *name);

#endif
