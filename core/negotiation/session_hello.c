/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client says in its hello, and the server in its answer; and how it is transported. Loop
 * thread. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "many.h"
#include "session.h"

/* The transport itself has to end an attempt in time, and says why. */
#define RELAY_GRACE_MS 250u

/* Whether this end can send lost frames again. What TLS has bound to its connection cannot go on
 * over another one. */
static bool can_replay(const struct ndx_session *s)
{
	return s->tls == NULL && s->driver.stream == NULL && s->many == NULL &&
	       s->attr.variant->table->ops->reset != NULL;
}

void session_write_hello(struct ndx_session *s)
{
	const bool again = s->reach.again || (s->greeted && can_replay(s));
	struct frame f = {.type = FRAME_HELLO,
	                  .flags = (uint8_t)((again ? FRAME_RESUMED : 0) |
	                                     (can_replay(s) ? FRAME_REPLAYS : 0) |
	                                     (s->many != NULL ? FRAME_ADDS : 0))};
	struct frame_hello h = {.max_message = s->dialogue.limits.max_message,
	                        .queue_pairs = s->many != NULL ? s->many->count : 1};
	uint8_t *bytes = s->reach.hello;

	memcpy(h.session, s->cookie, sizeof(h.session));
	(void)snprintf(h.plugin, sizeof(h.plugin), "%s", ndx_variant_plugin_name(s->attr.variant));
	(void)snprintf(h.variant, sizeof(h.variant), "%s", ndx_variant_name(s->attr.variant));
	f.stage = s->reach.again ? s->dialogue.view.stage : NDX_STAGE_INFO;
	f.round = s->reach.again ? replay_count(&s->driver.replay) : 0;
	f.numbered = s->many != NULL;
	f.length = frame_write_hello(bytes + FRAME_HEADER, &h);
	s->reach.hello_length = FRAME_HEADER + f.length;
	frame_write_header(bytes, &f);
}

/* A status of the server that a further attempt does not change. */
static bool is_lasting_word(uint32_t status)
{
	const enum ndx_status st = (enum ndx_status)status;

	return st == NDX_E_NOT_FOUND || st == NDX_E_NOT_SUPPORTED || st == NDX_E_INVALID_CONFIG;
}

/* The server's answer to a session that had another transport before. */
static bool take_resumed(struct ndx_session *s, const struct frame *f)
{
	s->reach.resumed = (f->flags & FRAME_RESUMED) != 0;
	s->reach.peer_received = f->round;
	/* Stage info may begin anew at a server that does not know the session. */
	return s->reach.resumed || s->dialogue.view.stage == NDX_STAGE_INFO;
}

enum ndx_status session_take_welcome(struct ndx_session *s, const struct frame *f)
{
	struct frame_welcome welcome;
	struct frame_error error;
	const char *why;

	if (f->type == FRAME_ERROR && frame_parse_error(f, &error, &why) &&
	    many_is_unknown(s, &error))
		return fail(NDX_E_NOT_SUPPORTED, 0, "%s%.80s", many_unknown, error.text);
	if (f->type == FRAME_ERROR && frame_parse_error(f, &error, &why))
		return fail(is_lasting_word((uint32_t)error.status) ? (enum ndx_status)error.status
		                                                    : NDX_E_CONNECTION_REFUSED,
		            0, "the server refuses: %s", error.text);
	if (f->type != FRAME_WELCOME || !frame_parse_welcome(f, &welcome, &why) ||
	    welcome.max_message < FRAME_ERROR_SIZE_MAX)
		return fail(NDX_E_REMOTE_ERROR, 0, "the server did not answer with a welcome");
	if (s->reach.again && s->driver.replay.on && !take_resumed(s, f))
		return fail(NDX_E_REMOTE_ERROR, 0, "the server does not know the session any more");
	if (!s->reach.resumed)
		dialogue_limit(&s->dialogue, welcome.max_message);
	if (!s->reach.again || (s->driver.replay.on && !s->reach.resumed))
		replay_begin(&s->driver.replay, can_replay(s) && (f->flags & FRAME_REPLAYS) != 0);
	if (s->many != NULL)
		s->many->adds = (f->flags & FRAME_ADDS) != 0;
	return driver_bind(s) ? NDX_OK : fail(NDX_E_NO_MEMORY, 0, "no key of the channel of TLS");
}

/* ---- the history of connecting ---- */

void session_record_pause(struct ndx_session *s, enum ndx_status st)
{
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_BACKOFF, .stage = s->dialogue.view.stage, .status = st};

	history_add(&s->history, &entry, s->reach.since_ns, NULL);
}

void session_record_attempt(struct ndx_session *s, enum ndx_status st)
{
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_CONNECT, .stage = s->dialogue.view.stage, .status = st};

	history_add(&s->history, &entry, s->reach.since_ns, s->servers[s->reach.index]);
}

/* ---- the transport of a plugin ---- */

bool session_has_relay(const struct ndx_session *s)
{
	return s->link.table != NULL && (s->link.plugin->table->flags & NDX_PLUGIN_DEVICE) == 0;
}

uint32_t session_attempt_ms(const struct ndx_session *s)
{
	const uint32_t ms = s->attr.connect_timeout_ms;

	return session_has_relay(s) && ms < UINT32_MAX - RELAY_GRACE_MS ? ms + RELAY_GRACE_MS : ms;
}
