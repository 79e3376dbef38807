/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.notify_*: asking for one notification, and the descriptor. */
#include <poll.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64 };

static bool arm(struct side *s, enum ndx_cq_notify_type type, struct ndx_overlapped *ov)
{
	return check_status(s->c, ndx_cq_notify(s->cq, type, ov), NDX_PENDING, "cq_notify");
}

/* A message for B, and A's result of it is taken. */
static bool poke(struct pair *p, uint32_t flags)
{
	return receive_ok(&p->b, 1, 0, MESSAGE) && send_ok(&p->a, 2, 0, MESSAGE, flags) &&
	       expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
}

void case_cq_notify_any_fires_once_for_the_next_result(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	for (unsigned i = 0; i < 3; i++) {
		arm(&p->b, NDX_CQ_NOTIFY_ANY, &ov);
		check_pending(c, &ov, "notification before a result");
		poke(p, 0);
		check_ends(c, &ov, NDX_OK, "notification");
		expect_received(&p->b, 1, MESSAGE);
	}
	/* once only: unarmed, a result completes nothing */
	poke(p, 0);
	expect_received(&p->b, 1, MESSAGE);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ov);
	check_pending(c, &ov, "notification with nothing new");
	check_status(c, ndx_cq_cancel(p->b.cq), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&ov), NDX_E_CANCELED, "notification");
}

void case_cq_notify_armed_late_fires_at_once(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	/* drained; then a result comes; then the consumer asks */
	check_that(c, discard(&p->b) == 0, "a result from nowhere");
	poke(p, 0);
	poke(p, 0);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ov);
	check_ends(c, &ov, NDX_OK, "notification armed after the result");
	expect_received(&p->b, 1, MESSAGE);
	expect_received(&p->b, 1, MESSAGE);
}

void case_cq_notify_all_in_flight_fire_together(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ovs[5];

	if (!p)
		return;
	for (size_t i = 0; i < 5; i++) {
		ndx_overlapped_init(&ovs[i]);
		arm(&p->b, NDX_CQ_NOTIFY_ANY, &ovs[i]);
	}
	poke(p, 0);
	for (size_t i = 0; i < 5; i++)
		check_ends(c, &ovs[i], NDX_OK, "one of five notifications");
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

void case_cq_notify_fires_for_failures_too(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	receives_ok(&p->b, 0, 2, 0, MESSAGE);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ov);
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush");
	check_ends(c, &ov, NDX_OK, "notification of cancelled receives");
	expect_all_there(&p->b, 2, NDX_E_CANCELED); /* both, after one notification */
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

void case_cq_notify_fires_when_the_peer_disconnects(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;
	size_t count = 0;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	receives_ok(&p->b, 0, 2, 0, MESSAGE);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ov);
	side_start_disconnect(&p->a); /* B sleeps on its queue and makes no call */
	check_ends(c, &ov, NDX_OK, "notification when the peer parted");
	while (count < 2 && expect(&p->b, NDX_REQUEST_RECEIVE, count, NDX_E_CANCELED))
		count++;
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

void case_cq_notify_errors_is_for_the_queue_itself(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	arm(&p->b, NDX_CQ_NOTIFY_ERRORS, &ov);
	poke(p, 0);
	expect_received(&p->b, 1, MESSAGE);
	check_pending(c, &ov, "ERRORS after an ordinary result");
	check_status(c, ndx_cq_cancel(p->b.cq), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&ov), NDX_E_CANCELED, "notification");
}

void case_cq_notify_solicited_waits_for_a_solicited_one(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ov);
	poke(p, 0);
	expect_received(&p->b, 1, MESSAGE);
	check_pending(c, &ov, "SOLICITED after a plain send");
	poke(p, NDX_OP_SOLICIT_EVENT);
	check_ends(c, &ov, NDX_OK, "SOLICITED after a soliciting send");
	expect_received(&p->b, 1, MESSAGE);
	/* failures solicit */
	receive_ok(&p->b, 1, 0, MESSAGE);
	arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ov);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush at A");
	check_ends(c, &ov, NDX_OK, "SOLICITED after a cancelled receive");
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

/* A plain message and a soliciting one; B asks before or after, and looks in between or not. */
static void wake_once(struct check *c, struct pair *p)
{
	const bool late = check_chance(c, 50);
	const bool early =
		check_chance(c, 50); /* A knows that they are there when B asks or looks */
	struct ndx_overlapped ov;
	struct ndx_result result;
	size_t got = 0;

	ndx_overlapped_init(&ov);
	receives_ok(&p->b, 1, 2, 0, MESSAGE);
	if (!late)
		arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ov);
	send_ok(&p->a, 3, 0, MESSAGE, 0);
	if (check_chance(c, 50))
		got += ndx_cq_get_results(p->b.cq, &result, 1);
	send_ok(&p->a, 4, 0, MESSAGE, NDX_OP_SOLICIT_EVENT);
	if (early)
		expect_run(&p->a, NDX_REQUEST_SEND, 3, 2, NDX_OK);
	if (late)
		arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ov);
	while (got < 2 && check_chance(c, 50))
		got += ndx_cq_get_results(p->b.cq, &result, 1);
	check_ends(c, &ov, NDX_OK, "SOLICITED");
	while (got < 2 && take(&p->b, p->b.cq, &result))
		got++;
	if (!early)
		expect_run(&p->a, NDX_REQUEST_SEND, 3, 2, NDX_OK);
	(void)ndx_cq_cancel(p->b.cq); /* unless it has ended, as it should */
}

