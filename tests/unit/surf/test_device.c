/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport, register by register over TCP, against an FPGA that has numbers and no data. */
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "plugin_wire.h"

#define STEPS 6u

/* Behind every bring-up that fails there are so many requests. */
static const struct {
	const char *name;
	unsigned requests;
} steps[STEPS] = {
	{"PD alloc", 1},   {"MR alloc", 3},  {"QP create", 5},
	{"QP to INIT", 8}, {"QP to RTR", 9}, {"QP to RTS", 10},
};

static void assert_fpga_is_empty(const struct rig *r)
{
	assert_false(r->serving.fpga.pd.used);
	assert_false(r->serving.fpga.qp.used);
	assert_false(r->serving.fpga.stream.on);
	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		assert_false(r->serving.fpga.mr[i].used);
}

/* Up to RTS. */
static void bring_up(struct rig *r, struct surf_answer *answer)
{
	rig_begin(r);
	rig_send(r, SURF_HELLO, 0, 0, NULL, 0);
	rig_expect(r, SURF_WELCOME);
	rig_send_order(r);
	rig_expect(r, SURF_DATA);
	assert_int_equal(r->heard.flags, SURF_FRAME_COMPLETED);
	assert_int_equal(r->heard.length, SURF_ANSWER_BYTES);
	surf_words_read(answer, r->heard.payload, SURF_ANSWER_BYTES);
	rig_send(r, SURF_DATA, NDX_STAGE_INFO, 1, NULL, 0);
}

static void a_session_from_hello_to_bye(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	assert_int_equal(answer.qpn, r.serving.fpga.qp.qpn);
	assert_int_equal(answer.psn, r.serving.fpga.qp.attributes.sq_psn);
	assert_int_equal(r.serving.fpga.qp.attributes.rq_psn, RIG_HOST_PSN);
	assert_int_equal(r.serving.fpga.qp.attributes.dest_qpn, RIG_HOST_QPN);
	assert_int_equal(r.serving.fpga.udp.port, 0xb712);
	assert_int_equal(r.serving.fpga.udp.ip, 0x0100090a);
	rig_send(&r, SURF_VALIDATE, NDX_STAGE_VALIDATE, 0, "", 0);
	rig_expect(&r, SURF_VALIDATE);
	assert_int_equal(wire_get32(r.heard.payload), NDX_DESCRIPTION_VERBS_RC);
	assert_int_equal(wire_get32(r.heard.payload + 4), 1024);
	assert_int_equal(wire_get32(r.heard.payload + 8), 16);
	assert_int_equal(wire_get32(r.heard.payload + 12), 3);
	assert_int_equal(wire_get32(r.heard.payload + 16), answer.qpn);
	assert_int_equal(wire_get32(r.heard.payload + 20), answer.psn);
	assert_int_equal(wire_get32(r.heard.payload + 32), RIG_HOST_QPN);
	assert_int_equal(wire_get32(r.heard.payload + 36), RIG_HOST_PSN);
	assert_false(r.serving.fpga.stream.on);
	rig_send(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	rig_expect(&r, SURF_DATA);
	assert_true(r.serving.fpga.stream.on);
	assert_int_equal(r.serving.fpga.stream.lkey, r.serving.fpga.mr[0].lkey);
	assert_int_equal(r.serving.fpga.stream.qpn, RIG_HOST_QPN);
	assert_int_equal(r.serving.fpga.stream.wrap, 256);
	assert_int_equal(r.serving.fpga.stream.cleared, 1);
	rig_send(&r, SURF_DATA, NDX_STAGE_DONE, 0, NULL, 0);
	rig_expect(&r, SURF_DATA);
	assert_false(r.serving.fpga.stream.on);
	rig_send(&r, SURF_BYE, 0, 0, NULL, 0);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_int_equal(rig_warnings, 0);
	assert_fpga_is_empty(&r);
}

static void a_client_that_hangs_up_leaves_nothing(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	rig_send(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	rig_expect(&r, SURF_DATA);
	assert_true(r.serving.fpga.stream.on);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	/* Nothing was under way when the queue pair went. */
	assert_int_equal(r.serving.fpga.stream.cut, 0);
	assert_fpga_is_empty(&r);
	rig_begin(&r);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.accesses, 0);
}

static void without_a_stream_the_dispatcher_is_left_alone(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	r.order.stream = 0;
	rig_end(&r);
	rig_begin(&r);
	r.order.stream = 0;
	r.order.udp_client = 0;
	rig_send_order(&r);
	rig_expect(&r, SURF_DATA);
	rig_send(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	rig_expect(&r, SURF_DATA);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.stream.cleared, 0);
	assert_int_equal(r.serving.fpga.udp.port, 0);
	assert_fpga_is_empty(&r);
}

static void fail_step(unsigned step, enum surf_fault fault)
{
	struct rig r;

	rig_begin(&r);
	r.serving.fpga.faults[step] = fault;
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	if (strstr(r.text, steps[step].name) == NULL)
		fail_msg("\"%s\" does not name %s", r.text, steps[step].name);
	assert_int_equal(r.serving.fpga.requests, steps[step].requests);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, steps[step].requests);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_fpga_is_empty(&r);
}

