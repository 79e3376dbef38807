/* SPDX-License-Identifier: BSD-2-Clause */
/* One transaction over the registers, and the emulated FPGA that the other tests lean on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "srp.h"
#include "stream.h"
#include "surf_fpga.h"

#define WRITES 13u /* of one transaction: 0, ten words, 1, 0 */

static struct surf_fpga fpga;
static struct surf_bus bus;
static char why[160];

static int fresh(void **state)
{
	(void)state;
	memset(&fpga, 0, sizeof(fpga));
	memset(why, 0, sizeof(why));
	bus = (struct surf_bus){.ops = &surf_fpga_ops, .state = &fpga};
	return 0;
}

static struct surf_request pd_alloc(uint32_t key)
{
	return (struct surf_request){.type = SURF_PD, .pd = {.alloc = 1, .key = key}};
}

static struct surf_request mr_alloc(uint32_t handler, uint32_t part)
{
	return (struct surf_request){
		.type = SURF_MR,
		.mr = {.alloc = 1,
	               .region = {.pd_handler = handler, .lkey_part = part, .rkey_part = part}}};
}

static struct surf_request qp_create(uint32_t handler)
{
	return (struct surf_request){.type = SURF_QP,
	                             .qp = {.request = SURF_QP_CREATE, .pd_handler = handler}};
}

static struct surf_request qp_to(uint64_t qpn, enum surf_qp_state state, uint64_t mask)
{
	return (struct surf_request){.type = SURF_QP,
	                             .qp = {.request = SURF_QP_MODIFY,
	                                    .qpn = qpn,
	                                    .attr_mask = mask | SURF_ATTR_STATE,
	                                    .attributes = {.state = state}}};
}

static struct surf_response ask(struct surf_request request)
{
	struct surf_response response;

	assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)), NDX_OK);
	return response;
}

static void a_request_is_0_the_words_1_0(void **state)
{
	const struct surf_request request = pd_alloc(0x12345678);
	uint32_t words[SURF_REQUEST_WORDS];

	(void)state;
	bus.base = 0x40000;
	fpga.base = 0x40000;
	assert_int_equal(ask(request).pd.handler, 0x12345678);
	assert_int_equal(surf_request_encode(&request, words, why, sizeof(why)), NDX_OK);
	assert_int_equal(fpga.writes, WRITES);
	assert_int_equal(fpga.trace[0].address, 0x40f00);
	assert_int_equal(fpga.trace[0].value, 0);
	for (uint32_t i = 0; i < SURF_REQUEST_WORDS; i++) {
		assert_int_equal(fpga.trace[1 + i].address, 0x40f04 + 4 * i);
		assert_int_equal(fpga.trace[1 + i].value, words[i]);
	}
	assert_int_equal(fpga.trace[11].address, 0x40f00);
	assert_int_equal(fpga.trace[11].value, 1);
	assert_int_equal(fpga.trace[12].address, 0x40f00);
	assert_int_equal(fpga.trace[12].value, 0);
	assert_int_equal(fpga.requests, 1);
}

static void nothing_but_zeros_is_sent_all_the_same(void **state)
{
	const struct surf_request zeros = {.type = SURF_PD};

	(void)state;
	assert_int_equal(ask(zeros).pd.ok, 0);
	assert_int_equal(fpga.requests, 1);
	assert_int_equal(fpga.writes, WRITES);
}

static void a_value_too_wide_touches_no_register(void **state)
{
	struct surf_request request = pd_alloc(1);
	struct surf_response response;

	(void)state;
	request.pd.key = UINT64_C(1) << 32;
	assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)),
	                 NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(why, "key is 0x100000000, but the field has 32 bits"));
	assert_int_equal(fpga.accesses, 0);
}

static void an_answer_that_is_there_costs_20_ms_at_most(void **state)
{
	(void)state;
	assert_int_equal(ask(pd_alloc(1)).pd.ok, 1);
	assert_in_range(fpga.now, 0, 20);
}

