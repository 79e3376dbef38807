/* SPDX-License-Identifier: BSD-2-Clause */
/* The visits of a negotiation server's clients: its callbacks find theirs, and it waits for them.
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

/** The first member of what a program keeps of a session. */
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

/** Any thread, as all of them: in `open`; in `staged` and `closed` (NULL: there is none); the last
 * thing in `closed`, behind which the visit is the caller's to free. */
void sample_hall_enter(struct sample_hall *hall, struct sample_visit *visit,
                       const struct ndx_session *session);
struct sample_visit *sample_hall_find(struct sample_hall *hall, const struct ndx_session *session);
void sample_hall_leave(struct sample_hall *hall, struct sample_visit *visit, bool well);

/** Until `count` visits have ended (0: never), or `stop`. */
void sample_hall_wait(struct sample_hall *hall, uint32_t count, const atomic_bool *stop);

/** Where the server listens: into the file, if one is named, and to *out. An exit status. */
int sample_hall_address(struct ndx_negotiation_server *server, const char *port_file,
                        struct sample_address *out);

#endif
