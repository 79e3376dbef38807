/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects a connector, of a connection without a connection manager, with the carrier of its
 * out-of-band messages: a stream, or a session of the server. Either side may end first; the
 * object is freed after both have ended.
 *
 * Locks: adapter lock -> the link's -> the carrier's.
 */
#ifndef OOB_LINK_H
#define OOB_LINK_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "base_private.h"

struct oob_link;

/* The messages that arrive: those of the SPI, and the result of the comparison; bits. */
enum oob_event {
	OOB_GOODBYE = 1 << NDX_OOB_GOODBYE,
	OOB_ABORT = 1 << NDX_OOB_ABORT,
	OOB_LOST = 1 << NDX_OOB_LOST,
	OOB_PEER_MATCHES = 1 << 3, /* the peer is connected as described; only by_hand */
	OOB_PEER_DIFFERS = 1 << 4, /* ... to another queue pair, or with other settings */
};

/* The link's lock is held: the functions record and wake, but never call back. */
struct oob_carrier {
	void (*send)(void *arg, enum ndx_spi_oob_message message);
	void (*end)(void *arg); /* the connection has ended, or will not be made */
};

/* For the carrier; NULL: out of memory. */
struct oob_link *oob_link_create(const struct oob_carrier *carrier, void *arg)
	NDX_PRIVATE(oob_link_create);
void oob_link_received(struct oob_link *link, enum oob_event event) NDX_PRIVATE(oob_link_received);
/* A goodbye was sent. */
void oob_link_sent(struct oob_link *link) NDX_PRIVATE(oob_link_sent);
/* The carrier ends: the link passes no messages on and does not call the carrier any more. */
void oob_link_leave(struct oob_link *link) NDX_PRIVATE(oob_link_leave);

/* For the connector; adapter lock held. False: the carrier has ended already. */
bool oob_link_attach(struct oob_link *link, struct ndx_connector *c);
void oob_link_send(struct oob_link *link, enum ndx_spi_oob_message message);
void oob_link_detach(struct oob_link *link);

#endif
