/* SPDX-License-Identifier: BSD-2-Clause */
/* Mechanics of the end over loop: drain, goodbye, finish, detach, abort. */
#include "rig.h"

static void a_drain_with_nothing_to_do_is_done_at_once(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_ops()->conn_drain(rig->a.conn);
	assert_int_equal(rig->a.book.drained, 1);
	assert_int_equal(rig->b.book.reports, 0);
}

static void a_drain_waits_for_what_waits_for_the_peer(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 2, 0, 8, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_ops()->conn_drain(rig->a.conn);
	/* behind the drain: cancelled, but in its turn */
	assert_int_equal(rig_send(&rig->a, 3, 0, 8, 0), NDX_OK);
	assert_int_equal(rig->a.book.drained, 0);
	assert_int_equal(rig_receive(&rig->b, 4, 0, 8), NDX_OK);
	assert_int_equal(rig->a.book.drained, 0);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_OK);
	rig_expect_none(&rig->a);
	assert_int_equal(rig_receive(&rig->b, 5, 0, 8), NDX_OK);
	assert_int_equal(rig->a.book.drained, 1);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 3, NDX_E_CANCELED);
	rig_expect_none(&rig->a);
	/* the side that drains is still of use to its peer */
	assert_int_equal(rig_receive(&rig->a, 6, 0, 8), NDX_OK);
	assert_int_equal(rig_send(&rig->b, 7, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 6, NDX_OK);
}

static void cancelling_the_initiator_ends_the_drain(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_write(&rig->a, 2, 0, 8, &rig->b, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig->a, 3, 0, 8), NDX_OK);
	rig_ops()->conn_drain(rig->a.conn);
	rig_ops()->conn_cancel_initiator(rig->a.conn);
	assert_int_equal(rig->a.book.drained, 1);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_E_CANCELED);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 2, NDX_E_CANCELED);
	rig_expect_none(&rig->a);
	/* a receive that comes now meets nothing */
	assert_int_equal(rig_receive(&rig->b, 4, 0, 8), NDX_OK);
	rig_expect_none(&rig->b);
	assert_int_equal(rig->a.book.aborts, 0);
}

/* One side's half of a goodbye. */
static void say_goodbye(struct rig_side *side)
{
	rig_ops()->conn_drain(side->conn);
	assert_int_equal(side->book.drained, 1);
	rig_ops()->conn_send_disc(side->conn);
	assert_true((side->book.reports & NDX_REPORT_DISC_ACKED) != 0);
}

static void both_goodbyes_end_it_and_cancel_the_receives_last(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->a, 1, 0, 8), NDX_OK);
	assert_int_equal(rig_receive(&rig->a, 2, 0, 8), NDX_OK);
	say_goodbye(&rig->a);
	assert_int_equal(rig->b.book.peer_discs, 1);
	assert_int_equal(rig->a.book.peer_discs, 0);
	/* until the peer's goodbye the receives are the peer's to use */
	assert_int_equal(rig_send(&rig->b, 3, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	assert_int_equal(rig_write(&rig->b, 4, 0, 8, &rig->a, 0), NDX_OK);
	say_goodbye(&rig->b);
	assert_int_equal(rig->a.book.peer_discs, 1);
	rig_expect_none(&rig->a);
	rig_ops()->conn_finish(rig->a.conn);
	assert_int_equal(rig->a.book.quiet, 1);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 2, NDX_E_CANCELED);
	rig_ops()->conn_finish(rig->b.conn);
	assert_int_equal(rig->b.book.quiet, 1);
	assert_int_equal(rig->a.book.aborts + rig->b.book.aborts, 0);
	assert_int_equal(rig_receive(&rig->a, 5, 0, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 5, NDX_E_CANCELED);
	assert_int_equal(rig_send(&rig->a, 6, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 6, NDX_E_CANCELED);
}

static void an_abort_after_the_peers_end_is_not_sent(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	say_goodbye(&rig->a);
	say_goodbye(&rig->b);
	rig_ops()->conn_finish(rig->a.conn);
	rig_abort(rig->b.conn, &rig->b.book);
	assert_int_equal(rig->a.book.aborts, 0);
}

static void an_abort_cancels_all_and_tells_the_peer(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->a, 1, 0, 8), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 2, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 3, 0, 8, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_abort(rig->a.conn, &rig->a.book);
	assert_int_equal(rig->a.book.aborts, 0);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 2, NDX_E_CANCELED);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 3, NDX_E_CANCELED);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	assert_int_equal(rig->b.book.aborts, 1);
	assert_non_null(rig->b.book.cause);
	/* what the peer posts before it acts on it moves nothing */
	assert_int_equal(rig_receive(&rig->b, 4, 0, 8), NDX_OK);
	assert_int_equal(rig_write(&rig->b, 5, 0, 8, &rig->a, 0), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_WRITE, 5, NDX_E_CANCELED);
	rig_expect_none(&rig->b);
	rig_abort(rig->b.conn, &rig->b.book);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 4, NDX_E_CANCELED);
}

