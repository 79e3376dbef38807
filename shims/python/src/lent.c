/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that a receiver or a sender owns, as objects for connectors and sessions; and the
 * connectors that they take. */
#include "stream.h"

static void close_handle(struct object *self)
{
	(void)self; /* the receiver's */
}

static const struct kind lent_kind = {
	.name = "queue pair of the receiver or sender",
	.rank = RANK_CONNECTION,
	.close = close_handle,
};

PyObject *lent_pair(struct object *lender, struct pair **kept, struct ndx_qp *handle)
{
	struct pair *pair = *kept;

	/* The program may have closed the object; the queue pair is there all the same. */
	if (pair != NULL && pair->base.closing) {
		lent_pair_end(kept);
		pair = NULL;
	}
	if (pair == NULL) {
		pair = (struct pair *)object_new(pyndx.pair_type, &lent_kind);
		if (pair == NULL)
			return NULL;
		pair->base.lender = lender;
		object_open(&pair->base, handle);
		*kept = pair;
	}
	Py_INCREF(&pair->base.ob_base);
	return &pair->base.ob_base;
}

void lent_pair_recalled(struct pair **kept, const struct ndx_qp *now)
{
	if (*kept != NULL && (*kept)->base.handle != now)
		lent_pair_end(kept);
}

void lent_pair_end(struct pair **kept)
{
	struct pair *pair = *kept;

	*kept = NULL;
	if (pair == NULL)
		return;
	object_close(&pair->base);
	Py_DECREF(&pair->base.ob_base);
}

PyObject *lent_start(struct object *lender, struct object *connector, start_fn *fn)
{
	PyObject *done = NULL;
	enum ndx_status st;

	if (!object_enter(connector)) {
		object_leave(lender);
		return NULL;
	}
	if (!object_give(connector))
		goto leave;
	Py_BEGIN_ALLOW_THREADS;
	st = fn(lender->handle, connector->handle);
	Py_END_ALLOW_THREADS;
	done = pyndx_done(st);
	if (st == NDX_OK)
		object_take(connector);
	else
		object_keep(connector);
leave:
	object_leave(connector);
	object_leave(lender);
	return done;
}
