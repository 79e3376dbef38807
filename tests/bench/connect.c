/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-connect: what connections cost to open and to end. All at once, as cmtime of rdmacm-utils
 * does it, and one after the other. Before each end messages are sent; the disconnect has to drain
 * them, and every one has to be there. What comes next for a connection is begun in a callback, as
 * cmtime's event thread does it; with --port by the main thread, which is woken for it.
 *
 * With --ends N the program compares, N times in turn, the end of all connections at once with the
 * end of one: time, processor time, and how often a thread of the process slept. With --srq the
 * queue pairs of a side share a receive queue.
 */
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ndx/ndx.h>

#include "connect_options.h"
#include "connect_results.h"
#include "lane.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_stop.h"
#include "traffic.h"

enum {
	SIDES = CONNECT_SIDES,
	MESSAGE = 64,
	WAIT_MS = 60000,
	BATCH = 64,
	ENDS_MAX = CONNECT_ENDS_MAX,
	ONES = 8 /* ends of one connection for each end of all */
};

/* What the overlapped object of an end is used for at the moment. */
enum stage { STAGE_EXPECT, STAGE_CONNECT, STAGE_ACCEPT, STAGE_COMPLETE, STAGE_WATCH, STAGE_PART };

struct side;

struct bench;

struct line {
	struct bench *bench;
	struct side *side;
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_overlapped ov;
	enum stage stage;
};

struct side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_srq *srq; /* NULL: each queue pair has its own receives */
	struct ndx_mr *mr;
	struct line *lines;
	char memory[2 * MESSAGE];
	uint64_t sent; /* completed well */
	uint64_t received;
};

struct bench {
	struct side sides[SIDES];
	struct ndx_listener *listener;
	struct sockaddr_storage address;
	socklen_t address_len;
	struct ndx_port *port;
	bool by_port;   /* steps come through it; else only `all_done` does */
	unsigned count; /* of lines on each side */
	unsigned messages;
	unsigned left;                  /* ends to come; atomic: two adapters call back */
	struct ndx_overlapped all_done; /* comes behind the last of them */
};

static void must(const char *what, enum ndx_status got, enum ndx_status want)
{
	if (got != want)
		lane_die(what,
		         ndx_last_error()[0] != '\0' ? ndx_last_error() : ndx_status_name(got));
}

/* ---- one end ---- */

static void on_step(struct ndx_overlapped *ov);

static void make_qp(struct bench *b, struct line *line)
{
	struct side *side = line->side;
	struct ndx_sge sge = {side->memory + MESSAGE, MESSAGE, ndx_mr_get_local_token(side->mr)};
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = side->cq;
	attr.srq = side->srq;
	attr.initiator_depth = b->messages > 0 ? b->messages : 1;
	attr.receive_depth = side->srq == NULL ? attr.initiator_depth : 0;
	must("ndx_qp_create", ndx_qp_create(side->adapter, &attr, &line->qp), NDX_OK);
	for (unsigned i = 0; i < b->messages && side->srq == NULL; i++)
		must("ndx_qp_receive", ndx_qp_receive(line->qp, NULL, &sge, 1), NDX_OK);
	/* one receive for each message: only side 1 gets some */
	for (unsigned i = 0; i < b->messages && side->srq != NULL && side == &b->sides[1]; i++)
		must("ndx_srq_receive", ndx_srq_receive(side->srq, NULL, &sge, 1), NDX_OK);
}

static void make_connector(struct bench *b, struct line *line, struct side *side)
{
	memset(line, 0, sizeof(*line));
	line->side = side;
	ndx_overlapped_init(&line->ov);
	line->ov.port = b->by_port ? b->port : NULL;
	line->ov.callback = b->by_port ? NULL : on_step;
	line->ov.context = line;
	line->bench = b;
	must("ndx_connector_create", ndx_connector_create(side->adapter, NULL, &line->connector),
	     NDX_OK);
}

static void expect(struct bench *b, struct line *line)
{
	make_connector(b, line, &b->sides[1]);
	line->stage = STAGE_EXPECT;
	must("ndx_listener_get_connection_request",
	     ndx_listener_get_connection_request(b->listener, line->connector, &line->ov),
	     NDX_PENDING);
}

static void connect_line(struct bench *b, struct line *line)
{
	line->stage = STAGE_CONNECT;
	must("ndx_connector_connect",
	     ndx_connector_connect(
		     line->connector, line->qp, (struct sockaddr *)&b->address, b->address_len,
		     &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                        .inbound_read_limit = 1,
	                                        .outbound_read_limit = 1},
		     &line->ov),
	     NDX_PENDING);
}

