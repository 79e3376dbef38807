/* SPDX-License-Identifier: BSD-2-Clause */
/* Frameworks, variants, sessions, servers. */
#include <stdlib.h>

#include "same_plugin.h"
#include "walk.h"

static enum ndx_status call_negotiation_create(struct scene *s)
{
	struct ndx_negotiation *n = NULL;
	enum ndx_status st = ndx_negotiation_create(&n);

	(void)s;
	(void)ndx_negotiation_close(n);
	return st;
}

static enum ndx_status call_negotiation_close(struct scene *s)
{
	return ndx_negotiation_close(s->negotiation);
}

static enum ndx_status call_negotiation_discover(struct scene *s)
{
	size_t count = 0;

	return ndx_negotiation_discover(s->negotiation, "/nonexistent", &count);
}

static enum ndx_status call_negotiation_load(struct scene *s)
{
	return ndx_negotiation_load(s->negotiation, "/nonexistent.so");
}

static enum ndx_status call_negotiation_register(struct scene *s)
{
	return ndx_negotiation_register(s->negotiation, &same_plugin);
}

static enum ndx_status call_negotiation_unregister(struct scene *s)
{
	return ndx_negotiation_unregister(s->negotiation, "same");
}

static enum ndx_status call_negotiation_list(struct scene *s)
{
	struct ndx_plugin_entry *list = NULL;
	size_t count;
	enum ndx_status st = ndx_negotiation_list(s->negotiation, &list, &count);

	ndx_negotiation_list_free(list);
	return st;
}

static enum ndx_status call_negotiation_get_variant(struct scene *s)
{
	struct ndx_variant *v = NULL;
	enum ndx_status st;

	st = ndx_negotiation_get_variant(s->negotiation, "same", "as-it-is", NULL, 0, &v);
	ndx_variant_close(v);
	return st;
}

static enum ndx_status call_variant_name(struct scene *s)
{
	return ndx_variant_name(s->variant) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_variant_plugin_name(struct scene *s)
{
	return ndx_variant_plugin_name(s->variant) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_variant_setting(struct scene *s)
{
	(void)ndx_variant_setting(s->variant, "none");
	return NDX_OK;
}

static enum ndx_status call_negotiation_server_attr_init(struct scene *s)
{
	struct ndx_negotiation_server_attr attr;

	(void)s;
	ndx_negotiation_server_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_negotiation_server_create(struct scene *s)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *out = NULL;
	enum ndx_status st;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &s->variant;
	attr.variant_count = 1;
	st = ndx_negotiation_server_create(&attr, &out);
	ndx_negotiation_server_close(out);
	return st;
}

static enum ndx_status call_negotiation_server_close(struct scene *s)
{
	ndx_negotiation_server_close(s->server);
	s->server = NULL;
	return NDX_OK;
}

static enum ndx_status call_negotiation_server_get_address(struct scene *s)
{
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);

	return ndx_negotiation_server_get_address(s->server, (struct sockaddr *)&at, &length);
}

static enum ndx_status call_negotiation_server_get_stats(struct scene *s)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	return ndx_negotiation_server_get_stats(s->server, &stats);
}

static enum ndx_status call_negotiation_server_snapshot(struct scene *s)
{
	char *json = NULL;
	enum ndx_status st = ndx_negotiation_server_snapshot(s->server, &json);

	free(json);
	return st;
}

static enum ndx_status call_session_attr_init(struct scene *s)
{
	struct ndx_session_attr attr;

