/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares a session's transport with the connection that the session made, where the provider has no
 * connection manager. Session and connection alternate whole frames. While the session is idle, the
 * adapter's control thread reads goodbyes; when the session ends first, the connection keeps the
 * transport.
 */
#include "channel.h"
#include "connection.h"
#include "session.h"

#include "base_log.h"

enum ndx_status session_channel_open(struct ndx_session *s)
{
	struct wire *wire = NULL;
	enum ndx_status st;

	if (s->dialogue.own.kind != NDX_DESCRIPTION_VERBS_RC || s->attr.connector == NULL)
		return NDX_OK;
	if (s->link.fd < 0 && (s->link.plugin->table->flags & NDX_PLUGIN_DEVICE) != 0)
		return ndx_connector_set_oob_stream(s->attr.connector, NDX_NO_OOB_STREAM);
	if (s->link.fd < 0)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "the queue pair has no connection manager: the session's transport has "
		            "to be TCP, to carry its goodbyes");
	st = channel_create(s->attr.connector->adapter, s->link.fd, false, &s->channel, &wire);
	if (st != NDX_OK)
		return st;
	st = conn_direct_wire(s->attr.connector, wire);
	if (st == NDX_OK)
		return NDX_OK;
	channel_drop(s->channel);
	s->channel = NULL;
	return st;
}

enum ndx_status session_send(struct ndx_session *s, const void *data, size_t length,
                             uint64_t deadline_ns)
{
	uint8_t first[CHANNEL_OUT];
	enum ndx_status st = NDX_OK;
	size_t n;

	if (s->channel == NULL)
		return link_send(&s->link, data, length, deadline_ns);
	n = channel_hold(s->channel, first);
	if (n > 0)
		st = link_send(&s->link, first, n, deadline_ns);
	if (st == NDX_OK)
		st = link_send(&s->link, data, length, deadline_ns);
	channel_release(s->channel);
	return st;
}

void session_channel_pause(struct ndx_session *s)
{
	if (s->channel != NULL)
		s->inbox_used = channel_pause(s->channel, s->inbox);
}

void session_channel_listen(struct ndx_session *s)
{
	if (s->channel != NULL)
		channel_listen(s->channel);
}

bool session_channel_take(struct ndx_session *s, const struct frame *f)
{
	if (s->channel == NULL || f->type != FRAME_GOODBYE || f->length > 0)
		return false;
	channel_heard(s->channel, f->flags & FRAME_ABORTED ? WIRE_ABORT : WIRE_GOODBYE);
	return true;
}

void session_channel_break(struct ndx_session *s)
{
	if (s->channel != NULL)
		channel_heard(s->channel, WIRE_LOST);
}

void session_channel_leave(struct ndx_session *s)
{
	struct channel *ch = s->channel;

	s->channel = NULL;
	if (ch != NULL && channel_leave(ch, s->state != NDX_SESSION_CONNECTED))
		s->link.fd = -1; /* the connection owns it now */
}
