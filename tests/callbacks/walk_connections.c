/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors, listeners, the helpers. */
#include "walk.h"

#include <netinet/in.h>

static enum ndx_status call_accept_from(struct scene *s)
{
	struct ndx_connector *out;

	return ndx_accept_from(s->own, s->listener, s->qp, NULL, 0, PATIENCE_MS, &out);
}

static enum ndx_status call_get_request(struct scene *s)
{
	struct ndx_connector *out;

	return ndx_get_request(s->own, s->listener, PATIENCE_MS, &out);
}

static enum ndx_status call_accept(struct scene *s)
{
	return ndx_accept(s->connector, s->qp, NULL, 0, PATIENCE_MS);
}

static enum ndx_status call_connect_to(struct scene *s)
{
	struct ndx_connector *out;

	return ndx_connect_to(s->own, s->qp, (struct sockaddr *)&s->far_address, s->far_address_len,
	                      NULL, 0, PATIENCE_MS, &out);
}

static enum ndx_status call_disconnect(struct scene *s)
{
	return ndx_disconnect(s->up, PATIENCE_MS);
}

static enum ndx_status call_listen_on(struct scene *s)
{
	struct sockaddr_storage any = s->address;
	struct ndx_listener *l = NULL;
	enum ndx_status st;

	if (any.ss_family == AF_INET)
		((struct sockaddr_in *)&any)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&any)->sin6_port = 0;
	st = ndx_listen_on(s->own, (struct sockaddr *)&any, s->address_len, 0, &l);
	ndx_listener_close(l);
	return st;
}

static enum ndx_status call_connect_attr_init(struct scene *s)
{
	struct ndx_connect_attr attr;

	(void)s;
	ndx_connect_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_connector_attr_init(struct scene *s)
{
	struct ndx_connector_attr attr;

	(void)s;
	ndx_connector_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_connector_create(struct scene *s)
{
	struct ndx_connector *c = NULL;
	enum ndx_status st = ndx_connector_create(s->own, NULL, &c);

	ndx_connector_close(c);
	return st;
}

static enum ndx_status call_connector_close(struct scene *s)
{
	ndx_connector_close(s->up);
	s->up = NULL;
	return NDX_OK;
}

static enum ndx_status call_connector_cancel(struct scene *s)
{
	return ndx_connector_cancel(s->up);
}

static enum ndx_status call_connector_bind(struct scene *s)
{
	struct sockaddr_storage any = s->address;

	if (any.ss_family == AF_INET)
		((struct sockaddr_in *)&any)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&any)->sin6_port = 0;
	return ndx_connector_bind(s->connector, (struct sockaddr *)&any, s->address_len);
}

static enum ndx_status call_connector_connect(struct scene *s)
{
	return ndx_connector_connect(s->connector, s->qp, (struct sockaddr *)&s->far_address,
	                             s->far_address_len, NULL, &s->ov);
}

static enum ndx_status call_connector_complete_connect(struct scene *s)
{
	return ndx_connector_complete_connect(s->connector, &s->ov);
}

static enum ndx_status call_connector_accept(struct scene *s)
{
	return ndx_connector_accept(s->connector, s->qp, NULL, &s->ov);
}

static enum ndx_status call_connector_reject(struct scene *s)
{
	return ndx_connector_reject(s->connector, NULL, 0);
}

static enum ndx_status call_connector_describe(struct scene *s)
{
	struct ndx_peer_description out;

	return ndx_connector_describe(s->connector, s->qp, NDX_ROLE_CLIENT, 0, 0, &out);
}

static enum ndx_status call_connector_connect_peer(struct scene *s)
{
	struct ndx_peer_description own;
	enum ndx_status st;

	st = ndx_connector_describe(s->connector, s->qp, NDX_ROLE_SERVER, 0, 0, &own);
	if (st != NDX_OK)
		return st;
	st = ndx_connector_connect_peer(s->connector, &own, &s->ov);
	/* itself is no peer: what matters is that the answer comes at once */
	return st == NDX_PENDING ? NDX_PENDING : NDX_E_INVALID_CONFIG;
}

static enum ndx_status call_connector_set_oob_stream(struct scene *s)
{
	return ndx_connector_set_oob_stream(s->connector, NDX_NO_OOB_STREAM);
}

static enum ndx_status call_connector_disconnect(struct scene *s)
{
	return ndx_connector_disconnect(s->up, &s->ov);
}

static enum ndx_status call_connector_notify_disconnect(struct scene *s)
{
	return ndx_connector_notify_disconnect(s->up, &s->ov);
}

static enum ndx_status call_connector_get_disconnect_reason(struct scene *s)
{
	return ndx_connector_get_disconnect_reason(s->up) == NDX_DISCONNECT_NONE
	               ? NDX_OK
	               : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_connector_get_error_text(struct scene *s)
{
	char text[64];
	size_t length = sizeof(text);

	return ndx_connector_get_error_text(s->up, text, &length);
}

static enum ndx_status call_connector_get_history(struct scene *s)
{
	size_t count = 0;
	uint64_t total;

	return ndx_connector_get_history(s->up, NULL, &count, &total);
}

static enum ndx_status call_connector_get_id(struct scene *s)
{
	return ndx_connector_get_id(s->up) != 0 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_connector_get_local_address(struct scene *s)
{
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);

