/* SPDX-License-Identifier: BSD-2-Clause */
/* What fault:... makes fail, and what of it reaches the application. */
#include "rig.h"

/* Somewhere to point to. */
static char untouched_place[8];

static void open_says(const char *uri, enum ndx_status status, const char *part)
{
	struct ndx_adapter *const untouched = (void *)untouched_place;
	struct ndx_adapter *adapter = untouched;

	assert_int_equal(ndx_adapter_open(uri, &adapter), status);
	assert_ptr_equal(adapter, untouched);
	if (strstr(ndx_last_error(), part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", ndx_last_error(), part);
}

static void what_is_asked_for_is_checked(void **state)
{
	(void)state;
	open_says("fault", NDX_E_NOT_FOUND, "as fault:loop");
	open_says("fault:nobody", NDX_E_NOT_FOUND, "fault:nobody");
	open_says("fault:fault:loop", NDX_E_NOT_FOUND, "fault:fault:loop: no such provider");
	open_says("fault:loop?fault_nht=1", NDX_E_INVALID_CONFIG, "fault_nht");
	open_says("fault:loop?iface=lo", NDX_E_INVALID_CONFIG, "nor of \"loop\"");
	open_says("fault:loop?fault_nth=-1", NDX_E_INVALID_CONFIG, "\"-1\"");
	open_says("fault:loop?fault_call=nothing", NDX_E_INVALID_CONFIG,
	          "as send, qp_create or conn_connect; docs/fault.md lists them all");
	open_says("fault:loop?fault_status=OK", NDX_E_INVALID_CONFIG, "as NO_MEMORY");
	open_says("fault:loop?fault_times=all", NDX_E_INVALID_CONFIG,
	          "\"fault_times\" does not say which call fails; add fault_call=NAME");
	open_says("fault:loop?fault_status=NO_MEMORY", NDX_E_INVALID_CONFIG,
	          "\"fault_status\" does not say which call fails");
	open_says("fault:loop?fault_reorder=all", NDX_E_INVALID_CONFIG, "\"queues\"");
	open_says("fault:loop?fault_delay=99999", NDX_E_INVALID_CONFIG, "fault_delay");
}

static void it_tells_the_uri_that_opens_it_again(void **state)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter;

	(void)state;
	assert_int_equal(ndx_adapter_open("fault:loop:x?fault_nth=90&fault_seed=2", &adapter),
	                 NDX_OK);
	assert_int_equal(ndx_adapter_query(adapter, &info), NDX_OK);
	assert_string_equal(info.uri, "fault:loop:x?fault_nth=90&fault_seed=2");
	assert_string_equal(info.provider, "fault");
	ndx_adapter_close(adapter);
}

static void it_is_opened_by_its_name_only(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(entries[i].provider, "fault");
	ndx_adapter_list_free(entries);
}

static void the_open_itself_can_fail(void **state)
{
	(void)state;
	open_says("fault:loop?fault_nth=1&fault_status=DEVICE_REMOVED", NDX_E_DEVICE_REMOVED,
	          "adapter_open is made to fail");
}

static void one_call_fails_and_the_next_does_not(void **state)
{
	struct ndx_cq *const untouched = (void *)untouched_place;
	struct ndx_adapter *adapter;
	struct ndx_cq *first = NULL;
	struct ndx_cq *second = untouched;
	struct fault_tally tally;

	(void)state;
	assert_int_equal(
		ndx_adapter_open("fault:loop?fault_nth=3&fault_status=NO_MEMORY", &adapter),
		NDX_OK);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &first), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &second), NDX_E_NO_MEMORY);
	assert_ptr_equal(second, untouched);
	tally = fault_get_tally(adapter);
	assert_int_equal(tally.calls, 3);
	assert_int_equal(tally.failed, 1);
	assert_string_equal(tally.latest, "cq_create");
	assert_int_equal(tally.status, NDX_E_NO_MEMORY);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &second), NDX_OK);
	ndx_cq_close(first);
	ndx_cq_close(second);
	ndx_adapter_close(adapter);
}

static void one_kind_of_call_can_be_counted_alone(void **state)
{
	struct ndx_adapter *adapter;
	struct ndx_cq *cq = NULL;
	struct ndx_mr *mr = NULL;

	(void)state;
	assert_int_equal(
		ndx_adapter_open("fault:loop?fault_call=mr_create&fault_nth=2&fault_times=all",
	                         &adapter),
		NDX_OK);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &cq), NDX_OK);
	assert_int_equal(ndx_mr_create(adapter, &mr), NDX_OK);
	ndx_mr_close(mr);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ndx_mr_create(adapter, &mr), NDX_E_NO_MEMORY);
	assert_int_equal(fault_get_tally(adapter).calls, 4);
	assert_int_equal(fault_get_tally(adapter).failed, 3);
	ndx_cq_close(cq);
	ndx_adapter_close(adapter);
}

/* Open `uri` and make two completion queues: how many calls of this kind were made to fail? */
static uint64_t failures_of_two_queues(const char *uri)
{
	struct ndx_adapter *adapter;
	uint64_t failed;

	assert_int_equal(ndx_adapter_open(uri, &adapter), NDX_OK);
	for (int i = 0; i < 2; i++) {
		struct ndx_cq *cq = NULL;

		(void)ndx_cq_create_depth(adapter, 4, &cq);
		ndx_cq_close(cq);
	}
	assert_int_equal(fault_get_tally(adapter).calls, 2);
	failed = fault_get_tally(adapter).failed;
	ndx_adapter_close(adapter);
	return failed;
}

