/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: connectors whose ends were described to each other out of band.
 *
 * The server's end listens at the own address by which the client can reach this host; the client's
 * end connects there and sends both cookies as private data. The consumer is not asked: the request
 * is accepted, and the answer completed, as soon as both ends have the descriptions.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"
#include <ndx/spi/sockaddr.h>
#include "connection.h"

/* a limit would refuse clients that connect before their server has their description */
#define RENDEZVOUS_BACKLOG 0u

void conn_rendezvous_close(void *arg)
{
	struct ndx_adapter *adapter = arg;
	struct ndx_listener *l;

	do {
		adapter_lock(adapter);
		l = adapter->rendezvous_users == 0 ? listener_find_rendezvous(adapter, NULL) : NULL;
		adapter_unlock(adapter);
		if (l != NULL)
			listener_close(l);
	} while (l != NULL);
}

void conn_rendezvous_cancel(struct ndx_connector *c, const char *event, enum ndx_status status)
{
	const struct conn_result result = {
		.status = status,
		.cause = status == NDX_E_IO_TIMEOUT
	                         ? "the described peer did not come in time; it has not called "
	                           "ndx_connector_connect_peer(), cannot reach the address of this "
	                           "end's description, or a firewall drops the packets"
	                         : ""};
	struct ndx_overlapped *ov = c->ov;

	c->ov = NULL;
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	if (c->oob.on)
		c->adapter->ops->conn_abandon(c->native);
	conn_note_local(c);
	conn_release_qp(c);
	conn_rendezvous_end(c);
	conn_oob_end(c);
	conn_enter(c, CONN_FAILED, event, &result);
	if (status != NDX_E_CANCELED)
		conn_log_failure(c, "connecting failed", &result);
	conn_complete_ov(c, &ov, status, 0, 0);
}

/* Choose the own address by which the peer can reach this host. */
static enum ndx_status choose_address(const struct ndx_adapter *adapter,
                                      const struct sockaddr_storage *near,
                                      struct sockaddr_storage *out)
{
	const struct ndx_provider_ops *ops = adapter->ops;
	const size_t count = ops->adapter_addresses(adapter->native, NULL, 0);
	struct sockaddr_storage *own;

	if (count == 0)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "%s has no address to be reached at",
		            adapter->info.uri);
	own = calloc(count, sizeof(*own));
	if (own == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a list of addresses");
	(void)ops->adapter_addresses(adapter->native, own, count);
	*out = *ndxp_sockaddr_nearest(own, count, near);
	free(own);
	return NDX_OK;
}

/* Control thread, lock not held: make the adapter listen at `address`. Counts a user of the
 * listener. */
static enum ndx_status open_rendezvous(struct ndx_adapter *adapter,
                                       const struct sockaddr_storage *address,
                                       struct ndx_listener **out)
{
	struct ndx_listener *l;
	enum ndx_status st;

	adapter_lock(adapter);
	adapter->rendezvous_users++;
	*out = listener_find_rendezvous(adapter, address);
	adapter_unlock(adapter);
	if (*out != NULL)
		return NDX_OK;
	st = listener_create(adapter, &l);
	if (st != NDX_OK)
		goto fail_listener;
	listener_set_rendezvous(l);
	st = listener_bind(l, (const struct sockaddr *)address, ndxp_sockaddr_len(address));
	if (st == NDX_OK)
		st = listener_listen(l, RENDEZVOUS_BACKLOG);
	if (st != NDX_OK)
		goto fail_listen;
	*out = l;
	return NDX_OK;
fail_listen:
	listener_close(l);
fail_listener:
	adapter_lock(adapter);
	conn_rendezvous_drop_user(adapter);
	adapter_unlock(adapter);
	return st;
}

struct describe_call {
	struct ndx_connector *c;
	struct ndx_spi_qp *qp;
	enum ndx_role role;
	uint32_t inbound;
	uint32_t outbound;
	const struct sockaddr_storage *near;
	struct sockaddr_storage own;   /* by which the peer can reach this host */
	struct ndx_listener *listener; /* at that address; servers only */
	struct ndx_peer_description out;
	enum ndx_status status;
	struct error_capture said;
};

