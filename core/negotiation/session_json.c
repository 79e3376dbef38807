/* SPDX-License-Identifier: BSD-2-Clause */
/* The history of a session, as JSON for programs and as lines for people. */
#include <stdio.h>
#include <stdlib.h>

#include "base_json.h"
#include "history_json.h"
#include <ndx/spi/log.h>
#include "session.h"

static json_t *error_of(struct base_json *j, const struct ndx_session_error *e)
{
	json_t *to;

	if (e->status == NDX_OK)
		return json_null();
	to = json_object();
	base_json_text(j, to, "status", ndx_status_name(e->status));
	base_json_text(j, to, "layer", ndx_error_layer_name(e->layer));
	base_json_text(j, to, "plugin_error", ndx_plugin_error_name(e->plugin_error));
	base_json_put(j, to, "remote", json_boolean(e->remote));
	base_json_text(j, to, "stage", ndx_stage_name(e->stage));
	base_json_number(j, to, "round", e->round);
	if (e->of_queue_pair != 0)
		base_json_number(j, to, "queue_pair", e->queue_pair);
	base_json_text(j, to, "text", e->text);
	return to;
}

static json_t *agreement_of(struct base_json *j, const struct ndx_session *s)
{
	struct ndx_agreement a;
	json_t *to;

	if (ndx_session_get_agreement(s, NULL, NULL, &a) != NDX_OK)
		return json_null();
	to = json_object();
	base_json_number(j, to, "kind", a.kind);
	base_json_number(j, to, "mtu", a.mtu);
	base_json_number(j, to, "client_reads", a.client_reads);
	base_json_number(j, to, "server_reads", a.server_reads);
	return to;
}

static json_t *history_of(struct base_json *j, const struct ndx_session *s, uint64_t *dropped)
{
	size_t count = s->history.room;
	struct ndx_history_entry *entries = calloc(count, sizeof(*entries));
	json_t *to = json_array();
	uint64_t total = 0;

	if (entries == NULL) {
		j->failed = true;
		return to;
	}
	(void)ndx_session_get_history(s, entries, &count, &total);
	*dropped = total - count;
	for (size_t i = 0; i < count; i++)
		base_json_append(j, to, history_entry_json(j, &entries[i]));
	free(entries);
	return to;
}

enum ndx_status ndx_session_snapshot(const struct ndx_session *s, char **json)
{
	struct base_json j = {.failed = false};
	struct ndx_session_error error = {.size = sizeof(error)};
	uint64_t dropped = 0;
	json_t *history;
	json_t *root;
	char *text;

	if (s == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_snapshot: NULL argument");
	(void)ndx_session_get_error(s, &error);
	history = history_of(&j, s, &dropped);
	root = json_object();
	base_json_number(&j, root, "session", ndx_session_get_id(s));
	base_json_text(&j, root, "state", ndx_session_state_name(ndx_session_get_state(s)));
	base_json_text(&j, root, "plugin", ndx_variant_plugin_name(s->attr.variant));
	base_json_text(&j, root, "variant", ndx_variant_name(s->attr.variant));
	base_json_text(&j, root, "server", ndx_session_get_server(s));
	base_json_number(&j, root, "queue_pairs", ndx_session_get_queue_pair_count(s));
	base_json_put(&j, root, "error", error_of(&j, &error));
	base_json_put(&j, root, "agreed", agreement_of(&j, s));
	base_json_number(&j, root, "dropped", dropped);
	base_json_put(&j, root, "history", history);
	text = base_json_finish(&j, root);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_session_snapshot: out of memory");
	*json = text;
	return NDX_OK;
}

static void entry_text(const struct ndx_history_entry *e, char *text, size_t room)
{
	const double at = (double)e->at_us / 1e3;
	const double took = (double)e->duration_us / 1e3;
	const char *what = ndx_history_kind_name(e->kind);
	const char *stage = ndx_stage_name(e->stage);
	char outcome[64] = "";

	if (e->status != NDX_OK)
		(void)snprintf(outcome, sizeof(outcome), ": %s", ndx_status_name(e->status));
	switch (e->kind) {
	case NDX_HISTORY_CONNECT:
		(void)snprintf(text, room, "%10.3f ms  connect %s, %.3f ms%s", at, e->text, took,
		               outcome);
		break;
	case NDX_HISTORY_BACKOFF:
		(void)snprintf(text, room, "%10.3f ms  wait before the next attempt, %.3f ms", at,
		               took);
		break;
	case NDX_HISTORY_STAGE:
		(void)snprintf(text, room, "%10.3f ms  stage %s, %.3f ms%s", at, stage, took,
		               outcome);
		break;
	case NDX_HISTORY_PROOF:
		(void)snprintf(text, room, "%10.3f ms  path tried out: %s, %.3f ms", at, e->text,
		               took);
		break;
	case NDX_HISTORY_VERDICT:
		(void)snprintf(text, room, "%10.3f ms  path judged: %s%s", at, e->text, outcome);
		break;
	case NDX_HISTORY_HELLO:
		(void)snprintf(text, room, "%10.3f ms  hello, %u bytes out, %u in, %.3f ms", at,
		               e->bytes, e->bytes_in, took);
		break;
	case NDX_HISTORY_TLS:
		(void)snprintf(text, room, "%10.3f ms  handshake: %s, %.3f ms%s", at, e->text, took,
		               outcome);
		break;
	case NDX_HISTORY_ADD:
		(void)snprintf(text, room, "%10.3f ms  add: %s, %.3f ms%s", at, e->text, took,
		               outcome);
		break;
	case NDX_HISTORY_LOST:
		(void)snprintf(text, room, "%10.3f ms  lost: %s%s", at, e->text, outcome);
		break;
	case NDX_HISTORY_CALL:
		(void)snprintf(text, room,
		               "%10.3f ms  %s %u: call %s, %u bytes in, %u out, %.3f ms%s", at,
		               stage, e->round, e->text, e->bytes_in, e->bytes, took, outcome);
		break;
	case NDX_HISTORY_SENT:
	case NDX_HISTORY_RECEIVED:
	default:
		(void)snprintf(text, room, "%10.3f ms  %s %u: %s%s%s, %u bytes, %.3f ms%s", at,
		               stage, e->round, what, e->text[0] != '\0' ? " " : "", e->text,
		               e->kind == NDX_HISTORY_RECEIVED ? e->bytes_in : e->bytes, took,
		               outcome);
	}
}

const char *ndx_history_entry_text(const struct ndx_history_entry *e, char *text, size_t room)
{
	if (text == NULL || room == 0)
		return "";
	text[0] = '\0';
	if (e != NULL)
		entry_text(e, text, room);
	return text;
}
