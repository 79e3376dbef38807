/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: chooses the tests, drives them, and reports. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "control.h"
#include "perf.h"
#include "report.h"
#include "sample_address.h"
#include "sample_clock.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_progress.h"
#include "sample_report.h"
#include "side.h"
#include "sweep.h"

#define WHO "ndx-perf client"
#define SLICE_MS 50u        /* how often the client looks whether to stop */
#define KEEPALIVE_MS 10000u /* after which a silent server is dead */
#define GOODBYE_MS 2000u

struct client {
	const struct perf_options *options;
	struct sample_address server;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	struct control control;
	struct report *report;
	uint64_t session;
	struct side side;
	char error[PERF_ERROR]; /* why the test failed; "": it has not */
	bool lost;              /* the control connection is no longer usable */
	struct complaints complaints;
	unsigned failed, rows;
	unsigned planned, begun;         /* tests */
	struct sample_progress progress; /* in seconds of all tests */
};

/** How much longer than asked for a test without a message goes on. */
#define FIRST_MESSAGE_NS UINT64_C(3000000000)

/** Figures at one moment. */
struct snapshot {
	uint64_t ns, sent, received, cpu_ns;
};

__attribute__((format(printf, 2, 3))) static bool failed(struct client *c, const char *format, ...)
{
	va_list args;

	if (c->error[0] != '\0')
		return false; /* the first cause counts */
	va_start(args, format);
	(void)vsnprintf(c->error, sizeof(c->error), format, args);
	va_end(args);
	return false;
}

static bool control_failed(struct client *c, const char *what)
{
	char text[PERF_ERROR / 2];

	c->lost = true;
	return failed(c, "%s: %s", what, control_why(&c->control, text, sizeof(text)));
}

/* ---- progress ---- */

static double seconds_of_test(const struct client *c)
{
	return c->options->seconds + c->options->warm_up;
}

/* `seconds` of the current test are over. */
static void show_progress(struct client *c, double seconds)
{
	const double most = seconds_of_test(c);
	const unsigned before = c->begun > 0 ? c->begun - 1 : 0;

	if (seconds > most)
		seconds = most;
	sample_progress_show(&c->progress, (uint64_t)(before * most + seconds));
}

static void begin_progress(struct client *c)
{
	const double seconds = c->planned * seconds_of_test(c);

	sample_progress_begin(&c->progress, WHO, "seconds", seconds > 1 ? (uint64_t)seconds : 1,
	                      !c->options->quiet);
}

/* ---- connecting ---- */

static bool connect_one(struct client *c, struct ndx_qp *qp, const struct wire_hello_data *hello,
                        struct ndx_connector **out)
{
	char text[SAMPLE_ADDRESS_TEXT];
	uint8_t bytes[WIRE_HELLO];
	enum ndx_status st;

	wire_put_hello(bytes, hello);
	st = ndx_connect_to(c->adapter, qp, (const struct sockaddr *)&c->server.storage,
	                    c->server.length, bytes, sizeof(bytes), c->options->timeout_ms, out);
	if (st == NDX_OK)
		return true;
	return failed(c, "connect to %s: %s: %s",
	              sample_address_format(&c->server, text, sizeof(text)), ndx_status_name(st),
	              ndx_last_error());
}

/*
 * As ndx_connect_to(), step by step: a server that refuses says why in its private data, which only
 * the connector has.
 */
