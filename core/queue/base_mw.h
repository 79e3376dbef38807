/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a memory window. Requests bind and invalidate it in the order of the queue
 * pair's requests, so whether a further bind is possible depends on those that are posted. A lock
 * of the provider guards the members.
 */
#ifndef BASE_MW_H
#define BASE_MW_H

#include <stdbool.h>
#include <stdint.h>

#include "base_post.h"

struct base_mw {
	uint32_t pending; /* binds and invalidates that were posted and have not ended */
	bool bound;
	bool planned; /* is bound when those have ended: no further bind can be posted */
};

/* A bind or invalidate was posted. */
static inline void base_mw_posted(struct base_mw *mw, uint8_t type)
{
	mw->pending++;
	mw->planned = type == NDX_REQUEST_BIND;
}

/* A bind or invalidate has ended, in whatever way; `bound` is up to date. True: it was the last. */
static inline bool base_mw_ended(struct base_mw *mw)
{
	if (--mw->pending > 0)
		return false;
	mw->planned = mw->bound;
	return true;
}

/* The binding has ended. */
static inline void base_mw_unbound(struct base_mw *mw)
{
	mw->bound = false;
	if (mw->pending == 0)
		mw->planned = false;
}

/* base_admit_initiator() for a bind or invalidate. */
static inline enum ndx_status base_mw_admit(struct base_qp *qp, uint8_t type, void *context,
                                            uint32_t flags, struct base_req **out)
{
	uint32_t length;

	return base_admit_initiator(qp, type, context, NULL, 0, flags,
	                            type == NDX_REQUEST_BIND ? BASE_BIND_FLAGS
	                                                     : BASE_INVALIDATE_FLAGS,
	                            0, &length, out);
}

#endif
