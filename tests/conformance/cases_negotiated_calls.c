/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.calls_*: session calls that do not block, beside those that do. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

enum how { BLOCKING, OVERLAPPED, EACH_HOW };

/* A call: one of these, or a stage. */
enum { CONNECT = -2, RUN = -1 };

enum { ENTRIES = 64 };

/* ---- a call, either way ---- */

static enum ndx_status block(struct ndx_session *s, int call)
{
	switch (call) {
	case CONNECT:
		return ndx_session_connect(s);
	case RUN:
		return ndx_session_run(s);
	default:
		return ndx_session_execute(s, (enum ndx_stage)call);
	}
}

static enum ndx_status begin_call(struct ndx_session *s, int call, struct ndx_overlapped *ov)
{
	switch (call) {
	case CONNECT:
		return ndx_session_connect_overlapped(s, ov);
	case RUN:
		return ndx_session_run_overlapped(s, ov);
	default:
		return ndx_session_execute_overlapped(s, (enum ndx_stage)call, ov);
	}
}

struct cancel {
	struct ndx_session *session;
	enum ndx_session_state when;
};

static void *cancel_main(void *arg)
{
	const struct cancel *cancel = arg;

	for (int ms = 0; ms < WAIT_MS && ndx_session_get_state(cancel->session) != cancel->when;
	     ms++)
		(void)poll(NULL, 0, 1);
	ndx_session_cancel(cancel->session);
	return NULL;
}

/* `cancel`: from another thread; NULL: not. */
static enum ndx_status call(struct check *c, struct ndx_session *s, int what, enum how how,
                            struct cancel *cancel)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st;
	pthread_t thread;

	if (cancel &&
	    !check_that(c, pthread_create(&thread, NULL, cancel_main, cancel) == 0, "no thread"))
		return NDX_E_INSUFFICIENT_RESOURCES;
	if (how == BLOCKING) {
		st = block(s, what);
	} else {
		st = begin_call(s, what, &ov);
		check_status(c, st, NDX_PENDING, "an overlapped call");
		st = check_result_of(c, st, &ov);
		check_that(c, st != NDX_PENDING, "waited %d ms for a session", WAIT_MS);
		check_that(c, ov.information == 0, "information is %u", ov.information);
	}
	if (cancel)
		(void)pthread_join(thread, NULL);
	return st;
}

/* ---- a failure, both ways ---- */

struct failure {
	enum ndx_status status;
	enum ndx_session_state state;
	struct ndx_session_error error;
	struct ndx_history_entry history[ENTRIES];
	size_t count;
};

static bool look(struct check *c, struct ndx_session *s, struct failure *f)
{
	f->state = ndx_session_get_state(s);
	f->error.size = sizeof(f->error);
	f->count = ENTRIES;
	return check_status(c, ndx_session_get_error(s, &f->error), NDX_OK, "get_error") &&
	       check_status(c, ndx_session_get_history(s, f->history, &f->count, NULL), NDX_OK,
	                    "get_history");
}

static void histories_alike(struct check *c, const struct failure *b, const struct failure *o)
{
	check_that(c, b->count == o->count, "%zu entries of the history, blocking %zu", o->count,
	           b->count);
	for (size_t i = 0; i < b->count && !check_over(c); i++) {
		const struct ndx_history_entry *x = &b->history[i];
		const struct ndx_history_entry *y = &o->history[i];

		check_that(c,
		           x->kind == y->kind && x->stage == y->stage && x->round == y->round &&
		                   x->bytes == y->bytes && x->status == y->status &&
		                   strcmp(x->text, y->text) == 0,
		           "entry %zu is %s %s %s, blocking %s %s %s", i,
		           ndx_history_kind_name(y->kind), ndx_status_name(y->status), y->text,
		           ndx_history_kind_name(x->kind), ndx_status_name(x->status), x->text);
	}
}

