/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins two ends: a connection without a connection manager, and the carrier of its out-of-band
 * messages, for example a stream or a session. An end hears from the other end by callbacks, and
 * knows nothing else of it. Either end may leave first; the link is freed after both have left.
 *
 * Locks: adapter lock -> the link's -> the carrier's. The callbacks run with the link's lock held:
 * they record and wake, but never call back.
 */
#ifndef OOB_LINK_H
#define OOB_LINK_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "base_private.h"

struct oob_link;

/* What one end tells the other; bits. */
enum oob_event {
	OOB_GOODBYE = 1 << NDX_OOB_GOODBYE, /* disconnected gracefully; to the carrier: send that */
	OOB_ABORT = 1 << NDX_OOB_ABORT,     /* aborted; to the carrier: send that */
	OOB_LOST = 1 << NDX_OOB_LOST,       /* see `lost` */
	/* By the carrier: */
	OOB_PEER_MATCHES = 1 << 3, /* the peer is connected as described; only by_hand */
	OOB_PEER_DIFFERS = 1 << 4, /* ... to another queue pair, or with other settings */
	OOB_SENT = 1 << 5,         /* the goodbye was sent */
};

enum oob_side { OOB_CONNECTION, OOB_CARRIER };

struct oob_end_ops {
	void (*event)(void *arg, enum oob_event event); /* all but OOB_LOST */
	/* The other end has left: the connection has ended or will not be made, or the carrier has
	 * ended. A carrier that has lost its peer tells so before it leaves. */
	void (*lost)(void *arg);
};

/* By the carrier; NULL: out of memory. */
struct oob_link *oob_link_create(const struct oob_end_ops *carrier, void *arg)
	NDX_PRIVATE(oob_link_create);
/* By the connection; adapter lock held. False: the carrier has left already. */
bool oob_link_attach(struct oob_link *link, const struct oob_end_ops *connection, void *arg);

/* Tell the other end. Nothing happens if that end has left, or was not attached yet. */
void oob_link_tell(struct oob_link *link, enum oob_side from, enum oob_event event)
	NDX_PRIVATE(oob_link_tell);
/* The other end is told OOB_LOST; `from` is not called any more. */
void oob_link_leave(struct oob_link *link, enum oob_side from) NDX_PRIVATE(oob_link_leave);

#endif
