/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same requests and responses over a connection that a session has negotiated. A session has no
 * private data: the length of the described memory carries the size of a message.
 */
#include "negotiated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/negotiation_server.h>

#include "sample_sessions.h"
#include "sample_negotiation.h"
#include "sample_options.h"
#include "sample_report.h"
#include "sample_tls.h"

static int open_variant(const struct end *end, struct sample_negotiation *n)
{
	const char *variant = end->options->variant;
	enum ndx_status st = NDX_OK;

	if (variant == NULL)
		st = sample_variant_of(end->adapter, &variant);
	if (st != NDX_OK)
		return sample_failed(end->who, st, "look at the adapter");
	return sample_negotiation_open(n, end->who, variant, NULL, NULL, NULL);
}

static struct ndx_memory_description describe(const struct end *end)
{
	return (struct ndx_memory_description){.address = (uintptr_t)end->requests,
	                                       .length = end->size,
	                                       .token = ndx_mr_get_remote_token(end->requests_mr)};
}

/* ---- the client ---- */

struct negotiated {
	struct sample_negotiation negotiation;
	struct ndx_session *session;
};

void negotiated_end(struct negotiated *n)
{
	if (n == NULL)
		return;
	ndx_session_close(n->session);
	sample_negotiation_close(&n->negotiation);
	free(n);
}

static int run_session(struct end *end, struct negotiated *n)
{
	const char *const servers[] = {end->options->address};
	struct ndx_peer_description peer;
	struct sample_tls_choice tls;
	struct ndx_session_attr attr;
	enum ndx_status st;
	const int rc = sample_tls_choose(end->who, &end->options->tls, false, &tls);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	ndx_session_attr_init(&attr);
	attr.variant = n->negotiation.variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.connector = end->connector;
	attr.qp = end->qp;
	attr.memory = describe(end);
	attr.stage_timeout_ms = end->options->timeout_ms;
	attr.tls = tls.attr;
	attr.allow_plaintext = end->options->tls.allow_plaintext;
	st = ndx_session_create(&attr, &n->session);
	if (st != NDX_OK)
		return sample_failed(end->who, st, "make a session");
	st = ndx_session_run(n->session);
	if (st != NDX_OK) {
		sample_session_failed(end->who, n->session);
		return SAMPLE_EXIT_FAILED;
	}
	(void)ndx_session_get_agreement(n->session, NULL, &peer, NULL);
	if (peer.memory.length == end->size)
		return SAMPLE_EXIT_OK;
	fprintf(stderr, "%s: the server has messages of %llu bytes; say --size %llu\n", end->who,
	        (unsigned long long)peer.memory.length, (unsigned long long)peer.memory.length);
	return SAMPLE_EXIT_USAGE;
}

int negotiated_connect(struct end *end, struct negotiated **out)
{
	struct negotiated *n = calloc(1, sizeof(*n));
	enum ndx_status st;
	int rc;

	if (n == NULL)
		return SAMPLE_EXIT_FAILED;
	rc = open_variant(end, &n->negotiation);
	if (rc != SAMPLE_EXIT_OK) {
		free(n);
		return rc;
	}
	st = ndx_connector_create(end->adapter, NULL, &end->connector);
	rc = st == NDX_OK ? run_session(end, n) : sample_failed(end->who, st, "create a connector");
	if (rc == SAMPLE_EXIT_OK)
		*out = n;
	else
		negotiated_end(n);
	return rc;
}

/* ---- the server ---- */

struct visit {
	struct sample_session head;
	struct end end;
	int rc;
};

struct service {
	struct end end; /* adapter and options for the end of each visit */
	struct sample_sessions sessions;
};

