/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-sessions-plugins [SESSIONS [STUCK [BLOCKS]]]
 * What plugins that misbehave do to the others' sessions: STUCK calls that block for 60 s, and now
 * and then a session that never completes, or answers out of range; beside it as many that are
 * good. Both cases block by block in turn, one server, SESSIONS one behind the other in each.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>

enum { GOOD, STUCK, ENDLESS, TOO_LONG, KINDS, ALARM_MS = 60000, PAUSE_MS = 5, STUCK_MOST = 48 };

static int release[2]; /* something to read: stuck calls return */

_Noreturn static void die(const char *what)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-sessions-plugins: %s: %s\n", what, ndx_last_error());
	_Exit(1);
}

/* ---- the plugin ---- */

static enum ndx_status good(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer;
	(void)length;
	memset(reply->data, 1, 96);
	reply->length = 96;
	reply->completed = x->round == 2;
	return NDX_OK;
}

static enum ndx_status stuck(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	struct pollfd wait = {.fd = release[0], .events = POLLIN};

	(void)poll(&wait, 1, ALARM_MS);
	return good(session, x, peer, length, reply);
}

static enum ndx_status endless(void *session, const struct ndx_exchange *x, const void *peer,
                               size_t length, struct ndx_exchange_reply *reply)
{
	(void)good(session, x, peer, length, reply);
	reply->completed = false;
	return NDX_OK;
}

static enum ndx_status too_long(void *session, const struct ndx_exchange *x, const void *peer,
                                size_t length, struct ndx_exchange_reply *reply)
{
	(void)good(session, x, peer, length, reply);
	reply->length = reply->room + 1;
	return NDX_OK;
}

static const struct ndx_variant_ops ops[KINDS] = {
	{.info = good, .ready = good},
	{.info = stuck, .ready = good},
	{.info = endless, .ready = good},
	{.info = too_long, .ready = good},
};
static const struct ndx_plugin_variant list[KINDS] = {
	{.name = "good", .help = "", .ops = &ops[GOOD]},
	{.name = "stuck", .help = "", .ops = &ops[STUCK]},
	{.name = "endless", .help = "", .ops = &ops[ENDLESS]},
	{.name = "too-long", .help = "", .ops = &ops[TOO_LONG]},
};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(plugin),
                                         .name = "bench",
                                         .version = "1",
                                         .vendor = "NDX",
                                         .list = list,
                                         .count = KINDS};

/* ---- sessions ---- */

struct bench {
	struct ndx_variant *variants[KINDS];
	char server[32];
	unsigned sessions;
	unsigned stuck;
	atomic_bool stop;
	atomic_bool bad;    /* what the ones beside it are */
	atomic_uint beside; /* sessions that have run there */
};

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct ndx_session *make(struct bench *b, int kind)
{
	const char *server = b->server;
	struct ndx_session_attr attr;
	struct ndx_session *s = NULL;

	ndx_session_attr_init(&attr);
	attr.variant = b->variants[kind];
	attr.servers = &server;
	attr.server_count = 1;
	attr.attempts = 1;
	attr.max_message = 512;
	if (ndx_session_create(&attr, &s) != NDX_OK)
		die("session");
	return s;
}