static void a_slow_answer_is_waited_for(void **state)
{
	(void)state;
	fpga.delay_ms = 99;
	assert_int_equal(ask(pd_alloc(7)).pd.handler, 7);
	assert_in_range(fpga.now, 99, 100);
}

static void no_answer_ends_in_time_and_leaves_the_response_alone(void **state)
{
	static const uint32_t limits[] = {0, 1, 19, 20, 21, 70, 5000};
	const struct surf_request request = pd_alloc(1);

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct surf_response response = {.type = SURF_QP};

		(void)fresh(NULL);
		fpga.faults[0] = SURF_FAULT_MUTE;
		assert_int_equal(
			surf_bus_ask(&bus, &request, limits[i], &response, why, sizeof(why)),
			NDX_E_IO_TIMEOUT);
		assert_int_equal(fpga.now, limits[i]);
		assert_non_null(strstr(why, "has not answered within"));
		assert_int_equal(response.type, SURF_QP);
		assert_int_equal(fpga.pd.used, false);
	}
}

static void an_answer_after_the_time_is_not_taken(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;

	(void)state;
	fpga.delay_ms = 101;
	assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)),
	                 NDX_E_IO_TIMEOUT);
}

static void time_out_0_takes_what_is_there(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;

	(void)state;
	assert_int_equal(surf_bus_ask(&bus, &request, 0, &response, why, sizeof(why)), NDX_OK);
	assert_int_equal(fpga.waits, 0);
}

static void an_answer_of_another_type_is_refused(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;

	(void)state;
	fpga.faults[0] = SURF_FAULT_OTHER_TYPE;
	assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)),
	                 NDX_E_REMOTE_ERROR);
	assert_non_null(strstr(why, "a PD request as if it were for a MR"));
}

static void each_access_that_fails_ends_it_with_the_buss_error(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;
	unsigned accesses;

	(void)state;
	(void)ask(request);
	accesses = fpga.accesses;
	assert_in_range(accesses, WRITES + 2 + SURF_RESPONSE_WORDS, 100);
	for (unsigned n = 1; n <= accesses; n++) {
		(void)fresh(NULL);
		fpga.fail_access = n;
		fpga.error = NDX_E_DEVICE_REMOVED;
		assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)),
		                 NDX_E_DEVICE_REMOVED);
		assert_non_null(strstr(why, n <= WRITES ? "cannot be written" : "cannot be read"));
		assert_int_equal(fpga.accesses, n);
	}
}

static void a_wait_can_be_cancelled(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;

	(void)state;
	for (unsigned n = 1; n <= 3; n++) {
		(void)fresh(NULL);
		fpga.faults[0] = SURF_FAULT_MUTE;
		fpga.cancel_wait = n;
		assert_int_equal(surf_bus_ask(&bus, &request, 5000, &response, why, sizeof(why)),
		                 NDX_E_CANCELED);
		assert_int_equal(fpga.waits, n);
	}
}

static void a_stuck_fpga_takes_nothing_until_a_reset_clears_it(void **state)
{
	const struct surf_request request = pd_alloc(1);
	struct surf_response response;
	uint64_t before;

	(void)state;
	assert_int_equal(ask(request).pd.ok, 1);
	fpga.faults[1] = SURF_FAULT_WEDGE;
	for (int i = 0; i < 3; i++)
		assert_int_equal(surf_bus_ask(&bus, &request, 100, &response, why, sizeof(why)),
		                 NDX_E_IO_TIMEOUT);
	assert_int_equal(fpga.requests, 2);
	assert_int_equal(fpga.lost, 2);
	before = fpga.now;
	assert_int_equal(surf_bus_reset(&bus, why, sizeof(why)), NDX_OK);
	assert_int_equal(fpga.now - before, 150);
	assert_int_equal(fpga.resets, 1);
	assert_false(fpga.pd.used);
	assert_int_equal(ask(request).pd.ok, 1);
}

