/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points that read the state of a connector. */
#include <ndx/connector.h>

#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "base_log.h"
#include "connection.h"

const char *ndx_disconnect_reason_name(enum ndx_disconnect_reason reason)
{
	switch (reason) {
	case NDX_DISCONNECT_NONE:
		return "none";
	case NDX_DISCONNECT_GRACEFUL:
		return "graceful";
	case NDX_DISCONNECT_ABORTED:
		return "aborted";
	case NDX_DISCONNECT_UNKNOWN:
		return "unknown";
	}
	return "?";
}

enum ndx_status ndx_connector_get_read_limits(struct ndx_connector *c, uint32_t *inbound,
                                              uint32_t *outbound)
{
	enum ndx_status st = NDX_OK;

	if (c == NULL || inbound == NULL || outbound == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_get_read_limits: NULL argument");
	adapter_lock(c->adapter);
	if (c->peer_known && c->phase != CONN_FAILED && c->phase != CONN_NEW) {
		*inbound = c->native->inbound_read_limit;
		*outbound = c->native->outbound_read_limit;
	} else {
		st = fail(NDX_E_CONNECTION_INVALID, 0,
		          "ndx_connector_get_read_limits: nothing agreed yet");
	}
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_get_private_data(struct ndx_connector *c, void *buffer,
                                               size_t *length)
{
	enum ndx_status st = NDX_OK;
	size_t room;

	if (c == NULL || length == NULL || (buffer == NULL && *length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_get_private_data: NULL argument");
	adapter_lock(c->adapter);
	room = *length;
	if (!c->peer_known) {
		st = fail(NDX_E_CONNECTION_INVALID, 0,
		          "ndx_connector_get_private_data: the peer has said nothing yet");
	} else {
		*length = c->peer.private_data_len;
		if (room < *length)
			st = ndxp_fail_room("ndx_connector_get_private_data",
			                    "bytes of private data", *length, room);
		else if (*length > 0)
			memcpy(buffer, c->peer.private_data, *length);
	}
	adapter_unlock(c->adapter);
	return st;
}

static enum ndx_status copy_address(const char *call, struct ndx_connector *c,
                                    const struct sockaddr_storage *from, struct sockaddr *address,
                                    socklen_t *length)
{
	enum ndx_status st;

	if (c == NULL || length == NULL || (address == NULL && *length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	adapter_lock(c->adapter);
	if (from->ss_family == AF_UNSPEC)
		st = fail(NDX_E_CONNECTION_INVALID, 0, "%s: not bound and not connected", call);
	else
		st = ndxp_sockaddr_copy_out(call, from, address, length);
	adapter_unlock(c->adapter);
	return st;
}

enum ndx_status ndx_connector_get_local_address(struct ndx_connector *c, struct sockaddr *address,
                                                socklen_t *length)
{
	return copy_address("ndx_connector_get_local_address", c, c == NULL ? NULL : &c->local,
	                    address, length);
}

enum ndx_status ndx_connector_get_peer_address(struct ndx_connector *c, struct sockaddr *address,
                                               socklen_t *length)
{
	return copy_address("ndx_connector_get_peer_address", c,
	                    c == NULL ? NULL : &c->native->peer, address, length);
}

enum ndx_disconnect_reason ndx_connector_get_disconnect_reason(struct ndx_connector *c)
{
	enum ndx_disconnect_reason reason;

	if (c == NULL)
		return NDX_DISCONNECT_NONE;
	adapter_lock(c->adapter);
	reason = conn_reason(c);
	adapter_unlock(c->adapter);
	return reason;
}

enum ndx_status ndx_connector_get_error_text(struct ndx_connector *c, char *text, size_t *length)
{
	char whole[BASE_FAILURE_TEXT];
	size_t room;

	if (c == NULL || length == NULL || (text == NULL && *length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_get_error_text: NULL argument");
	adapter_lock(c->adapter);
	conn_explain(c, whole, sizeof(whole));
	adapter_unlock(c->adapter);
	room = *length;
	*length = strlen(whole) + 1;
	if (room < *length)
		return ndxp_fail_room("ndx_connector_get_error_text", "bytes of the text", *length,
		                      room);
	memcpy(text, whole, *length);
	return NDX_OK;
}

uint32_t ndx_connector_get_id(const struct ndx_connector *connector)
{
	return connector == NULL ? 0 : connector->id;
}

enum ndx_status ndx_connector_get_history(struct ndx_connector *c, struct ndx_transition *list,
                                          size_t *count, uint64_t *total)
{
	if (c == NULL || count == NULL || (list == NULL && *count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connector_get_history: NULL argument");
	adapter_lock(c->adapter);
	conn_get_history(c, list, count, total);
	adapter_unlock(c->adapter);
	return NDX_OK;
}
