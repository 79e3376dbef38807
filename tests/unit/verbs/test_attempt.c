/* SPDX-License-Identifier: BSD-2-Clause */
/* An attempt to connect that the peer ends while this end continues it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

#define DEPTH 8u

struct attempt {
	struct rig rig;
	enum verbs_conn_state state; /* ANSWERED, or REQUESTED */
	struct verbs_event event;    /* the event with which the peer ends the attempt */
	enum ndx_status status;
	bool error_names_peer;
};

static unsigned status_count;
static enum ndx_status reported_status;

static void on_established(struct ndx_spi_conn *spi, enum ndx_status status, int32_t native,
                           const struct ndx_spi_params *params)
{
	(void)spi;
	(void)native;
	(void)params;
	status_count++;
	reported_status = status;
}

static void open_attempt(struct attempt *a, enum verbs_conn_state state,
                         enum rdma_cm_event_type what)
{
	struct rig *rig = &a->rig;

	status_count = 0;
	a->state = state;
	a->event = (struct verbs_event){.what = what};
	rig_open(rig);
	rig->host.established = on_established;
	rig->host.connected = on_established;
	rig_connect(rig, DEPTH, NULL);
	assert_int_equal(rig_receive(rig, 1), NDX_OK);
	verbs_qp_bring_down(rig_qp(rig));
	rig_qp(rig)->base.state = NDXP_QP_IDLE;
	rig->conn.spi.qp = rig->qp;
	rig->conn.state = state;
}

static void continue_attempt(void *arg)
{
	struct attempt *a = arg;
	static const struct ndx_spi_params none;

	a->status = a->state == VERBS_CONN_ANSWERED ? verbs_conn_complete(&a->rig.conn.spi)
	                                            : verbs_conn_accept(&a->rig.conn.spi, &none);
	a->error_names_peer = strstr(ndx_last_error(), "the peer gave up the attempt") != NULL;
}

static void on_event(void *arg)
{
	struct attempt *a = arg;

	verbs_conn_on_event(&a->rig.conn, &a->event);
}

static void abandon_attempt(void *arg)
{
	struct attempt *a = arg;

	verbs_conn_abandon(&a->rig.conn.spi);
}

static void call_on_loop(struct attempt *a, ndxp_loop_fn *fn)
{
	ndxp_loop_call(a->rig.adapter.spi.loop, fn, a);
}

/* The queue pair is as before the attempt: its receive is still posted. */
static void close_attempt(struct attempt *a)
{
	assert_int_equal(ndxp_queue_outstanding(&rig_qp(&a->rig)->base.receive), 1);
	assert_int_equal(rig_native(&a->rig)->state, IBV_QPS_RESET);
	rig_expect_none(&a->rig);
	rig_close(&a->rig);
}

static const enum verbs_conn_state states[] = {VERBS_CONN_ANSWERED, VERBS_CONN_REQUESTED};
static const enum rdma_cm_event_type peer_events[] = {RDMA_CM_EVENT_REJECTED,
                                                      RDMA_CM_EVENT_DISCONNECTED};

/* rdma_cm may refuse any of the calls that bring the queue pair up, because the peer has ended the
 * attempt and the event is not read yet. */
static void an_unread_event_of_the_peer_ends_the_attempt(void **state)
{
	struct attempt a;

	(void)state;
	/* on Ethernet the change to INIT needs no call of rdma_cm */
	for (unsigned ethernet = 0; ethernet <= 1; ethernet++) {
		for (unsigned i = 0; i < 2 * 2 * (3 - ethernet); i++) {
			open_attempt(&a, states[i % 2], peer_events[i / 2 % 2]);
			a.rig.adapter.ethernet = ethernet;
			a.rig.device.refuse_errno = EINVAL;
			a.rig.device.refuse_nth[FAKE_INIT_QP_ATTR] = 1 + i / 4;
			call_on_loop(&a, continue_attempt);
			assert_int_equal(a.status, NDX_E_CONNECTION_ABORTED);
			assert_true(a.error_names_peer);
			call_on_loop(&a, abandon_attempt);
			call_on_loop(&a, on_event);
			/* the status of the call has reported the end */
			assert_int_equal(status_count, 0);
			close_attempt(&a);
		}
	}
}

static void an_event_of_the_peer_ends_the_attempt(void **state)
{
	struct attempt a;

	(void)state;
	for (unsigned i = 0; i < 2 * 2; i++) {
		open_attempt(&a, states[i % 2], peer_events[i / 2]);
		call_on_loop(&a, on_event);
		assert_int_equal(status_count, 1);
		assert_int_equal(reported_status, NDX_E_CONNECTION_ABORTED);
		call_on_loop(&a, continue_attempt);
		assert_int_equal(a.status, NDX_E_CONNECTION_ABORTED);
		call_on_loop(&a, abandon_attempt);
		assert_int_equal(status_count, 1);
		close_attempt(&a);
	}
}

/* The device refuses the call itself, so the peer cannot be the reason. */
static void a_refusal_of_the_device_is_not_the_peers(void **state)
{
	struct attempt a;

	(void)state;
	for (unsigned i = 0; i < 2 * 3; i++) {
		open_attempt(&a, states[i % 2], RDMA_CM_EVENT_REJECTED);
		a.rig.device.refuse_errno = EINVAL;
		a.rig.device.refuse_nth[FAKE_MODIFY_QP] = 1 + i / 2;
		call_on_loop(&a, continue_attempt);
		assert_int_equal(a.status, NDX_E_INTERNAL_ERROR);
		assert_false(a.error_names_peer);
		call_on_loop(&a, abandon_attempt);
		close_attempt(&a);
	}
}

/* The connection manager has repeated its message for a minute, and the peer has not answered. */
static void silence_ends_an_accept_as_it_ends_a_connect(void **state)
{
	static const struct {
		enum verbs_conn_state state;
		enum ndx_status status; /* NDX_OK: no report */
	} cases[] = {
		{VERBS_CONN_RESOLVING, NDX_E_IO_TIMEOUT},
		{VERBS_CONN_CONNECTING, NDX_E_IO_TIMEOUT},
		{VERBS_CONN_ACCEPTED, NDX_E_CONNECTION_ABORTED},
		{VERBS_CONN_UP, NDX_OK},
	};
	struct attempt a;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const unsigned expected_count = cases[i].status != NDX_OK;

		open_attempt(&a, cases[i].state, RDMA_CM_EVENT_UNREACHABLE);
		a.event.status = -ETIMEDOUT;
		call_on_loop(&a, on_event);
		assert_int_equal(status_count, expected_count);
		if (expected_count)
			assert_int_equal(reported_status, cases[i].status);
		if (cases[i].state == VERBS_CONN_ACCEPTED)
			assert_non_null(strstr(a.rig.cause, "has not confirmed the accept"));
		assert_int_equal(a.rig.reports, 0);
		/* A late event changes nothing. */
		a.event = (struct verbs_event){.what = RDMA_CM_EVENT_ESTABLISHED};
		call_on_loop(&a, on_event);
		assert_int_equal(status_count, expected_count);
		call_on_loop(&a, abandon_attempt);
		close_attempt(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unread_event_of_the_peer_ends_the_attempt),
		cmocka_unit_test(an_event_of_the_peer_ends_the_attempt),
		cmocka_unit_test(a_refusal_of_the_device_is_not_the_peers),
		cmocka_unit_test(silence_ends_an_accept_as_it_ends_a_connect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
