/* SPDX-License-Identifier: BSD-2-Clause */
/* overlapped.*: ports that call a function, and objects that are handed on to another port. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { MANY = 8, MESSAGE = 64, ROUNDS = 20 };

/* The objects in the order in which the sink saw them. The control thread may call it. */
static struct {
	pthread_mutex_t lock;
	struct ndx_overlapped *who[MANY];
	enum ndx_status status[MANY];
	size_t count;
} roll = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void enrol(struct ndx_overlapped *ov)
{
	(void)pthread_mutex_lock(&roll.lock);
	if (roll.count < MANY) {
		roll.who[roll.count] = ov;
		roll.status[roll.count] = ov->status;
	}
	roll.count++;
	(void)pthread_mutex_unlock(&roll.lock);
}

static void clear_roll(void)
{
	(void)pthread_mutex_lock(&roll.lock);
	roll.count = 0;
	(void)pthread_mutex_unlock(&roll.lock);
}

static size_t count_roll(void)
{
	size_t count;

	(void)pthread_mutex_lock(&roll.lock);
	count = roll.count;
	(void)pthread_mutex_unlock(&roll.lock);
	return count;
}

static bool roll_is(struct check *c, size_t at, struct ndx_overlapped *who, enum ndx_status status)
{
	check_that(c, at < count_roll() && roll.who[at] == who,
	           "call %zu of the sink: of another object", at);
	return check_status(c, check_over(c) ? status : roll.status[at], status, "of the sink");
}

/* Each cancel and close has called the sink before it returns. */
void case_overlapped_sinks_see_cancelled_ones_in_order(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_overlapped ovs[MANY];
	struct ndx_port *sink = NULL;

	memset(ovs, 0, sizeof(ovs));
	if (!p || !check_status(c, ndx_port_create_sink(enrol, &sink), NDX_OK, "create_sink"))
		return;
	for (size_t round = 0; round < 2; round++) {
		clear_roll();
		for (size_t i = 0; i < MANY; i++) {
			ovs[i].port = sink;
			check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ovs[i]),
			             NDX_PENDING, "cq_notify");
		}
		if (round == 0)
			check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
		else
			side_close_cqs(&p->a);
		check_that(c, count_roll() == MANY, "%zu calls of the sink, not %d", count_roll(),
		           MANY);
		for (size_t i = 0; i < MANY; i++)
			roll_is(c, i, &ovs[i], NDX_E_CANCELED);
	}
	pair_close_all(c);
	ndx_port_close(sink);
}

/* The connector's operations complete on the control thread, behind what ended before. */
void case_overlapped_sink_keeps_the_order_of_a_connector(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_port *sink = NULL;

	if (!p || !check_status(c, ndx_port_create_sink(enrol, &sink), NDX_OK, "create_sink"))
		return;
	clear_roll();
	p->a.notify.port = sink;
	p->a.disc.port = sink;
	side_start_notify(&p->a);
	send_ok(&p->a, 1, 0, MESSAGE, 0); /* B posts no receive: the drain waits */
	side_start_disconnect(&p->a);
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "connector_cancel");
	check_that(c, count_roll() == 2, "%zu calls of the sink, not 2", count_roll());
	roll_is(c, 0, &p->a.notify, NDX_E_CANCELED);
	roll_is(c, 1, &p->a.disc, NDX_E_CANCELED);
	pair_close_all(c);
	ndx_port_close(sink);
}

static struct ndx_port *next;

static void post_next(struct ndx_overlapped *ov)
{
	ndx_port_post(next, ov);
}

/* Messages to A, of each of which a notification tells through this way and then a port. */
static void handed_on(struct check *c, struct ndx_overlapped *ov)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped *got = NULL;

	for (unsigned i = 0; p && i < ROUNDS && !check_over(c); i++) {
		receive_ok(&p->a, 1, 0, MESSAGE);
		check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, ov), NDX_PENDING,
		             "cq_notify");
		send_ok(&p->b, 2, 0, MESSAGE, 0);
		check_that(c,
		           check_over(c) ||
		                   (ndx_port_get(next, &got, 1, WAIT_MS) == 1 && got == ov),
		           "waited %d ms for the object in the other port", WAIT_MS);
		check_status(c, ndx_overlapped_status(ov), NDX_OK, "cq_notify");
		expect_received(&p->a, 1, MESSAGE);
		expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	}
	pair_close_all(c);
}

void case_overlapped_sink_may_hand_on_to_a_port(struct check *c)
{
	struct ndx_overlapped ov = {.status = NDX_OK};

	if (check_status(c, ndx_port_create_sink(post_next, &ov.port), NDX_OK, "create_sink") &&
	    check_status(c, ndx_port_create(&next), NDX_OK, "port_create"))
		handed_on(c, &ov);
	ndx_port_close(ov.port);
	ndx_port_close(next);
	next = NULL;
}

void case_overlapped_callback_may_post_its_own_object(struct check *c)
{
	struct ndx_overlapped ov = {.callback = post_next};

	if (check_status(c, ndx_port_create(&next), NDX_OK, "port_create"))
		handed_on(c, &ov);
	ndx_port_close(next);
	next = NULL;
}

static void drop(struct ndx_overlapped *ov)
{
	enum ndx_status status = ov->status;

	memset(ov, 0xff, sizeof(*ov));
	free(ov);
	(void)pthread_mutex_lock(&roll.lock);
	if (roll.count < MANY)
		roll.status[roll.count] = status;
	roll.count++;
	(void)pthread_mutex_unlock(&roll.lock);
}

void case_overlapped_sink_may_free_it(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_port *sink = NULL;

	if (!p || !check_status(c, ndx_port_create_sink(drop, &sink), NDX_OK, "create_sink"))
		return;
	clear_roll();
	for (size_t i = 0; i < MANY && !check_over(c); i++) {
		struct ndx_overlapped *ov = calloc(1, sizeof(*ov));

		if (ov == NULL) {
			check_fail(c, "no memory");
			break;
		}
		ov->port = sink;
		if (!check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, ov), NDX_PENDING,
		                  "cq_notify"))
			free(ov);
	}
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	check_that(c, check_over(c) || count_roll() == MANY, "%zu calls of the sink, not %d",
	           count_roll(), MANY);
	pair_close_all(c);
	ndx_port_close(sink);
}

void case_overlapped_port_with_a_sink_queues_nothing(struct check *c)
{
	struct ndx_overlapped ov = {.status = NDX_E_REMOTE_ERROR};
	struct ndx_overlapped *got = NULL;
	struct ndx_port *sink = NULL;

	check_status(c, ndx_port_create_sink(NULL, &sink), NDX_E_INVALID_PARAMETER,
	             "create_sink without a function");
	check_that(c, sink == NULL, "a failed create_sink gives a port");
	check_status(c, ndx_port_create_sink(enrol, NULL), NDX_E_INVALID_PARAMETER,
	             "create_sink without a place for it");
	if (!check_status(c, ndx_port_create_sink(enrol, &sink), NDX_OK, "create_sink"))
		return;
	clear_roll();
	check_that(c, ndx_port_get_fd(sink) == -1, "a sink has a descriptor");
	ndx_port_post(sink, &ov);
	check_that(c, count_roll() == 1, "post did not call the sink");
	roll_is(c, 0, &ov, NDX_E_REMOTE_ERROR);
	check_that(c, ndx_port_get(sink, &got, 1, NDX_INFINITE) == 0, "a sink gives an object");
	ndx_port_close(sink);
}
