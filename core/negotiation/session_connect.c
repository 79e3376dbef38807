/* SPDX-License-Identifier: BSD-2-Clause */
/* A session connects to a server: attempts, pauses, fail-over, hello. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "session.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

enum ndx_status session_read_frame(struct ndx_session *s, struct frame *frame, uint64_t deadline_ns,
                                   enum ndx_error_layer *layer)
{
	const char *why = NULL;
	size_t used;
	size_t got;

	for (;;) {
		enum ndx_status st;

		switch (frame_parse(s->inbox, s->inbox_used, s->dialogue.limits.max_message, frame,
		                    &used, &why)) {
		case FRAME_WHOLE:
			return NDX_OK;
		case FRAME_BAD:
			*layer = NDX_LAYER_FRAMEWORK;
			return fail(NDX_E_REMOTE_ERROR, 0, "from the server came %s", why);
		case FRAME_MORE:
			break;
		}
		/* Never read past this frame: the bytes behind it belong to the next read. */
		st = link_receive(&s->link, s->inbox + s->inbox_used, used - s->inbox_used, &got,
		                  deadline_ns);
		*layer = NDX_LAYER_TRANSPORT;
		if (st != NDX_OK)
			return st;
		s->inbox_used += got;
	}
}

/* Handle the server's answer to hello. */
static enum ndx_status take_welcome(struct ndx_session *s, const struct frame *f,
                                    enum ndx_error_layer *layer)
{
	struct frame_welcome welcome;
	struct frame_error error;
	const char *why;

	*layer = NDX_LAYER_FRAMEWORK;
	if (f->type == FRAME_ERROR && frame_parse_error(f, &error, &why))
		return fail(error.status == NDX_E_NOT_FOUND || error.status == NDX_E_NOT_SUPPORTED
		                    ? (enum ndx_status)error.status
		                    : NDX_E_CONNECTION_REFUSED,
		            0, "the server refuses: %s", error.text);
	if (f->type != FRAME_WELCOME || !frame_parse_welcome(f, &welcome, &why) ||
	    welcome.max_message < FRAME_ERROR_SIZE_MAX)
		return fail(NDX_E_REMOTE_ERROR, 0, "the server did not answer with a welcome");
	dialogue_limit(&s->dialogue, welcome.max_message);
	return NDX_OK;
}

static enum ndx_status hello(struct ndx_session *s, bool again, uint64_t deadline_ns,
                             enum ndx_error_layer *layer)
{
	struct frame f = {.type = FRAME_HELLO, .flags = again ? FRAME_RESUMED : 0};
	struct frame_hello h = {.max_message = s->dialogue.limits.max_message};
	uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE];
	enum ndx_status st;

	memcpy(h.session, s->cookie, sizeof(h.session));
	(void)snprintf(h.plugin, sizeof(h.plugin), "%s", ndx_variant_plugin_name(s->attr.variant));
	(void)snprintf(h.variant, sizeof(h.variant), "%s", ndx_variant_name(s->attr.variant));
	f.stage = again ? s->dialogue.view.stage : NDX_STAGE_INFO;
	f.length = frame_write_hello(bytes + FRAME_HEADER, &h);
	frame_write_header(bytes, &f);
	*layer = NDX_LAYER_TRANSPORT;
	st = link_send(&s->link, bytes, sizeof(bytes), deadline_ns);
	if (st != NDX_OK)
		return st;
	s->inbox_used = 0;
	st = session_read_frame(s, &f, deadline_ns, layer);
	if (st != NDX_OK)
		return st;
	st = take_welcome(s, &f, layer);
	s->inbox_used = 0;
	return st;
}

/* One attempt at one server. */
static enum ndx_status attempt(struct ndx_session *s, const char *server, bool again,
                               enum ndx_error_layer *layer)
{
	const uint64_t since = ndxp_now_ns();
	const uint64_t deadline =
		earlier(s->deadline_ns, ndxp_deadline(s->attr.connect_timeout_ms));
	struct ndx_history_entry entry = {.kind = NDX_HISTORY_CONNECT,
	                                  .stage = s->dialogue.view.stage};
	enum ndx_status st;

