/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.calls_*: session calls that are misused, cancelled and closed while in flight. */
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <sys/select.h>
#include <sys/socket.h>

#include "cases.h"
#include "house.h"
#include "probe.h"
#include "same_plugin.h"
#include "traffic.h"

enum { CANCELS = 200, CLOSES = 200, LIMIT_MS = 60000, MANY = 200 };

/* ---- misuse ---- */

/* A server that takes connections and says nothing, and a session with it. */
struct quiet {
	struct house house;
	struct pair *pair;
	struct ndx_session *session;
	int fd;
};

static bool quiet_open(struct quiet *q, struct check *c)
{
	*q = (struct quiet){.fd = -1, .pair = pair_open(c, NULL, NULL)};
	if (!house_open(&q->house, c, &same_plugin) || !q->pair)
		return false;
	q->fd = house_reserve(q->house.address);
	return check_that(c, q->fd >= 0 && listen(q->fd, 16) == 0, "no port") &&
	       house_session(&q->house, &q->pair->a, &q->session);
}

static void quiet_close(struct quiet *q, struct check *c)
{
	ndx_session_close(q->session);
	if (q->fd >= 0)
		(void)close(q->fd);
	pair_close_all(c);
	house_close(&q->house);
}

/* A call fails at once, and the object stays as it was. */
static void refused(struct check *c, enum ndx_status got, enum ndx_status want,
                    const struct ndx_overlapped *ov, const char *what)
{
	check_status(c, got, want, what);
	check_that(c, ndx_overlapped_status(ov) == NDX_E_ACCESS_VIOLATION,
	           "%s: the object is %s now", what, ndx_status_name(ndx_overlapped_status(ov)));
}

static void without_arguments(struct check *c, struct ndx_session *s, struct ndx_overlapped *ov)
{
	const enum ndx_status want = NDX_E_INVALID_PARAMETER;

	refused(c, ndx_session_connect_overlapped(NULL, ov), want, ov, "connect without a session");
	refused(c, ndx_session_execute_overlapped(NULL, NDX_STAGE_INFO, ov), want, ov,
	        "execute without a session");
	refused(c, ndx_session_run_overlapped(NULL, ov), want, ov, "run without a session");
	check_status(c, ndx_session_connect_overlapped(s, NULL), want, "connect without an object");
	check_status(c, ndx_session_execute_overlapped(s, NDX_STAGE_INFO, NULL), want,
	             "execute without an object");
	check_status(c, ndx_session_run_overlapped(s, NULL), want, "run without an object");
	ndx_session_cancel(NULL);
	ndx_session_close(NULL);
}

static void never(struct ndx_overlapped *ov)
{
	struct check *c = ov->context;

	check_fail(c, "the callback of a call that was refused");
}

static void with_two_ways(struct check *c, struct ndx_session *s)
{
	struct ndx_overlapped ov = {.callback = never, .context = c};

	if (!check_status(c, ndx_port_create(&ov.port), NDX_OK, "a port"))
		return;
	check_status(c, ndx_session_run_overlapped(s, &ov), NDX_E_INVALID_PARAMETER,
	             "an object with callback and port");
	ndx_port_close(ov.port);
}

/* The stages have an order, and connect comes before and once. */
static void out_of_turn(struct check *c, struct ndx_session *s, struct ndx_overlapped *ov)
{
	const enum ndx_status want = NDX_E_INVALID_DEVICE_STATE;

	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++)
		refused(c, ndx_session_execute_overlapped(s, (enum ndx_stage)stage, ov), want, ov,
		        "a stage before connect");
	check_status(c, ndx_session_connect(s), NDX_OK, "connect");
	refused(c, ndx_session_connect_overlapped(s, ov), want, ov, "connect again");
	refused(c, ndx_session_run_overlapped(s, ov), want, ov, "run when connected");
	for (int stage = NDX_STAGE_VALIDATE; stage <= NDX_STAGE_DONE; stage++)
		refused(c, ndx_session_execute_overlapped(s, (enum ndx_stage)stage, ov), want, ov,
		        "a stage before its turn");
	check_that(c, ndx_session_get_state(s) == NDX_SESSION_CONNECTED, "the session is %s",
	           ndx_session_state_name(ndx_session_get_state(s)));
}

