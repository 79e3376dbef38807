/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects a connector, of a connection without a connection manager, with the carrier of its
 * out-of-band messages: a channel, or a session of the server. Either side may end first; the
 * object is freed after both have ended.
 *
 * Locks: adapter lock -> the wire's -> the carrier's.
 */
#ifndef OOB_WIRE_H
#define OOB_WIRE_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

struct wire;

/* The messages that arrive: those of the SPI, and the result of the comparison; bits. */
enum wire_news {
	WIRE_GOODBYE = 1 << NDX_OOB_GOODBYE,
	WIRE_ABORT = 1 << NDX_OOB_ABORT,
	WIRE_LOST = 1 << NDX_OOB_LOST,
	WIRE_RIGHT = 1 << 3, /* the peer is connected to this end as described; only by_hand */
	WIRE_WRONG =
		1 << 4, /* the peer is connected to another queue pair, or with other settings */
};

/* The wire's lock is held: the functions record and wake, but never call back. */
struct wire_carrier {
	void (*say)(void *arg, enum ndx_spi_oob_message message);
	void (*over)(void *arg); /* the connection has ended, or will not be made */
};

/* For the carrier; NULL: out of memory. */
struct wire *wire_create(const struct wire_carrier *carrier, void *arg);
void wire_heard(struct wire *w, enum wire_news news);
/* A goodbye was sent. */
void wire_said(struct wire *w);
/* The carrier ends: the link passes no messages on and does not call the carrier any more. */
void wire_leave(struct wire *w);

/* For the connector; adapter lock held. False: the carrier has ended already. */
bool wire_tie(struct wire *w, struct ndx_connector *c);
void wire_say(struct wire *w, enum ndx_spi_oob_message message);
void wire_part(struct wire *w);

#endif
