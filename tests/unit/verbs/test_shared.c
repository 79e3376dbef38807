/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: slots, which queue pair consumed a receive, and the state that a failed
 * device leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_loop.h"
#include "rig.h"

#define DEPTH 4u
#define MAX_POLLS 4u /* polls that start an end: one of the queue, and those that arm it */

static struct ndx_spi_srq *open_shared(struct rig *rig)
{
	struct ndx_spi_srq *srq = NULL;

	assert_int_equal(verbs_srq_create(&rig->adapter.spi,
	                                  &(struct ndx_srq_attr){.depth = DEPTH, .max_sge = 2},
	                                  &srq),
	                 NDX_OK);
	return srq;
}

static enum ndx_status post_receive(struct rig *rig, struct ndx_spi_srq *srq, uintptr_t context)
{
	const struct ndx_sge sge = {rig->memory, sizeof(rig->memory), 1};

	return ndx_srq_receive(&srq->pub, (void *)context, &sge, 1);
}

/* A slot stays in use until the consumer takes the result: a consumer that does not poll loses no
 * result and overruns no queue. */
static void a_slot_is_free_when_its_result_was_taken(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(post_receive(&rig, srq, i), NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(fake_arrive(rig_native(&rig), 8));
	verbs_qp_poll(rig_qp(&rig));
	assert_int_equal(post_receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	rig_expect(&rig, 0, NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 9), NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 10), NDX_E_NO_MORE_ENTRIES);
	for (unsigned i = 1; i < DEPTH; i++)
		rig_expect(&rig, i, NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 9, NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

/* What a consumer on another thread does in the moment in which a result becomes visible. */
static struct {
	struct rig *rig;
	struct ndx_spi_srq *srq;
	enum ndx_status posted;
} consumer;

void __real_ndxp_cq_push(struct ndxp_cq *cq, struct ndxp_queue *queue,
                         const struct ndx_result *result);
void __wrap_ndxp_cq_push(struct ndxp_cq *cq, struct ndxp_queue *queue,
                         const struct ndx_result *result);

void __wrap_ndxp_cq_push(struct ndxp_cq *cq, struct ndxp_queue *queue,
                         const struct ndx_result *result)
{
	struct ndx_result taken;

	__real_ndxp_cq_push(cq, queue, result);
	if (consumer.rig == NULL)
		return;
	assert_int_equal(ndxp_cq_take(cq, &taken, 1), 1);
	consumer.posted = post_receive(consumer.rig, consumer.srq, 9);
}

static void a_slot_is_free_before_its_result_can_be_taken(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(post_receive(&rig, srq, i), NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	consumer.rig = &rig;
	consumer.srq = srq;
	consumer.posted = NDX_PENDING;
	verbs_qp_poll(rig_qp(&rig));
	consumer.rig = NULL;
	assert_int_equal(consumer.posted, NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 10), NDX_E_NO_MORE_ENTRIES);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

/* The results of a closed queue pair stay, and use no slot of the shared queue. */
static void a_queue_pair_that_goes_leaves_receives_and_results(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(post_receive(&rig, srq, i), NDX_OK);
	/* the provider has not polled it before the close */
	assert_true(fake_arrive(rig_native(&rig), 8));
	verbs_qp_destroy(rig.qp);
	rig.qp = NULL;
	assert_int_equal(post_receive(&rig, srq, 9), NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	rig_expect(&rig, 0, NDX_OK);
	rig_expect_none(&rig);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

/* The deadline of each wait; 0: the deadline that the provider computes. */
static uint64_t fixed_deadline;

uint64_t __real_ndxp_deadline(uint32_t ms);
uint64_t __wrap_ndxp_deadline(uint32_t ms);

uint64_t __wrap_ndxp_deadline(uint32_t ms)
{
	return fixed_deadline != 0 ? fixed_deadline : __real_ndxp_deadline(ms);
}

static void finish_conn(void *arg)
{
	verbs_conn_finish(&((struct rig *)arg)->conn.spi);
}

static void read_async_event(void *arg)
{
	verbs_async_on_event(&((struct rig *)arg)->adapter, 0);
}

static void expire_receives_wait(void *arg)
{
	struct rig *rig = arg;

	rig_qp(rig)->receives_until_ns = 1;
	verbs_end_on_timer(&rig->conn);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void stop_timer(void *arg)
{
	struct rig *rig = arg;

	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->conn.timer);
}

/*
 * A message may still arrive in a shared receive. The end waits as a state, so that the control
 * thread can end other connections: until the device reports the last receive, or, without that
 * event, until a time limit.
 */
static void an_end_waits_for_the_last_receive(void **state)
{
	(void)state;
	for (unsigned reports = 0; reports <= 1; reports++) {
		struct rig rig;
		struct ndx_spi_srq *srq;
		struct ndx_loop *loop;
		unsigned long polls;

		rig_open(&rig);
		loop = rig.adapter.spi.loop;
		srq = open_shared(&rig);
		rig_connect(&rig, 8, srq);
		rig.conn.timer.fn = nothing;
		assert_int_equal(post_receive(&rig, srq, 1), NDX_OK);
		polls = rig.device.count[FAKE_POLL_CQ];
		fixed_deadline = UINT64_MAX;
		ndxp_loop_call(loop, finish_conn, &rig);
		fixed_deadline = 0;
		assert_in_range(rig.device.count[FAKE_POLL_CQ] - polls, 1, MAX_POLLS);
		assert_int_equal(rig.reports, 0);
		assert_int_equal(rig.conn.wait, VERBS_WAIT_RECEIVES);
		assert_true(fake_arrive(rig_native(&rig), 8));
		if (reports) {
			fake_raise_event(&rig.device, IBV_EVENT_QP_LAST_WQE_REACHED,
			                 rig_native(&rig));
			ndxp_loop_call(loop, read_async_event, &rig);
			ndxp_loop_call(loop, nothing, NULL);
		} else {
			ndxp_loop_call(loop, expire_receives_wait, &rig);
		}
		assert_int_equal(rig.reports, NDX_REPORT_QUIET);
		rig_expect(&rig, 1, NDX_OK);
		ndxp_loop_call(loop, stop_timer, &rig);
		rig_close(&rig);
		verbs_srq_destroy(srq);
	}
}

/* A queue pair that failed by itself: the event came before the end. */
static void a_last_receive_that_was_reported_before_is_not_awaited(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	fake_raise_event(&rig.device, IBV_EVENT_QP_LAST_WQE_REACHED, rig_native(&rig));
	ndxp_loop_call(rig.adapter.spi.loop, read_async_event, &rig);
	assert_int_equal(rig.reports, 0);
	fixed_deadline = UINT64_MAX;
	ndxp_loop_call(rig.adapter.spi.loop, finish_conn, &rig);
	fixed_deadline = 0;
	assert_int_equal(rig.reports, NDX_REPORT_QUIET);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

static void abort_in_callback(struct ndx_overlapped *ov)
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

/* The control thread handles no event before a callback returns, so a callback waits in place. */
static void an_end_in_a_callback_is_over_when_it_returns(void **state)
{
	struct ndx_overlapped ov;
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	rig.conn.state = VERBS_CONN_UP;
	rig.conn.oob.on = true; /* so that the end makes no call of rdma_cm */
	rig.host.oob_send = ignore_oob_message;
	ndx_overlapped_init(&ov);
	ov.callback = abort_in_callback;
	ov.context = &rig;
	base_loop_callback(rig.adapter.spi.loop, &ov);
	ndxp_loop_call(rig.adapter.spi.loop, nothing, NULL);
	assert_int_equal(ov.information, NDX_REPORT_QUIET);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

static void a_refused_receive_takes_nothing(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		rig.device.refuse_nth[FAKE_POST_SRQ_RECV] = 1;
		assert_int_equal(post_receive(&rig, srq, i), NDX_E_NO_MORE_ENTRIES);
	}
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(post_receive(&rig, srq, i), NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

static void a_queue_that_cannot_grow_stays_as_it_was(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	rig.device.refuse_nth[FAKE_MODIFY_SRQ] = 1;
	assert_int_equal(ndxp_srq_modify(srq, 2 * DEPTH, 0), NDX_E_INSUFFICIENT_RESOURCES);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(post_receive(&rig, srq, i), NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(ndxp_srq_modify(srq, 2 * DEPTH, 0), NDX_OK);
	assert_int_equal(post_receive(&rig, srq, 9), NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_is_free_when_its_result_was_taken),
		cmocka_unit_test(a_slot_is_free_before_its_result_can_be_taken),
		cmocka_unit_test(a_queue_pair_that_goes_leaves_receives_and_results),
		cmocka_unit_test(an_end_waits_for_the_last_receive),
		cmocka_unit_test(a_last_receive_that_was_reported_before_is_not_awaited),
		cmocka_unit_test(an_end_in_a_callback_is_over_when_it_returns),
		cmocka_unit_test(a_refused_receive_takes_nothing),
		cmocka_unit_test(a_queue_that_cannot_grow_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
