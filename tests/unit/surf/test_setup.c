/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring-up and clean-up, counted request by request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "setup.h"
#include "surf_fpga.h"

#define STEPS 6u
#define STEP_MS 200u

static struct surf_fpga fpga;
static struct surf_bus bus;
static struct surf_setup setup;
static struct surf_connection connection;
static char why[200];

static unsigned logged[NDX_LOG_DEBUG + 1];
static unsigned logged_late;
static char last_warning[200];
static char last_error[200];

static void line(void *to, enum ndx_log_level level, const char *text)
{
	(void)to;
	logged[level]++;
	logged_late += strstr(text, "the time for the clean-up is over") != NULL;
	if (level == NDX_LOG_WARN)
		(void)snprintf(last_warning, sizeof(last_warning), "%s", text);
	if (level == NDX_LOG_ERROR)
		(void)snprintf(last_error, sizeof(last_error), "%s", text);
}

static const struct surf_log to_log = {.line = line};

/* In the order of a bring-up; how many requests there are in all if that step fails. */
static const struct {
	const char *name;
	unsigned requests;
	enum ndx_status refused;
} steps[STEPS] = {
	{"PD alloc", 1, NDX_E_INSUFFICIENT_RESOURCES},
	{"MR alloc", 3, NDX_E_INSUFFICIENT_RESOURCES},
	{"QP create", 5, NDX_E_INSUFFICIENT_RESOURCES},
	{"QP to INIT", 8, NDX_E_REMOTE_ERROR},
	{"QP to RTR", 9, NDX_E_REMOTE_ERROR},
	{"QP to RTS", 10, NDX_E_REMOTE_ERROR},
};

static int fresh(void **state)
{
	(void)state;
	memset(&fpga, 0, sizeof(fpga));
	memset(&connection, 0, sizeof(connection));
	memset(why, 0, sizeof(why));
	memset(logged, 0, sizeof(logged));
	logged_late = 0;
	memset(last_warning, 0, sizeof(last_warning));
	memset(last_error, 0, sizeof(last_error));
	bus = (struct surf_bus){.ops = &surf_fpga_ops, .state = &fpga};
	if (surf_setup_init(&setup) != NDX_OK)
		return -1;
	setup.host_qpn = 0x11;
	setup.rq_psn = 0x22;
	setup.sq_psn = 0x33;
	setup.mr_address = 0x7f0012345000;
	setup.mr_length = 0x230000;
	setup.pmtu = 5;
	setup.step_ms = STEP_MS;
	return 0;
}

static enum ndx_status bring_up(void)
{
	return surf_bring_up(&bus, &to_log, &setup, &connection, why, sizeof(why));
}

static unsigned tear_down(void)
{
	return surf_tear_down(&bus, &to_log, &connection);
}

static void assert_fpga_is_empty(void)
{
	assert_false(fpga.pd.used);
	assert_false(fpga.qp.used);
	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		assert_false(fpga.mr[i].used);
}

static void assert_nothing_came_out(void)
{
	const struct surf_connection nothing = {.qpn = 0};

	assert_memory_equal(&connection, &nothing, sizeof(nothing));
}

static void assert_is_free_of_mr_and_pd(unsigned first)
{
	assert_int_equal(fpga.asked[first].type, SURF_MR);
	assert_int_equal(fpga.asked[first].mr.alloc, 0);
	assert_int_equal(fpga.asked[first + 1].type, SURF_PD);
	assert_int_equal(fpga.asked[first + 1].pd.alloc, 0);
}

static void assert_is_drop_of_qp(unsigned first)
{
	const struct surf_qp_message *to_err = &fpga.asked[first].qp;

	assert_int_equal(fpga.asked[first].type, SURF_QP);
	assert_int_equal(to_err->request, SURF_QP_MODIFY);
	assert_int_equal(to_err->attr_mask, SURF_ATTR_STATE);
	assert_int_equal(to_err->attributes.state, SURF_ERR);
	assert_int_equal(to_err->attributes.pmtu, 1);
	assert_int_equal(fpga.asked[first + 1].qp.request, SURF_QP_DESTROY);
}

