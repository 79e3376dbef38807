/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: operations that end later, and how their end is learnt. */
#include <poll.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { SRQ_THRESHOLD = 2, RACES = 50 };

/* ---- every operation in every way ---- */

enum which {
	ON_A,     /* connect, complete_connect, disconnect, register, notify */
	ON_B,     /* get_connection_request, accept */
	WATCHING, /* notify_disconnect of B */
	PROBES
};

static bool memory_work(struct pair *p, struct probe *one)
{
	struct ndx_mr *mr = NULL;
	bool fine =
		check_status(p->c, ndx_mr_create(p->a.adapter, &mr), NDX_OK, "mr_create") &&
		probe_async(one,
	                    ndx_mr_register(mr, p->a.buf, 100, NDX_MR_ALLOW_LOCAL_WRITE, &one->ov),
	                    NDX_OK, "register") &&
		probe_async(one, ndx_mr_deregister(mr, &one->ov), NDX_OK, "deregister");

	ndx_mr_close(mr);
	return fine;
}

static bool connecting(struct pair *p, struct probe *all)
{
	struct check *c = p->c;

	return check_status(
		       c,
		       ndx_listener_get_connection_request(p->listener, p->b.conn, &all[ON_B].ov),
		       NDX_PENDING, "get_connection_request") &&
	       probe_pending(&all[ON_B], "get_connection_request") &&
	       check_status(c,
	                    ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
	                                          address_length(&p->address), NULL, &all[ON_A].ov),
	                    NDX_PENDING, "connect") &&
	       probe_ends(&all[ON_B], NDX_OK, "get_connection_request") &&
	       check_status(c, ndx_connector_accept(p->b.conn, p->b.qp, NULL, &all[ON_B].ov),
	                    NDX_PENDING, "accept") &&
	       probe_ends(&all[ON_A], NDX_OK, "connect") &&
	       probe_async(&all[ON_A], ndx_connector_complete_connect(p->a.conn, &all[ON_A].ov),
	                   NDX_OK, "complete_connect") &&
	       probe_ends(&all[ON_B], NDX_OK, "accept");
}

static bool notified(struct pair *p, struct probe *one)
{
	receive_ok(&p->a, 1, 0, 64);
	return check_status(p->c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one->ov), NDX_PENDING,
	                    "cq_notify") &&
	       probe_pending(one, "cq_notify") && send_ok(&p->b, 2, 0, 64, 0) &&
	       probe_ends(one, NDX_OK, "cq_notify") && expect_received(&p->a, 1, 64) &&
	       expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
}

static bool parting(struct pair *p, struct probe *all)
{
	return check_status(p->c, ndx_connector_notify_disconnect(p->b.conn, &all[WATCHING].ov),
	                    NDX_PENDING, "notify_disconnect") &&
	       probe_async(&all[ON_A], ndx_connector_disconnect(p->a.conn, &all[ON_A].ov), NDX_OK,
	                   "disconnect") &&
	       probe_ends(&all[WATCHING], NDX_OK, "notify_disconnect") &&
	       check_that(p->c, all[WATCHING].ov.information == NDX_DISCONNECT_GRACEFUL,
	                  "notify_disconnect says %u", all[WATCHING].ov.information);
}

static void every_operation(struct check *c, enum way way)
{
	struct probe all[PROBES];
	struct pair *p = pair_open(c, NULL, NULL);
	bool ready = p != NULL;

	memset(all, 0, sizeof(all));
	for (size_t i = 0; ready && i < PROBES; i++)
		ready = probe_begin(&all[i], c, way);
	ready = ready && memory_work(p, &all[ON_A]) && connecting(p, all) &&
	        notified(p, &all[ON_A]) && parting(p, all);
	pair_close_all(c);
	for (size_t i = 0; i < PROBES; i++) {
		if (ready)
			probe_silent(&all[i], "everything together");
		probe_end(&all[i]);
	}
}

void case_overlapped_every_operation_by_waiting(struct check *c)
{
	every_operation(c, WAY_WAIT);
}

