/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of a session's frames in case its transport breaks. */
#ifndef NEGOTIATION_REPLAY_H
#define NEGOTIATION_REPLAY_H

#include "frame_io.h"

/* The stages proceed in lockstep: no more than five frames are on their way in a direction. */
#define REPLAY_KEPT 16u

struct replay_frame {
	uint8_t *bytes; /* NULL: none */
	size_t length;
};

struct replay {
	bool on;           /* both ends can do this, see FRAME_REPLAYS */
	bool paused;       /* there is no transport, or one that has not said hello */
	bool said_ready;   /* the own end has said that stage ready has ended */
	bool settled;      /* ... and so has the peer */
	uint32_t sent;     /* frames, numbered from 1 */
	uint32_t again;    /* the latest frame that was sent over this transport */
	uint32_t received; /* and consumed */
	struct replay_frame kept[REPLAY_KEPT];
	struct frame_reader in; /* while paused: whole frames that wait for the dialogue */
	struct frame_reader behind;
	uint8_t ready[FRAME_HEADER];
};

/* A session begins: no frame has been sent or received. */
void replay_begin(struct replay *r, bool on);
/* Give the memory back. */
void replay_clear(struct replay *r);
/* A frame was given to the transport whole. */
void replay_sent(struct replay *r, const uint8_t *bytes, size_t length);
/* The frame in the reader is about to be consumed. */
void replay_received(struct replay *r, const struct frame_reader *reader);
/* How many frames have been received; for the peer. */
uint32_t replay_count(const struct replay *r);
/* The frame to send again; then count it in `again`. NULL: none. */
const struct replay_frame *replay_next(struct replay *r);

struct driver;
/* The transport is about to be replaced: keep what has arrived. */
void replay_hold(struct driver *d);
/* Another transport is there: send what the peer lacks before all else. False: that is not kept. */
bool replay_resume(struct driver *d, uint32_t peer_received);

#endif
