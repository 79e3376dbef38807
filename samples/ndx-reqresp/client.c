/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: connect, then one request after the other, each answered before the next. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "negotiated.h"
#include "reqresp.h"
#include "sample_clock.h"
#include "sample_json.h"
#include "sample_latency.h"
#include "sample_options.h"
#include "sample_report.h"
#include "wire.h"

#define WHO "ndx-reqresp client"
#define MS UINT64_C(1000000) /* in nanoseconds */
#define SLICE_MS 200u

/** Counters of the run so far. */
struct tally {
	uint64_t begin, shown;
	uint32_t verified, wrong;
	struct sample_latency latency;
};

/* The two halves of connecting; in between the client checks the server's greeting. */
static int connect_to(struct end *end, const struct sample_address *server)
{
	struct ndx_connect_attr attr;
	uint8_t greeting[WIRE_GREETING], answer[256];
	size_t length = sizeof(answer);
	char text[SAMPLE_ADDRESS_TEXT], what[SAMPLE_ADDRESS_TEXT + 16];
	struct ndx_overlapped ov;
	enum ndx_status st;
	uint32_t allowed;
	int rc;

	st = ndx_connector_create(end->adapter, NULL, &end->connector);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "create a connector");
	wire_make_greeting(greeting, end->size);
	ndx_overlapped_init(&ov);
	ndx_connect_attr_init(&attr);
	attr.private_data = greeting;
	attr.private_data_len = sizeof(greeting);
	st = ndx_connector_connect(end->connector, end->qp,
	                           (const struct sockaddr *)&server->storage, server->length, &attr,
	                           &ov);
	snprintf(what, sizeof(what), "connect to %s",
	         sample_address_format(server, text, sizeof(text)));
	rc = end_finish(end, st, &ov, what);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = ndx_connector_get_private_data(end->connector, answer, &length);
	if (st != NDX_OK || !wire_read_greeting(answer, length, &allowed)) {
		(void)ndx_connector_reject(end->connector, NULL, 0);
		fprintf(stderr, WHO ": %s: that is no ndx-reqresp server\n", what);
		return SAMPLE_EXIT_FAILED;
	}
	ndx_overlapped_init(&ov);
	st = ndx_connector_complete_connect(end->connector, &ov);
	return end_finish(end, st, &ov, what);
}

static void show_progress(const struct end *end, struct tally *tally, uint32_t done)
{
	bool terminal = isatty(STDERR_FILENO);
	uint64_t now = sample_now_ns();

	if (!end->options->progress || now - tally->shown < (terminal ? 250 : 5000) * MS)
		return;
	tally->shown = now;
	fprintf(stderr, "%s" WHO ": %u of %u requests, %.0f per second%s", terminal ? "\r" : "",
	        done, end->options->requests, (double)done * 1e9 / (double)(now - tally->begin),
	        terminal ? "   " : "\n");
}

/* An unexpected result: report how the connection ended. */
static int explain(struct end *end, enum ndx_status st, const struct ndx_result *result,
                   const char *what)
{
	enum ndx_disconnect_reason reason;

	if (st == NDX_PENDING && reqresp_stop) {
		fprintf(stderr, WHO ": %s: stopped before the answer came\n", what);
		return SAMPLE_EXIT_FAILED;
	}
	if (st == NDX_PENDING) {
		fprintf(stderr, WHO ": %s: nothing in %u ms\n", what, end->options->timeout_ms);
		return SAMPLE_EXIT_FAILED;
	}
	if (st != NDX_OK)
		return sample_failed(WHO, st, "%s", what);
	if (result->status == NDX_OK) {
		fprintf(stderr, WHO ": %s: came in the wrong order\n", what);
		return SAMPLE_EXIT_FAILED;
	}
	reason = end_reason(end, 1000);
	fprintf(stderr, WHO ": %s: %s, native %d; connection: %s\n", what,
	        ndx_status_name(result->status), result->native,
	        ndx_disconnect_reason_name(reason));
	(void)sample_show_cause(end->connector);
	return SAMPLE_EXIT_FAILED;
}

/* In slices, so that a stop ends the wait; what is under way then has a slice left. */
static enum ndx_status next_result(struct end *end, struct ndx_result *result)
{
	enum ndx_status st = NDX_PENDING;
	bool last = false;

	for (uint32_t left = end->options->timeout_ms; left > 0 && st == NDX_PENDING && !last;) {
		const uint32_t slice = left < SLICE_MS ? left : SLICE_MS;

		last = reqresp_stop;
		st = end_next_result(end, slice, result);
		left -= slice;
	}
	return st;
}

static int expect(struct end *end, enum ndx_request_type type, struct ndx_result *result,
                  const char *what)
{
	enum ndx_status st = next_result(end, result);

	if (st != NDX_OK || result->status != NDX_OK || result->request_type != type)
		return explain(end, st, result, what);
	return SAMPLE_EXIT_OK;
}

static int one_request(struct end *end, struct tally *tally, uint32_t sequence)
{
	const struct reqresp_options *o = end->options;
	struct ndx_result result;
	const char *wrong;
	enum ndx_status st;
	uint64_t sent_at;
	int rc;

	wire_make_request(end->requests, end->size, o->seed, sequence);
	/* Post the receive first: the answer may come before the send call returns. */
	st = end_post_receive(end, end->responses_mr, end->responses, 0);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "post a receive");
	sent_at = sample_now_ns();
	st = end_post_send(end, end->requests_mr, end->requests, 0);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "post request %u", sequence);
	/*
	 * The result of a send comes before that of the receive that the answer to the send filled.
	 */
	rc = expect(end, NDX_REQUEST_SEND, &result, "send a request");
	if (rc == SAMPLE_EXIT_OK)
		rc = expect(end, NDX_REQUEST_RECEIVE, &result, "wait for the response");
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	sample_latency_add(&tally->latency, sample_now_ns() - sent_at);
	wrong = wire_check_response(end->responses, result.bytes_transferred, end->size, o->seed,
	                            sequence);
	if (wrong == NULL) {
		tally->verified++;
		return SAMPLE_EXIT_OK;
	}
	if (tally->wrong++ < 10)
		fprintf(stderr, WHO ": response %u: %s\n", sequence, wrong);
	return SAMPLE_EXIT_OK;
}

