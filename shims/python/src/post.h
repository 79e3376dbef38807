/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path of queue pairs: methods of QueuePair. */
#ifndef PYNDX_POST_H
#define PYNDX_POST_H

#include "pyndx.h"

PyObject *pair_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pair_receive(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pair_read(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pair_write(PyObject *self, PyObject *args, PyObject *kwargs);
/** Method of SharedReceiveQueue. */
PyObject *shared_receive(PyObject *self, PyObject *args, PyObject *kwargs);

extern const char send_doc[];
extern const char receive_doc[];
extern const char shared_receive_doc[];
extern const char read_doc[];
extern const char write_doc[];

#endif