void case_negotiated_calls_out_of_turn_change_nothing(struct check *c)
{
	struct ndx_overlapped untouched = {.status = NDX_E_ACCESS_VIOLATION};
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_overlapped ov = {0};
	struct ndx_session *s = NULL;
	struct house h;

	if (house_open(&h, c, &same_plugin) && p && house_serve(&h, "127.0.0.1:0") &&
	    house_session(&h, &p->a, &s)) {
		house_give(&h, &p->b);
		without_arguments(c, s, &untouched);
		with_two_ways(c, s);
		out_of_turn(c, s, &untouched);
		/* The session goes on as if nothing had been. */
		for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_READY; stage++)
			check_async(c,
			            ndx_session_execute_overlapped(s, (enum ndx_stage)stage, &ov),
			            &ov, NDX_OK, ndx_stage_name((enum ndx_stage)stage));
		refused(c, ndx_session_execute_overlapped(s, NDX_STAGE_READY, &untouched),
		        NDX_E_INVALID_DEVICE_STATE, &untouched, "a stage again");
		(void)message_passes(&p->a, &p->b, 100);
	}
	ndx_session_close(s);
	pair_close_all(c);
	house_close(&h);
}

static void *connect_main(void *session)
{
	return (void *)(intptr_t)ndx_session_connect(session);
}

/* Beside a call that blocks. */
static void second_of_a_thread(struct quiet *q, struct check *c, struct ndx_overlapped *ov)
{
	pthread_t thread;
	void *st;

	if (!check_that(c, pthread_create(&thread, NULL, connect_main, q->session) == 0,
	                "no thread"))
		return;
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (ndx_session_get_state(q->session) == NDX_SESSION_CONNECTING)
			break;
		(void)poll(NULL, 0, 1);
	}
	refused(c, ndx_session_run_overlapped(q->session, ov), NDX_E_INVALID_DEVICE_STATE, ov,
	        "run beside a call that blocks");
	ndx_session_cancel(q->session);
	(void)pthread_join(thread, &st);
	check_status(c, (enum ndx_status)(intptr_t)st, NDX_E_CANCELED, "the call that blocks");
}

void case_negotiated_calls_one_at_a_time(struct check *c)
{
	struct ndx_overlapped untouched = {.status = NDX_E_ACCESS_VIOLATION};
	struct ndx_overlapped ov = {0};
	struct ndx_session *another = NULL;
	struct quiet q;

	if (quiet_open(&q, c) && house_session(&q.house, &q.pair->a, &another)) {
		check_status(c, ndx_session_connect_overlapped(q.session, &ov), NDX_PENDING,
		             "connect");
		refused(c, ndx_session_connect_overlapped(q.session, &untouched),
		        NDX_E_INVALID_DEVICE_STATE, &untouched, "connect beside connect");
		refused(c, ndx_session_run_overlapped(q.session, &untouched),
		        NDX_E_INVALID_DEVICE_STATE, &untouched, "run beside connect");
		refused(c, ndx_session_execute_overlapped(q.session, NDX_STAGE_INFO, &untouched),
		        NDX_E_INVALID_DEVICE_STATE, &untouched, "a stage beside connect");
		check_status(c, ndx_session_run(q.session), NDX_E_INVALID_DEVICE_STATE,
		             "a call that blocks beside connect");
		check_status(c, ndx_session_connect_overlapped(another, &ov),
		             NDX_E_INVALID_PARAMETER, "an object that is in flight");
		(void)check_pending(c, &ov, "connect");
		ndx_session_cancel(q.session);
		check_that(c, ndx_overlapped_status(&ov) == NDX_E_CANCELED,
		           "the call is %s after the cancel",
		           ndx_status_name(ndx_overlapped_status(&ov)));
		ndx_session_close(q.session);
		q.session = another;
		another = NULL;
		second_of_a_thread(&q, c, &untouched);
	}
	ndx_session_close(another);
	quiet_close(&q, c);
}

/* ---- cancel and close ---- */

void case_negotiated_calls_end_with_their_session(struct check *c)
{
	for (int way = 0; way < EACH_WAY && !check_over(c); way++) {
		struct probe probe = {.c = NULL};
		struct quiet q;

		if (quiet_open(&q, c) && probe_begin(&probe, c, (enum way)way)) {
			check_status(c, ndx_session_run_overlapped(q.session, &probe.ov),
			             NDX_PENDING, "run");
			(void)probe_pending(&probe, "run");
			ndx_session_close(q.session);
			q.session = NULL;
			(void)probe_has_ended(&probe, NDX_E_CANCELED, "run, after the close");
			(void)probe_silent(&probe, "run");
		}
		quiet_close(&q, c);
		probe_end(&probe);
	}
}

/* Plugin "slow", variant "as-it-is": as "same", but a cancel may find its functions running. */
static enum ndx_status slow_info(void *session, const struct ndx_exchange *x, const void *peer,
                                 size_t length, struct ndx_exchange_reply *reply)
{
	(void)poll(NULL, 0, 1);
	return same_info(session, x, peer, length, reply);
}