static bool connect_control(struct client *c)
{
	const struct wire_hello_data hello = {.kind = WIRE_CONTROL};
	char text[SAMPLE_ADDRESS_TEXT], reason[WIRE_REASON] = "", why[PERF_ERROR / 2] = "";
	uint8_t bytes[WIRE_HELLO], said[256];
	size_t length = sizeof(said);
	struct ndx_connect_attr attr;
	struct ndx_overlapped ov;
	enum ndx_status st;

	wire_put_hello(bytes, &hello);
	ndx_connect_attr_init(&attr);
	attr.private_data = bytes;
	attr.private_data_len = sizeof(bytes);
	ndx_overlapped_init(&ov);
	st = ndx_connector_create(c->adapter, NULL, &c->control.connector);
	if (st == NDX_OK)
		st = ndx_connector_connect(c->control.connector, c->control.qp,
		                           (const struct sockaddr *)&c->server.storage,
		                           c->server.length, &attr, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, c->options->timeout_ms);
	if (st == NDX_OK) {
		ndx_overlapped_init(&ov);
		st = ndx_connector_complete_connect(c->control.connector, &ov);
		if (st == NDX_PENDING)
			st = ndx_overlapped_wait(&ov, c->options->timeout_ms);
	}
	if (st == NDX_OK)
		return true;
	if (st == NDX_E_CONNECTION_REFUSED &&
	    ndx_connector_get_private_data(c->control.connector, said, &length) == NDX_OK)
		wire_copy_text(reason, sizeof(reason), said, length);
	(void)ndx_connector_cancel(c->control.connector);
	(void)sample_address_format(&c->server, text, sizeof(text));
	if (reason[0] != '\0')
		return failed(c, "connect to %s: the server says: %s", text, reason);
	if (st == NDX_PENDING)
		return failed(c, "connect to " SAMPLE_NO_ANSWER, text, c->options->timeout_ms);
	length = sizeof(why);
	if (ndx_connector_get_error_text(c->control.connector, why, &length) == NDX_OK &&
	    why[0] != '\0')
		return failed(c, "connect to %s: %s", text, why);
	return failed(c, "connect to %s: %s: %s", text, ndx_status_name(st), ndx_last_error());
}

static bool connect_links(struct client *c)
{
	struct wire_hello_data hello = {.kind = WIRE_DATA, .session = c->session};

	for (uint32_t i = 0; i < c->side.test.qps; i++) {
		struct link *link = &c->side.links[i];

		hello.index = i;
		if (!connect_one(c, link->qp, &hello, &link->connector))
			return false;
		link->connected = true;
	}
	return true;
}

/* ---- the protocol ---- */

/* Wait for a frame of this type. */
static bool expect(struct client *c, enum wire_type type, struct wire_frame *frame,
                   const char *what)
{
	switch (control_take(&c->control, c->options->timeout_ms, frame)) {
	case CONTROL_FRAME:
		if (frame->type == type)
			return true;
		if (frame->type == WIRE_REFUSED)
			return failed(c, "the server refuses the test: %s", frame->reason);
		c->lost = true;
		return failed(c, "%s: the server answers with something else", what);
	case CONTROL_ENDED:
		return control_failed(c, what);
	case CONTROL_MALFORMED:
		c->lost = true;
		return failed(c, "%s: the server's answer is no frame", what);
	case CONTROL_NOTHING:
	default:
		c->lost = true;
		return failed(c, "%s: no answer from the server in %u ms", what,
		              c->options->timeout_ms);
	}
}

static bool call(struct client *c, struct wire_frame *frame, enum wire_type answer,
                 const char *what)
{
	if (control_send(&c->control, frame) != NDX_OK)
		return control_failed(c, what);
	return expect(c, answer, frame, what);
}

static bool prepare(struct client *c)
{
	struct wire_frame frame = {.type = WIRE_TEST, .test = c->side.test};
	enum ndx_status st = side_make(&c->side);

	if (st != NDX_OK)
		return failed(c, "prepare the test: %s: %s", ndx_status_name(st), ndx_last_error());
	frame.target = side_target(&c->side);
	if (!call(c, &frame, WIRE_READY, "begin a test"))
		return false;
	c->session = frame.session;
	c->side.peer = frame.target;
	if (!connect_links(c))
		return false;
	frame.type = WIRE_GO;
	if (!call(c, &frame, WIRE_GOING, "begin to measure"))
		return false;
	if (!side_start(&c->side))
		return failed(c, "no thread can be started");
	return true;
}

/* ---- measuring ---- */

static void look(const struct client *c, struct snapshot *snapshot)
{
	const struct worker *worker = side_failure(&c->side);

	snapshot->ns = sample_now_ns();
	if (worker != NULL && worker->failed_ns < snapshot->ns)
		snapshot->ns = worker->failed_ns;
	snapshot->sent = side_sent(&c->side);
	snapshot->received = side_received(&c->side);
	snapshot->cpu_ns = side_cpu_ns();
}

