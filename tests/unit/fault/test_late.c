/* SPDX-License-Identifier: BSD-2-Clause */
/* Results and upcalls that come late, in another order, or never. */
#include "rig.h"

#include <poll.h>
#include <stdio.h>

#define SEEDS 8u
#define MESSAGES 40u

/* All results that come, to the last of `wanted`; a queue that says nothing in time fails. */
static void take_all(struct rig_side *s, struct ndx_result *results, size_t wanted, bool by_fd)
{
	struct ndx_overlapped ov = {0};
	struct pollfd p = {.events = POLLIN};
	size_t have = 0;

	if (by_fd)
		assert_int_equal(ndx_cq_get_fd(s->cq, &p.fd), NDX_OK);
	while (have < wanted) {
		have += ndx_cq_get_results(s->cq, results + have, wanted - have);
		if (have == wanted)
			break;
		if (by_fd) {
			assert_int_equal(ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK);
			assert_int_equal(poll(&p, 1, (int)RIG_PATIENCE_MS), 1);
		} else {
			assert_int_equal(ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ANY, &ov), NDX_PENDING);
			assert_int_equal(ndx_overlapped_wait(&ov, RIG_PATIENCE_MS), NDX_OK);
		}
	}
}

static void late_results_raise_notifications(const char *uri, bool by_fd)
{
	struct ndx_result results[RIG_DEPTH];
	struct rig_side a;
	struct rig_side b;

	rig_pair(&a, uri, &b, uri);
	for (unsigned i = 0; i < MESSAGES; i += 4) {
		for (uintptr_t slot = 0; slot < 4; slot++)
			rig_post_receive(&b, slot);
		for (uintptr_t slot = 0; slot < 4; slot++)
			rig_post_send(&a, slot);
		take_all(&b, results, 4, by_fd);
		for (uintptr_t slot = 0; slot < 4; slot++) {
			assert_int_equal(results[slot].status, NDX_OK);
			assert_ptr_equal(results[slot].request_context, (void *)slot);
		}
		take_all(&a, results, 4, by_fd);
	}
	assert_int_equal(ndx_disconnect(a.connector, RIG_PATIENCE_MS), NDX_OK);
	rig_close(&a);
	rig_close(&b);
}

static void late_results_wake_waiters(void **state)
{
	char uri[80];

	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		(void)snprintf(uri, sizeof(uri),
		               "fault:loop?fault_delay=3&fault_event_delay=2&fault_seed=%u", seed);
		late_results_raise_notifications(uri, (seed & 1) != 0);
	}
}

/* Otherwise the tests above would show nothing. */
static void results_do_come_late(void **state)
{
	struct ndx_result result;
	unsigned empty = 0;
	struct rig_side a;
	struct rig_side b;

	(void)state;
	rig_pair(&a, "fault:loop?fault_delay=20", &b, "loop");
	for (unsigned i = 0; i < 10; i++) {
		/* looks, finds nothing, and does not see for a while what comes then */
		while (ndx_cq_get_results(a.cq, &result, 1) > 0)
			;
		rig_post_receive(&a, 0);
		rig_post_send(&b, 0);
		assert_int_equal(ndx_cq_get_results(b.cq, &result, 1), 1);
		if (ndx_cq_get_results(a.cq, &result, 1) == 0) {
			empty++;
			take_all(&a, &result, 1, false);
		}
		assert_int_equal(result.status, NDX_OK);
	}
	assert_true(empty > 0);
	rig_close(&a);
	rig_close(&b);
}