static enum ndx_status slow_ready(void *session, const struct ndx_exchange *x, const void *peer,
                                  size_t length, struct ndx_exchange_reply *reply)
{
	(void)poll(NULL, 0, 1);
	return same_ready(session, x, peer, length, reply);
}

static const struct ndx_variant_ops slow_ops = {.info = slow_info, .ready = slow_ready};
static const struct ndx_plugin_variant slow_variant = {
	.name = "as-it-is", .help = "test", .ops = &slow_ops};
static const struct ndx_plugin slow = {.abi = NDX_PLUGIN_ABI,
                                       .size = sizeof(struct ndx_plugin),
                                       .name = "slow",
                                       .version = "1",
                                       .vendor = "test",
                                       .list = &slow_variant,
                                       .count = 1};

static uint64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void pause_us(uint32_t us)
{
	const struct timespec pause = {.tv_sec = us / 1000000,
	                               .tv_nsec = (long)(us % 1000000) * 1000};

	(void)pselect(0, NULL, NULL, NULL, &pause, NULL);
}

/* How a call ended that was cancelled: a function of the plugin may have to return first. */
static enum ndx_status result_soon(struct probe *probe)
{
	enum ndx_status st = probe_result(probe);

	for (int ms = 0; ms < WAIT_MS && st == NDX_PENDING; ms++) {
		(void)poll(NULL, 0, 1);
		st = probe_result(probe);
	}
	return st;
}

struct interruption {
	bool closes;        /* or cancels */
	uint32_t within_us; /* at a random moment */
	unsigned ended[2];  /* calls that were faster, and others */
};

static void judge_cancelled(struct check *c, struct ndx_session *s, enum ndx_status st)
{
	const enum ndx_session_state state = ndx_session_get_state(s);
	struct ndx_session_error e = {.size = sizeof(e)};

	check_status(c, ndx_session_get_error(s, &e), NDX_OK, "get_error");
	check_that(c, e.status == st, "the call ended %s, its error is %s", ndx_status_name(st),
	           ndx_status_name(e.status));
	check_that(c, st == NDX_OK || state == NDX_SESSION_FAILED, "cancelled, the session is %s",
	           ndx_session_state_name(state));
}

static void interrupt(struct house *h, struct pair *p, struct interruption *in)
{
	struct check *c = h->c;
	const enum way way = (enum way)check_below(c, EACH_WAY);
	const uint32_t us = check_below(c, in->within_us);
	struct ndx_session *s = NULL;
	struct probe probe;
	enum ndx_status st;

	house_give(h, &p->b);
	if (!house_session(h, &p->a, &s) || !probe_begin(&probe, c, way)) {
		ndx_session_close(s);
		return;
	}
	check_status(c, ndx_session_run_overlapped(s, &probe.ov), NDX_PENDING, "run");
	pause_us(us);
	if (in->closes) {
		ndx_session_close(s);
		s = NULL;
		st = probe_result(&probe);
	} else {
		ndx_session_cancel(s);
		st = result_soon(&probe);
		judge_cancelled(c, s, st);
	}
	check_note(c, "%s after %u us, way %d: %s", in->closes ? "closed" : "cancelled",
	           (unsigned)us, (int)way, ndx_status_name(st));
	(void)check_either(c, st, NDX_E_CANCELED, NDX_OK, "the call");
	(void)probe_silent(&probe, "the call");
	in->ended[st != NDX_OK]++;
	ndx_session_close(s);
	probe_end(&probe);
}

/* How long a call takes without an interruption; 0: it failed. */
static uint32_t measure(struct house *h, struct pair *p)
{
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	uint64_t begin;
	uint64_t took;

	house_give(h, &p->b);
	if (!house_session(h, &p->a, &s))
		return 0;
	begin = now_us();
	check_async(h->c, ndx_session_run_overlapped(s, &ov), &ov, NDX_OK, "run");
	took = now_us() - begin;
	(void)message_passes(&p->a, &p->b, 100);
	ndx_session_close(s);
	return took < 1000000 ? (uint32_t)took : 1000000;
}

/* The server ends before its side does, so that no session of it gets one that is closed. */
static uint32_t measure_anew(struct house *h)
{
	struct pair *p = pair_open(h->c, NULL, NULL);
	uint32_t us = 0;

	if (p && house_serve(h, "127.0.0.1:0"))
		us = measure(h, p);
	house_stop(h);
	pair_close_all(h->c);
	return us;
}