static void errors_alike(struct check *c, const struct failure *b, const struct failure *o)
{
	const struct ndx_session_error *x = &b->error;
	const struct ndx_session_error *y = &o->error;

	check_that(c, b->status == o->status, "%s, blocking %s", ndx_status_name(o->status),
	           ndx_status_name(b->status));
	check_that(c, b->state == o->state, "the session is %s, blocking %s",
	           ndx_session_state_name(o->state), ndx_session_state_name(b->state));
	check_that(c, x->status == y->status, "the error is %s, blocking %s",
	           ndx_status_name(y->status), ndx_status_name(x->status));
	check_that(c, x->layer == y->layer && x->plugin_error == y->plugin_error,
	           "%s, %s; blocking %s, %s", ndx_error_layer_name(y->layer),
	           ndx_plugin_error_name(y->plugin_error), ndx_error_layer_name(x->layer),
	           ndx_plugin_error_name(x->plugin_error));
	check_that(c, x->remote == y->remote && x->stage == y->stage && x->round == y->round,
	           "%s in stage %s, round %u; blocking %s in stage %s, round %u",
	           y->remote ? "the peer" : "here", ndx_stage_name(y->stage), y->round,
	           x->remote ? "the peer" : "here", ndx_stage_name(x->stage), x->round);
	check_that(c, strcmp(x->text, y->text) == 0, "\"%s\", blocking \"%s\"", y->text, x->text);
}

struct scenario {
	struct check *c;
	struct house *house;
	struct pair *pair;
	struct ndx_session_attr attr; /* connector and queue pair are A's, as they are by then */
	int call;
	bool connected;              /* the session is connected before */
	enum ndx_session_state when; /* to cancel; NDX_SESSION_CREATED: never */
	enum ndx_status want;
	const char *text;
};

static void run_scenario(const struct scenario *x, enum how how, struct failure *f)
{
	struct ndx_session_attr attr = x->attr;
	struct check *c = x->c;
	struct cancel cancel;
	struct ndx_session *s;

	if (!side_new_connector(&x->pair->a))
		return;
	attr.connector = x->pair->a.conn;
	attr.qp = x->pair->a.qp;
	if (!check_status(c, ndx_session_create(&attr, &s), NDX_OK, "a session"))
		return;
	cancel = (struct cancel){s, x->when};
	if (x->connected)
		check_status(c, ndx_session_connect(s), NDX_OK, "connect");
	f->status = call(c, s, x->call, how, x->when == NDX_SESSION_CREATED ? NULL : &cancel);
	(void)look(c, s, f);
	ndx_session_close(s);
}

static bool fails_alike(const struct scenario *x)
{
	struct failure f[EACH_HOW];
	struct check *c = x->c;

	memset(f, 0, sizeof(f));
	for (int how = 0; how < EACH_HOW && !check_over(c); how++)
		run_scenario(x, (enum how)how, &f[how]);
	check_that(c, f[BLOCKING].status == x->want, "%s, not %s: %s",
	           ndx_status_name(f[BLOCKING].status), ndx_status_name(x->want),
	           f[BLOCKING].error.text);
	check_that(c, strstr(f[BLOCKING].error.text, x->text) != NULL, "\"%s\" does not say \"%s\"",
	           f[BLOCKING].error.text, x->text);
	errors_alike(c, &f[BLOCKING], &f[OVERLAPPED]);
	/* When a cancel comes is up to chance. */
	if (x->when == NDX_SESSION_CREATED)
		histories_alike(c, &f[BLOCKING], &f[OVERLAPPED]);
	return !check_over(c);
}

/* ---- a server, and a pair that its sessions connect ---- */

static bool open_all(struct house *h, struct check *c, struct scenario *x,
                     const char *const *address)
{
	*x = (struct scenario){.c = c, .house = h, .pair = pair_open(c, NULL, NULL)};
	if (!house_open(h, c, &same_plugin) || !x->pair || !house_serve(h, "127.0.0.1:0"))
		return false;
	house_session_attr(h, &x->pair->a, address, &x->attr);
	return true;
}

static void close_all(struct house *h, struct check *c)
{
	pair_close_all(c);
	house_close(h);
}

static bool run_both(struct house *h, struct pair *p, enum how how)
{
	struct check *c = h->c;
	struct ndx_session *s;
	bool good;

	house_give(h, &p->b);
	if (!house_session(h, &p->a, &s))
		return false;
	good = check_status(c, call(c, s, RUN, how, NULL), NDX_OK, "run") &&
	       message_passes(&p->a, &p->b, 100) && message_passes(&p->b, &p->a, 10) &&
	       pair_disconnect(p) &&
	       check_status(c, call(c, s, NDX_STAGE_DONE, how, NULL), NDX_OK, "done");
	ndx_session_close(s);
	return good;
}

