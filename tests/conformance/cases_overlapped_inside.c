/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: what is ended in a callback: no other callback runs in there. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "ending.h"
#include "probe.h"
#include "traffic.h"

enum { CROWD = 1000, ROUNDS = 20 };

/* A callback that something is done in. The registration that it tells of is over by then. */
struct stage {
	struct check *c;
	struct ndx_mr *mr;
	uint8_t memory[64];
	struct probe outer;
	unsigned inside; /* atomic */
};

static bool stage_open(struct stage *s, struct check *c, struct ndx_adapter *adapter,
                       void (*act)(struct probe *probe), void *arg)
{
	memset(s, 0, sizeof(*s));
	s->c = c;
	return check_status(c, ndx_mr_create(adapter, &s->mr), NDX_OK, "mr_create") &&
	       probe_begin_then(&s->outer, c, act, arg);
}

static bool stage_start(struct stage *s)
{
	return check_status(s->c,
	                    ndx_mr_register(s->mr, s->memory, sizeof(s->memory), 0, &s->outer.ov),
	                    NDX_PENDING, "register");
}

static bool stage_over(struct stage *s)
{
	return probe_ends(&s->outer, NDX_OK, "register");
}

static void stage_close(struct stage *s)
{
	ndx_mr_close(s->mr);
	probe_end(&s->outer);
}

static void enter(struct stage *s)
{
	__atomic_store_n(&s->inside, 1, __ATOMIC_RELEASE);
}

static void leave(struct stage *s)
{
	__atomic_store_n(&s->inside, 0, __ATOMIC_RELEASE);
}

static bool is_inside(const struct stage *s)
{
	return __atomic_load_n(&s->inside, __ATOMIC_ACQUIRE) != 0;
}

/* ---- everything that can be ended ---- */

struct scene {
	struct stage stage;
	struct object o;
	const struct ending *e;
	struct probe inner;
	bool foreign; /* the callback is another adapter's */
	bool nested;
};

static void note_nesting(struct probe *probe)
{
	struct scene *s = probe->arg;
	const bool same = pthread_equal(s->stage.outer.thread, pthread_self()) != 0;

	s->nested = same && is_inside(&s->stage);
}

static void begin_and_end(struct probe *probe)
{
	struct scene *s = probe->arg;

	if (!check_status(s->o.c, s->e->begin(&s->o, &s->inner.ov), NDX_PENDING, s->e->what))
		return;
	enter(&s->stage);
	s->e->end(&s->o);
	if (s->inner.way != WAY_CALLBACK)
		probe_has_ended(&s->inner, s->e->want, s->e->what);
	else if (!s->foreign)
		check_that(s->o.c,
		           probe_calls(&s->inner) == 0 &&
		                   ndx_overlapped_status(&s->inner.ov) == NDX_PENDING,
		           "%s: a callback began in a callback", s->e->what);
	leave(&s->stage);
}

static void play(struct scene *s, enum way way, struct ndx_adapter *adapter)
{
	struct check *c = s->o.c;
	const bool ready = way == WAY_CALLBACK ? probe_begin_then(&s->inner, c, note_nesting, s)
	                                       : probe_begin(&s->inner, c, way);

	if (ready && stage_open(&s->stage, c, adapter, begin_and_end, s) &&
	    stage_start(&s->stage) && stage_over(&s->stage)) {
		if (way == WAY_CALLBACK)
			probe_ends(&s->inner, s->e->want, s->e->what);
		check_that(c, !s->nested, "%s: a callback ran in a callback", s->e->what);
	}
	stage_close(&s->stage);
	pair_close_all(c);
	probe_silent(&s->inner, s->e->what);
	probe_end(&s->inner);
}

static void play_all(struct check *c, struct ndx_adapter *foreign)
{
	for (size_t i = 0; i < EACH_WAY * ending_count && !check_over(c); i++) {
		struct scene *s = calloc(1, sizeof(*s));

		if (!s) {
			check_fail(c, "no memory");
			return;
		}
		s->e = &endings[i / EACH_WAY];
		s->foreign = foreign != NULL;
		if (object_open(&s->o, c, s->e)) {
			struct side *own = s->e->passive ? &s->o.p->b : &s->o.p->a;

			play(s, (enum way)(i % EACH_WAY), foreign ? foreign : own->adapter);
			object_close(&s->o);
		}
		free(s);
	}
}

void case_overlapped_callbacks_follow_the_callback_that_caused_them(struct check *c)
{
	play_all(c, NULL);
}

