/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a memory window. Requests bind and invalidate it in the order of the queue
 * pair's requests, so whether a further bind is possible depends on those that are posted. A lock
 * of the provider guards the members.
 */
#ifndef NDX_SPI_MW_H
#define NDX_SPI_MW_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/post.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndxp_mw {
	uint32_t pending; /* binds and invalidates that were posted and have not ended */
	bool bound;
	bool planned; /* is bound when those have ended: no further bind can be posted */
};

/* A bind or invalidate was posted. */
static inline void ndxp_mw_posted(struct ndxp_mw *mw, uint8_t type)
{
	mw->pending++;
	mw->planned = type == NDX_REQUEST_BIND;
}

/* A bind or invalidate has ended, in whatever way; `bound` is up to date. True: it was the last. */
static inline bool ndxp_mw_ended(struct ndxp_mw *mw)
{
	if (--mw->pending > 0)
		return false;
	mw->planned = mw->bound;
	return true;
}

/* The binding has ended. */
static inline void ndxp_mw_unbound(struct ndxp_mw *mw)
{
	mw->bound = false;
	if (mw->pending == 0)
		mw->planned = false;
}

/* ndxp_admit_initiator() for a bind or invalidate. */
static inline enum ndx_status ndxp_mw_admit(struct ndxp_qp *qp, uint8_t type, void *context,
                                            uint32_t flags, struct ndxp_req **out)
{
	uint32_t length;

	return ndxp_admit_initiator(qp, type, context, NULL, 0, flags,
	                            type == NDX_REQUEST_BIND ? NDXP_BIND_FLAGS
	                                                     : NDXP_INVALIDATE_FLAGS,
	                            0, &length, out);
}

NDXP_DECLS_END

#endif