/* Fewer rounds on a machine that would take longer than LIMIT_MS. */
static void interrupt_at_random(struct check *c, bool closes, int rounds)
{
	const uint64_t until = now_ms() + LIMIT_MS;
	struct interruption in = {.closes = closes};
	struct house h;

	if (house_open(&h, c, &slow)) {
		in.within_us = measure_anew(&h) * 5 / 4 + 1;
		for (int i = 0; i < rounds && now_ms() < until && !check_over(c); i++) {
			struct pair *p = pair_open(c, NULL, NULL);

			if (p && house_serve(&h, "127.0.0.1:0"))
				interrupt(&h, p, &in);
			house_stop(&h);
			pair_close_all(c);
		}
		(void)measure_anew(&h);
		check_note(c, "%u of %d calls were interrupted, within %u us", in.ended[1], rounds,
		           (unsigned)in.within_us);
		check_that(c, in.ended[1] > 0, "no call was interrupted");
	}
	house_close(&h);
}

void case_negotiated_calls_cancelled_at_random(struct check *c)
{
	interrupt_at_random(c, false, CANCELS);
}

void case_negotiated_calls_closed_at_random(struct check *c)
{
	interrupt_at_random(c, true, CLOSES);
}

/* ---- one thread, many sessions ---- */

struct crowd {
	struct check *c;
	struct house house;
	struct pair *pairs[MANY];
	struct ndx_session *sessions[MANY];
	struct ndx_overlapped ovs[MANY];
	struct ndx_port *port;
};

static bool crowd_open(struct crowd *w, struct check *c)
{
	struct side_attr attr;

	*w = (struct crowd){.c = c};
	side_attr_init(&attr);
	attr.receive_depth = attr.initiator_depth = 4;
	attr.buffer = 4096;
	if (!house_open(&w->house, c, &same_plugin) ||
	    !pairs_open(c, w->pairs, MANY, &attr, NULL) || !house_serve(&w->house, "127.0.0.1:0") ||
	    !check_status(c, ndx_port_create(&w->port), NDX_OK, "a port"))
		return false;
	for (int i = 0; i < MANY; i++) {
		house_give(&w->house, &w->pairs[i]->b);
		if (!house_session(&w->house, &w->pairs[i]->a, &w->sessions[i]))
			return false;
	}
	return true;
}

static void crowd_close(struct crowd *w)
{
	for (int i = 0; i < MANY; i++)
		ndx_session_close(w->sessions[i]);
	pair_close_all(w->c);
	ndx_port_close(w->port);
	house_close(&w->house);
}

/* All of them begin, then all come out of the port, each once. */
static bool crowd_call(struct crowd *w, bool first)
{
	struct ndx_overlapped *ov;
	int out = 0;

	for (int i = 0; i < MANY && !check_over(w->c); i++) {
		w->ovs[i] = (struct ndx_overlapped){.port = w->port};
		check_status(w->c,
		             first ? ndx_session_run_overlapped(w->sessions[i], &w->ovs[i])
		                   : ndx_session_execute_overlapped(w->sessions[i], NDX_STAGE_DONE,
		                                                    &w->ovs[i]),
		             NDX_PENDING, first ? "run" : "done");
	}
	while (out < MANY && !check_over(w->c)) {
		if (!check_that(w->c, ndx_port_get(w->port, &ov, 1, WAIT_MS) == 1,
		                "%d of %d calls have completed", out, MANY))
			break;
		check_status(w->c, ov->status, NDX_OK, first ? "run" : "done");
		ov->status = NDX_E_ACCESS_VIOLATION; /* another time would be noticed */
		out++;
	}
	return !check_over(w->c);
}

/* The server chooses the side for each session: each message arrives at one of the sides. */
static void crowd_talk(struct crowd *w)
{
	bool there[MANY] = {false};
	unsigned from;

	for (int i = 0; i < MANY && !check_over(w->c); i++) {
		w->pairs[i]->a.buf[0] = (uint8_t)i;
		(void)(receive_ok(&w->pairs[i]->b, 1, 0, 16) &&
		       send_ok(&w->pairs[i]->a, 1, 0, 16, 0));
	}
	for (int i = 0; i < MANY && !check_over(w->c); i++) {
		if (!expect(&w->pairs[i]->a, NDX_REQUEST_SEND, 1, NDX_OK) ||
		    !expect_received(&w->pairs[i]->b, 1, 16))
			return;
		from = w->pairs[i]->b.buf[0];
		if (!check_that(w->c, from < MANY && !there[from], "message %u arrived twice",
		                from))
			return;
		there[from] = true;
	}
}

void case_negotiated_calls_many_by_one_thread(struct check *c)
{
	static struct crowd w;

	if (crowd_open(&w, c) && crowd_call(&w, true)) {
		crowd_talk(&w);
		(void)crowd_call(&w, false);
	}
	crowd_close(&w);
}