static void begin_disconnect(struct line *line)
{
	line->stage = STAGE_PART;
	must("ndx_connector_disconnect", ndx_connector_disconnect(line->connector, &line->ov),
	     NDX_PENDING);
}

/* One more end has got where all are to get. */
static void arrive(struct bench *b)
{
	if (__atomic_sub_fetch(&b->left, 1, __ATOMIC_ACQ_REL) == 0)
		ndx_port_post(b->port, &b->all_done);
}

/* What comes next, when something has ended well. */
static void advance(struct bench *b, struct line *line)
{
	if (line->ov.status != NDX_OK)
		lane_die("connecting or disconnecting", ndx_status_name(line->ov.status));
	switch (line->stage) {
	case STAGE_EXPECT:
		make_qp(b, line);
		line->stage = STAGE_ACCEPT;
		must("ndx_connector_accept",
		     ndx_connector_accept(
			     line->connector, line->qp,
			     &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
		                                        .inbound_read_limit = 1,
		                                        .outbound_read_limit = 1},
			     &line->ov),
		     NDX_PENDING);
		break;
	case STAGE_CONNECT:
		line->stage = STAGE_COMPLETE;
		must("ndx_connector_complete_connect",
		     ndx_connector_complete_connect(line->connector, &line->ov), NDX_PENDING);
		break;
	case STAGE_ACCEPT:
	case STAGE_COMPLETE:
		arrive(b);
		break;
	case STAGE_WATCH:
		begin_disconnect(line);
		break;
	case STAGE_PART:
		arrive(b);
		break;
	}
}

static void on_step(struct ndx_overlapped *ov)
{
	struct line *line = ov->context;

	advance(line->bench, line);
}

static void take_results(struct side *side)
{
	struct ndx_result results[BATCH];
	size_t n;

	do {
		n = ndx_cq_get_results(side->cq, results, BATCH);
		for (size_t i = 0; i < n; i++) {
			const bool receive = results[i].request_type == NDX_REQUEST_RECEIVE;

			if (results[i].status == NDX_OK)
				*(receive ? &side->received : &side->sent) += 1;
			else if (results[i].status != NDX_E_CANCELED || !receive)
				lane_die("a request", ndx_status_name(results[i].status));
		}
	} while (n == BATCH);
}

/* From here on ends arrive, ... */
static void expect_ends(struct bench *b, unsigned wanted)
{
	__atomic_store_n(&b->left, wanted, __ATOMIC_RELEASE);
}

/* ... and when all have, this is over. */
static void work(struct bench *b)
{
	struct ndx_overlapped *ovs[BATCH];
	bool over = false;

	while (!over) {
		const size_t n = ndx_port_get(b->port, ovs, BATCH, WAIT_MS);

		if (n == 0)
			lane_die("nothing ended for", "a minute");
		for (size_t i = 0; i < n; i++) {
			if (ovs[i] == &b->all_done)
				over = true;
			else
				advance(b, ovs[i]->context);
		}
	}
}

/* ---- some connections: open, talk, end ---- */

/* Each step for all of them before the next one, as cmtime does it. */
static void open_lines(struct bench *b, unsigned count)
{
	struct line *lines = b->sides[0].lines;

	expect_ends(b, 2 * count);
	for (unsigned i = 0; i < count; i++)
		make_connector(b, &lines[i], &b->sides[0]);
	for (unsigned i = 0; i < count; i++)
		make_qp(b, &lines[i]);
	for (unsigned i = 0; i < count; i++)
		connect_line(b, &lines[i]);
	work(b);
}

static void watch_and_talk(struct bench *b, unsigned count)
{
	struct side *side = &b->sides[0];
	struct ndx_sge sge = {side->memory, MESSAGE, ndx_mr_get_local_token(side->mr)};

	for (unsigned i = 0; i < count; i++) {
		struct line *line = &b->sides[1].lines[i];

		line->stage = STAGE_WATCH;
		must("ndx_connector_notify_disconnect",
		     ndx_connector_notify_disconnect(line->connector, &line->ov), NDX_PENDING);
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned m = 0; m < b->messages; m++)
			must("ndx_qp_send", ndx_qp_send(side->lines[i].qp, NULL, &sge, 1, 0),
			     NDX_OK);
	}
}

static void close_lines(struct bench *b, unsigned count)
{
	for (unsigned s = 0; s < SIDES; s++) {
		for (unsigned i = 0; i < count; i++) {
			ndx_connector_close(b->sides[s].lines[i].connector);
			ndx_qp_close(b->sides[s].lines[i].qp);
		}
		take_results(&b->sides[s]);
	}
}

struct cost {
	uint64_t connect; /* ns, all of them together */
	uint64_t disconnect;
	uint64_t processors; /* ns of all threads in the disconnects, ... */
	uint64_t sleeps;     /* ... and how often one of them slept */
	uint64_t close;      /* ns, of all objects of the connections */
};

