/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a queue pair: every request has one result, in order, and no result appears later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_loop.h"
#include "rig.h"
#include "verbs_wr.h"

#define DEPTH 16u

static void kill_qp(struct rig *rig)
{
	struct verbs_qp *qp = rig_qp(rig);

	ndxp_lock_acquire(&qp->base.lock);
	verbs_qp_kill(qp);
	ndxp_lock_release(&qp->base.lock);
	verbs_qp_poll(qp);
}

static bool is_quiet(const struct rig *rig)
{
	return verbs_qp_is_quiet(rig_qp(rig));
}

static void everything_is_cancelled_in_order(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(rig_send(&rig, i, 0), NDX_OK);
		assert_int_equal(rig_receive(&rig, 100 + i), NDX_OK);
	}
	fake_complete_sends(rig_native(&rig), 3);
	kill_qp(&rig);
	assert_true(is_quiet(&rig));
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, i, i < 3 ? NDX_OK : NDX_E_CANCELED);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, 100 + i, NDX_E_CANCELED);
	rig_expect_none(&rig);
	assert_int_equal(rig.reports, 0); /* this end ended the queue pair itself */
	rig_close(&rig);
}

/* An unsignaled request that succeeded has no result; one that was flushed has. */
static void flushed_unsignaled_requests_have_results(void **state)
{
	(void)state;
	for (unsigned ended = 0; ended <= 4; ended++) {
		struct rig rig;

		rig_open(&rig);
		rig_connect(&rig, 32, NULL);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
		assert_int_equal(fake_qp_of(rig_native(&rig))->signalled, 0);
		fake_complete_sends(rig_native(&rig), ended);
		kill_qp(&rig);
		assert_true(is_quiet(&rig));
		for (unsigned i = ended; i < 4; i++)
			rig_expect(&rig, i, NDX_E_CANCELED);
		rig_expect_none(&rig);
		rig_close(&rig);
	}
}

/* An outstanding sweep does not cover the requests that were posted after it. */
static void a_sweep_does_not_cover_later_requests(void **state)
{
	struct rig rig;
	struct verbs_qp *qp;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, 32, NULL);
	qp = rig_qp(&rig);
	assert_int_equal(rig_send(&rig, 1, NDX_OP_SILENT_SUCCESS), NDX_OK);
	ndxp_lock_acquire(&qp->base.lock);
	verbs_wr_post_sweep(qp);
	ndxp_lock_release(&qp->base.lock);
	assert_int_equal(rig_send(&rig, 2, NDX_OP_SILENT_SUCCESS), NDX_OK);
	fake_complete_sends(rig_native(&rig), 3);
	kill_qp(&rig);
	assert_true(is_quiet(&rig));
	rig_expect_none(&rig);
	rig_close(&rig);
}

static void one_failure_cancels_the_rest_and_is_reported(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
	fake_complete_sends(rig_native(&rig), 1);
	fake_break(rig_native(&rig), IBV_WC_RETRY_EXC_ERR);
	rig_expect(&rig, 1, NDX_E_IO_TIMEOUT);
	rig_expect(&rig, 2, NDX_E_CANCELED);
	rig_expect(&rig, 3, NDX_E_CANCELED);
	rig_expect_none(&rig);
	assert_true(rig.reports & NDX_REPORT_ABORT);
	rig_close(&rig);
}

static void abort_in_a_callback(struct ndx_overlapped *ov)
{
	struct rig *rig = ov->context;

	verbs_conn_abort(&rig->conn.spi);
	ov->information = rig->reports;
}

