/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair over libfabric's verbs provider is closed when both sides have said goodbye, and not
 * before: what becomes of the link later looks the same after a goodbye and after an abort.
 */
#include "verbs_fixture.h"

#include <endian.h>
#include <string.h>

static void send_goodbye(void *arg)
{
	struct fixture *f = arg;

	ofi_conn_send_disc(&f->conn.spi);
}

static void detach(void *arg)
{
	struct fixture *f = arg;

	f->status = ofi_conn_detach(&f->conn.spi);
}

static void drain(void *arg)
{
	struct fixture *f = arg;

	ofi_conn_drain(&f->conn.spi);
}

static void check_goodbye(void *arg)
{
	struct fixture *f = arg;

	ndxp_lock_acquire(&f->ncq.lock);
	ofi_verbs_check_goodbye(f->link);
	ndxp_lock_release(&f->ncq.lock);
}

static void peer_writes_goodbye(struct fixture *f, uint64_t value)
{
	const uint64_t word = htobe64(value);

	memcpy(f->link->area + OFI_VERBS_MAIL + NDXP_RC_GOODBYE, &word, sizeof(word));
}

/* A send that the peer has no receive for. */
static void post_send(struct fixture *f)
{
	assert_non_null(ndxp_queue_take(&f->qp->base.initiator, NULL, NDX_REQUEST_SEND, 0));
}

static void assert_send(struct fixture *f, bool cancelled)
{
	enum ndx_status status;

	assert_int_equal(fixture_take_result(f, &status), cancelled);
	if (cancelled)
		assert_int_equal(status, NDX_E_CANCELED);
	assert_int_equal((f->reports & NDX_REPORT_DRAINED) != 0, cancelled);
}

/* ---- the side that closes ---- */

static void begin_to_close(struct fixture *f)
{
	fixture_call(f, send_goodbye);
	assert_true(f->goodbye == NDXP_RC_SAID);
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_PENDING);
	assert_true(f->goodbye == (NDXP_RC_SAID | NDXP_RC_LEAVING));
	assert_false(f->shut);
	assert_int_equal(f->reports, NDX_REPORT_DISC_ACKED);
}

static void a_closing_end_takes_no_abort_for_a_goodbye(void **state)
{
	struct fixture *f = *state;

	begin_to_close(f);
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, NDX_REPORT_DISC_ACKED | NDX_REPORT_ABORT);
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_E_DEVICE_BUSY);
}

static void a_closing_end_waits_for_the_peers_goodbye(void **state)
{
	struct fixture *f = *state;

	begin_to_close(f);
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_PENDING);
	peer_writes_goodbye(f, NDXP_RC_SAID);
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_OK);
	assert_true(f->shut);
	fixture_call(f, fixture_disconnect); /* the peer closes, too */
	assert_int_equal(f->reports, NDX_REPORT_DISC_ACKED | NDX_REPORT_PEER_DISC);
}

#define READS_OF_A_STEP 8u

/* Other connections need the control thread. */
static void a_closing_end_does_not_wait_in_place(void **state)
{
	struct fixture *f = *state;

	f->unanswered = true;
	fixture_call(f, send_goodbye);
	f->reads = 0;
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_PENDING);
	assert_in_range(f->reads, 1, READS_OF_A_STEP);
}

/* The device returns the oldest receive. */
static void flush_receive(void *arg)
{
	struct fixture *f = arg;

	f->error = 5; /* IBV_WC_WR_FLUSH_ERR */
	f->done[f->delivered++] = &ofi_rx_at(f->qp, f->qp->base.receive.head)->op;
}

static void a_closing_end_waits_for_its_receives(void **state)
{
	struct fixture *f = *state;
	struct ofi_rx *rx = (struct ofi_rx *)(void *)ndxp_queue_take(&f->qp->base.receive, NULL,
	                                                             NDX_REQUEST_RECEIVE, 0);
	enum ndx_status status;

	assert_non_null(rx);
	rx->native = true;
	f->qp->rx_native++;
	f->qp->rx_next++;
	begin_to_close(f);
	peer_writes_goodbye(f, NDXP_RC_SAID);
	f->reads = 0;
	for (int i = 0; i < 2; i++) {
		fixture_call(f, detach);
		assert_int_equal(f->status, NDX_PENDING);
		assert_true(f->shut);
		assert_in_range(f->reads, 1, 2 * READS_OF_A_STEP);
	}
	fixture_call(f, flush_receive);
	fixture_call(f, detach);
	assert_int_equal(f->status, NDX_OK);
	assert_int_equal(fixture_take_result(f, &status), 1);
	assert_int_equal(status, NDX_E_CANCELED);
}