static void show_tally(const struct end *end, const struct tally *tally)
{
	const struct sample_latency *l = &tally->latency;
	const uint32_t requests = tally->verified + tally->wrong;
	const double seconds = (double)(sample_now_ns() - tally->begin) / 1e9;

	if (tally->shown != tally->begin && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	printf(WHO ": %u requests of %u bytes: %u verified, %u wrong\n", requests, end->size,
	       tally->verified, tally->wrong);
	printf(WHO ": %.0f requests a second, one at a time\n",
	       seconds > 0 ? requests / seconds : 0);
	printf(WHO ": latency p50 %.1f us, p90 %.1f us, p99 %.1f us, max %.1f us\n",
	       (double)sample_latency_percentile(l, 50) / 1e3,
	       (double)sample_latency_percentile(l, 90) / 1e3,
	       (double)sample_latency_percentile(l, 99) / 1e3, (double)l->max / 1e3);
	(void)fflush(stdout);
}

static void add_tally(const struct end *end, const struct tally *tally)
{
	const struct sample_latency *l = &tally->latency;
	const double seconds = (double)(sample_now_ns() - tally->begin) / 1e9;

	sample_json_add(
		"client",
		json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:{s:f, s:f, s:f, s:f}}", "adapter",
	                  end->info.uri, "requests", (json_int_t)end->options->requests, "bytes",
	                  (json_int_t)end->size, "verified", (json_int_t)tally->verified, "wrong",
	                  (json_int_t)tally->wrong, "seconds", seconds, "latency_us", "p50",
	                  (double)sample_latency_percentile(l, 50) / 1e3, "p90",
	                  (double)sample_latency_percentile(l, 90) / 1e3, "p99",
	                  (double)sample_latency_percentile(l, 99) / 1e3, "max",
	                  (double)l->max / 1e3));
}

static int plot_tally(const struct end *end, const struct tally *tally)
{
	char title[96];

	snprintf(title, sizeof(title), "%u requests of %u bytes", tally->verified + tally->wrong,
	         end->size);
	return sample_latency_plot(WHO, end->options->plot, title, &tally->latency);
}

static int converse(struct end *end, struct tally *tally)
{
	int rc = SAMPLE_EXIT_OK;

	tally->begin = tally->shown = sample_now_ns();
	for (uint32_t i = 0; i < end->options->requests && rc == SAMPLE_EXIT_OK; i++) {
		if (reqresp_stop)
			break;
		rc = one_request(end, tally, i);
		show_progress(end, tally, i + 1);
	}
	show_tally(end, tally);
	add_tally(end, tally);
	if (end->options->plot != NULL && plot_tally(end, tally) != SAMPLE_EXIT_OK)
		rc = SAMPLE_EXIT_FAILED;
	return rc != SAMPLE_EXIT_OK || tally->wrong != 0 ? SAMPLE_EXIT_FAILED : SAMPLE_EXIT_OK;
}

static int goodbye(struct end *end)
{
	int rc = end_disconnect(end);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	printf(WHO ": disconnected: %s, both sides said goodbye\n",
	       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(end->connector)));
	return rc;
}

static int run(struct end *end, const struct sample_address *server, struct tally *tally)
{
	struct negotiated *negotiated = NULL;
	int rc, bye;

	if (end->info.max_transfer_length < end->options->size) {
		fprintf(stderr, WHO ": %s carries at most %u bytes in one message\n", end->info.uri,
		        end->info.max_transfer_length);
		return SAMPLE_EXIT_USAGE;
	}
	rc = end_make(end, 1, end->options->size);
	if (rc == SAMPLE_EXIT_OK && end->options->negotiated)
		rc = negotiated_connect(end, &negotiated);
	else if (rc == SAMPLE_EXIT_OK)
		rc = connect_to(end, server);
	if (rc == SAMPLE_EXIT_OK)
		rc = end_watch(end);
	if (rc != SAMPLE_EXIT_OK) {
		negotiated_end(negotiated);
		return rc;
	}
	printf(WHO ": %s, connected to %s\n", end->info.uri, end->options->address);
	(void)fflush(stdout);
	rc = converse(end, tally);
	bye = goodbye(end);
	negotiated_end(negotiated);
	return rc != SAMPLE_EXIT_OK ? rc : bye;
}

int client_run(const struct reqresp_options *options)
{
	struct sample_address server = {0};
	struct tally *tally;
	struct end end;
	const char *why;
	int rc;

	if (!options->negotiated && !sample_address_parse_peer(options->address, &server, &why)) {
		(void)sample_error(WHO, "%s: %s", options->address, why);
		return SAMPLE_EXIT_USAGE;
	}
	tally = calloc(1, sizeof(*tally));
	if (tally == NULL)
		return SAMPLE_EXIT_FAILED;
	rc = end_open(&end, WHO, options);
	if (rc != SAMPLE_EXIT_OK)
		goto free_tally;
	rc = run(&end, &server, tally);
	if (options->stats)
		end_stats(&end, "client_adapter");
	end_drop(&end);
	ndx_adapter_close(end.adapter);
free_tally:
	free(tally);
	return rc;
}