static void ignore_oob_message(struct ndx_spi_conn *conn, enum ndx_spi_oob_message message)
{
	(void)conn;
	(void)message;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* A close in a callback cannot wait as a state: all results are there when the provider returns. */
static void a_slow_device_holds_up_no_callback(void **state)
{
	struct ndx_overlapped ov;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.state = VERBS_CONN_UP;
	rig.conn.oob.on = true; /* so that the end makes no call of rdma_cm */
	rig.host.oob_send = ignore_oob_message;
	rig.device.flushes_late = true;
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig, 2), NDX_OK);
	ndx_overlapped_init(&ov);
	ov.callback = abort_in_a_callback;
	ov.context = &rig;
	base_loop_callback(rig.adapter.spi.loop, &ov);
	ndxp_loop_call(rig.adapter.spi.loop, nothing, NULL);
	assert_true(ov.information & NDX_REPORT_QUIET);
	rig_expect(&rig, 1, NDX_E_CANCELED);
	rig_expect(&rig, 2, NDX_E_CANCELED);
	rig_expect_none(&rig);
	rig_close(&rig);
}

/* The drain may start before or after the provider reads the failure. In both orders the connection
 * aborts: a goodbye would claim that all requests have arrived. */
static void a_failure_is_no_drain(void **state)
{
	(void)state;
	for (unsigned drains_first = 0; drains_first < 2; drains_first++) {
		struct rig rig;

		rig_open(&rig);
		rig_connect(&rig, DEPTH, NULL);
		assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
		if (drains_first)
			verbs_conn_drain(&rig.conn.spi);
		fake_break(rig_native(&rig), IBV_WC_LOC_PROT_ERR);
		verbs_qp_poll(rig_qp(&rig));
		if (!drains_first)
			verbs_conn_drain(&rig.conn.spi);
		assert_int_equal(rig.reports, NDX_REPORT_ABORT);
		rig_expect(&rig, 1, NDX_E_ACCESS_VIOLATION);
		rig_close(&rig);
	}
}

/* A completion queue of depth 2 with a queue pair of depth 16: the native completion queue has room
 * for all flushed requests. */
static void small_queues_are_not_overrun(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(rig.cq->depth, 2);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
		assert_int_equal(rig_receive(&rig, 100 + i), NDX_OK);
	}
	/* no poll between the posts and the flush */
	ndxp_lock_acquire(&rig_qp(&rig)->base.lock);
	verbs_qp_kill(rig_qp(&rig));
	ndxp_lock_release(&rig_qp(&rig)->base.lock);
	assert_false(fake_cq_of(verbs_cq_of(&rig.cq->pub)->native)->overrun);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, i, NDX_E_CANCELED);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, 100 + i, NDX_E_CANCELED);
	rig_close(&rig);
}

static void a_queue_that_cannot_grow_takes_no_queue_pair(void **state)
{
	struct rig rig;
	struct ndx_qp_attr attr;
	struct ndx_spi_qp *qp = NULL;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	attr = rig.qp->attr;
	attr.initiator_depth = 4096;
	rig.device.refuse_nth[FAKE_RESIZE_CQ] = 1;
	assert_int_equal(verbs_qp_create(&rig.adapter.spi, &attr, &qp),
	                 NDX_E_INSUFFICIENT_RESOURCES);
	rig.device.refuse_nth[FAKE_CREATE_QP] = 1;
	assert_int_equal(verbs_qp_create(&rig.adapter.spi, &attr, &qp),
	                 NDX_E_INSUFFICIENT_RESOURCES);
	assert_null(qp);
	assert_int_equal(verbs_cq_of(&rig.cq->pub)->room,
	                 2 * DEPTH + VERBS_FIRST_RECEIVES + VERBS_CONTROLS);
	rig_close(&rig);
}

/* If a device loses completions, every waiting consumer receives the error. */
static void an_overrun_is_reported(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(verbs_cq_notify(rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL), NDX_PENDING);
	fake_raise_event(&rig.device, IBV_EVENT_CQ_ERR, verbs_cq_of(&rig.cq->pub)->native);
	verbs_async_on_event(&rig.adapter, 0);
	assert_int_equal(verbs_cq_notify(rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL),
	                 NDX_E_BUFFER_OVERFLOW);
	rig_close(&rig);
}

