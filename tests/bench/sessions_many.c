/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-sessions-many [--sessions N] [--flight N] [--bad N] [--again MS] [--blocks N]
 *                          [--psk FILE [--psk-wrong FILE] | --cert FILE --key FILE --ca FILE
 *                           [--whole] [--cert-wrong FILE --key-wrong FILE]]
 * Sessions by the calls that do not block, in two processes: N held at once; then N in all, FLIGHT
 * at a time, each closed when it is ready; then the same beside BAD hostile clients, both cases
 * block by block in turn. --psk and --cert: TLS. With --psk-wrong or --cert-wrong the hostile
 * clients speak TLS, and have another key, or a certificate that is not of the CA. FLIGHT 0: only
 * the first. Skipped (77) if a process may not have as many descriptors.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <ndx/ndx.h>
#include <ndx/session.h>

#include "sample_options.h"
#include "sessions.h"

enum { SPARE = 400, SKIP = 77, PATIENCE_MS = 100000 };

_Noreturn void sessions_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-sessions-many: %s: %s\n", what, why);
	_Exit(1);
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* ---- sessions that begin and end in callbacks ---- */

struct crowd;

struct place {
	struct ndx_overlapped ov;
	struct crowd *crowd;
	struct ndx_session *session;
	uint64_t begin_ns;
};

struct crowd {
	struct ndx_variant *variant;
	const struct ndx_tls_attr *tls;
	char server[32];
	struct place *places;
	double *ms; /* of each session that has ended */
	unsigned most;
	/* A run; the callbacks have these, on one thread: */
	bool holds; /* sessions stay when they are ready */
	unsigned total;
	unsigned begun;
	unsigned failed;
	atomic_uint ended;
	pthread_mutex_t lock;
	pthread_cond_t all;
};

static struct ndx_session *make(const struct crowd *crowd)
{
	return sessions_make(crowd->variant, crowd->server, crowd->tls);
}

static void begin_session(struct place *p)
{
	p->crowd->begun++;
	p->session = make(p->crowd);
	p->begin_ns = now_ns();
	if (ndx_session_run_overlapped(p->session, &p->ov) != NDX_PENDING)
		sessions_die("session", ndx_last_error());
}

static void on_end(struct ndx_overlapped *ov)
{
	struct place *p = ov->context;
	struct crowd *crowd = p->crowd;
	struct ndx_session_error error = {.size = sizeof(error)};

	crowd->ms[crowd->ended] = (double)(now_ns() - p->begin_ns) / 1e6;
	if (ov->status != NDX_OK && crowd->failed++ < 5) {
		(void)ndx_session_get_error(p->session, &error);
		(void)fprintf(stderr, "ndx-sessions-many: %s\n", error.text);
	}
	if (!crowd->holds) {
		ndx_session_close(p->session);
		p->session = NULL;
		if (crowd->begun < crowd->total)
			begin_session(p);
	}
	pthread_mutex_lock(&crowd->lock);
	if (++crowd->ended == crowd->total)
		(void)pthread_cond_signal(&crowd->all);
	pthread_mutex_unlock(&crowd->lock);
}

/* All that are to begin at once have done so before the first callback counts on. */
static void start_run(struct crowd *crowd, unsigned total, unsigned flight, bool holds)
{
	crowd->holds = holds;
	crowd->total = total;
	crowd->failed = 0;
	crowd->ended = 0;
	/* The callbacks begin the rest, so `begun` is theirs from the first session on. */
	crowd->begun = flight;
	for (unsigned i = 0; i < flight; i++) {
		struct place *p = &crowd->places[i];

		p->session = make(crowd);
	}
	for (unsigned i = 0; i < flight; i++) {
		struct place *p = &crowd->places[i];

		p->begin_ns = now_ns();
		if (ndx_session_run_overlapped(p->session, &p->ov) != NDX_PENDING)
			sessions_die("session", ndx_last_error());
	}
}

static void await_all(struct crowd *crowd)
{
	struct timespec until;
	int error = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&crowd->lock);
	while (crowd->ended < crowd->total && error == 0)
		error = pthread_cond_timedwait(&crowd->all, &crowd->lock, &until);
	pthread_mutex_unlock(&crowd->lock);
	if (error != 0)
		sessions_die("sessions", "not all have ended in time");
}