static void a_reset_that_is_given_up_leaves_nothing_in_reset(void **state)
{
	(void)state;
	fpga.fail_access = 2;
	fpga.error = NDX_E_CANCELED;
	assert_int_equal(surf_bus_reset(&bus, why, sizeof(why)), NDX_E_CANCELED);
	assert_non_null(strstr(why, "register 0xf50 cannot be written: cancelled"));
	assert_int_equal(fpga.resets, 1);
	assert_false(fpga.in_reset);
}

static void what_the_dispatcher_has_begun_gets_100_ms(void **state)
{
	(void)state;
	fpga.stream.on = true;
	assert_int_equal(surf_stream_stop(&bus, why, sizeof(why)), NDX_OK);
	assert_false(fpga.stream.on);
	assert_int_equal(fpga.now, 100);
}

static void an_answer_is_one_of_its_own_request(void **state)
{
	const struct srp_request asked = {.id = 5, .address = 0xf00};
	struct srp_request other = asked;
	uint8_t bytes[SRP_RESPONSE_BYTES];
	uint32_t value = 0;
	const char *text;

	(void)state;
	srp_response_write(bytes, &asked, 7, 0);
	assert_int_equal(srp_response_parse(bytes, &asked, &value, &text), SRP_ANSWER);
	assert_int_equal(value, 7);
	other.address = 0xf04;
	assert_int_equal(srp_response_parse(bytes, &other, &value, &text), SRP_WRONG);
	other = (struct srp_request){.write = true, .id = 5, .address = 0xf00};
	assert_int_equal(srp_response_parse(bytes, &other, &value, &text), SRP_WRONG);
	other.id = 6;
	assert_int_equal(srp_response_parse(bytes, &other, &value, &text), SRP_OTHER);
	srp_response_write(bytes, &asked, 8, 1);
	assert_int_equal(srp_response_parse(bytes, &asked, &value, &text), SRP_REFUSED);
	assert_int_equal(value, 7);
}

static void only_an_edge_fires(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(surf_fpga_ops.write32(&fpga, SURF_REG_CONTROL, 1), NDX_OK);
	assert_int_equal(fpga.requests, 1);
	assert_int_equal(surf_fpga_ops.write32(&fpga, SURF_REG_CONTROL, 0), NDX_OK);
	assert_int_equal(fpga.requests, 1);
	/* The previous user may have left the bit high. */
	assert_int_equal(surf_fpga_ops.write32(&fpga, SURF_REG_CONTROL, 1), NDX_OK);
	assert_int_equal(ask(pd_alloc(1)).pd.ok, 1);
	assert_int_equal(fpga.requests, 3);
}

static void the_tables_have_1_pd_2_mrs_1_queue_pair(void **state)
{
	struct surf_request free_mr = {.type = SURF_MR, .mr = {.region = {.pd_handler = 5}}};
	const struct surf_request free_pd = {.type = SURF_PD, .pd = {.handler = 5}};
	struct surf_response second;

	(void)state;
	assert_int_equal(ask(mr_alloc(5, 1)).mr.ok, 0);
	assert_int_equal(ask(qp_create(5)).qp.ok, 0);
	assert_int_equal(ask(pd_alloc(5)).pd.ok, 1);
	assert_int_equal(ask(pd_alloc(6)).pd.ok, 0);
	assert_int_equal(ask(mr_alloc(5, 1)).mr.lkey, 1);
	second = ask(mr_alloc(5, 1));
	assert_int_equal(second.mr.ok, 1);
	assert_int_equal(second.mr.lkey, 0x80000001u);
	assert_int_equal(ask(mr_alloc(5, 1)).mr.ok, 0);
	assert_int_equal(ask(qp_create(5)).qp.ok, 1);
	assert_int_equal(ask(qp_create(5)).qp.ok, 0);
	assert_int_equal(ask(free_pd).pd.ok, 0);
	assert_int_equal(ask(free_mr).mr.ok, 0);
	free_mr.mr.lkey = second.mr.lkey;
	free_mr.mr.rkey = second.mr.rkey;
	assert_int_equal(ask(free_mr).mr.ok, 1);
	assert_int_equal(ask(free_mr).mr.ok, 0);
}

