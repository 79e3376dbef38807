/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: one client after the other; parses every request and answers it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reqresp.h"
#include "sample_json.h"
#include "sample_listen.h"
#include "sample_options.h"
#include "sample_report.h"
#include "wire.h"

#define WHO "ndx-reqresp server"
enum { REFUSAL = 128 }; /* the room for the reason of a refusal */
#define SLICE_MS 200u   /* how often a waiting server checks whether to stop */

/* Of all visits; negotiated ones run on several threads. */
static struct {
	atomic_uint_least64_t clients, answered, bad;
} totals;

/** One client's visit. */
struct visit {
	uint64_t answered, bad, cancelled;
	bool over; /* no more requests: the client has disconnected, or */
	bool ours; /* the server disconnects */
};

/* Wait for the next client, without a limit; false: stop. */
static bool next_client(struct end *end, struct ndx_listener *listener)
{
	struct ndx_overlapped ov;
	enum ndx_status st;

	st = ndx_connector_create(end->adapter, NULL, &end->connector);
	if (st != NDX_OK) {
		(void)sample_failed(WHO, st, "create a connector");
		return false;
	}
	ndx_overlapped_init(&ov);
	st = ndx_listener_get_connection_request(listener, end->connector, &ov);
	if (st != NDX_PENDING) {
		(void)sample_failed(WHO, st, "wait for a client");
		return false;
	}
	do {
		end_tell(end);
		st = ndx_overlapped_wait(&ov, SLICE_MS);
	} while (st == NDX_PENDING && !reqresp_stop);
	if (st == NDX_PENDING) {
		(void)ndx_listener_cancel(listener);
		return false;
	}
	if (st != NDX_OK)
		(void)sample_ended_badly(WHO, end->connector, &ov, "wait for a client");
	return st == NDX_OK;
}

/* Check the client's greeting; returns the reason to refuse it, in `why` or constant, or NULL. */
static const char *refusal(struct end *end, uint32_t *size, char why[REFUSAL])
{
	static const char other_program[] = "this is ndx-reqresp, version 1";
	const uint32_t most = end->options->size < end->info.max_transfer_length
	                              ? end->options->size
	                              : end->info.max_transfer_length;
	uint8_t greeting[256];
	size_t length = sizeof(greeting);

	if (ndx_connector_get_private_data(end->connector, greeting, &length) != NDX_OK ||
	    !wire_read_greeting(greeting, length, size))
		return other_program;
	if (*size >= WIRE_HEADER && *size <= most)
		return NULL;
	snprintf(why, REFUSAL, "messages of %u bytes are too long or too short; say --size %u",
	         *size, most);
	return why;
}

int server_prepare(struct end *end, uint32_t size)
{
	enum ndx_status st = NDX_OK;
	int rc = end_make(end, end->options->slots, size);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	for (uint32_t i = 0; i < end->slots && st == NDX_OK; i++)
		st = end_post_receive(end, end->requests_mr, end->requests, i);
	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "post receives");
}

/* Prepare everything that the client needs before it may send, then accept. */
static int welcome(struct end *end, uint32_t size)
{
	struct ndx_connect_attr attr;
	uint8_t greeting[WIRE_GREETING];
	struct ndx_overlapped ov;
	enum ndx_status st;
	int rc = server_prepare(end, size);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	wire_make_greeting(greeting, end->options->size);
	ndx_overlapped_init(&ov);
	ndx_connect_attr_init(&attr);
	attr.private_data = greeting;
	attr.private_data_len = sizeof(greeting);
	st = ndx_connector_accept(end->connector, end->qp, &attr, &ov);
	rc = end_finish(end, st, &ov, "accept");
	return rc == SAMPLE_EXIT_OK ? end_watch(end) : rc;
}

/*
 * Process one result. Life of a slot: receive posted - request arrived, response sent - send
 * completed, receive posted again.
 */
static enum ndx_status handle(struct end *end, struct visit *visit, const struct ndx_result *result)
{
	uint8_t *request = result->request_context;
	size_t offset = (size_t)(request - end->requests);
	uint32_t slot = (uint32_t)(offset / end->size);
	const char *wrong;

	if (result->status != NDX_OK) {
		visit->cancelled++;
		visit->over = true;
		return NDX_OK;
	}
	if (result->request_type != NDX_REQUEST_RECEIVE)
		return end_post_receive(end, end->requests_mr, end->requests, slot);
	wrong = result->bytes_transferred != end->size ? "not as long as agreed"
	                                               : wire_check_request(request, end->size);
	if (wrong != NULL) {
		visit->bad++;
		fprintf(stderr, WHO ": request %" PRIu64 ": %s\n", visit->answered, wrong);
		return end_post_receive(end, end->requests_mr, end->requests, slot);
	}
	wire_make_response(end->responses + offset, request, end->size);
	visit->answered++;
	if (visit->answered == end->options->hang_up)
		visit->over = visit->ours = true; /* the answer still reaches the client */
	return end_post_send(end, end->responses_mr, end->responses, slot);
}

