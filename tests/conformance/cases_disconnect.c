/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.*: the contract, call by call. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum {
	RNR_DRAIN_MS = 30, /* drain time-out of a side whose sends find no receive */
	MESSAGE = 64,
};

/* A pair whose drains are short, for cases in which sends meet RNR. */
static struct pair *pair_with_short_drain(struct check *c)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.drain_ms = RNR_DRAIN_MS;
	return pair_up(c, &attr);
}

/* B has sends under way for which A posts no receive. */
static bool send_without_receives(struct side *b, size_t count)
{
	return sends_ok(b, 100, count, 0, MESSAGE);
}

/* Now it does: what waited for the drain comes soon, and not before. */
static void post_receives(struct side *a, struct side *b, size_t count)
{
	receives_ok(a, 0, count, 0, MESSAGE);
	expect_run(b, NDX_REQUEST_SEND, 100, count, NDX_OK);
	expect_run(a, NDX_REQUEST_RECEIVE, 0, count, NDX_OK);
}

void case_disconnect_a_first(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	(void)(p && message_passes(&p->a, &p->b, MESSAGE) && pair_disconnect(p));
}

void case_disconnect_b_first(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->a);
	side_disconnect(&p->b, NDX_OK);
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->a, NDX_OK);
}

void case_disconnect_crossed(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_disconnect(&p->a);
	side_start_disconnect(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect at A");
	check_ends(c, &p->b.disc, NDX_OK, "disconnect at B");
}

void case_disconnect_crossed_with_traffic(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 16, 0, MESSAGE);
	receives_ok(&p->b, 0, 16, 0, MESSAGE);
	sends_ok(&p->a, 20, 16, 4096, MESSAGE);
	sends_ok(&p->b, 20, 16, 4096, MESSAGE);
	side_start_disconnect(&p->a);
	side_start_disconnect(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect at A");
	check_ends(c, &p->b.disc, NDX_OK, "disconnect at B");
	expect_all_there(&p->a, 32, NDX_OK);
	expect_all_there(&p->b, 32, NDX_OK);
}

void case_disconnect_needs_nothing_from_the_peers_consumer(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->b, 0, 8, 0, MESSAGE);
	sends_ok(&p->a, 20, 8, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, 8, NDX_OK);
	/* B has neither asked nor polled so far; what arrived is there */
	for (size_t i = 0; i < 8; i++)
		expect_received(&p->b, i, MESSAGE);
}

void case_disconnect_loses_no_send_that_went_before(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t key = check_random(c);

	if (!p)
		return;
	receives_ok(&p->b, 0, 64, 0, MESSAGE);
	pattern_fill(p->a.buf, (size_t)64 * MESSAGE, key);
	sends_ok(&p->a, 100, 64, 0, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, 64, NDX_OK);
	for (size_t i = 0; i < 64; i++)
		expect_received(&p->b, i, MESSAGE);
	pattern_there(c, p->b.buf, (size_t)64 * MESSAGE, key, "messages before the disconnect");
}

void case_disconnect_waits_for_silent_work(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t key = check_random(c);

	if (!p)
		return;
	receives_ok(&p->b, 0, 60, 0, MESSAGE);
	pattern_fill(p->a.buf, (size_t)64 * 1024, key);
	for (size_t i = 0; i < 60; i++)
		send_ok(&p->a, i, i * MESSAGE, MESSAGE, NDX_OP_SILENT_SUCCESS);
	write_ok(&p->a, 61, 32768, 32768, &p->b, 32768, NDX_OP_SILENT_SUCCESS);
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, 0, NDX_OK);
	for (size_t i = 0; i < 60; i++)
		expect_received(&p->b, i, MESSAGE);
	pattern_there(c, p->b.buf, (size_t)60 * MESSAGE, key, "silent messages");
	check_that(c, memcmp(p->a.buf + 32768, p->b.buf + 32768, 32768) == 0,
	           "the silent write is incomplete");
}

void case_disconnect_waits_for_reads_and_writes(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.buffer = (size_t)4 << 20;
	p = pair_up(c, &attr);
	if (!p)
		return;
	pattern_fill(p->b.buf, (size_t)1 << 20, 21);
	pattern_fill(p->a.buf + ((size_t)2 << 20), (size_t)1 << 20, 22);
	read_ok(&p->a, 1, 0, (size_t)1 << 20, &p->b, 0, 0);
	write_ok(&p->a, 2, (size_t)2 << 20, (size_t)1 << 20, &p->b, (size_t)2 << 20, 0);
	side_disconnect(&p->a, NDX_OK);
	expect_all_there(&p->a, 2, NDX_OK);
	pattern_there(c, p->a.buf, (size_t)1 << 20, 21, "read before the disconnect");
	pattern_there(c, p->b.buf + ((size_t)2 << 20), (size_t)1 << 20, 22,
	              "write before the disconnect");
}

