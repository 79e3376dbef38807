/* SPDX-License-Identifier: BSD-2-Clause */
/* The history of a session, as JSON for programs and as lines for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base_log.h"
#include "session.h"

/* A text of a peer or a plugin may not be UTF-8. */
static json_t *plain(const char *value)
{
	char text[sizeof(((struct ndx_session_error *)0)->text)];

	(void)snprintf(text, sizeof(text), "%s", value);
	for (char *p = text; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return json_string(text);
}

static json_t *json_of_error(const struct ndx_session_error *e)
{
	if (e->status == NDX_OK)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:i, s:o}", "status",
	                 ndx_status_name(e->status), "layer", ndx_error_layer_name(e->layer),
	                 "plugin_error", ndx_plugin_error_name(e->plugin_error), "remote",
	                 (int)e->remote, "stage", ndx_stage_name(e->stage), "round", (int)e->round,
	                 "text", plain(e->text));
}

static json_t *json_of_agreement(const struct ndx_session *s)
{
	struct ndx_agreement a;

	if (ndx_session_get_agreement(s, NULL, NULL, &a) != NDX_OK)
		return json_null();
	return json_pack("{s:i, s:I, s:I, s:I}", "kind", (int)a.kind, "mtu", (json_int_t)a.mtu,
	                 "client_reads", (json_int_t)a.client_reads, "server_reads",
	                 (json_int_t)a.server_reads);
}

static json_t *json_of_entry(const struct ndx_history_entry *e)
{
	return json_pack("{s:I, s:I, s:s, s:s, s:I, s:I, s:s, s:o}", "at_us", (json_int_t)e->at_us,
	                 "duration_us", (json_int_t)e->duration_us, "what",
	                 ndx_history_kind_name(e->kind), "stage", ndx_stage_name(e->stage), "round",
	                 (json_int_t)e->round, "bytes", (json_int_t)e->bytes, "status",
	                 ndx_status_name(e->status), "text", plain(e->text));
}

/* All entries; NULL: out of memory. */
static struct ndx_history_entry *copy_history(const struct ndx_session *s, size_t *count,
                                              uint64_t *dropped)
{
	const size_t room = s->history.room;
	struct ndx_history_entry *entries = calloc(room, sizeof(*entries));

	if (entries != NULL)
		*count = ndx_session_get_history(s, entries, room, dropped);
	return entries;
}

static json_t *json_of_history(const struct ndx_session *s, uint64_t *dropped)
{
	size_t count = 0;
	struct ndx_history_entry *entries = copy_history(s, &count, dropped);
	json_t *list = entries != NULL ? json_array() : NULL;

	for (size_t i = 0; list != NULL && i < count; i++) {
		if (json_array_append_new(list, json_of_entry(&entries[i])) == 0)
			continue;
		json_decref(list);
		list = NULL;
	}
	free(entries);
	return list;
}

enum ndx_status ndx_session_snapshot(const struct ndx_session *s, char **json)
{
	struct ndx_session_error error;
	uint64_t dropped = 0;
	json_t *history;
	json_t *root;
	char *text;

	if (s == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_snapshot: NULL argument");
	ndx_session_get_error(s, &error);
	history = json_of_history(s, &dropped);
	/* json_pack() owns the parts, even on failure. */
	root = json_pack("{s:I, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o}", "session",
	                 (json_int_t)ndx_session_get_id(s), "state",
	                 ndx_session_state_name(ndx_session_get_state(s)), "plugin",
	                 ndx_variant_plugin_name(s->attr.variant), "variant",
	                 ndx_variant_name(s->attr.variant), "server",
	                 plain(ndx_session_get_server(s)), "error", json_of_error(&error), "agreed",
	                 json_of_agreement(s), "dropped", (json_int_t)dropped, "history", history);
	text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
	json_decref(root);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_session_snapshot: out of memory");
	*json = text;
	return NDX_OK;
}

const char *ndx_history_entry_text(const struct ndx_history_entry *e, char *text, size_t room)
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
		(void)snprintf(text, room, "%10.3f ms  stage %s over, %.3f ms%s", at, stage, took,
		               outcome);
		break;
	case NDX_HISTORY_CALL:
	case NDX_HISTORY_SENT:
	case NDX_HISTORY_RECEIVED:
	default:
		(void)snprintf(text, room, "%10.3f ms  %s %u: %s%s%s, %u bytes, %.3f ms%s", at,
		               stage, e->round, what, e->text[0] != '\0' ? " " : "", e->text,
		               e->bytes, took, outcome);
	}
	return text;
}
