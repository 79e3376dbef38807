/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The out-of-band stream of a connection that has no connection manager. The adapter's control
 * thread reads and writes the stream. Either the consumer provides the stream
 * (ndx_connector_set_oob_stream()), or the stream is the transport of a session, which shares it:
 * control thread and session take turns, each reads and writes whole frames.
 */
#ifndef OOB_STREAM_H
#define OOB_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base_private.h"
#include "frame.h"
#include "oob_link.h"

struct oob_stream;

/* Uses the adapter's loop and holds the adapter. */
enum ndx_status oob_stream_create(struct ndx_adapter *adapter, int fd, bool by_hand,
                                  struct oob_stream **out, struct oob_link **link)
	NDX_PRIVATE(oob_stream_create);

/* No connection uses the stream: the descriptor stays the caller's. */
void oob_stream_drop(struct oob_stream *os) NDX_PRIVATE(oob_stream_drop);
/* by_hand, control thread: send `v`, the queue pairs to which this end is connected, then read. */
void oob_stream_validate(struct oob_stream *os, const struct frame_validate *v);

/* For the session: on its thread, no lock held. */

/* The control thread reads, until the next pause. */
void oob_stream_listen(struct oob_stream *os) NDX_PRIVATE(oob_stream_listen);
/* The session reads. Returns the bytes that the control thread has read and not handled: at most
 * OOB_STREAM_REST. */
#define OOB_STREAM_REST (FRAME_HEADER + FRAME_VALIDATE_SIZE)
size_t oob_stream_pause(struct oob_stream *os, uint8_t rest[OOB_STREAM_REST])
	NDX_PRIVATE(oob_stream_pause);
/* The session is about to write. Returns what it must send first: at most OOB_STREAM_OUT bytes. */
#define OOB_STREAM_OUT (FRAME_HEADER * 3 + FRAME_VALIDATE_SIZE)
size_t oob_stream_hold(struct oob_stream *os, uint8_t first[OOB_STREAM_OUT])
	NDX_PRIVATE(oob_stream_hold);
void oob_stream_release(struct oob_stream *os) NDX_PRIVATE(oob_stream_release);
/* The session has read a goodbye or an abort, or the end of the transport. */
void oob_stream_received(struct oob_stream *os, enum oob_event event)
	NDX_PRIVATE(oob_stream_received);
/* The session ends. True: the connection has not ended, and the stream owns the descriptor now.
 * `broken`: the connection ends with the session. */
bool oob_stream_leave(struct oob_stream *os, bool broken) NDX_PRIVATE(oob_stream_leave);

#endif
