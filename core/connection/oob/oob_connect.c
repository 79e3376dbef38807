/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors whose provider connects queue pairs by their descriptions, without a connection
 * manager. Goodbyes, aborts and the check that both ends are connected go over an out-of-band
 * stream: the consumer's, or the transport of the session that exchanged the descriptions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "oob_stream.h"
#include "connection.h"
#include "oob_null.h"
#include "agree.h"

enum ndx_status conn_oob_describe(struct ndx_connector *c, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out)
{
	enum ndx_status st;

	if (c->oob.pair == NULL)
		c->oob.pair = calloc(1, sizeof(*c->oob.pair));
	if (c->oob.pair == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for two descriptions");
	memset(out, 0, sizeof(*out));
	out->psn = c->attr.psn;
	st = c->adapter->ops->qp_describe(c->native, near, out);
	if (st != NDX_OK)
		return st;
	conn_note_local(c);
	out->inbound_read_limit = c->own.inbound_read_limit;
	out->outbound_read_limit = c->own.outbound_read_limit;
	c->oob.pair->own = *out;
	c->oob.on = true;
	return NDX_OK;
}

bool conn_oob_does_without(const struct ndx_connector *c, const struct ndx_peer_description *peer)
{
	return c->oob.link == NULL && (peer->policy & NDX_PEER_NO_GOODBYES) != 0;
}

enum ndx_status conn_oob_check(const struct ndx_connector *c,
                               const struct ndx_peer_description *peer)
{
	const enum ndx_role role = c->passive ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
	const struct ndx_peer_description *own = &c->oob.pair->own;
	struct ndx_agreement agreed;
	char why[160] = "it is of another kind";
	enum ndx_status st = NDX_E_INVALID_PARAMETER;

	if (c->oob.link == NULL && !conn_oob_does_without(c, peer))
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_connect_peer: this adapter has no connection manager; "
		            "call ndx_connector_set_oob_stream() first");
	if (peer->kind == own->kind)
		st = agree_check(peer, why, sizeof(why));
	if (st == NDX_OK && peer->qpn == own->qpn && peer->lid == own->lid &&
	    memcmp(peer->gid, own->gid, sizeof(own->gid)) == 0) {
		(void)snprintf(why, sizeof(why), "it is the own one");
		st = NDX_E_INVALID_PARAMETER;
	}
	if (st != NDX_OK)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_connect_peer: this cannot be the peer's description: %s",
		            why);
	if (c->oob.stream != NULL && (peer->policy & NDX_PEER_NO_GOODBYES) != 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_connect_peer: this peer knows no goodbyes, and the "
		            "connector has a stream for them");
	st = agree_compute(role, own, peer, &agreed, why, sizeof(why));
	if (st != NDX_OK)
		return fail(st, 0, "ndx_connector_connect_peer: %s", why);
	return NDX_OK;
}

void conn_oob_start(struct ndx_connector *c, const struct ndx_peer_description *peer)
{
	c->oob.pair->peer = *peer;
	c->peer = (struct ndx_spi_params){.inbound_read_limit = peer->inbound_read_limit,
	                                  .outbound_read_limit = peer->outbound_read_limit};
	c->peer_known = true;
	conn_agree(c);
	conn_enter(c, CONN_CONNECTING, "CONNECT_PEER", &conn_fine);
	conn_command(c, CONN_DO_RENDEZVOUS);
}

/* Send the queue pairs to which this end is connected, for the peer to compare. */
static void send_validate(struct ndx_connector *c)
{
	const enum ndx_role role = c->passive ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
	struct frame_validate v;
	char why[160];

	memset(&v, 0, sizeof(v));
	(void)agree_compute(role, &c->oob.pair->own, &c->oob.pair->peer, &v.agreed, why,
	                    sizeof(why));
	agree_identity(&c->oob.pair->own, v.own);
	agree_identity(&c->oob.pair->peer, v.peer);
	oob_stream_validate(c->oob.stream, &v);
}

static void complete_attempt(struct ndx_connector *c)
{
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	conn_enter(c, CONN_COMPLETING, "COMPLETE", &conn_fine);
	conn_command(c, CONN_DO_COMPLETE);
}

