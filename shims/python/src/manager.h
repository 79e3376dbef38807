/* SPDX-License-Identifier: BSD-2-Clause */
/* Session managers. */
#ifndef PYNDX_MANAGER_H
#define PYNDX_MANAGER_H

#include "negotiation.h"

/** Functions of the program that a manager calls. */
enum manager_function { ON_PROVIDE, ON_RECLAIM, ON_EVENT, MANAGER_FUNCTIONS };

/**
 * What the module keeps of a managed session. The context that the library passes is a number,
 * because an event may outlive its session; `records` has the record of a number.
 */
struct record {
	uint64_t id; /* 0: not known yet */
	PyObject *context;
	PyObject *tls_object; /* keeps the texts of `tls` */
	struct tls tls;
	struct resources resources; /* of the attempt or life */
	uint32_t inbound_read_limit, outbound_read_limit;
};

struct manager {
	struct object base; /* struct ndx_session_manager */
	PyObject *negotiation;
	PyObject *functions[MANAGER_FUNCTIONS]; /* None: the program has none */
	PyObject *records;                      /* dict: number -> capsule of a record */
	uint64_t last;                          /* number */
	struct running *running;
	PyObject *events; /* list: events that no call of event() has returned yet */
};

/** A capsule of a new record, which takes the TLS of the arguments, also on failure; NULL: raised.
 */
PyObject *manager_record_new(PyObject *context, struct session_arguments *arguments);
/** Forget the session of that number, or of that id. */
void manager_forget(struct manager *manager, uint64_t number);
void manager_forget_id(struct manager *manager, uint64_t id);
/** The capsule of that number, a new reference; NULL: there is none, and nothing is raised. */
PyObject *manager_find(const struct manager *manager, const void *number);
struct record *manager_record(PyObject *capsule);
/** Context of the session, a new reference, whose identity is noted. */
PyObject *manager_context(const struct manager *manager, const void *number, uint64_t id);
/** An event as a tuple. */
PyObject *manager_event(const struct manager *manager, const struct ndx_managed_event *event);

/** Callbacks of the library; manager_events.c. */
void manager_set_events(struct manager *manager, struct ndx_session_manager_attr *attr);

#endif