/* Lock held. */
static enum ndx_status check_describe(const struct ndx_connector *c, const struct ndx_spi_qp *qp)
{
	if (c->phase == CONN_NEW && (!c->bound || conn_lacks_cm(c)))
		return conn_check_qp("ndx_connector_describe", c, qp);
	if (c->phase == CONN_NEW)
		return fail(
			NDX_E_INVALID_DEVICE_STATE, 0,
			"ndx_connector_describe: the connector is bound, and %s does not connect "
			"queue pairs by their numbers: create one and do not bind it, or take an "
			"adapter that does",
			c->adapter->info.uri);
	if (c->phase == CONN_AWAIT_REQUEST || c->phase == CONN_HAVE_REQUEST ||
	    c->phase == CONN_PEER_GAVE_UP || c->phase == CONN_FAILED ||
	    (c->phase == CONN_UP && conn_is_over(c)))
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_connector_describe: the connector failed, ended, or is a "
		            "listener's; create a new one");
	return fail(NDX_E_CONNECTION_ACTIVE, 0, "ndx_connector_describe: the connector is in use");
}

/* Lock held. */
static void fill_description(const struct ndx_connector *c, struct ndx_peer_description *out)
{
	const struct ndx_spi_adapter *native = c->adapter->native;

	memset(out, 0, sizeof(*out));
	out->kind = NDX_DESCRIPTION_RENDEZVOUS;
	out->inbound_read_limit = c->own.inbound_read_limit;
	out->outbound_read_limit = c->own.outbound_read_limit;
	(void)snprintf(out->stack, sizeof(out->stack), "%s",
	               native->stack != NULL ? native->stack : native->provider->name);
	memcpy(out->cookie, c->rendezvous.own, CONN_COOKIE);
}

/* Lock held: like begin_describe(), for a provider that connects queue pairs by their descriptions.
 */
static enum ndx_status begin_direct(struct describe_call *call)
{
	struct ndx_connector *c = call->c;
	enum ndx_status st;

	conn_attach(c, call->qp);
	st = conn_oob_describe(c, call->near, &call->out);
	if (st != NDX_OK) {
		conn_release_qp(c);
		return st;
	}
	c->passive = call->role == NDX_ROLE_SERVER;
	conn_enter(c, CONN_DESCRIBED, "DESCRIBE", &conn_fine);
	return NDX_OK;
}

static uint32_t scope_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	return address->ss_family == AF_INET6 ? v6->sin6_scope_id : 0;
}

/* Lock held: attach the queue pair to the connector. */
static enum ndx_status begin_describe(struct describe_call *call)
{
	struct ndx_connector *c = call->c;
	enum ndx_status st = check_describe(c, call->qp);

	if (st == NDX_OK)
		st = ndxp_random(c->rendezvous.own, CONN_COOKIE);
	if (st != NDX_OK)
		return st;
	conn_set_wishes(c, call->inbound, call->outbound, NULL, 0);
	if (conn_lacks_cm(c))
		return begin_direct(call);
	c->rendezvous.inbound_read_limit = call->inbound;
	c->rendezvous.outbound_read_limit = call->outbound;
	c->rendezvous.server = call->role == NDX_ROLE_SERVER;
	c->rendezvous.listener = call->listener;
	c->rendezvous.scope = scope_of(&call->own);
	c->rendezvous.on = true;
	c->passive = c->rendezvous.server;
	conn_attach(c, call->qp);
	conn_enter(c, CONN_DESCRIBED, "DESCRIBE", &conn_fine);
	fill_description(c, &call->out);
	return NDX_OK;
}

static void describe_on_loop(void *arg)
{
	struct describe_call *call = arg;
	struct ndx_adapter *adapter = call->c->adapter;
	const bool direct = conn_lacks_cm(call->c);
	const bool server = call->role == NDX_ROLE_SERVER && !direct;
	socklen_t len = sizeof(call->out.address);

	error_capture_begin();
	call->status = direct ? NDX_OK : choose_address(adapter, call->near, &call->own);
	if (call->status == NDX_OK && server)
		call->status = open_rendezvous(adapter, &call->own, &call->listener);
	if (call->status == NDX_OK) {
		adapter_lock(adapter);
		call->status = begin_describe(call);
		if (server && call->status == NDX_OK)
			ndxp_list_add(&adapter->described, &call->c->rendezvous.node);
		else if (server)
			conn_rendezvous_drop_user(adapter);
		adapter_unlock(adapter);
	}
	if (server && call->status == NDX_OK)
		(void)listener_get_local_address(call->listener,
		                                 (struct sockaddr *)&call->out.address, &len);
	error_capture_end(&call->said);
}

enum ndx_status conn_describe_near(struct ndx_connector *c, struct ndx_qp *qp, enum ndx_role role,
                                   uint32_t inbound_read_limit, uint32_t outbound_read_limit,
                                   const struct sockaddr_storage *near,
                                   struct ndx_peer_description *out)
{
	struct describe_call call = {.c = c,
	                             .role = role,
	                             .inbound = inbound_read_limit,
	                             .outbound = outbound_read_limit,
	                             .near = near};