static void six_requests_make_a_queue_pair_in_rts(void **state)
{
	const struct surf_request *asked = fpga.asked;

	(void)state;
	assert_int_equal(bring_up(), NDX_OK);
	assert_int_equal(fpga.requests, 6);
	assert_int_equal(fpga.resets, 1);
	assert_int_equal(fpga.writes, 3 + 6 * 13);
	assert_int_equal(logged[NDX_LOG_WARN] + logged[NDX_LOG_ERROR], 0);

	assert_int_equal(asked[0].type, SURF_PD);
	assert_int_equal(asked[0].pd.alloc, 1);
	assert_int_equal(asked[0].pd.key, setup.pd_key);
	assert_int_equal(asked[1].type, SURF_MR);
	assert_int_equal(asked[1].mr.alloc, 1);
	assert_int_equal(asked[1].mr.region.laddr, 0x7f0012345000);
	assert_int_equal(asked[1].mr.region.length, 0x230000);
	assert_int_equal(asked[1].mr.region.access, 0x0f);
	assert_int_equal(asked[1].mr.region.pd_handler, setup.pd_key);
	assert_int_equal(asked[1].mr.region.lkey_part, setup.lkey_part);
	assert_int_equal(asked[1].mr.region.rkey_part, setup.rkey_part);
	assert_int_equal(asked[2].qp.request, SURF_QP_CREATE);
	assert_int_equal(asked[2].qp.attributes.type, 2);
	assert_int_equal(asked[3].qp.attr_mask, 1 | 8 | 16);
	assert_int_equal(asked[4].qp.attr_mask, 1 | 256 | 4096 | 32768 | 131072 | 1048576);
	assert_int_equal(asked[5].qp.attr_mask, 1 | 512 | 1024 | 2048 | 8192 | 65536);

	assert_true(connection.has_pd && connection.has_mr && connection.has_qp);
	assert_int_equal(connection.pd_handler, setup.pd_key);
	assert_int_equal(connection.lkey, fpga.mr[0].lkey);
	assert_int_equal(connection.rkey, fpga.mr[0].rkey);
	assert_int_equal(connection.qpn, fpga.qp.qpn);
}

static void the_fpga_has_what_it_was_told(void **state)
{
	const struct surf_attributes *has = &fpga.qp.attributes;

	(void)state;
	setup.rnr_retry = 6;
	setup.retry_count = 5;
	setup.timeout = 17;
	setup.min_rnr_timer = 12;
	assert_int_equal(bring_up(), NDX_OK);
	assert_int_equal(has->state, SURF_RTS);
	assert_int_equal(has->dest_qpn, 0x11);
	assert_int_equal(has->rq_psn, 0x22);
	assert_int_equal(has->sq_psn, 0x33);
	assert_int_equal(has->pmtu, 5);
	assert_int_equal(has->access, 0x0e);
	assert_int_equal(has->pkey, 0xffff);
	assert_int_equal(has->max_rd_atomic, 16);
	assert_int_equal(has->max_dest_rd, 16);
	assert_int_equal(has->rnr_retry, 6);
	assert_int_equal(has->retry_count, 5);
	assert_int_equal(has->timeout, 17);
	assert_int_equal(has->min_rnr_timer, 12);
	assert_int_equal(fpga.asked[4].qp.attributes.cap, UINT64_C(0x2020010100));
}

static void fail_step(unsigned step, enum surf_fault fault, enum ndx_status wanted)
{
	(void)fresh(NULL);
	fpga.faults[step] = fault;
	assert_int_equal(bring_up(), wanted);
	/* A stuck FPGA sees none of the rest. */
	assert_int_equal(fpga.requests + fpga.lost, steps[step].requests);
	assert_non_null(strstr(why, steps[step].name));
	assert_string_equal(last_error, why);
	assert_int_equal(logged[NDX_LOG_ERROR], 1);
	assert_nothing_came_out();
	(void)memset(fpga.faults, 0, sizeof(fpga.faults));
	assert_int_equal(bring_up(), NDX_OK);
}

