/* SPDX-License-Identifier: BSD-2-Clause */
/* Frameworks, variants, sessions and servers of negotiations. */
#ifndef PYNDX_NEGOTIATION_H
#define PYNDX_NEGOTIATION_H

#include "pyndx.h"

struct framework {
	struct object base; /* struct ndx_negotiation */
};

struct variant {
	struct object base; /* struct ndx_variant */
	PyObject *framework;
};

/** What a session connects. Connector and queue pair stay open for as long as it is held. */
struct resources {
	struct object *connector, *qp;
	PyObject *region;
};

struct session {
	struct object base; /* struct ndx_session */
	PyObject *variant;  /* NULL: a session of a server, which lends the handle */
	struct resources resources;
};

/** A callback of a server that runs now, on the stack of its thread. */
struct running {
	struct running *next, **link;
	unsigned long thread;
	bool counted; /* it holds a reference to the server */
};

struct server {
	struct object base; /* struct ndx_negotiation_server */
	PyObject *variants; /* tuple */
	PyObject *on_open, *on_staged, *on_closed;
	PyObject *sessions; /* dict: address of the handle -> session */
	struct running *running;
};

/** Hold what the arguments name, each of which may be None; false: raised. */
bool resources_hold(struct resources *resources, PyObject *connector, PyObject *qp,
                    PyObject *region, struct ndx_memory_description *memory);
void resources_drop(struct resources *resources);

/** A session of a server. NULL: raised. */
struct session *session_lent(struct ndx_session *handle);
/** The server takes the handle back. */
void session_lent_end(struct session *session);

/* Methods of Session; session_state.c. */
PyObject *session_state(PyObject *self, void *unused);
PyObject *session_id(PyObject *self, void *unused);
PyObject *session_server(PyObject *self, void *unused);
PyObject *session_agreement(PyObject *self, PyObject *unused);
PyObject *session_error(PyObject *self, PyObject *unused);
PyObject *session_history(PyObject *self, PyObject *unused);
PyObject *session_snapshot(PyObject *self, PyObject *unused);

#endif