void case_cq_notify_solicited_misses_none(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	for (unsigned i = 0; i < 100 && !check_over(c); i++)
		wake_once(c, p);
}

void case_cq_results_say_that_they_were_solicited(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result = {.status = NDX_PENDING};

	if (!p)
		return;
	for (unsigned i = 0; i < 2 && !check_over(c); i++) {
		poke(p, i == 0 ? 0 : NDX_OP_SOLICIT_EVENT);
		(void)take(&p->b, p->b.cq, &result);
		check_that(c, ((result.flags & NDX_RESULT_SOLICITED) != 0) == (i == 1),
		           "flags %#x of result %u", result.flags, i);
	}
}

void case_cq_notify_solicited_without_the_capability_is_any(struct check *c)
{
	struct pair *p;
	struct ndx_overlapped ov;

	if (c->world->places[1].info.capabilities & NDX_CAP_NOTIFY_SOLICITED) {
		check_skip(c, "the adapter has NOTIFY_SOLICITED");
		return;
	}
	p = pair_up(c, NULL);
	if (!p)
		return;
	ndx_overlapped_init(&ov);
	arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ov);
	poke(p, 0);
	check_ends(c, &ov, NDX_OK, "notification");
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

void case_cq_notify_any_widens_what_is_in_flight(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ovs[2];

	if (!p)
		return;
	ndx_overlapped_init(&ovs[0]);
	ndx_overlapped_init(&ovs[1]);
	arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ovs[0]);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ovs[1]);
	poke(p, 0);
	check_ends(c, &ovs[0], NDX_OK, "SOLICITED beside ANY");
	check_ends(c, &ovs[1], NDX_OK, "ANY");
	if (check_over(c))
		(void)ndx_cq_cancel(p->b.cq);
}

/* In the other order, too; and when both are through, a new one means what it says again. */
void case_cq_notify_solicited_beside_any_is_any(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ovs[2];

	if (!p)
		return;
	ndx_overlapped_init(&ovs[0]);
	ndx_overlapped_init(&ovs[1]);
	arm(&p->b, NDX_CQ_NOTIFY_ANY, &ovs[0]);
	arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ovs[1]);
	poke(p, 0);
	check_ends(c, &ovs[0], NDX_OK, "ANY");
	check_ends(c, &ovs[1], NDX_OK, "SOLICITED beside ANY");
	expect_received(&p->b, 1, MESSAGE);
	/* the sender has to be able to say so, and the receiver to notice */
	if (!check_over(c) && has_capability(&p->a, NDX_CAP_NOTIFY_SOLICITED) &&
	    has_capability(&p->b, NDX_CAP_NOTIFY_SOLICITED)) {
		arm(&p->b, NDX_CQ_NOTIFY_SOLICITED, &ovs[1]);
		poke(p, 0);
		expect_received(&p->b, 1, MESSAGE);
		check_pending(c, &ovs[1], "SOLICITED alone after a plain send");
		poke(p, NDX_OP_SOLICIT_EVENT);
		check_ends(c, &ovs[1], NDX_OK, "SOLICITED alone");
	}
	(void)ndx_cq_cancel(p->b.cq);
}

/* Failures of requests that one posted oneself count, too. */
void case_cq_notify_solicited_fires_for_own_failures(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	sends_ok(&p->a, 0, 2, 0, MESSAGE); /* no receive is posted for them */
	arm(&p->a, NDX_CQ_NOTIFY_SOLICITED, &ov);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	check_ends(c, &ov, NDX_OK, "SOLICITED after cancelled sends");
	expect_all_there(&p->a, 2, NDX_E_CANCELED);
	(void)ndx_cq_cancel(p->a.cq);
}

void case_cq_notify_bad_arguments_are_refused(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	check_status(c, ndx_cq_notify(p->a.cq, (enum ndx_cq_notify_type)7, &ov),
	             NDX_E_INVALID_PARAMETER, "unknown type");
	arm(&p->a, NDX_CQ_NOTIFY_ANY, &ov);
	check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &ov), NDX_E_INVALID_PARAMETER,
	             "object in flight");
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cancel");
	check_status(c, ndx_cq_cancel(p->a.cq), NDX_OK, "cancel of nothing");
}

