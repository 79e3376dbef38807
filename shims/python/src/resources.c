/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session connects, and holds open for that. */
#include "negotiation.h"

#include <string.h>

/* The memory for the peer: a region, or the slab of a receiver. */
static bool hold_memory(struct resources *r, PyObject *region,
                        struct ndx_memory_description *memory)
{
	struct region *mr = (struct region *)region;

	if (!object_enter((struct object *)region))
		return false;
	r->region = region;
	if (PyObject_TypeCheck(region, pyndx.receiver_type)) {
		enum ndx_status st =
			ndx_receiver_get_memory(((struct object *)region)->handle, memory);

		return st == NDX_OK || pyndx_raise_last(st) != NULL;
	}
	memory->address = (uintptr_t)mr->buffer.buf;
	memory->length = (uint64_t)mr->buffer.len;
	memory->token = ndx_mr_get_remote_token(mr->base.handle);
	return true;
}

bool resources_hold(struct resources *r, PyObject *connector, PyObject *qp, PyObject *region,
                    struct ndx_memory_description *memory)
{
	memset(memory, 0, sizeof(*memory));
	if ((connector != Py_None && !pyndx_is(connector, pyndx.connector_type, "connector")) ||
	    (qp != Py_None && !pyndx_is(qp, pyndx.pair_type, "qp")) ||
	    (region != Py_None && !PyObject_TypeCheck(region, pyndx.receiver_type) &&
	     !pyndx_is(region, pyndx.region_type, "memory")))
		return false;
	if (connector != Py_None) {
		if (!object_enter((struct object *)connector))
			return false;
		r->connector = (struct object *)connector;
	}
	if (qp != Py_None) {
		if (!object_enter((struct object *)qp))
			return false;
		r->qp = (struct object *)qp;
	}
	return region == Py_None || hold_memory(r, region, memory);
}

void resources_drop(struct resources *r)
{
	struct resources held = *r;

	memset(r, 0, sizeof(*r));
	if (held.connector != NULL)
		object_leave(held.connector);
	if (held.qp != NULL)
		object_leave(held.qp);
	if (held.region != NULL)
		object_leave((struct object *)held.region);
}

int resources_visit(const struct resources *r, visitproc visit, void *arg)
{
	int rc = r->connector != NULL ? visit(&r->connector->ob_base, arg) : 0;

	if (rc == 0 && r->qp != NULL)
		rc = visit(&r->qp->ob_base, arg);
	if (rc == 0 && r->region != NULL)
		rc = visit(r->region, arg);
	return rc;
}
