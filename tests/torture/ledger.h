/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of requests and results: each accepted request ends exactly once, in its turn. */
#ifndef LEDGER_H
#define LEDGER_H

#include "round.h"

enum context_kind { CONTEXT_INITIATOR = 1, CONTEXT_RECEIVE = 2, CONTEXT_SRQ = 3 };

/* A request's context; `id` of the end, or of the side for a shared receive queue. */
void *context_of(const struct round *round, enum context_kind kind, uint32_t id, uint32_t index);

const char *request_name(enum ndx_request_type type);

/* Take and judge up to `limit` results of a queue; how many there were. */
size_t ledger_poll(struct side *s, uint32_t which, size_t limit);
/* Everything that is there now for this end. */
void ledger_drain(struct end *e);
/* Wait a moment for a result of this queue, judge what comes. */
void ledger_wait(struct side *s, uint32_t which);

/*
 * The library says that all requests of this end have ended: what is there is taken, nothing may be
 * missing, and nothing may come later.
 */
void ledger_close(struct end *e, const char *when);

/* All requests have ended, as far as can be known. */
bool ledger_is_even(struct end *e);

/* The peer has said goodbye to us: each of its own requests posted before `at` has its result. */
void ledger_peer_has_ended(struct end *peer, uint64_t at);

#endif
