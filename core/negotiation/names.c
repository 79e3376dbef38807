/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what a negotiation goes through, for people. */
#include <ndx/session.h>
#include <ndx/session_manager.h>

#include "frame.h"

static const char *pick(const char *const *names, size_t count, size_t index)
{
	return index < count ? names[index] : "?";
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *ndx_stage_name(enum ndx_stage stage)
{
	return frame_stage_name(stage);
}

const char *ndx_session_state_name(enum ndx_session_state state)
{
	static const char *const names[] = {"created",    "connecting", "connected",
	                                    "exchanging", "failed",     "closed"};

	return pick(names, COUNT(names), (size_t)state);
}

const char *ndx_error_layer_name(enum ndx_error_layer layer)
{
	static const char *const names[] = {"none", "transport", "plugin", "framework", "provider"};

	return pick(names, COUNT(names), (size_t)layer);
}

const char *ndx_plugin_error_name(enum ndx_plugin_error error)
{
	static const char *const names[] = {"ok",        "serialization", "peer data",
	                                    "resources", "vendor",        "configuration"};

	return pick(names, COUNT(names), (size_t)error);
}

const char *ndx_history_kind_name(enum ndx_history_kind kind)
{
	static const char *const names[] = {"connect",  "backoff", "call",  "sent",
	                                    "received", "stage",   "prove", "verdict",
	                                    "hello",    "tls",     "add",   "lost"};

	return pick(names, COUNT(names), (size_t)kind);
}

const char *ndx_managed_state_name(enum ndx_managed_state state)
{
	static const char *const names[] = {"queued", "connecting", "up", "waiting", "over"};

	return pick(names, COUNT(names), (size_t)state);
}

const char *ndx_managed_event_name(enum ndx_managed_event_kind kind)
{
	static const char *const names[] = {"none",    "up",       "down", "failed",
	                                    "gave up", "canceled", "ended"};

	return pick(names, COUNT(names), (size_t)kind);
}