static void a_step_that_is_refused_takes_back_those_before(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++) {
		(void)fresh(NULL);
		fpga.faults[step] = SURF_FAULT_REFUSE;
		assert_int_equal(bring_up(), steps[step].refused);
		assert_int_equal(fpga.requests, steps[step].requests);
		assert_fpga_is_empty();
		assert_int_equal(fpga.resets, 1);
		assert_int_equal(logged[NDX_LOG_WARN], 0);
		if (step >= 3)
			assert_is_drop_of_qp(step + 1);
		if (step >= 2)
			assert_is_free_of_mr_and_pd(steps[step].requests - 2);
		fail_step(step, SURF_FAULT_REFUSE, steps[step].refused);
	}
}

static void a_wrong_state_counts_as_refused(void **state)
{
	(void)state;
	for (unsigned step = 3; step < STEPS; step++) {
		fail_step(step, SURF_FAULT_LIE, NDX_E_REMOTE_ERROR);
		(void)fresh(NULL);
		fpga.faults[step] = SURF_FAULT_LIE;
		assert_int_equal(bring_up(), NDX_E_REMOTE_ERROR);
		assert_non_null(strstr(why, "is in state SQD"));
		assert_fpga_is_empty();
	}
}

static void a_refused_state_tells_the_true_one(void **state)
{
	(void)state;
	fpga.faults[4] = SURF_FAULT_REFUSE;
	assert_int_equal(bring_up(), NDX_E_REMOTE_ERROR);
	assert_string_equal(why, "QP to RTR: the FPGA refuses; the queue pair is in state INIT");
}

static void an_answer_of_another_type_fails_its_step(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++)
		fail_step(step, SURF_FAULT_OTHER_TYPE, NDX_E_REMOTE_ERROR);
}

static void a_step_without_an_answer_fails_in_time(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++) {
		fail_step(step, SURF_FAULT_MUTE, NDX_E_IO_TIMEOUT);
		fail_step(step, SURF_FAULT_WEDGE, NDX_E_IO_TIMEOUT);
	}
}

static void a_clean_up_that_fails_keeps_the_first_error(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned undone = steps[step].requests - step - 1;

		(void)fresh(NULL);
		fpga.faults[step] = SURF_FAULT_REFUSE;
		for (unsigned i = step + 1; i < SURF_FPGA_REQUESTS; i++)
			fpga.faults[i] = SURF_FAULT_MUTE;
		assert_int_equal(bring_up(), steps[step].refused);
		assert_int_equal(fpga.requests, steps[step].requests);
		assert_non_null(strstr(why, steps[step].name));
		assert_non_null(strstr(why, "refuses"));
		/* One line for each, and one for the soft reset. */
		assert_int_equal(logged[NDX_LOG_WARN], undone > 0 ? undone + 1 : 0);
		assert_int_equal(fpga.resets, undone > 0 ? 2 : 1);
		/* 150 ms for a soft reset; a step of the clean-up takes no longer than any other.
		 */
		assert_in_range(fpga.now, 0, 2 * 150 + fpga.requests * STEP_MS);
		assert_fpga_is_empty();
	}
}

static void refused(uint64_t *value, uint64_t bad, const char *name)
{
	*value = bad;
	assert_int_equal(bring_up(), NDX_E_INVALID_PARAMETER);
	assert_ptr_equal(strstr(why, name), why);
	assert_int_equal(fpga.accesses, 0);
	assert_int_equal(fpga.resets, 0);
	assert_nothing_came_out();
	(void)fresh(NULL);
}

