/* SPDX-License-Identifier: BSD-2-Clause */
/* What the provider waits for on a completion queue that is armed for solicited completions
 * only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_ov.h"
#include "waiter.h"

static void run_tick(void *arg)
{
	verbs_cq_on_tick(arg);
}

/* The control thread leaves a queue to a consumer that was notified. If the consumer does not poll
 * again, the control thread arms the queue for failures. */
static void a_consumer_that_stops_polling_misses_no_failure(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	assert_int_not_equal(w.rig.adapter.tick_ms, 0);
	waiter_call(&w, run_tick, &w.rig.adapter); /* the consumer has polled since the last tick */
	waiter_call(&w, run_tick, &w.rig.adapter);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_false(w.rig.reports & NDX_REPORT_ABORT);
	(void)waiter_is_notified(&w);
	assert_true(w.rig.reports & NDX_REPORT_ABORT);
	waiter_close(&w);
}

static void failures_wake(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_int_equal(rig_send(&w.rig, 20, NDX_OP_SILENT_SUCCESS), NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	fake_break(rig_native(&w.rig), IBV_WC_REM_ACCESS_ERR);
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 20, NDX_E_ACCESS_VIOLATION);
	rig_expect(&w.rig, 0, NDX_E_CANCELED);
	assert_true(w.rig.reports & NDX_REPORT_ABORT);
	waiter_close(&w);
}

static void run_watchdog(void *arg)
{
	struct rig *rig = arg;

	verbs_watch_on_timer(&rig->conn);
	verbs_watch_end(&rig->conn);
}

/* The device raises no event: the watchdog finds the failure. */
static void failures_without_an_event_wake(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	w.rig.device.silent_failures = true;
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_false(waiter_is_notified(&w));
	waiter_call(&w, run_watchdog, &w.rig);
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_E_CANCELED);
	waiter_close(&w);
}

static void start_drain(void *arg)
{
	verbs_conn_drain(arg);
}

/* While a drain waits for sends, unsolicited messages may notify the consumer. */
static void a_drain_sees_successes(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_int_equal(rig_send(&w.rig, 20, 0), NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	waiter_call(&w, start_drain, &w.rig.conn.spi);
	assert_false(w.rig.reports & NDX_REPORT_DRAINED);
	fake_complete_sends(rig_native(&w.rig), 1);
	assert_false(waiter_is_notified(&w)); /* no receive has completed */
	assert_true(w.rig.reports & NDX_REPORT_DRAINED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* ---- the end of a connection, while the consumer waits for solicited completions ---- */

static enum ndx_spi_oob_message oob_message;

static void on_oob_send(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message)
{
	(void)spi;
	oob_message = message;
}

static void open_for_end(struct waiter *w)
{
	waiter_open(w);
	oob_message = NDX_OOB_LOST;
	w->rig.host.oob_send = on_oob_send;
	w->rig.conn.oob.on = true; /* so that the end makes no call of rdma_cm */
	w->rig.conn.peer.is_ndx = true;
	w->rig.conn.state = VERBS_CONN_UP;
	w->rig.device.silent_failures = true;
	assert_int_equal(verbs_mailbox_open(&w->rig.conn), NDX_OK);
	waiter_notify(w, NDX_CQ_NOTIFY_SOLICITED);
}

/* Read the completion events, then run the jobs that they have queued. */
static void run_events(struct waiter *w)
{
	assert_false(waiter_is_notified(w));
	waiter_call(w, waiter_do_nothing, NULL);
}

static void send_disc(void *arg)
{
	verbs_conn_send_disc(arg);
}

static void a_delivered_goodbye_is_reported(void **state)
{
	struct waiter w;

	(void)state;
	open_for_end(&w);
	waiter_call(&w, send_disc, &w.rig.conn.spi);
	run_events(&w);
	/* the write to the peer's mailbox is not complete yet */
	assert_int_equal(oob_message, NDX_OOB_LOST);
	fake_complete_sends(rig_native(&w.rig), 1);
	run_events(&w);
	assert_int_equal(oob_message, NDX_OOB_GOODBYE);
	waiter_cancel(&w);
	waiter_close(&w);
}

static void on_disconnected(void *arg)
{
	verbs_end_on_disconnected(arg, 0);
}

static void the_answer_to_a_probe_is_seen(void **state)
{
	struct waiter w;

	(void)state;
	open_for_end(&w);
	waiter_call(&w, on_disconnected, &w.rig.conn);
	assert_int_equal(w.rig.conn.wait, VERBS_WAIT_ANSWER);
	fake_complete_sends(rig_native(&w.rig), 1);
	run_events(&w);
	assert_int_equal(w.rig.conn.wait, VERBS_WAIT_MOMENT);
	waiter_cancel(&w);
	waiter_close(&w);
}

static void finish_conn(void *arg)
{
	verbs_conn_finish(arg);
}

/* A device that flushes late and raises no event for failures. */
static void a_late_cancel_is_reported(void **state)
{
	struct waiter w;

	(void)state;
	open_for_end(&w);
	w.rig.device.flushes_late = true;
	waiter_call(&w, finish_conn, &w.rig.conn.spi);
	assert_false(w.rig.reports & NDX_REPORT_QUIET);
	assert_int_not_equal(waiter_count_watchers(&w), 0);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_true(waiter_is_notified(&w)); /* a failure notifies the consumer, too */
	waiter_call(&w, waiter_do_nothing, NULL);
	assert_true(w.rig.reports & NDX_REPORT_QUIET);
	assert_int_equal(waiter_count_watchers(&w), 0); /* the provider does not wait any more */
	waiter_close(&w);
}

static void a_queue_of_shared_receives_sees_successes(void **state)
{
	const struct ndx_sge sge = {NULL, 0, 1};
	struct ndx_overlapped ov;
	struct ndx_spi_srq *srq = NULL;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.tick = (struct ndxp_timer){.fn = waiter_do_nothing};
	assert_int_equal(
		verbs_srq_create(
			&rig.adapter.spi,
			&(struct ndx_srq_attr){.depth = WAITER_DEPTH, .max_sge = 2, .threshold = 2},
			&srq),
		NDX_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ndx_srq_receive(&srq->pub, NULL, &sge, 1), NDX_OK);
	rig_connect(&rig, WAITER_DEPTH, srq);
	ndx_overlapped_init(&ov);
	assert_int_equal(base_ov_begin(&ov, rig.adapter.spi.loop), NDX_OK);
	assert_int_equal(ndxp_srq_notify(srq, &ov), NDX_PENDING);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	assert_true(fake_arrive(rig_native(&rig), 8));
	ndxp_loop_call(rig.adapter.spi.loop, waiter_read_events, &rig.adapter);
	assert_int_equal(ndx_overlapped_wait(&ov, 1000), NDX_OK);
	rig_expect(&rig, 0, NDX_OK);
	verbs_qp_destroy(rig.qp);
	rig.qp = NULL;
	assert_int_equal(verbs_cq_of(&rig.cq->pub)->watchers, 0);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_consumer_that_stops_polling_misses_no_failure),
		cmocka_unit_test(failures_wake),
		cmocka_unit_test(failures_without_an_event_wake),
		cmocka_unit_test(a_drain_sees_successes),
		cmocka_unit_test(a_delivered_goodbye_is_reported),
		cmocka_unit_test(the_answer_to_a_probe_is_seen),
		cmocka_unit_test(a_late_cancel_is_reported),
		cmocka_unit_test(a_queue_of_shared_receives_sees_successes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
