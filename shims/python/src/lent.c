/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that a receiver or a sender owns, as objects for connectors and sessions. */
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

PyObject *lent_pair(struct pair **kept, struct ndx_qp *handle)
{
	struct pair *pair = *kept;

	if (pair == NULL) {
		pair = (struct pair *)object_new(pyndx.pair_type, &lent_kind);
		if (pair == NULL)
			return NULL;
		object_open(&pair->base, handle);
		*kept = pair;
	}
	Py_INCREF(&pair->base.ob_base);
	return &pair->base.ob_base;
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