/* Both ways to end what is armed give the same, in order, before they return. */
static void ends_in_order(struct check *c, bool close)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ovs[6];
	struct ndx_overlapped *done[8];
	struct ndx_port *port = NULL;

	if (!p || !check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	for (size_t i = 0; i < 6; i++) {
		ndx_overlapped_init(&ovs[i]);
		ovs[i].port = port;
		arm(&p->b, i % 2 ? NDX_CQ_NOTIFY_ERRORS : NDX_CQ_NOTIFY_ANY, &ovs[i]);
	}
	if (close)
		side_close_cqs(&p->b);
	else
		check_status(c, ndx_cq_cancel(p->b.cq), NDX_OK, "cancel");
	check_that(c, ndx_port_get(port, done, 8, 0) == 6, "not all were complete on return");
	for (size_t i = 0; i < 6 && !check_over(c); i++)
		check_that(c, done[i] == &ovs[i] && ovs[i].status == NDX_E_CANCELED,
		           "number %zu is out of order or completed %s", i,
		           ndx_status_name(ovs[i].status));
	pair_close_all(c);
	ndx_port_close(port);
}

void case_cq_notify_cancel_ends_them_in_order(struct check *c)
{
	ends_in_order(c, false);
}

void case_cq_notify_close_ends_them_in_order(struct check *c)
{
	ends_in_order(c, true);
}

/* ---- the descriptor ---- */

static bool readable(int fd, int ms)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	return poll(&in, 1, ms) == 1;
}

/* It may be readable for what gives no result, until the queue was looked at. */
static bool stays_quiet(struct side *s, int fd)
{
	for (int i = 0; i < 8; i++) {
		if (!readable(fd, QUIET_MS))
			return true;
		if (discard(s) != 0)
			return false;
	}
	return false;
}

void case_cq_fd_is_readable_when_armed_and_fired(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	int fd = -1;
	int again = -1;

	if (!p)
		return;
	check_status(c, ndx_cq_get_fd(p->b.cq, &fd), NDX_OK, "cq_get_fd");
	check_status(c, ndx_cq_get_fd(p->b.cq, &again), NDX_OK, "cq_get_fd again");
	check_that(c, fd >= 0 && fd == again, "descriptors %d and %d", fd, again);
	for (unsigned i = 0; i < 3; i++) {
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK,
		             "arm the descriptor");
		check_that(c, check_over(c) || stays_quiet(&p->b, fd), "readable without a result");
		poke(p, 0);
		check_that(c, check_over(c) || readable(fd, WAIT_MS),
		           "waited %d ms for the descriptor", WAIT_MS);
		check_that(c, check_over(c) || readable(fd, 0), "readable until armed again");
		expect_received(&p->b, 1, MESSAGE);
	}
	/* armed late: at once */
	check_that(c, discard(&p->b) == 0, "a result from nowhere");
	poke(p, 0);
	poke(p, 0);
	check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK, "arm");
	check_that(c, check_over(c) || readable(fd, WAIT_MS), "waited %d ms for the descriptor",
	           WAIT_MS);
}

void case_cq_fd_wakes_for_every_message(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result results[8];
	size_t got = 0;
	int fd = -1;

	if (!p)
		return;
	check_status(c, ndx_cq_get_fd(p->b.cq, &fd), NDX_OK, "cq_get_fd");
	receives_ok(&p->b, 0, 64, 0, MESSAGE);
	sends_ok(&p->a, 0, 64, 0, MESSAGE);
	while (got < 64 && !check_over(c)) {
		size_t n = ndx_cq_get_results(p->b.cq, results, 8);

		got += n;
		if (n > 0)
			continue;
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK, "arm");
		check_that(c, readable(fd, WAIT_MS), "waited %d ms, %zu messages so far", WAIT_MS,
		           got);
	}
}

/*
 * The consumer polls while the descriptor is armed, for example because its thread does other work
 * between, and arms again without a look at the descriptor. A result that came after the poll has
 * fired the descriptor already.
 */
void case_cq_fd_armed_again_forgets_nothing(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	int fd = -1;

	if (!p)
		return;
	check_status(c, ndx_cq_get_fd(p->b.cq, &fd), NDX_OK, "cq_get_fd");
	check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK, "arm");
	for (unsigned i = 0; i < 3; i++) {
		check_that(c, discard(&p->b) == 0, "a result from nowhere");
		poke(p, 0);
		check_that(c, check_over(c) || readable(fd, WAIT_MS),
		           "waited %d ms for the descriptor", WAIT_MS);
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK,
		             "arm again");
		check_that(c, check_over(c) || readable(fd, WAIT_MS),
		           "armed again, the descriptor is quiet beside a result that nobody took");
		expect_received(&p->b, 1, MESSAGE);
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK, "arm");
		check_that(c, check_over(c) || stays_quiet(&p->b, fd), "readable without a result");
	}
}

/*
 * One thread polls while another sleeps on the descriptor. A result that the first thread takes may
 * wake the second thread or not. A result that no thread takes has to.
 */
void case_cq_fd_wakes_a_sleeper_beside_a_poller(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	int fd = -1;

	if (!p)
		return;
	check_status(c, ndx_cq_get_fd(p->b.cq, &fd), NDX_OK, "cq_get_fd");
	for (unsigned i = 0; i < 100 && !check_over(c); i++) {
		check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK, "arm");
		poke(p, 0);
		expect_received(&p->b, 1, MESSAGE);
		poke(p, 0);
		check_that(c, check_over(c) || readable(fd, WAIT_MS),
		           "round %u: waited %d ms for the descriptor", i, WAIT_MS);
		expect_received(&p->b, 1, MESSAGE);
	}
}
