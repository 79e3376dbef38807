/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA writes of no bytes: some networks drop them, and a peer that granted no memory may break the
 * connection because of one. rig_close() checks in every test of this folder that the provider has
 * posted none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

#define DEPTH 16u
#define KEEPALIVE_MS 100u
#define WATCHDOG_RUNS 8u

static void open_connected(struct rig *rig, bool has_mailbox)
{
	rig_open(rig);
	rig_connect(rig, DEPTH, NULL);
	rig_qp(rig)->base.spi.attr.keepalive_ms = KEEPALIVE_MS;
	rig->conn.state = VERBS_CONN_UP;
	if (!has_mailbox)
		rig_qp(rig)->noop_write.length = 0;
}

static void run_watchdog(void *arg)
{
	struct rig *rig = arg;

	rig->conn.watchdog = (struct ndxp_timer){.fn = verbs_watch_on_timer, .arg = &rig->conn};
	for (unsigned i = 0; i < WATCHDOG_RUNS; i++)
		verbs_watch_on_timer(&rig->conn);
	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->conn.watchdog);
}

static void run_watchdog_once(void *arg)
{
	struct rig *rig = arg;

	rig->conn.watchdog = (struct ndxp_timer){.fn = verbs_watch_on_timer, .arg = &rig->conn};
	verbs_watch_on_timer(&rig->conn);
	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->conn.watchdog);
}

static void start_drain(void *arg)
{
	struct rig *rig = arg;

	verbs_conn_drain(&rig->conn.spi);
}

/* Keepalive probes an idle peer. A peer that cannot be probed does not count as dead. */
static void only_a_peer_that_granted_memory_is_probed(void **state)
{
	struct rig rig;

	(void)state;
	for (int has_mailbox = 0; has_mailbox <= 1; has_mailbox++) {
		open_connected(&rig, has_mailbox);
		rig.device.count[FAKE_POST_SEND] = 0;
		ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig);
		assert_int_equal(rig.device.count[FAKE_POST_SEND], has_mailbox);
		assert_int_equal(rig.reports, has_mailbox ? NDX_REPORT_ABORT : 0);
		rig_close(&rig);
	}
}

/* An idle connection is to cost few packets. Each run of the watchdog is 250 ms at most. */
static void an_idle_peer_is_probed_four_times_in_keepalive(void **state)
{
	const unsigned runs = 4u * 8u; /* 8 s */
	struct rig rig;
	unsigned probes = 0;

	(void)state;
	open_connected(&rig, true);
	rig_qp(&rig)->base.spi.attr.keepalive_ms = 8000;
	rig.device.count[FAKE_POST_SEND] = 0;
	for (unsigned i = 0; i < runs; i++) {
		ndxp_loop_call(rig.adapter.spi.loop, run_watchdog_once, &rig);
		if (rig.device.count[FAKE_POST_SEND] > probes) {
			probes++;
			fake_complete_sends(rig_native(&rig), 1);
		}
	}
	assert_int_equal(rig.reports, 0);
	assert_in_range(probes, 3, 4);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], probes);
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog_once, &rig); /* takes the last result */
	rig_close(&rig);
}

/* Also one that granted memory. Its silence proves nothing. */
static void a_peer_that_is_not_asked_is_sent_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_connected(&rig, true);
	rig.conn.oob.policy = NDX_PEER_NOT_ASKED;
	rig_qp(&rig)->not_asked = true;
	rig.device.count[FAKE_POST_SEND] = 0;
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig);
	assert_int_equal(ndx_qp_write(&rig.qp->pub, NULL, NULL, 0, 0, 0, 0), NDX_E_NOT_SUPPORTED);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 0);
	assert_int_equal(rig.reports, 0);
	rig_close(&rig);
}

/* Keepalive goes by what arrives. Each run of the watchdog is half of keepalive_ms. */
static void a_peer_that_is_heard_may_not_be_silent(void **state)
{
	struct rig rig;

	(void)state;
	open_connected(&rig, false);
	rig.conn.oob.policy = NDX_PEER_DEVICE | NDX_PEER_IS_HEARD;
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(rig_receive(&rig, i + 1), NDX_OK);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_true(fake_arrive(rig_native(&rig), 8));
		ndxp_loop_call(rig.adapter.spi.loop, run_watchdog_once, &rig);
		assert_int_equal(rig.reports, 0);
		rig_expect(&rig, i + 1, NDX_OK);
	}
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig);
	assert_int_equal(rig.reports, NDX_REPORT_ABORT);
	assert_string_equal(rig.cause, "the peer is silent");
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 0);
	rig_close(&rig);
}

