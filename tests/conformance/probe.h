/* SPDX-License-Identifier: BSD-2-Clause */
/* An overlapped object with one of the ways to learn of its completion, and what it saw. */
#ifndef PROBE_H
#define PROBE_H

#include "check.h"

enum way { WAY_WAIT, WAY_CALLBACK, WAY_PORT, WAY_SINK };
#define EACH_WAY 4

struct probe {
	struct ndx_overlapped ov;
	struct check *c;
	enum way way;
	bool own_port;
	struct ndx_port *port; /* its own, unless probe_begin_on() gave it one */
	pthread_mutex_t lock;  /* of the rest */
	pthread_cond_t changed;
	unsigned calls;   /* of the callback or the sink */
	unsigned awaited; /* how many of them were waited for */
	enum ndx_status seen;
	pthread_t thread; /* that called back */
	/* the callback or the sink does this, too; may be NULL */
	void (*then)(struct probe *probe);
	void *arg;
};

/* Ready for its first operation. False, and nothing to end, when the check is over. */
bool probe_begin(struct probe *probe, struct check *c, enum way way);
/* Completes into a port that others use, too; the case takes it out itself. */
bool probe_begin_on(struct probe *probe, struct check *c, struct ndx_port *port);
/* Completes by callback, which also does `then`. */
bool probe_begin_then(struct probe *probe, struct check *c, void (*then)(struct probe *probe),
                      void *arg);
/* Nothing may be in flight any more: close what the operation was started on first. */
void probe_end(struct probe *probe);

/* It ends within WAIT_MS, with this status, and its way says so once. */
bool probe_ends(struct probe *probe, enum ndx_status want, const char *what);
/* The call was accepted and the operation ends so. */
bool probe_async(struct probe *probe, enum ndx_status got, enum ndx_status want, const char *what);
/* It has ended: no waiting is needed any more to learn of it. */
bool probe_has_ended(struct probe *probe, enum ndx_status want, const char *what);
/* The same when it may end one way or another; NDX_PENDING if it has not. */
enum ndx_status probe_result(struct probe *probe);
/* It does not end for QUIET_MS. */
bool probe_pending(struct probe *probe, const char *what);
/* Its way has nothing more to say. */
bool probe_silent(struct probe *probe, const char *what);

/* How often the callback was called. */
unsigned probe_calls(struct probe *probe);
/* Wait until it was called so often. */
bool probe_called(struct probe *probe, unsigned calls, const char *what);

#endif
