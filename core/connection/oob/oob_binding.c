/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between a connector and its out-of-band carrier, and the end of this link. */
#include "connection.h"

static void on_event(void *arg, enum oob_event event)
{
	struct ndx_connector *c = arg;

	if (event == OOB_SENT)
		host_report(c->native, NDX_REPORT_DISC_ACKED, 0, NULL);
	else
		conn_oob_received(c, event);
}

static void on_lost(void *arg)
{
	conn_oob_received(arg, OOB_LOST);
}

bool conn_oob_attach(struct ndx_connector *c, struct oob_link *link)
{
	static const struct oob_end_ops ops = {.event = on_event, .lost = on_lost};

	return oob_link_attach(link, &ops, c);
}

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
		oob_link_leave(link, OOB_CONNECTION);
}

/* Messages that arrive before the connection exists wait until then. */
bool conn_oob_may_handle(const struct ndx_connector *c)
{
	return c->phase != CONN_COMPLETING && c->phase != CONN_DESCRIBED &&
	       (c->commands & CONN_DO_RENDEZVOUS) == 0;
}