	(void)s;
	ndx_session_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_tls_attr_init(struct scene *s)
{
	struct ndx_tls_attr attr;

	(void)s;
	ndx_tls_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_session_create(struct scene *s)
{
	static const char *const servers[] = {"127.0.0.1:1"};
	struct ndx_session_attr attr;
	struct ndx_session *out = NULL;
	enum ndx_status st;

	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = 1;
	st = ndx_session_create(&attr, &out);
	ndx_session_close(out);
	return st;
}

static enum ndx_status call_session_close(struct scene *s)
{
	ndx_session_close(s->session);
	s->session = NULL;
	return NDX_OK;
}

static enum ndx_status call_session_cancel(struct scene *s)
{
	ndx_session_cancel(s->session);
	return NDX_OK;
}

static enum ndx_status call_session_connect(struct scene *s)
{
	return ndx_session_connect(s->session);
}

static enum ndx_status call_session_execute(struct scene *s)
{
	return ndx_session_execute(s->session, NDX_STAGE_INFO);
}

static enum ndx_status call_session_run(struct scene *s)
{
	return ndx_session_run(s->session);
}

/* The close completes what was begun. */
static enum ndx_status close_begun(struct scene *s, struct ndx_overlapped *ov, enum ndx_status st)
{
	ndx_session_close(s->session);
	s->session = NULL;
	return st == NDX_PENDING && ndx_overlapped_status(ov) != NDX_E_CANCELED ? NDX_E_UNSUCCESSFUL
	                                                                        : st;
}

static enum ndx_status call_session_connect_overlapped(struct scene *s)
{
	struct ndx_overlapped ov = {0};

	return close_begun(s, &ov, ndx_session_connect_overlapped(s->session, &ov));
}

static enum ndx_status call_session_run_overlapped(struct scene *s)
{
	struct ndx_overlapped ov = {0};

	return close_begun(s, &ov, ndx_session_run_overlapped(s->session, &ov));
}

static enum ndx_status call_session_execute_overlapped(struct scene *s)
{
	struct ndx_overlapped ov = {0};

	return ndx_session_execute_overlapped(s->session, NDX_STAGE_INFO, &ov);
}

static enum ndx_status call_session_get_agreement(struct scene *s)
{
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;

	return ndx_session_get_agreement(s->session, &own, &peer, &agreed);
}

static enum ndx_status call_session_get_queue_pair_agreement(struct scene *s)
{
	return ndx_session_get_queue_pair_agreement(s->session, 0, NULL, NULL, NULL);
}

static enum ndx_status call_session_get_queue_pair_count(struct scene *s)
{
	return ndx_session_get_queue_pair_count(s->session) == 1 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_session_add_queue_pairs(struct scene *s)
{
	const struct ndx_session_queue_pair one = {.connector = NULL};

	return ndx_session_add_queue_pairs(s->several, &one, 1, NULL);
}

static enum ndx_status call_session_add_queue_pairs_overlapped(struct scene *s)
{
	const struct ndx_session_queue_pair one = {.connector = NULL};
	struct ndx_overlapped ov = {0};

	return ndx_session_add_queue_pairs_overlapped(s->several, &one, 1, &ov);
}

static enum ndx_status call_session_remove_queue_pairs(struct scene *s)
{
	return ndx_session_remove_queue_pairs(s->several, 0, 1);
}

static enum ndx_status call_session_get_add_error(struct scene *s)
{
	struct ndx_session_error error = {.size = sizeof(error)};

	return ndx_session_get_add_error(s->session, &error);
}

static enum ndx_status call_session_get_error(struct scene *s)
{
	struct ndx_session_error error = {.size = sizeof(error)};

	return ndx_session_get_error(s->session, &error);
}

static enum ndx_status call_session_get_history(struct scene *s)
{
	size_t count = 0;
	uint64_t total;

	return ndx_session_get_history(s->session, NULL, &count, &total);
}

static enum ndx_status call_session_get_id(struct scene *s)
{
	(void)ndx_session_get_id(s->session);
	return NDX_OK;
}

static enum ndx_status call_session_get_server(struct scene *s)
{
	(void)ndx_session_get_server(s->session);
	return NDX_OK;
}

static enum ndx_status call_session_get_state(struct scene *s)
{
	return ndx_session_get_state(s->session) == NDX_SESSION_CREATED ? NDX_OK
	                                                                : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_session_snapshot(struct scene *s)
{
	char *json = NULL;
	enum ndx_status st = ndx_session_snapshot(s->session, &json);

	free(json);
	return st;
}

static enum ndx_status call_session_manager_attr_init(struct scene *s)
{
	struct ndx_session_manager_attr attr;

	(void)s;
	ndx_session_manager_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_session_manager_create(struct scene *s)
{
	struct ndx_session_manager_attr attr;
	struct ndx_session_manager *out = NULL;
	enum ndx_status st;

	ndx_session_manager_attr_init(&attr);
	attr.negotiation = s->negotiation;
	st = ndx_session_manager_create(&attr, &out);
	return st != NDX_OK ? st : ndx_session_manager_close(out, 0);
}

static enum ndx_status call_session_manager_close(struct scene *s)
{
	struct ndx_session_manager *manager = s->manager;

	s->manager = NULL;
	return ndx_session_manager_close(manager, NDX_INFINITE);
}

/* Without a server it is refused. */
static enum ndx_status call_session_manager_add(struct scene *s)
{
	struct ndx_session_attr attr;

	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	return ndx_session_manager_add(s->manager, &attr, NULL, NULL);
}

static enum ndx_status call_session_manager_cancel(struct scene *s)
{
	return ndx_session_manager_cancel(s->manager, 1);
}

static enum ndx_status call_session_manager_remove(struct scene *s)
{
	return ndx_session_manager_remove(s->manager, 1);
}

static enum ndx_status call_session_manager_report(struct scene *s)
{
	return ndx_session_manager_report(s->manager, 1, 1, NDX_E_IO_TIMEOUT);
}

static enum ndx_status call_session_manager_list(struct scene *s)
{
	size_t count = 0;

	return ndx_session_manager_list(s->manager, NULL, &count, NULL);
}

static enum ndx_status call_session_manager_get_stats(struct scene *s)
{
	struct ndx_session_manager_stats stats = {.size = sizeof(stats)};

	return ndx_session_manager_get_stats(s->manager, &stats);
}

/* The cancel completes what was begun. */
static enum ndx_status call_session_manager_get_event(struct scene *s)
{
	struct ndx_managed_event event;
	struct ndx_overlapped ov = {0};
	const enum ndx_status st = ndx_session_manager_get_event(s->manager, &event, &ov);

	ndx_session_manager_cancel_event(s->manager);
	return ndx_overlapped_status(&ov) == NDX_E_CANCELED ? st : NDX_E_UNSUCCESSFUL;
}

const struct row session_rows[] = {
	{"ndx_negotiation_create", call_negotiation_create, NDX_OK, NDX_OK},
	{"ndx_negotiation_close", call_negotiation_close, NDX_E_DEVICE_BUSY, NDX_OK},
	{"ndx_negotiation_discover", call_negotiation_discover, NDX_E_NOT_FOUND, NDX_OK},
	{"ndx_negotiation_load", call_negotiation_load, NDX_E_DEVICE_NOT_READY, NDX_OK},
	{"ndx_negotiation_register", call_negotiation_register, NDX_E_DEVICE_BUSY, NDX_OK},
	{"ndx_negotiation_unregister", call_negotiation_unregister, NDX_E_DEVICE_BUSY, NDX_OK},
	{"ndx_negotiation_list", call_negotiation_list, NDX_OK, NDX_OK},
	{"ndx_negotiation_list_free", call_negotiation_list, NDX_OK, NDX_OK},
	{"ndx_negotiation_get_variant", call_negotiation_get_variant, NDX_OK, NDX_OK},
	{"ndx_variant_close", call_negotiation_get_variant, NDX_OK, NDX_OK},
	{"ndx_variant_name", call_variant_name, NDX_OK, NDX_OK},
	{"ndx_variant_plugin_name", call_variant_plugin_name, NDX_OK, NDX_OK},
	{"ndx_variant_setting", call_variant_setting, NDX_OK, NDX_OK},
	{"ndx_negotiation_server_attr_init_sized", call_negotiation_server_attr_init, NDX_OK,
         NDX_OK},
	{"ndx_negotiation_server_create", call_negotiation_server_create, NDX_OK, NDX_OK},
	{"ndx_negotiation_server_close", call_negotiation_server_close, NDX_OK, NDX_OK},
	{"ndx_negotiation_server_get_address", call_negotiation_server_get_address, NDX_OK, NDX_OK},
	{"ndx_negotiation_server_get_stats", call_negotiation_server_get_stats, NDX_OK, NDX_OK},
	{"ndx_negotiation_server_snapshot", call_negotiation_server_snapshot, NDX_OK, NDX_OK},
	{"ndx_session_attr_init_sized", call_session_attr_init, NDX_OK, NDX_OK},
	{"ndx_tls_attr_init_sized", call_tls_attr_init, NDX_OK, NDX_OK},
	{"ndx_session_create", call_session_create, NDX_OK, NDX_OK},
	{"ndx_session_close", call_session_close, NDX_OK, NDX_OK},
	{"ndx_session_cancel", call_session_cancel, NDX_OK, NDX_OK},
	{"ndx_session_connect", call_session_connect, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_session_execute", call_session_execute, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_session_run", call_session_run, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_session_connect_overlapped", call_session_connect_overlapped, NDX_PENDING, NDX_OK},
	{"ndx_session_execute_overlapped", call_session_execute_overlapped,
         NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_session_run_overlapped", call_session_run_overlapped, NDX_PENDING, NDX_OK},
	{"ndx_session_add_queue_pairs", call_session_add_queue_pairs, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_session_add_queue_pairs_overlapped", call_session_add_queue_pairs_overlapped,
         NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_session_remove_queue_pairs", call_session_remove_queue_pairs, NDX_E_WOULD_BLOCK,
         NDX_OK},
	{"ndx_session_get_add_error", call_session_get_add_error, NDX_OK, NDX_OK},
	{"ndx_session_get_agreement", call_session_get_agreement, NDX_E_INVALID_DEVICE_STATE,
         NDX_OK},
	{"ndx_session_get_error", call_session_get_error, NDX_OK, NDX_OK},
	{"ndx_session_get_history", call_session_get_history, NDX_OK, NDX_OK},
	{"ndx_session_get_id", call_session_get_id, NDX_OK, NDX_OK},
	{"ndx_session_get_queue_pair_agreement", call_session_get_queue_pair_agreement,
         NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_session_get_queue_pair_count", call_session_get_queue_pair_count, NDX_OK, NDX_OK},
	{"ndx_session_get_server", call_session_get_server, NDX_OK, NDX_OK},
	{"ndx_session_get_state", call_session_get_state, NDX_OK, NDX_OK},
	{"ndx_session_snapshot", call_session_snapshot, NDX_OK, NDX_OK},
	{"ndx_session_manager_attr_init_sized", call_session_manager_attr_init, NDX_OK, NDX_OK},
	{"ndx_session_manager_create", call_session_manager_create, NDX_OK, NDX_OK},
	{"ndx_session_manager_close", call_session_manager_close, NDX_OK, NDX_OK},
	{"ndx_session_manager_add", call_session_manager_add, NDX_E_INVALID_PARAMETER, NDX_OK},
	{"ndx_session_manager_cancel", call_session_manager_cancel, NDX_E_NOT_FOUND, NDX_OK},
	{"ndx_session_manager_remove", call_session_manager_remove, NDX_E_NOT_FOUND, NDX_OK},
	{"ndx_session_manager_report", call_session_manager_report, NDX_E_NOT_FOUND, NDX_OK},
	{"ndx_session_manager_list", call_session_manager_list, NDX_OK, NDX_OK},
	{"ndx_session_manager_get_stats", call_session_manager_get_stats, NDX_OK, NDX_OK},
	{"ndx_session_manager_get_event", call_session_manager_get_event, NDX_PENDING, NDX_OK},
	{"ndx_session_manager_cancel_event", call_session_manager_get_event, NDX_PENDING, NDX_OK},
};
const size_t session_row_count = sizeof(session_rows) / sizeof(session_rows[0]);
