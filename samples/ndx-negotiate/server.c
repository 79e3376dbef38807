/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: answers sessions, each with a queue pair of its own, and moves their data. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "negotiate.h"
#include "sample_address.h"
#include "sample_listen.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-negotiate server"
#define SLICE_MS 200

/** One session's queue pair. */
struct visit {
	struct visit *next;
	uint64_t session;
	struct end end;
	struct tally tally;
	int rc;
	enum ndx_disconnect_reason reason;
};

struct hall {
	struct place place;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct visit *visits;
	uint32_t ended, bad;
};

static struct visit *find(struct hall *hall, const struct ndx_session *session)
{
	struct visit *v;

	pthread_mutex_lock(&hall->lock);
	v = hall->visits;
	while (v != NULL && v->session != ndx_session_get_id(session))
		v = v->next;
	pthread_mutex_unlock(&hall->lock);
	return v;
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct hall *hall = arg;
	struct visit *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NDX_E_NO_MEMORY;
	v->session = ndx_session_get_id(session);
	v->rc = SAMPLE_EXIT_FAILED;
	if (end_make(&v->end, &hall->place) != SAMPLE_EXIT_OK ||
	    transfer_prepare(&v->end) != SAMPLE_EXIT_OK) {
		end_drop(&v->end);
		free(v);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	resources->connector = v->end.connector;
	resources->qp = v->end.qp;
	resources->memory = end_describe(&v->end);
	pthread_mutex_lock(&hall->lock);
	v->next = hall->visits;
	hall->visits = v;
	pthread_mutex_unlock(&hall->lock);
	return NDX_OK;
}

/* A thread of the server's pool: to wait here holds up nobody else. */
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
		if (end_disconnect(&v->end) != SAMPLE_EXIT_OK)
			v->rc = SAMPLE_EXIT_FAILED;
	}
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct hall *hall = arg;
	struct visit *v = find(hall, session);
	struct visit **at = &hall->visits;
	struct ndx_session_error error;

	if (v == NULL)
		return;
	ndx_session_get_error(session, &error);
	if (error.status != NDX_OK) {
		v->rc = SAMPLE_EXIT_FAILED;
		fprintf(stderr, WHO ": session %llu of %s: %s: %s\n",
		        (unsigned long long)v->session, ndx_session_get_server(session),
		        ndx_status_name(error.status), error.text);
	}
	printf(WHO ": %s: %u messages of %u bytes each way: %u wrong; end of connection: %s\n",
	       ndx_session_get_server(session), v->tally.messages, v->end.size, v->tally.wrong,
	       ndx_disconnect_reason_name(v->reason));
	fflush(stdout);
	end_drop(&v->end);
	pthread_mutex_lock(&hall->lock);
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	hall->ended++;
	hall->bad += v->rc != SAMPLE_EXIT_OK;
	(void)pthread_cond_signal(&hall->changed);
	pthread_mutex_unlock(&hall->lock);
	free(v);
}

static int listen_at(struct hall *hall, struct ndx_negotiation_server **out)
{
	const struct negotiate_options *o = hall->place.options;
	struct ndx_negotiation_server_attr attr;
	enum ndx_status st;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = o->address != NULL ? o->address : "[::]:0";
	attr.variants = &hall->place.negotiation.variant;
	attr.variant_count = 1;
	attr.stage_timeout_ms = o->timeout_ms;
	attr.plugin_warn_ms = 60000; /* `staged` moves the data */
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = hall};
	st = ndx_negotiation_server_create(&attr, out);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "listen at %s", attr.address);
	return SAMPLE_EXIT_OK;
}

static int tell_address(struct hall *hall, struct ndx_negotiation_server *server,
                        server_ready_fn *ready, void *arg)
{
	const struct negotiate_options *o = hall->place.options;
	struct sample_address address = {.length = sizeof(address.storage)};
	char text[SAMPLE_ADDRESS_TEXT];

	(void)ndx_negotiation_server_get_address(server, (struct sockaddr *)&address.storage,
	                                         &address.length);
	sample_address_format(&address, text, sizeof(text));
	if (o->port_file != NULL && sample_write_port(o->port_file, &address) != SAMPLE_EXIT_OK)
		return SAMPLE_EXIT_FAILED;
	printf(WHO ": %s, %s/%s, listening on %s\n", hall->place.info.uri,
	       ndx_variant_plugin_name(hall->place.negotiation.variant),
	       ndx_variant_name(hall->place.negotiation.variant), text);
	fflush(stdout);
	if (ready != NULL)
		ready(arg, text);
	return SAMPLE_EXIT_OK;
}

static void serve(struct hall *hall)
{
	const uint32_t count = hall->place.options->count;

	pthread_mutex_lock(&hall->lock);
	while (!negotiate_stop && (count == 0 || hall->ended < count)) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SLICE_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&hall->changed, &hall->lock, &until);
	}
	pthread_mutex_unlock(&hall->lock);
}

int server_run(const struct negotiate_options *options, server_ready_fn *ready, void *arg)
{
	struct ndx_negotiation_server *server = NULL;
	struct hall hall = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	int rc = place_open(&hall.place, WHO, options);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = listen_at(&hall, &server);
	if (rc == SAMPLE_EXIT_OK)
		rc = tell_address(&hall, server, ready, arg);
	if (rc == SAMPLE_EXIT_OK)
		serve(&hall);
	ndx_negotiation_server_close(server);
	place_close(&hall.place);
	return rc == SAMPLE_EXIT_OK && hall.bad > 0 ? SAMPLE_EXIT_FAILED : rc;
}
