/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer in another process: this program once more, started with --peer. It connects to a listener
 * of the case and then lives by one of these roles until it is killed, or told to part.
 */
#ifndef PEER_H
#define PEER_H

#include "child.h"
#include "fixture.h"

enum peer_role {
	PEER_IDLE,    /* posts receives and waits */
	PEER_STREAM,  /* sends numbered messages without end */
	PEER_ECHO,    /* sends back what it receives */
	PEER_BLOCKED, /* posts receives and calls nothing any more until it is told to part */
	PEER_LEAVER,  /* posts receives and, when told to part, ends with everything open */
};

enum {
	PEER_DEPTH = 16,    /* receives that it keeps posted */
	PEER_MESSAGE = 256, /* bytes of each */
};

struct peer {
	struct check *c;
	/* Input: a byte asks it to disconnect and end, the end of the input to end at once. Output:
	 * one byte when it is connected, one when it has disconnected. */
	struct child child;
};

/*
 * Start a peer that connects to `p`'s listener, and connect side B with it. Skips the case if other
 * processes cannot reach the adapter.
 */
bool peer_start(struct peer *peer, struct pair *p, enum peer_role role, uint32_t keepalive_ms);
/* The same without side B, and without a wait: it will ask `p`'s listener by and by. */
bool peer_launch(struct peer *peer, struct pair *p, enum peer_role role, uint32_t keepalive_ms);
void peer_signal(struct peer *peer, int signal_number);
/* Ask it to disconnect; see that it did. */
bool peer_disconnect(struct peer *peer);
/* Ask it, and see nothing. */
void peer_ask_to_disconnect(struct peer *peer);
/* Ask it to leave; see that it ended well. */
bool peer_leaves(struct peer *peer);
/* Kill it if it still runs, and bury it. */
void peer_end(struct peer *peer);

bool peer_wanted(int argc, char **argv);
int peer_main(int argc, char **argv);

#endif
