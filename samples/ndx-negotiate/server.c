/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: serves sessions, each with a queue pair of its own, and transfers their data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "negotiate.h"
#include "sample_address.h"
#include "sample_json.h"
#include "sample_sessions.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-negotiate server"
#define STOP_MS 1000u /* how long a server that stops waits for a client's goodbye */

/** One session and its queue pair. */
struct visit {
	struct sample_session head;
	struct end end;
	struct tally tally;
	int rc;
	enum ndx_disconnect_reason reason;
};

struct service {
	struct place place;
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
	if (end_make(&v->end, &service->place) != SAMPLE_EXIT_OK ||
	    transfer_prepare(&v->end) != SAMPLE_EXIT_OK) {
		end_drop(&v->end);
		free(v);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	resources->connector = v->end.connector;
	resources->qp = v->end.qp;
	resources->memory = end_describe(&v->end);
	sample_sessions_add(&service->sessions, &v->head, session);
	return NDX_OK;
}

/* Runs on a thread of the server's pool: waiting here delays no other session. */
static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	struct visit *v = find(arg, session);

	if (v == NULL)
		return;
	if (stage == NDX_STAGE_READY) {
		v->rc = end_watch(&v->end);
		if (v->rc == SAMPLE_EXIT_OK)
			v->rc = transfer_as_server(&v->end, &v->tally);
	} else if (stage == NDX_STAGE_DONE) {
		v->reason = end_reason(&v->end);
		if (*stop_flag() || end_disconnect(&v->end) != SAMPLE_EXIT_OK)
			v->rc = SAMPLE_EXIT_FAILED;
	}
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct service *service = arg;
	struct visit *v = find(service, session);
	struct ndx_session_error error = {.size = sizeof(error)};

	if (v == NULL)
		return;
	if (v->reason == NDX_DISCONNECT_NONE)
		v->reason = ndx_connector_get_disconnect_reason(v->end.connector);
	/* A server that stops ends the connection itself, as closing the connector would. */
	if (v->reason == NDX_DISCONNECT_NONE && *stop_flag() &&
	    ndx_disconnect(v->end.connector, STOP_MS) != NDX_E_CONNECTION_INVALID)
		v->reason = ndx_connector_get_disconnect_reason(v->end.connector);
	(void)ndx_session_get_error(session, &error);
	if (error.status != NDX_OK) {
		v->rc = SAMPLE_EXIT_FAILED;
		fprintf(stderr, WHO ": session %llu of %s: %s: layer %s, stage %s, round %u: %s\n",
		        (unsigned long long)v->head.id, ndx_session_get_server(session),
		        ndx_status_name(error.status), ndx_error_layer_name(error.layer),
		        ndx_stage_name(error.stage), error.round, error.text);
	}
	printf(WHO ": %s: %u messages of %u bytes each way: %u wrong; end of connection: %s\n",
	       ndx_session_get_server(session), v->tally.messages, v->end.size, v->tally.wrong,
	       ndx_disconnect_reason_name(v->reason));
	fflush(stdout);
	end_drop(&v->end);
	sample_sessions_remove(&service->sessions, &v->head, v->rc == SAMPLE_EXIT_OK);
	free(v);
}

static int listen_at(struct service *service, struct ndx_negotiation_server **out)
{
	const struct negotiate_options *o = service->place.options;
	struct ndx_negotiation_server_attr attr;
	struct limits_grants grants;
	char text[SAMPLE_ADDRESS_TEXT];
	struct sample_tls_choice tls;
	enum ndx_status st = NDX_OK;
	int rc = sample_tls_choose(WHO, &o->tls, true, &tls);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	ndx_negotiation_server_attr_init(&attr);
	attr.address = o->address != NULL ? o->address
	                                  : sample_sessions_default(service->place.adapter, text);
	attr.variants = &service->place.negotiation.variant;
	attr.variant_count = 1;
	attr.stage_timeout_ms = o->timeout_ms;
	attr.tls = tls.attr;
	attr.allow_plaintext = o->tls.allow_plaintext;
	attr.plugin_warn_ms = 60000; /* `staged` transfers the data */
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = service};
	rc = limits_take(WHO, &o->limits, &attr, &grants);
	if (rc == SAMPLE_EXIT_OK)
		st = ndx_negotiation_server_create(&attr, out);
	if (st != NDX_OK)
		rc = sample_failed(WHO, st, "listen at %s", attr.address);
	limits_drop(&grants);
	return rc;
}

static int report_address(struct service *service, struct ndx_negotiation_server *server,
                          sample_ready_fn *ready, void *arg)
{
	const struct negotiate_options *o = service->place.options;
	struct sample_address address;
	char text[SAMPLE_ADDRESS_TEXT];

	if (sample_sessions_address(server, o->port_file, &address) != SAMPLE_EXIT_OK)
		return SAMPLE_EXIT_FAILED;
	sample_address_format(&address, text, sizeof(text));
	printf(WHO ": %s, %s/%s, listening on %s\n", service->place.info.uri,
	       ndx_variant_plugin_name(service->place.negotiation.variant),
	       ndx_variant_name(service->place.negotiation.variant), text);
	fflush(stdout);
	if (ready != NULL)
		ready(arg, text);
	return SAMPLE_EXIT_OK;
}

int server_run(const struct negotiate_options *options, sample_ready_fn *ready, void *arg)
{
	struct ndx_negotiation_server *server = NULL;
	struct service service = {.sessions = SAMPLE_SESSIONS_INITIALIZER};
	struct control *control = NULL;
	int rc = place_open(&service.place, WHO, options);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = listen_at(&service, &server);
	if (rc == SAMPLE_EXIT_OK && options->control != NULL)
		rc = control_open(options->control, server, &control);
	if (rc == SAMPLE_EXIT_OK)
		rc = report_address(&service, server, ready, arg);
	if (rc == SAMPLE_EXIT_OK)
		sample_sessions_wait(&service.sessions, options->count, stop_flag());
	control_close(control);
	ndx_negotiation_server_close(server);
	sample_json_add("server", json_pack("{s:s, s:I, s:I}", "adapter", service.place.info.uri,
	                                    "sessions", (json_int_t)service.sessions.ended,
	                                    "failed", (json_int_t)service.sessions.bad));
	place_close(&service.place);
	return rc == SAMPLE_EXIT_OK && service.sessions.bad > 0 ? SAMPLE_EXIT_FAILED : rc;
}
