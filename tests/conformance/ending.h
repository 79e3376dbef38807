/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that can be in flight, with every call that ends it: for what holds for all of them.
 */
#ifndef ENDING_H
#define ENDING_H

#include "fixture.h"

/* What there is in flight on. */
struct object {
	struct check *c;
	struct pair *p;
	struct ndx_srq *srq;
	struct ndx_mr *mr;
};

struct ending {
	const char *what; /* the call that ends it */
	enum ndx_status (*begin)(struct object *o, struct ndx_overlapped *ov);
	void (*end)(struct object *o);
	enum ndx_status want;
	bool connected; /* needs a connection */
	bool shared;    /* needs a shared receive queue */
	bool passive;   /* it is on B's adapter */
};

extern const struct ending endings[];
extern const size_t ending_count;

/* False, and nothing to close: the check is over, or the adapter has no such queue. */
bool object_open(struct object *o, struct check *c, const struct ending *e);
/* After pair_close_all(). */
void object_close(struct object *o);

#endif
