/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The out-of-band stream of a connection that has no connection manager. The adapter's control
 * thread reads and writes the stream. Either the consumer provides the stream
 * (ndx_connector_set_oob_stream()), or the stream is the transport of a session, which shares it:
 * control thread and session take turns, each reads and writes whole frames.
 */
#ifndef OOB_CHANNEL_H
#define OOB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "wire.h"

struct channel;

/* Uses the adapter's loop and holds the adapter. */
enum ndx_status channel_create(struct ndx_adapter *adapter, int fd, bool by_hand,
                               struct channel **out, struct wire **wire);

/* No connection uses the channel: the descriptor stays the caller's. */
void channel_drop(struct channel *ch);
/* by_hand, control thread: send `v`, the queue pairs to which this end is connected, then read. */
void channel_validate(struct channel *ch, const struct frame_validate *v);

/* For the session: on its thread, no lock held. */

/* The control thread reads, until the next pause. */
void channel_listen(struct channel *ch);
/* The session reads. Returns the bytes that the control thread has read and not handled: at most
 * CHANNEL_REST. */
#define CHANNEL_REST (FRAME_HEADER + FRAME_VALIDATE_SIZE)
size_t channel_pause(struct channel *ch, uint8_t rest[CHANNEL_REST]);
/* The session is about to write. Returns what it must send first: at most CHANNEL_OUT bytes. */
#define CHANNEL_OUT (FRAME_HEADER * 3 + FRAME_VALIDATE_SIZE)
size_t channel_hold(struct channel *ch, uint8_t first[CHANNEL_OUT]);
void channel_release(struct channel *ch);
/* The session has read a goodbye or an abort, or the end of the transport. */
void channel_heard(struct channel *ch, enum wire_news news);
/* The session ends. True: the connection has not ended, and the channel owns the descriptor now.
 * `broken`: the connection ends with the session. */
bool channel_leave(struct channel *ch, bool broken);

#endif
