/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the extension _ndx share. Objects of the library become Python objects whose
 * first part is `struct object`; the classes that programs see are in Python (ndx/).
 *
 * Locks: every field here is read and written with the interpreter's lock. A call of the library
 * that can wait, or that can meet a lock which a thread of the library holds during a Python
 * callback, is made without the interpreter's lock, between object_enter() and object_leave().
 */
#ifndef PYNDX_H
#define PYNDX_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "ndx does not work on a free-threaded build of Python: its locks are the interpreter's"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* How long a wait goes on before it looks whether Ctrl-C was pressed, in milliseconds. */
#define SLICE_MS 100u

/* Enums of ndx/_enums.py. */
enum python_enum {
	PYTHON_STATUS,
	PYTHON_REQUEST_TYPE,
	PYTHON_REASON,
	PYTHON_QP_STATE,
	PYTHON_CAPABILITY,
	PYTHON_RECEIVER_STATE,
	PYTHON_RECEIVER_END,
	PYTHON_STAGE,
	PYTHON_LAYER,
	PYTHON_SESSION_STATE,
	PYTHON_HISTORY_KIND,
	PYTHON_PLUGIN_ERROR,
	PYTHON_TRANSPORT,
	PYTHON_CHUNK_KIND,
	PYTHON_HOLE_KIND,
	PYTHON_ORPHAN_KIND,
	PYTHON_EVICTION_REASON,
	PYTHON_EVENT_TYPE,
	PYTHON_MANAGED_STATE,
	PYTHON_MANAGED_EVENT,
	PYTHON_ENUMS,
};

struct object;
struct operation;

/* In which order objects are closed when the interpreter ends. */
enum rank { RANK_SERVER, RANK_SESSION, RANK_STREAM, RANK_CONNECTION, RANK_QUEUE, RANK_ADAPTER };

/** What a type does at its end. */
struct kind {
	const char *name;
	enum rank rank;
	/** Close the handle. Called without the interpreter's lock. */
	void (*close)(struct object *self);
	/** Drop the references. Called with the lock, after close. May be NULL. */
	void (*drop)(struct object *self);
	/** Does that thread run a callback of the object, whose close waits for callbacks? 0: does
	 * any thread? NULL: the object calls no functions. */
	bool (*calls)(const struct object *self, unsigned long thread);
	/** Why the program cannot close the object; NULL: it can. */
	const char *kept;
};

/** First part of every object of the library. */
struct object {
	PyObject ob_base;
	const struct kind *kind;
	void *handle;  /* NULL: closed, or made in the parent of this process */
	unsigned busy; /* calls in progress without the interpreter's lock */
	bool closing;
	bool finishing; /* a thread closes the handle, or has closed it */
	bool leaving;   /* a call gives the handle away: no other call begins */
	/* Whose handle keeps this one valid: the receiver or sender of a queue pair. Entered and
	 * left with this object, so that it stays while `busy` is not 0. NULL: no such object. */
	struct object *lender;
	unsigned lent;   /* calls in progress, of the lender, for what it lends */
	unsigned recall; /* the lender's calls that end what it lends: no call of that begins */
	struct object *next, **link;  /* all objects that have a handle */
	struct operation *operations; /* in flight */
};

struct adapter {
	struct object base; /* struct ndx_adapter */
	PyObject *events;   /* list: events that no call has returned yet; NULL: none came */
};

/** A posted request: what it needs stays alive until its result was taken. */
struct request {
	struct request *next, **link;
	PyObject *context, *qp_context;
	PyObject *keep; /* region, or a tuple of what the request uses */
	bool shared;    /* of a shared receive queue: the result says which queue pair used it */
};

struct queue {
	struct object base; /* struct ndx_cq */
	struct request *requests;
	PyObject *shared;   /* list: shared receive queues whose results may come; NULL: none */
	PyObject *contexts; /* dict: number of a queue pair of those -> its context; NULL: none */
};

/**
 * A shared receive queue. A record of a receive belongs to the queue, but its result comes to the
 * completion queue of whichever queue pair used it, perhaps after the shared queue was closed. So
 * the records stay until the shared queue and all those completion queues are closed.
 */
struct shared {
	struct queue queue;     /* base: struct ndx_srq; and the records */
	uint32_t result_queues; /* open completion queues that may get its results */
};

struct region {
	struct object base; /* struct ndx_mr */
	Py_buffer buffer;
	bool exported;
};

struct pair {
	struct object base; /* struct ndx_qp */
	PyObject *receive_cq, *initiator_cq, *context;
	PyObject *srq;   /* NULL: it has receives of its own */
	uint64_t number; /* with a shared receive queue: what its results have */
};

struct connector {
	struct object base; /* struct ndx_connector */
	PyObject *qp;
};

struct listener {
	struct object base; /* struct ndx_listener */
};

/** An overlapped operation. In flight, its object and its port hold a reference. */
struct operation {
	PyObject ob_base;
	struct ndx_overlapped ov;
	struct object *owner; /* NULL: not in flight, or known to be complete */
	struct operation *next, **link;
	PyObject *port, *keep;
	bool queued; /* the port has not returned it yet */
	struct operation *next_queued, **link_queued;
	const char *what;
	PyObject *started; /* list of the caller that has the operation, until it is started */
};

