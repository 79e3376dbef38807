/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: closing an object ends what is in flight on it, and forgets it. */
#include <sched.h>
#include <string.h>

#include "cases.h"
#include "ending.h"
#include "probe.h"
#include "traffic.h"

enum { POISON = 0xa5, DAWDLE_MS = 40 };

/* The memory of an operation that ended is the caller's: nothing may write there any more. */
static void poison(struct probe *probe)
{
	memset(&probe->ov, POISON, sizeof(probe->ov));
}

static void still_poisoned(struct probe *probe, const char *what)
{
	bytes_are(probe->c, (const uint8_t *)&probe->ov, sizeof(probe->ov), POISON, what);
}

struct closing {
	struct check *c;
	struct pair *p;
	struct probe one[EACH_WAY]; /* one per way */
};

static bool closing_begin(struct closing *k, struct check *c, struct pair *p)
{
	bool ready = p != NULL;

	memset(k, 0, sizeof(*k));
	k->c = c;
	k->p = p;
	for (size_t i = 0; ready && i < EACH_WAY; i++)
		ready = probe_begin(&k->one[i], c, (enum way)i);
	return ready;
}

/* All have ended before the close returned. */
static void closing_ended(struct closing *k, enum ndx_status want, const char *what)
{
	for (size_t i = 0; i < EACH_WAY; i++) {
		probe_has_ended(&k->one[i], want, what);
		probe_silent(&k->one[i], what);
		if (!check_over(k->c))
			poison(&k->one[i]);
	}
}

static void closing_end(struct closing *k, const char *what)
{
	for (size_t i = 0; i < EACH_WAY; i++) {
		if (!check_over(k->c))
			still_poisoned(&k->one[i], what);
	}
	pair_close_all(k->c);
	for (size_t i = 0; i < EACH_WAY; i++) {
		if (!check_over(k->c))
			still_poisoned(&k->one[i], what);
		probe_end(&k->one[i]);
	}
}

void case_overlapped_closed_queue_ends_its_notifications(struct check *c)
{
	struct closing k;

	if (!closing_begin(&k, c, pair_up(c, NULL)))
		return;
	receive_ok(&k.p->a, 1, 0, 64);
	for (size_t i = 0; i < EACH_WAY; i++)
		check_status(c, ndx_cq_notify(k.p->a.cq, NDX_CQ_NOTIFY_ANY, &k.one[i].ov),
		             NDX_PENDING, "cq_notify");
	side_close_cqs(&k.p->a);
	closing_ended(&k, NDX_E_CANCELED, "cq_notify of a closed queue");
	/* its queue pair goes on producing results */
	send_ok(&k.p->b, 2, 0, 64, 0);
	expect(&k.p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	side_disconnect(&k.p->a, NDX_OK);
	closing_end(&k, "overlapped object of a closed queue");
}

void case_overlapped_closed_shared_queue_ends_its_notifications(struct check *c)
{
	struct ndx_sge nothing = {.length = 0};
	struct ndx_srq *srq = NULL;
	struct side_attr attr[2];
	struct closing k;
	struct pair *p;

	if (!check_status(c, make_srq(c->world->places[0].adapter, 8, 1, 2, &srq), NDX_OK,
	                  "srq_create"))
		return;
	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].srq = srq;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!closing_begin(&k, c, p)) {
		ndx_srq_close(srq);
		return;
	}
	for (unsigned i = 0; i < 2; i++)
		check_status(c, ndx_srq_receive(srq, tag(&p->a, i), &nothing, 1), NDX_OK,
		             "srq_receive");
	for (size_t i = 0; i < EACH_WAY; i++)
		check_status(c, ndx_srq_notify(srq, &k.one[i].ov), NDX_PENDING, "srq_notify");
	ndx_srq_close(srq);
	closing_ended(&k, NDX_E_CANCELED, "srq_notify of a closed queue");
	/* falls below the threshold: no notification may fire */
	check_status(c, ndx_qp_send(p->b.qp, tag(&p->b, 9), NULL, 0, 0), NDX_OK, "send");
	expect_received(&p->a, 0, 0);
	closing_end(&k, "overlapped object of a closed shared queue");
}

/* A pair for each way at one listener, each of which has asked for a request. */
static bool closing_of_requests(struct closing *k, struct check *c, struct pair *p[EACH_WAY])
{
	for (size_t i = 0; i < EACH_WAY; i++) {
		p[i] = i == 0 ? pair_open(c, NULL, NULL) : pair_open_on(p[0], NULL, NULL);
		if (!p[i])
			return false;
	}
	if (!closing_begin(k, c, p[0]))
		return false;
	for (size_t i = 0; i < EACH_WAY; i++)
		check_status(c,
		             ndx_listener_get_connection_request(p[0]->listener, p[i]->b.conn,
		                                                 &k->one[i].ov),
		             NDX_PENDING, "get_connection_request");
	return true;
}

void case_overlapped_closed_listener_ends_its_requests(struct check *c)
{
	struct closing k;
	struct pair *p[EACH_WAY];

	if (!closing_of_requests(&k, c, p))
		return;
	ndx_listener_close(p[0]->listener);
	p[0]->listener = NULL;
	closing_ended(&k, NDX_E_CANCELED, "get_connection_request of a closed listener");
	check_async(c, side_connect(&p[0]->a, &p[0]->address, NULL, 0), &p[0]->a.ov,
	            NDX_E_CONNECTION_REFUSED, "connect to a closed listener");
	closing_end(&k, "overlapped object of a closed listener");
}

