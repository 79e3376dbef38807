/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: what is refused, and that it changes nothing; ports. */
#include <poll.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { TAKERS = 4, POSTS = 400 };

/* ---- in flight ---- */

/* Every call that takes an overlapped object, with one that is in flight or NULL. */
static void refused_everywhere(struct pair *p, struct ndx_overlapped *ov, struct ndx_mr *fresh,
                               struct ndx_srq *srq)
{
	const enum ndx_status want = NDX_E_INVALID_PARAMETER;
	struct check *c = p->c;

	check_status(c, ndx_mr_register(fresh, p->a.buf, 64, 0, ov), want, "register");
	check_status(c, ndx_mr_deregister(p->a.mr, ov), want, "deregister");
	if (ov)
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, ov), want, "cq_notify");
	if (srq)
		check_status(c, ndx_srq_notify(srq, ov), want, "srq_notify");
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, ov), want,
	             "get_connection_request");
	check_status(c,
	             ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, ov),
	             want, "connect");
}

/* Those that need a connection, or half of one. */
static void refused_when_connected(struct pair *p, struct ndx_overlapped *ov)
{
	const enum ndx_status want = NDX_E_INVALID_PARAMETER;
	struct check *c = p->c;

	check_status(c, ndx_connector_notify_disconnect(p->a.conn, ov), want, "notify_disconnect");
	check_status(c, ndx_connector_disconnect(p->a.conn, ov), want, "disconnect");
}

static struct ndx_srq *srq_if_any(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_srq *srq = NULL;

	if (place->info.capabilities & NDX_CAP_SRQ)
		check_status(c, make_srq(place->adapter, 8, 1, 4, &srq), NDX_OK, "srq_create");
	return srq;
}

void case_overlapped_in_flight_cannot_be_used_again(struct check *c)
{
	struct ndx_srq *srq = srq_if_any(c);
	struct ndx_overlapped before;
	struct ndx_mr *fresh = NULL;
	struct probe one;
	struct pair *p = pair_open(c, NULL, NULL);

	check_status(c, ndx_mr_create(c->world->places[0].adapter, &fresh), NDX_OK, "mr_create");
	if (p && probe_begin(&one, c, WAY_WAIT)) {
		check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
		             "cq_notify");
		before = one.ov;
		refused_everywhere(p, &one.ov, fresh, srq);
		check_that(c, memcmp(&before, &one.ov, sizeof(before)) == 0,
		           "a refused call touched an object in flight");
		(void)(pair_ask(p) && pair_answer(p));
		check_status(c, ndx_connector_complete_connect(p->a.conn, &one.ov),
		             NDX_E_INVALID_PARAMETER, "complete_connect");
		pair_complete(p);
		refused_when_connected(p, &one.ov);
		check_that(c, memcmp(&before, &one.ov, sizeof(before)) == 0,
		           "a refused call touched an object in flight");
		probe_pending(&one, "cq_notify");
		(void)message_passes(&p->a, &p->b, 64);
		probe_ends(&one, NDX_OK, "cq_notify");
		pair_close_all(c);
		probe_end(&one);
	}
	pair_close_all(c);
	ndx_mr_close(fresh);
	ndx_srq_close(srq);
}

void case_overlapped_null_is_refused(struct check *c)
{
	struct ndx_srq *srq = srq_if_any(c);
	struct ndx_mr *fresh = NULL;
	struct pair *p = pair_open(c, NULL, NULL);

	check_status(c, ndx_mr_create(c->world->places[0].adapter, &fresh), NDX_OK, "mr_create");
	if (p && !check_over(c)) {
		refused_everywhere(p, NULL, fresh, srq);
		(void)(pair_ask(p) && pair_answer(p));
		check_status(c, ndx_connector_complete_connect(p->a.conn, NULL),
		             NDX_E_INVALID_PARAMETER, "complete_connect");
		pair_complete(p);
		refused_when_connected(p, NULL);
		(void)(message_passes(&p->a, &p->b, 64) && pair_disconnect(p));
	}
	pair_close_all(c);
	ndx_mr_close(fresh);
	ndx_srq_close(srq);
}

