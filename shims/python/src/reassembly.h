/* SPDX-License-Identifier: BSD-2-Clause */
/* Reassembly, and what programs have dissected themselves. */
#ifndef PYNDX_REASSEMBLY_H
#define PYNDX_REASSEMBLY_H

#include "pyndx.h"

struct reassembly {
	PyObject ob_base;
	struct ndx_reassembly *handle;
	PyObject *make;        /* dict: name -> class */
	PyObject *connections; /* dict: id -> object */
	PyObject *list;        /* events of the call in progress */
	uint64_t wanted;       /* bits by enum ndx_reassembly_event_type */
};

/** Begin a call that collects events; false: raised. */
bool reassembly_collect(struct reassembly *self);
/** The events of the call; NULL: raised. */
PyObject *reassembly_collected(struct reassembly *self);

#endif