void case_overlapped_closed_connector_ends_its_request(struct check *c)
{
	struct closing k;
	struct pair *p[EACH_WAY];

	if (!closing_of_requests(&k, c, p))
		return;
	for (size_t i = 0; i < EACH_WAY; i++)
		side_close_connector(&p[i]->b);
	closing_ended(&k, NDX_E_CANCELED, "get_connection_request into a closed connector");
	/* the listener goes on */
	side_new_connector(&p[0]->b);
	(void)(pair_connect(p[0]) && message_passes(&p[0]->a, &p[0]->b, 64));
	closing_end(&k, "overlapped object of a closed connector");
}

/* One operation of a connector per way, then it is closed. */
static void close_connector_in(struct check *c, enum way way, bool connected)
{
	struct pair *p = connected ? pair_up(c, NULL) : pair_open(c, NULL, NULL);
	enum ndx_status got;
	struct probe one;

	if (!p || !probe_begin(&one, c, way))
		return;
	if (connected)
		got = ndx_connector_notify_disconnect(p->a.conn, &one.ov);
	else
		got = ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
		                            address_length(&p->address), NULL, &one.ov);
	check_status(c, got, NDX_PENDING, "connect or notify_disconnect");
	side_close_connector(&p->a);
	probe_has_ended(&one, NDX_E_CANCELED, "operation of a closed connector");
	probe_silent(&one, "operation of a closed connector");
	if (!check_over(c)) {
		poison(&one);
		side_close_qp(&p->a);
		if (connected) {
			side_start_notify(&p->b);
			check_ends(c, &p->b.notify, NDX_OK, "notify_disconnect of the peer");
		}
		still_poisoned(&one, "overlapped object of a closed connector");
	}
	pair_close_all(c);
	probe_end(&one);
}

void case_overlapped_closed_connector_ends_what_it_does(struct check *c)
{
	for (unsigned i = 0; i < EACH_WAY && !check_over(c); i++) {
		close_connector_in(c, (enum way)i, false);
		close_connector_in(c, (enum way)i, true);
	}
}

void case_overlapped_accept_ends_when_its_connector_is_closed(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct probe one;

	if (!p || !probe_begin(&one, c, WAY_CALLBACK))
		return;
	(void)pair_ask(p);
	check_status(c, ndx_connector_accept(p->b.conn, p->b.qp, NULL, &one.ov), NDX_PENDING,
	             "accept");
	check_ends(c, &p->a.ov, NDX_OK, "connect");
	side_close_connector(&p->b);
	probe_has_ended(&one, NDX_E_CANCELED, "accept of a closed connector");
	probe_silent(&one, "accept of a closed connector");
	if (!check_over(c)) {
		poison(&one);
		(void)check_result_of(c, ndx_connector_complete_connect(p->a.conn, &p->a.ov),
		                      &p->a.ov);
		still_poisoned(&one, "overlapped object of a closed connector");
	}
	pair_close_all(c);
	probe_end(&one);
}

void case_overlapped_closed_region_ends_its_registration(struct check *c)
{
	struct closing k;
	struct ndx_mr *mr[EACH_WAY] = {NULL};

	if (!closing_begin(&k, c, pair_open(c, NULL, NULL)))
		return;
	for (size_t i = 0; i < EACH_WAY; i++) {
		check_status(c, ndx_mr_create(k.p->a.adapter, &mr[i]), NDX_OK, "mr_create");
		if (!check_over(c))
			check_status(c, ndx_mr_register(mr[i], k.p->a.buf, 4096, 0, &k.one[i].ov),
			             NDX_PENDING, "register");
	}
	for (size_t i = 0; i < EACH_WAY; i++)
		ndx_mr_close(mr[i]);
	closing_ended(&k, NDX_OK, "register of a closed region");
	closing_end(&k, "overlapped object of a closed region");
}

/* ---- callbacks that take their time have returned when a cancel or a close has ---- */

struct hurry {
	struct object o;
	unsigned returned;  /* atomic: the cancel or close has */
	unsigned overtaken; /* atomic: it had, while a callback was running */
};

/* Gives the cancel or close, should it not wait for us, the time to return. */
static void dawdle(struct probe *probe)
{
	struct hurry *h = probe->arg;
	uint64_t until = now_ms() + DAWDLE_MS;

	while (now_ms() < until && !__atomic_load_n(&h->returned, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	if (__atomic_load_n(&h->returned, __ATOMIC_ACQUIRE))
		__atomic_store_n(&h->overtaken, 1, __ATOMIC_RELEASE);
}

static void end_slowly(struct hurry *h, const struct ending *e)
{
	struct check *c = h->o.c;
	struct probe one;

	if (!probe_begin_then(&one, c, dawdle, h))
		return;
	if (check_status(c, e->begin(&h->o, &one.ov), NDX_PENDING, e->what)) {
		e->end(&h->o);
		__atomic_store_n(&h->returned, 1, __ATOMIC_RELEASE);
		probe_ends(&one, e->want, e->what);
		check_that(c, !__atomic_load_n(&h->overtaken, __ATOMIC_ACQUIRE),
		           "%s returned before its callback did", e->what);
	}
	pair_close_all(c);
	probe_end(&one);
}

void case_overlapped_cancel_and_close_wait_for_callbacks(struct check *c)
{
	for (size_t i = 0; i < ending_count && !check_over(c); i++) {
		struct hurry h = {.returned = 0};

		if (!object_open(&h.o, c, &endings[i]))
			continue;
		end_slowly(&h, &endings[i]);
		object_close(&h.o);
	}
}
