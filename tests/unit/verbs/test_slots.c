/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of a device that frees those of unsignaled requests only with a later completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "rig.h"
#include "verbs_wr.h"

#define DEPTH 16u

static void silent_requests_never_run_out_of_slots(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	for (unsigned i = 0; i < 50 * DEPTH; i++)
		assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_expect_none(&rig);
	/* and few of the requests were signaled */
	assert_true(fake_qp_of(rig_native(&rig))->signalled <= 50 * DEPTH / 4);
	rig_close(&rig);
}

/* At every depth the provider signals the request in the last free slot. */
static void the_smallest_queues_free_their_slots(void **state)
{
	(void)state;
	for (uint32_t depth = 1; depth <= 9; depth++) {
		struct rig rig;

		rig_open(&rig);
		rig.device.runs = true;
		rig_connect(&rig, depth, NULL);
		for (unsigned i = 0; i < 40; i++)
			assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
		rig_close(&rig);
	}
}

static void full_queue_refuses_and_takes_again(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(rig_send(&rig, i, NDX_OP_SILENT_SUCCESS), NDX_OK);
	assert_int_equal(rig_send(&rig, 99, NDX_OP_SILENT_SUCCESS), NDX_E_NO_MORE_ENTRIES);
	fake_complete_sends(rig_native(&rig), DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(rig_send(&rig, 100 + i, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_close(&rig);
}

/* A signaled request among unsignaled ones: its completion ends the requests before it, and no
 * other. */
static void a_result_frees_what_is_before_it(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(rig_send(&rig, 1, NDX_OP_SILENT_SUCCESS), NDX_OK);
	assert_int_equal(rig_send(&rig, 2, 0), NDX_OK);
	assert_int_equal(rig_send(&rig, 3, NDX_OP_SILENT_SUCCESS), NDX_OK);
	fake_complete_sends(rig_native(&rig), 1);
	rig_expect_none(&rig);
	assert_int_equal(ndxp_queue_outstanding(&rig_qp(&rig)->base.initiator), 3);
	fake_complete_sends(rig_native(&rig), 2);
	rig_expect(&rig, 2, NDX_OK);
	rig_expect_none(&rig);
	assert_int_equal(ndxp_queue_outstanding(&rig_qp(&rig)->base.initiator), 1);
	rig_close(&rig);
}

/* No signaled request follows: the watchdog posts a sweep. */
static void a_sweep_finds_completions_without_an_event(void **state)
{
	struct rig rig;
	struct verbs_qp *qp;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	qp = rig_qp(&rig);
	assert_int_equal(rig_send(&rig, 1, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_expect_none(&rig);
	assert_int_equal(ndxp_queue_outstanding(&qp->base.initiator), 1);
	ndxp_lock_acquire(&qp->base.lock);
	verbs_wr_post_sweep(qp);
	ndxp_lock_release(&qp->base.lock);
	rig_expect_none(&rig);
	assert_int_equal(ndxp_queue_outstanding(&qp->base.initiator), 0);
	/* all requests are complete, so no second sweep is posted */
	rig.device.count[FAKE_POST_SEND] = 0;
	ndxp_lock_acquire(&qp->base.lock);
	verbs_wr_post_sweep(qp);
	ndxp_lock_release(&qp->base.lock);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 0);
	rig_close(&rig);
}

static void draining_ends_without_an_event(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(rig_send(&rig, 1, NDX_OP_SILENT_SUCCESS), NDX_OK);
	verbs_conn_drain(&rig.conn.spi);
	assert_true(rig.reports & NDX_REPORT_DRAINED);
	/* a request that is posted now is cancelled; a later sweep does not make it a success */
	assert_int_equal(rig_send(&rig, 2, NDX_OP_SILENT_SUCCESS), NDX_OK);
	rig_expect(&rig, 2, NDX_E_CANCELED);
	rig_close(&rig);
}

static void a_refused_post_takes_nothing(void **state)
{
	static const struct {
		int err;
		enum ndx_status status;
	} refusals[] = {{EINVAL, NDX_E_INTERNAL_ERROR}, {EIO, NDX_E_INTERNAL_ERROR}};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		rig.device.refuse_errno = refusals[i].err;
		rig.device.refuse_nth[FAKE_POST_SEND] = 1;
		assert_int_equal(rig_send(&rig, 1, 0), refusals[i].status);
		rig.device.refuse_nth[FAKE_POST_RECV] = 1;
		assert_int_equal(rig_receive(&rig, 1), refusals[i].status);
	}
	rig.device.refuse_errno = ENOMEM;
	rig.device.refuse_nth[FAKE_POST_SEND] = 1;
	assert_int_equal(rig_send(&rig, 2, 0), NDX_E_NO_MORE_ENTRIES);
	/* The path for requests with flags, too; the next request takes the same slot. */
	for (unsigned i = 0; i < DEPTH; i++) {
		rig.device.refuse_errno = EINVAL;
		rig.device.refuse_nth[FAKE_POST_SEND] = 1;
		assert_int_equal(rig_send(&rig, 3, NDX_OP_SOLICIT_EVENT), NDX_E_INTERNAL_ERROR);
	}
	rig_expect_none(&rig);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(rig_send(&rig, 10 + i, 0), NDX_OK);
		assert_int_equal(rig_receive(&rig, 50 + i), NDX_OK);
	}
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, 10 + i, NDX_OK);
	rig_expect_none(&rig);
	rig_close(&rig);
}

static void results_that_come_late_and_in_batches_keep_their_order(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	rig.device.empty_polls = 3;
	rig.device.batch = 5;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_send(&rig, i, 0), NDX_OK);
	for (unsigned i = 0; i < 3; i++)
		rig_expect_none(&rig);
	for (unsigned i = 0; i < 5; i++)
		rig_expect(&rig, i, NDX_OK);
	rig_expect_none(&rig);
	rig_close(&rig);
}