static void what_is_out_of_range_touches_no_register(void **state)
{
	const uint64_t minus_1 = UINT64_MAX;

	(void)state;
	refused(&setup.mr_length, UINT64_C(1) << 32, "mr_length");
	refused(&setup.mr_length, minus_1, "mr_length");
	refused(&setup.mr_length, 0, "mr_length");
	refused(&setup.mr_address, minus_1 - 0x1000, "mr_address");
	refused(&setup.host_qpn, 1u << 24, "host_qpn");
	refused(&setup.host_qpn, minus_1, "host_qpn");
	refused(&setup.host_qpn, 0, "host_qpn");
	refused(&setup.rq_psn, 1u << 24, "rq_psn");
	refused(&setup.rq_psn, minus_1, "rq_psn");
	refused(&setup.sq_psn, 1u << 24, "sq_psn");
	refused(&setup.sq_psn, minus_1, "sq_psn");
	refused(&setup.pmtu, 0, "pmtu");
	refused(&setup.pmtu, 6, "pmtu");
	refused(&setup.pmtu, 4096, "pmtu");
	refused(&setup.min_rnr_timer, 32, "min_rnr_timer");
	refused(&setup.timeout, 32, "timeout");
	refused(&setup.retry_count, 8, "retry_count");
	refused(&setup.rnr_retry, 8, "rnr_retry");
	refused(&setup.pd_key, UINT64_C(1) << 32, "pd_key");
	refused(&setup.lkey_part, 1u << 31, "lkey_part");
	refused(&setup.rkey_part, 1u << 31, "rkey_part");
}

static void the_largest_of_each_is_taken(void **state)
{
	(void)state;
	setup.mr_length = UINT32_MAX;
	setup.mr_address = UINT64_MAX - UINT32_MAX + 1;
	setup.host_qpn = 0xffffff;
	setup.rq_psn = 0xffffff;
	setup.sq_psn = 0xffffff;
	setup.pmtu = 5;
	setup.min_rnr_timer = 31;
	setup.timeout = 31;
	setup.retry_count = 7;
	setup.rnr_retry = 7;
	setup.pd_key = UINT32_MAX;
	setup.lkey_part = 0x7fffffff;
	setup.rkey_part = 0x7fffffff;
	assert_int_equal(bring_up(), NDX_OK);
	assert_int_equal(fpga.mr[0].region.length, UINT32_MAX);
	assert_int_equal(fpga.qp.attributes.sq_psn, 0xffffff);
	assert_int_equal(tear_down(), 0);
	assert_fpga_is_empty();
}

static void keys_are_random_and_fit(void **state)
{
	struct surf_setup other;

	(void)state;
	assert_int_equal(surf_setup_init(&other), NDX_OK);
	assert_false(other.pd_key == setup.pd_key && other.lkey_part == setup.lkey_part &&
	             other.rkey_part == setup.rkey_part);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(surf_setup_init(&other), NDX_OK);
		assert_in_range(other.pd_key, 0, UINT32_MAX);
		assert_in_range(other.lkey_part, 0, 0x7fffffff);
		assert_in_range(other.rkey_part, 0, 0x7fffffff);
	}
}

/* Connected, and the FPGA's counts from here on. */
static void connected(void)
{
	(void)fresh(NULL);
	assert_int_equal(bring_up(), NDX_OK);
	fpga.requests = 0;
	fpga.resets = 0;
}

static void four_requests_take_it_down(void **state)
{
	(void)state;
	connected();
	assert_int_equal(tear_down(), 0);
	assert_int_equal(fpga.requests, 4);
	assert_is_drop_of_qp(0);
	assert_is_free_of_mr_and_pd(2);
	assert_fpga_is_empty();
	assert_nothing_came_out();
	assert_int_equal(fpga.resets, 0);
	assert_int_equal(logged[NDX_LOG_WARN], 0);
	assert_int_equal(tear_down(), 0);
	assert_int_equal(fpga.requests, 4);
}

static void only_what_is_there_is_taken_down(void **state)
{
	(void)state;
	connected();
	connection.has_qp = false;
	(void)tear_down();
	assert_int_equal(fpga.requests, 2);
	assert_is_free_of_mr_and_pd(0);

	connected();
	connection.has_mr = false;
	connection.has_pd = false;
	assert_int_equal(tear_down(), 0);
	assert_int_equal(fpga.requests, 2);
	assert_is_drop_of_qp(0);

	connected();
	memset(&connection, 0, sizeof(connection));
	assert_int_equal(tear_down(), 0);
	assert_int_equal(fpga.requests, 0);
	assert_int_equal(fpga.resets, 0);
}

