/* SPDX-License-Identifier: BSD-2-Clause */
/* What an end does to its connection, besides posting. Each call is followed by what has to hold
 * then. */
#ifndef END_H
#define END_H

#include "round.h"

bool end_is_over(const struct end *e);

/* Take note of operations that have completed. */
void end_look(struct end *e);

void end_ask(struct end *e);        /* notify_disconnect */
void end_disconnect(struct end *e); /* call it; again after it was cancelled */
void end_cancel(struct end *e);
void end_flush(struct end *e);
void end_close_qp(struct end *e);
void end_close_connector(struct end *e);
void end_close_region(struct end *e, enum area area);
void end_close_window(struct end *e);
/* The plan's way of ending begins. */
void end_finish(struct end *e, uint32_t turn);
/* Queries that have a right answer at any time. */
void end_query(struct end *e);
/* Posts, if that is still possible, when all is over. */
void end_post_mortem(struct end *e);

#endif
