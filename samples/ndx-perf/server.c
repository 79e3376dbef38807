/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: one client after another, each with any number of tests. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "control.h"
#include "perf.h"
#include "sample_clock.h"
#include "sample_listen.h"
#include "sample_options.h"
#include "sample_report.h"
#include "side.h"

#define WHO "ndx-perf server"
#define SLICE_MS 100        /* how often the server looks whether to stop */
#define STEP_MS 10000u      /* for each step of a client between its connect and its GO */
#define ACCEPT_MS 3000u     /* after a GO, for accepts that are about to end */
#define GOODBYE_MS 400u     /* for the goodbyes of a test, and of a client */
#define SETTLE_MS 200u      /* for a goodbye that is on its way */
#define KEEPALIVE_MS 10000u /* after which a silent client is dead */
#define OVERTIME_S 60u      /* of a test, beyond what the client has said */

enum phase { IDLE, CONNECTING, READY, PREPARING, RUNNING };

struct server {
	const struct perf_options *options;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	struct ndx_listener *listener;
	struct ndx_port *port;         /* of the requests */
	struct ndx_connector *request; /* takes the next one */
	struct ndx_overlapped request_ov;
	enum phase phase;
	uint64_t deadline_ns; /* of the phase */
	struct control control;
	struct ndx_overlapped accept; /* of the control connection */
	char client[SAMPLE_ADDRESS_TEXT];
	uint64_t session;
	struct side side;
	uint64_t began_ns, cpu_ns;
	uint32_t clients, tests, refused, bad;
	uint64_t messages;
	bool failed; /* it cannot go on */
};

static void enter(struct server *s, enum phase phase, uint32_t seconds)
{
	s->phase = phase;
	s->deadline_ns = sample_now_ns() + seconds * UINT64_C(1000000000);
}

static void end_test(struct server *s)
{
	/* Each may be the only one, if there was no memory for the others. */
	if (s->side.links == NULL && s->side.workers == NULL && s->side.memory == NULL)
		return;
	side_drop(&s->side, GOODBYE_MS);
	memset(&s->side, 0, sizeof(s->side));
}

/* The client goes, or is sent away; `why` NULL: it said goodbye. */
static void end_client(struct server *s, const char *why)
{
	if (why != NULL) {
		s->bad++;
		fprintf(stderr, WHO ": client %s: %s\n", s->client, why);
	}
	end_test(s);
	control_drop(&s->control, GOODBYE_MS);
	if (why == NULL && !s->options->quiet)
		printf(WHO ": client %s has ended\n", s->client);
	fflush(stdout);
	s->clients++;
	s->phase = IDLE;
}

static void refuse_test(struct server *s, const char *reason)
{
	struct wire_frame frame = {.type = WIRE_REFUSED};

	(void)snprintf(frame.reason, sizeof(frame.reason), "%s", reason);
	fprintf(stderr, WHO ": client %s: refused a test: %s\n", s->client, reason);
	end_test(s);
	if (control_send(&s->control, &frame) != NDX_OK)
		end_client(s, "the answer cannot be sent");
	else
		enter(s, READY, s->options->idle_s);
}

static void reject(struct server *s, struct ndx_connector *connector, const char *reason)
{
	size_t length = strlen(reason);

	s->refused++;
	if (length > s->info.max_callee_data)
		length = s->info.max_callee_data;
	(void)ndx_connector_reject(connector, reason, length);
	ndx_connector_close(connector);
}

/* ---- frames ---- */

/* Why a test cannot be served; NULL: it can. */
static const char *judge(const struct server *s, const struct perf_test *test, char *text,
                         size_t room)
{
	const struct perf_options *o = s->options;

	if (test->size == 0 || test->depth == 0 || test->qps == 0 || test->threads == 0 ||
	    test->threads > test->qps)
		return "the parameters make no sense";
	if (test->wait && test->op == PERF_WRITE && test->kind == PERF_LATENCY)
		return "the arrival of a write is not reported: it can only be polled for";
	if (test->size > s->info.max_transfer_length)
		(void)snprintf(text, room, "at most %u bytes in one message here",
		               s->info.max_transfer_length);
	else if (test->qps > o->max_qps)
		(void)snprintf(text, room, "at most %u queue pairs here (--max-qps)", o->max_qps);
	else if (test->threads > o->max_threads)
		(void)snprintf(text, room, "at most %u threads here (--max-threads)",
		               o->max_threads);
	else if (test->depth > o->max_depth)
		(void)snprintf(text, room, "at most a depth of %u here (--max-depth)",
		               o->max_depth);
	else if (side_bytes(test) > (uint64_t)o->max_mib << 20)
		(void)snprintf(text, room, "at most %u MiB for one test here (--max-memory)",
		               o->max_mib);
	else
		return NULL;
	return text;
}