static void a_step_that_gets_no_answer_does_not_stop_the_others(void **state)
{
	/* A queue pair that is not in ERR is not destroyed, and a PD in use is not freed. */
	static const unsigned failed[] = {3, 2, 2, 1};

	(void)state;
	for (unsigned step = 0; step < 4; step++) {
		connected();
		fpga.faults[step] = SURF_FAULT_MUTE;
		assert_int_equal(tear_down(), failed[step]);
		assert_int_equal(fpga.requests, 4);
		assert_int_equal(logged[NDX_LOG_WARN], failed[step] + 1);
		assert_int_equal(fpga.resets, 1);
		assert_fpga_is_empty();
		assert_nothing_came_out();
	}
	for (unsigned step = 0; step < 4; step++) {
		connected();
		for (unsigned i = step; i < 4; i++)
			fpga.faults[i] = SURF_FAULT_MUTE;
		assert_int_equal(tear_down(), 4 - step);
		assert_int_equal(fpga.requests, 4);
	}
}

static void four_steps_without_an_answer_are_four_warnings(void **state)
{
	(void)state;
	connected();
	fpga.faults[0] = SURF_FAULT_WEDGE;
	assert_int_equal(tear_down(), 4);
	assert_int_equal(fpga.requests + fpga.lost, 4);
	assert_in_range(logged[NDX_LOG_WARN], 4, 5);
	assert_int_equal(fpga.resets, 1);
	assert_fpga_is_empty();
	assert_int_equal(bring_up(), NDX_OK);
}

static void a_dead_bus_is_logged_and_survived(void **state)
{
	static const struct surf_log nowhere = {.line = NULL};

	(void)state;
	connected();
	/* No address of the FPGA's: each access fails. */
	bus.base = 0x10000;
	assert_int_equal(tear_down(), 4);
	assert_int_equal(logged[NDX_LOG_WARN], 6);
	assert_non_null(strstr(last_warning, "register 0x10f50 cannot be written"));
	assert_int_equal(fpga.requests, 0);
	bus.base = 0;
	assert_int_equal(surf_bring_up(&bus, &nowhere, &setup, &connection, why, sizeof(why)),
	                 NDX_OK);
	assert_int_equal(surf_tear_down(&bus, NULL, &connection), 0);
}

/* 14 s for the answers as it is, or less; and 5 s for the accesses. */
static void a_slow_bus_gets_no_more_than_its_time(void **state)
{
	static const struct {
		uint32_t step_ms;
		uint64_t most_ms;
	} limits[] = {{60000, 19000}, {0, 19000}, {100, 5400}};

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		connected();
		connection.step_ms = limits[i].step_ms;
		fpga.access_ms = 1999;
		assert_int_equal(tear_down(), 4);
		/* The access that was under way, and the soft reset. */
		assert_in_range(fpga.now, limits[i].most_ms,
		                limits[i].most_ms + 4 * fpga.access_ms + 150);
		assert_int_equal(fpga.resets, 1);
		assert_fpga_is_empty();
		assert_int_equal(logged_late, 4);
	}
	connected();
	connection.step_ms = 100;
	fpga.access_ms = 20;
	assert_int_equal(tear_down(), 0);
}

static void what_somebody_left_behind_is_cleared_first(void **state)
{
	(void)state;
	assert_int_equal(bring_up(), NDX_OK);
	assert_int_equal(bring_up(), NDX_OK);
	assert_int_equal(fpga.resets, 2);
	assert_int_equal(tear_down(), 0);
	assert_fpga_is_empty();
}

/*
 * An engine that a stray request had wedged went on with the packet numbers of the session before
 * (slaclab/rogue#1268, Simple-10GbE-RUDP-KCU105-Example#15). Whatever ended the last session, at
 * whichever request it stuck: the next one has its own.
 */