static void worker_failed(struct client *c)
{
	const struct worker *worker = side_failure(&c->side);
	char why[PERF_ERROR / 2] = "";
	size_t length = sizeof(why);

	if (worker == NULL)
		return;
	if (worker->status == NDX_PENDING) {
		(void)failed(c, "%s: nothing in %u ms", worker->what, worker->waited_ms);
		return;
	}
	for (uint32_t i = worker->index; i < c->side.test.qps && why[0] == '\0';
	     i += c->side.test.threads) {
		length = sizeof(why);
		if (ndx_connector_get_error_text(c->side.links[i].connector, why, &length) !=
		    NDX_OK)
			why[0] = '\0';
	}
	(void)failed(c, "%s: %s, native %d%s%s", worker->what, ndx_status_name(worker->status),
	             worker->native, why[0] != '\0' ? "; " : "", why);
}

/* Wait for a while; false: the test has failed. */
static bool pass(struct client *c, uint32_t ms)
{
	struct wire_frame frame;

	switch (control_take(&c->control, ms, &frame)) {
	case CONTROL_NOTHING:
		break;
	case CONTROL_ENDED:
		return control_failed(c, "the server is gone");
	case CONTROL_FRAME:
	case CONTROL_MALFORMED:
	default:
		c->lost = true;
		return failed(c, "the server says something that was not asked for");
	}
	if (side_failure(&c->side) == NULL)
		return true;
	worker_failed(c);
	return false;
}

static uint64_t progress_of(const struct client *c, const struct snapshot *s)
{
	/* Of answered requests there is one result more at this end. */
	return c->side.test.kind == PERF_BANDWIDTH && c->side.test.both ? s->sent + s->received
	                                                                : s->sent;
}

static void show_second(struct client *c, const struct snapshot *from, const struct snapshot *to,
                        uint64_t begin)
{
	const double seconds = (double)(to->ns - from->ns) / 1e9;
	const uint64_t messages = progress_of(c, to) - progress_of(c, from);
	const double rate = seconds > 0 ? (double)messages / seconds : 0;

	if (c->options->quiet)
		return;
	sample_progress_wipe(&c->progress);
	fprintf(stderr, WHO ": %3.0f s  %-9s %-9s %8u B  %12.0f msg/s  %8.3f Gbit/s\n",
	        (double)(to->ns - begin) / 1e9, perf_op_name(c->side.test.op),
	        perf_kind_name(c->side.test.kind), c->side.test.size, rate,
	        rate * c->side.test.size * 8 / 1e9);
}

/* On a busy machine the time of a short test may be over before its first message: a test without a
 * message goes on for up to three seconds more. */
static bool is_over(const struct client *c, const struct snapshot *begin, uint64_t now,
                    uint64_t end_ns)
{
	if (now < end_ns || now >= end_ns + FIRST_MESSAGE_NS)
		return now >= end_ns;
	if (c->side.measuring && c->side.test.kind == PERF_LATENCY)
		return side_measured(&c->side) > 0;
	return side_sent(&c->side) + side_received(&c->side) > begin->sent + begin->received;
}

/* Let the test run for `seconds`, after `done` seconds of it; a line for each of them. */
static bool run_for(struct client *c, double done, double seconds, struct snapshot *begin,
                    struct snapshot *end)
{
	const uint64_t begin_ns = sample_now_ns();
	const uint64_t end_ns = begin_ns + (uint64_t)(seconds * 1e9);
	uint64_t line_ns = begin_ns + 1000000000u;
	struct snapshot last;
	bool good = true;

	look(c, begin);
	last = *begin;
	while (good && !perf_stop) {
		const uint64_t now = sample_now_ns();
		const uint64_t next = line_ns < end_ns || now >= end_ns ? line_ns : end_ns;

		if (is_over(c, begin, now, end_ns))
			break;
		show_progress(c, done + (double)(now - begin_ns) / 1e9);
		if (now >= line_ns) {
			look(c, end);
			show_second(c, &last, end, begin_ns);
			last = *end;
			line_ns += 1000000000u;
			continue;
		}
		good = pass(c, next - now < SLICE_MS * UINT64_C(1000000)
		                       ? (uint32_t)((next - now) / 1000000)
		                       : SLICE_MS);
	}
	c->side.measuring = false;
	look(c, end);
	return good;
}