static struct visit *find(struct service *service, const struct ndx_session *session)
{
	return (struct visit *)sample_sessions_find(&service->sessions, session);
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct service *service = arg;
	struct visit *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NDX_E_NO_MEMORY;
	v->rc = SAMPLE_EXIT_FAILED;
	v->end = service->end;
	if (server_prepare(&v->end, service->end.options->size) != SAMPLE_EXIT_OK ||
	    ndx_connector_create(v->end.adapter, NULL, &v->end.connector) != NDX_OK) {
		end_drop(&v->end);
		free(v);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	resources->connector = v->end.connector;
	resources->qp = v->end.qp;
	resources->memory = describe(&v->end);
	sample_sessions_add(&service->sessions, &v->head, session);
	return NDX_OK;
}

/* Runs on a thread of the server's pool: staying here delays no other session. */
static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	struct visit *v = find(arg, session);

	if (v == NULL || stage != NDX_STAGE_READY)
		return;
	v->rc = end_watch(&v->end);
	if (v->rc == SAMPLE_EXIT_OK)
		v->rc = server_visit(&v->end, ndx_session_get_server(session));
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct service *service = arg;
	struct visit *v = find(service, session);

	if (v == NULL)
		return;
	end_drop(&v->end);
	sample_sessions_remove(&service->sessions, &v->head, v->rc == SAMPLE_EXIT_OK);
	free(v);
}

static int listen_at(struct service *service, struct ndx_variant **variant,
                     struct ndx_negotiation_server **out)
{
	const struct reqresp_options *o = service->end.options;
	struct ndx_negotiation_server_attr attr;
	char text[SAMPLE_ADDRESS_TEXT];
	struct sample_tls_choice tls;
	enum ndx_status st;
	const int rc = sample_tls_choose(service->end.who, &o->tls, true, &tls);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	ndx_negotiation_server_attr_init(&attr);
	attr.address = o->address != NULL ? o->address
	                                  : sample_sessions_default(service->end.adapter, text);
	attr.variants = variant;
	attr.variant_count = 1;
	attr.tls = tls.attr;
	attr.allow_plaintext = o->tls.allow_plaintext;
	attr.plugin_warn_ms = 60u * 60 * 1000; /* `staged` lasts as long as a visit */
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = service};
	st = ndx_negotiation_server_create(&attr, out);
	return st == NDX_OK ? SAMPLE_EXIT_OK
	                    : sample_failed(service->end.who, st, "listen at %s", attr.address);
}

static int report_address(struct service *service, struct ndx_negotiation_server *server,
                          sample_ready_fn *ready, void *arg)
{
	const struct reqresp_options *o = service->end.options;
	struct sample_address address;
	char text[SAMPLE_ADDRESS_TEXT];
	int rc = sample_sessions_address(server, o->port_file, &address);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	printf("%s: %s, negotiating, listening on %s\n", service->end.who, service->end.info.uri,
	       sample_address_format(&address, text, sizeof(text)));
	fflush(stdout);
	if (ready != NULL)
		ready(arg, text);
	return rc;
}

int negotiated_server_run(const struct reqresp_options *options, sample_ready_fn *ready, void *arg)
{
	struct service service = {.sessions = SAMPLE_SESSIONS_INITIALIZER};
	struct ndx_negotiation_server *server = NULL;
	struct sample_negotiation negotiation;
	int rc = end_open(&service.end, "ndx-reqresp server", options);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = open_variant(&service.end, &negotiation);
	if (rc != SAMPLE_EXIT_OK)
		goto close_adapter;
	rc = listen_at(&service, &negotiation.variant, &server);
	if (rc == SAMPLE_EXIT_OK)
		rc = report_address(&service, server, ready, arg);
	if (rc == SAMPLE_EXIT_OK)
		sample_sessions_wait(&service.sessions, options->count, &reqresp_stop);
	ndx_negotiation_server_close(server);
	sample_negotiation_close(&negotiation);
	server_add_totals(&service.end);
	if (options->stats)
		end_stats(&service.end, "server_adapter");
close_adapter:
	ndx_adapter_close(service.end.adapter);
	return rc == SAMPLE_EXIT_OK && service.sessions.bad > 0 ? SAMPLE_EXIT_FAILED : rc;
}
