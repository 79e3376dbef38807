/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares a session's transport with the connection that the session made, where the provider has no
 * connection manager. Session and connection alternate whole frames. While the session is idle, the
 * adapter's control thread reads goodbyes; when the session ends first, the connection keeps the
 * transport.
 */
#include "oob_stream.h"
#include "connection.h"
#include "session.h"

#include <ndx/spi/log.h>

enum ndx_status session_oob_open(struct ndx_session *s)
{
	struct oob_link *link = NULL;
	enum ndx_status st;

	if (s->dialogue.own.kind != NDX_DESCRIPTION_VERBS_RC || s->attr.connector == NULL)
		return NDX_OK;
	if (s->link.fd < 0 && (s->link.plugin->table->flags & NDX_PLUGIN_DEVICE) != 0)
		return ndx_connector_set_oob_stream(s->attr.connector, NDX_NO_OOB_STREAM);
	if (s->link.fd < 0)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "the queue pair has no connection manager: the session's transport has "
		            "to be TCP, to carry its goodbyes");
	st = oob_stream_create(s->attr.connector->adapter, s->link.fd, false, &s->oob, &link);
	if (st != NDX_OK)
		return st;
	st = conn_oob_set_link(s->attr.connector, link);
	if (st == NDX_OK)
		return NDX_OK;
	oob_stream_drop(s->oob);
	s->oob = NULL;
	return st;
}

enum ndx_status session_send(struct ndx_session *s, const void *data, size_t length,
                             uint64_t deadline_ns)
{
	uint8_t first[OOB_STREAM_OUT];
	enum ndx_status st = NDX_OK;
	size_t n;

	if (s->oob == NULL)
		return link_send(&s->link, data, length, deadline_ns);
	n = oob_stream_hold(s->oob, first);
	if (n > 0)
		st = link_send(&s->link, first, n, deadline_ns);
	if (st == NDX_OK)
		st = link_send(&s->link, data, length, deadline_ns);
	oob_stream_release(s->oob);
	return st;
}

void session_oob_pause(struct ndx_session *s)
{
	if (s->oob != NULL)
		s->inbox_used = oob_stream_pause(s->oob, s->inbox);
}

void session_oob_listen(struct ndx_session *s)
{
	if (s->oob != NULL)
		oob_stream_listen(s->oob);
}

bool session_oob_handle(struct ndx_session *s, const struct frame *f)
{
	if (s->oob == NULL || f->type != FRAME_GOODBYE || f->length > 0)
		return false;
	oob_stream_received(s->oob, f->flags & FRAME_ABORTED ? OOB_ABORT : OOB_GOODBYE);
	return true;
}

void session_oob_break(struct ndx_session *s)
{
	if (s->oob != NULL)
		oob_stream_received(s->oob, OOB_LOST);
}

void session_oob_leave(struct ndx_session *s)
{
	struct oob_stream *os = s->oob;

	s->oob = NULL;
	if (os != NULL && oob_stream_leave(os, s->state != NDX_SESSION_CONNECTED))
		s->link.fd = -1; /* the connection owns it now */
}