enum ndx_status conn_oob_connect(struct ndx_connector *c)
{
	enum ndx_status st = c->adapter->ops->qp_connect_peer(c->native, &c->oob.pair->peer);

	if (st != NDX_OK)
		return st;
	if (c->oob.stream == NULL) {
		complete_attempt(c); /* the session makes sure that both ends are connected */
		return NDX_OK;
	}
	if (c->attr.connect_timeout_ms != NDX_INFINITE)
		ndxp_timer_set(c->adapter->loop, &c->connect_timer, c->attr.connect_timeout_ms);
	send_validate(c);
	return NDX_OK;
}

/* ---- messages of the peer ---- */

static void fail_attempt(struct ndx_connector *c, enum ndx_status status, const char *cause)
{
	const struct conn_result result = {.status = status, .cause = cause};

	conn_end_attempt(c, CONN_FAILED, &result);
}

void conn_oob_handle(struct ndx_connector *c, unsigned events)
{
	const struct ndx_provider_ops *ops = c->adapter->ops;

	if (c->phase == CONN_CONNECTING) {
		if (events & OOB_PEER_DIFFERS) {
			fail_attempt(
				c, NDX_E_CONNECTION_REFUSED,
				"the peer is not connected to this queue pair, or not as agreed");
		} else if ((events & OOB_PEER_MATCHES) &&
		           ((events & OOB_GOODBYE) || !(events & (OOB_ABORT | OOB_LOST)))) {
			conn_inbox_put_back(c, (events & ~(uint32_t)OOB_PEER_MATCHES)
			                               << CONN_EVENT_OOB);
			complete_attempt(c);
		} else if (events != 0) {
			fail_attempt(c, NDX_E_CONNECTION_ABORTED, "the peer gave up the attempt");
		}
		return;
	}
	if (c->phase != CONN_UP || disconnect_is_over(&c->machine))
		return;
	if (events & OOB_GOODBYE)
		ops->conn_oob_received(c->native, NDX_OOB_GOODBYE);
	if (events & OOB_ABORT)
		ops->conn_oob_received(c->native, NDX_OOB_ABORT);
	else if (events & OOB_LOST)
		ops->conn_oob_received(c->native, NDX_OOB_LOST);
}

/* ---- streams ---- */

/* Lock held. */
static enum ndx_status check_stream(const struct ndx_connector *c)
{
	if (!conn_lacks_cm(c))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_connector_set_oob_stream: %s needs none, its connections tell of "
		            "their end themselves",
		            c->adapter->info.uri);
	if (c->phase != CONN_NEW && c->phase != CONN_DESCRIBED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_set_oob_stream: it is too late, or the connector ended");
	if (c->oob.link != NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_set_oob_stream: the connector has a stream");
	return NDX_OK;
}

/* stream: NULL, or the consumer's, which uses `link`. */
static enum ndx_status attach_link(struct ndx_connector *c, struct oob_link *link,
                                   struct oob_stream *stream)
{
	enum ndx_status st;

	adapter_lock(c->adapter);
	st = check_stream(c);
	if (st == NDX_OK && !conn_oob_attach(c, link))
		st = fail(NDX_E_CONNECTION_ABORTED, 0, "the session has ended");
	if (st == NDX_OK) {
		c->oob.link = link;
		c->oob.stream = stream;
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status conn_oob_set_link(struct ndx_connector *c, struct oob_link *link)
{
	return attach_link(c, link, NULL);
}

enum ndx_status conn_oob_set_stream(struct ndx_connector *c, int fd)
{
	struct oob_stream *stream = NULL;
	struct oob_link *link = NULL;
	enum ndx_status st;

	adapter_lock(c->adapter);
	st = check_stream(c);
	adapter_unlock(c->adapter);
	if (st == NDX_OK && fd == NDX_NO_OOB_STREAM)
		st = oob_null_create(c->adapter, &link);
	else if (st == NDX_OK)
		st = oob_stream_create(c->adapter, fd, &stream, &link);
	if (st != NDX_OK)
		return st;
	st = attach_link(c, link, stream);
	if (st != NDX_OK && stream != NULL)
		oob_stream_drop(stream);
	else if (st != NDX_OK)
		oob_null_drop(link);
	return st;
}
