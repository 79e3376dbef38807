/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo-client: several connections at once, driven by callbacks. Each step starts the next one from
 * inside its completion callback. The main thread takes results and never waits for a single
 * connection.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "echo-client"
#define MESSAGE 64u
#define PATIENCE_MS 30000u /* without any result */
#define SLICE_MS 20u

/** One connection. */
struct session {
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_overlapped ov;
	struct ndx_sge sent, received;
	uint32_t rounds;         /* echoes that are left */
	atomic_uint *unfinished; /* number of sessions */
	const char *failed_at;   /* NULL: success */
	enum ndx_status status;
};

/* The last step of a session; from now on it belongs to the main thread. */
static void finish(struct session *s, const char *failed_at, enum ndx_status status)
{
	s->failed_at = failed_at;
	s->status = status;
	atomic_fetch_sub(s->unfinished, 1);
}

static void on_disconnected(struct ndx_overlapped *ov)
{
	finish(ov->context, ov->status != NDX_OK ? "disconnect" : NULL, ov->status);
}

static void leave(struct session *s)
{
	enum ndx_status st;

	s->ov.callback = on_disconnected;
	st = ndx_connector_disconnect(s->connector, &s->ov);
	if (st != NDX_PENDING)
		finish(s, "disconnect", st);
}

/* Post the receive first: the echo may come before the send call returns. */
static enum ndx_status ask(struct session *s)
{
	enum ndx_status st = ndx_qp_receive(s->qp, s, &s->received, 1);

	return st == NDX_OK ? ndx_qp_send(s->qp, s, &s->sent, 1, 0) : st;
}

static void on_up(struct ndx_overlapped *ov)
{
	struct session *s = ov->context;
	enum ndx_status st = ov->status == NDX_OK ? ask(s) : ov->status;

	if (st != NDX_OK)
		finish(s, "begin", st);
}

/* The operation is complete, so its object may be used for the next step. */
static void on_connected(struct ndx_overlapped *ov)
{
	struct session *s = ov->context;
	enum ndx_status st = ov->status;

	if (st == NDX_OK) {
		ov->callback = on_up;
		st = ndx_connector_complete_connect(s->connector, ov);
	}
	if (st != NDX_PENDING)
		finish(s, "connect", st);
}

/*
 * Process one result, in the main thread. After a failed result others follow; the first one
 * decides.
 */
static void take_result(const struct ndx_result *result)
{
	struct session *s = result->queue_pair_context;

	if (result->request_type != NDX_REQUEST_RECEIVE || s->rounds == 0)
		return;
	if (result->status != NDX_OK || result->bytes_transferred != s->sent.length ||
	    memcmp(s->sent.buffer, s->received.buffer, s->sent.length) != 0) {
		fprintf(stderr, WHO ": %s: %s\n",
		        result->status == NDX_OK ? "wrong echo" : "no echo",
		        ndx_status_name(result->status));
		(void)sample_show_cause(s->connector);
		s->rounds = UINT32_MAX; /* never 0, so that the failure shows at the end */
		leave(s);
		return;
	}
	if (--s->rounds == 0 || ask(s) != NDX_OK)
		leave(s);
}

static enum ndx_status begin_session(struct session *s, struct ndx_adapter *adapter,
                                     const struct ndx_qp_attr *common,
                                     const struct sample_address *server)
{
	struct ndx_qp_attr attr = *common;
	enum ndx_status st;

	attr.context = s;
	st = ndx_qp_create(adapter, &attr, &s->qp);
	if (st == NDX_OK)
		st = ndx_connector_create(adapter, NULL, &s->connector);
	if (st != NDX_OK)
		return st;
	s->ov.callback = on_connected;
	s->ov.context = s;
	return ndx_connector_connect(s->connector, s->qp, (const struct sockaddr *)&server->storage,
	                             server->length, NULL, &s->ov);
}

/** Shared by all sessions. */
struct client {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_mr *mr;
	char *memory;
	struct session *sessions;
	uint32_t count, rounds;
	atomic_uint unfinished;
};

static enum ndx_status prepare(struct client *c, const char *uri)
{
	size_t length = (size_t)c->count * 2 * MESSAGE;
	enum ndx_status st;

