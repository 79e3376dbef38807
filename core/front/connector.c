/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of connectors: checks, and commands for the control thread. core/connection performs
 * the commands: control.c, and close.c for cancel and close. */
#include <ndx/connector.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "base_ov.h"
#include <ndx/spi/sockaddr.h>
#include "base_struct.h"
#include "connection.h"

#define DRAIN_TIMEOUT_MAX_MS 2000u
#define DISCONNECT_TIMEOUT_MS 5000u
#define PSN_MAX 0xffffffu

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_connector_attr, NDX_CONNECTOR_ATTR_SIZE_0_1,
                    "call ndx_connector_attr_init() first");

static const struct ndx_connector_attr attr_defaults = {
	.drain_timeout_ms = DRAIN_TIMEOUT_MAX_MS,
	.disconnect_timeout_ms = DISCONNECT_TIMEOUT_MS,
	.connect_timeout_ms = NDX_INFINITE,
	.psn = NDX_PSN_RANDOM,
};

void ndx_connector_attr_init_sized(struct ndx_connector_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static const struct base_struct connect_layout = BASE_STRUCT(
	struct ndx_connect_attr, NDX_CONNECT_ATTR_SIZE_0_1, "call ndx_connect_attr_init() first");

static const struct ndx_connect_attr connect_defaults = {
	.inbound_read_limit = UINT32_MAX,
	.outbound_read_limit = UINT32_MAX,
};

void ndx_connect_attr_init_sized(struct ndx_connect_attr *attr, size_t size)
{
	base_struct_init(&connect_layout, attr, size, &connect_defaults);
}

/* The attributes of a connect or an accept, which may be NULL. */
static enum ndx_status take_connect_attr(const char *call, const struct ndx_connect_attr *attr,
                                         size_t private_data_max, struct ndx_connect_attr *own)
{
	enum ndx_status st = NDX_OK;

	*own = connect_defaults;
	if (attr != NULL)
		st = base_struct_in(&connect_layout, call, own, attr, attr->size);
	if (st != NDX_OK)
		return st;
	return conn_check_private_data(call, own->private_data, own->private_data_len,
	                               private_data_max);
}

static enum ndx_status check_attr(const struct ndx_connector_attr *attr)
{
	if (attr->drain_timeout_ms > DRAIN_TIMEOUT_MAX_MS)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_create: drain_timeout_ms %u is beyond %u",
		            attr->drain_timeout_ms, DRAIN_TIMEOUT_MAX_MS);
	if (attr->disconnect_timeout_ms <= attr->drain_timeout_ms ||
	    attr->disconnect_timeout_ms == NDX_INFINITE)
		return fail(
			NDX_E_INVALID_PARAMETER, 0,
			"ndx_connector_create: disconnect_timeout_ms %u must be finite and more "
			"than drain_timeout_ms %u",
			attr->disconnect_timeout_ms, attr->drain_timeout_ms);
	if (attr->psn > PSN_MAX && attr->psn != NDX_PSN_RANDOM)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_create: psn 0x%x has more than 24 bits", attr->psn);
	return NDX_OK;
}

static struct ndx_connector *alloc_connector(struct ndx_adapter *adapter,
                                             const struct ndx_connector_attr *attr)
{
	struct ndx_connector *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->adapter = adapter;
	c->attr = *attr;
	c->work = (struct ndxp_job){.fn = connector_work, .arg = c};
	c->connect_timer = (struct ndxp_timer){.fn = conn_on_connect_timeout, .arg = c};
	c->drain_timer = (struct ndxp_timer){.fn = conn_on_drain_timeout, .arg = c};
	c->disconnect_timer = (struct ndxp_timer){.fn = conn_on_disconnect_timeout, .arg = c};
	ndxp_list_init(&c->wanted);
	ndxp_list_init(&c->rendezvous.node);
	disconnect_init(&c->machine);
	return c;
}

