/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the connector for a request when the ends were described to each other out of band. */
#include <string.h>

#include <ndx/spi/container_of.h>
#include "connection.h"

bool conn_rendezvous_is_peer(const struct ndx_connector *c)
{
	return c->peer.private_data_len == CONN_COOKIE &&
	       memcmp(c->peer.private_data, c->rendezvous.peer, CONN_COOKIE) == 0;
}

bool conn_rendezvous_find(struct ndx_adapter *adapter, const struct ndx_spi_request *request,
                          struct ndx_connector **c)
{
	const uint8_t *said = request->params.private_data;

	if (request->params.private_data_len != CONN_COOKIES)
		return false;
	for (struct ndxp_list *n = adapter->described.next; n != &adapter->described; n = n->next) {
		struct ndx_connector *k = container_of(n, struct ndx_connector, rendezvous.node);

		if (memcmp(said, k->rendezvous.own, CONN_COOKIE) != 0)
			continue;
		if (k->phase == CONN_DESCRIBED)
			return true; /* its peer's description has not come yet */
		if (k->phase != CONN_AWAIT_REQUEST ||
		    memcmp(said + CONN_COOKIE, k->rendezvous.peer, CONN_COOKIE) != 0)
			return false;
		*c = k;
		return true;
	}
	return false;
}

void conn_rendezvous_accept(struct ndx_connector *c)
{
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	conn_set_wishes(c, c->rendezvous.inbound_read_limit, c->rendezvous.outbound_read_limit,
	                c->rendezvous.own, CONN_COOKIE);
	conn_agree(c);
	c->own.inbound_read_limit = c->native->inbound_read_limit;
	c->own.outbound_read_limit = c->native->outbound_read_limit;
	conn_enter(c, CONN_ACCEPTING, "ACCEPT", &conn_fine);
	conn_command(c, CONN_DO_ACCEPT);
}

void listener_look_again(struct ndx_listener *l)
{
	ndxp_loop_post(l->adapter->loop, &l->work);
}

/* Lock held. */
void conn_rendezvous_drop_user(struct ndx_adapter *adapter)
{
	if (--adapter->rendezvous_users == 0)
		ndxp_loop_post(adapter->loop, &adapter->rendezvous_job);
}

void conn_rendezvous_end(struct ndx_connector *c)
{
	struct ndx_adapter *adapter = c->adapter;

	if (!c->rendezvous.on)
		return;
	c->rendezvous.on = false;
	if (!c->rendezvous.server)
		return;
	ndxp_list_remove(&c->rendezvous.node);
	listener_look_again(c->rendezvous.listener); /* the client's request may be waiting */
	conn_rendezvous_drop_user(adapter);
}
