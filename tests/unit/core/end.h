/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end of a connection without a connection manager, on fake_direct. Its peer is the test, which
 * sends and receives the frames of its out-of-band stream.
 */
#ifndef TESTS_CORE_END_H
#define TESTS_CORE_END_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#include "frame.h"

#define END_PATIENCE_MS 10000u

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
	struct ndx_overlapped notify;
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	int fd;   /* of the connector */
	int wire; /* of the peer; nothing is waited for without an end */
};

/* Described, with an out-of-band stream that it has not been given yet. */
void end_open(struct end *e, uint32_t connect_timeout_ms);
void end_close(struct end *e);
/* It begins to connect by its out-of-band stream. */
void end_begin(struct end *e);
/* ... and is connected; a notify_disconnect is pending. */
void end_up(struct end *e);

void end_completes(struct ndx_overlapped *ov, enum ndx_status status);
void end_indicated(struct end *e, enum ndx_disconnect_reason reason);
void end_disconnects(struct end *e, enum ndx_status status);

/* What the peer sends. */
void end_send_bytes(const struct end *e, const void *bytes, size_t length);
void end_send_frame(const struct end *e, enum frame_type type, uint8_t flags, uint32_t length);
void end_send_validate(const struct end *e, const struct frame_validate *v);
/* What the peer holds if it has understood everything. */
struct frame_validate end_peers_view(const struct end *e);

/* The next frame that the peer receives, and that there is none. */
void end_expect_frame(const struct end *e, enum frame_type type, uint8_t flags, uint8_t *payload);
void end_expect_no_frame(const struct end *e);

#endif