void case_disconnect_serves_the_peers_work_until_its_goodbye(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.buffer = (size_t)2 << 20;
	p = pair_up(c, &attr);
	if (!p)
		return;
	pattern_fill(p->a.buf, attr.buffer, 23);
	receives_ok(&p->a, 1, 1, 0, 0);
	read_ok(&p->b, 1, 0, attr.buffer, &p->a, 0, 0);
	send_ok(&p->b, 2, 0, 0, 0);
	side_disconnect(&p->a, NDX_OK);
	expect_received(&p->a, 1, 0);
	expect(&p->b, NDX_REQUEST_READ, 1, NDX_OK);
	expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	pattern_there(c, p->b.buf, attr.buffer, 23, "read across the disconnect");
}

/* The success of A may not come before B's own work has ended. */
void case_disconnect_success_only_after_peer(struct check *c)
{
	struct pair *p = pair_with_short_drain(c);
	uint64_t start;

	if (!p || !send_without_receives(&p->b, 4))
		return;
	start = now_ms();
	side_disconnect(&p->a, NDX_OK);
	check_that(c, now_ms() - start >= RNR_DRAIN_MS - 10,
	           "B had work for another %d ms, the disconnect succeeded after %u", RNR_DRAIN_MS,
	           (unsigned)(now_ms() - start));
	expect_run(&p->b, NDX_REQUEST_SEND, 100, 4, NDX_E_CANCELED);
}

void case_disconnect_rnr_sends_are_cancelled_in_order(struct check *c)
{
	struct pair *p = pair_with_short_drain(c);
	uint64_t start;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, MESSAGE);
	sends_ok(&p->a, 20, 16, 0, MESSAGE);
	/* B may take longer to tell of its receives than the drain lasts */
	expect_run(&p->a, NDX_REQUEST_SEND, 20, 4, NDX_OK);
	start = now_ms();
	side_disconnect(&p->a, NDX_OK);
	check_that(c, now_ms() - start < RNR_DRAIN_MS + WAIT_MS / 2, "the drain took %u ms, not %d",
	           (unsigned)(now_ms() - start), RNR_DRAIN_MS);
	expect_run(&p->a, NDX_REQUEST_SEND, 24, 12, NDX_E_CANCELED);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 4, NDX_OK);
}

void case_disconnect_drain_uses_receives_that_come_late(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p || !sends_ok(&p->a, 20, 8, 0, MESSAGE))
		return;
	side_start_disconnect(&p->a);
	check_pending(c, &p->a.disc, "disconnect with sends that wait for receives");
	receives_ok(&p->b, 0, 8, 0, MESSAGE);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_run(&p->a, NDX_REQUEST_SEND, 20, 8, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 8, NDX_OK);
}

void case_disconnect_flushed_while_it_waits(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p || !sends_ok(&p->a, 20, 8, 0, MESSAGE))
		return;
	receives_ok(&p->a, 0, 4, 0, MESSAGE);
	side_start_notify(&p->b);
	side_start_disconnect(&p->a);
	check_pending(c, &p->a.disc, "disconnect with sends that wait for receives");
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	expect_all_there(&p->a, 12, NDX_E_CANCELED);
	check_ends(c, &p->a.disc, NDX_E_CONNECTION_ABORTED, "disconnect");
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
}

void case_disconnect_helper_gives_up_and_it_goes_on(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p || !send_without_receives(&p->a, 2))
		return;
	side_start_notify(&p->b);
	check_status(c, ndx_disconnect(p->a.conn, 2), NDX_E_IO_TIMEOUT, "disconnect within 2 ms");
	post_receives(&p->b, &p->a, 2);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	check_status(c, ndx_disconnect(p->b.conn, WAIT_MS), NDX_OK, "disconnect at B");
	check_status(c, ndx_disconnect(p->a.conn, WAIT_MS), NDX_OK, "disconnect again");
}

void case_disconnect_crossed_with_a_close(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 4, 0, MESSAGE);
	receives_ok(&p->b, 0, 4, 0, MESSAGE);
	side_start_disconnect(&p->a);
	side_close_qp(&p->b);
	side_close_connector(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_all_there(&p->a, 4, NDX_E_CANCELED);
	expect_all_there(&p->b, 4, NDX_E_CANCELED);
}

void case_disconnect_after_the_peers_succeeds(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_disconnect(&p->a, NDX_OK);
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	/* and has the same answer every time */
	side_disconnect(&p->b, NDX_OK);
	side_disconnect(&p->a, NDX_OK);
}

void case_disconnect_never_connected_is_invalid(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), NDX_E_CONNECTION_INVALID,
	             "disconnect of a new connector");
	check_status(c, ndx_connector_notify_disconnect(p->a.conn, &p->a.notify),
	             NDX_E_CONNECTION_INVALID, "notify_disconnect of a new connector");
	pair_ask(p);
	check_status(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), NDX_E_CONNECTION_INVALID,
	             "disconnect while connecting");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	check_status(c, ndx_connector_disconnect(p->a.conn, &p->a.disc), NDX_E_CONNECTION_INVALID,
	             "disconnect after a failed connect");
	check_status(c, ndx_connector_notify_disconnect(p->b.conn, &p->b.notify),
	             NDX_E_CONNECTION_INVALID, "notify_disconnect after reject");
	check_that(c, ndx_connector_get_disconnect_reason(p->a.conn) == NDX_DISCONNECT_NONE,
	           "a reason without a connection");
}

