/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors: the end of an attempt to connect. */
#include "connection.h"

void conn_give_up(struct ndx_connector *c, enum conn_phase next, const char *event,
                  const struct conn_result *result)
{
	struct ndx_overlapped **ov = &c->ov;

	conn_count_attempt(c, result->status);
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	c->adapter->ops->conn_abandon(c->native);
	/* Reports of the provider for this attempt must not be taken for reports of the next. */
	conn_inbox_clear(c);
	conn_release_qp(c);
	conn_rendezvous_end(c);
	conn_oob_end(c);
	c->commands = 0;
	conn_enter(c, next, event, result);
	/* A caller that completes with another status has taken the object out of c->ov. */
	conn_complete_ov(c, ov, NDX_E_CANCELED, 0, 0);
}

void conn_end_attempt(struct ndx_connector *c, enum conn_phase next,
                      const struct conn_result *result)
{
	struct ndx_overlapped *ov = c->ov;

	c->ov = NULL;
	conn_give_up(c, next, "FAILURE", result);
	conn_log_failure(c, c->passive ? "accepting failed" : "connecting failed", result);
	conn_complete_ov(c, &ov, result->status, 0, result->native);
}