static void a_step_that_fails_takes_back_those_before(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++)
		fail_step(step, SURF_FAULT_REFUSE);
	for (unsigned step = 3; step < STEPS; step++)
		fail_step(step, SURF_FAULT_LIE);
}

static void a_stuck_fpga_is_reported_in_time(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[4] = SURF_FAULT_WEDGE;
	r.order.step_ms = 100;
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "QP to RTR: the FPGA has not answered within 100 ms"));
	assert_non_null(strstr(r.text, "register 0xf00"));
	assert_non_null(strstr(r.text, "soft reset"));
	assert_int_equal(r.serving.fpga.requests + r.serving.fpga.lost, 9);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.resets, 2);
	assert_int_equal(rig_warnings, 5);
	assert_fpga_is_empty(&r);
}

static void the_time_of_the_stage_is_kept(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[2] = SURF_FAULT_MUTE;
	rig_send_order(&r);
	/* Less than one step has. Where it ends depends on the machine; the clean-up has time of
	 * its own. */
	assert_int_equal(rig_receive_within(&r, 700), NDX_OK);
	assert_int_equal(r.heard.type, SURF_ERROR);
	assert_non_null(strstr(r.text, "no time is left"));
	assert_non_null(strstr(r.text, "register 0x"));
	rig_end(&r);
	assert_fpga_is_empty(&r);
}

static void *cancel_main(void *arg)
{
	struct rig *r = arg;

	/* Until it waits for the answer that never comes. */
	while (__atomic_load_n(&r->serving.fpga.requests, __ATOMIC_RELAXED) < 3)
		(void)poll(NULL, 0, 1);
	rig_transport->cancel(r->stream);
	return NULL;
}

static void a_cancel_ends_the_wait_and_cleans_up(void **state)
{
	pthread_t thread;
	uint8_t byte = 0;
	size_t n;
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[2] = SURF_FAULT_MUTE;
	rig_send_order(&r);
	assert_int_equal(pthread_create(&thread, NULL, cancel_main, &r), 0);
	assert_int_equal(rig_receive_within(&r, RIG_LONG_MS), NDX_E_CANCELED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rig_transport->send(r.stream, &byte, 1, RIG_LONG_MS), NDX_E_CANCELED);
	assert_int_equal(rig_transport->receive(r.stream, &byte, 1, &n, RIG_LONG_MS),
	                 NDX_E_CANCELED);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, 5);
	assert_fpga_is_empty(&r);
}

/* A session that is cancelled while the FPGA streams leaves it as any other does. */
static void a_cancel_keeps_no_close_from_its_work(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	rig_send(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	rig_expect(&r, SURF_DATA);
	rig_transport->cancel(r.stream);
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	assert_int_equal(r.serving.fpga.stream.cut, 0);
	assert_int_equal(rig_warnings, 0);
	assert_fpga_is_empty(&r);
}

static void an_order_is_whole_and_comes_once(void **state)
{
	const uint8_t bytes[SURF_ORDER_BYTES - 1] = {0};
	struct surf_answer answer;
	struct rig r;

	(void)state;
	rig_begin(&r);
	rig_send(&r, SURF_DATA, NDX_STAGE_INFO, 0, bytes, sizeof(bytes));
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "the order is malformed"));
	assert_int_equal(r.serving.fpga.accesses, 0);
	rig_end(&r);
	bring_up(&r, &answer);
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "comes twice"));
	assert_int_equal(r.serving.fpga.requests, STEPS);
	rig_end(&r);
	assert_fpga_is_empty(&r);
}

