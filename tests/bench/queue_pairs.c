/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-queue-pairs [--adapter URI] [--count N] [--blocks N]
 * N queue pairs between two ends of this process: connected by one session, beside N sessions with
 * one queue pair each that begin at the same moment; block by block in turn, medians. The time is
 * that from the call to the end of stage ready of all; queue pairs and sessions exist before.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "same_plugin.h"
#include "sample_options.h"

enum { WAIT_MS = 120000, BLOCKS_MOST = 101 };

struct end {
	struct ndx_qp *qp;
	struct ndx_connector *connector;
};

struct bench {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	char address[32];
	uint32_t count;
	struct end *a;
	struct end *b;
	uint32_t taken; /* atomic: of `b` */
};

static void must(enum ndx_status st, const char *what)
{
	if (st == NDX_OK || st == NDX_PENDING)
		return;
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-queue-pairs: %s: %s: %s\n", what, ndx_status_name(st),
	              ndx_last_error());
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the server ---- */

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct bench *x = arg;
	const uint32_t i = __atomic_fetch_add(&x->taken, 1, __ATOMIC_RELAXED);

	(void)session;
	if (i >= x->count)
		return NDX_E_INSUFFICIENT_RESOURCES;
	resources->connector = x->b[i].connector;
	resources->qp = x->b[i].qp;
	return NDX_OK;
}

static enum ndx_status on_open_many(void *arg, struct ndx_session *session, uint32_t count,
                                    struct ndx_session_queue_pair *list,
                                    struct ndx_session_resources *resources)
{
	const struct bench *x = arg;

	(void)session;
	(void)resources;
	for (uint32_t i = 0; i < count && i < x->count; i++) {
		list[i].connector = x->b[i].connector;
		list[i].qp = x->b[i].qp;
	}
	return NDX_OK;
}

