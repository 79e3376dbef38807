/* SPDX-License-Identifier: BSD-2-Clause */
/* Software RoCE, whose completions come out of order; and how often the control thread looks. */
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

static uint64_t direct(const struct rig *rig)
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
	fake_run(rig_native(&rig), 1);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 1, NDX_OK);
	rig_expect(&rig, 2, NDX_OK);
	rig_expect_none(&rig);
	assert_int_equal(direct(&rig), 2);
	close_software(&rig);
}

static void an_answer_comes_behind_what_it_answers(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	for (unsigned round = 0; round < 3; round++) {
		/* one poll finds them both, or one each */
		rig.device.batch = round;
		assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
		assert_int_equal(rig_receive(&rig, 2), NDX_OK);
		assert_int_equal(rig_receive(&rig, 3), NDX_OK);
		assert_true(fake_arrive(rig_native(&rig), 8));
		fake_run(rig_native(&rig), 1);
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
	fake_run(rig_native(&rig), 1); /* the short way, the rest the long one */
	for (unsigned i = 2; i < 5; i++)
		assert_true(fake_arrive(rig_native(&rig), 8));
	fake_run(rig_native(&rig), 1);
	assert_int_equal(ndx_cq_get_results(&rig.cq->pub, results, 8), 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal((uintptr_t)results[i].request_context, i);
	close_software(&rig);
}

/* A send may wait for the peer's receive: what comes meanwhile is not held for ever. */
static void a_send_that_waits_holds_nothing_for_long(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig, 2), NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 2, NDX_OK);
	fake_run(rig_native(&rig), 1);
	rig_expect(&rig, 1, NDX_OK);
	close_software(&rig);
}

/* It says of a request with bad memory that it was cancelled: its list tells. */
static void the_list_of_a_failed_request_is_known(void **state)
{
	struct rig rig;

	(void)state;
	open_software(&rig);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK); /* of no region that there is */
	assert_int_equal(rig_send(&rig, 2, 0), NDX_OK);
	fake_break(rig_native(&rig), IBV_WC_WR_FLUSH_ERR);
	rig_expect(&rig, 1, NDX_E_ACCESS_VIOLATION);
	rig_expect(&rig, 2, NDX_E_CANCELED);
	close_software(&rig);
}

/* ---- who reads ---- */

#define LOOKS 4u

/* What the control thread did; told to the test's own, which alone may fail it. */
struct looks {
	struct rig *rig;
	uint32_t ms[LOOKS];
	uint32_t mode[LOOKS + 1];
	bool again[LOOKS + 1];
};

static void look_again_and_again(void *arg)
{
	struct looks *looks = arg;
	struct verbs_adapter *adapter = &looks->rig->adapter;
	struct verbs_cq *cq = verbs_cq_of(&looks->rig->cq->pub);
	struct ndx_result result;

	cq->mode = VERBS_CQ_AWAY;
	adapter->tick_ms = 2;
	for (size_t i = 0; i <= LOOKS; i++) {
		base_timer_cancel(adapter->spi.loop, &adapter->tick);
		if (i < LOOKS) /* then it polls no more */
			(void)ndx_cq_get_results(&looks->rig->cq->pub, &result, 1);
		verbs_cq_on_tick(adapter);
		if (i < LOOKS)
			looks->ms[i] = adapter->tick_ms;
		looks->mode[i] = cq->mode;
		looks->again[i] = adapter->tick.armed;
	}
}

static void a_consumer_that_polls_on_is_checked_less_and_less_often(void **state)
{
	static const uint32_t ms[LOOKS] = {4, 8, 16, 16};
	struct looks looks = {0};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.tick = (struct base_timer){.fn = verbs_cq_on_tick, .arg = &rig.adapter};
	looks.rig = &rig;
	base_loop_call(rig.adapter.spi.loop, look_again_and_again, &looks);
	for (size_t i = 0; i < LOOKS; i++) {
		assert_int_equal(looks.ms[i], ms[i]);
		assert_int_equal(looks.mode[i], VERBS_CQ_AWAY);
		assert_true(looks.again[i]);
	}
	assert_int_equal(looks.mode[LOOKS], VERBS_CQ_SOLICITED);
	assert_false(looks.again[LOOKS]);
	rig_close(&rig);
}

static void drain(void *arg)
{
	verbs_conn_drain(arg);
}

/* Who has polled, and now waits for the disconnect, need not wait for the next look as well. */
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
	base_loop_call(rig.adapter.spi.loop, drain, &rig.conn.spi);
	assert_int_equal(verbs_cq_of(&rig.cq->pub)->mode, VERBS_CQ_ARMED);
	assert_int_equal(rig.device.count[FAKE_ARM_CQ], 1);
	fake_run(rig_native(&rig), 1);
	rig_expect(&rig, 1, NDX_OK);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_outstanding_nothing_held),
		cmocka_unit_test(an_answer_comes_behind_what_it_answers),
		cmocka_unit_test(all_of_a_batch_keeps_its_order),
		cmocka_unit_test(a_send_that_waits_holds_nothing_for_long),
		cmocka_unit_test(the_list_of_a_failed_request_is_known),
		cmocka_unit_test(a_consumer_that_polls_on_is_checked_less_and_less_often),
		cmocka_unit_test(a_drain_arms_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
