/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting requests of all kinds, each noted in its ledger with what has to come of it. */
#ifndef POST_H
#define POST_H

#include "round.h"

/* Each posts something if it can; false if nothing was posted. `random`: the caller's. */
bool post_receive(struct end *e, uint64_t *random);
bool post_shared_receive(struct side *s, uint64_t *random);
bool post_message(struct end *e);
bool post_access(struct end *e);
bool post_window(struct end *e);

/* A request that fails at once and must leave no trace. */
void post_nonsense(struct end *e);
/* Requests of no bytes on a connection that has ended. */
void post_into_the_void(struct end *e);
/* On a queue pair that was never connected. */
void post_unconnected(struct end *e);

/* The faults. */
void post_wrong_local(struct end *e);
void post_wrong_remote(struct end *e, bool token);
void post_short_receive(struct end *e);
void post_wrong_invalidate(struct end *e);

#endif
