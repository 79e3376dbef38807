/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between a connector and its out-of-band carrier, and the end of this link. */
#include "connection.h"

bool conn_lacks_cm(const struct ndx_connector *c)
{
	return c->adapter->ops->qp_describe != NULL;
}

void conn_oob_end(struct ndx_connector *c)
{
	struct oob_link *link = c->oob.link;

	c->oob.on = false;
	c->oob.link = NULL;
	c->oob.stream = NULL;
	if (link != NULL)
		oob_link_detach(link);
}

/* Messages that arrive before the connection exists wait until then. */
unsigned conn_oob_take_events(struct ndx_connector *c)
{
	unsigned events = 0;

	if (c->phase == CONN_COMPLETING || c->phase == CONN_DESCRIBED)
		return 0;
	base_lock_acquire(&c->inbox_lock);
	if ((c->commands & CONN_DO_RENDEZVOUS) == 0) {
		events = c->oob_events;
		c->oob_events = 0;
	}
	base_lock_release(&c->inbox_lock);
	return events;
}