	if (c == NULL || qp == NULL || out == NULL ||
	    (role != NDX_ROLE_CLIENT && role != NDX_ROLE_SERVER))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_describe: NULL argument, or no such role");
	if (!conn_lacks_cm(c) && (c->adapter->info.max_caller_data < CONN_COOKIES ||
	                          c->adapter->info.max_callee_data < CONN_COOKIE))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_connector_describe: %s carries too little private data",
		            c->adapter->info.uri);
	call.qp = spi_qp(qp);
	ndxp_loop_call(c->adapter->loop, describe_on_loop, &call);
	if (call.status == NDX_OK)
		*out = call.out;
	return error_capture_restore(call.status, &call.said);
}

static enum ndx_status check_peer(const struct ndx_connector *c,
                                  const struct ndx_peer_description *peer)
{
	struct ndx_peer_description own;
	const char *fault = NULL;

	fill_description(c, &own);
	if (peer->kind != NDX_DESCRIPTION_RENDEZVOUS)
		fault = "it is of another kind";
	else if (strncmp(peer->stack, own.stack, sizeof(own.stack)) != 0)
		fault = "it is of another stack";
	else if (memcmp(peer->cookie, c->rendezvous.own, CONN_COOKIE) == 0)
		fault = "it is the own one";
	else if (!c->rendezvous.server &&
	         !ndxp_sockaddr_valid((const struct sockaddr *)&peer->address,
	                              sizeof(peer->address)))
		fault = "it has no address, as if it were a client's";
	else if (!c->rendezvous.server && ndxp_sockaddr_is_any(&peer->address))
		fault = "its address is the unspecified one";
	if (fault == NULL)
		return NDX_OK;
	return fail(NDX_E_INVALID_PARAMETER, 0,
	            "ndx_connector_connect_peer: this cannot be the peer's description: %s", fault);
}

/* A link-local address does not contain its link, and each host numbers its links for itself. */
static void give_scope(struct sockaddr_storage *address, uint32_t scope)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
	    v6->sin6_scope_id == 0)
		v6->sin6_scope_id = scope;
}

/* Lock held; arguments checked, `ov` begun. */
static void start(struct ndx_connector *c, const struct ndx_peer_description *peer)
{
	uint8_t cookies[CONN_COOKIES];

	memcpy(c->rendezvous.peer, peer->cookie, CONN_COOKIE);
	if (c->rendezvous.server) {
		conn_enter(c, CONN_AWAIT_REQUEST, "CONNECT_PEER", &conn_fine);
		if (c->attr.connect_timeout_ms != NDX_INFINITE)
			ndxp_timer_set(c->adapter->loop, &c->connect_timer,
			               c->attr.connect_timeout_ms);
		listener_look_again(c->rendezvous.listener);
		return;
	}
	memcpy(cookies, peer->cookie, CONN_COOKIE);
	memcpy(cookies + CONN_COOKIE, c->rendezvous.own, CONN_COOKIE);
	conn_set_wishes(c, c->rendezvous.inbound_read_limit, c->rendezvous.outbound_read_limit,
	                cookies, sizeof(cookies));
	c->destination = peer->address;
	give_scope(&c->destination, c->rendezvous.scope);
	c->destination_len = ndxp_sockaddr_len(&peer->address);
	c->peer_known = false;
	conn_enter(c, CONN_CONNECTING, "CONNECT_PEER", &conn_fine);
	conn_command(c, CONN_DO_CONNECT);
}

/* Lock held. */
static enum ndx_status check_both(const struct ndx_connector *c,
                                  const struct ndx_peer_description *peer)
{
	if (c->phase != CONN_DESCRIBED)
		return fail(NDX_E_CONNECTION_INVALID, 0,
		            "ndx_connector_connect_peer: call ndx_connector_describe() first");
	return c->oob.on ? conn_oob_check(c, peer) : check_peer(c, peer);
}

enum ndx_status conn_connect_peer(struct ndx_connector *c, const struct ndx_peer_description *peer,
                                  struct ndx_overlapped *ov)
{
	enum ndx_status st;

	adapter_lock(c->adapter);
	st = check_both(c, peer);
	if (st == NDX_OK && c->oob.on && conn_oob_does_without(c, peer)) {
		adapter_unlock(c->adapter);
		st = conn_oob_set_stream(c, NDX_NO_OOB_STREAM);
		adapter_lock(c->adapter);
		if (st == NDX_OK)
			st = check_both(c, peer);
	}
	if (st == NDX_OK)
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_connect_peer");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov = ov;
		if (c->oob.on)
			conn_oob_start(c, peer);
		else
			start(c, peer);
	}
	adapter_unlock(c->adapter);
	return st;
}
