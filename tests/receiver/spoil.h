/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a sender do wrong: replaces its queue pair's functions for sends, so that every n-th frame
 * leaves otherwise than the sender meant. */
#ifndef TESTS_RECEIVER_SPOIL_H
#define TESTS_RECEIVER_SPOIL_H

#include <ndx/ndx.h>

enum spoil_how {
	SPOIL_NOTHING,
	SPOIL_DROP,         /* the frame is not sent; its sequence number is missing */
	SPOIL_REPEAT,       /* the frame has the number of the one before */
	SPOIL_NO_IMMEDIATE, /* the frame comes without immediate data */
	SPOIL_EMPTY,        /* the frame has no data */
	SPOIL_OVERSIZE,     /* another frame is sent instead: `oversize` */
};

/* Zero it, then set how and every. It must live as long as the queue pair. */
struct spoiler {
	enum spoil_how how;
	uint32_t every;
	struct ndx_sge oversize;
	/* for spoil_qp() only */
	struct ndx_qp_ops ops;
	const struct ndx_qp_ops *real;
	uint64_t posted;
};

/* Before the first frame. */
void spoil_qp(struct spoiler *spoiler, struct ndx_qp *qp);

#endif
