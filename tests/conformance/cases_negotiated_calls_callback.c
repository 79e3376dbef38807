/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.calls_*: what callbacks of session calls may do, and callbacks of adapters with
 * sessions. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/socket.h>

#include "cases.h"
#include "house.h"
#include "probe.h"
#include "same_plugin.h"
#include "traffic.h"

enum { CHAINS = 16 };

/* ---- each callback begins the next call ---- */

struct chains;

struct chain {
	struct chains *all;
	struct pair *pair;
	struct ndx_session *session;
	struct probe probe;
	int next;      /* stage */
	bool begun;    /* so the last callback closes the session */
	uint32_t over; /* atomic: the last callback has closed it */
};

struct chains {
	struct check *c;
	struct chain list[CHAINS];
	uint32_t inside; /* atomic: threads in a callback */
	bool known;
	pthread_t thread; /* that calls back */
};

/* One thread of the framework calls back, which is none of the program's. */
static void look_at_thread(struct chains *all, const pthread_t *program)
{
	const pthread_t self = pthread_self();

	check_that(all->c, !pthread_equal(self, *program), "the program's thread calls back");
	if (all->known)
		check_that(all->c, pthread_equal(self, all->thread), "two threads call back");
	all->thread = self;
	all->known = true;
}

static pthread_t program;

static void next_call(struct probe *probe)
{
	struct chain *chain = probe->arg;
	struct chains *all = chain->all;
	struct check *c = all->c;

	check_that(c, __atomic_fetch_add(&all->inside, 1, __ATOMIC_SEQ_CST) == 0,
	           "a callback runs beside another");
	look_at_thread(all, &program);
	check_status(c, probe->ov.status, NDX_OK, "a call of a chain");
	if (chain->next == NDX_STAGE_DONE)
		(void)send_ok(&chain->pair->a, 1, 0, 16, 0);
	if (!check_over(c) && chain->next <= NDX_STAGE_DONE) {
		check_status(c,
		             ndx_session_execute_overlapped(
				     chain->session, (enum ndx_stage)chain->next, &probe->ov),
		             NDX_PENDING, "a stage, begun in a callback");
		chain->next++;
	} else {
		ndx_session_close(chain->session);
		__atomic_store_n(&chain->over, 1, __ATOMIC_SEQ_CST);
	}
	(void)__atomic_sub_fetch(&all->inside, 1, __ATOMIC_SEQ_CST);
}

static bool chain_connect(struct chain *chain)
{
	const enum ndx_status st = ndx_session_connect_overlapped(chain->session, &chain->probe.ov);

	chain->begun = st == NDX_PENDING;
	return check_status(chain->all->c, st, NDX_PENDING, "connect");
}

static bool chain_begin(struct chain *chain, struct chains *all, struct house *h, struct pair *p)
{
	struct check *c = all->c;

	chain->all = all;
	chain->pair = p;
	chain->next = NDX_STAGE_INFO;
	house_give(h, &p->b);
	return receive_ok(&p->b, 1, 0, 16) && house_session(h, &p->a, &chain->session) &&
	       probe_begin_then(&chain->probe, c, next_call, chain) && chain_connect(chain);
}

/* Also after a failure, of which the next callback knows. */
static void chain_close(struct chain *chain)
{
	for (int ms = 0; ms < WAIT_MS && chain->begun; ms++) {
		if (__atomic_load_n(&chain->over, __ATOMIC_SEQ_CST) != 0)
			break;
		(void)poll(NULL, 0, 1);
	}
	if (!chain->begun)
		ndx_session_close(chain->session);
}

/* Connect and four stages. */
static void chain_ends(struct chain *chain)
{
	(void)(probe_called(&chain->probe, 5, "a chain of calls") &&
	       expect(&chain->pair->a, NDX_REQUEST_SEND, 1, NDX_OK) &&
	       expect_received(&chain->pair->b, 1, 16));
}

void case_negotiated_calls_go_on_in_callbacks(struct check *c)
{
	struct pair *pairs[CHAINS];
	struct chains all = {.c = c};
	struct house h;
	int begun = 0;

	program = pthread_self();
	if (house_open(&h, c, &same_plugin) && pairs_open(c, pairs, CHAINS, NULL, NULL) &&
	    house_serve(&h, "127.0.0.1:0")) {
		while (begun < CHAINS && chain_begin(&all.list[begun], &all, &h, pairs[begun]))
			begun++;
		for (int i = 0; i < begun; i++)
			chain_ends(&all.list[i]);
	}
	for (int i = 0; i < CHAINS; i++)
		chain_close(&all.list[i]);
	pair_close_all(c);
	house_close(&h);
	for (int i = 0; i < CHAINS; i++)
		probe_end(&all.list[i].probe);
}

/* ---- a callback, and other sessions ---- */

/* Whose callback. */
enum caller { OF_FRAMEWORK, OF_ADAPTER, EACH_CALLER };

struct visit {
	struct check *c;
	struct house house;
	struct house front; /* another server of the same framework */
	struct house quiet; /* a port whose listener is silent */
	int fd;
	struct pair *pair;
	struct ndx_session *caller; /* its connect calls back */
	struct ndx_mr *mr;          /* its registration does */
	uint8_t memory[64];
	struct probe called;
	struct ndx_session *session; /* that the callback begins */
	struct ndx_overlapped begun;
	struct ndx_session *victim; /* that the callback ends */
	struct probe probe;         /* the victim's */
	bool closes;                /* or cancels */
	enum caller from;
};