static void prepare(struct server *s, const struct wire_frame *frame)
{
	struct wire_frame ready = {.type = WIRE_READY};
	char text[WIRE_REASON];
	const char *why = judge(s, &frame->test, text, sizeof(text));
	enum ndx_status st;

	end_test(s);
	if (why != NULL) {
		refuse_test(s, why);
		return;
	}
	s->side = (struct side){.adapter = s->adapter,
	                        .info = &s->info,
	                        .test = frame->test,
	                        .cpus = &s->options->cpus,
	                        .keepalive_ms = KEEPALIVE_MS,
	                        .peer = frame->target};
	st = side_make(&s->side);
	if (st == NDX_OK &&
	    getrandom(&s->session, sizeof(s->session), 0) != (ssize_t)sizeof(s->session))
		st = NDX_E_UNSUCCESSFUL;
	if (st != NDX_OK) {
		(void)snprintf(text, sizeof(text), "the server cannot prepare the test: %s",
		               ndx_status_name(st));
		refuse_test(s, text);
		return;
	}
	ready.session = s->session;
	ready.target = side_target(&s->side);
	enter(s, PREPARING, STEP_MS / 1000);
	if (control_send(&s->control, &ready) != NDX_OK)
		end_client(s, "the answer cannot be sent");
}

/* Wait until then, or for a stop, for the end of an accept; an end that is there counts always. */
static bool is_accepted(struct link *link, uint64_t end_ns)
{
	enum ndx_status st = ndx_overlapped_wait(&link->accept, 0);

	while (st == NDX_PENDING && !perf_stop) {
		const uint64_t now = sample_now_ns();
		const uint64_t left_ms = now < end_ns ? (end_ns - now) / 1000000 + 1 : 0;

		if (left_ms == 0)
			break;
		st = ndx_overlapped_wait(&link->accept,
		                         left_ms < SLICE_MS ? (uint32_t)left_ms : SLICE_MS);
	}
	return st == NDX_OK;
}

/* All queue pairs of the test are connected, or are within three seconds together. */
static bool are_connected(struct server *s)
{
	const uint64_t end_ns = sample_now_ns() + ACCEPT_MS * UINT64_C(1000000);

	for (uint32_t i = 0; i < s->side.test.qps; i++) {
		struct link *link = &s->side.links[i];

		if (link->connector == NULL || !is_accepted(link, end_ns))
			return false;
		link->connected = true;
	}
	return true;
}

static void go(struct server *s)
{
	const struct wire_frame going = {.type = WIRE_GOING};
	const uint32_t seconds = s->side.test.seconds;

	if (!are_connected(s)) {
		end_client(s, "GO before its queue pairs were connected");
		return;
	}
	s->began_ns = sample_now_ns();
	s->cpu_ns = side_cpu_ns();
	if (!side_start(&s->side)) {
		refuse_test(s, "the server cannot start its threads");
		return;
	}
	enter(s, RUNNING, (seconds < 1000000 ? seconds : 1000000) + OVERTIME_S);
	if (control_send(&s->control, &going) != NDX_OK)
		end_client(s, "the answer cannot be sent");
}

static void say_failure(const struct server *s)
{
	const struct worker *worker = side_failure(&s->side);

	if (worker != NULL)
		fprintf(stderr, WHO ": client %s: %s: %s, native %d\n", s->client, worker->what,
		        ndx_status_name(worker->status), worker->native);
}

static void finish(struct server *s)
{
	const struct perf_test *test = &s->side.test;
	struct wire_frame frame = {.type = WIRE_RESULT};

	frame.elapsed_ns = sample_now_ns() - s->began_ns;
	frame.cpu_ns = side_cpu_ns() - s->cpu_ns;
	frame.sent = side_sent(&s->side);
	frame.received = side_received(&s->side);
	side_stop(&s->side);
	say_failure(s);
	s->tests++;
	s->messages += frame.sent + frame.received;
	if (!s->options->quiet)
		printf(WHO ": %s %s of %u bytes, depth %u, %u queue pairs, %u threads: %" PRIu64
		           " sent, %" PRIu64 " received in %.2f s\n",
		       perf_op_name(test->op), perf_kind_name(test->kind), test->size, test->depth,
		       test->qps, test->threads, frame.sent, frame.received,
		       (double)frame.elapsed_ns / 1e9);
	fflush(stdout);
	if (control_send(&s->control, &frame) != NDX_OK) {
		end_client(s, "the answer cannot be sent");
		return;
	}
	/*
	 * The client disconnects the queue pairs: it may still take results when RESULT arrives,
	 * and a disconnect would cancel its receives. They are released with the next test, or the
	 * client.
	 */
	enter(s, READY, s->options->idle_s);
}