/* Stop in the order in which neither side loses the answers of the other. */
static bool stop(struct client *c, struct wire_frame *result)
{
	side_drain(&c->side);
	while (!side_is_drained(&c->side)) {
		if (perf_stop)
			c->side.hurry = true;
		if (!pass(c, 5))
			return false;
	}
	result->type = WIRE_STOP;
	if (!call(c, result, WIRE_RESULT, "end the test"))
		return false;
	side_stop(&c->side);
	worker_failed(c);
	return c->error[0] == '\0';
}

/* ---- rows ---- */

static void merge(const struct side *side, struct histogram *latency, struct histogram *service)
{
	for (uint32_t i = 0; i < side->test.threads; i++) {
		histogram_merge(latency, side->workers[i].latency);
		histogram_merge(service, side->workers[i].service);
	}
}

static double share(uint64_t ns, uint64_t messages)
{
	return messages > 0 ? (double)ns / 1e3 / (double)messages : -1;
}

/* The server's share of the row, from its figures of the whole test. */
static void add_server(const struct client *c, const struct wire_frame *result,
                       struct perf_row *row)
{
	const bool streams = c->side.test.kind == PERF_BANDWIDTH;
	const uint64_t all =
		side_sent(&c->side) + (streams && c->side.test.both ? result->sent : 0);
	const double seconds = (double)result->elapsed_ns / 1e9;

	row->server_cpu_us = share(result->cpu_ns, all);
	if (!streams || !c->side.test.both || seconds <= 0)
		return;
	row->messages += (uint64_t)((double)result->sent / seconds * row->seconds);
}

static void report(struct client *c, const struct snapshot *begin, const struct snapshot *end,
                   const struct wire_frame *result, struct histogram *hists)
{
	struct perf_row row = {.test = c->side.test,
	                       .seconds = (double)(end->ns - begin->ns) / 1e9,
	                       .messages = end->sent - begin->sent,
	                       .client_cpu_us = -1,
	                       .server_cpu_us = -1,
	                       .trips = 1};

	if (c->side.test.kind == PERF_LATENCY) {
		merge(&c->side, &hists[0], &hists[1]);
		/* Those of the snapshots are others: a thread may rest before and after each. */
		row.messages = hists[0].count;
		row.rate = c->options->rate;
		row.latency = &hists[0];
		row.service = c->options->rate > 0 ? &hists[1] : NULL;
		row.trips = row.rate > 0 || row.test.op == PERF_READ ? 1 : 2;
	}
	if (result->type == WIRE_RESULT)
		add_server(c, result, &row);
	row.client_cpu_us = share(end->cpu_ns - begin->cpu_ns, row.messages);
	row.messages_a_second = row.seconds > 0 ? (double)row.messages / row.seconds : 0;
	row.error = c->error[0] != '\0' ? c->error : NULL;
	report_row(c->report, &row);
	c->rows++;
}

/* One test: everything from its frame to its row. */
static void run_test(struct client *c, const struct perf_test *test)
{
	const struct perf_options *o = c->options;
	struct histogram *hists = calloc(2, sizeof(*hists));
	struct snapshot begin = {0}, end = {0};
	struct wire_frame result = {.type = WIRE_STOP};
	bool good;

	c->begun++;
	c->error[0] = '\0';
	c->side = (struct side){.adapter = c->adapter,
	                        .info = &c->info,
	                        .test = *test,
	                        .client = true,
	                        .cpus = &o->cpus,
	                        .keepalive_ms = KEEPALIVE_MS,
	                        .timeout_ms = o->timeout_ms};
	if (o->rate > 0)
		c->side.interval_ns = (uint64_t)(1e9 * test->threads / o->rate);
	if (hists == NULL)
		(void)failed(c, "no memory");
	good = hists != NULL && prepare(c);
	if (good) {
		good = run_for(c, 0, o->warm_up, &begin, &end);
		c->side.measuring = true;
		if (good)
			good = run_for(c, o->warm_up, o->seconds, &begin, &end);
		/* An interrupted test is a short one. */
		if (good && !stop(c, &result))
			good = false;
		side_stop(&c->side);
		sample_progress_wipe(&c->progress);
		report(c, &begin, &end, &result, hists);
	}
	if (!good) {
		c->failed++;
		sample_progress_wipe(&c->progress);
		complain_of_test(&c->complaints, c->error);
	}
	side_drop(&c->side, c->lost ? 0 : GOODBYE_MS);
	free(hists);
}