static uint64_t ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* Add what the process has used since `before`. */
static void add_use(struct cost *cost, const struct rusage *before)
{
	struct rusage now;

	(void)getrusage(RUSAGE_SELF, &now);
	cost->processors = ns_of(&now.ru_utime) + ns_of(&now.ru_stime) - ns_of(&before->ru_utime) -
	                   ns_of(&before->ru_stime);
	cost->sleeps = (uint64_t)(now.ru_nvcsw - before->ru_nvcsw);
}

static struct cost run_lines(struct bench *b, unsigned count)
{
	struct rusage before;
	struct cost cost;
	uint64_t start;

	for (unsigned i = 0; i < count; i++)
		expect(b, &b->sides[1].lines[i]);
	start = traffic_now_ns();
	open_lines(b, count);
	cost.connect = traffic_now_ns() - start;
	watch_and_talk(b, count);
	expect_ends(b, 2 * count);
	(void)getrusage(RUSAGE_SELF, &before);
	start = traffic_now_ns();
	for (unsigned i = 0; i < count; i++)
		begin_disconnect(&b->sides[0].lines[i]);
	work(b);
	cost.disconnect = traffic_now_ns() - start;
	add_use(&cost, &before);
	start = traffic_now_ns();
	close_lines(b, count);
	cost.close = traffic_now_ns() - start;
	return cost;
}

/* ---- the program ---- */

/* A connection of ofi:tcp has several descriptors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void open_side(struct bench *b, struct side *side, bool shared)
{
	const uint32_t depth = b->count * b->messages;

	must("ndx_cq_create",
	     ndx_cq_create_depth(side->adapter, b->count * 2 * (b->messages + 1), &side->cq),
	     NDX_OK);
	must("ndx_mr_register_new",
	     ndx_mr_register_new(side->adapter, side->memory, sizeof(side->memory),
	                         NDX_MR_ALLOW_LOCAL_WRITE, &side->mr),
	     NDX_OK);
	if (shared)
		must("ndx_srq_create",
		     ndx_srq_create(side->adapter,
		                    &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
		                                           .depth = depth > 0 ? depth : 1,
		                                           .max_sge = 1},
		                    &side->srq),
		     NDX_OK);
	side->lines = calloc(b->count, sizeof(*side->lines));
	if (side->lines == NULL)
		lane_die("no memory", "for the connections");
}

static void close_side(struct side *side)
{
	ndx_mr_close(side->mr);
	if (side->srq != NULL)
		ndx_srq_close(side->srq);
	ndx_cq_close(side->cq);
	ndx_adapter_close(side->adapter);
	free(side->lines);
}

static void listen_somewhere(struct bench *b)
{
	struct sockaddr_storage list[16];
	size_t count = sizeof(list) / sizeof(list[0]);

	must("ndx_adapter_query_addresses",
	     ndx_adapter_query_addresses(b->sides[1].adapter, list, &count), NDX_OK);
	if (count == 0)
		lane_die("the adapter", "has no address");
	must("ndx_listen_on",
	     ndx_listen_on(b->sides[1].adapter, (struct sockaddr *)&list[0],
	                   list[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                                : sizeof(struct sockaddr_in6),
	                   b->count, &b->listener),
	     NDX_OK);
	b->address_len = sizeof(b->address);
	must("ndx_listener_get_local_address",
	     ndx_listener_get_local_address(b->listener, (struct sockaddr *)&b->address,
	                                    &b->address_len),
	     NDX_OK);
}

static void run(struct bench *b, unsigned singles)
{
	struct cost one = {0};
	uint64_t longest = 0;
	struct cost all;

	(void)run_lines(b, 1); /* warms up */
	all = run_lines(b, b->count);
	results_step();
	results_tell(
		"at_once",
		json_pack("{s:i, s:f, s:f, s:f}", "connections", (int)b->count, "connect_us",
	                  (double)all.connect / 1e3 / b->count, "disconnect_us",
	                  (double)all.disconnect / 1e3 / b->count, "close_us",
	                  (double)all.close / 1e3 / b->count),
		"%u at once: connect %.1f us each, disconnect %.1f us each, close %.1f us each\n",
		b->count, (double)all.connect / 1e3 / b->count,
		(double)all.disconnect / 1e3 / b->count, (double)all.close / 1e3 / b->count);
	for (unsigned i = 0; i < singles; i++) {
		const struct cost next = run_lines(b, 1);

		one.connect += next.connect;
		one.disconnect += next.disconnect;
		if (next.disconnect > longest)
			longest = next.disconnect;
		results_step();
	}
	if (singles > 0)
		results_tell(
			"one_by_one",
			json_pack("{s:i, s:f, s:f, s:f}", "connections", (int)singles, "connect_us",
		                  (double)one.connect / 1e3 / singles, "disconnect_us",
		                  (double)one.disconnect / 1e3 / singles, "disconnect_most_us",
		                  (double)longest / 1e3),
			"%u one by one: connect %.1f us each, disconnect %.1f us each (%.1f at "
			"most)\n",
			singles, (double)one.connect / 1e3 / singles,
			(double)one.disconnect / 1e3 / singles, (double)longest / 1e3);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* The end of all at once beside the end of one. */