static void on_frame(struct server *s, const struct wire_frame *frame)
{
	if (s->phase == CONNECTING) {
		if (ndx_overlapped_wait(&s->accept, 1000) != NDX_OK) {
			end_client(s, "it did not complete the connection");
			return;
		}
		if (!s->options->quiet)
			printf(WHO ": client %s\n", s->client);
		enter(s, READY, s->options->idle_s);
	}
	if (frame->type == WIRE_TEST && s->phase == READY)
		prepare(s, frame);
	else if (frame->type == WIRE_GO && s->phase == PREPARING)
		go(s);
	else if (frame->type == WIRE_STOP && s->phase == RUNNING)
		finish(s);
	else
		end_client(s, "a message that does not belong here");
}

static void on_control_ended(struct server *s)
{
	char text[PERF_ERROR];
	const enum ndx_disconnect_reason reason =
		ndx_connector_get_disconnect_reason(s->control.connector);

	if (s->phase == READY && reason == NDX_DISCONNECT_GRACEFUL) {
		end_client(s, NULL);
		return;
	}
	end_client(s, control_why(&s->control, text, sizeof(text)));
}

/* Handle the next frame of the client, waiting up to `timeout_ms`; false: there is none. */
static bool on_control(struct server *s, uint32_t timeout_ms)
{
	struct wire_frame frame;

	switch (control_take(&s->control, timeout_ms, &frame)) {
	case CONTROL_FRAME:
		on_frame(s, &frame);
		return true;
	case CONTROL_ENDED:
		on_control_ended(s);
		return true;
	case CONTROL_MALFORMED:
		end_client(s, "a message that is no frame");
		return true;
	case CONTROL_NOTHING:
	default:
		return false;
	}
}

/* ---- connections ---- */

static void take_next(struct server *s)
{
	enum ndx_status st;

	s->request = NULL;
	st = ndx_connector_create(s->adapter, NULL, &s->request);
	if (st == NDX_OK) {
		ndx_overlapped_init(&s->request_ov);
		s->request_ov.port = s->port;
		st = ndx_listener_get_connection_request(s->listener, s->request, &s->request_ov);
	}
	if (st == NDX_PENDING)
		return;
	(void)sample_failed(WHO, st, "wait for a client");
	ndx_connector_close(s->request);
	s->request = NULL;
	s->failed = true;
}

static void welcome(struct server *s, struct ndx_connector *connector)
{
	struct sample_address peer = {.length = sizeof(peer.storage)};
	enum ndx_status st;

	/* The client may be leaving: its goodbye can be behind the request of the next client. */
	if (s->phase == READY)
		(void)on_control(s, SETTLE_MS);
	if (s->phase != IDLE) {
		reject(s, connector, "BUSY: another client is served; try again later");
		return;
	}
	(void)snprintf(s->client, sizeof(s->client), "(unknown)");
	if (ndx_connector_get_peer_address(connector, (struct sockaddr *)&peer.storage,
	                                   &peer.length) == NDX_OK)
		sample_address_format(&peer, s->client, sizeof(s->client));
	st = control_make(&s->control, s->adapter, KEEPALIVE_MS);
	ndx_overlapped_init(&s->accept);
	if (st == NDX_OK)
		st = ndx_connector_accept(connector, s->control.qp, NULL, &s->accept);
	if (st != NDX_PENDING) {
		(void)sample_failed(WHO, st, "accept %s", s->client);
		reject(s, connector, "out of resources");
		control_drop(&s->control, 0);
		return;
	}
	s->control.connector = connector;
	enter(s, CONNECTING, STEP_MS / 1000);
}