static void a_call_that_is_named_fails_without_a_number(void **state)
{
	(void)state;
	assert_int_equal(failures_of_two_queues("fault:loop?fault_call=cq_create"), 1);
	assert_int_equal(failures_of_two_queues("fault:loop?fault_call=cq_create&fault_times=all"),
	                 2);
	assert_int_equal(failures_of_two_queues("fault:loop?fault_call=cq_create&fault_nth=0"), 0);
}

static void a_test_arms_it_when_it_likes(void **state)
{
	struct ndx_adapter *adapter;
	struct ndx_adapter *other;
	struct ndx_cq *cq = NULL;

	(void)state;
	assert_int_equal(ndx_adapter_open("fault:loop", &adapter), NDX_OK);
	assert_int_equal(ndx_adapter_open("loop", &other), NDX_OK);
	fault_arm(adapter, 1, 2);
	fault_arm(other, 1, 1);
	assert_true(ndx_cq_create_depth(adapter, 4, &cq) < 0);
	assert_true(ndx_cq_create_depth(adapter, 4, &cq) < 0);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &cq), NDX_OK);
	assert_int_equal(fault_get_tally(adapter).calls, 3);
	ndx_cq_close(cq);
	assert_int_equal(ndx_cq_create_depth(other, 4, &cq), NDX_OK);
	assert_int_equal(fault_get_tally(other).calls, 0);
	ndx_cq_close(cq);
	ndx_adapter_close(adapter);
	ndx_adapter_close(other);
}

/* The provider writes into what it was given before it fails; the core must not hand that on. */
static void what_fails_leaves_the_callers_variables_alone(void **state)
{
	struct ndx_adapter *adapter;
	struct ndx_cq *cq = NULL;
	struct ndx_srq *srq = NULL;
	uint64_t affinity = 5;
	uint16_t group = 7;
	int fd = 12345;

	(void)state;
	assert_int_equal(ndx_adapter_open("fault:loop", &adapter), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(adapter, 4, &cq), NDX_OK);
	assert_int_equal(ndx_srq_create(adapter,
	                                &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
	                                                       .depth = 4,
	                                                       .max_sge = 1},
	                                &srq),
	                 NDX_OK);
	fault_arm(adapter, 1, UINT64_MAX);
	assert_int_equal(ndx_cq_get_fd(cq, &fd), NDX_E_INSUFFICIENT_RESOURCES);
	assert_int_equal(fd, 12345);
	assert_int_equal(ndx_cq_get_notify_affinity(cq, &group, &affinity), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_srq_get_notify_affinity(srq, &group, &affinity), NDX_E_NOT_SUPPORTED);
	assert_int_equal(group, 7);
	assert_int_equal(affinity, 5);
	ndx_srq_close(srq);
	ndx_cq_close(cq);
	ndx_adapter_close(adapter);
}

static void an_attempt_whose_answer_fails_may_be_tried_again(void **state)
{
	struct ndx_overlapped asked = {0};
	struct ndx_overlapped accepted = {0};
	struct ndx_listener *listener;
	struct sockaddr_in at;
	struct rig_side a;
	struct rig_side b;

	(void)state;
	rig_open(&a, "fault:loop?fault_call=connected&fault_nth=1&fault_status=IO_TIMEOUT");
	rig_open(&b, "loop");
	rig_make(&a, NULL);
	rig_make(&b, NULL);
	listener = rig_listen(&b, &at);
	assert_int_equal(rig_ask(&a, &at, &asked), NDX_PENDING);
	assert_int_equal(ndx_connector_create(b.adapter, NULL, &b.connector), NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(listener, b.connector, &accepted),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&accepted, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_accept(
				 b.connector, b.qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 4,
	                                                    .outbound_read_limit = 4},
				 &accepted),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&asked, RIG_PATIENCE_MS), NDX_E_IO_TIMEOUT);
	assert_int_equal(ndx_overlapped_wait(&accepted, RIG_PATIENCE_MS), NDX_E_CONNECTION_REFUSED);
	ndx_listener_close(listener);
	ndx_connector_close(a.connector);
	ndx_connector_close(b.connector);
	rig_connect(&a, &b);
	assert_int_equal(ndx_disconnect(a.connector, RIG_PATIENCE_MS), NDX_OK);
	rig_close(&a);
	rig_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_is_checked),
		cmocka_unit_test(it_tells_the_uri_that_opens_it_again),
		cmocka_unit_test(it_is_opened_by_its_name_only),
		cmocka_unit_test(the_open_itself_can_fail),
		cmocka_unit_test(one_call_fails_and_the_next_does_not),
		cmocka_unit_test(one_kind_of_call_can_be_counted_alone),
		cmocka_unit_test(a_call_that_is_named_fails_without_a_number),
		cmocka_unit_test(a_test_arms_it_when_it_likes),
		cmocka_unit_test(what_fails_leaves_the_callers_variables_alone),
		cmocka_unit_test(an_attempt_whose_answer_fails_may_be_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
