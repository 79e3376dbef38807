/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection over libfabric's verbs provider waits for the device to return the
 * requests. The control thread serves all connections of the adapter, so the wait is a state.
 */
#include "verbs_fixture.h"

#include "ofi_conn.h"

static void finish(void *arg)
{
	struct fixture *f = arg;

	ofi_conn_finish(&f->conn.spi);
}

static void abort_conn(void *arg)
{
	struct fixture *f = arg;

	ofi_conn_abort(&f->conn.spi);
}

static void force_close(void *arg)
{
	struct fixture *f = arg;

	ofi_link_force_close(f->link, "a test");
}

/* The device returns the oldest request. */
static void flush(void *arg)
{
	struct fixture *f = arg;

	f->error = 5; /* IBV_WC_WR_FLUSH_ERR */
	f->done[f->delivered++] = &ofi_tx_at(f->qp, f->qp->base.initiator.head)->op;
}

static void assert_ended(struct fixture *f)
{
	enum ndx_status status;

	assert_int_equal(f->reports, NDX_REPORT_QUIET);
	assert_true(f->closed);
	assert_null(f->conn.link);
	assert_int_equal(fixture_take_result(f, &status), 1);
	assert_int_equal(status, NDX_E_CANCELED);
}

static void nothing_to_flush_ends_at_once(void **state)
{
	struct fixture *f = *state;

	fixture_call(f, finish);
	assert_int_equal(f->reports, NDX_REPORT_QUIET);
	assert_true(f->shut);
	assert_true(f->closed);
}

static void the_end_waits_for_the_flush(void **state)
{
	struct fixture *f = *state;

	(void)fixture_post_write(f);
	fixture_call(f, finish);
	assert_true(f->shut);
	for (int i = 0; i < 3; i++) {
		fixture_call(f, fixture_do_nothing); /* the control thread is free */
		assert_false(f->closed);
		assert_int_equal(f->reports, 0);
	}
	fixture_call(f, abort_conn); /* changes nothing: the end is under way */
	assert_false(f->closed);
	fixture_call(f, flush);
	fixture_await_report(f);
	assert_ended(f);
}

static void time_is_over(void *arg)
{
	struct fixture *f = arg;

	f->link->flush_until_ns = 1;
}

static void a_device_that_keeps_a_request_ends_by_time(void **state)
{
	struct fixture *f = *state;

	(void)fixture_post_write(f);
	fixture_call(f, finish);
	assert_int_equal(f->reports, 0);
	fixture_call(f, time_is_over);
	fixture_await_report(f);
	assert_ended(f);
}

/* A revoke closes a link that is about to end. The core waits for QUIET, so the close reports
 * QUIET.
 */
static void a_forced_close_reports_the_end(void **state)
{
	struct fixture *f = *state;

	(void)fixture_post_write(f);
	fixture_call(f, finish);
	fixture_call(f, force_close);
	assert_ended(f);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_create, fixture_destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_to_flush_ends_at_once),
		CASE(the_end_waits_for_the_flush),
		CASE(a_device_that_keeps_a_request_ends_by_time),
		CASE(a_forced_close_reports_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
