/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: create, count, close. */
#include "base_loop.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "base_struct.h"

#define MESSAGE_LEAST 512u

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_negotiation_server_attr, NDX_NEGOTIATION_SERVER_ATTR_SIZE_0_1,
                    "call ndx_negotiation_server_attr_init() first");

static const struct ndx_negotiation_server_attr attr_defaults = {
	.max_sessions = 4096,
	.workers = 2,
	.workers_most = 64,
	.hello_timeout_ms = 5000,
	.stage_timeout_ms = 30000,
	.session_timeout_ms = 120000,
	.plugin_warn_ms = 5000,
	.max_message = 65536,
	.max_rounds = 64,
	.max_history = 16,
	.max_waiting_per_address = 2048,
	.max_sessions_per_principal = 1024,
	.max_queue_pairs_per_principal = 1024,
	.max_queue_pairs = 64,
};

void ndx_negotiation_server_attr_init_sized(struct ndx_negotiation_server_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status check_attr(const struct ndx_negotiation_server_attr *a)
{
	const char *fault = NULL;

	if (a->address == NULL)
		fault = "attr->address is NULL";
	else if (a->variants == NULL || a->variant_count == 0)
		fault = "there is no variant";
	else if (a->max_sessions == 0 || a->max_rounds == 0 || a->max_history == 0)
		fault = "max_sessions, max_rounds and max_history must be 1 or more";
	else if (a->max_history > 65536)
		fault = "max_history is beyond 65536";
	else if (a->workers == 0 || a->workers > a->workers_most || a->workers_most > POOL_MOST)
		fault = "workers must be 1 or more, at most workers_most, and that at most 256";
	else if (a->max_message < MESSAGE_LEAST || a->max_message > FRAME_PAYLOAD_MAX)
		fault = "max_message must be 512 to 1048576";
	else if (a->max_queue_pairs == 0 || a->max_queue_pairs > NDX_SESSION_QUEUE_PAIRS_MOST)
		fault = "max_queue_pairs must be 1 to 1024";
	else if (a->hello_timeout_ms == 0 || a->stage_timeout_ms == 0 || a->session_timeout_ms == 0)
		fault = "a time-out is 0";
	if (fault != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_server_create: %s", fault);
	for (size_t i = 0; i < a->variant_count; i++)
		if (a->variants[i] == NULL)
			return fail(NDX_E_INVALID_PARAMETER, 0,
			            "ndx_negotiation_server_create: variant %zu is NULL", i);
	return NDX_OK;
}

/* Log the calls that take long. */
static void on_tick(void *arg)
{
	struct ndx_negotiation_server *server = arg;
	const uint64_t now = ndxp_now_ns();

	for (struct ndxp_list *n = server->clients.next; n != &server->clients; n = n->next) {
		struct client *c = container_of(n, struct client, node);

		if (c->session.driver.phase != DRIVER_POOL || c->slow ||
		    now - c->session.driver.called_ns <
		            (uint64_t)server->attr.plugin_warn_ms * 1000000)
			continue;
		c->slow = true;
		log_warn(0,
		         "session %llu of %s: plugin \"%s\", variant \"%s\" has not returned from "
		         "stage %s for %u ms",
		         (unsigned long long)c->session.id, c->address,
		         ndx_variant_plugin_name(c->session.attr.variant),
		         ndx_variant_name(c->session.attr.variant),
		         frame_stage_name(c->session.dialogue.view.stage),
		         server->attr.plugin_warn_ms);
	}
	if (server->no_descriptors)
		server_accept(server);
	tls_forget_old(server->tls);
	server_log_left_out(server, false);
	if (!server->stopping)
		ndxp_timer_set(server->engine.loop, &server->tick, SERVER_TICK_MS);
}

static enum ndx_status keep_variants(struct ndx_negotiation_server *server)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
	server->variants = calloc(server->attr.variant_count, sizeof(*server->variants));
	if (server->variants == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_negotiation_server_create: out of memory");
	for (size_t i = 0; i < server->attr.variant_count; i++) {
		server->variants[i] = server->attr.variants[i];
		variant_get(server->variants[i]);
	}
	return NDX_OK;
}

static void drop_variants(struct ndx_negotiation_server *server)
{
	for (size_t i = 0; i < server->attr.variant_count; i++)
		variant_put(server->variants[i]);
	free(server->variants);
}

static void server_free(void *arg)
{
	struct ndx_negotiation_server *server = arg;

	drop_variants(server);
	server_drop_grants(server);
	tls_context_put(server->tls);
	(void)pthread_cond_destroy(&server->empty);
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
}

static void last_tick(void *arg)
{
	struct ndx_negotiation_server *server = arg;

	server->stopping = true;
	ndxp_timer_cancel(server->engine.loop, &server->tick);
	engine_rest(&server->engine);
	server_log_left_out(server, true);
}

/* The last session has ended, and no thread waits for that. */
static void finish_on_loop(void *arg)
{
	struct ndx_negotiation_server *server = arg;

	last_tick(server);
	engine_stop(&server->engine, server_free, server);
}

enum ndx_status ndx_negotiation_server_create(const struct ndx_negotiation_server_attr *attr,
                                              struct ndx_negotiation_server **out)
{
	struct ndx_negotiation_server_attr own = attr_defaults;
	struct ndx_negotiation_server *server;
	enum ndx_status st;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_server_create: NULL argument");
	st = base_struct_in(&attr_layout, "ndx_negotiation_server_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st != NDX_OK)
		return st;
	server = calloc(1, sizeof(*server));
	if (server == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_negotiation_server_create: out of memory");
	server->attr = own;
	handshakes_begin(&server->attr);
	ndxp_list_init(&server->clients);
	ndxp_list_init(&server->walks);
	(void)pthread_mutex_init(&server->lock, NULL);
	(void)pthread_cond_init(&server->empty, NULL);
	server->finish = (struct ndxp_job){.fn = finish_on_loop, .arg = server};
	server->tick = (struct ndxp_timer){.fn = on_tick, .arg = server};
	st = keep_variants(server);
	if (st != NDX_OK)
		goto fail_variants;
	st = server_keep_grants(server);
	if (st == NDX_OK && own.tls != NULL)
		st = tls_context_create(own.tls, NDX_ROLE_SERVER, "ndx_negotiation_server_create",
		                        &server->tls);
	server->attr.tls = NULL;
	server->attr.grants = NULL;
	budgets_begin(server);
	if (st == NDX_OK)
		st = server_listen(server);
	if (st != NDX_OK)
		goto fail_listen;
	st = engine_start(&server->engine, "ndx_negotiation_server_create", own.workers,
	                  own.workers_most);
	if (st != NDX_OK)
		goto fail_engine;
	st = server_watch(server);
	if (st != NDX_OK)
		goto fail_watch;
	ndxp_timer_set(server->engine.loop, &server->tick, SERVER_TICK_MS);
	server->attr.address = NULL;
	*out = server;
	return NDX_OK;
fail_watch:
	engine_stop(&server->engine, NULL, NULL);
fail_engine:
	server_unlisten(server);
fail_listen:
	server_drop_grants(server);
	tls_context_put(server->tls);
	drop_variants(server);
fail_variants:
	(void)pthread_cond_destroy(&server->empty);
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
	return st;
}

static void stop_on_loop(void *arg)
{
	struct ndx_negotiation_server *server = arg;
	struct ndxp_list *n = server->clients.next;

	server_unwatch(server);
	/* Stop listening at once, though sessions may last: new clients go to another server. */
	server_unlisten(server);
	/* Stopping one client may run jobs that end others: begin anew each time. */
	while (n != &server->clients) {
		struct client *c = container_of(n, struct client, node);

		n = n->next;
		if (c->stopped)
			continue;
		c->stopped = true;
		client_stop(c);
		n = server->clients.next;
	}
}

/* A callback must not wait: free the server after its last session. */
static void close_behind(struct ndx_negotiation_server *server)
{
	bool finish;

	pthread_mutex_lock(&server->lock);
	server->closing = true;
	finish = server->stats.alive == 0;
	pthread_mutex_unlock(&server->lock);
	if (finish)
		ndxp_loop_post(server->engine.loop, &server->finish);
}

void ndx_negotiation_server_close(struct ndx_negotiation_server *server)
{
	if (server == NULL)
		return;
	ndxp_loop_call(server->engine.loop, stop_on_loop, server);
	if (base_loop_in_callback()) {
		close_behind(server);
		return;
	}
	pthread_mutex_lock(&server->lock);
	while (server->stats.alive > 0)
		(void)pthread_cond_wait(&server->empty, &server->lock);
	pthread_mutex_unlock(&server->lock);
	/* The tick ran until now, because stuck calls would otherwise have kept other sessions from
	 * ending. */
	ndxp_loop_call(server->engine.loop, last_tick, server);
	engine_stop(&server->engine, server_free, server);
}

enum ndx_status ndx_negotiation_server_get_address(struct ndx_negotiation_server *server,
                                                   struct sockaddr *address, socklen_t *length)
{
	if (server == NULL || length == NULL || (address == NULL && *length > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_server_get_address: NULL argument");
	return ndxp_sockaddr_copy_out("ndx_negotiation_server_get_address", &server->address,
	                              address, length);
}

enum ndx_status ndx_negotiation_server_get_stats(struct ndx_negotiation_server *server,
                                                 struct ndx_negotiation_server_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_negotiation_server_stats,
	                    NDX_NEGOTIATION_SERVER_STATS_SIZE_0_1, "set `size` to sizeof(*stats)");
	static const char call[] = "ndx_negotiation_server_get_stats";
	struct ndx_negotiation_server_stats now;

	if (server == NULL || stats == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	pthread_mutex_lock(&server->lock);
	now = server->stats;
	pthread_mutex_unlock(&server->lock);
	pthread_mutex_lock(&server->engine.pool.lock);
	now.threads = server->engine.pool.threads;
	pthread_mutex_unlock(&server->engine.pool.lock);
	return base_struct_out(&layout, call, stats, stats->size, &now);
}