void case_overlapped_callback_of_another_adapter_may_end_anything(struct check *c)
{
	struct ndx_adapter *other = NULL;

	if (check_status(c, ndx_adapter_open(c->world->places[0].uri, &other), NDX_OK, "open"))
		play_all(c, other);
	ndx_adapter_close(other);
}

/* ---- two adapters, each in a callback, at the same time ---- */

struct meeting {
	struct stage stage;
	struct meeting *peer;
	struct ndx_cq *cq; /* of the own adapter */
	struct probe inner;
	unsigned there; /* atomic */
	bool nested;
};

static void note_meeting(struct probe *probe)
{
	struct meeting *m = probe->arg;

	m->nested = is_inside(&m->stage);
}

static void end_the_peers(struct probe *probe)
{
	struct meeting *m = probe->arg;
	const uint64_t until = now_ms() + WAIT_MS;

	enter(&m->stage);
	__atomic_store_n(&m->there, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&m->peer->there, __ATOMIC_ACQUIRE) && now_ms() < until)
		continue;
	ndx_cq_close(m->peer->cq);
	leave(&m->stage);
}

static bool meeting_open(struct meeting *m, struct check *c, struct ndx_adapter *adapter)
{
	return stage_open(&m->stage, c, adapter, end_the_peers, m) &&
	       probe_begin_then(&m->inner, c, note_meeting, m) &&
	       check_status(c, ndx_cq_create_depth(adapter, 4, &m->cq), NDX_OK, "cq_create") &&
	       check_status(c, ndx_cq_notify(m->cq, NDX_CQ_NOTIFY_ANY, &m->inner.ov), NDX_PENDING,
	                    "cq_notify");
}

static void meeting_over(struct meeting *m)
{
	if (!stage_over(&m->stage))
		return;
	probe_ends(&m->inner, NDX_E_CANCELED, "cq_notify of a closed queue");
	check_that(m->stage.c, !m->nested, "a callback ran in a callback of the same adapter");
}

void case_overlapped_callbacks_of_two_adapters_may_end_each_others(struct check *c)
{
	struct ndx_adapter *own = c->world->places[0].adapter;
	struct ndx_adapter *other = NULL;

	if (!check_status(c, ndx_adapter_open(c->world->places[0].uri, &other), NDX_OK, "open"))
		return;
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct meeting m[2];

		memset(m, 0, sizeof(m));
		m[0].peer = &m[1];
		m[1].peer = &m[0];
		if (meeting_open(&m[0], c, own) && meeting_open(&m[1], c, other) &&
		    stage_start(&m[0].stage) && stage_start(&m[1].stage)) {
			meeting_over(&m[0]);
			meeting_over(&m[1]);
		}
		for (int k = 0; k < 2; k++) {
			stage_close(&m[k].stage);
			probe_end(&m[k].inner);
		}
	}
	ndx_adapter_close(other);
}

/* ---- flush, and a callback that closes ---- */

struct flushing {
	struct stage stage;
	struct side *s;
	struct probe gone;
	bool nested;
};

static void close_what_is_gone(struct probe *probe)
{
	struct flushing *f = probe->arg;

	f->nested = is_inside(&f->stage);
	side_close_connector(f->s);
	side_close_qp(f->s);
}

static void flush_it(struct probe *probe)
{
	struct flushing *f = probe->arg;

	enter(&f->stage);
	check_status(f->s->c, ndx_qp_flush(f->s->qp), NDX_OK, "flush in a callback");
	leave(&f->stage);
}

void case_overlapped_callback_may_flush_what_the_next_one_closes(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct flushing f = {.s = p ? &p->a : NULL};

	if (!p || !stage_open(&f.stage, c, p->a.adapter, flush_it, &f) ||
	    !probe_begin_then(&f.gone, c, close_what_is_gone, &f))
		return;
	receives_ok(&p->a, 0, 4, 0, 64);
	side_start_notify(&p->b);
	check_status(c, ndx_connector_notify_disconnect(p->a.conn, &f.gone.ov), NDX_PENDING,
	             "notify_disconnect");
	if (!check_over(c) && stage_start(&f.stage) && stage_over(&f.stage))
		probe_ends(&f.gone, NDX_OK, "notify_disconnect");
	check_that(c, !f.nested, "the indication came in a callback");
	expect_all_there(&p->a, 4, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	stage_close(&f.stage);
	pair_close_all(c);
	probe_end(&f.gone);
}

void case_overlapped_flush_may_cause_the_close_of_its_queue_pair(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		struct flushing f = {.s = p ? &p->a : NULL};

		if (!p || !probe_begin_then(&f.gone, c, close_what_is_gone, &f))
			return;
		receives_ok(&p->a, 0, 4, 0, 64);
		check_status(c, ndx_connector_notify_disconnect(p->a.conn, &f.gone.ov), NDX_PENDING,
		             "notify_disconnect");
		if (!check_over(c))
			check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
		probe_has_ended(&f.gone, NDX_OK, "notify_disconnect");
		expect_all_there(&p->a, 4, NDX_E_CANCELED);
		pair_close_all(c);
		probe_end(&f.gone);
	}
}

