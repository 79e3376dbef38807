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

/** Queue pairs of a session of several, of consecutive indices. */
struct group {
	struct group *next;
	struct operation *adding; /* NULL: they are of the session, and `first` is known */
	uint32_t first, count, gone;
	struct resources at[];
};

struct session {
	struct object base; /* struct ndx_session */
	PyObject *variant;  /* NULL: a session of a server or manager, which lends the handle */
	struct resources resources;
	struct group *groups;
};

/** A callback of a server or manager that runs now, on the stack of its thread. */
struct running {
	struct running *next, **link;
	unsigned long thread;
	bool counted; /* it holds a reference to the object */
};

/** Functions of the program that a server calls. */
enum server_function {
	ON_OPEN,
	ON_STAGED,
	ON_CLOSED,
	ON_OPEN_MANY,
	ON_ADD_MANY,
	ON_ADDED,
	ON_REMOVED,
	SERVER_FUNCTIONS,
};

struct server {
	struct object base;                    /* struct ndx_negotiation_server */
	PyObject *variants;                    /* tuple */
	PyObject *functions[SERVER_FUNCTIONS]; /* None: the program has none */
	PyObject *sessions;                    /* dict: address of the handle -> session */
	struct running *running;
	uint32_t inbound_read_limit, outbound_read_limit;
};

/** Hold what the arguments name, each of which may be None; false: raised. */
bool resources_hold(struct resources *resources, PyObject *connector, PyObject *qp,
                    PyObject *region, struct ndx_memory_description *memory);
void resources_drop(struct resources *resources);
/** For tp_traverse: visit what is held. */
int resources_visit(const struct resources *resources, visitproc visit, void *arg);

/** Hold the queue pairs of a tuple of (connector, qp[, memory]), and list them for the library; the
 * list has room for as many. NULL: raised. */
struct group *group_hold(PyObject *tuple, struct ndx_session_queue_pair *list);
void group_drop(struct group *group);
void groups_add(struct group **groups, struct group *group);
/** Operations that add a group may be complete: keep or drop the group. */
void groups_settle(struct group **groups);
void groups_remove(struct group **groups, uint32_t first, uint32_t count);
void groups_drop(struct group **groups);

/** A callback begins: the object stays until the callback returns; but when the object is being
 * freed, it waits for that. */
void running_begin(struct object *owner, struct running **list, struct running *running);
void running_end(struct object *owner, struct running *running);
/** Does that thread run one of them? 0: does any? */
bool running_on(const struct running *list, unsigned long thread);

/** TLS of a session or server; valid as long as the object that it came from. */
struct tls {
	struct ndx_tls_attr attr;
	const char **names;
	bool wanted;
};

/** From None, or what ndx/_tls.py makes; false: raised. */
bool tls_of(PyObject *object, struct tls *tls);
void tls_free(struct tls *tls);

/** Most servers of a session. */
#define SESSION_SERVERS 16

/** Arguments of a session. What they name is that of the caller's arguments. */
struct session_arguments {
	PyObject *variant, *connector, *qp, *memory;
	PyObject *queue_pairs; /* tuple */
	PyObject *tls_object;  /* None, or a tuple */
	struct tls tls;
	const char *servers[SESSION_SERVERS];
	struct ndx_session_attr attr; /* without variant, and what it connects */
};

/** False: raised; else tls_free() when the session was created. */
bool session_arguments(PyObject *args, PyObject *kwargs, struct session_arguments *out);

/** A session of a server or manager. NULL: raised. */
struct session *session_lent(struct ndx_session *handle);
/** The server or manager takes the handle back. */
void session_lent_end(struct session *session);

/** Attributes of a server with the functions of server_events.c. */
void server_set_events(struct server *server, struct ndx_negotiation_server_attr *attr);

/* Methods of Session; session_state.c. */
PyObject *session_state(PyObject *self, void *unused);
PyObject *session_id(PyObject *self, void *unused);
PyObject *session_server(PyObject *self, void *unused);
PyObject *session_agreement(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *session_error(PyObject *self, PyObject *unused);
PyObject *session_add_error(PyObject *self, PyObject *unused);
PyObject *session_count(PyObject *self, void *unused);
PyObject *session_history(PyObject *self, PyObject *unused);
PyObject *session_snapshot(PyObject *self, PyObject *unused);

#endif
