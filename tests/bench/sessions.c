/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-sessions [--sessions N] [--bad N] [--again MS] [--blocks N]
 * What negotiating costs: N sessions at once at one server, in a process of its own; memory of one
 * that is idle; and what clients that do no good do to the others, both cases block by block in
 * turn.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <ndx/ndx.h>
#include <ndx/session.h>

#include "sample_options.h"
#include "sessions.h"

#define STACK ((size_t)256 << 10)
#define LONE 500u

_Noreturn void sessions_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-sessions: %s: %s\n", what, why);
	_Exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- sessions, one on each thread ---- */

struct crowd {
	pthread_barrier_t step;
	struct ndx_variant *variant;
	char server[32];
	unsigned count;
	unsigned active; /* of this block: the first so many */
	bool stop;
	struct member *members;
};

struct member {
	struct crowd *crowd;
	pthread_t thread;
	unsigned index;
	bool failed;
	uint64_t begin, end;
};

static void *run(void *arg)
{
	struct member *m = arg;
	struct crowd *crowd = m->crowd;

	for (;;) {
		struct ndx_session *session = NULL;
		bool mine;

		(void)pthread_barrier_wait(&crowd->step);
		if (crowd->stop)
			return NULL;
		mine = m->index < crowd->active;
		if (mine)
			session = sessions_make(crowd->variant, crowd->server, NULL);
		(void)pthread_barrier_wait(&crowd->step);
		m->begin = now_ns();
		if (mine)
			m->failed = ndx_session_run(session) != NDX_OK;
		m->end = now_ns();
		if (mine && m->failed)
			(void)fprintf(stderr, "ndx-sessions: %s\n", ndx_last_error());
		(void)pthread_barrier_wait(&crowd->step);
		/* all of them are idle now */
		(void)pthread_barrier_wait(&crowd->step);
		ndx_session_close(session);
	}
}

static void gather(struct crowd *crowd)
{
	pthread_attr_t attr;

	crowd->members = calloc(crowd->count, sizeof(*crowd->members));
	if (crowd->members == NULL ||
	    pthread_barrier_init(&crowd->step, NULL, crowd->count + 1) != 0)
		sessions_die("threads", "no memory");
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	for (unsigned i = 0; i < crowd->count; i++) {
		struct member *m = &crowd->members[i];

		m->crowd = crowd;
		m->index = i;
		if (pthread_create(&m->thread, &attr, run, m) != 0)
			sessions_die("threads", "not that many; see ulimit -u");
	}
	(void)pthread_attr_destroy(&attr);
}

static void disperse(struct crowd *crowd)
{
	crowd->stop = true;
	(void)pthread_barrier_wait(&crowd->step);
	for (unsigned i = 0; i < crowd->count; i++)
		(void)pthread_join(crowd->members[i].thread, NULL);
	(void)pthread_barrier_destroy(&crowd->step);
	free(crowd->members);
}

/* ---- blocks ---- */

struct block {
	unsigned failed;
	double all_ms, p50_ms, p99_ms;
	struct sessions_report idle; /* the server's, when all are at the end of stage ready */
};

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double percentile(double *list, unsigned count, unsigned percent)
{
	qsort(list, count, sizeof(*list), ascending);
	return count == 0 ? 0 : list[(count - 1) * (uint64_t)percent / 100];
}

/* `active` of them run, the times are of the first `counted`. */
static struct block run_block(struct crowd *crowd, unsigned active, unsigned counted,
                              const struct sessions_server *server)
{
	double *ms = calloc(active, sizeof(*ms));
	struct block b = {0};
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;

	if (ms == NULL)
		sessions_die("block", "no memory");
	crowd->active = active;
	(void)pthread_barrier_wait(&crowd->step);
	(void)pthread_barrier_wait(&crowd->step);
	(void)pthread_barrier_wait(&crowd->step);
	b.idle = sessions_server_ask(server);
	(void)pthread_barrier_wait(&crowd->step);
	for (unsigned i = 0; i < active; i++) {
		const struct member *m = &crowd->members[i];

		b.failed += m->failed;
		ms[i] = (double)(m->end - m->begin) / 1e6;
		first = m->begin < first ? m->begin : first;
		last = m->end > last ? m->end : last;
	}
	b.all_ms = (double)(last - first) / 1e6;
	b.p50_ms = percentile(ms, counted, 50);
	b.p99_ms = percentile(ms, counted, 99);
	free(ms);
	return b;
}

/* The sessions of the last block have been closed: wait for the server to see that. */
static struct sessions_report await_no_sessions(const struct sessions_server *server)
{
	const uint64_t deadline = now_ns() + 20000000000u;
	struct sessions_report r = sessions_server_ask(server);

	while (r.stats.alive > 0 && now_ns() < deadline) {
		(void)poll(NULL, 0, 1);
		r = sessions_server_ask(server);
	}
	if (r.stats.alive > 0)
		sessions_die("server", "sessions that were closed stay");
	return r;
}