/** What the module has. It exists once: the extension refuses a second interpreter. */
struct pyndx {
	PyObject *enums[PYTHON_ENUMS];
	PyObject *statuses[64]; /* at [-status + 1] */
	PyObject *make_error;
	PyTypeObject *object_type, *operation_type, *port_type, *adapter_type, *queue_type,
		*region_type, *pair_type, *connector_type, *listener_type, *result_type,
		*frame_type, *receiver_type, *sender_type, *reassembly_type, *framework_type,
		*variant_type, *session_type, *server_type, *shared_type;
	struct object *objects;
	bool loaded, used, forked, ending, ended;
};
extern struct pyndx pyndx;

/* ---- error.c ---- */

/** Raise ndx.Error or a subclass; returns NULL. An empty text: the status' own text. */
PyObject *pyndx_raise(enum ndx_status status, const char *text, int native);
/** For a call that has just failed on this thread. */
PyObject *pyndx_raise_last(enum ndx_status status);
/** Name of ndx/_errors.py: raise that exception with @p text; returns NULL. */
PyObject *pyndx_raise_named(const char *name, const char *text);
/** The member of an enum; a new reference. A value that the enum lacks becomes an int. */
PyObject *pyndx_enum(enum python_enum which, long value);
PyObject *pyndx_status(enum ndx_status status);
/** None for NDX_OK, else raises. */
PyObject *pyndx_done(enum ndx_status status);
/** May this process use the library? If not, raises. */
bool pyndx_usable(void);
int pyndx_add_errors(PyObject *module);

/* ---- value.c ---- */

/** A time limit. */
struct deadline {
	bool never;
	uint64_t end_ns;
};
/** Seconds as int or float, or None for no limit; false: raised. */
bool pyndx_deadline(PyObject *timeout, struct deadline *out);
/** The next slice in milliseconds; 0: the time is over. */
uint32_t pyndx_slice(const struct deadline *deadline);
/** What is left in milliseconds; NDX_INFINITE for no limit. */
uint32_t pyndx_left(const struct deadline *deadline);
/** ("10.0.0.1", 7471), ("fe80::1", 7471, 0, 2) or "10.0.0.1:7471"; false: raised. */
bool pyndx_address(PyObject *object, struct sockaddr_storage *out, socklen_t *length);
/** As the module socket has addresses; None for AF_UNSPEC. */
PyObject *pyndx_from_address(const struct sockaddr_storage *address);
/** A text of the library. What is no UTF-8 is replaced: a text that was cut to its room may end in
 * half a letter, and a peer may send any bytes. */
PyObject *pyndx_text(const char *text);
/** A text of the library that free() releases; takes the text. */
PyObject *pyndx_take_text(char *text);
/** Put @p value into @p dict under @p name, and drop it; false: raised. */
bool pyndx_put(PyObject *dict, const char *name, PyObject *value);
/** An unsigned int up to @p most from an attribute of a call; false: raised. */
bool pyndx_number(PyObject *object, const char *name, uint64_t most, uint64_t *out);
/** The part of memory of @p size bytes that begins at @p offset, and has @p length bytes; None: up
 * to the end. False: raised; else *bytes is at most @p most. */
bool pyndx_part(Py_ssize_t size, Py_ssize_t offset, PyObject *length, Py_ssize_t most,
                Py_ssize_t *bytes);
/** Converters of "O&" for uint16_t, uint32_t and uint64_t: out of range, they raise ValueError. */
int pyndx_u16(PyObject *object, void *out);
int pyndx_u32(PyObject *object, void *out);
int pyndx_u64(PyObject *object, void *out);
/** True if the object is an instance of the type; else raises TypeError. */
bool pyndx_is(PyObject *object, PyTypeObject *type, const char *name);

/** For tp_traverse: visit the type, and the objects that are not NULL. */
int pyndx_visit(PyObject *self, PyObject *const *objects, size_t count, visitproc visit, void *arg);
/** Add a type, derived from @p base; NULL: from object. */
int pyndx_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base, PyTypeObject **out);

/* ---- object.c ---- */

/** A new object without handle; NULL: raised. */
struct object *object_new(PyTypeObject *type, const struct kind *kind);
/** The object has its handle now. */
void object_open(struct object *self, void *handle);
/** Begin a call; false: closed or forked, and raised. */
bool object_enter(struct object *self);
void object_leave(struct object *self);
/** As object_enter() of several objects: of all, or of none. */
bool objects_enter(struct object *const *objects, size_t count);
void objects_leave(struct object *const *objects, size_t count);
/** A new object with the handle that @p create makes of the adapter and @p attr, without the
 * interpreter's lock; NULL: raised. */
typedef enum ndx_status object_create_fn(struct ndx_adapter *adapter, const void *attr, void **out);
PyObject *object_new_on(PyTypeObject *type, const struct kind *kind, PyObject *adapter,
                        object_create_fn *create, const void *attr);