/* Software RoCE never flushes a receive that is posted in ERR, so the provider does not post it. */
static void a_receive_after_the_end_is_cancelled_at_once(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.drops_late_receives = true;
	rig_connect(&rig, DEPTH, NULL);
	kill_qp(&rig);
	rig.device.count[FAKE_POST_RECV] = 0;
	assert_int_equal(rig_receive(&rig, 7), NDX_OK);
	assert_int_equal(rig.device.count[FAKE_POST_RECV], 0);
	rig_expect(&rig, 7, NDX_E_CANCELED);
	assert_true(is_quiet(&rig));
	rig_close(&rig);
}

/* A receive may race with a failure that the provider has not read yet. A second change to ERR
 * flushes the receive. */
static void a_receive_that_the_device_forgot_is_flushed(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.drops_late_receives = true;
	rig_connect(&rig, DEPTH, NULL);
	fake_break(rig_native(&rig), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(rig_receive(&rig, 7), NDX_OK);
	verbs_qp_poll(rig_qp(&rig));
	assert_false(is_quiet(&rig));
	kill_qp(&rig);
	assert_true(is_quiet(&rig));
	rig_expect(&rig, 7, NDX_E_CANCELED);
	rig_expect_none(&rig);
	rig_close(&rig);
}

static void a_failed_queue_pair_is_reported_without_requests(void **state)
{
	static const enum ibv_event_type events[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
	                                             IBV_EVENT_QP_ACCESS_ERR};

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct rig rig;

		rig_open(&rig);
		rig_connect(&rig, DEPTH, NULL);
		fake_raise_event(&rig.device, events[i], rig_native(&rig));
		verbs_async_on_event(&rig.adapter, 0);
		assert_int_equal(rig.reports, NDX_REPORT_ABORT);
		rig_close(&rig);
	}
}

static void run_watchdog(void *arg)
{
	for (unsigned i = 0; i < 20; i++)
		verbs_watch_on_timer(arg);
	verbs_watch_end(arg);
}

/* Software RoCE raises no event: the watchdog queries the state. */
static void a_failed_queue_pair_is_found_without_events(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.adapter.soft_roce = true;
	rig.conn.watchdog = (struct ndxp_timer){.fn = verbs_watch_on_timer, .arg = &rig.conn};
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig.conn);
	assert_int_equal(rig.reports, 0);
	rig_native(&rig)->state = IBV_QPS_ERR;
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig.conn);
	assert_int_equal(rig.reports, NDX_REPORT_ABORT);
	rig.adapter.soft_roce = false;
	rig_close(&rig);
}