	c->memory = calloc(c->count, (size_t)2 * MESSAGE);
	c->sessions = calloc(c->count, sizeof(*c->sessions));
	if (c->memory == NULL || c->sessions == NULL)
		return NDX_E_NO_MEMORY;
	st = ndx_adapter_open(uri, &c->adapter);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(c->adapter, 1024, &c->cq);
	if (st == NDX_OK)
		st = ndx_mr_register_new(c->adapter, c->memory, length, NDX_MR_ALLOW_LOCAL_WRITE,
		                         &c->mr);
	return st;
}

static void start_all(struct client *c, const struct sample_address *server)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = c->cq;
	attr.receive_depth = attr.initiator_depth = 4;
	attr.keepalive_ms = 10000;
	atomic_store(&c->unfinished, c->count);
	for (uint32_t i = 0; i < c->count; i++) {
		struct session *s = &c->sessions[i];
		char *memory = c->memory + (size_t)i * 2 * MESSAGE;
		uint32_t token = ndx_mr_get_local_token(c->mr);
		enum ndx_status st;

		snprintf(memory, MESSAGE, "connection %u says hello", i);
		s->sent = (struct ndx_sge){memory, MESSAGE, token};
		s->received = (struct ndx_sge){memory + MESSAGE, MESSAGE, token};
		s->rounds = c->rounds;
		s->unfinished = &c->unfinished;
		st = begin_session(s, c->adapter, &attr, server);
		if (st != NDX_PENDING)
			finish(s, "begin", st);
	}
}

static int run(struct client *c, const struct sample_address *server)
{
	struct ndx_result results[16];
	uint32_t good = 0, silent_ms = 0;
	size_t got;

	start_all(c, server);
	while (atomic_load(&c->unfinished) > 0 && silent_ms < PATIENCE_MS) {
		silent_ms += SLICE_MS;
		if (ndx_cq_wait_results(c->cq, results, 16, SLICE_MS, &got) != NDX_OK)
			continue;
		silent_ms = 0;
		for (size_t i = 0; i < got; i++)
			take_result(&results[i]);
	}
	if (atomic_load(&c->unfinished) > 0) {
		/* Operations in flight complete when the connectors are closed. */
		fprintf(stderr, WHO ": nothing for %u s, %u connections unfinished\n",
		        PATIENCE_MS / 1000, atomic_load(&c->unfinished));
		return SAMPLE_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		struct session *s = &c->sessions[i];

		good += s->failed_at == NULL && s->rounds == 0;
		if (s->failed_at == NULL)
			continue;
		fprintf(stderr, WHO ": connection %u: %s: %s\n", i, s->failed_at,
		        ndx_status_name(s->status));
		(void)sample_show_cause(s->connector);
	}
	printf(WHO ": %u connections of %u with %u echoes each and a goodbye\n", good, c->count,
	       c->rounds);
	return good == c->count ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

static void drop(struct client *c)
{
	for (uint32_t i = 0; c->sessions != NULL && i < c->count; i++) {
		ndx_connector_close(c->sessions[i].connector);
		ndx_qp_close(c->sessions[i].qp);
	}
	ndx_mr_close(c->mr);
	ndx_cq_close(c->cq);
	ndx_adapter_close(c->adapter);
	free(c->sessions);
	free(c->memory);
}

int main(int argc, char **argv)
{
	const char *uri = NULL;
	struct client c = {.count = 8, .rounds = 100};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. ofi:tcp?iface=lo", .text = &uri},
		{"--connections", "N", "at once (8)", .number = &c.count, .min = 1, .max = 10000},
		{"--rounds", "N", "echoes on each (100)", .number = &c.rounds, .min = 1,
	         .max = 1u << 30},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "ADDRESS:PORT [options]",
		.about = "Has many connections to an echo-server at once and checks what comes "
			 "back.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	struct sample_address server;
	enum ndx_status st;
	int rc;

	if (!sample_parse_server(&program, argc, argv, &server, &rc))
		return rc;
	st = prepare(&c, uri);
	if (st == NDX_OK)
		rc = run(&c, &server);
	else
		rc = sample_failed(WHO, st, "prepare");
	drop(&c);
	return rc;
}
