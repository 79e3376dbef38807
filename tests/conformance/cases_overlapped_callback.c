/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: what a callback may do, and what it may not. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { CHAIN = 200, STREAM = 100 };

/* ---- using the object again ---- */

struct chain {
	struct check *c;
	struct ndx_mr *mr;
	uint8_t memory[256];
	unsigned left;
	bool registered;
};

/* The callback of each step begins the next one with the same object. */
static void next_step(struct probe *probe)
{
	struct chain *chain = probe->arg;
	enum ndx_status got;

	chain->registered = !chain->registered;
	if (chain->left-- == 0)
		return;
	if (chain->registered)
		got = ndx_mr_deregister(chain->mr, &probe->ov);
	else
		got = ndx_mr_register(chain->mr, chain->memory, sizeof(chain->memory), 0,
		                      &probe->ov);
	check_status(chain->c, got, NDX_PENDING, "next step, begun in a callback");
}

void case_overlapped_callback_may_use_it_again(struct check *c)
{
	struct chain chain = {.c = c, .left = CHAIN};
	struct probe one;

	if (!check_status(c, ndx_mr_create(c->world->places[0].adapter, &chain.mr), NDX_OK,
	                  "mr_create"))
		return;
	if (probe_begin_then(&one, c, next_step, &chain)) {
		check_status(
			c,
			ndx_mr_register(chain.mr, chain.memory, sizeof(chain.memory), 0, &one.ov),
			NDX_PENDING, "register");
		probe_called(&one, CHAIN + 1, "chain");
	}
	ndx_mr_close(chain.mr);
	probe_end(&one);
}

struct stream {
	struct pair *p;
	size_t received;
};

/* Takes what is there, and asks again. */
static void keep_receiving(struct probe *probe)
{
	struct stream *stream = probe->arg;
	struct side *a = &stream->p->a;
	struct ndx_result results[16];
	size_t got;

	if (probe->ov.status != NDX_OK || stream->received >= STREAM)
		return;
	check_status(probe->c, ndx_cq_notify(a->cq, NDX_CQ_NOTIFY_ANY, &probe->ov), NDX_PENDING,
	             "cq_notify in a callback");
	while ((got = ndx_cq_get_results(a->cq, results, 16)) > 0) {
		for (size_t i = 0; i < got; i++) {
			result_is(a, &results[i], NDX_REQUEST_RECEIVE, stream->received + i,
			          NDX_OK);
			receive_ok(a, stream->received + i + 64, 0, 16);
		}
		__atomic_fetch_add(&stream->received, got, __ATOMIC_RELEASE);
	}
}

void case_overlapped_callbacks_can_do_all_the_receiving(struct check *c)
{
	struct stream stream = {.p = pair_up(c, NULL)};
	struct ndx_overlapped never;
	struct probe one;
	uint64_t until = now_ms() + WAIT_MS;

	if (!stream.p || !probe_begin_then(&one, c, keep_receiving, &stream))
		return;
	ndx_overlapped_init(&never);
	receives_ok(&stream.p->a, 0, 64, 0, 16);
	check_status(c, ndx_cq_notify(stream.p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify");
	for (size_t i = 0; i < STREAM; i++) {
		send_ok(&stream.p->b, i, 0, 16, 0);
		expect(&stream.p->b, NDX_REQUEST_SEND, i, NDX_OK);
	}
	while (__atomic_load_n(&stream.received, __ATOMIC_ACQUIRE) < STREAM && !check_over(c)) {
		(void)ndx_cq_notify(stream.p->b.cq, NDX_CQ_NOTIFY_ANY, &never);
		(void)ndx_overlapped_wait(&never, QUIET_MS);
		(void)ndx_cq_cancel(stream.p->b.cq);
		check_that(c, now_ms() < until, "%zu of %d messages were received",
		           __atomic_load_n(&stream.received, __ATOMIC_ACQUIRE), STREAM);
	}
	pair_close_all(c);
	probe_end(&one);
}

struct owned {
	struct ndx_overlapped ov;
	unsigned *freed; /* atomic */
};

static void free_it(struct ndx_overlapped *ov)
{
	struct owned *owned = ov->context;
	unsigned *freed = owned->freed;

	memset(owned, 0xee, sizeof(*owned));
	free(owned);
	__atomic_fetch_add(freed, 1, __ATOMIC_RELEASE);
}

void case_overlapped_callback_may_free_it(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	unsigned freed = 0;

	for (unsigned i = 0; p && i < 32 && !check_over(c); i++) {
		struct owned *owned = calloc(1, sizeof(*owned));

		if (!owned) {
			check_fail(c, "no memory");
			break;
		}
		owned->freed = &freed;
		owned->ov.callback = free_it;
		owned->ov.context = owned;
		if (!check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &owned->ov),
		                  NDX_PENDING, "cq_notify"))
			free(owned);
	}
	if (p) {
		check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
		check_that(c, __atomic_load_n(&freed, __ATOMIC_ACQUIRE) == 32,
		           "%u of 32 callbacks ran", freed);
		message_passes(&p->a, &p->b, 64);
	}
	pair_close_all(c);
}