/* What has failed keeps neither side from being connected. */
static void still_works(const struct scenario *x)
{
	house_stop(x->house);
	if (!check_over(x->c) && side_new_connector(&x->pair->a) &&
	    house_serve(x->house, "127.0.0.1:0"))
		(void)run_both(x->house, x->pair, OVERLAPPED);
}

/* ---- cases ---- */

static void each_call(struct house *h, struct pair *p, enum how how)
{
	struct check *c = h->c;
	struct ndx_session *s;

	house_give(h, &p->b);
	if (!house_session(h, &p->a, &s))
		return;
	check_status(c, call(c, s, CONNECT, how, NULL), NDX_OK, "connect");
	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_READY && !check_over(c); stage++) {
		check_status(c, call(c, s, stage, how, NULL), NDX_OK,
		             ndx_stage_name((enum ndx_stage)stage));
		check_that(c, ndx_session_get_state(s) == NDX_SESSION_CONNECTED,
		           "the session is %s", ndx_session_state_name(ndx_session_get_state(s)));
	}
	(void)(message_passes(&p->a, &p->b, 100) && pair_disconnect(p));
	check_status(c, call(c, s, NDX_STAGE_DONE, how, NULL), NDX_OK, "done");
	ndx_session_close(s);
}

void case_negotiated_calls_complete_as_those_that_block(struct check *c)
{
	struct house h;

	if (house_open(&h, c, &same_plugin) && house_serve(&h, "127.0.0.1:0")) {
		for (int how = 0; how < EACH_HOW; how++) {
			struct pair *p = pair_open(c, NULL, NULL);
			struct pair *q = p ? pair_open_on(p, NULL, NULL) : NULL;

			if (!q)
				break;
			each_call(&h, p, (enum how)how);
			(void)run_both(&h, q, (enum how)how);
		}
	}
	close_all(&h, c);
}

static const struct ndx_variant_ops other_ops = {.info = same_info, .ready = same_ready};
static const struct ndx_plugin_variant other_variant = {
	.name = "otherwise", .help = "test", .ops = &other_ops};
static const struct ndx_plugin other = {.abi = NDX_PLUGIN_ABI,
                                        .size = sizeof(struct ndx_plugin),
                                        .name = "other",
                                        .version = "1",
                                        .vendor = "test",
                                        .list = &other_variant,
                                        .count = 1};

void case_negotiated_calls_with_an_unknown_variant(struct check *c)
{
	struct house h;
	const char *const address = h.address;
	struct ndx_variant *unknown = NULL;
	struct scenario x;

	if (open_all(&h, c, &x, &address) &&
	    check_status(c, ndx_negotiation_register(h.negotiation, &other), NDX_OK, "register") &&
	    check_status(c,
	                 ndx_negotiation_get_variant(h.negotiation, "other", "otherwise", NULL, 0,
	                                             &unknown),
	                 NDX_OK, "get_variant")) {
		x.attr.variant = unknown;
		x.want = NDX_E_NOT_FOUND;
		x.text = "no variant other/otherwise here";
		for (int i = 0; i < 2 && !check_over(c); i++) {
			x.call = i == 0 ? CONNECT : RUN;
			(void)fails_alike(&x);
		}
		still_works(&x);
	}
	ndx_variant_close(unknown);
	close_all(&h, c);
}