void case_overlapped_every_operation_by_callback(struct check *c)
{
	every_operation(c, WAY_CALLBACK);
}

void case_overlapped_every_operation_by_port(struct check *c)
{
	every_operation(c, WAY_PORT);
}

void case_overlapped_every_operation_by_sink(struct check *c)
{
	every_operation(c, WAY_SINK);
}

void case_overlapped_shared_queues_notify_in_every_way(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	struct ndx_srq *srq = NULL;
	struct probe one[EACH_WAY];

	memset(one, 0, sizeof(one));
	if (!check_status(c, make_srq(adapter, 8, 1, SRQ_THRESHOLD, &srq), NDX_OK, "srq_create"))
		return;
	/* no receives are there: fewer than the threshold */
	for (size_t i = 0; i < EACH_WAY; i++) {
		if (probe_begin(&one[i], c, (enum way)i))
			probe_async(&one[i], ndx_srq_notify(srq, &one[i].ov), NDX_OK, "srq_notify");
	}
	ndx_srq_close(srq);
	for (size_t i = 0; i < EACH_WAY; i++)
		probe_end(&one[i]);
}

/* An operation that fails later is learnt of just so. */
void case_overlapped_failures_come_in_every_way(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct probe one[EACH_WAY];

	memset(one, 0, sizeof(one));
	if (!p || !pair_without_listener(p))
		return;
	for (size_t i = 0; i < EACH_WAY; i++) {
		if (!probe_begin(&one[i], c, (enum way)i))
			break;
		probe_async(&one[i],
		            ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
		                                  address_length(&p->address), NULL, &one[i].ov),
		            NDX_E_CONNECTION_REFUSED, "connect to nobody");
		probe_silent(&one[i], "connect to nobody");
	}
	pair_close_all(c);
	for (size_t i = 0; i < EACH_WAY; i++)
		probe_end(&one[i]);
}

/* ---- cancelling ---- */

void case_overlapped_cancel_with_nothing_in_flight(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	check_status(c, ndx_mr_cancel(p->a.mr), NDX_OK, "mr_cancel");
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "connector_cancel");
	check_status(c, ndx_listener_cancel(p->listener), NDX_OK, "listener_cancel");
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

static void cancel_one(struct check *c, enum way way)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct probe all[PROBES];
	bool ready = p != NULL;

	memset(all, 0, sizeof(all));
	for (size_t i = 0; ready && i < PROBES; i++)
		ready = probe_begin(&all[i], c, way);
	if (ready) {
		check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &all[0].ov), NDX_PENDING,
		             "cq_notify");
		check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
		probe_has_ended(&all[0], NDX_E_CANCELED, "cq_notify");
		check_status(
			c, ndx_listener_get_connection_request(p->listener, p->b.conn, &all[1].ov),
			NDX_PENDING, "get_connection_request");
		check_status(c, ndx_listener_cancel(p->listener), NDX_OK, "listener_cancel");
		probe_has_ended(&all[1], NDX_E_CANCELED, "get_connection_request");
		check_status(c,
		             ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
		                                   address_length(&p->address), NULL, &all[2].ov),
		             NDX_PENDING, "connect");
		check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "connector_cancel");
		probe_has_ended(&all[2], NDX_E_CANCELED, "connect");
	}
	pair_close_all(c);
	for (size_t i = 0; i < PROBES; i++) {
		if (ready)
			probe_silent(&all[i], "cancelled");
		probe_end(&all[i]);
	}
}

void case_overlapped_cancel_is_synchronous(struct check *c)
{
	cancel_one(c, WAY_WAIT);
	cancel_one(c, WAY_CALLBACK);
	cancel_one(c, WAY_PORT);
	cancel_one(c, WAY_SINK);
}

/* Callbacks that write down in which order they came. */
struct roll {
	pthread_mutex_t lock;
	const struct probe *who[16];
	size_t count;
};