static void serve(struct bench *x)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &x->variant;
	attr.variant_count = 1;
	attr.max_sessions = 2 * x->count + 100;
	attr.max_queue_pairs = NDX_SESSION_QUEUE_PAIRS_MOST;
	attr.events = (struct ndx_negotiation_server_events){.open = on_open, .arg = x};
	attr.open_many = on_open_many;
	must(ndx_negotiation_server_create(&attr, &x->server), "server");
	must(ndx_negotiation_server_get_address(x->server, (struct sockaddr *)&at, &length),
	     "address");
	(void)snprintf(x->address, sizeof(x->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

/* ---- ends ---- */

static void open_ends(struct bench *x, struct end *ends)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = x->cq;
	attr.receive_depth = 4;
	attr.initiator_depth = 4;
	for (uint32_t i = 0; i < x->count; i++) {
		must(ndx_qp_create(x->adapter, &attr, &ends[i].qp), "queue pair");
		must(ndx_connector_create(x->adapter, NULL, &ends[i].connector), "connector");
	}
}

static void close_ends(const struct bench *x, struct end *ends)
{
	for (uint32_t i = 0; i < x->count; i++) {
		ndx_connector_close(ends[i].connector);
		ndx_qp_close(ends[i].qp);
	}
}

/* ---- blocks ---- */

static struct ndx_session *make(const struct bench *x, const struct ndx_session_queue_pair *list,
                                uint32_t count)
{
	const char *const servers[] = {x->address};
	struct ndx_session *session;
	struct ndx_session_attr attr;

	ndx_session_attr_init(&attr);
	attr.variant = x->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.attempts = 1;
	attr.connect_timeout_ms = 30000;
	attr.queue_pairs = list;
	attr.queue_pair_count = count;
	must(ndx_session_create(&attr, &session), "session");
	return session;
}

/* `sessions` sessions that share the queue pairs; how long until all of them are ready. */
static double run_block(struct bench *x, uint32_t sessions)
{
	const uint32_t each = x->count / sessions;
	struct ndx_session_queue_pair *list = calloc(x->count, sizeof(*list));
	struct ndx_session **s = calloc(sessions, sizeof(struct ndx_session *));
	struct ndx_overlapped *ov = calloc(sessions, sizeof(*ov));
	double begin;
	double took;

	if (list == NULL || s == NULL || ov == NULL)
		must(NDX_E_NO_MEMORY, "block");
	open_ends(x, x->a);
	open_ends(x, x->b);
	__atomic_store_n(&x->taken, 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < x->count; i++)
		list[i] = (struct ndx_session_queue_pair){.connector = x->a[i].connector,
		                                          .qp = x->a[i].qp};
	for (uint32_t i = 0; i < sessions; i++)
		s[i] = make(x, &list[i * each], each);
	begin = now_ms();
	for (uint32_t i = 0; i < sessions; i++)
		must(ndx_session_run_overlapped(s[i], &ov[i]), "run");
	for (uint32_t i = 0; i < sessions; i++)
		must(ndx_overlapped_wait(&ov[i], WAIT_MS), "session");
	took = now_ms() - begin;
	for (uint32_t i = 0; i < sessions; i++)
		ndx_session_close(s[i]);
	/* the ends of the server's are free when its sessions are over */
	ndx_negotiation_server_close(x->server);
	serve(x);
	close_ends(x, x->a);
	close_ends(x, x->b);
	free(ov);
	free(s);
	free(list);
	return took;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list, unsigned count)
{
	qsort(list, count, sizeof(*list), ascending);
	return list[count / 2];
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void measure(struct bench *x, unsigned blocks)
{
	double one[BLOCKS_MOST];
	double many[BLOCKS_MOST];

	(void)run_block(x, 1); /* the allocator finds its size */
	for (unsigned i = 0; i < 2 * blocks; i++) {
		/* ABBA, so that a drift of the machine falls on both alike */
		const bool single = (i % 4 == 1) || (i % 4 == 2);

		(single ? many : one)[i / 2] = run_block(x, single ? x->count : 1);
	}
	(void)printf("%u queue pairs, medians of %u blocks: by one session %.1f ms, by %u sessions "
	             "%.1f ms (x%.2f)\n",
	             x->count, blocks, median(one, blocks), x->count, median(many, blocks),
	             median(many, blocks) / median(one, blocks));
}

int main(int argc, char **argv)
{
	struct bench x = {.count = 1000};
	const char *uri = "loop";
	uint32_t blocks = 9;
	const struct sample_option options[] = {
		SAMPLE_ROW_ADAPTER(uri),
		{"--count", "N", "queue pairs (1000)", .number = &x.count, .min = 2,
	         .max = NDX_SESSION_QUEUE_PAIRS_MOST},
		{"--blocks", "N", "of each kind in turn (9)", .number = &blocks, .min = 1,
	         .max = BLOCKS_MOST},
	};
	const struct sample_program program = {
		.name = "ndx-queue-pairs",
		.synopsis = "[options]",
		.about = "Many queue pairs by one session beside as many sessions.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
	};
	size_t operands;
	int code;

	if (!sample_parse(&program, argc, argv, &operands, &code))
		return code;
	raise_limit();
	x.a = calloc(x.count, sizeof(*x.a));
	x.b = calloc(x.count, sizeof(*x.b));
	if (x.a == NULL || x.b == NULL)
		must(NDX_E_NO_MEMORY, "ends");
	must(ndx_adapter_open(uri, &x.adapter), uri);
	must(ndx_cq_create_depth(x.adapter, 64, &x.cq), "completion queue");
	must(ndx_negotiation_create(&x.negotiation), "framework");
	must(ndx_negotiation_register(x.negotiation, &same_plugin), "plugin");
	must(ndx_negotiation_get_variant(x.negotiation, "same", "as-it-is", NULL, 0, &x.variant),
	     "variant");
	serve(&x);
	measure(&x, blocks);
	ndx_negotiation_server_close(x.server);
	ndx_variant_close(x.variant);
	(void)ndx_negotiation_close(x.negotiation);
	ndx_cq_close(x.cq);
	ndx_adapter_close(x.adapter);
	free(x.b);
	free(x.a);
	return 0;
}