static bool count_test(void *arg, const struct perf_test *test)
{
	struct client *c = arg;

	(void)test;
	c->planned++;
	return true;
}

static bool next_test(void *arg, const struct perf_test *test)
{
	struct client *c = arg;

	if (!c->lost && !perf_stop)
		run_test(c, test);
	return !c->lost && !perf_stop;
}

static void run_all(struct client *c)
{
	struct sweep sweep = {
		.options = c->options, .info = &c->info, .each = count_test, .arg = c};

	if (c->options->op[PERF_WRITE_IMM] && sweep_lacks(&sweep, PERF_WRITE_IMM))
		fprintf(stderr, WHO ": %s has no write with immediate\n", c->info.uri);
	sweep_run(&sweep);
	begin_progress(c);
	sweep.each = next_test;
	sweep_run(&sweep);
	complain_of_rest(&c->complaints);
}

/* Without --adapter: the adapter that reaches the server. */
static int open_adapter(struct client *c)
{
	const char *uri = c->options->adapter;
	char found[256];
	size_t size = sizeof(found);
	enum ndx_status st;
	int rc;

	if (uri == NULL && ndx_resolve((const struct sockaddr *)&c->server.storage,
	                               c->server.length, found, &size, NULL) == NDX_OK)
		uri = found;
	rc = sample_open_adapter(WHO, uri, &c->adapter);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	c->info.size = sizeof(c->info);
	st = ndx_adapter_query(c->adapter, &c->info);
	if (st == NDX_OK)
		return rc;
	ndx_adapter_close(c->adapter);
	return sample_failed(WHO, st, "query the adapter");
}

static int measure(struct client *c, json_t **rows)
{
	int rc;

	if (!connect_control(c)) {
		complain(c->error);
		return SAMPLE_EXIT_FAILED;
	}
	c->report = report_begin(c->options, c->info.uri);
	if (c->report == NULL) {
		complain("no memory");
		return SAMPLE_EXIT_FAILED;
	}
	run_all(c);
	rc = report_end(c->report, rows);
	if (c->rows == 0 && c->failed == 0 && !perf_stop) {
		complain("nothing was measured: no combination of the options is possible here");
		return SAMPLE_EXIT_FAILED;
	}
	return c->failed > 0 ? SAMPLE_EXIT_FAILED : rc;
}

static int run(const struct perf_options *options, json_t **rows)
{
	struct client c = {.options = options};
	enum ndx_status st;
	const char *why;
	int rc;

	if (!sample_address_parse(options->server, &c.server, &why)) {
		(void)sample_error(WHO, "%s: %s", options->server, why);
		return SAMPLE_EXIT_USAGE;
	}
	if (sample_address_port(&c.server) == 0)
		sample_address_set_port(&c.server, PERF_PORT);
	rc = open_adapter(&c);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = control_make(&c.control, c.adapter, KEEPALIVE_MS);
	rc = st == NDX_OK ? measure(&c, rows)
	                  : sample_failed(WHO, st, "prepare the control connection");
	control_drop(&c.control, c.lost ? 0 : GOODBYE_MS);
	ndx_adapter_close(c.adapter);
	return rc;
}

int perf_client(const struct perf_options *options)
{
	json_t *rows = NULL;
	FILE *out;
	int rc = sample_json_open(WHO, options->json, &out);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = run(options, &rows);
	return sample_end(WHO, sample_json_end("ndx-perf", out, rows, rc));
}