/* ---- what ended before, and is told behind the callback that closes ---- */

struct ended {
	struct side *s;
	struct probe gone;
	struct probe disc;
};

static void close_and_look(struct probe *probe)
{
	struct ended *e = probe->arg;

	side_close_connector(e->s);
	probe_has_ended(&e->disc, NDX_E_CONNECTION_ABORTED,
	                "disconnect of a connector that a callback has closed");
}

static void close_in_the_indication(struct check *c, enum way way)
{
	struct pair *p = pair_up(c, NULL);
	struct ended e = {.s = p ? &p->a : NULL};

	if (!p || !probe_begin_then(&e.gone, c, close_and_look, &e))
		return;
	(void)probe_begin(&e.disc, c, way);
	sends_ok(&p->a, 0, 2, 0, 64); /* find no receive: the disconnect waits for them */
	check_status(c, ndx_connector_notify_disconnect(p->a.conn, &e.gone.ov), NDX_PENDING,
	             "notify_disconnect");
	check_status(c, ndx_connector_disconnect(p->a.conn, &e.disc.ov), NDX_PENDING, "disconnect");
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush"); /* ends both */
	(void)probe_called(&e.gone, 1, "notify_disconnect");
	probe_silent(&e.disc, "disconnect of a closed connector");
	pair_close_all(c);
	probe_end(&e.gone);
	probe_end(&e.disc);
}

void case_overlapped_closed_in_a_callback_it_is_complete_on_return(struct check *c)
{
	close_in_the_indication(c, WAY_WAIT);
	if (!check_over(c))
		close_in_the_indication(c, WAY_PORT);
}

/* ---- a listener goes whose connection has just ended ---- */

/* In a callback of B's adapter. During calls to another adapter B's control thread does what it is
 * asked for: so the end of the connection is queued behind this callback. */
struct parting {
	struct stage stage;
	struct pair *p;
	struct ndx_connector *elsewhere; /* of another adapter */
	void (*end)(struct object *o);   /* what becomes of the listener */
	struct probe gone;
	struct probe disc;
	unsigned entered; /* atomic */
	bool indicated;
	bool overtaken;
};

static void note_order(struct probe *probe)
{
	struct parting *t = probe->arg;

	t->indicated = true;
	t->overtaken = t->overtaken || ndx_overlapped_status(&t->disc.ov) != NDX_PENDING;
}

static void end_the_listener(struct probe *probe)
{
	struct parting *t = probe->arg;
	struct object o = {.c = probe->c, .p = t->p};
	const uint64_t until = now_ms() + WAIT_MS;

	__atomic_store_n(&t->entered, 1, __ATOMIC_RELEASE);
	while (ndx_connector_get_disconnect_reason(t->p->b.conn) == NDX_DISCONNECT_NONE &&
	       now_ms() < until)
		check_status(o.c, ndx_connector_cancel(t->elsewhere), NDX_OK, "connector_cancel");
	t->end(&o);
	t->overtaken = t->overtaken || ndx_overlapped_status(&t->disc.ov) != NDX_PENDING;
}

static void flush_behind_the_callback(struct parting *t)
{
	struct side *b = &t->p->b;
	const uint64_t until = now_ms() + WAIT_MS;

	sends_ok(b, 0, 2, 0, 64); /* find no receive: the disconnect waits for them */
	check_status(b->c, ndx_connector_notify_disconnect(b->conn, &t->gone.ov), NDX_PENDING,
	             "notify_disconnect");
	check_status(b->c, ndx_connector_disconnect(b->conn, &t->disc.ov), NDX_PENDING,
	             "disconnect");
	if (check_over(b->c) || !stage_start(&t->stage))
		return;
	while (!__atomic_load_n(&t->entered, __ATOMIC_ACQUIRE) && now_ms() < until)
		(void)poll(NULL, 0, 1);
	check_status(b->c, ndx_qp_flush(b->qp), NDX_OK, "flush"); /* ends both */
	if (!stage_over(&t->stage))
		return;
	probe_ends(&t->gone, NDX_OK, "notify_disconnect");
	probe_ends(&t->disc, NDX_E_CONNECTION_ABORTED, "disconnect");
	check_that(b->c, t->indicated && !t->overtaken,
	           "the disconnect was complete before the callback of its indication had run");
}