static void after_a_soft_reset_nothing_of_the_last_session_is_left(void **state)
{
	const unsigned both = STEPS + 4;

	(void)state;
	for (unsigned n = 0; n < both; n++) {
		unsigned asked;

		(void)fresh(NULL);
		setup.min_rnr_timer = 20;
		setup.rnr_retry = 5;
		fpga.faults[n] = SURF_FAULT_WEDGE;
		if (bring_up() == NDX_OK)
			(void)tear_down();
		asked = fpga.requests;
		setup.rq_psn = 0xabcde0 + n;
		setup.sq_psn = 0x12340 + n;
		setup.host_qpn = 0x77;
		setup.min_rnr_timer = 14;
		setup.rnr_retry = 3;
		assert_int_equal(bring_up(), NDX_OK);
		assert_int_equal(fpga.requests, asked + STEPS);
		assert_int_equal(fpga.qp.attributes.rq_psn, setup.rq_psn);
		assert_int_equal(fpga.qp.attributes.sq_psn, setup.sq_psn);
		assert_int_equal(fpga.qp.attributes.dest_qpn, setup.host_qpn);
		assert_int_equal(fpga.qp.attributes.min_rnr_timer, 14);
		assert_int_equal(fpga.qp.attributes.rnr_retry, 3);
		assert_int_equal(tear_down(), 0);
		assert_fpga_is_empty();
	}
}

static void after_any_failed_access_the_next_bring_up_works(void **state)
{
	unsigned accesses;
	unsigned waits;

	(void)state;
	assert_int_equal(bring_up(), NDX_OK);
	accesses = fpga.accesses;
	waits = fpga.waits;
	for (unsigned n = 1; n <= accesses; n++) {
		(void)fresh(NULL);
		fpga.fail_access = n;
		fpga.error = NDX_E_DEVICE_REMOVED;
		assert_int_equal(bring_up(), NDX_E_DEVICE_REMOVED);
		assert_nothing_came_out();
		assert_int_equal(bring_up(), NDX_OK);
	}
	for (unsigned n = 1; n <= waits; n++) {
		(void)fresh(NULL);
		fpga.cancel_wait = n;
		assert_int_equal(bring_up(), NDX_E_CANCELED);
		assert_nothing_came_out();
		assert_int_equal(bring_up(), NDX_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(six_requests_make_a_queue_pair_in_rts, fresh),
		cmocka_unit_test_setup(the_fpga_has_what_it_was_told, fresh),
		cmocka_unit_test_setup(a_step_that_is_refused_takes_back_those_before, fresh),
		cmocka_unit_test_setup(a_wrong_state_counts_as_refused, fresh),
		cmocka_unit_test_setup(a_refused_state_tells_the_true_one, fresh),
		cmocka_unit_test_setup(an_answer_of_another_type_fails_its_step, fresh),
		cmocka_unit_test_setup(a_step_without_an_answer_fails_in_time, fresh),
		cmocka_unit_test_setup(a_clean_up_that_fails_keeps_the_first_error, fresh),
		cmocka_unit_test_setup(what_is_out_of_range_touches_no_register, fresh),
		cmocka_unit_test_setup(the_largest_of_each_is_taken, fresh),
		cmocka_unit_test_setup(keys_are_random_and_fit, fresh),
		cmocka_unit_test_setup(four_requests_take_it_down, fresh),
		cmocka_unit_test_setup(only_what_is_there_is_taken_down, fresh),
		cmocka_unit_test_setup(a_step_that_gets_no_answer_does_not_stop_the_others, fresh),
		cmocka_unit_test_setup(four_steps_without_an_answer_are_four_warnings, fresh),
		cmocka_unit_test_setup(a_dead_bus_is_logged_and_survived, fresh),
		cmocka_unit_test_setup(a_slow_bus_gets_no_more_than_its_time, fresh),
		cmocka_unit_test_setup(what_somebody_left_behind_is_cleared_first, fresh),
		cmocka_unit_test_setup(after_a_soft_reset_nothing_of_the_last_session_is_left,
	                               fresh),
		cmocka_unit_test_setup(after_any_failed_access_the_next_bring_up_works, fresh),
	};

	return cmocka_run_group_tests_name("bring-up of the FPGA", tests, NULL, NULL);
}
