/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server knows, as JSON. */
#include <stdlib.h>

#include <ndx/version.h>

#include "base_json.h"
#include "history_json.h"
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include <ndx/spi/system.h>
#include "server_view.h"

#define FORMAT 1

/* The pool at one moment. */
struct pool_view {
	uint32_t threads, idle, queued;
};

static struct pool_view look_at_pool(struct pool *p)
{
	struct pool_view v;

	pthread_mutex_lock(&p->lock);
	v = (struct pool_view){.threads = p->threads, .idle = p->idle, .queued = p->queued};
	pthread_mutex_unlock(&p->lock);
	return v;
}

static json_t *counters_of(struct base_json *j, const struct ndx_negotiation_server_stats *stats)
{
	json_t *to = json_object();

	base_json_number(j, to, "accepted", stats->accepted);
	base_json_number(j, to, "refused", stats->refused);
	base_json_number(j, to, "without_hello", stats->without_hello);
	base_json_number(j, to, "completed", stats->completed);
	base_json_number(j, to, "failed", stats->failed);
	base_json_number(j, to, "resumed", stats->resumed);
	base_json_number(j, to, "refused_addresses", stats->refused_addresses);
	base_json_number(j, to, "refused_principals", stats->refused_principals);
	base_json_number(j, to, "refused_variants", stats->refused_variants);
	base_json_number(j, to, "refused_identities", stats->refused_identities);
	base_json_number(j, to, "refused_handshakes", stats->refused_handshakes);
	return to;
}

static json_t *limits_of(struct base_json *j, const struct ndx_negotiation_server_attr *a)
{
	json_t *to = json_object();

	base_json_number(j, to, "max_sessions", a->max_sessions);
	base_json_number(j, to, "workers", a->workers);
	base_json_number(j, to, "workers_most", a->workers_most);
	base_json_number(j, to, "hello_timeout_ms", a->hello_timeout_ms);
	base_json_number(j, to, "stage_timeout_ms", a->stage_timeout_ms);
	base_json_number(j, to, "session_timeout_ms", a->session_timeout_ms);
	base_json_number(j, to, "plugin_warn_ms", a->plugin_warn_ms);
	base_json_number(j, to, "max_message", a->max_message);
	base_json_number(j, to, "max_rounds", a->max_rounds);
	base_json_number(j, to, "max_history", a->max_history);
	base_json_number(j, to, "max_waiting_per_address", a->max_waiting_per_address);
	base_json_number(j, to, "max_sessions_per_principal", a->max_sessions_per_principal);
	base_json_number(j, to, "max_queue_pairs_per_principal", a->max_queue_pairs_per_principal);
	base_json_number(j, to, "max_memory_per_principal", a->max_memory_per_principal);
	base_json_number(j, to, "max_queue_pairs", a->max_queue_pairs);
	base_json_number(j, to, "max_handshakes_per_address", a->max_handshakes_per_address);
	base_json_number(j, to, "max_handshakes", a->max_handshakes);
	return to;
}

static json_t *pool_of(struct base_json *j, const struct pool_view *v)
{
	json_t *to = json_object();

	base_json_number(j, to, "threads", v->threads);
	base_json_number(j, to, "idle", v->idle);
	base_json_number(j, to, "queued", v->queued);
	return to;
}

static json_t *waits_of(struct base_json *j, const struct server_views *views)
{
	json_t *to = json_object();

	for (unsigned i = 0; i < SERVER_WAITS; i++)
		base_json_number(j, to, server_wait_name((enum server_wait)i), views->waits[i]);
	return to;
}

static json_t *traffic_of(struct base_json *j, uint64_t messages, uint64_t bytes)
{
	json_t *to = json_object();

	base_json_number(j, to, "messages", messages);
	base_json_number(j, to, "bytes", bytes);
	return to;
}

static json_t *agreed_of(struct base_json *j, const struct server_view *v)
{
	json_t *to;

	if (!v->agreed)
		return json_null();
	to = json_object();
	base_json_number(j, to, "kind", v->agreement.kind);
	base_json_number(j, to, "mtu", v->agreement.mtu);
	base_json_number(j, to, "client_reads", v->agreement.client_reads);
	base_json_number(j, to, "server_reads", v->agreement.server_reads);
	return to;
}

/* The latest steps. */
static json_t *history_of(struct base_json *j, const struct server_view *v)
{
	json_t *to;

	if (v->steps == NULL)
		return json_null();
	to = json_array();
	for (size_t i = 0; i < v->step_count; i++)
		base_json_append(j, to, history_entry_json(j, &v->steps[i]));
	return to;
}