static void part_from_a_listener(struct check *c, void (*end)(struct object *o), enum way way)
{
	struct parting t = {.p = pair_up(c, NULL), .end = end};
	struct ndx_adapter *other = NULL;

	if (!t.p ||
	    !check_status(c, ndx_adapter_open(c->world->places[1].uri, &other), NDX_OK, "open"))
		return;
	check_status(c, ndx_connector_create(other, NULL, &t.elsewhere), NDX_OK,
	             "connector_create");
	if (probe_begin_then(&t.gone, c, note_order, &t) && probe_begin(&t.disc, c, way) &&
	    stage_open(&t.stage, c, t.p->b.adapter, end_the_listener, &t))
		flush_behind_the_callback(&t);
	stage_close(&t.stage);
	ndx_connector_close(t.elsewhere);
	ndx_adapter_close(other);
	pair_close_all(c);
	probe_end(&t.gone);
	probe_end(&t.disc);
}

void case_overlapped_listener_ended_in_a_callback_hurries_nothing_else(struct check *c)
{
	for (size_t i = 0; i < ending_count; i++) {
		if (!endings[i].passive)
			continue;
		part_from_a_listener(c, endings[i].end, WAY_WAIT);
		if (!check_over(c))
			part_from_a_listener(c, endings[i].end, WAY_PORT);
	}
}

/* ---- many ---- */

struct crowd;

struct one {
	struct ndx_overlapped ov;
	struct ndx_connector *conn;
	struct crowd *crowd;
};

struct crowd {
	struct one ones[CROWD];
	unsigned calls; /* atomic */
	bool inside;
	bool nested;
	bool overtaken;
};

/* Whose request is cancelled by that, and whose callback does the same. */
static void close_the_next(struct ndx_overlapped *ov)
{
	struct one *one = ov->context;
	struct crowd *w = one->crowd;
	const size_t next = (size_t)(one - w->ones) + 1;
	const bool outer = w->inside;

	w->nested = w->nested || outer;
	w->overtaken = w->overtaken || next != w->calls + 1;
	w->inside = true;
	if (next < CROWD)
		ndx_connector_close(w->ones[next].conn);
	w->inside = outer;
	__atomic_fetch_add(&w->calls, 1, __ATOMIC_RELEASE);
}

static void end_in_a_chain(struct check *c, struct crowd *w, struct pair *p)
{
	const uint64_t until = now_ms() + WAIT_MS;

	for (size_t i = 0; i < CROWD && !check_over(c); i++) {
		struct one *one = &w->ones[i];

		one->crowd = w;
		one->ov.callback = close_the_next;
		one->ov.context = one;
		if (check_status(c, ndx_connector_create(p->b.adapter, NULL, &one->conn), NDX_OK,
		                 "connector_create"))
			check_status(c,
			             ndx_listener_get_connection_request(p->listener, one->conn,
			                                                 &one->ov),
			             NDX_PENDING, "get_connection_request");
	}
	if (check_over(c))
		return;
	ndx_connector_close(w->ones[0].conn);
	while (__atomic_load_n(&w->calls, __ATOMIC_ACQUIRE) < CROWD && now_ms() < until)
		ndx_connector_cancel(p->b.conn); /* behind the callbacks of now */
	check_that(c, __atomic_load_n(&w->calls, __ATOMIC_ACQUIRE) == CROWD,
	           "%u of %d callbacks ran", w->calls, CROWD);
	check_that(c, !w->nested, "a callback ran in a callback");
	check_that(c, !w->overtaken, "callbacks came out of order");
}

void case_overlapped_callbacks_that_close_the_next_one_do_not_nest(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct crowd *w = calloc(1, sizeof(*w));

	if (!w)
		check_fail(c, "no memory");
	else if (p)
		end_in_a_chain(c, w, p);
	pair_close_all(c);
	free(w);
}
