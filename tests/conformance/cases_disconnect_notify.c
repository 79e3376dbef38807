/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.notify_*: any number of notify_disconnect on one connector. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { MANY = 6, MESSAGE = 64, ROUNDS = 20 };

/* Some operations that complete into one port, in the order in which they were started. */
struct queue {
	struct check *c;
	struct ndx_port *port;
	struct ndx_overlapped ovs[MANY];
};

static bool queue_open(struct queue *q, struct check *c)
{
	memset(q, 0, sizeof(*q));
	q->c = c;
	if (!check_status(c, ndx_port_create(&q->port), NDX_OK, "port_create"))
		return false;
	for (size_t i = 0; i < MANY; i++)
		q->ovs[i].port = q->port;
	return true;
}

static void queue_close(struct queue *q)
{
	pair_close_all(q->c); /* nothing is in flight to the port any more */
	ndx_port_close(q->port);
}

static void ask_all(struct queue *q, struct side *s)
{
	for (size_t i = 0; i < MANY; i++)
		check_status(q->c, ndx_connector_notify_disconnect(s->conn, &q->ovs[i]),
		             NDX_PENDING, "notify_disconnect");
}

static void reason_is(struct side *s, const struct ndx_overlapped *ov,
                      enum ndx_disconnect_reason want)
{
	const enum ndx_disconnect_reason got = (enum ndx_disconnect_reason)ov->information;

	if (got == NDX_DISCONNECT_UNKNOWN && !has_capability(s, NDX_CAP_DISCONNECT_REASON))
		return;
	check_that(s->c, got == want, "notify_disconnect at %s says %s, not %s", s->name,
	           ndx_disconnect_reason_name(got), ndx_disconnect_reason_name(want));
}

/* The port gives all of them, in order; within `ms`, or without waiting. */
static void all_are(struct queue *q, struct side *s, enum ndx_status status,
                    enum ndx_disconnect_reason reason, uint32_t ms)
{
	struct ndx_overlapped *done[MANY] = {NULL};

	for (size_t got = 0, more; got < MANY && !check_over(q->c); got += more) {
		more = ndx_port_get(q->port, &done[got], MANY - got, ms);
		if (!check_that(q->c, more > 0, "%zu of %d notifications came", got, MANY))
			return;
	}
	for (size_t i = 0; i < MANY && !check_over(q->c); i++) {
		check_that(q->c, done[i] == &q->ovs[i], "notification %zu came out of order", i);
		check_status(q->c, q->ovs[i].status, status, "notify_disconnect");
		if (status == NDX_OK)
			reason_is(s, &q->ovs[i], reason);
	}
}

/* Asked at A, which disconnects, and at B, which does not. */
void case_disconnect_notify_in_any_number_completes_together(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct queue a;
	struct queue b;

	if (!p || !queue_open(&a, c))
		return;
	if (queue_open(&b, c)) {
		struct ndx_overlapped *early;

		ask_all(&a, &p->a);
		ask_all(&b, &p->b);
		check_that(c, ndx_port_get(a.port, &early, 1, QUIET_MS) == 0,
		           "notify_disconnect at A ended before the connection");
		side_disconnect(&p->a, NDX_OK);
		all_are(&a, &p->a, NDX_OK, NDX_DISCONNECT_GRACEFUL, 0);
		all_are(&b, &p->b, NDX_OK, NDX_DISCONNECT_GRACEFUL, WAIT_MS);
		side_disconnect(&p->b, NDX_OK);
		queue_close(&b);
	}
	queue_close(&a);
}

void case_disconnect_notify_in_any_number_learns_of_an_abort(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct queue q;

	if (!p || !queue_open(&q, c))
		return;
	ask_all(&q, &p->a);
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
	all_are(&q, &p->a, NDX_OK, NDX_DISCONNECT_ABORTED, WAIT_MS);
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	ask_all(&q, &p->a);
	all_are(&q, &p->a, NDX_OK, NDX_DISCONNECT_ABORTED, WAIT_MS);
	queue_close(&q);
}

void case_disconnect_notify_asked_again_answers_again(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
}

/* A has not asked before, B has. */
void case_disconnect_notify_asked_after_the_own_disconnect(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct queue q;

	if (!p || !queue_open(&q, c))
		return;
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	ask_all(&q, &p->a);
	all_are(&q, &p->a, NDX_OK, NDX_DISCONNECT_GRACEFUL, WAIT_MS);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	ask_all(&q, &p->b);
	all_are(&q, &p->b, NDX_OK, NDX_DISCONNECT_GRACEFUL, WAIT_MS);
	queue_close(&q);
}

void case_disconnect_notify_in_any_number_is_cancelled_in_order(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct queue q;

	if (!p || !queue_open(&q, c))
		return;
	for (int i = 0; i < 2; i++) {
		ask_all(&q, &p->b);
		check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
		all_are(&q, &p->b, NDX_E_CANCELED, NDX_DISCONNECT_NONE, 0);
	}
	message_passes(&p->a, &p->b, MESSAGE);
	ask_all(&q, &p->b);
	side_disconnect(&p->a, NDX_OK);
	all_are(&q, &p->b, NDX_OK, NDX_DISCONNECT_GRACEFUL, WAIT_MS);
	queue_close(&q);
}

void case_disconnect_notify_in_any_number_ends_with_its_connector(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct probe one[EACH_WAY];
	struct queue q;
	bool ready = p && queue_open(&q, c);

	if (!ready)
		return;
	memset(one, 0, sizeof(one));
	ask_all(&q, &p->a);
	for (size_t i = 0; ready && i < EACH_WAY; i++)
		ready = probe_begin(&one[i], c, (enum way)i) &&
		        check_status(c, ndx_connector_notify_disconnect(p->a.conn, &one[i].ov),
		                     NDX_PENDING, "notify_disconnect");
	side_close_connector(&p->a);
	all_are(&q, &p->a, NDX_E_CANCELED, NDX_DISCONNECT_NONE, 0);
	for (size_t i = 0; ready && i < EACH_WAY; i++)
		probe_has_ended(&one[i], NDX_E_CANCELED, "notify_disconnect");
	queue_close(&q);
	for (size_t i = 0; i < EACH_WAY; i++)
		probe_end(&one[i]);
}

struct asker {
	pthread_t thread;
	struct queue *q;
	struct side *side;
};

static void *ask_in_a_thread(void *arg)
{
	struct asker *asker = arg;

	for (size_t i = 0; i < MANY; i++) {
		check_status(asker->q->c,
		             ndx_connector_notify_disconnect(asker->side->conn, &asker->q->ovs[i]),
		             NDX_PENDING, "notify_disconnect");
		(void)sched_yield();
	}
	return NULL;
}

/* Some are asked before, some during, some after the end: none hangs, all say the same. */
void case_disconnect_notify_asked_while_it_ends_is_answered(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_up(c, NULL);
		struct queue q;
		struct asker asker = {.q = &q};

		if (!p || !queue_open(&q, c))
			return;
		asker.side = &p->b;
		if (check_that(c, pthread_create(&asker.thread, NULL, ask_in_a_thread, &asker) == 0,
		               "no thread")) {
			side_disconnect(&p->a, NDX_OK);
			(void)pthread_join(asker.thread, NULL);
			all_are(&q, &p->b, NDX_OK, NDX_DISCONNECT_GRACEFUL, WAIT_MS);
		}
		queue_close(&q);
	}
}
