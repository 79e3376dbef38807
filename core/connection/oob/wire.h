/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands between a connection without a connection manager and who carries its words to the
 * peer: a channel, or a session of the server's. Either may end before the other; the wire lasts
 * until both have.
 *
 * Locks: adapter lock -> the wire's -> the carrier's.
 */
#ifndef OOB_WIRE_H
#define OOB_WIRE_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

struct wire;

/* What the core hears, beside the words of the SPI; bits. */
enum wire_news {
	WIRE_GOODBYE = 1 << NDX_WORD_GOODBYE,
	WIRE_ABORT = 1 << NDX_WORD_ABORT,
	WIRE_LOST = 1 << NDX_WORD_LOST,
	WIRE_RIGHT = 1 << 3, /* the peer is connected to us, as we to it; channels made by hand */
	WIRE_WRONG = 1 << 4, /* it is connected to somebody else, or otherwise */
};

/* The wire's lock is held: record and wake, never call back. */
struct wire_carrier {
	void (*say)(void *arg, enum ndx_spi_word word);
	void (*over)(void *arg); /* the connection is over, or will never be */
};

/* The carrier's; NULL: out of memory. */
struct wire *wire_create(const struct wire_carrier *carrier, void *arg);
void wire_heard(struct wire *w, enum wire_news news);
/* A goodbye has gone out. */
void wire_said(struct wire *w);
/* The carrier goes: nothing is heard any more, and it is not called any more. */
void wire_leave(struct wire *w);

/* The connector's; lock held. False: the carrier has gone already. */
bool wire_tie(struct wire *w, struct ndx_connector *c);
void wire_say(struct wire *w, enum ndx_spi_word word);
void wire_part(struct wire *w);

#endif