/* ---- the side whose peer closes ---- */

static void what_waits_for_a_peer_that_closes_is_cancelled(void **state)
{
	struct fixture *f = *state;

	post_send(f);
	peer_writes_goodbye(f, NDXP_RC_SAID);
	fixture_call(f, check_goodbye);
	assert_int_equal(f->reports, NDX_REPORT_PEER_DISC);
	fixture_call(f, drain);
	fixture_call(f, check_goodbye);
	assert_send(f, false);
	peer_writes_goodbye(f, NDXP_RC_SAID | NDXP_RC_LEAVING);
	fixture_call(f, check_goodbye);
	assert_send(f, true);
	assert_int_equal(f->reports, NDX_REPORT_PEER_DISC | NDX_REPORT_DRAINED);
}

/* The peer's goodbye is reported before a request is canceled because of the goodbye. */
static void what_waits_is_cancelled_by_the_drain_if_that_comes_later(void **state)
{
	struct fixture *f = *state;

	post_send(f);
	peer_writes_goodbye(f, NDXP_RC_SAID | NDXP_RC_LEAVING);
	fixture_call(f, check_goodbye);
	assert_int_equal(f->reports, NDX_REPORT_PEER_DISC);
	assert_send(f, false);
	fixture_call(f, drain);
	assert_send(f, true);
}

/* ---- a link that ends while a request is under way ---- */

#define REMOTE_ACCESS 10  /* the device's status of a request that the peer refused */
#define RETRY_EXCEEDED 12 /* ... of one that had no answer */

/* The peer closes the link because the request failed; rdma_cm's event overtakes the completion. */
static void a_link_that_the_peer_ends_leaves_time_for_the_cause(void **state)
{
	struct fixture *f = *state;
	struct ofi_tx *tx = fixture_post_write(f);
	enum ndx_status status;

	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, 0);
	assert_int_equal(fixture_take_result(f, &status), 0);
	f->error = REMOTE_ACCESS;
	f->done[f->delivered++] = &tx->op;
	fixture_call(f, fixture_read_completions);
	assert_int_equal(fixture_take_result(f, &status), 1);
	assert_int_equal(status, NDX_E_ACCESS_VIOLATION);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
}

static void a_link_that_the_peer_ends_waits_no_longer_than_its_time(void **state)
{
	struct fixture *f = *state;

	(void)fixture_post_write(f);
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, 0);
	f->link->verbs.cut_ns = 1; /* the time is over */
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
}

static void cancel_initiator(void *arg)
{
	struct fixture *f = arg;

	ofi_conn_cancel_initiator(&f->conn.spi);
}

/* By the link's own timer: there is no second event. */
static void a_link_that_the_peer_ends_is_aborted_by_its_timer(void **state)
{
	struct fixture *f = *state;
	f->link->verbs.watch = (struct ndxp_timer){.fn = ofi_verbs_on_watch, .arg = f->link};
	(void)fixture_post_write(f);
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, 0);
	fixture_await_report(f);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
}

static void a_drain_that_runs_out_does_not_put_that_off(void **state)
{
	struct fixture *f = *state;

	(void)fixture_post_write(f);
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->link->verbs.watch_ms, 2);
	fixture_call(f, cancel_initiator);
	assert_int_equal(f->link->verbs.watch_ms, 2);
}

/* ---- the link of a peer on verbs, which may end without a goodbye ---- */

static void peer_is_verbs(struct fixture *f)
{
	f->link->peer.is_verbs = true;
	f->link->verbs.introduced = true;
	f->link->verbs.watch = (struct ndxp_timer){.fn = ofi_verbs_on_watch, .arg = f->link};
	f->link->verbs.ping_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PING, f->link};
}

static void submit(void *arg)
{
	struct fixture *f = arg;

	ndxp_lock_acquire(&f->qp->base.lock);
	ofi_submit(f->qp);
	ndxp_lock_release(&f->qp->base.lock);
}

