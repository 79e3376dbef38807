/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.*: what is true when it has completed, and what is left of the objects. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64, SHORT_DRAIN_MS = 30, LONGER_DRAIN_MS = 600 };

void case_disconnect_all_results_are_there(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 64, 0, MESSAGE);
	receives_ok(&p->b, 0, 64, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, 64, NDX_E_CANCELED);
	side_disconnect(&p->b, NDX_OK);
	expect_all_there(&p->b, 64, NDX_E_CANCELED);
}

void case_disconnect_cancels_receives_in_order(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 32, 0, MESSAGE);
	receives_ok(&p->b, 0, 32, 0, MESSAGE);
	sends_ok(&p->b, 100, 5, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	for (size_t i = 0; i < 5; i++)
		expect_received(&p->a, i, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 5, 27, NDX_E_CANCELED);
	expect_silence(&p->a);
}

void case_disconnect_nothing_completes_after_it(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	size_t posted = 0;

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, 32, 0, MESSAGE);
	sends_ok(&p->b, 100, 40, 0, MESSAGE); /* some find no receive */
	side_disconnect(&p->a, NDX_OK);
	posted = discard(&p->a);
	check_that(c, posted == 32, "%zu results of 32 requests", posted);
	discard(&p->b);
	for (size_t i = 0; i < 16; i++)
		(void)send_raw(&p->b, i, 0, MESSAGE, 0);
	expect_silence(&p->a);
}

void case_disconnect_memory_does_not_change_after_it(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	uint64_t key = check_random(c);

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, 60, 0, 512);
	for (size_t i = 0; i < 20; i++) {
		send_ok(&p->b, i, 0, 512, NDX_OP_SILENT_SUCCESS);
		write_ok(&p->b, i, 0, 512, &p->a, 32768, NDX_OP_SILENT_SUCCESS);
		read_ok(&p->a, i, 40960, 512, &p->b, 0, NDX_OP_SILENT_SUCCESS);
	}
	side_disconnect(&p->a, NDX_OK);
	discard(&p->a);
	pattern_fill(p->a.buf, p->a.attr.buffer, key);
	for (size_t i = 0; i < 20; i++) {
		(void)send_raw(&p->b, i, 0, 512, 0);
		(void)write_raw(&p->b, i, 0, 512, &p->a, 32768, 0);
	}
	expect_silence(&p->a);
	pattern_there(c, p->a.buf, p->a.attr.buffer, key, "memory after the disconnect");
}

void case_disconnect_posts_after_the_peers_goodbye_are_cancelled(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	sends_ok(&p->b, 10, 8, 0, MESSAGE);
	read_ok(&p->b, 18, 0, MESSAGE, &p->a, 0, 0);
	write_ok(&p->b, 19, 0, MESSAGE, &p->a, 0, 0);
	expect_run(&p->b, NDX_REQUEST_SEND, 10, 8, NDX_E_CANCELED);
	expect(&p->b, NDX_REQUEST_READ, 18, NDX_E_CANCELED);
	expect(&p->b, NDX_REQUEST_WRITE, 19, NDX_E_CANCELED);
	receives_ok(&p->b, 0, 4, 0, MESSAGE);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 4, NDX_E_CANCELED);
	send_ok(&p->b, 30, 0, MESSAGE, NDX_OP_SILENT_SUCCESS);
	expect(&p->b, NDX_REQUEST_SEND, 30, NDX_E_CANCELED);
	side_disconnect(&p->b, NDX_OK);
}

void case_disconnect_posts_after_the_own_are_cancelled(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_disconnect(&p->a, NDX_OK);
	sends_ok(&p->a, 10, 8, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 10, 8, NDX_E_CANCELED);
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 0, 8, NDX_E_CANCELED);
}

void case_disconnect_posts_during_it_complete_once(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	size_t posted = 8;

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	sends_ok(&p->a, 0, 8, 0, MESSAGE); /* RNR, so that the drain takes its time */
	side_start_disconnect(&p->a);
	while (!check_over(c) && ndx_overlapped_status(&p->a.disc) == NDX_PENDING) {
		if (send_raw(&p->a, posted, 0, MESSAGE, 0) == NDX_OK)
			posted++;
		else
			(void)ndx_overlapped_wait(&p->a.disc, WAIT_MS);
	}
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_run(&p->a, NDX_REQUEST_SEND, 0, posted, NDX_E_CANCELED);
	expect_silence(&p->a);
}