/* ---- which thread ---- */

static void remember_thread(struct probe *probe)
{
	pthread_t *thread = probe->arg;

	*thread = pthread_self();
}

void case_overlapped_callbacks_come_from_one_thread(struct check *c)
{
	pthread_t threads[3];
	struct probe one[3];
	struct pair *p = pair_open(c, NULL, NULL);

	memset(one, 0, sizeof(one));
	for (size_t i = 0; p && i < 3; i++) {
		threads[i] = pthread_self();
		if (!probe_begin_then(&one[i], c, remember_thread, &threads[i]))
			break;
		check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one[i].ov), NDX_PENDING,
		             "cq_notify");
		check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
		probe_called(&one[i], 1, "cq_notify");
		if (check_over(c))
			break;
		check_that(c, !pthread_equal(threads[i], pthread_self()),
		           "a callback came from the calling thread");
		check_that(c, pthread_equal(threads[i], threads[0]),
		           "callbacks come from several threads");
	}
	pair_close_all(c);
	for (size_t i = 0; i < 3; i++)
		probe_end(&one[i]);
}

/* ---- what blocks ---- */

struct blocker {
	struct check *c;
	struct pair *p; /* connected */
	struct pair *q; /* not connected; its requests are not asked for */
	struct ndx_port *empty;
};

static void helpers_are_refused(const struct blocker *b)
{
	struct ndx_connector *none = b->p->a.conn;
	struct ndx_connector *conn = none;
	struct check *c = b->c;

	check_status(c,
	             ndx_connect_to(b->q->a.adapter, b->q->a.qp, address_of(&b->q->address),
	                            address_length(&b->q->address), NULL, 0, WAIT_MS, &conn),
	             NDX_E_WOULD_BLOCK, "connect_to in a callback");
	check_status(c, ndx_disconnect(b->p->a.conn, WAIT_MS), NDX_E_WOULD_BLOCK,
	             "disconnect helper in a callback");
	if (b->c->world->shared)
		check_status(c,
		             ndx_accept_from(b->q->b.adapter, b->q->listener, b->q->b.qp, NULL, 0,
		                             WAIT_MS, &conn),
		             NDX_E_WOULD_BLOCK, "accept_from in a callback");
	check_that(c, conn == none, "the output of a refused helper was touched");
}

static void try_to_block(struct probe *probe)
{
	struct blocker *b = probe->arg;
	struct ndx_overlapped *out[1];
	struct ndx_overlapped pending;
	struct ndx_result result;
	struct check *c = b->c;
	size_t got = 7;

	ndx_overlapped_init(&pending);
	check_status(c, ndx_cq_notify(b->q->a.cq, NDX_CQ_NOTIFY_ANY, &pending), NDX_PENDING,
	             "cq_notify in a callback");
	check_status(c, ndx_overlapped_wait(&pending, WAIT_MS), NDX_E_WOULD_BLOCK,
	             "overlapped_wait in a callback");
	check_status(c, ndx_overlapped_wait(&pending, NDX_INFINITE), NDX_E_WOULD_BLOCK,
	             "overlapped_wait in a callback");
	check_status(c, ndx_overlapped_wait(&pending, 0), NDX_PENDING,
	             "overlapped_wait for no time in a callback");
	check_status(c, ndx_overlapped_status(&pending), NDX_PENDING, "status in a callback");
	check_status(c, ndx_cq_cancel(b->q->a.cq), NDX_OK, "cq_cancel in a callback");
	check_status(c, ndx_overlapped_wait(&pending, WAIT_MS), NDX_E_CANCELED,
	             "overlapped_wait for what is over in a callback");
	check_status(c, ndx_cq_wait_results(b->q->a.cq, &result, 1, WAIT_MS, &got),
	             NDX_E_WOULD_BLOCK, "cq_wait_results in a callback");
	check_that(c, ndx_port_get(b->empty, out, 1, WAIT_MS) == 0, "an empty port gives");
	helpers_are_refused(b);
}