enum ndx_status ndx_connector_create(struct ndx_adapter *adapter,
                                     const struct ndx_connector_attr *attr,
                                     struct ndx_connector **out)
{
	struct ndx_connector_attr own = attr_defaults;
	struct ndx_connector *c;
	enum ndx_status st = NDX_OK;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_create: NULL argument");
	if (attr != NULL)
		st = base_struct_in(&attr_layout, "ndx_connector_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st != NDX_OK)
		return st;
	c = alloc_connector(adapter, &own);
	if (c == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a connector");
	adapter_lock(adapter);
	st = adapter->ops->conn_create(adapter->native, c, &c->native);
	if (st == NDX_OK) {
		c->native->front = c;
		c->native->native = adapter->native;
		adapter->refs++;
		adapter->handles++;
		c->id = stats_count_new(adapter, CORE_CONNECTOR);
		ndxp_list_add(&adapter->connectors, &c->node);
	}
	adapter_unlock(adapter);
	if (st != NDX_OK) {
		free(c);
		return st;
	}
	*out = c;
	return NDX_OK;
}

enum ndx_status ndx_connector_bind(struct ndx_connector *c, const struct sockaddr *address,
                                   socklen_t address_len)
{
	enum ndx_status st;

	if (c == NULL || !ndxp_sockaddr_valid(address, address_len))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_bind: connector is NULL, or the address is neither IPv4 "
		            "nor IPv6");
	adapter_lock(c->adapter);
	if (c->bound)
		st = fail(NDX_E_ADDRESS_ALREADY_ASSOCIATED, 0,
		          "ndx_connector_bind: the connector is bound already");
	else if (c->phase != CONN_NEW)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_connector_bind: the connector is in use; bind before connect");
	else
		st = c->adapter->ops->conn_bind(c->native, address, address_len);
	if (st == NDX_OK) {
		c->bound = true;
		conn_note_local(c);
	}
	adapter_unlock(c->adapter);
	return st;
}

static enum ndx_status check_connect(const struct ndx_connector *c, const struct ndx_spi_qp *qp)
{
	switch (c->phase) {
	case CONN_NEW:
		return conn_check_qp("ndx_connector_connect", c, qp);
	case CONN_DESCRIBED:
	case CONN_CONNECTING:
	case CONN_CONNECT_RESPONSE:
	case CONN_COMPLETING:
	case CONN_ACCEPTING:
	case CONN_UP:
		if (c->phase == CONN_UP && conn_is_over(c))
			break;
		return fail(NDX_E_CONNECTION_ACTIVE, 0,
		            "ndx_connector_connect: the connector is in use");
	case CONN_AWAIT_REQUEST:
	case CONN_HAVE_REQUEST:
	case CONN_PEER_GAVE_UP:
	case CONN_FAILED:
		break;
	}
	return fail(NDX_E_INVALID_DEVICE_STATE, 0,
	            "ndx_connector_connect: the connector failed, ended, or is a listener's; "
	            "create a new one");
}

static enum ndx_status check_destination(const struct sockaddr *destination, socklen_t len)
{
	struct sockaddr_storage to;

	if (!ndxp_sockaddr_valid(destination, len))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_connect: the destination is neither IPv4 nor IPv6");
	ndxp_sockaddr_copy(&to, destination, len);
	if (ndxp_sockaddr_is_any(&to))
		return fail(NDX_E_BAD_NETWORK_NAME, 0,
		            "ndx_connector_connect: the destination is the unspecified address; "
		            "name a host");
	return NDX_OK;
}

enum ndx_status ndx_connector_connect(struct ndx_connector *c, struct ndx_qp *qp,
                                      const struct sockaddr *destination, socklen_t destination_len,
                                      const struct ndx_connect_attr *attr,
                                      struct ndx_overlapped *ov)
{
	struct ndx_connect_attr own;
	enum ndx_status st;