static void gather(struct crowd *crowd, unsigned most)
{
	crowd->most = most;
	crowd->places = calloc(most, sizeof(*crowd->places));
	crowd->ms = calloc(most, sizeof(*crowd->ms));
	if (crowd->places == NULL || crowd->ms == NULL)
		sessions_die("sessions", "no memory");
	(void)pthread_mutex_init(&crowd->lock, NULL);
	(void)pthread_cond_init(&crowd->all, NULL);
	for (unsigned i = 0; i < most; i++) {
		struct place *p = &crowd->places[i];

		p->crowd = crowd;
		p->ov.callback = on_end;
		p->ov.context = p;
	}
}

/* ---- runs ---- */

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

/* The sessions of a run have been closed: wait for the server to see that. */
static void await_no_sessions(const struct sessions_server *server)
{
	const uint64_t deadline = now_ns() + 20000000000u;
	struct sessions_report r = sessions_server_ask(server);

	while (r.stats.alive > 0 && now_ns() < deadline) {
		(void)poll(NULL, 0, 1);
		r = sessions_server_ask(server);
	}
	if (r.stats.alive > 0)
		sessions_die("server", "sessions that were closed stay");
}

static unsigned hold_all(struct crowd *crowd, const struct sessions_server *server)
{
	const uint64_t begin_ns = now_ns();
	struct sessions_report r;
	double ms;

	start_run(crowd, crowd->most, crowd->most, true);
	await_all(crowd);
	ms = (double)(now_ns() - begin_ns) / 1e6;
	r = sessions_server_ask(server);
	(void)printf("%u at once: %u failed, %u at the server, %.0f sessions/s, p50 %.0f ms, p99 "
	             "%.0f ms, server %.1f MiB resident\n",
	             crowd->most, crowd->failed, r.stats.alive, crowd->most / ms * 1e3,
	             percentile(crowd->ms, crowd->most, 50), percentile(crowd->ms, crowd->most, 99),
	             (double)r.resident / (1 << 20));
	if (r.stats.alive != crowd->most - crowd->failed)
		sessions_die("server", "it does not have them all");
	for (unsigned i = 0; i < crowd->most; i++)
		ndx_session_close(crowd->places[i].session);
	await_no_sessions(server);
	return crowd->failed;
}

struct run {
	double all_ms, p50_ms, p99_ms, server_us, client_us;
};

static struct run run_flight(struct crowd *crowd, const struct sessions_server *server,
                             unsigned flight)
{
	const uint64_t served_ns = sessions_server_ask(server).cpu_ns;
	const uint64_t own_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	const uint64_t begin_ns = now_ns();
	struct run r;

	start_run(crowd, crowd->most, flight, false);
	await_all(crowd);
	r.all_ms = (double)(now_ns() - begin_ns) / 1e6;
	r.client_us = (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - own_ns) / 1e3 / crowd->most;
	r.server_us = (double)(sessions_server_ask(server).cpu_ns - served_ns) / 1e3 / crowd->most;
	r.p50_ms = percentile(crowd->ms, crowd->most, 50);
	r.p99_ms = percentile(crowd->ms, crowd->most, 99);
	return r;
}

static unsigned measure_rate(struct crowd *crowd, const struct sessions_server *server,
                             unsigned flight)
{
	const struct run r = run_flight(crowd, server, flight);

	(void)printf("%u, %u at a time: %u failed, %.0f sessions/s, p50 %.1f ms, p99 %.1f ms; "
	             "processor time of a session: server %.1f us, client %.1f us\n",
	             crowd->most, flight, crowd->failed, crowd->most / r.all_ms * 1e3, r.p50_ms,
	             r.p99_ms, r.server_us, r.client_us);
	await_no_sessions(server);
	return crowd->failed;
}

struct settings {
	unsigned sessions, flight, bad, again_ms, blocks;
	struct ndx_tls_attr tls;   /* of both ends */
	struct ndx_tls_attr wrong; /* of hostile clients that speak TLS */
};

static bool has_tls(const struct ndx_tls_attr *tls)
{
	return tls->psk_file != NULL || tls->cert_file != NULL;
}

