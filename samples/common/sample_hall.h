/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The visits (sessions) of a negotiation server's clients: its callbacks look them up, and the
 * program waits for their end.
 */
#ifndef SAMPLE_HALL_H
#define SAMPLE_HALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "sample_address.h"

/** First member of a program's struct for one session. */
struct sample_visit {
	struct sample_visit *next;
	uint64_t session;
};

struct sample_hall {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sample_visit *visits;
	uint32_t ended, bad;
};

#define SAMPLE_HALL_INITIALIZER                                                        \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/**
 * Any thread may call these functions: sample_hall_enter() in `open`; sample_hall_find() in
 * `staged` and `closed` (NULL: no such visit); sample_hall_leave() as the last call in `closed`,
 * after which the caller may free the visit.
 */
void sample_hall_enter(struct sample_hall *hall, struct sample_visit *visit,
                       const struct ndx_session *session);
struct sample_visit *sample_hall_find(struct sample_hall *hall, const struct ndx_session *session);
void sample_hall_leave(struct sample_hall *hall, struct sample_visit *visit, bool well);

/** Wait until `count` visits have ended (0: no limit), or `stop` is set. */
void sample_hall_wait(struct sample_hall *hall, uint32_t count, const atomic_bool *stop);

/**
 * Write the address on which the server listens to *out, and the port into the file, if one is
 * given. Returns an exit status.
 */
int sample_hall_address(struct ndx_negotiation_server *server, const char *port_file,
                        struct sample_address *out);

#endif