static bool visit_open(struct visit *v, struct check *c)
{
	*v = (struct visit){.c = c, .fd = -1, .pair = pair_open(c, NULL, NULL)};
	if (!v->pair || !house_open(&v->house, c, &same_plugin) ||
	    !house_serve(&v->house, "127.0.0.1:0"))
		return false;
	v->front = v->quiet = v->house;
	v->front.server = NULL;
	v->fd = house_reserve(v->quiet.address);
	house_give(&v->house, &v->pair->b);
	return check_that(c, v->fd >= 0 && listen(v->fd, 16) == 0, "no port") &&
	       house_serve(&v->front, "127.0.0.1:0") &&
	       check_status(c, ndx_mr_create(v->pair->a.adapter, &v->mr), NDX_OK, "mr_create") &&
	       house_session(&v->front, &v->pair->a, &v->caller) &&
	       house_session(&v->house, &v->pair->a, &v->session) &&
	       house_session(&v->quiet, &v->pair->a, &v->victim);
}

static void visit_close(struct visit *v)
{
	ndx_session_close(v->caller);
	ndx_session_close(v->session);
	ndx_session_close(v->victim);
	pair_close_all(v->c);
	ndx_mr_close(v->mr);
	if (v->fd >= 0)
		(void)close(v->fd);
	house_stop(&v->front);
	house_close(&v->house);
	probe_end(&v->called);
	probe_end(&v->probe);
}

/* Run `then` in a callback, and come back when it has returned. */
static bool visit_from(struct visit *v, enum caller caller, void (*then)(struct probe *probe))
{
	struct check *c = v->c;

	v->from = caller;
	if (!probe_begin_then(&v->called, c, then, v))
		return false;
	if (caller == OF_FRAMEWORK)
		check_status(c, ndx_session_connect_overlapped(v->caller, &v->called.ov),
		             NDX_PENDING, "connect");
	else
		check_status(c,
		             ndx_mr_register(v->mr, v->memory, sizeof(v->memory), 0, &v->called.ov),
		             NDX_PENDING, "register");
	return probe_called(&v->called, 1, "the callback");
}

static bool victim_begins(struct visit *v, enum way way)
{
	return probe_begin(&v->probe, v->c, way) &&
	       check_status(v->c, ndx_session_run_overlapped(v->victim, &v->probe.ov), NDX_PENDING,
	                    "run") &&
	       probe_pending(&v->probe, "run");
}

/* Calls that wait are refused and change nothing; calls that do not wait begin. */
static void try_all(struct probe *probe)
{
	struct visit *v = probe->arg;
	struct check *c = v->c;

	check_status(c, ndx_session_connect(v->session), NDX_E_WOULD_BLOCK, "connect");
	check_status(c, ndx_session_run(v->session), NDX_E_WOULD_BLOCK, "run");
	check_status(c, ndx_session_execute(v->session, NDX_STAGE_INFO), NDX_E_WOULD_BLOCK,
	             "execute");
	check_status(c, ndx_overlapped_wait(&v->probe.ov, 0), NDX_PENDING, "wait, no time");
	check_status(c, ndx_overlapped_wait(&v->probe.ov, WAIT_MS), NDX_E_WOULD_BLOCK, "wait");
	check_that(c, ndx_session_get_state(v->session) == NDX_SESSION_CREATED, "the session is %s",
	           ndx_session_state_name(ndx_session_get_state(v->session)));
	check_status(c, ndx_session_run_overlapped(v->session, &v->begun), NDX_PENDING,
	             "run, begun in a callback");
}

void case_negotiated_calls_do_not_wait_in_callbacks(struct check *c)
{
	for (int caller = 0; caller < EACH_CALLER && !check_over(c); caller++) {
		struct visit v;

		if (visit_open(&v, c) && victim_begins(&v, WAY_WAIT) &&
		    visit_from(&v, (enum caller)caller, try_all) &&
		    check_ends(c, &v.begun, NDX_OK, "run, begun in a callback"))
			(void)message_passes(&v.pair->a, &v.pair->b, 100);
		visit_close(&v);
	}
}

/* Without a callback the object is complete now; one with a callback waits until the framework's
 * thread is in none. */
static void end_victim(struct probe *probe)
{
	struct visit *v = probe->arg;

	if (v->closes) {
		ndx_session_close(v->victim);
		v->victim = NULL;
	} else {
		ndx_session_cancel(v->victim);
	}
	if (v->probe.way != WAY_CALLBACK)
		(void)probe_has_ended(&v->probe, NDX_E_CANCELED, "run, ended in a callback");
	else if (v->from == OF_FRAMEWORK)
		check_that(v->c, probe_calls(&v->probe) == 0, "a callback ran inside another");
}

static void end_victims(struct check *c, enum caller caller, enum way way, bool closes)
{
	struct visit v;

	if (visit_open(&v, c) && victim_begins(&v, way)) {
		v.closes = closes;
		if (visit_from(&v, caller, end_victim) && way == WAY_CALLBACK)
			(void)probe_ends(&v.probe, NDX_E_CANCELED, "run, ended in a callback");
		(void)probe_silent(&v.probe, "run");
	}
	visit_close(&v);
}

void case_negotiated_calls_are_ended_in_callbacks(struct check *c)
{
	for (int way = 0; way < EACH_WAY; way++) {
		for (int caller = 0; caller < EACH_CALLER; caller++) {
			end_victims(c, (enum caller)caller, (enum way)way, false);
			end_victims(c, (enum caller)caller, (enum way)way, true);
		}
	}
}
