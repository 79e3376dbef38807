/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of a negotiation server: its callbacks look them up, and the program waits for
 * their end.
 */
#ifndef SAMPLE_SESSIONS_H
#define SAMPLE_SESSIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "sample_address.h"

/** First member of a program's struct for one session. */
struct sample_session {
	struct sample_session *next;
	uint64_t id;
};

struct sample_sessions {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sample_session *first;
	uint32_t ended, bad;
};

#define SAMPLE_SESSIONS_INITIALIZER                                                    \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/**
 * Any thread may call these functions: sample_sessions_add() in `open`; sample_sessions_find() in
 * `staged` and `closed` (NULL: no such entry); sample_sessions_remove() as the last call in
 * `closed`, after which the caller may free the entry.
 */
void sample_sessions_add(struct sample_sessions *sessions, struct sample_session *entry,
                         const struct ndx_session *session);
struct sample_session *sample_sessions_find(struct sample_sessions *sessions,
                                            const struct ndx_session *session);
void sample_sessions_remove(struct sample_sessions *sessions, struct sample_session *entry,
                            bool well);

/** Wait until `count` sessions have ended (0: no limit), or `stop` is set. */
void sample_sessions_wait(struct sample_sessions *sessions, uint32_t count,
                          const atomic_bool *stop);

/**
 * Where a server listens that was told nothing: at a port of its adapter's first address, because
 * its clients come from there; at one of all addresses if the adapter has none. Returns `text`.
 */
const char *sample_sessions_default(struct ndx_adapter *adapter, char text[SAMPLE_ADDRESS_TEXT]);

/**
 * Write the address on which the server listens to *out, and the port into the file, if one is
 * given. Returns an exit status.
 */
int sample_sessions_address(struct ndx_negotiation_server *server, const char *port_file,
                            struct sample_address *out);

#endif