	if (c == NULL || qp == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_connect: NULL argument");
	st = check_destination(destination, destination_len);
	if (st != NDX_OK)
		return st;
	st = take_connect_attr("ndx_connector_connect", attr, c->adapter->info.max_caller_data,
	                       &own);
	if (st != NDX_OK)
		return st;
	adapter_lock(c->adapter);
	st = check_connect(c, spi_qp(qp));
	if (st == NDX_OK)
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_connect");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov = ov;
		ndxp_sockaddr_copy(&c->destination, destination, destination_len);
		c->destination_len = destination_len;
		conn_set_wishes(c, own.inbound_read_limit, own.outbound_read_limit,
		                own.private_data, own.private_data_len);
		conn_attach(c, spi_qp(qp));
		c->peer_known = false;
		c->passive = false;
		conn_enter(c, CONN_CONNECTING, "CONNECT", &conn_fine);
		conn_command(c, CONN_DO_CONNECT);
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_complete_connect(struct ndx_connector *c, struct ndx_overlapped *ov)
{
	enum ndx_status st;

	if (c == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_complete_connect: connector is NULL");
	adapter_lock(c->adapter);
	if (c->phase == CONN_PEER_GAVE_UP)
		st = fail(c->gone_status, 0,
		          "ndx_connector_complete_connect: the peer has given up");
	else if (c->phase != CONN_CONNECT_RESPONSE)
		st = fail(NDX_E_CONNECTION_INVALID, 0,
		          "ndx_connector_complete_connect: no completed connect");
	else
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_complete_connect");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov = ov;
		conn_enter(c, CONN_COMPLETING, "COMPLETE", &conn_fine);
		conn_command(c, CONN_DO_COMPLETE);
	}
	adapter_unlock(c->adapter);
	return st;
}

static enum ndx_status check_accept(const struct ndx_connector *c, const struct ndx_spi_qp *qp)
{
	switch (c->phase) {
	case CONN_HAVE_REQUEST:
		return conn_check_qp("ndx_connector_accept", c, qp);
	case CONN_PEER_GAVE_UP:
		return fail(c->gone_status, 0,
		            "ndx_connector_accept: the active side has given up");
	case CONN_ACCEPTING:
	case CONN_UP:
	case CONN_CONNECTING:
	case CONN_CONNECT_RESPONSE:
	case CONN_COMPLETING:
		return fail(NDX_E_CONNECTION_ACTIVE, 0,
		            "ndx_connector_accept: the connector is connecting or connected");
	case CONN_NEW:
	case CONN_DESCRIBED:
	case CONN_AWAIT_REQUEST:
	case CONN_FAILED:
		break;
	}
	return fail(NDX_E_CONNECTION_INVALID, 0,
	            "ndx_connector_accept: the connector holds no request");
}

enum ndx_status ndx_connector_accept(struct ndx_connector *c, struct ndx_qp *qp,
                                     const struct ndx_connect_attr *attr, struct ndx_overlapped *ov)
{
	struct ndx_connect_attr own;
	enum ndx_status st;

	if (c == NULL || qp == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_accept: NULL argument");
	st = take_connect_attr("ndx_connector_accept", attr, c->adapter->info.max_callee_data,
	                       &own);
	if (st != NDX_OK)
		return st;
	adapter_lock(c->adapter);
	st = check_accept(c, spi_qp(qp));
	if (st == NDX_OK)
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_accept");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov = ov;
		conn_set_wishes(c, own.inbound_read_limit, own.outbound_read_limit,
		                own.private_data, own.private_data_len);
		conn_agree(c);
		/* Accept sends these limits, which are lowered to the peer's offer. */
		c->own.inbound_read_limit = c->native->inbound_read_limit;
		c->own.outbound_read_limit = c->native->outbound_read_limit;
		conn_attach(c, spi_qp(qp));
		conn_enter(c, CONN_ACCEPTING, "ACCEPT", &conn_fine);
		conn_command(c, CONN_DO_ACCEPT);
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_notify_disconnect(struct ndx_connector *c, struct ndx_overlapped *ov)
{
	enum ndx_status st;

	if (c == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_notify_disconnect: connector is NULL");
	adapter_lock(c->adapter);
	if (c->phase != CONN_UP)
		st = fail(NDX_E_CONNECTION_INVALID, 0,
		          "ndx_connector_notify_disconnect: never connected");
	else
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_notify_disconnect");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		ndxp_ov_push(&c->notifies, ov);
		conn_command(c, CONN_DO_NOTIFY);
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_disconnect(struct ndx_connector *c, struct ndx_overlapped *ov)
{
	enum ndx_status st;

	if (c == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_disconnect: connector is NULL");
	adapter_lock(c->adapter);
	if (c->phase != CONN_UP)
		st = fail(NDX_E_CONNECTION_INVALID, 0, "ndx_connector_disconnect: never connected");
	else if (c->ov_disconnect != NULL)
		st = fail(NDX_E_CONNECTION_ACTIVE, 0,
		          "ndx_connector_disconnect: a disconnect is in flight");
	else
		st = base_ov_begin_call(ov, c->adapter->loop, "ndx_connector_disconnect");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov_disconnect = ov;
		conn_command(c, CONN_DO_DISCONNECT);
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_reject(struct ndx_connector *c, const void *private_data,
                                     size_t private_data_len)
{
	enum ndx_status st;

	if (c == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_reject: connector is NULL");
	st = conn_check_private_data("ndx_connector_reject", private_data, private_data_len,
	                             c->adapter->info.max_callee_data);
	if (st != NDX_OK)
		return st;
	return conn_reject(c, private_data, private_data_len);
}

enum ndx_status ndx_connector_cancel(struct ndx_connector *c)
{
	if (c == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_cancel: connector is NULL");
	conn_cancel(c);
	return NDX_OK;
}

void ndx_connector_close(struct ndx_connector *c)
{
	if (c == NULL)
		return;
	conn_close(c);
}
