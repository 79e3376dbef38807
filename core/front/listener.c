/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of listeners. */
#include <ndx/listener.h>

#include <ndx/spi/log.h>
#include "base_ov.h"
#include <ndx/spi/sockaddr.h>
#include "connection.h"

enum ndx_status ndx_listener_create(struct ndx_adapter *adapter, struct ndx_listener **out)
{
	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_listener_create: NULL argument");
	return listener_create(adapter, out);
}

enum ndx_status ndx_listener_bind(struct ndx_listener *l, const struct sockaddr *address,
                                  socklen_t address_len)
{
	if (l == NULL || !ndxp_sockaddr_valid(address, address_len))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_listener_bind: listener is NULL, or the address is neither IPv4 "
		            "nor IPv6");
	return listener_bind(l, address, address_len);
}

enum ndx_status ndx_listener_listen(struct ndx_listener *l, uint32_t backlog)
{
	if (l == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_listener_listen: listener is NULL");
	return listener_listen(l, backlog);
}

enum ndx_status ndx_listener_get_local_address(struct ndx_listener *l, struct sockaddr *address,
                                               socklen_t *length)
{
	if (l == NULL || length == NULL || (address == NULL && *length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_listener_get_local_address: NULL argument");
	return listener_get_local_address(l, address, length);
}

enum ndx_status ndx_listener_get_connection_request(struct ndx_listener *l, struct ndx_connector *c,
                                                    struct ndx_overlapped *ov)
{
	enum ndx_status st;

	if (l == NULL || c == NULL || c->adapter != l->adapter)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_listener_get_connection_request: NULL argument, or the connector "
		            "belongs to another adapter");
	adapter_lock(l->adapter);
	if (!l->listening)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_listener_get_connection_request: not listening");
	else if (c->phase != CONN_NEW || c->bound)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_listener_get_connection_request: the connector is not new; create "
		          "one for each request");
	else
		st = base_ov_begin_call(ov, l->adapter->loop,
		                        "ndx_listener_get_connection_request");
	if (st == NDX_OK) {
		st = NDX_PENDING;
		c->ov = ov;
		conn_enter(c, CONN_AWAIT_REQUEST, "GET_REQUEST", &conn_fine);
		c->listener = l;
		c->asked_id = l->id;
		ndxp_list_add(&l->wanted, &c->wanted);
		adapter_post(l->adapter, &l->work);
	}
	adapter_unlock(l->adapter);
	return st;
}

enum ndx_status ndx_listener_cancel(struct ndx_listener *l)
{
	if (l == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_listener_cancel: listener is NULL");
	listener_cancel(l);
	return NDX_OK;
}

void ndx_listener_close(struct ndx_listener *l)
{
	if (l != NULL)
		listener_close(l);
}