static void an_abort_while_the_peer_drains_reaches_it(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, 0), NDX_OK);
	rig_ops()->conn_drain(rig->b.conn);
	rig_abort(rig->a.conn, &rig->a.book);
	assert_int_equal(rig->b.book.aborts, 1);
	assert_int_equal(rig->b.book.drained, 0);
	/* what core may still ask of a broken connection is harmless */
	rig_ops()->conn_cancel_initiator(rig->b.conn);
	rig_ops()->conn_send_disc(rig->b.conn);
	assert_int_equal(rig->b.book.reports, NDX_REPORT_ABORT);
	rig_abort(rig->b.conn, &rig->b.book);
}

static void a_goodbye_to_a_peer_that_is_gone_gets_no_answer(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_drop_conn(&rig->b, rig->b.conn);
	rig->b.conn = NULL;
	assert_int_equal(rig->a.book.aborts, 1);
	rig_ops()->conn_send_disc(rig->a.conn);
	assert_int_equal(rig->a.book.reports, NDX_REPORT_ABORT);
}

static void a_detached_queue_pair_takes_nothing_more(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->a, 1, 0, 8), NDX_OK);
	rig_paint(rig->b.memory, 8, 1);
	say_goodbye(&rig->a);
	assert_int_equal(rig_ops()->conn_detach(rig->a.conn), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	rig->a.conn->qp = NULL;
	rig_ops()->qp_destroy(rig->a.qp);
	rig->a.qp = NULL;
	/* neither receives nor memory: it waits, until its own side cancels it */
	assert_int_equal(rig_write(&rig->b, 2, 0, 8, &rig->a, 0), NDX_OK);
	assert_int_equal(rig_send(&rig->b, 3, 0, 8, 0), NDX_OK);
	rig_ops()->conn_drain(rig->b.conn);
	assert_int_equal(rig->b.book.drained, 0);
	rig_ops()->conn_cancel_initiator(rig->b.conn);
	assert_int_equal(rig->b.book.drained, 1);
	(void)rig_expect(&rig->b, NDX_REQUEST_WRITE, 2, NDX_E_CANCELED);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 3, NDX_E_CANCELED);
	assert_int_equal(rig->a.memory[0], 0);
	rig_ops()->conn_send_disc(rig->b.conn);
	assert_int_equal(rig->a.book.peer_discs, 1);
	rig_ops()->conn_finish(rig->b.conn);
	rig_ops()->conn_finish(rig->a.conn);
	assert_int_equal(rig->a.book.quiet, 1);
	assert_int_equal(rig->a.book.aborts + rig->b.book.aborts, 0);
}

/* The time for a receive ends only sends that might still get one. */
static void a_send_does_not_time_out_once_the_peer_has_detached(void **state)
{
	struct rig *rig = *state;
	struct rig_pair pair;
	struct ndx_spi_qp *from;
	struct ndx_spi_qp *to;

	rig->attr.no_receive_timeout_ms = 500;
	rig_connect_new(rig);
	from = rig_make_qp(rig, &rig->a, NULL);
	to = rig_make_qp(rig, &rig->b, NULL);
	rig_connect_pair(rig, &pair, from, to);
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, 0), NDX_OK);
	say_goodbye(&rig->a);
	assert_int_equal(rig_ops()->conn_detach(rig->a.conn), NDX_OK);
	/* a younger send on another connection of the same thread runs out later */
	assert_int_equal(ndx_qp_send(&to->pub, NULL, NULL, 0, 0), NDX_OK);
	rig_wait_report(&pair.passive_book, NDX_REPORT_ABORT);
	assert_int_equal(rig->b.book.aborts, 0);
	rig_ops()->conn_cancel_initiator(rig->b.conn);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 0, NDX_E_IO_TIMEOUT);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 1, NDX_E_CANCELED);
	rig_drop_pair(rig, &pair);
	rig_ops()->qp_destroy(from);
	rig_ops()->qp_destroy(to);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_drain_with_nothing_to_do_is_done_at_once),
		TEST(a_drain_waits_for_what_waits_for_the_peer),
		TEST(cancelling_the_initiator_ends_the_drain),
		TEST(both_goodbyes_end_it_and_cancel_the_receives_last),
		TEST(an_abort_after_the_peers_end_is_not_sent),
		TEST(an_abort_cancels_all_and_tells_the_peer),
		TEST(an_abort_while_the_peer_drains_reaches_it),
		TEST(a_goodbye_to_a_peer_that_is_gone_gets_no_answer),
		TEST(a_detached_queue_pair_takes_nothing_more),
		TEST(a_send_does_not_time_out_once_the_peer_has_detached),
	};

	return cmocka_run_group_tests_name("loop: the end", tests, NULL, NULL);
}