static void an_illegal_state_is_refused_with_the_true_one(void **state)
{
	const uint64_t all = 0x3ffffff;
	struct surf_request destroy = {.type = SURF_QP, .qp = {.request = SURF_QP_DESTROY}};
	struct surf_response r;
	uint64_t qpn;

	(void)state;
	(void)ask(pd_alloc(5));
	qpn = ask(qp_create(5)).qp.qpn;
	destroy.qp.qpn = qpn;
	r = ask(qp_to(qpn, SURF_RTS, all));
	assert_int_equal(r.qp.ok, 0);
	assert_int_equal(r.qp.attributes.state, SURF_RESET);
	assert_int_equal(ask(qp_to(qpn + 1, SURF_INIT, all)).qp.ok, 0);
	assert_int_equal(ask(qp_to(qpn, SURF_INIT, 0)).qp.ok, 0);
	assert_int_equal(ask(qp_to(qpn, SURF_INIT, all)).qp.ok, 1);
	r = ask(qp_to(qpn, SURF_INIT, all));
	assert_int_equal(r.qp.ok, 0);
	assert_int_equal(r.qp.attributes.state, SURF_INIT);
	assert_int_equal(ask(qp_to(qpn, SURF_RTR, all & ~(uint64_t)SURF_ATTR_RQ_PSN)).qp.ok, 0);
	assert_int_equal(ask(qp_to(qpn, SURF_RTR, all)).qp.ok, 1);
	r = ask(destroy);
	assert_int_equal(r.qp.ok, 0);
	assert_int_equal(r.qp.attributes.state, SURF_RTR);
	assert_int_equal(ask(qp_to(qpn, SURF_ERR, 0)).qp.ok, 1);
	assert_int_equal(ask(qp_to(qpn, SURF_RTS, all)).qp.ok, 0);
	assert_int_equal(ask(destroy).qp.ok, 1);
	assert_int_equal(ask(destroy).qp.ok, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_request_is_0_the_words_1_0, fresh),
		cmocka_unit_test_setup(nothing_but_zeros_is_sent_all_the_same, fresh),
		cmocka_unit_test_setup(a_value_too_wide_touches_no_register, fresh),
		cmocka_unit_test_setup(an_answer_that_is_there_costs_20_ms_at_most, fresh),
		cmocka_unit_test_setup(a_slow_answer_is_waited_for, fresh),
		cmocka_unit_test_setup(no_answer_ends_in_time_and_leaves_the_response_alone, fresh),
		cmocka_unit_test_setup(an_answer_after_the_time_is_not_taken, fresh),
		cmocka_unit_test_setup(time_out_0_takes_what_is_there, fresh),
		cmocka_unit_test_setup(an_answer_of_another_type_is_refused, fresh),
		cmocka_unit_test_setup(each_access_that_fails_ends_it_with_the_buss_error, fresh),
		cmocka_unit_test_setup(a_wait_can_be_cancelled, fresh),
		cmocka_unit_test_setup(a_stuck_fpga_takes_nothing_until_a_reset_clears_it, fresh),
		cmocka_unit_test_setup(a_reset_that_is_given_up_leaves_nothing_in_reset, fresh),
		cmocka_unit_test_setup(what_the_dispatcher_has_begun_gets_100_ms, fresh),
		cmocka_unit_test_setup(an_answer_is_one_of_its_own_request, fresh),
		cmocka_unit_test_setup(only_an_edge_fires, fresh),
		cmocka_unit_test_setup(the_tables_have_1_pd_2_mrs_1_queue_pair, fresh),
		cmocka_unit_test_setup(an_illegal_state_is_refused_with_the_true_one, fresh),
	};

	return cmocka_run_group_tests_name("a transaction of the metadata bus", tests, NULL, NULL);
}
