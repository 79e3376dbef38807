/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference model: what may come of a request, of a disconnect and of an indication, given what
 * was done to the connection and when. README.md has the rules in words.
 */
#ifndef MODEL_H
#define MODEL_H

#include "round.h"

/* What is done to a connection: noted before the call that does it, and when it has returned. */
void model_graceful_begins(struct end *e);
void model_graceful_done(struct end *e);
void model_abortive_begins(struct end *e, enum finish how);
void model_abortive_done(struct end *e);
/* The process of this end is about to be killed or stopped; it has been. */
void model_peer_dies(struct end *e);
void model_peer_is_dead(struct end *e);
/* From now on new requests of this end can only be cancelled. */
void model_ended(struct end *e);

/* A request ended with a failure, as it may; fails the round if it may not. */
void model_failure(struct end *e, const struct request *q, const struct ndx_result *r);
/* May this one succeed though one before it did not? */
bool model_may_succeed_behind(const struct end *e, const struct request *q);
/* May requests that the drain cut off come back when the peer's disconnect has succeeded already?
 */
bool model_may_end_later(const struct end *e);
/* A disconnect that was not cancelled ended so. */
void model_disconnected(struct end *e, enum ndx_status status);
/* The indication came. */
void model_notified(struct end *e, uint32_t information);
/* Nothing has been done to the connection yet. */
bool model_untouched(const struct conn *c);
/* What the connector says of its end, at any time. */
void model_reason(struct end *e, enum ndx_disconnect_reason reason);
/* Both sides are through: what one says was sent, the other has. */
void model_balance(struct conn *c);

#endif
