/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors whose provider connects queue pairs by their descriptions, without a connection
 * manager. Goodbyes, aborts and the check that both ends are connected go over an out-of-band
 * stream: the consumer's, or the transport of the session that exchanged the descriptions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_linux.h"
#include "base_log.h"
#include "channel.h"
#include "connection.h"
#include "mute.h"
#include "settle.h"

enum ndx_status conn_direct_describe(struct ndx_connector *c, const struct sockaddr_storage *near,
                                     struct ndx_peer_description *out)
{
	enum ndx_status st;

	if (c->direct.pair == NULL)
		c->direct.pair = calloc(1, sizeof(*c->direct.pair));
	if (c->direct.pair == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for two descriptions");
	memset(out, 0, sizeof(*out));
	out->psn = c->attr.psn;
	st = c->adapter->ops->qp_describe(c->native, near, out);
	if (st != NDX_OK)
		return st;
	out->inbound_read_limit = c->own.inbound_read_limit;
	out->outbound_read_limit = c->own.outbound_read_limit;
	c->direct.pair->own = *out;
	c->direct.on = true;
	return NDX_OK;
}

enum ndx_status conn_direct_check(const struct ndx_connector *c,
                                  const struct ndx_peer_description *peer)
{
	const enum ndx_role role = c->passive ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
	const struct ndx_peer_description *own = &c->direct.pair->own;
	struct ndx_agreement agreed;
	char why[160] = "it is of another kind";
	enum ndx_status st = NDX_E_INVALID_PARAMETER;

	if (c->direct.wire == NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_connect_peer: this adapter has no connection manager; "
		            "call ndx_connector_set_oob_stream() first");
	if (peer->kind == own->kind)
		st = settle_check(peer, why, sizeof(why));
	if (st == NDX_OK && peer->qpn == own->qpn && peer->lid == own->lid &&
	    memcmp(peer->gid, own->gid, sizeof(own->gid)) == 0) {
		(void)snprintf(why, sizeof(why), "it is the own one");
		st = NDX_E_INVALID_PARAMETER;
	}
	if (st != NDX_OK)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_connect_peer: this cannot be the peer's description: %s",
		            why);
	st = settle(role, own, peer, &agreed, why, sizeof(why));
	if (st != NDX_OK)
		return fail(st, 0, "ndx_connector_connect_peer: %s", why);
	return NDX_OK;
}

void conn_direct_start(struct ndx_connector *c, const struct ndx_peer_description *peer)
{
	c->direct.pair->peer = *peer;
	c->peer = (struct ndx_spi_params){.inbound_read_limit = peer->inbound_read_limit,
	                                  .outbound_read_limit = peer->outbound_read_limit};
	c->peer_known = true;
	conn_agree(c);
	conn_enter(c, CONN_CONNECTING, "CONNECT_PEER", &conn_fine);
	conn_command(c, CONN_DO_RENDEZVOUS);
}

/* Send the queue pairs to which this end is connected, for the peer to compare. */
static void validate(struct ndx_connector *c)
{
	const enum ndx_role role = c->passive ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
	struct frame_validate v;
	char why[160];

	memset(&v, 0, sizeof(v));
	(void)settle(role, &c->direct.pair->own, &c->direct.pair->peer, &v.agreed, why,
	             sizeof(why));
	settle_identity(&c->direct.pair->own, v.own);
	settle_identity(&c->direct.pair->peer, v.peer);
	channel_validate(c->direct.channel, &v);
}

static void complete(struct ndx_connector *c)
{
	base_timer_cancel(c->adapter->loop, &c->connect_timer);
	conn_enter(c, CONN_COMPLETING, "COMPLETE", &conn_fine);
	conn_command(c, CONN_DO_COMPLETE);
}

enum ndx_status conn_direct_connect(struct ndx_connector *c)
{
	enum ndx_status st = c->adapter->ops->qp_connect_peer(c->native, &c->direct.pair->peer);