	*layer = NDX_LAYER_TRANSPORT;
	st = link_connect(&s->link, server, deadline);
	if (st == NDX_OK) {
		st = hello(s, again, deadline, layer);
		if (st == NDX_E_IO_TIMEOUT)
			(void)fail(st, 0, "server %.128s does not answer within %u ms", server,
			           s->attr.connect_timeout_ms);
	}
	entry.status = st;
	history_add(&s->history, &entry, since, server);
	if (st != NDX_OK) {
		link_close(&s->link);
		return st;
	}
	pthread_mutex_lock(&s->lock);
	s->server = server;
	pthread_mutex_unlock(&s->lock);
	log_info("session %llu: connected to %s", (unsigned long long)s->id, server);
	return NDX_OK;
}

/* Wait; the pause doubles each time and is shortened at random, so that clients do not
 * synchronise. */
static bool pause_before(struct ndx_session *s, uint32_t failures)
{
	const uint64_t since = ndxp_now_ns();
	const struct ndx_history_entry entry = {.kind = NDX_HISTORY_BACKOFF,
	                                        .stage = s->dialogue.view.stage};
	uint64_t ms = s->attr.backoff_ms;
	uint32_t random = 0;
	bool on;

	for (uint32_t i = 1; i < failures && ms < s->attr.backoff_most_ms; i++)
		ms *= 2;
	if (ms > s->attr.backoff_most_ms)
		ms = s->attr.backoff_most_ms;
	(void)ndxp_random(&random, sizeof(random));
	ms -= ms / 2 * (random % 1024) / 1024;
	on = link_pause(&s->link, earlier(s->deadline_ns, since + ms * 1000000));
	history_add(&s->history, &entry, since, NULL);
	return on;
}

/* Whether a further attempt is useless: the server has no such variant, or is no NDX server. */
static bool is_lasting(enum ndx_status st, enum ndx_error_layer layer)
{
	return layer == NDX_LAYER_FRAMEWORK && st != NDX_E_CONNECTION_REFUSED;
}

/* Try each server once, except those that were given up; *left counts the others. */
static enum ndx_status try_each(struct ndx_session *s, bool again, size_t *left,
                                enum ndx_error_layer *layer)
{
	enum ndx_status st = NDX_E_IO_TIMEOUT;

	for (size_t i = 0; i < s->attr.server_count && ndxp_now_ns() < s->deadline_ns; i++) {
		if (s->given_up[i])
			continue;
		st = attempt(s, s->servers[i], again, layer);
		if (st == NDX_OK || st == NDX_E_CANCELED)
			return st;
		log_warn(0, "session %llu: %s: %s", (unsigned long long)s->id, s->servers[i],
		         ndx_last_error());
		s->given_up[i] = is_lasting(st, *layer);
		*left -= s->given_up[i];
	}
	return st;
}

/* Try all servers, with a pause before each further round, until one answers or further rounds are
 * useless. */
static enum ndx_status try_all(struct ndx_session *s, bool again, enum ndx_error_layer *layer)
{
	uint32_t failures = s->resumptions;
	size_t left = s->attr.server_count;
	enum ndx_status st = NDX_E_IO_TIMEOUT;

	s->resumptions += again;
	memset(s->given_up, 0, left * sizeof(*s->given_up));
	for (uint32_t round = 0; round < s->attr.attempts && left > 0; round++) {
		/* A server that welcomes and then closes at once must not be tried without a
		 * pause. */
		failures += round > 0 || again;
		if (failures > 0 && !pause_before(s, failures))
			return NDX_E_CANCELED;
		if (ndxp_now_ns() >= s->deadline_ns)
			return st;
		st = try_each(s, again, &left, layer);
		if (st == NDX_OK || st == NDX_E_CANCELED)
			return st;
	}
	return st;
}

enum ndx_status session_reach(struct ndx_session *s, bool again)
{
	enum ndx_error_layer layer = NDX_LAYER_TRANSPORT;
	enum ndx_status st;
	char text[256];

	session_set_state(s, NDX_SESSION_CONNECTING);
	st = try_all(s, again, &layer);
	if (st == NDX_OK)
		return NDX_OK;
	if (st == NDX_E_CANCELED) {
		(void)snprintf(text, sizeof(text), "cancelled while connecting");
	} else if (ndxp_now_ns() >= s->deadline_ns) {
		st = NDX_E_IO_TIMEOUT;
		layer = NDX_LAYER_FRAMEWORK;
		(void)snprintf(text, sizeof(text),
		               "the session's time, %u ms, is over while connecting: %.160s",
		               s->attr.session_timeout_ms, ndx_last_error());
	} else {
		(void)snprintf(text, sizeof(text), "%.255s", ndx_last_error());
	}
	return session_fail(s, layer, st, text);
}