void case_overlapped_two_ways_at_once_are_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct probe one;

	if (!p || !probe_begin(&one, c, WAY_PORT))
		return;
	one.ov.callback = ndx_overlapped_init;
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_E_INVALID_PARAMETER,
	             "cq_notify with a callback and a port");
	one.ov.callback = NULL;
	probe_silent(&one, "a refused notification");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify");
	pair_close_all(c);
	probe_has_ended(&one, NDX_E_CANCELED, "cq_notify");
	probe_end(&one);
}

/* ---- failing at once ---- */

struct failing {
	struct pair *p; /* A connected to B */
	struct pair *q; /* not connected */
	struct ndx_mr *fresh;
	struct ndx_listener *deaf;
};

static bool untouched(struct probe *one, const struct ndx_overlapped *before, const char *what)
{
	check_that(one->c, memcmp(&one->ov, before, sizeof(*before)) == 0,
	           "%s failed at once and touched the overlapped object", what);
	return probe_silent(one, what);
}

static void fails(struct probe *one, const struct ndx_overlapped *before, enum ndx_status got,
                  enum ndx_status want, const char *what)
{
	check_status(one->c, got, want, what);
	if (!check_over(one->c))
		untouched(one, before, what);
}

static void memory_calls_fail(struct failing *f, struct probe *one,
                              const struct ndx_overlapped *before)
{
	struct ndx_overlapped *ov = &one->ov;
	struct side *a = &f->p->a;

	fails(one, before, ndx_mr_register(a->mr, a->buf, 64, 0, ov), NDX_E_INVALID_DEVICE_STATE,
	      "register of a registered region");
	fails(one, before, ndx_mr_register(f->fresh, a->buf, 0, 0, ov), NDX_E_INVALID_BUFFER_SIZE,
	      "register of nothing");
	fails(one, before, ndx_mr_register(f->fresh, NULL, 64, 0, ov), NDX_E_INVALID_PARAMETER,
	      "register of NULL");
	fails(one, before, ndx_mr_register(f->fresh, a->buf, 64, 0x100, ov),
	      NDX_E_INVALID_PARAMETER, "register with an unknown flag");
	fails(one, before, ndx_mr_deregister(f->fresh, ov), NDX_E_INVALID_DEVICE_STATE,
	      "deregister of an unregistered region");
	fails(one, before, ndx_cq_notify(a->cq, (enum ndx_cq_notify_type)77, ov),
	      NDX_E_INVALID_PARAMETER, "cq_notify of an unknown type");
}

static void listener_calls_fail(struct failing *f, struct probe *one,
                                const struct ndx_overlapped *before)
{
	struct ndx_overlapped *ov = &one->ov;

	fails(one, before, ndx_listener_get_connection_request(f->deaf, f->q->b.conn, ov),
	      NDX_E_INVALID_DEVICE_STATE, "get_connection_request without listening");
	fails(one, before, ndx_listener_get_connection_request(f->p->listener, f->p->b.conn, ov),
	      NDX_E_INVALID_DEVICE_STATE, "get_connection_request into a used connector");
	fails(one, before, ndx_listener_get_connection_request(f->p->listener, NULL, ov),
	      NDX_E_INVALID_PARAMETER, "get_connection_request into NULL");
}