static void what_is_sent_has_its_room_and_what_is_heard_its_time(void **state)
{
	uint8_t bytes[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD + 1] = {0};
	struct rig r;
	size_t n;

	(void)state;
	rig_begin(&r);
	assert_int_equal(rig_transport->receive(r.stream, bytes, 1, &n, 20), NDX_E_IO_TIMEOUT);
	assert_int_equal(rig_transport->send(r.stream, bytes, 1, RIG_LONG_MS), NDX_OK);
	assert_int_equal(rig_transport->send(r.stream, bytes, sizeof(bytes) - 1, RIG_LONG_MS),
	                 NDX_E_BUFFER_OVERFLOW);
	rig_end(&r);
}

static void what_is_out_of_range_touches_no_register(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.order.mr_length = UINT64_C(1) << 32;
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "mr_length"));
	assert_int_equal(r.serving.fpga.accesses, 0);
	rig_end(&r);
}

static void a_bus_that_goes_away_is_named_with_its_register(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	serving_end(&r.serving);
	rig_send(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "dispatch on: register 0x200c cannot be written: "));
	rig_end(&r);
	/* The dispatcher, the four steps and the soft reset: each has its line. */
	assert_in_range(rig_warnings, 6, 7);
}

static void an_address_without_registers_is_reported(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.order.base = 0x100000;
	r.order.udp_client = 0;
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "register 0x100f50 cannot be written"));
	assert_non_null(strstr(r.text, "is the base address right?"));
	rig_end(&r);
}

/* Here a word of the third request: what the first two made is taken back over the same bus. */
static void an_access_that_is_refused_fails_alone(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.fail_write = 37;
	r.serving.fpga.error = NDX_E_INVALID_PARAMETER;
	rig_send_order(&r);
	rig_expect(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "QP create: register 0xf"));
	assert_non_null(strstr(r.text, "cannot be written: the FPGA's register bus tells of an"));
	rig_end(&r);
	assert_int_equal(r.serving.fpga.requests, 4);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_int_equal(rig_warnings, 0);
	assert_fpga_is_empty(&r);
}

/* Its silence costs the time of one access, not of each that a clean-up has. */
static void a_bus_that_fails_otherwise_is_not_asked_again(void **state)
{
	static const struct {
		enum ndx_status error;
		const char *says;
	} cases[] = {
		{NDX_E_IO_TIMEOUT, "the register bus does not answer: is the FPGA on"},
		{NDX_E_CONNECTION_ABORTED, "it is no answer in SRPv3"},
	};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_begin(&r);
		r.serving.fpga.fail_write = 37;
		r.serving.fpga.error = cases[i].error;
		rig_send_order(&r);
		rig_expect(&r, SURF_ERROR);
		assert_non_null(strstr(r.text, cases[i].says));
		rig_end(&r);
		assert_int_equal(r.serving.fpga.writes, 37);
		/* MR and PD, and the soft reset. */
		assert_in_range(rig_warnings, 3, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_from_hello_to_bye),
		cmocka_unit_test(a_client_that_hangs_up_leaves_nothing),
		cmocka_unit_test(without_a_stream_the_dispatcher_is_left_alone),
		cmocka_unit_test(a_step_that_fails_takes_back_those_before),
		cmocka_unit_test(a_stuck_fpga_is_reported_in_time),
		cmocka_unit_test(the_time_of_the_stage_is_kept),
		cmocka_unit_test(a_cancel_ends_the_wait_and_cleans_up),
		cmocka_unit_test(a_cancel_keeps_no_close_from_its_work),
		cmocka_unit_test(an_order_is_whole_and_comes_once),
		cmocka_unit_test(what_is_sent_has_its_room_and_what_is_heard_its_time),
		cmocka_unit_test(what_is_out_of_range_touches_no_register),
		cmocka_unit_test(a_bus_that_goes_away_is_named_with_its_register),
		cmocka_unit_test(an_address_without_registers_is_reported),
		cmocka_unit_test(an_access_that_is_refused_fails_alone),
		cmocka_unit_test(a_bus_that_fails_otherwise_is_not_asked_again),
	};

	return cmocka_run_group_tests_name("the FPGA in a session", tests, NULL, NULL);
}
