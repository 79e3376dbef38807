/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between a connector and its out-of-band carrier, and the end of this link. */
#include "connection.h"

bool conn_is_direct(const struct ndx_connector *c)
{
	return c->adapter->ops->qp_describe != NULL;
}

void conn_direct_end(struct ndx_connector *c)
{
	struct wire *wire = c->direct.wire;

	c->direct.on = false;
	c->direct.wire = NULL;
	c->direct.channel = NULL;
	if (wire != NULL)
		wire_part(wire);
}

/* Messages that arrive before the connection exists wait until then. */
unsigned conn_direct_news(struct ndx_connector *c)
{
	unsigned news = 0;

	if (c->phase == CONN_COMPLETING || c->phase == CONN_DESCRIBED)
		return 0;
	base_lock_acquire(&c->inbox_lock);
	if ((c->commands & CONN_DO_RENDEZVOUS) == 0) {
		news = c->news;
		c->news = 0;
	}
	base_lock_release(&c->inbox_lock);
	return news;
}
