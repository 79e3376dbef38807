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
bool conn_oob_may_handle(const struct ndx_connector *c)
{
	return c->phase != CONN_COMPLETING && c->phase != CONN_DESCRIBED &&
	       (c->commands & CONN_DO_RENDEZVOUS) == 0;
}