static void enrol(struct probe *probe)
{
	struct roll *roll = probe->arg;

	(void)pthread_mutex_lock(&roll->lock);
	if (roll->count < 16)
		roll->who[roll->count++] = probe;
	(void)pthread_mutex_unlock(&roll->lock);
}

void case_overlapped_cancel_ends_them_in_order(struct check *c)
{
	struct roll roll = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct probe one[8];
	struct pair *p = pair_open(c, NULL, NULL);
	bool ready = p != NULL;

	memset(one, 0, sizeof(one));
	for (size_t i = 0; ready && i < 8; i++) {
		ready = probe_begin_then(&one[i], c, enrol, &roll) &&
		        check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one[i].ov),
		                     NDX_PENDING, "cq_notify");
	}
	if (ready) {
		check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
		check_that(c, roll.count == 8, "cancel returned after %zu of 8 callbacks",
		           roll.count);
		for (size_t i = 0; i < roll.count; i++)
			check_that(c, roll.who[i] == &one[i] && one[i].seen == NDX_E_CANCELED,
			           "callback %zu: of another one, or with %s", i,
			           ndx_status_name(one[i].seen));
	}
	pair_close_all(c);
	for (size_t i = 0; i < 8; i++)
		probe_end(&one[i]);
}

struct racer {
	pthread_t thread;
	struct pair *pair;
};

static void *send_one(void *arg)
{
	struct racer *racer = arg;

	(void)send_ok(&racer->pair->b, 2, 0, 64, 0);
	return NULL;
}

/* A message and the cancelling of the notification race: one of them wins, once. */
static void race(struct pair *p, struct probe *one)
{
	struct check *c = p->c;
	struct racer racer = {.pair = p};

	receive_ok(&p->a, 1, 0, 64);
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one->ov), NDX_PENDING,
	             "cq_notify");
	if (check_over(c) ||
	    !check_that(c, pthread_create(&racer.thread, NULL, send_one, &racer) == 0, "no thread"))
		return;
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	check_either(c, probe_result(one), NDX_OK, NDX_E_CANCELED, "cq_notify after its cancel");
	(void)pthread_join(racer.thread, NULL);
	expect_received(&p->a, 1, 64);
	expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	probe_silent(one, "cq_notify");
}

void case_overlapped_cancel_racing_with_the_event_ends_it_once(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct probe one[EACH_WAY];
	bool ready = p != NULL;

	memset(one, 0, sizeof(one));
	for (size_t i = 0; ready && i < EACH_WAY; i++)
		ready = probe_begin(&one[i], c, (enum way)i);
	for (size_t i = 0; ready && i < RACES && !check_over(c); i++)
		race(p, &one[i % EACH_WAY]);
	pair_close_all(c);
	for (size_t i = 0; i < EACH_WAY; i++)
		probe_end(&one[i]);
}

/* ---- order ---- */