/* The peer has posted no receive, and says so as often as this end reads the number. */
static void credits_of_verbs_are_not_read_without_pause(void **state)
{
	struct fixture *f = *state;

	peer_is_verbs(f);
	f->qp->verbs.peer_is_verbs = true;
	f->link->verbs.peek_op = (struct ofi_op){OFI_OP_PEEK, 0, f->link};
	post_send(f);
	fixture_call(f, submit); /* begins the RNR wait */
	fixture_call(f, submit);
	assert_int_equal(f->peeks, 1);
	fixture_call(f, fixture_read_completions);
	assert_int_equal(f->peeks, 1);
	fixture_call(f, submit); /* as the timer does */
	assert_int_equal(f->peeks, 2);
}

struct first_look {
	struct fixture *f;
	uint32_t reports;
	unsigned delivered;
};

/* On the loop, where no timer runs in between, however late the test's thread is. */
static void disconnect_and_look(void *arg)
{
	struct first_look *look = arg;

	fixture_disconnect(look->f);
	look->reports = look->f->reports;
	look->delivered = look->f->delivered;
}

static void verbs_that_answers_has_said_goodbye(void **state)
{
	struct fixture *f = *state;
	struct first_look look = {.f = f};

	peer_is_verbs(f);
	ndxp_loop_call(f->adapter.spi.loop, disconnect_and_look, &look);
	assert_int_equal(look.reports, 0);
	assert_int_equal(look.delivered, 1); /* the probe, which changes nothing */
	fixture_await_report(f);
	assert_int_equal(f->reports, NDX_REPORT_PEER_DISC);
	assert_int_equal(f->delivered, 2); /* and the write that ends the peer's wait */
	assert_true(f->shut);
}

static void verbs_that_does_not_answer_has_aborted(void **state)
{
	struct fixture *f = *state;

	peer_is_verbs(f);
	f->error = RETRY_EXCEEDED;
	fixture_call(f, fixture_disconnect);
	fixture_await_report(f);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
	assert_int_equal(f->delivered, 1);
}

static void verbs_that_is_silent_is_gone(void **state)
{
	struct fixture *f = *state;

	peer_is_verbs(f);
	f->unanswered = true;
	fixture_call(f, fixture_disconnect);
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->link->verbs.probe, OFI_VERBS_TOUCHED);
	f->link->verbs.probe = OFI_VERBS_PROBED; /* the second write, not answered either */
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, 0);
	f->link->verbs.probe_ns = 1; /* the time is over */
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
}

static void verbs_that_says_so_has_aborted(void **state)
{
	struct fixture *f = *state;
	const uint64_t word = htobe64(1);

	peer_is_verbs(f);
	memcpy(f->link->area + OFI_VERBS_MAIL + NDXP_RC_ABORTED, &word, sizeof(word));
	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
	assert_int_equal(f->delivered, 0);
}

static void a_link_that_the_peer_ends_with_nothing_under_way_ends_at_once(void **state)
{
	struct fixture *f = *state;

	fixture_call(f, fixture_disconnect);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_create, fixture_destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_closing_end_takes_no_abort_for_a_goodbye),
		CASE(a_closing_end_waits_for_the_peers_goodbye),
		CASE(a_closing_end_does_not_wait_in_place),
		CASE(a_closing_end_waits_for_its_receives),
		CASE(what_waits_for_a_peer_that_closes_is_cancelled),
		CASE(what_waits_is_cancelled_by_the_drain_if_that_comes_later),
		CASE(a_link_that_the_peer_ends_leaves_time_for_the_cause),
		CASE(a_link_that_the_peer_ends_waits_no_longer_than_its_time),
		CASE(a_link_that_the_peer_ends_is_aborted_by_its_timer),
		CASE(a_drain_that_runs_out_does_not_put_that_off),
		CASE(a_link_that_the_peer_ends_with_nothing_under_way_ends_at_once),
		CASE(credits_of_verbs_are_not_read_without_pause),
		CASE(verbs_that_answers_has_said_goodbye),
		CASE(verbs_that_does_not_answer_has_aborted),
		CASE(verbs_that_is_silent_is_gone),
		CASE(verbs_that_says_so_has_aborted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