/* One every few milliseconds, in both cases. */
static void *run_beside(void *arg)
{
	struct bench *b = arg;

	while (!b->stop) {
		const int kind = !b->bad ? GOOD : b->beside % 2 != 0 ? ENDLESS : TOO_LONG;
		struct ndx_session *s = make(b, kind);

		(void)ndx_session_run(s);
		ndx_session_close(s);
		b->beside++;
		(void)poll(NULL, 0, PAUSE_MS);
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* So many calls of the plugin's that do not return. */
static void hold_calls(struct bench *b, struct ndx_session **held)
{
	for (unsigned i = 0; i < b->stuck; i++) {
		held[i] = make(b, STUCK);
		if (ndx_session_connect(held[i]) != NDX_OK)
			die("connect");
	}
}

static void let_go(const struct bench *b, struct ndx_session **held)
{
	char byte = 0;

	if (write(release[1], &byte, 1) != 1)
		die("release");
	for (unsigned i = 0; i < b->stuck; i++) {
		if (ndx_session_execute(held[i], NDX_STAGE_INFO) != NDX_OK)
			die("a session that was stuck");
		ndx_session_close(held[i]);
	}
	if (read(release[0], &byte, 1) != 1)
		die("release");
}

/* p50 and p99 of sessions one behind the other. */
static void run_block(struct bench *b, bool bad, double *p50, double *p99)
{
	struct ndx_session *held[STUCK_MOST] = {NULL};
	double *ms = calloc(b->sessions, sizeof(*ms));

	if (ms == NULL)
		die("block");
	b->bad = bad;
	if (bad)
		hold_calls(b, held);
	for (unsigned i = 0; i < b->sessions; i++) {
		struct ndx_session *s = make(b, GOOD);
		const double begin = now_ms();

		if (ndx_session_run(s) != NDX_OK)
			die("a good session");
		ms[i] = now_ms() - begin;
		ndx_session_close(s);
	}
	if (bad)
		let_go(b, held);
	qsort(ms, b->sessions, sizeof(*ms), ascending);
	*p50 = ms[b->sessions / 2];
	*p99 = ms[(uint64_t)(b->sessions - 1) * 99 / 100];
	free(ms);
}

static void run_blocks(struct bench *b, unsigned blocks)
{
	double *p50[2];
	double *p99[2];

	for (int i = 0; i < 2; i++) {
		p50[i] = calloc(blocks, sizeof(**p50));
		p99[i] = calloc(blocks, sizeof(**p99));
		if (p50[i] == NULL || p99[i] == NULL)
			die("blocks");
	}
	for (unsigned i = 0; i < 2 * blocks; i++) {
		/* ABBA, so that a drift of the machine falls on both alike */
		const bool bad = i % 4 == 1 || i % 4 == 2;

		run_block(b, bad, &p50[bad][i / 2], &p99[bad][i / 2]);
	}
	for (int i = 0; i < 2; i++) {
		qsort(p50[i], blocks, sizeof(**p50), ascending);
		qsort(p99[i], blocks, sizeof(**p99), ascending);
		(void)printf("%s: p50 %.3f ms, p99 %.3f ms (median of %u blocks of %u sessions)\n",
		             i == 0 ? "all good" : "some bad", p50[i][blocks / 2],
		             p99[i][blocks / 2], blocks, b->sessions);
	}
	(void)printf("p50 x%.3f, p99 x%.3f, with %u calls stuck; %u sessions ran beside\n",
	             p50[1][blocks / 2] / p50[0][blocks / 2],
	             p99[1][blocks / 2] / p99[0][blocks / 2], b->stuck, (unsigned)b->beside);
	for (int i = 0; i < 2; i++) {
		free(p50[i]);
		free(p99[i]);
	}
}

static void serve(struct bench *b, struct ndx_negotiation *n,
                  struct ndx_negotiation_server **server)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	if (ndx_negotiation_register(n, &plugin) != NDX_OK)
		die("plugin");
	for (int i = 0; i < KINDS; i++)
		if (ndx_negotiation_get_variant(n, "bench", list[i].name, NULL, 0,
		                                &b->variants[i]) != NDX_OK)
			die("variant");
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = b->variants;
	attr.variant_count = KINDS;
	if (ndx_negotiation_server_create(&attr, server) != NDX_OK)
		die("server");
	(void)ndx_negotiation_server_get_address(*server, (struct sockaddr *)&at, &length);
	(void)snprintf(b->server, sizeof(b->server), "127.0.0.1:%u", ntohs(at.sin_port));
}

static unsigned argument(int argc, char **argv, int at, unsigned otherwise)
{
	return argc > at ? (unsigned)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct bench b = {.sessions = argument(argc, argv, 1, 1000),
	                  .stuck = argument(argc, argv, 2, 16)};
	const unsigned blocks = argument(argc, argv, 3, 9);
	struct ndx_negotiation_server *server = NULL;
	struct ndx_negotiation *n = NULL;
	pthread_t thread;

	if (b.sessions == 0 || b.stuck > STUCK_MOST || blocks == 0 || pipe(release) != 0 ||
	    ndx_negotiation_create(&n) != NDX_OK)
		die("usage: [SESSIONS [STUCK, at most 48 [BLOCKS]]]");
	serve(&b, n, &server);
	if (pthread_create(&thread, NULL, run_beside, &b) != 0)
		die("thread");
	run_blocks(&b, blocks);
	b.stop = true;
	(void)pthread_join(thread, NULL);
	ndx_negotiation_server_close(server);
	for (int i = 0; i < KINDS; i++)
		ndx_variant_close(b.variants[i]);
	return ndx_negotiation_close(n) == NDX_OK ? 0 : 1;
}