void case_disconnect_fails_after_the_peers_abort(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->a);
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
}

void case_disconnect_aborted_while_it_waits(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.drain_ms = 2000;
	p = pair_up(c, &attr);
	if (!p || !send_without_receives(&p->b, 2))
		return;
	side_start_disconnect(&p->a);
	check_pending(c, &p->a.disc, "disconnect while B has work");
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
	check_ends(c, &p->a.disc, NDX_E_CONNECTION_ABORTED, "disconnect");
}

void case_disconnect_cancelled_one_goes_on(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	send_without_receives(&p->a, 2);
	side_start_notify(&p->b);
	side_start_disconnect(&p->a);
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->a.disc), NDX_E_CANCELED, "disconnect");
	post_receives(&p->b, &p->a, 2);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	side_disconnect(&p->a, NDX_OK);
}

void case_disconnect_second_one_during_it_is_refused(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped second;

	if (!p || !send_without_receives(&p->a, 1))
		return;
	ndx_overlapped_init(&second);
	side_start_disconnect(&p->a);
	check_status(c, ndx_connector_disconnect(p->a.conn, &second), NDX_E_CONNECTION_ACTIVE,
	             "second disconnect");
	post_receives(&p->b, &p->a, 1);
	check_ends(c, &p->a.disc, NDX_OK, "first disconnect");
}

/* ---- notify_disconnect ---- */

void case_disconnect_notify_asked_late_answers_at_once(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	check_that(c, ndx_connector_get_disconnect_reason(p->b.conn) == NDX_DISCONNECT_NONE,
	           "a reason before the end");
	side_disconnect(&p->a, NDX_OK);
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	check_that(c,
	           ndx_connector_get_disconnect_reason(p->b.conn) ==
	                   (enum ndx_disconnect_reason)p->b.notify.information,
	           "get_disconnect_reason says something else");
}

void case_disconnect_notify_asked_after_an_abort(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receive_ok(&p->a, 1, 0, MESSAGE);
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
	expect(&p->a, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	side_start_notify(&p->a);
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
}

void case_disconnect_notify_can_be_cancelled_and_asked_again(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->b);
	check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->b.notify), NDX_E_CANCELED, "notify_disconnect");
	message_passes(&p->a, &p->b, MESSAGE);
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
}

/* The pending notification of the side that disconnects ends first, however it ends. */
static bool notify_ends_before(struct check *c, struct side *s, struct side *peer)
{
	struct ndx_overlapped *done[2] = {NULL, NULL};
	struct ndx_port *port = NULL;
	size_t got = 0;

	if (check_over(c) || !check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return false;
	s->notify.port = port;
	s->disc.port = port;
	side_start_notify(s);
	side_start_notify(peer);
	side_start_disconnect(s);
	while (!check_over(c) && got < 2) {
		size_t more = ndx_port_get(port, &done[got], 2 - got, WAIT_MS);

		got += more;
		check_that(c, more > 0, "waited %d ms for notification and disconnect", WAIT_MS);
	}
	check_that(c, done[0] == &s->notify && done[1] == &s->disc,
	           "the disconnect completed before the notification");
	check_either(c, s->notify.status, NDX_OK, NDX_E_CANCELED, "own notification");
	check_status(c, s->disc.status, NDX_OK, "disconnect");
	side_indicated(peer, NDX_DISCONNECT_GRACEFUL);
	if (check_over(c)) /* in flight to the port: the pair goes first */
		pair_close_all(c);
	ndx_port_close(port);
	return !check_over(c);
}

void case_disconnect_notify_completes_before_the_own_disconnect(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (p)
		notify_ends_before(c, &p->a, &p->b);
}

void case_disconnect_notify_at_both_with_crossed_disconnects(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	side_start_disconnect(&p->a);
	side_start_disconnect(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect at A");
	check_ends(c, &p->b.disc, NDX_OK, "disconnect at B");
	check_that(c, ndx_overlapped_status(&p->a.notify) != NDX_PENDING, "notification at A");
	check_that(c, ndx_overlapped_status(&p->b.notify) != NDX_PENDING, "notification at B");
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
}

void case_disconnect_reply_to_the_last_message(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	/* B parts as soon as it has A's message: A's send must not turn into a failure. */
	if (!p)
		return;
	receive_ok(&p->b, 1, 0, MESSAGE);
	side_start_notify(&p->a);
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect_received(&p->b, 1, MESSAGE);
	side_start_disconnect(&p->b);
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	check_ends(c, &p->b.disc, NDX_OK, "disconnect at B");
}