static void a_lost_device_is_reported_to_every_queue_pair(void **state)
{
	struct rig rig;
	struct ndx_spi_cq *cq = NULL;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.state = VERBS_CONN_UP;
	ndxp_list_add(&rig.adapter.conns, &rig.conn.node);
	assert_int_equal(verbs_cq_notify(rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL), NDX_PENDING);
	fake_raise_event(&rig.device, IBV_EVENT_DEVICE_FATAL, NULL);
	verbs_async_on_event(&rig.adapter, 0);
	assert_int_equal(rig.reports, NDX_REPORT_ABORT);
	fake_raise_event(&rig.device, IBV_EVENT_DEVICE_FATAL, NULL);
	verbs_async_on_event(&rig.adapter, 0);
	assert_int_equal(rig.event_count, 1); /* it is lost only once */
	assert_int_equal(rig.event.type, NDX_ADAPTER_EVENT_DEVICE_REMOVED);
	assert_int_equal(rig.event.port, 0);
	assert_int_equal(rig.event.native, IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(verbs_cq_notify(rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL), NDX_E_DEVICE_REMOVED);
	rig.device.refuse_nth[FAKE_CREATE_CQ] = 1;
	assert_int_equal(verbs_cq_create(&rig.adapter.spi, &(struct ndx_cq_attr){.depth = 8}, &cq),
	                 NDX_E_DEVICE_REMOVED);
	rig_close(&rig);
}

static void events_of_the_own_port_are_reported(void **state)
{
	static const struct {
		enum ibv_event_type native;
		enum ndx_adapter_event_type type;
		const char *text;
	} cases[] = {
		{IBV_EVENT_PORT_ERR, NDX_ADAPTER_EVENT_PORT_DOWN, "port 2 is down"},
		{IBV_EVENT_PORT_ACTIVE, NDX_ADAPTER_EVENT_PORT_UP, "port 2 is up"},
		{IBV_EVENT_LID_CHANGE, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "LID"},
		{IBV_EVENT_GID_CHANGE, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "GIDs"},
		{IBV_EVENT_PKEY_CHANGE, NDX_ADAPTER_EVENT_SUBNET_CHANGE, "partition"},
		{IBV_EVENT_SM_CHANGE, NDX_ADAPTER_EVENT_SUBNET_CHANGE, "another subnet manager"},
		{IBV_EVENT_CLIENT_REREGISTER, NDX_ADAPTER_EVENT_SUBNET_CHANGE, "register anew"},
	};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.options.port = 2;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_raise_port_event(&rig.device, cases[i].native, 1); /* another port */
		verbs_async_on_event(&rig.adapter, 0);
		assert_int_equal(rig.event_count, i);
		fake_raise_port_event(&rig.device, cases[i].native, 2);
		verbs_async_on_event(&rig.adapter, 0);
		assert_int_equal(rig.event_count, i + 1);
		assert_int_equal(rig.event.type, cases[i].type);
		assert_int_equal(rig.event.port, 2);
		assert_int_equal(rig.event.native, cases[i].native);
		assert_non_null(strstr(rig.event.text, cases[i].text));
	}
	ndxp_timer_cancel(rig.adapter.spi.loop, &rig.adapter.port_down);
	rig_close(&rig);
}

/* A port that becomes active again soon ends no connection. */
static void a_port_that_stays_down_ends_connections(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.state = VERBS_CONN_UP;
	rig.adapter.options.port = 1;
	rig.adapter.port_down = (struct ndxp_timer){.fn = verbs_port_on_timer, .arg = &rig.adapter};
	ndxp_list_add(&rig.adapter.conns, &rig.conn.node);
	fake_raise_port_event(&rig.device, IBV_EVENT_PORT_ERR, 2);
	verbs_async_on_event(&rig.adapter, 0);
	assert_false(rig.adapter.port_down.armed);
	fake_raise_port_event(&rig.device, IBV_EVENT_PORT_ERR, 1);
	verbs_async_on_event(&rig.adapter, 0);
	assert_true(rig.adapter.port_down.armed);
	fake_raise_port_event(&rig.device, IBV_EVENT_PORT_ACTIVE, 1);
	verbs_async_on_event(&rig.adapter, 0);
	assert_false(rig.adapter.port_down.armed);
	assert_int_equal(rig.reports, 0);
	verbs_port_on_timer(&rig.adapter);
	assert_int_equal(rig.reports, NDX_REPORT_ABORT);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_cancelled_in_order),
		cmocka_unit_test(flushed_unsignaled_requests_have_results),
		cmocka_unit_test(a_sweep_does_not_cover_later_requests),
		cmocka_unit_test(one_failure_cancels_the_rest_and_is_reported),
		cmocka_unit_test(a_slow_device_holds_up_no_callback),
		cmocka_unit_test(a_failure_is_no_drain),
		cmocka_unit_test(small_queues_are_not_overrun),
		cmocka_unit_test(a_queue_that_cannot_grow_takes_no_queue_pair),
		cmocka_unit_test(an_overrun_is_reported),
		cmocka_unit_test(a_receive_after_the_end_is_cancelled_at_once),
		cmocka_unit_test(a_receive_that_the_device_forgot_is_flushed),
		cmocka_unit_test(a_failed_queue_pair_is_reported_without_requests),
		cmocka_unit_test(a_failed_queue_pair_is_found_without_events),
		cmocka_unit_test(a_lost_device_is_reported_to_every_queue_pair),
		cmocka_unit_test(events_of_the_own_port_are_reported),
		cmocka_unit_test(a_port_that_stays_down_ends_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
