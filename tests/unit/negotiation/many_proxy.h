/* SPDX-License-Identifier: BSD-2-Clause */
/* Between a client and its server: passes frames on, until one does not get through. */
#ifndef TEST_MANY_PROXY_H
#define TEST_MANY_PROXY_H

#include "many_rig.h"

#include <pthread.h>

enum proxy_direction { PROXY_TO_SERVER, PROXY_TO_CLIENT };
enum { PROXY_FRAMES = 128 };

/* What has passed in one direction since it was armed. */
struct proxy_stream {
	uint8_t header[FRAME_HEADER]; /* of the current frame */
	uint32_t have;                /* bytes of the current frame */
	uint32_t frames;
	uint16_t seen[PROXY_FRAMES]; /* type * 256 + stage */
};

struct proxy {
	pthread_t thread;
	int listener;
	int to[2]; /* a pipe that wakes the thread up */
	char server[32];
	bool armed; /* atomic */
	enum proxy_direction direction;
	uint32_t nth;  /* the frame in that direction that does not get through, from 0 */
	uint32_t part; /* ... but for so many of its bytes, at most 20 */
	bool reset;    /* as a host that has crashed */
	bool cut;      /* atomic: it was so */
	struct proxy_stream streams[2];
};

/* In front of the rig's server: its next session goes through the proxy. */
void proxy_start(struct proxy *x, struct rig *r);
/* Both ends are idle: count from now on, and cut; or do not any more. */
void proxy_arm(struct proxy *x, bool on);
/* The thread has ended: what it has seen may be read. */
void proxy_stop(struct proxy *x);

#endif