static void serve(struct end *end, struct visit *visit)
{
	struct ndx_result result;
	enum ndx_status st;

	while (!visit->over) {
		st = end_next_result(end, SLICE_MS, &result);
		if (st == NDX_OK)
			st = handle(end, visit, &result);
		if (reqresp_stop)
			visit->over = visit->ours = true;
		if (st != NDX_OK && st != NDX_PENDING) {
			(void)sample_failed(WHO, st, "serve the client");
			visit->over = visit->ours = true;
		}
	}
}

/* Disconnect. Correct whichever side began: it also succeeds after the client's goodbye. */
static int disconnect(struct end *end, struct visit *visit)
{
	enum ndx_disconnect_reason reason;
	struct ndx_result result;
	int rc;

	reason = end_reason(end, visit->ours ? 0 : end->options->timeout_ms);
	rc = end_disconnect(end);
	/* When the disconnect has completed, the results of all cancelled requests are there. */
	while (end_next_result(end, 0, &result) == NDX_OK)
		visit->cancelled += result.status != NDX_OK;
	if (reason == NDX_DISCONNECT_NONE)
		reason = ndx_connector_get_disconnect_reason(end->connector);
	printf(WHO ": %" PRIu64 " requests of %u bytes answered, %" PRIu64 " bad; %" PRIu64
	           " receives left over; end of connection: %s\n",
	       visit->answered, end->size, visit->bad, visit->cancelled,
	       ndx_disconnect_reason_name(reason));
	fflush(stdout);
	totals.clients++;
	totals.answered += visit->answered;
	totals.bad += visit->bad;
	return rc == SAMPLE_EXIT_OK && visit->bad == 0 ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

void server_add_totals(const struct end *end)
{
	sample_json_add("server",
	                json_pack("{s:s, s:I, s:I, s:I}", "adapter", end->info.uri, "clients",
	                          (json_int_t)totals.clients, "answered",
	                          (json_int_t)totals.answered, "bad", (json_int_t)totals.bad));
}

int server_visit(struct end *end, const char *client)
{
	struct visit visit = {0};

	printf(WHO ": client %s, messages of %u bytes\n", client, end->size);
	fflush(stdout);
	serve(end, &visit);
	return disconnect(end, &visit);
}

/* Serve one client, from its request to the disconnect. */
static int visit_of(struct end *end)
{
	struct sample_address peer = {.length = sizeof(peer.storage)};
	char text[SAMPLE_ADDRESS_TEXT] = "(unknown)";
	char why[REFUSAL];
	const char *no;
	uint32_t size;
	int rc;

	if (ndx_connector_get_peer_address(end->connector, (struct sockaddr *)&peer.storage,
	                                   &peer.length) == NDX_OK)
		sample_address_format(&peer, text, sizeof(text));
	no = refusal(end, &size, why);
	if (no != NULL) {
		size_t length = strlen(no);

		if (length > end->info.max_callee_data)
			length = end->info.max_callee_data;
		(void)ndx_connector_reject(end->connector, no, length);
		fprintf(stderr, WHO ": refused %s: %s\n", text, no);
		return SAMPLE_EXIT_FAILED;
	}
	rc = welcome(end, size);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	return server_visit(end, text);
}

static int serve_clients(struct end *end, struct ndx_listener *listener)
{
	const struct reqresp_options *o = end->options;
	int worst = SAMPLE_EXIT_OK;

	for (uint32_t served = 0; (o->count == 0 || served < o->count) && !reqresp_stop; served++) {
		bool came = next_client(end, listener);
		int rc = came ? visit_of(end) : SAMPLE_EXIT_FAILED;

		end_drop(end);
		if (!came)
			return reqresp_stop ? worst : rc;
		if (rc != SAMPLE_EXIT_OK)
			worst = rc;
	}
	return worst;
}

int server_run(const struct reqresp_options *options, sample_ready_fn *ready, void *arg)
{
	struct ndx_listener *listener = NULL;
	struct sample_address address = {0};
	char text[SAMPLE_ADDRESS_TEXT];
	struct end end;
	int rc;

	rc = end_open(&end, WHO, options);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = sample_listen(WHO, end.adapter, options->address, &listener, &address);
	if (rc != SAMPLE_EXIT_OK)
		goto close_adapter;
	if (options->port_file != NULL)
		rc = sample_write_port(options->port_file, &address);
	if (rc != SAMPLE_EXIT_OK)
		goto close_listener;
	printf(WHO ": %s, listening on %s\n", end.info.uri,
	       sample_address_format(&address, text, sizeof(text)));
	fflush(stdout);
	if (ready != NULL)
		ready(arg, text);
	rc = serve_clients(&end, listener);
	server_add_totals(&end);
	if (options->stats)
		end_stats(&end, "server_adapter");
close_listener:
	ndx_listener_close(listener);
close_adapter:
	ndx_adapter_close(end.adapter);
	return rc;
}