/* A port without a listener, then one whose listener is silent. */
void case_negotiated_calls_without_a_server(struct check *c)
{
	char silent[32];
	const char *const address = silent;
	const int fd = house_reserve(silent);
	struct scenario x;
	struct house h;

	if (open_all(&h, c, &x, &address) && check_that(c, fd >= 0, "no port")) {
		x.call = RUN;
		x.attr.attempts = 3;
		x.want = NDX_E_CONNECTION_REFUSED;
		x.text = silent;
		(void)fails_alike(&x);
		check_that(c, listen(fd, 16) == 0, "listen");
		x.attr.attempts = 2;
		x.attr.connect_timeout_ms = 40;
		x.want = NDX_E_IO_TIMEOUT;
		x.text = "does not answer within 40 ms";
		(void)fails_alike(&x);
		x.call = CONNECT;
		x.attr.attempts = 100;
		x.attr.connect_timeout_ms = 5000;
		x.attr.session_timeout_ms = 60;
		x.text = "the session's time, 60 ms, is over while connecting";
		(void)fails_alike(&x);
		still_works(&x);
	}
	if (fd >= 0)
		(void)close(fd);
	close_all(&h, c);
}

void case_negotiated_calls_that_the_server_refuses(struct check *c)
{
	struct house h;
	const char *const address = h.address;
	struct scenario x;

	if (open_all(&h, c, &x, &address)) {
		x.want = NDX_E_REMOTE_ERROR;
		x.text = "the server's program refuses the session: NDX_E_";
		x.call = RUN;
		(void)fails_alike(&x);
		x.call = NDX_STAGE_INFO;
		x.connected = true;
		(void)fails_alike(&x);
		still_works(&x);
	}
	close_all(&h, c);
}

void case_negotiated_calls_whose_stage_takes_too_long(struct check *c)
{
	struct house h;
	const char *const address = h.address;
	struct scenario x;

	if (open_all(&h, c, &x, &address)) {
		__atomic_store_n(&h.held, 1, __ATOMIC_SEQ_CST);
		x.attr.stage_timeout_ms = 60;
		x.want = NDX_E_IO_TIMEOUT;
		x.text = "nothing came from the peer";
		x.call = NDX_STAGE_INFO;
		x.connected = true;
		(void)fails_alike(&x);
		__atomic_store_n(&h.held, 0, __ATOMIC_SEQ_CST);
		still_works(&x);
	}
	close_all(&h, c);
}

static void cancel_stage(struct scenario *x, struct house *h)
{
	x->call = NDX_STAGE_INFO;
	x->connected = true;
	x->when = NDX_SESSION_EXCHANGING;
	x->text = "cancelled";
	__atomic_store_n(&h->held, 1, __ATOMIC_SEQ_CST);
	(void)fails_alike(x);
	__atomic_store_n(&h->held, 0, __ATOMIC_SEQ_CST);
}

void case_negotiated_calls_that_are_cancelled(struct check *c)
{
	char silent[32];
	const char *const address = silent;
	const int fd = house_reserve(silent);
	struct scenario x;
	struct house h;
	const char *const served = h.address;

	if (open_all(&h, c, &x, &address) &&
	    check_that(c, fd >= 0 && listen(fd, 16) == 0, "no port")) {
		x.want = NDX_E_CANCELED;
		x.when = NDX_SESSION_CONNECTING;
		x.text = "cancelled while connecting";
		x.call = CONNECT;
		(void)fails_alike(&x);
		x.attr.servers = &served;
		cancel_stage(&x, &h);
		still_works(&x);
	}
	if (fd >= 0)
		(void)close(fd);
	close_all(&h, c);
}

/* A cancel between two calls is for the next one. */
void case_negotiated_calls_after_a_cancel(struct check *c)
{
	struct house h;
	struct pair *p = pair_open(c, NULL, NULL);

	if (house_open(&h, c, &same_plugin) && p && house_serve(&h, "127.0.0.1:0")) {
		for (int i = 0; i < 2 * EACH_HOW && !check_over(c); i++) {
			const enum how how = (enum how)(i / 2);
			struct ndx_session *s;

			if (!house_session(&h, &p->a, &s))
				break;
			if (i % 2 == 1)
				check_status(c, ndx_session_connect(s), NDX_OK, "connect");
			ndx_session_cancel(s);
			check_status(c,
			             call(c, s, i % 2 == 1 ? NDX_STAGE_INFO : CONNECT, how, NULL),
			             NDX_E_CANCELED, "the call after a cancel");
			check_that(c, ndx_session_get_state(s) == NDX_SESSION_FAILED,
			           "the session is %s",
			           ndx_session_state_name(ndx_session_get_state(s)));
			ndx_session_close(s);
		}
	}
	close_all(&h, c);
}