	if (st != NDX_OK)
		return st;
	if (c->direct.channel == NULL) {
		complete(c); /* the session makes sure that both ends are connected */
		return NDX_OK;
	}
	if (c->attr.connect_timeout_ms != NDX_INFINITE)
		base_timer_set(c->adapter->loop, &c->connect_timer, c->attr.connect_timeout_ms);
	validate(c);
	return NDX_OK;
}

/* ---- what the peer says ---- */

static void give_up(struct ndx_connector *c, enum ndx_status status, const char *cause)
{
	const struct conn_result result = {.status = status, .cause = cause};

	conn_end_attempt(c, CONN_FAILED, &result);
}

/* Put messages back that can only be handled later. */
static void keep(struct ndx_connector *c, unsigned news)
{
	base_lock_acquire(&c->inbox_lock);
	c->news |= news;
	base_lock_release(&c->inbox_lock);
}

void conn_direct_take(struct ndx_connector *c, unsigned news)
{
	const struct ndx_provider_ops *ops = c->adapter->ops;

	if (c->phase == CONN_CONNECTING) {
		if (news & WIRE_WRONG) {
			give_up(c, NDX_E_CONNECTION_REFUSED,
			        "the peer is not connected to this queue pair, or not as agreed");
		} else if ((news & WIRE_RIGHT) &&
		           ((news & WIRE_GOODBYE) || !(news & (WIRE_ABORT | WIRE_LOST)))) {
			keep(c, news & ~(unsigned)WIRE_RIGHT);
			complete(c);
		} else if (news != 0) {
			give_up(c, NDX_E_CONNECTION_ABORTED, "the peer gave up the attempt");
		}
		return;
	}
	if (c->phase != CONN_UP || disconnect_is_over(&c->machine))
		return;
	if (news & WIRE_GOODBYE)
		ops->conn_oob_received(c->native, NDX_OOB_GOODBYE);
	if (news & WIRE_ABORT)
		ops->conn_oob_received(c->native, NDX_OOB_ABORT);
	else if (news & WIRE_LOST)
		ops->conn_oob_received(c->native, NDX_OOB_LOST);
}

/* ---- channels ---- */

/* Lock held. */
static enum ndx_status check_channel(const struct ndx_connector *c)
{
	if (!conn_is_direct(c))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_connector_set_oob_stream: %s needs none, its connections tell of "
		            "their end themselves",
		            c->adapter->info.uri);
	if (c->phase != CONN_NEW && c->phase != CONN_DESCRIBED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_set_oob_stream: it is too late, or the connector ended");
	if (c->direct.wire != NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_set_oob_stream: the connector has a channel");
	return NDX_OK;
}

/* channel: NULL, or the channel of `wire` for the consumer's stream. */
static enum ndx_status tie(struct ndx_connector *c, struct wire *wire, struct channel *channel)
{
	enum ndx_status st;

	adapter_lock(c->adapter);
	st = check_channel(c);
	if (st == NDX_OK && !wire_tie(wire, c))
		st = fail(NDX_E_CONNECTION_ABORTED, 0, "the session has ended");
	if (st == NDX_OK) {
		c->direct.wire = wire;
		c->direct.channel = channel;
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status conn_direct_wire(struct ndx_connector *c, struct wire *wire)
{
	return tie(c, wire, NULL);
}

enum ndx_status conn_direct_set_oob_stream(struct ndx_connector *c, int fd)
{
	struct channel *channel = NULL;
	struct wire *wire = NULL;
	enum ndx_status st;

	adapter_lock(c->adapter);
	st = check_channel(c);
	adapter_unlock(c->adapter);
	if (st == NDX_OK && fd == NDX_NO_OOB_STREAM)
		st = mute_create(c->adapter, &wire);
	else if (st == NDX_OK)
		st = channel_create(c->adapter, fd, true, &channel, &wire);
	if (st != NDX_OK)
		return st;
	st = tie(c, wire, channel);
	if (st != NDX_OK && channel != NULL)
		channel_drop(channel);
	else if (st != NDX_OK)
		mute_drop(wire);
	return st;
}