void case_disconnect_full_queues_that_are_not_polled(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	size_t sent;

	side_attr_init(&attr);
	attr.cq_depth = 2;
	attr.buffer = (size_t)256 * 1024;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 64, 0, 16);
	receives_ok(&p->a, 0, 64, 0, 16);
	sent = fill_sends(&p->a, 16, 0, 64 * 1024);
	check_that(c, sent >= 64, "%zu sends fill a queue of 64", sent);
	if (sent == 64) {
		side_disconnect(&p->a, NDX_OK);
		expect_all_there(&p->b, 64, NDX_OK);
	} else { /* more was granted: what is beyond B's receives meets RNR */
		side_start_disconnect(&p->a);
		check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	}
	check_that(c, discard(&p->a) == sent + 64, "not every request has one result");
}

void case_disconnect_objects_cannot_be_used_again(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct pair *fresh;
	enum ndx_status status;

	if (!p)
		return;
	pair_disconnect(p);
	fresh = pair_open_on(p, NULL, NULL);
	if (!fresh)
		return;
	status = ndx_connector_connect(p->a.conn, fresh->a.qp, address_of(&p->address),
	                               address_length(&p->address), NULL, &p->a.ov);
	check_either(c, status, NDX_E_INVALID_DEVICE_STATE, NDX_E_CONNECTION_ACTIVE,
	             "connect with a connector that was connected");
	status = ndx_connector_connect(fresh->a.conn, p->a.qp, address_of(&p->address),
	                               address_length(&p->address), NULL, &fresh->a.ov);
	check_either(c, status, NDX_E_INVALID_DEVICE_STATE, NDX_E_CONNECTION_ACTIVE,
	             "connect of a queue pair that was connected");
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_E_INVALID_DEVICE_STATE, "request into a connector that was connected");
	/* new ones work at once */
	(void)(pair_connect(fresh) && message_passes(&fresh->a, &fresh->b, MESSAGE) &&
	       pair_disconnect(fresh));
}

void case_disconnect_and_connect_again_at_once(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	for (unsigned i = 0; p && i < 5 && !check_over(c); i++) {
		message_passes(&p->a, &p->b, MESSAGE);
		side_disconnect(&p->a, NDX_OK);
		side_new_connector(&p->a);
		side_new_connector(&p->b);
		side_new_qp(&p->a);
		side_new_qp(&p->b);
		pair_connect(p);
	}
}

/* ---- closing ---- */

enum victim { VICTIM_QP, VICTIM_CONNECTOR, VICTIM_CQ, VICTIM_MR, VICTIMS };

static void close_one(struct side *s, enum victim victim)
{
	switch (victim) {
	case VICTIM_QP:
		side_close_qp(s);
		break;
	case VICTIM_CONNECTOR:
		side_close_connector(s);
		break;
	case VICTIM_CQ:
		side_close_cqs(s);
		break;
	case VICTIM_MR:
		side_close_mr(s);
		break;
	case VICTIMS:
		break;
	}
}

/* The n-th order of closing; the region last, as receives would use it. */
static void close_in_order(struct side *s, unsigned n)
{
	static const enum victim orders[6][3] = {
		{VICTIM_QP, VICTIM_CONNECTOR, VICTIM_CQ}, {VICTIM_QP, VICTIM_CQ, VICTIM_CONNECTOR},
		{VICTIM_CONNECTOR, VICTIM_QP, VICTIM_CQ}, {VICTIM_CONNECTOR, VICTIM_CQ, VICTIM_QP},
		{VICTIM_CQ, VICTIM_QP, VICTIM_CONNECTOR}, {VICTIM_CQ, VICTIM_CONNECTOR, VICTIM_QP},
	};

	for (size_t i = 0; i < 3; i++)
		close_one(s, orders[n % 6][i]);
	close_one(s, VICTIM_MR);
}

