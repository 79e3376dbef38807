/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that a test scripts, and what a session needs to talk to it. */
#ifndef TEST_SCRIPTED_H
#define TEST_SCRIPTED_H

#include "awaits.h"
#include "says.h"

#include <pthread.h>

#include <ndx/ndx.h>

#include "session.h"

enum { MESSAGE = 1024, WAIT_MS = 10000 };

enum conduct {
	GOOD,
	SILENT,        /* takes the connection and says nothing */
	MAD,           /* sends rubbish */
	REFUSING,      /* knows no such variant */
	DROPPING_EACH, /* the same, each time */
	DROPPING,      /* closes in mid-stage, the first time */
	DROPPING_LATE, /* closes in stage validate, each time */
	SLOW_TO_SPEAK, /* silent from stage info on */
	BABBLING,      /* sends rubbish from stage info on */
	FLOODING,      /* reports without end that it lives */
};

struct server {
	pthread_t thread;
	int fd;
	char address[32];
	enum conduct conduct;
	struct ndx_variant *variant;
	int served; /* atomic */
	bool resumed;
	enum ndx_status
		told; /* to one that stops speaking: why the session ends; NDX_OK: nothing */
	int stop;
};

/* Atomic: 1: the client's next function of the plugin is to be stuck; 2: it is, until 0. */
extern int stuck;
extern unsigned resets; /* of the plugin; atomic */
/* An end that the client is to connect to: what the plugins of both sides then say of each other.
 */
extern struct ndx_peer_description rendezvous;

/* The plugin's own transport, of variant "bus": its address is "bus PORT". */
extern struct bus {
	int opened;              /* streams now */
	unsigned sends;          /* so far */
	enum ndx_status send;    /* what the next one returns, ... */
	enum ndx_status receive; /* ... once */
	bool lies;               /* receive tells more than there was room for */
	/* Atomic: the operation that waits until that is 0: 1 is connect, 2 n send number n, and 2
	 * n + 1 the first receive after that send. */
	int hold;
	int held; /* atomic: it does, or has done so */
} bus;

void server_start(struct server *s, enum conduct conduct, struct ndx_variant *variant);
void server_stop(struct server *s);

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
};

/* Setup and teardown; *state is a struct rig. */
int rig_begin(void **state);
int rig_begin_with_reset(void **state);
/* The plugin has `end`. */
int rig_begin_with_end(void **state);
int rig_end(void **state);

/* With short pauses between attempts. */
struct ndx_session *rig_session(struct rig *r, const char *const *servers, size_t count,
                                uint32_t connect_ms, uint32_t stage_ms);

#endif