static void a_cancelled_notification_is_not_lost(void **state)
{
	struct ndx_overlapped ovs[3] = {{0}};
	struct ndx_result result;
	struct rig_side a;
	struct rig_side b;

	(void)state;
	rig_pair(&a, "fault:loop?fault_delay=5", &b, "loop");
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned n = 0; n < 3; n++)
			assert_int_equal(ndx_cq_notify(a.cq, (enum ndx_cq_notify_type)n, &ovs[n]),
			                 NDX_PENDING);
		assert_int_equal(ndx_cq_cancel(a.cq), NDX_OK);
		for (unsigned n = 0; n < 3; n++)
			assert_int_equal(ndx_overlapped_status(&ovs[n]), NDX_E_CANCELED);
		rig_post_receive(&a, 0);
		rig_post_send(&b, 0);
		assert_int_equal(ndx_cq_get_results(b.cq, &result, 1), 1);
		take_all(&a, &result, 1, false);
	}
	rig_close(&a);
	rig_close(&b);
}

static void a_lost_result_is_lost(void **state)
{
	struct ndx_result results[4];
	struct rig_side a;
	struct rig_side b;

	(void)state;
	rig_pair(&a, "loop", &b, "fault:loop?fault_drop=2");
	for (uintptr_t slot = 0; slot < 3; slot++)
		rig_post_receive(&b, slot);
	for (uintptr_t slot = 0; slot < 3; slot++)
		rig_post_send(&a, slot);
	assert_int_equal(ndx_cq_get_results(b.cq, results, 4), 2);
	assert_ptr_equal(results[0].request_context, (void *)0);
	assert_ptr_equal(results[1].request_context, (void *)2);
	rig_close(&a);
	rig_close(&b);
}

/* Returns whether any two were exchanged. */
static bool exchanged(const char *uri)
{
	struct ndx_result results[RIG_DEPTH];
	bool any = false;
	struct rig_side a;
	struct rig_side b;

	rig_pair(&a, "loop", &b, uri);
	for (uintptr_t slot = 0; slot < RIG_DEPTH; slot++)
		rig_post_receive(&b, slot);
	for (uintptr_t slot = 0; slot < RIG_DEPTH; slot++)
		rig_post_send(&a, slot);
	assert_int_equal(ndx_cq_get_results(b.cq, results, RIG_DEPTH), RIG_DEPTH);
	for (uintptr_t slot = 0; slot < RIG_DEPTH; slot++)
		any = any || results[slot].request_context != (void *)slot;
	rig_close(&a);
	rig_close(&b);
	return any;
}

static void order_is_kept_unless_asked(void **state)
{
	(void)state;
	assert_false(exchanged("fault:loop?fault_reorder=queues&fault_seed=1"));
	assert_true(exchanged("fault:loop?fault_reorder=any&fault_seed=1"));
}

static void a_lost_upcall_is_lost(void **state)
{
	struct ndx_overlapped asked = {0};
	struct ndx_overlapped requested = {0};
	struct ndx_listener *listener;
	struct sockaddr_in at;
	struct rig_side a;
	struct rig_side b;

	(void)state;
	rig_open(&a, "fault:loop?fault_event_drop=1");
	rig_open(&b, "loop");
	rig_make(&a, NULL);
	rig_make(&b, NULL);
	listener = rig_listen(&b, &at);
	assert_int_equal(rig_ask(&a, &at, &asked), NDX_PENDING);
	assert_int_equal(ndx_connector_create(b.adapter, NULL, &b.connector), NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(listener, b.connector, &requested),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&requested, RIG_PATIENCE_MS), NDX_OK);
	/* closing refuses the request: that answer is the first upcall */
	ndx_connector_close(b.connector);
	b.connector = NULL;
	ndx_listener_close(listener);
	assert_int_equal(ndx_overlapped_wait(&asked, 50), NDX_PENDING);
	assert_int_equal(ndx_connector_cancel(a.connector), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&asked), NDX_E_CANCELED);
	rig_close(&a);
	rig_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_results_wake_waiters),
		cmocka_unit_test(results_do_come_late),
		cmocka_unit_test(a_cancelled_notification_is_not_lost),
		cmocka_unit_test(a_lost_result_is_lost),
		cmocka_unit_test(order_is_kept_unless_asked),
		cmocka_unit_test(a_lost_upcall_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