static void connector_calls_fail(struct failing *f, struct probe *one,
                                 const struct ndx_overlapped *before)
{
	const struct sockaddr *to = address_of(&f->p->address);
	socklen_t length = address_length(&f->p->address);
	struct ndx_overlapped *ov = &one->ov;
	struct side *fresh = &f->q->a;
	char data[1024] = {0};

	fails(one, before,
	      ndx_connector_connect(
		      fresh->conn, fresh->qp, to, length,
		      &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                         .private_data = data,
	                                         .private_data_len = sizeof(data),
	                                         .inbound_read_limit = 1,
	                                         .outbound_read_limit = 1},
		      ov),
	      NDX_E_INVALID_BUFFER_SIZE, "connect with too much data");
	fails(one, before, ndx_connector_connect(fresh->conn, f->p->a.qp, to, length, NULL, ov),
	      NDX_E_CONNECTION_ACTIVE, "connect of a connected queue pair");
	fails(one, before, ndx_connector_connect(fresh->conn, fresh->qp, to, 3, NULL, ov),
	      NDX_E_INVALID_PARAMETER, "connect to 3 bytes");
	fails(one, before, ndx_connector_complete_connect(fresh->conn, ov),
	      NDX_E_CONNECTION_INVALID, "complete_connect of a new connector");
	fails(one, before, ndx_connector_accept(fresh->conn, fresh->qp, NULL, ov),
	      NDX_E_CONNECTION_INVALID, "accept of a new connector");
	fails(one, before, ndx_connector_notify_disconnect(fresh->conn, ov),
	      NDX_E_CONNECTION_INVALID, "notify_disconnect of a new connector");
	fails(one, before, ndx_connector_disconnect(fresh->conn, ov), NDX_E_CONNECTION_INVALID,
	      "disconnect of a new connector");
}

/* With an object that has the outcome of an earlier operation: that must stay. */
static void fail_at_once(struct failing *f, struct probe *one)
{
	struct check *c = one->c;
	struct ndx_overlapped before;

	check_status(c, ndx_cq_notify(f->q->a.cq, NDX_CQ_NOTIFY_ANY, &one->ov), NDX_PENDING,
	             "cq_notify");
	check_status(c, ndx_cq_cancel(f->q->a.cq), NDX_OK, "cq_cancel");
	if (!probe_has_ended(one, NDX_E_CANCELED, "cq_notify"))
		return;
	one->ov.information = 77;
	one->ov.native = -77;
	before = one->ov;
	memory_calls_fail(f, one, &before);
	listener_calls_fail(f, one, &before);
	connector_calls_fail(f, one, &before);
	check_status(c, ndx_overlapped_status(&one->ov), NDX_E_CANCELED, "status afterwards");
}

void case_overlapped_failing_at_once_touches_nothing(struct check *c)
{
	struct failing f = {.p = pair_up(c, NULL), .q = pair_open(c, NULL, NULL)};
	struct probe one[3];

	memset(one, 0, sizeof(one));
	check_status(c, ndx_mr_create(c->world->places[0].adapter, &f.fresh), NDX_OK, "mr_create");
	check_status(c, ndx_listener_create(c->world->places[1].adapter, &f.deaf), NDX_OK,
	             "listener_create");
	for (size_t i = 0; f.p && f.q && i < 3; i++) {
		if (probe_begin(&one[i], c, (enum way)i))
			fail_at_once(&f, &one[i]);
	}
	pair_close_all(c);
	ndx_mr_close(f.fresh);
	ndx_listener_close(f.deaf);
	for (size_t i = 0; i < 3; i++)
		probe_end(&one[i]);
}

/* ---- ports ---- */

