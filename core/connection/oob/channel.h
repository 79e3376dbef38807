/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel of a connection that has no connection manager: a stream to the peer, read and
 * written by the adapter's control thread. It is made by hand (ndx_connector_set_channel()), or it
 * is the transport of a session, which shares it: whoever has it reads and writes whole frames.
 */
#ifndef OOB_CHANNEL_H
#define OOB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "wire.h"

struct channel;

/* Of `adapter`, whose loop it uses and which it keeps. */
enum ndx_status channel_create(struct ndx_adapter *adapter, int fd, bool by_hand,
                               struct channel **out, struct wire **wire);

/* No connection has it: the descriptor stays the caller's. */
void channel_drop(struct channel *ch);
/* By hand; control thread: what we are connected to; then it listens. */
void channel_validate(struct channel *ch, const struct frame_validate *v);

/* ---- a session's; its thread, no lock held ---- */

/* The control thread reads, until the next pause. */
void channel_listen(struct channel *ch);
/* The session reads. What the control thread has read and not taken: at most CHANNEL_REST bytes. */
#define CHANNEL_REST (FRAME_HEADER + FRAME_VALIDATE_SIZE)
size_t channel_pause(struct channel *ch, uint8_t rest[CHANNEL_REST]);
/* The session is about to write: what has to go out before, at most CHANNEL_OUT bytes. */
#define CHANNEL_OUT (FRAME_HEADER * 3 + FRAME_VALIDATE_SIZE)
size_t channel_hold(struct channel *ch, uint8_t first[CHANNEL_OUT]);
void channel_release(struct channel *ch);
/* The session has read a word, or the end of the transport. */
void channel_heard(struct channel *ch, enum wire_news news);
/* The session ends. True: the connection has not, and the descriptor is the channel's now.
 * `broken`: the connection ends with the session. */
bool channel_leave(struct channel *ch, bool broken);

#endif