enum figure {
	P99,
	SPEED,
	SERVER_US,
	CLIENT_US,
	FIGURES,
};

/* Of each block, without and with hostile clients. */
struct blocks {
	double *list[2][FIGURES];
	unsigned count;
};

static void blocks_create(struct blocks *b, unsigned count)
{
	b->count = count;
	for (unsigned bad = 0; bad < 2; bad++)
		for (unsigned i = 0; i < FIGURES; i++) {
			b->list[bad][i] = calloc(count, sizeof(double));
			if (b->list[bad][i] == NULL)
				sessions_die("blocks", "no memory");
		}
}

static void blocks_note(struct blocks *b, unsigned block, unsigned bad, const struct run *r,
                        unsigned sessions)
{
	b->list[bad][P99][block] = r->p99_ms;
	b->list[bad][SPEED][block] = sessions / r->all_ms * 1e3;
	b->list[bad][SERVER_US][block] = r->server_us;
	b->list[bad][CLIENT_US][block] = r->client_us;
}

static double median(const struct blocks *b, unsigned bad, enum figure f)
{
	return percentile(b->list[bad][f], b->count, 50);
}

static void blocks_print(struct blocks *b)
{
	for (unsigned bad = 0; bad < 2; bad++)
		(void)printf("%s: p99 %.1f ms, %.0f sessions/s; processor time for each session: "
		             "server %.1f us, client %.1f us (medians of %u blocks)\n",
		             bad == 0 ? "alone" : "beside hostile clients", median(b, bad, P99),
		             median(b, bad, SPEED), median(b, bad, SERVER_US),
		             median(b, bad, CLIENT_US), b->count);
}

static void blocks_free(struct blocks *b)
{
	for (unsigned bad = 0; bad < 2; bad++)
		for (unsigned i = 0; i < FIGURES; i++)
			free(b->list[bad][i]);
}

/* Hostile clients of one sort or the other. */
struct foes {
	struct hostile *plain;
	struct intruders *tls;
};

static struct foes foes_start(const struct sessions_server *server, const struct settings *s)
{
	struct foes f = {0};

	if (has_tls(&s->wrong))
		f.tls = intruders_start(server->port, &s->wrong, s->bad, s->again_ms);
	else
		f.plain = hostile_start(server->port, s->bad, s->again_ms);
	return f;
}

static uint64_t foes_stop(const struct foes *f)
{
	return f->tls != NULL ? intruders_stop(f->tls) : hostile_stop(f->plain);
}

static unsigned with_bad(struct crowd *crowd, const struct sessions_server *server,
                         const struct settings *s)
{
	struct blocks blocks;
	unsigned failed = 0;
	uint64_t sent = 0;

	blocks_create(&blocks, s->blocks);
	for (unsigned i = 0; i < 2 * s->blocks; i++) {
		/* ABBA, so that a drift of the machine falls on both alike */
		const unsigned bad = (i % 4 == 1) || (i % 4 == 2);
		struct foes foes = {0};
		struct run r;

		if (bad)
			foes = foes_start(server, s);
		r = run_flight(crowd, server, s->flight);
		failed += crowd->failed;
		blocks_note(&blocks, i / 2, bad, &r, crowd->most);
		if (bad)
			sent += foes_stop(&foes);
		await_no_sessions(server);
	}
	blocks_print(&blocks);
	(void)printf("p99 x%.3f with %u hostile clients beside %u, active every %u ms; %u failed, "
	             "%s %llu times\n",
	             median(&blocks, 1, P99) / median(&blocks, 0, P99), s->bad, s->flight,
	             s->again_ms, failed,
	             has_tls(&s->wrong) ? "a wrong key or certificate was refused"
	                                : "rubbish was sent",
	             (unsigned long long)sent);
	blocks_free(&blocks);
	if (has_tls(&s->wrong) && sent == 0)
		sessions_die("hostile clients", "none has tried");
	return failed;
}

/* ---- the program ---- */

