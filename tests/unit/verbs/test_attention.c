/* SPDX-License-Identifier: BSD-2-Clause */
/* What the provider itself waits for on a queue that is armed for solicited completions only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watched.h"

static void tick(void *arg)
{
	verbs_cq_on_tick(arg);
}

/* Who was told is expected back. If he does not come, the queue is armed all the same. */
static void a_consumer_that_stops_polling_misses_no_failure(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	assert_int_not_equal(w.rig.adapter.tick_ms, 0);
	watched_call(&w, tick, &w.rig.adapter); /* he has polled */
	watched_call(&w, tick, &w.rig.adapter);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_false(w.rig.reports & NDX_REPORT_ABORT);
	(void)watched_told(&w);
	assert_true(w.rig.reports & NDX_REPORT_ABORT);
	watched_close(&w);
}

static void failures_wake(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_int_equal(rig_send(&w.rig, 20, NDX_OP_SILENT_SUCCESS), NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	fake_break(rig_native(&w.rig), IBV_WC_REM_ACCESS_ERR);
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 20, NDX_E_ACCESS_VIOLATION);
	rig_expect(&w.rig, 0, NDX_E_CANCELED);
	assert_true(w.rig.reports & NDX_REPORT_ABORT);
	watched_close(&w);
}

static void watch(void *arg)
{
	struct rig *rig = arg;

	verbs_watch_on_timer(&rig->conn);
	verbs_watch_end(&rig->conn);
}

/* The device tells nobody: the watch finds it. */
static void failures_without_an_event_wake(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	w.rig.device.silent_failures = true;
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_false(watched_told(&w));
	watched_call(&w, watch, &w.rig);
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_E_CANCELED);
	watched_close(&w);
}

static void drain(void *arg)
{
	verbs_conn_drain(arg);
}

/* While the end waits for sends, messages may wake that were not solicited. */
static void a_drain_sees_successes(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_int_equal(rig_send(&w.rig, 20, 0), NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	watched_call(&w, drain, &w.rig.conn.spi);
	assert_false(w.rig.reports & NDX_REPORT_DRAINED);
	fake_run(rig_native(&w.rig), 1);
	assert_false(watched_told(&w)); /* no receive */
	assert_true(w.rig.reports & NDX_REPORT_DRAINED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* ---- the end of a connection, while somebody waits for solicited ones only ---- */

static enum ndx_spi_oob_message said;

static void on_say(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message)
{
	(void)spi;
	said = message;
}

static void setup_end(struct watched *w)
{
	watched_open(w);
	said = NDX_OOB_LOST;
	w->rig.host.oob_send = on_say;
	w->rig.conn.oob.on = true; /* so that nothing asks rdma_cm */
	w->rig.conn.peer.is_ndx = true;
	w->rig.conn.state = VERBS_CONN_UP;
	w->rig.device.silent_failures = true;
	assert_int_equal(verbs_mailbox_open(&w->rig.conn), NDX_OK);
	watched_ask(w, NDX_CQ_NOTIFY_SOLICITED);
}

/* Its events, and what they ask for. */
static void run_events(struct watched *w)
{
	assert_false(watched_told(w));
	watched_call(w, watched_nothing, NULL);
}

static void send_disc(void *arg)
{
	verbs_conn_send_disc(arg);
}

static void a_delivered_goodbye_is_reported(void **state)
{
	struct watched w;

	(void)state;
	setup_end(&w);
	watched_call(&w, send_disc, &w.rig.conn.spi);
	run_events(&w);
	assert_int_equal(said, NDX_OOB_LOST); /* the word in the mailbox goes first */
	fake_run(rig_native(&w.rig), 1);
	run_events(&w);
	assert_int_equal(said, NDX_OOB_GOODBYE);
	watched_give_up(&w);
	watched_close(&w);
}

static void on_disconnected(void *arg)
{
	verbs_end_on_disconnected(arg, 0);
}

static void the_answer_to_a_probe_is_seen(void **state)
{
	struct watched w;

	(void)state;
	setup_end(&w);
	watched_call(&w, on_disconnected, &w.rig.conn);
	assert_int_equal(w.rig.conn.wait, VERBS_WAIT_ANSWER);
	fake_run(rig_native(&w.rig), 1);
	run_events(&w);
	assert_int_equal(w.rig.conn.wait, VERBS_WAIT_MOMENT);
	watched_give_up(&w);
	watched_close(&w);
}

static void finish(void *arg)
{
	verbs_conn_finish(arg);
}

/* A device that takes its time to cancel, and does not tell of failures. */
static void a_late_cancel_is_reported(void **state)
{
	struct watched w;

	(void)state;
	setup_end(&w);
	w.rig.device.flushes_late = true;
	watched_call(&w, finish, &w.rig.conn.spi);
	assert_false(w.rig.reports & NDX_REPORT_QUIET);
	assert_int_not_equal(watched_watchers(&w), 0);
	fake_break(rig_native(&w.rig), IBV_WC_WR_FLUSH_ERR);
	assert_true(watched_told(&w)); /* failures are for him, too */
	watched_call(&w, watched_nothing, NULL);
	assert_true(w.rig.reports & NDX_REPORT_QUIET);
	assert_int_equal(watched_watchers(&w), 0); /* and nobody waits any more */
	watched_close(&w);
}

static void a_queue_of_shared_receives_sees_successes(void **state)
{
	const struct ndx_sge sge = {NULL, 0, 1};
	struct ndx_overlapped ov;
	struct ndx_spi_srq *srq = NULL;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.tick = (struct base_timer){.fn = watched_nothing};
	assert_int_equal(verbs_srq_create(&rig.adapter.spi, WATCHED_DEPTH, 2, 2, 0, &srq), NDX_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ndx_srq_receive(&srq->pub, NULL, &sge, 1), NDX_OK);
	rig_connect(&rig, WATCHED_DEPTH, srq);
	ndx_overlapped_init(&ov);
	assert_int_equal(base_ov_begin(&ov, rig.adapter.spi.loop), NDX_OK);
	assert_int_equal(verbs_srq_notify(srq, &ov), NDX_PENDING);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	assert_true(fake_arrive(rig_native(&rig), 8));
	base_loop_call(rig.adapter.spi.loop, watched_events, &rig.adapter);
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