	return ndx_connector_get_local_address(s->up, (struct sockaddr *)&at, &length);
}

static enum ndx_status call_connector_get_peer_address(struct scene *s)
{
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);

	return ndx_connector_get_peer_address(s->up, (struct sockaddr *)&at, &length);
}

static enum ndx_status call_connector_get_private_data(struct scene *s)
{
	size_t length = 0;

	return ndx_connector_get_private_data(s->up, NULL, &length);
}

static enum ndx_status call_connector_get_read_limits(struct scene *s)
{
	uint32_t in;
	uint32_t out;

	return ndx_connector_get_read_limits(s->up, &in, &out);
}

static enum ndx_status call_listener_create(struct scene *s)
{
	struct ndx_listener *l = NULL;
	enum ndx_status st = ndx_listener_create(s->own, &l);

	ndx_listener_close(l);
	return st;
}

static enum ndx_status call_listener_bind(struct scene *s)
{
	struct sockaddr_storage any = s->address;

	if (any.ss_family == AF_INET)
		((struct sockaddr_in *)&any)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&any)->sin6_port = 0;
	return ndx_listener_bind(s->deaf, (struct sockaddr *)&any, s->address_len);
}

static enum ndx_status call_listener_listen(struct scene *s)
{
	return ndx_listener_listen(s->deaf, 0);
}

static enum ndx_status call_listener_close(struct scene *s)
{
	ndx_listener_close(s->listener);
	s->listener = NULL;
	return NDX_OK;
}

static enum ndx_status call_listener_cancel(struct scene *s)
{
	return ndx_listener_cancel(s->listener);
}

static enum ndx_status call_listener_get_connection_request(struct scene *s)
{
	return ndx_listener_get_connection_request(s->listener, s->connector, &s->ov);
}

static enum ndx_status call_listener_get_local_address(struct scene *s)
{
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);

	return ndx_listener_get_local_address(s->listener, (struct sockaddr *)&at, &length);
}

const struct row connection_rows[] = {
	{"ndx_accept_from", call_accept_from, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_get_request", call_get_request, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_accept", call_accept, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_connect_attr_init_sized", call_connect_attr_init, NDX_OK, NDX_OK},
	{"ndx_connect_to", call_connect_to, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_disconnect", call_disconnect, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_listen_on", call_listen_on, NDX_OK, NDX_OK},
	{"ndx_connector_attr_init_sized", call_connector_attr_init, NDX_OK, NDX_OK},
	{"ndx_connector_create", call_connector_create, NDX_OK, NDX_OK},
	{"ndx_connector_close", call_connector_close, NDX_OK, NDX_OK},
	{"ndx_connector_cancel", call_connector_cancel, NDX_OK, NDX_OK},
	{"ndx_connector_bind", call_connector_bind, NDX_OK, NDX_OK},
	{"ndx_connector_connect", call_connector_connect, NDX_PENDING, NDX_OK},
	{"ndx_connector_complete_connect", call_connector_complete_connect,
         NDX_E_CONNECTION_INVALID, NDX_OK},
	{"ndx_connector_accept", call_connector_accept, NDX_E_CONNECTION_INVALID, NDX_OK},
	{"ndx_connector_reject", call_connector_reject, NDX_E_CONNECTION_INVALID, NDX_OK},
	{"ndx_connector_describe", call_connector_describe, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_connector_connect_peer", call_connector_connect_peer, NDX_PENDING,
         NDX_E_INVALID_CONFIG},
	{"ndx_connector_set_oob_stream", call_connector_set_oob_stream, NDX_E_INVALID_DEVICE_STATE,
         NDX_E_NOT_SUPPORTED},
	{"ndx_connector_disconnect", call_connector_disconnect, NDX_PENDING, NDX_OK},
	{"ndx_connector_notify_disconnect", call_connector_notify_disconnect, NDX_PENDING, NDX_OK},
	{"ndx_connector_get_disconnect_reason", call_connector_get_disconnect_reason, NDX_OK,
         NDX_OK},
	{"ndx_connector_get_error_text", call_connector_get_error_text, NDX_OK, NDX_OK},
	{"ndx_connector_get_history", call_connector_get_history, NDX_OK, NDX_E_BUFFER_OVERFLOW},
	{"ndx_connector_get_id", call_connector_get_id, NDX_OK, NDX_OK},
	{"ndx_connector_get_local_address", call_connector_get_local_address, NDX_OK, NDX_OK},
	{"ndx_connector_get_peer_address", call_connector_get_peer_address, NDX_OK, NDX_OK},
	{"ndx_connector_get_private_data", call_connector_get_private_data, NDX_OK, NDX_OK},
	{"ndx_connector_get_read_limits", call_connector_get_read_limits, NDX_OK, NDX_OK},
	{"ndx_listener_create", call_listener_create, NDX_OK, NDX_OK},
	{"ndx_listener_bind", call_listener_bind, NDX_OK, NDX_OK},
	{"ndx_listener_listen", call_listener_listen, NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_listener_close", call_listener_close, NDX_OK, NDX_OK},
	{"ndx_listener_cancel", call_listener_cancel, NDX_OK, NDX_OK},
	{"ndx_listener_get_connection_request", call_listener_get_connection_request, NDX_PENDING,
         NDX_OK},
	{"ndx_listener_get_local_address", call_listener_get_local_address, NDX_OK, NDX_OK},
};
const size_t connection_row_count = sizeof(connection_rows) / sizeof(connection_rows[0]);