void case_disconnect_implicit_in_every_order_of_closing(struct check *c)
{
	for (unsigned order = 0; order < 6 && !check_over(c); order++) {
		struct pair *p = pair_up(c, NULL);

		if (!p)
			return;
		check_note(c, "order of closing %u", order);
		receives_ok(&p->a, 0, 8, 0, MESSAGE);
		receives_ok(&p->b, 0, 8, 0, MESSAGE);
		side_start_notify(&p->b);
		close_in_order(&p->a, order);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		side_disconnect(&p->b, NDX_OK);
		expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 8, NDX_E_CANCELED);
		pair_close_all(c);
	}
}

void case_disconnect_implicit_loses_no_send_that_went_before(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->b, 0, 32, 0, MESSAGE);
	side_start_notify(&p->b);
	sends_ok(&p->a, 0, 32, 0, MESSAGE);
	side_close_qp(&p->a);
	expect_all_there(&p->a, 32, NDX_OK); /* results outlive the queue pair */
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	for (size_t i = 0; i < 32; i++)
		expect_received(&p->b, i, MESSAGE);
}

void case_disconnect_closed_connector_completes_what_is_in_flight(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.drain_ms = LONGER_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	sends_ok(&p->a, 0, 2, 0, MESSAGE); /* RNR: the disconnect is not done when it is closed */
	side_start_notify(&p->a);
	side_start_disconnect(&p->a);
	side_close_connector(&p->a);
	check_status(c, ndx_overlapped_status(&p->a.notify), NDX_E_CANCELED, "notify_disconnect");
	check_status(c, ndx_overlapped_status(&p->a.disc), NDX_E_CANCELED, "disconnect");
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 2, NDX_E_CANCELED);
}

void case_disconnect_queue_pair_closed_while_it_is_pending(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.drain_ms = SHORT_DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	sends_ok(&p->a, 0, 2, 0, MESSAGE);
	receives_ok(&p->a, 8, 4, 1024, MESSAGE);
	side_start_disconnect(&p->a);
	side_close_qp(&p->a);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_all_there(&p->a, 6, NDX_E_CANCELED);
}

/* A closes while B's sends wait for its receives; drain_ms 0: the ordinary time-out. */
static void close_under_sends(struct check *c, uint32_t drain_ms, size_t own_sends)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.drain_ms = drain_ms;
	p = pair_up(c, &attr);
	if (!p)
		return;
	sends_ok(&p->a, 0, own_sends, 0, MESSAGE);
	sends_ok(&p->b, 0, 2, 0, MESSAGE);
	side_start_notify(&p->b);
	side_close_qp(&p->a);
	expect_all_there(&p->a, own_sends, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	expect_all_there(&p->b, 2, NDX_E_CANCELED);
}

/* Neither side's sends find a receive, so that neither can say anything behind them. */
void case_disconnect_closed_while_sends_wait_both_ways(struct check *c)
{
	close_under_sends(c, SHORT_DRAIN_MS, 2);
}

/* It has said goodbye before: that what is under way there cannot end is no failure. */
void case_disconnect_peer_closed_what_our_sends_wait_for(struct check *c)
{
	close_under_sends(c, 0, 0);
}

void case_disconnect_adapter_closed_first(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p = NULL;
	bool opened = true;

	for (size_t i = 0; i < 2; i++) {
		side_attr_init(&attr[i]);
		opened &=
			check_status(c, ndx_adapter_open(c->world->places[i].uri, &attr[i].adapter),
		                     NDX_OK, "adapter_open");
	}
	if (opened)
		p = pair_open(c, &attr[0], &attr[1]);
	/* what was made from them lives on without the handles */
	ndx_adapter_close(attr[0].adapter);
	ndx_adapter_close(attr[1].adapter);
	(void)(p && pair_connect(p) && message_passes(&p->a, &p->b, MESSAGE) &&
	       message_passes(&p->b, &p->a, MESSAGE) && pair_disconnect(p));
}

/* ---- callbacks ---- */

struct farewell {
	struct side *side;
	enum ndx_status started;
	enum ndx_status ended;
	struct ndx_overlapped done; /* completed by hand: the case waits for it */
	struct ndx_port *port;
};

static void on_disconnected(struct ndx_overlapped *ov)
{
	struct farewell *f = ov->context;

	f->ended = ov->status;
	side_close_qp(f->side);
	side_close_connector(f->side);
	ndx_port_post(f->port, &f->done);
}

static void on_indication(struct ndx_overlapped *ov)
{
	struct farewell *f = ov->context;

	f->side->disc.callback = on_disconnected;
	f->side->disc.context = f;
	f->started = ndx_connector_disconnect(f->side->conn, &f->side->disc);
}