/** A method that is one call of the library, without the interpreter's lock: None, or raises. */
typedef enum ndx_status object_call_fn(void *handle);
PyObject *object_call(PyObject *self, object_call_fn *fn);
/** A method that starts an operation, which it returns. @p port: as that of operation_new(). */
typedef enum ndx_status object_start_fn(void *handle, struct ndx_overlapped *ov);
PyObject *object_start(PyObject *self, PyObject *port, object_start_fn *fn, const char *what);
/** Drop a reference in a callback of the object, whose end waits for this thread. */
void object_drop_later(struct object *self);
/** After a wait that a close has ended: if the interpreter ends, a thread that is left over goes no
 * further, and reports no ClosedError. */
void object_halt(void);
/** Close now, or with the last call in progress. Not in a callback of the object. */
void object_close(struct object *self);
/** tp_finalize of what calls functions: the collector takes the variables of these functions away
 * before tp_clear of the object, but not before this. */
void object_finalize(PyObject *self);
/** close() of Python. */
PyObject *object_close_method(PyObject *self, PyObject *unused);
/** Is the object the program's? False: it is another object's, and StateError is raised. */
bool object_is_own(const struct object *self);
/** True: this thread runs a callback of the object, and BusyError is raised. */
bool object_in_callback(const struct object *self);
/** Wait up to @p most_ms (NDX_INFINITE: no limit), without the interpreter's lock, until the calls
 * in progress of a closed object have returned, and its handle is closed. */
void object_wait_closed(struct object *self, uint32_t most_ms);
/** Between object_enter() and object_leave(): a call begins that gives the handle away, and no
 * other call begins before object_take() or object_keep(). False: busy, and BusyError is raised. */
bool object_give(struct object *self);
/** The handle went to another object: forget it. */
void object_take(struct object *self);
/** The handle did not go. */
void object_keep(struct object *self);
/** Between object_enter() and object_leave(): a call begins that ends what the object lends.
 * False: that is in use, and BusyError is raised. */
bool object_recall(struct object *self);
void object_recalled(struct object *self);
int pyndx_add_objects(PyObject *module);

/* ---- operation.c ---- */

/**
 * A new operation, to be started. NULL: raised. @p port: a port, None, or an empty list, which has
 * the operation when it is started: Ctrl-C can take away the result of a call that starts one.
 */
struct operation *operation_new(PyObject *port, const char *what);
/** After the starting call: takes @p operation; returns it, or raises. @p keep may be NULL. */
PyObject *operation_started(struct operation *operation, struct object *owner, PyObject *keep,
                            enum ndx_status status);
/** Its status; PENDING: in flight, or its port has not returned it. */
enum ndx_status operation_observe(struct operation *operation);
/** Forget the operations that are complete. True: others are in flight. */
bool operation_pending(struct object *owner);
/** All operations of a closed object are complete. */
void operation_end_all(struct object *owner);
int pyndx_add_operations(PyObject *module);

/* ---- event.c ---- */

/** Add (operation, buffer of its event) to a list of waits. Takes both. False: raised. */
bool events_add(PyObject *started, PyObject *operation, PyObject *buffer);
/**
 * The waits of the list are over: cancel what is in flight, keep the events of what is complete in
 * the list @p events (NULL: closed, none is kept), and take it out of the list. All in one call,
 * because Ctrl-C can come between two. What is left has completed in a port, which has to return it
 * first. False: raised.
 */
bool events_end(PyObject *started, struct object *owner, PyObject *const *events,
                void (*cancel)(struct object *owner));

/* ---- the rest, a file each ---- */
int pyndx_add_adapters(PyObject *module);
int pyndx_add_regions(PyObject *module);
int pyndx_add_queues(PyObject *module);
int pyndx_add_pairs(PyObject *module);
int pyndx_add_connectors(PyObject *module);
int pyndx_add_listeners(PyObject *module);
int pyndx_add_reassemblies(PyObject *module);
int pyndx_add_dissected(PyObject *module);
int pyndx_add_segments(PyObject *module);
int pyndx_add_log(PyObject *module);
int pyndx_add_events(PyObject *module);
int pyndx_add_windows(PyObject *module);
int pyndx_add_shared(PyObject *module);
int pyndx_add_frames(PyObject *module);
int pyndx_add_receivers(PyObject *module);
int pyndx_add_senders(PyObject *module);
int pyndx_add_negotiations(PyObject *module);
int pyndx_add_sessions(PyObject *module);
int pyndx_add_servers(PyObject *module);
int pyndx_add_managers(PyObject *module);

/** Record of a request; NULL: raised. Takes @p keep, also on failure. */
struct request *request_new(struct queue *queue, PyObject *qp_context, PyObject *keep,
                            PyObject *context);
void request_free(struct request *request);
/** For tp_traverse: visit what the records of a list keep. */
int requests_visit(const struct request *list, visitproc visit, void *arg);

/** Results of @p shared may come to @p queue from now on, with the context of the queue pair of
 * that number; false: raised. */
bool queue_share(struct queue *queue, struct shared *shared, uint64_t number, PyObject *context);
/** The queue pair is closed: its late results have no context. */
void queue_unshare(struct queue *queue, uint64_t number);

#endif