void case_overlapped_callback_may_not_block(struct check *c)
{
	struct blocker b = {.c = c, .p = pair_up(c, NULL), .q = pair_open(c, NULL, NULL)};
	struct probe one;
	uint64_t start = now_ms();

	check_status(c, ndx_port_create(&b.empty), NDX_OK, "port_create");
	if (!check_over(c) && probe_begin_then(&one, c, try_to_block, &b)) {
		check_status(c, ndx_cq_notify(b.p->a.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
		             "cq_notify");
		(void)message_passes(&b.p->b, &b.p->a, 64);
		probe_called(&one, 1, "cq_notify");
		check_that(c, now_ms() - start < WAIT_MS, "a callback was blocked for %d ms",
		           (int)(now_ms() - start));
		(void)(message_passes(&b.p->a, &b.p->b, 64) && pair_disconnect(b.p) &&
		       pair_connect(b.q));
		pair_close_all(c);
		probe_end(&one);
	}
	pair_close_all(c);
	ndx_port_close(b.empty);
}

/* ---- cancelling and closing in callbacks ---- */

static void close_queue(struct probe *probe)
{
	side_close_cqs(probe->arg);
}

void case_overlapped_callback_may_close_its_queue(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct probe one[2];

	if (!p || !probe_begin_then(&one[0], c, close_queue, &p->a))
		return;
	(void)probe_begin(&one[1], c, WAY_CALLBACK);
	receive_ok(&p->a, 1, 0, 64);
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one[0].ov), NDX_PENDING,
	             "cq_notify");
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &one[1].ov), NDX_PENDING,
	             "cq_notify");
	send_ok(&p->b, 2, 0, 64, 0);
	probe_ends(&one[0], NDX_OK, "cq_notify");
	probe_ends(&one[1], NDX_OK, "cq_notify"); /* they fire together */
	expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	side_disconnect(&p->a, NDX_OK);
	pair_close_all(c);
	for (size_t i = 0; i < 2; i++) {
		probe_silent(&one[i], "cq_notify of a closed queue");
		probe_end(&one[i]);
	}
}

static void close_listener(struct probe *probe)
{
	struct pair *p = probe->arg;

	ndx_listener_close(p->listener);
	p->listener = NULL;
}

void case_overlapped_callback_may_close_its_listener(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct pair *q = p ? pair_open_on(p, NULL, NULL) : NULL;
	struct probe one[2];

	if (!q || !probe_begin_then(&one[0], c, close_listener, p))
		return;
	(void)probe_begin(&one[1], c, WAY_CALLBACK);
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &one[0].ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c, ndx_listener_get_connection_request(p->listener, q->b.conn, &one[1].ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect");
	probe_ends(&one[0], NDX_OK, "get_connection_request");
	probe_ends(&one[1], NDX_E_CANCELED, "get_connection_request of a closed listener");
	/* what is in a connector already stays valid */
	(void)(pair_answer(p) && pair_complete(p) && message_passes(&p->a, &p->b, 64));
	pair_close_all(c);
	for (size_t i = 0; i < 2; i++)
		probe_end(&one[i]);
}

static void close_connection(struct probe *probe)
{
	struct side *s = probe->arg;

	side_close_qp(s);
	side_close_connector(s);
	side_close_mr(s);
}

void case_overlapped_callback_may_close_its_connection(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct probe one;

	if (!p || !probe_begin_then(&one, c, close_connection, &p->b))
		return;
	receives_ok(&p->b, 0, 8, 0, 64);
	check_status(c, ndx_connector_notify_disconnect(p->b.conn, &one.ov), NDX_PENDING,
	             "notify_disconnect");
	side_disconnect(&p->a, NDX_OK);
	probe_ends(&one, NDX_OK, "notify_disconnect");
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 8, NDX_E_CANCELED);
	side_new_connector(&p->a);
	side_new_qp(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->b);
	pair_connect(p);
	pair_close_all(c);
	probe_end(&one);
}

static void close_connecting(struct probe *probe)
{
	side_close_connector(probe->arg);
}

void case_overlapped_callback_may_close_what_just_failed(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct probe one;

	if (!p || !pair_without_listener(p) || !probe_begin_then(&one, c, close_connecting, &p->a))
		return;
	check_status(c,
	             ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &one.ov),
	             NDX_PENDING, "connect");
	probe_ends(&one, NDX_E_CONNECTION_REFUSED, "connect to nobody");
	pair_close_all(c);
	probe_end(&one);
}

static void close_region(struct probe *probe)
{
	struct chain *chain = probe->arg;

	ndx_mr_close(chain->mr);
	chain->mr = NULL;
}

void case_overlapped_callback_may_close_its_region(struct check *c)
{
	struct chain chain = {.c = c};
	struct probe one;

	if (!check_status(c, ndx_mr_create(c->world->places[0].adapter, &chain.mr), NDX_OK,
	                  "mr_create"))
		return;
	if (probe_begin_then(&one, c, close_region, &chain))
		probe_async(
			&one,
			ndx_mr_register(chain.mr, chain.memory, sizeof(chain.memory), 0, &one.ov),
			NDX_OK, "register");
	ndx_mr_close(chain.mr);
	probe_end(&one);
}
