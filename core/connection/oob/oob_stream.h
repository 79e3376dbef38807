/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The out-of-band stream of a connection that has no connection manager and no session: the
 * consumer provides it (ndx_connector_set_oob_stream()), and the adapter's control thread reads and
 * writes it.
 */
#ifndef OOB_STREAM_H
#define OOB_STREAM_H

#include "frame.h"
#include "oob_link.h"

struct oob_stream;
struct ndx_adapter;

/* Uses the adapter's loop and holds the adapter. */
enum ndx_status oob_stream_create(struct ndx_adapter *adapter, int fd, struct oob_stream **out,
                                  struct oob_link **link);

/* No connection uses the stream: the descriptor stays the caller's. */
void oob_stream_drop(struct oob_stream *os);
/* Control thread: send `v`, the queue pairs to which this end is connected, then read. */
void oob_stream_validate(struct oob_stream *os, const struct frame_validate *v);

#endif