static void compare_ends(struct bench *b, unsigned rounds)
{
	double values[4][ENDS_MAX];
	double ones[ENDS_MAX * ONES];
	double one;

	for (unsigned r = 0; r < rounds; r++) {
		struct cost all;

		for (unsigned i = 0; i < ONES; i++)
			ones[r * ONES + i] = (double)run_lines(b, 1).disconnect / 1e6;
		all = run_lines(b, b->count);
		values[0][r] = (double)all.disconnect / 1e6;
		values[1][r] = (double)all.processors / 1e6;
		values[2][r] = (double)all.sleeps;
		values[3][r] = (double)all.close / 1e6;
		results_step();
	}
	one = median(ones, rounds * ONES);
	results_tell("ends",
	             json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "connections", (int)b->count,
	                       "all_ms", median(values[0], rounds), "one_ms", one, "ratio",
	                       median(values[0], rounds) / one, "processors_ms",
	                       median(values[1], rounds), "sleeps", median(values[2], rounds),
	                       "close_ms", median(values[3], rounds)),
	             "%u ends at once: %.2f ms, one: %.3f ms, ratio %.1f; processors %.2f ms, %.0f "
	             "sleeps, "
	             "close %.2f ms\n",
	             b->count, median(values[0], rounds), one, median(values[0], rounds) / one,
	             median(values[1], rounds), median(values[2], rounds),
	             median(values[3], rounds));
}

static bool account(const struct bench *b, unsigned singles, unsigned ends)
{
	const uint64_t wanted =
		(1 + b->count + singles + (uint64_t)ends * (ONES + b->count)) * b->messages;

	results_tell("messages",
	             json_pack("{s:I, s:I, s:I}", "wanted", (json_int_t)wanted, "completed",
	                       (json_int_t)b->sides[0].sent, "received",
	                       (json_int_t)b->sides[1].received),
	             "%llu messages, %llu completed, %llu received\n", (unsigned long long)wanted,
	             (unsigned long long)b->sides[0].sent,
	             (unsigned long long)b->sides[1].received);
	return b->sides[0].sent == wanted && b->sides[1].received == wanted;
}

static bool open_adapters(struct bench *b, const char *const *uris)
{
	char text[512];

	for (unsigned i = 0; i < SIDES; i++) {
		const enum ndx_status st = ndx_adapter_open(uris[i], &b->sides[i].adapter);

		if (st == NDX_OK)
			continue;
		(void)snprintf(text, sizeof(text), "%s: %s: %s", uris[i], ndx_status_name(st),
		               ndx_last_error());
		(void)fprintf(stderr, RESULTS_WHO ": %s\n", text);
		sample_json_error(text);
		return false;
	}
	return true;
}

/* With adapters that are open. Returns an exit status. */
static int measure(struct bench *b, const struct connect_options *o)
{
	bool good;
	int rc;

	rc = results_begin(1 + o->singles + o->ends, !o->quiet);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	must("ndx_port_create", ndx_port_create(&b->port), NDX_OK);
	open_side(b, &b->sides[0], o->shared);
	open_side(b, &b->sides[1], o->shared);
	listen_somewhere(b);
	run(b, o->singles);
	if (o->ends > 0)
		compare_ends(b, o->ends);
	good = account(b, o->singles, o->ends);
	sample_stop_lock(); /* for good: a signal has nothing left to tell */
	ndx_listener_close(b->listener);
	for (unsigned i = 0; i < SIDES; i++)
		close_side(&b->sides[i]);
	ndx_port_close(b->port);
	return good ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct connect_options o = {.count = 100, .singles = 100, .messages = 4};
	static struct bench b;
	int code;

	if (!connect_parse(&o, argc, argv, &code))
		return code;
	code = results_open(o.json);
	if (code != SAMPLE_EXIT_OK)
		return code;
	b.count = o.count;
	b.messages = o.messages;
	b.by_port = o.by_port;
	raise_limit();
	code = open_adapters(&b, o.uris) ? measure(&b, &o) : SAMPLE_EXIT_NO_ADAPTER;
	return results_end(code);
}