static void add_link(struct server *s, struct ndx_connector *connector,
                     const struct wire_hello_data *hello)
{
	struct link *link;
	enum ndx_status st;

	if (s->phase != PREPARING || hello->session != s->session ||
	    hello->index >= s->side.test.qps || s->side.links[hello->index].connector != NULL) {
		reject(s, connector, "there is no such test");
		return;
	}
	link = &s->side.links[hello->index];
	ndx_overlapped_init(&link->accept);
	st = ndx_connector_accept(connector, link->qp, NULL, &link->accept);
	if (st != NDX_PENDING) {
		(void)sample_failed(WHO, st, "accept queue pair %u", hello->index);
		reject(s, connector, "out of resources");
		return;
	}
	link->connector = connector;
	enter(s, PREPARING, STEP_MS / 1000);
}

static void on_request(struct server *s)
{
	struct ndx_connector *connector = s->request;
	struct wire_hello_data hello;
	uint8_t bytes[256];
	size_t length = sizeof(bytes);
	const char *wrong = "this is an ndx-perf server";

	if (s->request_ov.status != NDX_OK) {
		ndx_connector_close(connector);
		take_next(s);
		return;
	}
	if (ndx_connector_get_private_data(connector, bytes, &length) == NDX_OK)
		wrong = wire_get_hello(bytes, length, &hello);
	if (wrong != NULL)
		reject(s, connector, wrong);
	else if (hello.kind == WIRE_CONTROL)
		welcome(s, connector);
	else
		add_link(s, connector, &hello);
	take_next(s);
}

/* ---- the loop ---- */

static void wait_for_something(struct server *s)
{
	struct pollfd fds[2] = {{.fd = ndx_port_get_fd(s->port), .events = POLLIN},
	                        {.fd = -1, .events = POLLIN}};

	if (s->phase != IDLE && ndx_cq_get_fd(s->control.cq, &fds[1].fd) == NDX_OK)
		(void)ndx_cq_notify(s->control.cq, NDX_CQ_NOTIFY_ANY, NULL);
	(void)poll(fds, 2, SLICE_MS);
}

static void check_time(struct server *s)
{
	if (s->phase == IDLE || sample_now_ns() < s->deadline_ns)
		return;
	end_client(s, s->phase == READY ? "it began no test in time (--idle)"
	                                : "it did not take the next step in time");
}

static void serve(struct server *s)
{
	const uint32_t count = s->options->count;

	take_next(s);
	while (!perf_stop && !s->failed && (count == 0 || s->clients < count)) {
		struct ndx_overlapped *ov;

		wait_for_something(s);
		while (s->phase != IDLE && on_control(s, 0))
			;
		if (ndx_port_get(s->port, &ov, 1, 0) > 0)
			on_request(s);
		check_time(s);
	}
	if (s->phase != IDLE)
		end_client(s, s->phase == READY ? NULL : "the server was told to end");
	/* The request completes into the port, which is closed after it. */
	ndx_connector_close(s->request);
	printf(WHO ": %u clients, %u tests, %" PRIu64 " messages; %u connections refused\n",
	       s->clients, s->tests, s->messages, s->refused);
}

static int open_listener(struct server *s)
{
	const struct perf_options *o = s->options;
	char wish[16], text[SAMPLE_ADDRESS_TEXT];
	struct sample_address address = {0};
	int rc;

	(void)snprintf(wish, sizeof(wish), "%u", PERF_PORT);
	rc = sample_listen(WHO, s->adapter, o->listen != NULL ? o->listen : wish, &s->listener,
	                   &address);
	if (rc == SAMPLE_EXIT_OK && o->port_file != NULL)
		rc = sample_write_port(o->port_file, &address);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	printf(WHO ": %s, listening on %s\n", s->info.uri,
	       sample_address_format(&address, text, sizeof(text)));
	fflush(stdout);
	return rc;
}

int perf_server(const struct perf_options *options)
{
	struct server s = {.options = options, .info = {.size = sizeof(s.info)}};
	enum ndx_status st;
	int rc = sample_open_adapter(WHO, options->adapter, &s.adapter);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = ndx_adapter_query(s.adapter, &s.info);
	if (st == NDX_OK)
		st = ndx_port_create(&s.port);
	if (st != NDX_OK) {
		rc = sample_failed(WHO, st, "prepare the server");
		goto close_adapter;
	}
	rc = open_listener(&s);
	if (rc == SAMPLE_EXIT_OK)
		serve(&s);
	ndx_listener_close(s.listener);
	ndx_port_close(s.port);
close_adapter:
	ndx_adapter_close(s.adapter);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = sample_end_output(WHO, true);
	return s.failed ? SAMPLE_EXIT_FAILED : rc;
}