void case_disconnect_from_callbacks_to_the_last_close(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct farewell f = {.started = NDX_E_UNSUCCESSFUL, .ended = NDX_PENDING};
	struct ndx_overlapped *done = NULL;

	if (!p || !check_status(c, ndx_port_create(&f.port), NDX_OK, "port_create"))
		return;
	f.side = &p->b;
	f.done.port = f.port;
	receives_ok(&p->b, 0, 4, 0, MESSAGE);
	p->b.notify.callback = on_indication;
	p->b.notify.context = &f;
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	check_that(c, ndx_port_get(f.port, &done, 1, WAIT_MS) == 1 && done == &f.done,
	           "waited %d ms for the callbacks", WAIT_MS);
	check_status(c, f.started, NDX_PENDING, "disconnect from a callback");
	check_status(c, f.ended, NDX_OK, "disconnect from a callback");
	expect_all_there(&p->b, 4, NDX_E_CANCELED);
	pair_close_all(c); /* no callback may come any more */
	ndx_port_close(f.port);
}

/* B says goodbye only when its own drain has run out; A's helper has less patience. */
void case_disconnect_helper_that_gives_up_leaves_the_notification(struct check *c)
{
	struct side_attr quick;
	struct side_attr slow;
	struct pair *p;

	side_attr_init(&quick);
	side_attr_init(&slow);
	slow.drain_ms = 1500; /* the look at the notification has to come before */
	p = pair_up_with(c, &quick, &slow);
	if (!p)
		return;
	sends_ok(&p->b, 0, 1, 0, MESSAGE); /* finds no receive */
	side_start_notify(&p->a);
	check_status(c, ndx_disconnect(p->a.conn, QUIET_MS), NDX_E_IO_TIMEOUT, "ndx_disconnect");
	check_that(c, check_over(c) || ndx_overlapped_status(&p->a.notify) == NDX_PENDING,
	           "the notification was ended with %s",
	           ndx_status_name(ndx_overlapped_status(&p->a.notify)));
	check_status(c, ndx_disconnect(p->a.conn, WAIT_MS), NDX_OK, "ndx_disconnect, once more");
	check_ends(c, &p->a.notify, NDX_OK, "notification");
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
}

static void close_qp_here(struct ndx_overlapped *ov)
{
	side_close_qp(ov->context);
}

/* Nothing can be waited for there: what has not ended is cancelled, and the peer is told. */
void case_disconnect_close_in_a_callback_aborts_what_is_under_way(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ask = {.callback = close_qp_here};

	if (!p)
		return;
	ask.context = &p->a;
	side_start_notify(&p->b);
	sends_ok(&p->a, 0, 2, 0, MESSAGE); /* find no receive */
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ask), NDX_PENDING, "cq_notify");
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel"); /* the callback has run */
	expect_all_there(&p->a, 2, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
}

void case_disconnect_close_in_a_callback_is_graceful_without_work(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ask = {.callback = close_qp_here};

	if (!p || !message_passes(&p->a, &p->b, MESSAGE))
		return;
	ask.context = &p->a;
	side_start_notify(&p->b);
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ask), NDX_PENDING, "cq_notify");
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cq_cancel");
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
}

/* A proxy's situation. The other adapter's connections must not stand still either. */
void case_disconnect_close_in_another_adapters_callback_aborts_what_is_under_way(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ask = {.callback = close_qp_here};
	struct ndx_adapter *other = NULL;
	struct ndx_mr *mr = NULL;
	uint8_t memory[64];

	if (!p || !check_status(c, ndx_adapter_open(p->a.place->uri, &other), NDX_OK, "open"))
		return;
	ask.context = &p->a;
	side_start_notify(&p->b);
	sends_ok(&p->a, 0, 2, 0, MESSAGE); /* find no receive */
	if (check_status(c, ndx_mr_create(other, &mr), NDX_OK, "mr_create"))
		check_status(c, ndx_mr_register(mr, memory, sizeof(memory), 0, &ask), NDX_PENDING,
		             "register");
	ndx_mr_close(mr); /* the callback has run */
	expect_all_there(&p->a, 2, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	ndx_adapter_close(other);
}