/* Each process has a descriptor for each session. */
static void raise_limit(unsigned sessions)
{
	const rlim_t needed = sessions + SPARE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		sessions_die("limit", "it cannot be read");
	if (limit.rlim_max < needed) {
		(void)printf("skip: %u sessions need %llu descriptors, the hard limit is %llu; see "
		             "ulimit -Hn\n",
		             sessions, (unsigned long long)needed,
		             (unsigned long long)limit.rlim_max);
		exit(SKIP);
	}
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		sessions_die("limit", "it cannot be raised");
}

/* False: the program ends with `code`. */
static bool parse(int argc, char **argv, struct settings *s, int *code)
{
	const struct sample_option options[] = {
		{"--sessions", "N", "at once (10000)", .number = &s->sessions, .min = 1,
	         .max = 100000},
		{"--flight", "N", "begun at a time, at most all; 0: no rate is measured (900)",
	         .number = &s->flight, .max = 100000},
		{"--bad", "N", "hostile clients (100)", .number = &s->bad, .max = 10000},
		{"--again", "MS", "after which a hostile client comes again (100)",
	         .number = &s->again_ms, .min = 1, .max = UINT32_MAX},
		{"--blocks", "N", "with and without them in turn (5)", .number = &s->blocks,
	         .min = 1, .max = 1000},
		{"--psk", "FILE", "TLS with the keys of FILE", .text = &s->tls.psk_file},
		{"--psk-wrong", "FILE", "hostile clients with the keys of FILE",
	         .text = &s->wrong.psk_file},
		{"--cert", "FILE", "TLS with this certificate at both ends",
	         .text = &s->tls.cert_file},
		{"--key", "FILE", "its key", .text = &s->tls.key_file},
		{"--ca", "FILE", "the CA of all certificates but the wrong one",
	         .text = &s->tls.ca_file},
		{"--whole", NULL, "a whole handshake for each session, no resumption",
	         .flag = &s->tls.no_resumption},
		{"--cert-wrong", "FILE", "hostile clients with this certificate",
	         .text = &s->wrong.cert_file},
		{"--key-wrong", "FILE", "its key", .text = &s->wrong.key_file},
	};
	const struct sample_program program = {
		.name = "ndx-sessions-many",
		.synopsis = "[options]",
		.about = "Ten thousand sessions at one negotiation server, by calls that do not "
			 "block.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
	};
	size_t operands;

	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	s->wrong.ca_file = s->tls.ca_file;
	if (s->flight > s->sessions)
		*code = sample_usage(&program, "--flight %u: at most the %u sessions", s->flight,
		                     s->sessions);
	else if (has_tls(&s->wrong) && (!has_tls(&s->tls) || s->flight == 0 || s->bad == 0))
		*code = sample_usage(&program, "hostile clients with TLS need --psk or --cert, "
		                               "--flight and --bad");
	else
		return true;
	return false;
}

int main(int argc, char **argv)
{
	struct settings s = {
		.sessions = 10000, .flight = 900, .bad = 100, .again_ms = 100, .blocks = 5};
	struct crowd crowd = {0};
	struct ndx_negotiation *negotiation = NULL;
	struct sessions_server server;
	unsigned failed;
	int code;

	ndx_tls_attr_init(&s.tls);
	ndx_tls_attr_init(&s.wrong);
	if (!parse(argc, argv, &s, &code))
		return code;
	raise_limit(s.sessions + s.bad);
	crowd.tls = has_tls(&s.tls) ? &s.tls : NULL;
	/* Room for clients that connect again before the server has seen their end. */
	server = sessions_server_start(2 * s.sessions + 2 * s.bad + 1000, crowd.tls);
	sessions_variant(&negotiation, &crowd.variant);
	(void)snprintf(crowd.server, sizeof(crowd.server), "127.0.0.1:%u", server.port);
	gather(&crowd, s.sessions);
	failed = hold_all(&crowd, &server);
	if (s.flight > 0)
		failed += measure_rate(&crowd, &server, s.flight);
	if (s.flight > 0 && s.bad > 0)
		failed += with_bad(&crowd, &server, &s);
	sessions_server_stop(&server);
	free(crowd.places);
	free(crowd.ms);
	ndx_variant_close(crowd.variant);
	(void)ndx_negotiation_close(negotiation);
	if (failed > 0)
		sessions_die("result", "sessions failed");
	return 0;
}