/* The affinity is a set of processors; completion vectors are assigned to them in turn. */
static void affinity_chooses_the_vector(void **state)
{
	static const struct {
		uint64_t affinity;
		int vector;
	} choices[] = {
		{0, 0}, {1, 0}, {4, 2}, {12, 2}, {UINT64_C(1) << 6, 2}, {UINT64_C(1) << 63, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct ndx_spi_cq *cq = NULL;
		struct rig rig;

		rig_open(&rig);
		rig.device.context.num_comp_vectors = 4;
		assert_int_equal(
			verbs_cq_create(
				&rig.adapter.spi,
				&(struct ndx_cq_attr){.depth = 8, .affinity = choices[i].affinity},
				&cq),
			NDX_OK);
		assert_int_equal(rig.device.vector, choices[i].vector);
		verbs_cq_destroy(cq);
		rig_close(&rig);
	}
}

/* The peer may be another implementation, which uses the solicited bit. */
static void a_send_has_the_solicited_bit(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(rig_send(&rig, 1, NDX_OP_SOLICIT_EVENT), NDX_OK);
	assert_int_equal(rig_send(&rig, 2, 0), NDX_OK);
	assert_true(fake_qp_of(rig_native(&rig))->sends[0].flags & IBV_SEND_SOLICITED);
	assert_false(fake_qp_of(rig_native(&rig))->sends[1].flags & IBV_SEND_SOLICITED);
	rig_close(&rig);
}

/* A queue that grows with each connection makes connections slow. */
static void a_queue_begins_with_the_depth_asked_for(void **state)
{
	static const struct {
		uint32_t depth;
		int device_max;
		int expected_cqe;
	} cases[] = {{1000, 100000, 1500},
	             {1000, 1200, 1200},
	             {10, 100000, 64},
	             {30000, 100000, 4096},
	             {1000, 0, 64}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ndx_spi_cq *cq;
		struct rig rig;

		rig_open(&rig);
		rig.adapter.attr.max_cqe = cases[i].device_max;
		assert_int_equal(verbs_cq_create(&rig.adapter.spi,
		                                 &(struct ndx_cq_attr){.depth = cases[i].depth},
		                                 &cq),
		                 NDX_OK);
		assert_int_equal(verbs_cq_of(&cq->pub)->native->cqe, cases[i].expected_cqe);
		assert_int_equal(
			verbs_cq_reserve(verbs_cq_of(&cq->pub), (uint32_t)cases[i].expected_cqe),
			NDX_OK);
		assert_int_equal(rig.device.count[FAKE_RESIZE_CQ], 0);
		assert_int_equal(verbs_cq_reserve(verbs_cq_of(&cq->pub), 1), NDX_OK);
		assert_int_equal(rig.device.count[FAKE_RESIZE_CQ], 1);
		verbs_cq_unreserve(verbs_cq_of(&cq->pub), (uint32_t)cases[i].expected_cqe + 1);
		verbs_cq_destroy(cq);
		rig_close(&rig);
	}
}

/* If the device refuses the larger queue, the provider creates a small one: the size may never be
 * needed, and RLIMIT_MEMLOCK may be small. */
static void a_queue_refused_at_that_depth_begins_small(void **state)
{
	struct ndx_spi_cq *cq;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.adapter.attr.max_cqe = 100000;
	rig.device.refuse_nth[FAKE_CREATE_CQ] = 1;
	rig.device.refuse_errno = ENOMEM;
	assert_int_equal(
		verbs_cq_create(&rig.adapter.spi, &(struct ndx_cq_attr){.depth = 1000}, &cq),
		NDX_OK);
	assert_int_equal(verbs_cq_of(&cq->pub)->native->cqe, 64);
	verbs_cq_destroy(cq);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_begins_with_the_depth_asked_for),
		cmocka_unit_test(a_queue_refused_at_that_depth_begins_small),
		cmocka_unit_test(affinity_chooses_the_vector),
		cmocka_unit_test(a_send_has_the_solicited_bit),
		cmocka_unit_test(silent_requests_never_run_out_of_slots),
		cmocka_unit_test(the_smallest_queues_free_their_slots),
		cmocka_unit_test(full_queue_refuses_and_takes_again),
		cmocka_unit_test(a_result_frees_what_is_before_it),
		cmocka_unit_test(a_sweep_finds_completions_without_an_event),
		cmocka_unit_test(draining_ends_without_an_event),
		cmocka_unit_test(a_refused_post_takes_nothing),
		cmocka_unit_test(results_that_come_late_and_in_batches_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