void case_overlapped_requests_of_a_listener_end_in_order(struct check *c)
{
	struct ndx_overlapped *done[4] = {NULL};
	struct ndx_port *port = NULL;
	struct pair *p[4] = {NULL};
	size_t got = 0;

	if (!check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	p[0] = pair_open(c, NULL, NULL);
	for (size_t i = 1; p[0] && i < 4; i++)
		p[i] = pair_open_on(p[0], NULL, NULL);
	for (size_t i = 0; i < 4 && p[i] && !check_over(c); i++) {
		p[i]->b.ov.port = port;
		check_status(c,
		             ndx_listener_get_connection_request(p[0]->listener, p[i]->b.conn,
		                                                 &p[i]->b.ov),
		             NDX_PENDING, "get_connection_request");
	}
	for (size_t i = 0; i < 4 && p[i] && !check_over(c); i++) {
		check_status(c, side_connect(&p[i]->a, &p[0]->address, NULL, 0), NDX_PENDING,
		             "connect");
		got = ndx_port_get(port, done, 4, WAIT_MS);
		check_that(c, got == 1 && done[0] == &p[i]->b.ov,
		           "request %zu did not complete question %zu", i, i);
	}
	pair_close_all(c);
	ndx_port_close(port);
}

void case_overlapped_notifications_of_a_queue_end_together(struct check *c)
{
	struct ndx_overlapped *done[6] = {NULL};
	struct probe one[6];
	struct ndx_port *port = NULL;
	struct pair *p = pair_up(c, NULL);

	memset(one, 0, sizeof(one));
	if (!p || !check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	for (size_t i = 0; i < 6; i++) {
		if (probe_begin_on(&one[i], c, port))
			check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one[i].ov),
			             NDX_PENDING, "cq_notify");
	}
	receive_ok(&p->a, 1, 0, 8);
	send_ok(&p->b, 2, 0, 8, 0);
	for (size_t got = 0, more; got < 6 && !check_over(c); got += more) {
		more = ndx_port_get(port, &done[got], 6 - got, WAIT_MS);
		check_that(c, more > 0, "%zu of 6 notifications came", got);
	}
	for (size_t i = 0; i < 6; i++)
		check_that(c, done[i] == &one[i].ov, "notification %zu out of order", i);
	pair_close_all(c);
	ndx_port_close(port);
	for (size_t i = 0; i < 6; i++)
		probe_end(&one[i]);
}

/* ---- waiting ---- */

void case_overlapped_waiting_has_rules(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_overlapped fresh;
	struct probe by_port;
	struct probe by_call;
	uint64_t start;

	if (!p || !probe_begin(&by_port, c, WAY_PORT))
		return;
	(void)probe_begin(&by_call, c, WAY_CALLBACK);
	ndx_overlapped_init(&fresh);
	check_status(c, ndx_overlapped_status(&fresh), NDX_OK, "status of an object never used");
	check_status(c, ndx_overlapped_wait(&fresh, NDX_INFINITE), NDX_OK,
	             "wait for an object never used");
	check_status(c, ndx_overlapped_wait(&by_port.ov, 0), NDX_E_INVALID_PARAMETER,
	             "wait for an object with a port");
	check_status(c, ndx_overlapped_wait(&by_call.ov, 0), NDX_E_INVALID_PARAMETER,
	             "wait for an object with a callback");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &fresh), NDX_PENDING,
	             "cq_notify");
	check_status(c, ndx_overlapped_wait(&fresh, 0), NDX_PENDING, "wait for no time");
	start = now_ms();
	check_status(c, ndx_overlapped_wait(&fresh, 30), NDX_PENDING, "wait for 30 ms");
	check_that(c, now_ms() - start >= 29, "30 ms were over after %d", (int)(now_ms() - start));
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	check_status(c, ndx_overlapped_wait(&fresh, NDX_INFINITE), NDX_E_CANCELED,
	             "wait for what is over");
	pair_close_all(c);
	probe_end(&by_port);
	probe_end(&by_call);
}

struct sleeper {
	pthread_t thread;
	struct ndx_overlapped *ov;
	enum ndx_status got;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	s->got = ndx_overlapped_wait(s->ov, WAIT_MS);
	return NULL;
}

void case_overlapped_sleepers_are_woken(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;
	struct sleeper s = {.ov = &ov};

	ndx_overlapped_init(&ov);
	for (unsigned i = 0; p && i < RACES && !check_over(c); i++) {
		receive_ok(&p->a, 1, 0, 8);
		check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ov), NDX_PENDING,
		             "cq_notify");
		if (check_over(c) ||
		    !check_that(c, pthread_create(&s.thread, NULL, sleep_on, &s) == 0, "no thread"))
			break;
		if (i % 4 == 0) /* let it fall asleep */
			expect_silence(&p->b);
		send_ok(&p->b, 2, 0, 8, 0);
		expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
		(void)pthread_join(s.thread, NULL);
		check_status(c, s.got, NDX_OK, "cq_notify, waited for by another thread");
		expect_received(&p->a, 1, 8);
	}
	pair_close_all(c);
}