static bool readable(struct ndx_port *port)
{
	struct pollfd p = {.fd = ndx_port_get_fd(port), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

void case_overlapped_port_descriptor_tells_of_its_content(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped *out[2];
	struct pollfd fd = {.events = POLLIN};
	struct probe one;

	if (!p || !probe_begin(&one, c, WAY_PORT))
		return;
	fd.fd = ndx_port_get_fd(one.port);
	check_that(c, !readable(one.port), "an empty port is readable");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify");
	check_that(c, !readable(one.port), "a port is readable before anything completed");
	receive_ok(&p->a, 1, 0, 8);
	send_ok(&p->b, 2, 0, 8, 0);
	check_that(c, check_over(c) || poll(&fd, 1, WAIT_MS) == 1,
	           "the port did not become readable");
	check_status(c, ndx_overlapped_status(&one.ov), NDX_PENDING,
	             "status of what lies in a port");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_E_INVALID_PARAMETER,
	             "cq_notify with what lies in a port");
	check_that(c, ndx_port_get(one.port, out, 2, 0) == 1 && out[0] == &one.ov,
	           "it did not come out");
	check_that(c, !readable(one.port), "a port is readable when all was taken");
	check_that(c, ndx_port_get(one.port, out, 2, 0) == 0, "an empty port gives");
	check_status(c, ndx_overlapped_status(&one.ov), NDX_OK, "cq_notify");
	pair_close_all(c);
	probe_end(&one);
}

void case_overlapped_port_hands_out_what_was_posted(struct check *c)
{
	struct ndx_overlapped own[5];
	struct ndx_overlapped *out[5];
	struct ndx_port *port = NULL;

	if (!check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	for (uint32_t i = 0; i < 5; i++) {
		ndx_overlapped_init(&own[i]);
		own[i].port = port;
		own[i].status = NDX_E_REMOTE_ERROR;
		own[i].information = 100 + i;
		ndx_port_post(port, &own[i]);
	}
	check_that(c, readable(port), "a port with posted objects is not readable");
	check_that(c, ndx_port_get(port, out, 2, 0) == 2, "two of five did not come");
	check_that(c, ndx_port_get(port, out + 2, 5, WAIT_MS) == 3, "the other three did not come");
	for (uint32_t i = 0; i < 5 && !check_over(c); i++) {
		check_that(c, out[i] == &own[i], "object %u came out of order", i);
		check_that(c,
		           out[i]->information == 100 + i &&
		                   ndx_overlapped_status(out[i]) == NDX_E_REMOTE_ERROR,
		           "object %u lost what it had", i);
	}
	ndx_port_post(port, &own[0]);
	check_that(c, ndx_port_get(port, out, 1, 0) == 1 && out[0] == &own[0],
	           "an object cannot be posted again");
	ndx_port_close(port);
}

void case_overlapped_port_waits_as_long_as_it_was_told(struct check *c)
{
	struct ndx_overlapped *out[1];
	struct ndx_port *port = NULL;
	uint64_t start = now_ms();

	if (!check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	check_that(c, ndx_port_get(port, out, 1, 30) == 0, "an empty port gives");
	check_that(c, now_ms() - start >= 29, "30 ms were over after %d", (int)(now_ms() - start));
	ndx_port_close(port);
	check_status(c, ndx_port_create(NULL), NDX_E_INVALID_PARAMETER,
	             "port_create without a place for it");
}

void case_overlapped_closed_port_counts_as_taken(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct probe one;

	if (!p || !probe_begin(&one, c, WAY_PORT))
		return;
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify");
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	ndx_port_close(one.port);
	one.own_port = false;
	one.port = NULL;
	one.ov.port = NULL;
	one.way = WAY_WAIT;
	check_status(c, ndx_overlapped_status(&one.ov), NDX_E_CANCELED, "status");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify with it again");
	message_passes(&p->a, &p->b, 8);
	probe_ends(&one, NDX_OK, "cq_notify");
	pair_close_all(c);
	probe_end(&one);
}

struct taker {
	pthread_t thread;
	struct check *c;
	struct ndx_port *port;
	uint32_t *times; /* how often each object was handed out, atomic */
	const struct ndx_overlapped *first;
};

static void *take_from_port(void *arg)
{
	struct taker *t = arg;
	struct ndx_overlapped *out[3];
	size_t got;

	while (!check_over(t->c) && (got = ndx_port_get(t->port, out, 3, WAIT_MS)) > 0) {
		for (size_t i = 0; i < got; i++) {
			if (out[i]->information == UINT32_MAX) {
				ndx_port_post(t->port, out[i]); /* for the next one */
				return NULL;
			}
			__atomic_fetch_add(&t->times[out[i] - t->first], 1, __ATOMIC_RELAXED);
		}
	}
	check_fail(t->c, "a taker waited %d ms for the end", WAIT_MS);
	return NULL;
}

void case_overlapped_port_hands_out_once_to_many_takers(struct check *c)
{
	static struct ndx_overlapped own[POSTS + 1];
	uint32_t times[POSTS + 1] = {0};
	struct taker takers[TAKERS];
	struct ndx_port *port = NULL;
	unsigned started = 0;

	if (!check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	memset(own, 0, sizeof(own));
	for (; started < TAKERS; started++) {
		takers[started] =
			(struct taker){.c = c, .port = port, .times = times, .first = own};
		if (!check_that(c,
		                pthread_create(&takers[started].thread, NULL, take_from_port,
		                               &takers[started]) == 0,
		                "no thread"))
			break;
	}
	for (size_t i = 0; i < POSTS; i++)
		ndx_port_post(port, &own[i]);
	own[POSTS].information = UINT32_MAX;
	ndx_port_post(port, &own[POSTS]);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(takers[i].thread, NULL);
	for (size_t i = 0; i < POSTS; i++)
		check_that(c, times[i] == 1, "object %zu was handed out %u times", i, times[i]);
	ndx_port_close(port);
}

void case_overlapped_port_serves_many_objects(struct check *c)
{
	struct ndx_overlapped *out[8];
	struct ndx_port *port = NULL;
	struct pair *p[2] = {NULL, NULL};
	size_t taken = 0;

	if (!check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	p[0] = pair_up(c, NULL);
	p[1] = p[0] ? pair_up(c, NULL) : NULL;
	for (size_t i = 0; i < 2 && p[i] && !check_over(c); i++) {
		struct side *sides[2] = {&p[i]->a, &p[i]->b};

		for (size_t j = 0; j < 2; j++) {
			sides[j]->notify.port = port;
			sides[j]->disc.port = port;
			side_start_notify(sides[j]);
			side_start_disconnect(sides[j]);
		}
	}
	while (taken < 8 && !check_over(c)) {
		size_t got = ndx_port_get(port, &out[taken], 8 - taken, WAIT_MS);

		check_that(c, got > 0, "%zu of 8 operations completed", taken);
		taken += got;
	}
	for (size_t i = 0; i < taken; i++) {
		for (size_t j = 0; j < i; j++)
			check_that(c, out[i] != out[j], "an operation completed twice");
	}
	check_that(c, check_over(c) || ndx_port_get(port, out, 8, 0) == 0,
	           "more completions than operations");
	pair_close_all(c);
	ndx_port_close(port);
}

struct slow {
	bool returned;
};

/* Takes its time, so that a call that does not wait for it is seen. */
static void be_slow(struct probe *probe)
{
	struct slow *slow = probe->arg;
	uint64_t until = now_ms() + 5;

	while (now_ms() < until)
		continue;
	__atomic_store_n(&slow->returned, true, __ATOMIC_RELEASE);
}

/* One callback on the way, and the disconnect, which is waited for, behind it. */
static void wait_behind_a_callback(struct check *c, bool by_port)
{
	struct ndx_overlapped *out = NULL;
	struct slow slow = {false};
	struct probe notify;
	struct ndx_port *port = NULL;
	struct pair *p = pair_up(c, NULL);

	if (!p || !check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	if (probe_begin_then(&notify, c, be_slow, &slow)) {
		p->a.disc.port = by_port ? port : NULL;
		check_status(c, ndx_connector_notify_disconnect(p->a.conn, &notify.ov), NDX_PENDING,
		             "notify_disconnect");
		side_start_disconnect(&p->a);
		while (!by_port && ndx_overlapped_status(&p->a.disc) == NDX_PENDING &&
		       !check_over(c))
			continue;
		if (by_port)
			check_that(c, ndx_port_get(port, &out, 1, WAIT_MS) == 1, "no disconnect");
		check_that(c, __atomic_load_n(&slow.returned, __ATOMIC_ACQUIRE),
		           "the disconnect completed before the callback of notify_disconnect");
	}
	pair_close_all(c);
	probe_end(&notify);
	ndx_port_close(port);
}

void case_overlapped_waits_see_what_callbacks_did(struct check *c)
{
	wait_behind_a_callback(c, false);
	wait_behind_a_callback(c, true);
}