static void one_at_a_time(struct crowd *crowd)
{
	double ms[LONE];
	unsigned failed = 0;
	double p50;

	for (unsigned i = 0; i < LONE; i++) {
		struct ndx_session *session = sessions_make(crowd->variant, crowd->server, NULL);
		const uint64_t begin = now_ns();

		failed += ndx_session_run(session) != NDX_OK;
		ms[i] = (double)(now_ns() - begin) / 1e6;
		ndx_session_close(session);
	}
	p50 = percentile(ms, LONE, 50);
	(void)printf("one at a time, %u of them: %u failed, p50 %.3f ms, p99 %.3f ms\n", LONE,
	             failed, p50, percentile(ms, LONE, 99));
	if (failed > 0)
		sessions_die("one at a time", "not all succeeded");
}

static unsigned all_at_once(struct crowd *crowd, const struct sessions_server *server)
{
	/* The first block has the server's allocator find its size. */
	struct block b = run_block(crowd, crowd->count, crowd->count, server);
	unsigned failed = b.failed;
	const struct sessions_report before = await_no_sessions(server);
	const double resident = (double)b.idle.resident;

	b = run_block(crowd, crowd->count, crowd->count, server);
	failed += b.failed;
	(void)printf("%u at once: %u failed, %.0f sessions/s, p50 %.1f ms, p99 %.1f ms\n",
	             crowd->count, b.failed, crowd->count / b.all_ms * 1e3, b.p50_ms, b.p99_ms);
	(void)printf("idle session at the server: %.0f bytes of heap; resident with all of them "
	             "%.1f MiB\n",
	             ((double)b.idle.heap - (double)before.heap) / crowd->count,
	             resident / (1 << 20));
	(void)await_no_sessions(server);
	return failed;
}

static unsigned with_bad(struct crowd *crowd, const struct sessions_server *server, unsigned bad,
                         unsigned again_ms, unsigned blocks)
{
	double *calm = calloc(blocks, sizeof(*calm));
	double *disturbed = calloc(blocks, sizeof(*disturbed));
	const unsigned good = crowd->count - bad;
	unsigned failed = 0;
	uint64_t sent = 0;
	double p99;

	if (calm == NULL || disturbed == NULL)
		sessions_die("blocks", "no memory");
	for (unsigned i = 0; i < 2 * blocks; i++) {
		/* ABBA, so that a drift of the machine falls on both alike */
		const bool hostile = (i % 4 == 1) || (i % 4 == 2);
		struct hostile *h = hostile ? hostile_start(server->port, bad, again_ms) : NULL;
		const struct block b =
			run_block(crowd, hostile ? good : crowd->count, good, server);

		failed += b.failed;
		(hostile ? disturbed : calm)[i / 2] = b.p99_ms;
		if (h != NULL)
			sent += hostile_stop(h);
		(void)await_no_sessions(server);
	}
	p99 = percentile(calm, blocks, 50);
	(void)printf("%u of %u, p99 (median of %u blocks): %.1f ms if the others are like them, "
	             "%.1f ms if they are hostile every %u ms: x%.3f; %u failed, "
	             "rubbish was sent %llu times\n",
	             good, crowd->count, blocks, p99, percentile(disturbed, blocks, 50), again_ms,
	             percentile(disturbed, blocks, 50) / p99, failed, (unsigned long long)sent);
	free(calm);
	free(disturbed);
	return failed;
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

struct settings {
	unsigned sessions, bad, again_ms, blocks;
};

/* False: the program ends with `code`. */
static bool parse(int argc, char **argv, struct settings *s, int *code)
{
	const struct sample_option options[] = {
		{"--sessions", "N", "at once (2000)", .number = &s->sessions, .min = 1,
	         .max = 8000},
		{"--bad", "N", "hostile clients, fewer than sessions (200)", .number = &s->bad,
	         .max = 8000},
		{"--again", "MS", "after which a hostile client comes again (100)",
	         .number = &s->again_ms, .min = 1, .max = 60000},
		{"--blocks", "N", "with and without them in turn (9)", .number = &s->blocks,
	         .min = 1, .max = 1000},
	};
	const struct sample_program program = {
		.name = "ndx-sessions",
		.synopsis = "[options]",
		.about = "Many sessions at one negotiation server, some of them hostile.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
	};
	size_t operands;

	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	if (s->bad < s->sessions)
		return true;
	*code = sample_usage(&program, "--bad %u: fewer than the %u sessions", s->bad, s->sessions);
	return false;
}

int main(int argc, char **argv)
{
	struct settings settings = {.sessions = 2000, .bad = 200, .again_ms = 100, .blocks = 9};
	struct crowd crowd = {0};
	struct ndx_negotiation *negotiation = NULL;
	struct sessions_server server;
	unsigned failed;
	int code;

	if (!parse(argc, argv, &settings, &code))
		return code;
	raise_limit();
	/* Room for clients that connect again before the server has seen their end. */
	server = sessions_server_start(2 * settings.sessions + 1000, NULL);
	sessions_variant(&negotiation, &crowd.variant);
	(void)snprintf(crowd.server, sizeof(crowd.server), "127.0.0.1:%u", server.port);
	crowd.count = settings.sessions;
	one_at_a_time(&crowd);
	(void)await_no_sessions(&server);
	gather(&crowd);
	failed = all_at_once(&crowd, &server);
	if (settings.bad > 0)
		failed +=
			with_bad(&crowd, &server, settings.bad, settings.again_ms, settings.blocks);
	disperse(&crowd);
	sessions_server_stop(&server);
	ndx_variant_close(crowd.variant);
	(void)ndx_negotiation_close(negotiation);
	if (failed > 0)
		sessions_die("result", "sessions failed");
	return 0;
}