/* The probe completes behind requests that wait for the peer's receives. */
static void a_peer_with_requests_to_answer_is_not_silent(void **state)
{
	struct rig rig;

	(void)state;
	open_connected(&rig, true);
	assert_int_equal(rig_send(&rig, 1, 0), NDX_OK);
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig);
	assert_int_equal(rig.reports, 0);
	fake_complete_sends(rig_native(&rig), 1);
	rig_expect(&rig, 1, NDX_OK);
	ndxp_loop_call(rig.adapter.spi.loop, run_watchdog, &rig);
	assert_int_equal(rig.reports, NDX_REPORT_ABORT);
	rig_close(&rig);
}

/* The drain ends when the last unsignaled request completes. A control request behind it shows
 * that; without a mailbox the provider signals every request instead. */
static void the_end_of_unsignaled_requests_ends_the_drain(void **state)
{
	struct rig rig;

	(void)state;
	for (int has_mailbox = 0; has_mailbox <= 1; has_mailbox++) {
		open_connected(&rig, has_mailbox);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
		rig.device.count[FAKE_POST_SEND] = 0;
		ndxp_loop_call(rig.adapter.spi.loop, start_drain, &rig);
		assert_int_equal(rig.device.count[FAKE_POST_SEND], has_mailbox);
		fake_complete_sends(rig_native(&rig), 4);
		rig_expect_none(&rig);
		assert_int_equal(rig.reports, NDX_REPORT_DRAINED);
		rig_close(&rig);
	}
}

/* The consumer's write of no bytes is a write of one byte on the wire. */
static void a_write_of_no_bytes_has_one_byte_on_the_wire(void **state)
{
	struct rig rig;

	(void)state;
	open_connected(&rig, true);
	assert_int_equal(ndx_qp_write(&rig.qp->pub, (void *)1, NULL, 0, 0, 0, 0), NDX_OK);
	assert_int_equal(ndx_qp_write(&rig.qp->pub, (void *)2, NULL, 0, 0, 0, NDX_OP_INLINE),
	                 NDX_OK);
	fake_complete_sends(rig_native(&rig), 2);
	rig_expect(&rig, 1, NDX_OK);
	rig_expect(&rig, 2, NDX_OK);
	rig_close(&rig);
}

/*
 * A kernel may destroy the memory regions of a killed process before its queue pairs. The
 * consumer's write of no bytes names no memory, so the peer's refusal means cancellation; a write
 * with bytes fails with an access violation.
 */
static void a_write_of_no_bytes_to_a_dying_peer_is_cancelled(void **state)
{
	uint8_t byte = 0;
	struct rig rig;

	(void)state;
	for (unsigned bytes = 0; bytes <= 1; bytes++) {
		const struct ndx_sge sge = {&byte, 1, 1};

		open_connected(&rig, true);
		assert_int_equal(ndx_qp_write(&rig.qp->pub, (void *)1, &sge, bytes, 0, 0, 0),
		                 NDX_OK);
		assert_int_equal(rig_send(&rig, 2, 0), NDX_OK);
		fake_break(rig_native(&rig), IBV_WC_REM_ACCESS_ERR);
		rig_expect(&rig, 1, bytes == 0 ? NDX_E_CANCELED : NDX_E_ACCESS_VIOLATION);
		rig_expect(&rig, 2, NDX_E_CANCELED);
		assert_int_equal(rig.reports, NDX_REPORT_ABORT);
		rig_close(&rig);
	}
}

/* The provider refuses the consumer's probe, a write of no bytes, to a peer that granted no memory.
 * A refused probe takes no slot. */
static void a_peer_that_granted_no_memory_is_sent_no_probe(void **state)
{
	struct rig rig;

	(void)state;
	open_connected(&rig, false);
	rig.device.count[FAKE_POST_SEND] = 0;
	for (unsigned i = 0; i < 2 * DEPTH; i++)
		assert_int_equal(ndx_qp_write(&rig.qp->pub, NULL, NULL, 0, 0, 0,
		                              i % 2 != 0 ? NDX_OP_SILENT_SUCCESS : 0),
		                 NDX_E_NOT_SUPPORTED);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 0);
	for (uintptr_t i = 1; i <= DEPTH; i++)
		assert_int_equal(rig_send(&rig, i, 0), NDX_OK);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], DEPTH);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_peer_that_granted_memory_is_probed),
		cmocka_unit_test(an_idle_peer_is_probed_four_times_in_keepalive),
		cmocka_unit_test(a_peer_that_is_not_asked_is_sent_nothing),
		cmocka_unit_test(a_peer_that_is_heard_may_not_be_silent),
		cmocka_unit_test(a_peer_with_requests_to_answer_is_not_silent),
		cmocka_unit_test(the_end_of_unsignaled_requests_ends_the_drain),
		cmocka_unit_test(a_write_of_no_bytes_has_one_byte_on_the_wire),
		cmocka_unit_test(a_write_of_no_bytes_to_a_dying_peer_is_cancelled),
		cmocka_unit_test(a_peer_that_granted_no_memory_is_sent_no_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
