/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers, senders and frames. */
#ifndef PYNDX_STREAM_H
#define PYNDX_STREAM_H

#include "pyndx.h"

/** A function of the program for frames; the context of a consumer of the library. */
struct consumer {
	struct receiver *receiver;
	PyObject *function;
};

struct receiver {
	struct object base; /* struct ndx_receiver */
	struct consumer consumers[NDX_RECEIVER_CONSUMERS];
	PyObject *on_end;
	struct pair *qp;      /* the queue pair as an object, once asked for */
	unsigned long thread; /* that runs a callback now; 0: none */
};

struct sender {
	struct object base; /* struct ndx_sender */
	PyObject *receiver; /* whose connection it uses; may be NULL */
	struct pair *qp;
};

/** Takes a reference of the library's frame, also on failure. */
PyObject *frame_new(const struct ndx_frame *handle);

/** The queue pair of a receiver or sender, for a connector or a session: it posts nothing. A call
 * of it is a call of the lender, too. */
PyObject *lent_pair(struct object *lender, struct pair **kept, struct ndx_qp *handle);
/** The queue pair is about to go. */
void lent_pair_end(struct pair **kept);
/** Start a receiver or sender, which was entered, on a connector: the second half of _start(). */
typedef enum ndx_status start_fn(void *handle, struct ndx_connector *connector);
PyObject *lent_start(struct object *lender, struct object *connector, start_fn *fn);
/** A call that ends the queue pair has failed: is it the one that the lender has @p now? */
void lent_pair_recalled(struct pair **kept, const struct ndx_qp *now);

/** Callbacks of the library; callbacks.c. */
bool consumer_frame(void *context, const struct ndx_frame *frame);
void receiver_ended(void *context, struct ndx_receiver *handle, enum ndx_receiver_state state);
/** `calls` of its kind. */
bool receiver_calls(const struct object *self, unsigned long thread);

/* Methods of Receiver; receiver_state.c. */
PyObject *receiver_state(PyObject *self, void *unused);
PyObject *receiver_cause(PyObject *self, PyObject *unused);
PyObject *receiver_memory(PyObject *self, PyObject *unused);
PyObject *receiver_snapshot(PyObject *self, PyObject *unused);
PyObject *receiver_stats(PyObject *self, PyObject *unused);

/** A description as dict, and back; false: raised. description.c */
PyObject *description_to(const struct ndx_peer_description *description);
bool description_from(PyObject *dict, struct ndx_peer_description *out);

#endif
