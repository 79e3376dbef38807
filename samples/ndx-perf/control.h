/* SPDX-License-Identifier: BSD-2-Clause */
/* The control connection: frames of wire.h over a queue pair of its own. */
#ifndef PERF_CONTROL_H
#define PERF_CONTROL_H

#include <ndx/ndx.h>

#include "wire.h"

/** Zero it before control_make(). */
struct control {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	uint8_t *memory;
	unsigned turn; /* of the slots for sends */
};

enum control_got {
	CONTROL_NOTHING,   /**< no frame in time */
	CONTROL_FRAME,     /**< a frame */
	CONTROL_ENDED,     /**< the connection has ended */
	CONTROL_MALFORMED, /**< a message that is no frame */
};

/** Create queues and post receives. On failure control_drop() releases what there is. */
enum ndx_status control_make(struct control *control, struct ndx_adapter *adapter,
                             uint32_t keepalive_ms);

/** Disconnect for at most `timeout_ms`, and release everything. */
void control_drop(struct control *control, uint32_t timeout_ms);

enum ndx_status control_send(struct control *control, const struct wire_frame *frame);

/** The next frame, waiting up to `timeout_ms` for it; 0: do not wait. */
enum control_got control_take(struct control *control, uint32_t timeout_ms,
                              struct wire_frame *frame);

/** Why the connection has ended, as text; never empty. */
const char *control_why(struct control *control, char *text, size_t room);

#endif
