/* SPDX-License-Identifier: BSD-2-Clause */
/* Software RoCE, whose completions come out of order; and how often the control thread polls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

#define DEPTH 16u

static void open_software(struct rig *rig)
{
	rig_open(rig);
	rig->adapter.soft_roce = true;
	rig_connect(rig, DEPTH, NULL);
}

static void close_software(struct rig *rig)
{
	rig->adapter.soft_roce = false;
	rig_close(rig);
}

static uint64_t direct_results(const struct rig *rig)
{
	return verbs_cq_of(&rig->cq->pub)->base.direct;
}

static void nothing_outstanding_nothing_held(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig, 2), NDX_OK);
	fake_complete_sends(rig_native(&rig), 1);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 1, NDX_OK);
	rig_expect(&rig, 2, NDX_OK);
	rig_expect_none(&rig);
	assert_int_equal(direct_results(&rig), 2);
	close_software(&rig);
}

static void an_answer_comes_behind_what_it_answers(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	for (unsigned round = 0; round < 3; round++) {
		/* one poll finds both completions, or each poll one */
		rig.device.batch = round;
		assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
		assert_int_equal(rig_receive(&rig, 2), NDX_OK);
		assert_int_equal(rig_receive(&rig, 3), NDX_OK);
		assert_true(fake_arrive(rig_native(&rig), 8));
		fake_complete_sends(rig_native(&rig), 1);
		assert_true(fake_arrive(rig_native(&rig), 8));
		rig_expect(&rig, 1, NDX_OK);
		rig_expect(&rig, 2, NDX_OK);
		rig_expect(&rig, 3, NDX_OK);
		rig_expect_none(&rig);
	}
	close_software(&rig);
}

static void all_of_a_batch_keeps_its_order(void **state)
{
	struct ndx_result results[8];
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 0, 0), NDX_OK);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	for (unsigned i = 2; i < 5; i++)
		assert_int_equal(rig_receive(&rig, i), NDX_OK);
	/* delivered directly; the rest goes through the stash */
	fake_complete_sends(rig_native(&rig), 1);
	for (unsigned i = 2; i < 5; i++)
		assert_true(fake_arrive(rig_native(&rig), 8));
	fake_complete_sends(rig_native(&rig), 1);
	assert_int_equal(ndx_cq_get_results(&rig.cq->pub, results, 8), 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal((uintptr_t)results[i].request_context, i);
	close_software(&rig);
}

/* A send may wait for the peer's receive: results that arrive in this time are held back only for a
 * short time. */
static void a_waiting_send_holds_results_back_only_briefly(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig, 2), NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 2, NDX_OK);
	fake_complete_sends(rig_native(&rig), 1);
	rig_expect(&rig, 1, NDX_OK);
	close_software(&rig);
}

/* Software RoCE flushes a request with bad memory instead of failing it: its SGE list shows the
 * violation. */
static void the_sge_list_of_a_failed_request_is_checked(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK); /* the token belongs to no region */
	assert_int_equal(rig_send(&rig, 2, 0), NDX_OK);
	fake_break(rig_native(&rig), IBV_WC_WR_FLUSH_ERR);
	rig_expect(&rig, 1, NDX_E_ACCESS_VIOLATION);
	rig_expect(&rig, 2, NDX_E_CANCELED);
	close_software(&rig);
}

/* ---- which thread polls ---- */

#define TICKS 4u

/* What the control thread did. Only the test's own thread may fail the test, so the results go
 * there. */
struct ticks {
	struct rig *rig;
	uint32_t ms[TICKS];
	uint32_t mode[TICKS + 1];
	bool rearmed[TICKS + 1];
};

static void run_ticks(void *arg)
{
	struct ticks *ticks = arg;
	struct verbs_adapter *adapter = &ticks->rig->adapter;
	struct verbs_cq *cq = verbs_cq_of(&ticks->rig->cq->pub);
	struct ndx_result result;

	cq->mode = VERBS_CQ_AWAY;
	adapter->tick_ms = 2;
	for (size_t i = 0; i <= TICKS; i++) {
		ndxp_timer_cancel(adapter->spi.loop, &adapter->tick);
		if (i < TICKS) /* then the consumer stops polling */
			(void)ndx_cq_get_results(&ticks->rig->cq->pub, &result, 1);
		verbs_cq_on_tick(adapter);
		if (i < TICKS)
			ticks->ms[i] = adapter->tick_ms;
		ticks->mode[i] = cq->mode;
		ticks->rearmed[i] = adapter->tick.armed;
	}
}

static void a_consumer_that_polls_on_is_checked_less_and_less_often(void **state)
{
	static const uint32_t ms[TICKS] = {4, 8, 16, 16};
	struct ticks ticks = {0};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.tick = (struct ndxp_timer){.fn = verbs_cq_on_tick, .arg = &rig.adapter};
	ticks.rig = &rig;
	ndxp_loop_call(rig.adapter.spi.loop, run_ticks, &ticks);
	for (size_t i = 0; i < TICKS; i++) {
		assert_int_equal(ticks.ms[i], ms[i]);
		assert_int_equal(ticks.mode[i], VERBS_CQ_AWAY);
		assert_true(ticks.rearmed[i]);
	}
	assert_int_equal(ticks.mode[TICKS], VERBS_CQ_SOLICITED);
	assert_false(ticks.rearmed[TICKS]);
	rig_close(&rig);
}

static void start_drain(void *arg)
{
	verbs_conn_drain(arg);
}

/* A consumer that has polled, and now waits for the disconnect, does not wait for the next tick as
 * well. */
static void a_drain_arms_the_queue(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	verbs_cq_of(&rig.cq->pub)->mode = VERBS_CQ_AWAY;
	rig_expect_none(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	rig.device.count[FAKE_ARM_CQ] = 0;
	ndxp_loop_call(rig.adapter.spi.loop, start_drain, &rig.conn.spi);
	assert_int_equal(verbs_cq_of(&rig.cq->pub)->mode, VERBS_CQ_ARMED);
	assert_int_equal(rig.device.count[FAKE_ARM_CQ], 1);
	fake_complete_sends(rig_native(&rig), 1);
	rig_expect(&rig, 1, NDX_OK);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_outstanding_nothing_held),
		cmocka_unit_test(an_answer_comes_behind_what_it_answers),
		cmocka_unit_test(all_of_a_batch_keeps_its_order),
		cmocka_unit_test(a_waiting_send_holds_results_back_only_briefly),
		cmocka_unit_test(the_sge_list_of_a_failed_request_is_checked),
		cmocka_unit_test(a_consumer_that_polls_on_is_checked_less_and_less_often),
		cmocka_unit_test(a_drain_arms_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