/* A name that a client has chosen is not confused with "plaintext", because of `principal_by`. */
static void put_principal(struct base_json *j, json_t *to, const struct server_view *v)
{
	static const char *const by[] = {
		[TLS_NOTHING] = NULL,
		[TLS_ANONYMOUS] = "nothing",
		[TLS_BY_CERTIFICATE] = "certificate",
		[TLS_BY_KEY] = "key",
	};

	if (v->principal[0] != '\0')
		base_json_text(j, to, "principal", v->principal);
	else
		base_json_put(j, to, "principal", json_null());
	if (by[v->proof] != NULL)
		base_json_text(j, to, "principal_by", by[v->proof]);
	else
		base_json_put(j, to, "principal_by", json_null());
}

static json_t *session_of(struct base_json *j, const struct server_view *v)
{
	json_t *to = json_object();

	base_json_number(j, to, "id", v->id);
	base_json_text(j, to, "client", v->address);
	put_principal(j, to, v);
	if (v->variant != NULL) {
		base_json_text(j, to, "plugin", ndx_variant_plugin_name(v->variant));
		base_json_text(j, to, "variant", ndx_variant_name(v->variant));
		base_json_text(j, to, "stage", ndx_stage_name(v->stage));
	} else {
		base_json_put(j, to, "plugin", json_null());
		base_json_put(j, to, "variant", json_null());
		base_json_put(j, to, "stage", json_null());
	}
	base_json_number(j, to, "round", v->round);
	base_json_number(j, to, "queue_pairs", v->queue_pairs);
	base_json_text(j, to, "state", ndx_session_state_name(v->state));
	base_json_number(j, to, "age_us", v->age_ns / 1000);
	base_json_text(j, to, "waits_for", server_wait_name(v->waits));
	base_json_number(j, to, "waits_us", v->waits_ns / 1000);
	base_json_number(j, to, "calls", v->totals.calls);
	base_json_put(j, to, "sent", traffic_of(j, v->totals.sent, v->totals.sent_bytes));
	base_json_put(j, to, "received",
	              traffic_of(j, v->totals.received, v->totals.received_bytes));
	base_json_put(j, to, "agreed", agreed_of(j, v));
	base_json_put(j, to, "history", history_of(j, v));
	return to;
}

static json_t *sessions_of(struct base_json *j, const struct server_views *views)
{
	json_t *to = json_object();
	json_t *list = json_array();

	for (size_t i = 0; i < views->count; i++)
		base_json_append(j, list, session_of(j, &views->list[i]));
	base_json_number(j, to, "total", views->total);
	base_json_number(j, to, "listed", views->count);
	base_json_number(j, to, "closing", views->closing);
	base_json_put(j, to, "waits", waits_of(j, views));
	base_json_put(j, to, "list", list);
	return to;
}

static char *text_of(struct ndx_negotiation_server *server, const struct server_views *views)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	const struct pool_view pool = look_at_pool(&server->engine.pool);
	struct base_json j = {.failed = false};
	char address[NDXP_SOCKADDR_TEXT];
	json_t *root = json_object();

	(void)ndx_negotiation_server_get_stats(server, &stats);
	base_json_text(&j, root, "ndx", ndx_version());
	base_json_number(&j, root, "snapshot", FORMAT);
	base_json_number(&j, root, "time_ns", ndxp_now_ns());
	base_json_text(&j, root, "address", ndxp_sockaddr_text(&server->address, address));
	base_json_put(&j, root, "counters", counters_of(&j, &stats));
	base_json_put(&j, root, "limits", limits_of(&j, &server->attr));
	base_json_put(&j, root, "pool", pool_of(&j, &pool));
	base_json_put(&j, root, "sessions", sessions_of(&j, views));
	return base_json_finish(&j, root);
}

enum ndx_status ndx_negotiation_server_snapshot(struct ndx_negotiation_server *server, char **json)
{
	struct server_views views;
	enum ndx_status st;
	char *text;

	if (server == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_server_snapshot: NULL argument");
	st = server_look(server, NDX_NEGOTIATION_SERVER_LISTED_MOST, &views);
	text = st == NDX_OK ? text_of(server, &views) : NULL;
	server_forget(&views);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_negotiation_server_snapshot: out of memory");
	*json = text;
	return NDX_OK;
}
