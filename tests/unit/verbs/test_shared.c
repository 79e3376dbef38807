/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: slots, who took a receive, and what a failing device leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

#define DEPTH 4u

static struct ndx_spi_srq *open_shared(struct rig *rig)
{
	struct ndx_spi_srq *srq = NULL;

	assert_int_equal(verbs_srq_create(&rig->adapter.spi, DEPTH, 2, 0, 0, &srq), NDX_OK);
	return srq;
}

static enum ndx_status receive(struct rig *rig, struct ndx_spi_srq *srq, uintptr_t context)
{
	const struct ndx_sge sge = {rig->memory, sizeof(rig->memory), 1};

	return ndx_srq_receive(&srq->pub, (void *)context, &sge, 1);
}

/* However often a consumer that never polls posts: nothing is lost, and nothing overruns. */
static void a_slot_is_free_when_its_result_was_taken(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&rig, srq, i), NDX_OK);
	assert_int_equal(receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(fake_arrive(rig_native(&rig), 8));
	verbs_qp_poll(rig_qp(&rig));
	assert_int_equal(receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	rig_expect(&rig, 0, NDX_OK);
	assert_int_equal(receive(&rig, srq, 9), NDX_OK);
	assert_int_equal(receive(&rig, srq, 10), NDX_E_NO_MORE_ENTRIES);
	for (unsigned i = 1; i < DEPTH; i++)
		rig_expect(&rig, i, NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	rig_expect(&rig, 9, NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

/* What a consumer on another thread does in the moment in which a result has become visible. */
static struct {
	struct rig *rig;
	struct ndx_spi_srq *srq;
	enum ndx_status posted;
} consumer;

void __real_base_cq_push(struct base_cq *cq, struct base_queue *queue,
                         const struct ndx_result *result);
void __wrap_base_cq_push(struct base_cq *cq, struct base_queue *queue,
                         const struct ndx_result *result);

void __wrap_base_cq_push(struct base_cq *cq, struct base_queue *queue,
                         const struct ndx_result *result)
{
	struct ndx_result taken;

	__real_base_cq_push(cq, queue, result);
	if (consumer.rig == NULL)
		return;
	assert_int_equal(base_cq_take(cq, &taken, 1), 1);
	consumer.posted = receive(consumer.rig, consumer.srq, 9);
}

static void a_slot_is_free_before_its_result_can_be_taken(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&rig, srq, i), NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8));
	consumer.rig = &rig;
	consumer.srq = srq;
	consumer.posted = NDX_PENDING;
	verbs_qp_poll(rig_qp(&rig));
	consumer.rig = NULL;
	assert_int_equal(consumer.posted, NDX_OK);
	assert_int_equal(receive(&rig, srq, 10), NDX_E_NO_MORE_ENTRIES);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

/* Its results stay, and hold no slot of the queue any more. */
static void a_queue_pair_that_goes_leaves_receives_and_results(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&rig, srq, i), NDX_OK);
	assert_true(fake_arrive(rig_native(&rig), 8)); /* not polled before */
	verbs_qp_destroy(rig.qp);
	rig.qp = NULL;
	assert_int_equal(receive(&rig, srq, 9), NDX_OK);
	assert_int_equal(receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	rig_expect(&rig, 0, NDX_OK);
	rig_expect_none(&rig);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

static void a_refused_receive_takes_nothing(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		rig.device.refuse_nth[FAKE_POST_SRQ_RECV] = 1;
		assert_int_equal(receive(&rig, srq, i), NDX_E_NO_MORE_ENTRIES);
	}
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&rig, srq, i), NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

static void a_queue_that_cannot_grow_stays_as_it_was(void **state)
{
	struct rig rig;
	struct ndx_spi_srq *srq;

	(void)state;
	rig_open(&rig);
	srq = open_shared(&rig);
	rig_connect(&rig, 8, srq);
	rig.device.refuse_nth[FAKE_MODIFY_SRQ] = 1;
	assert_int_equal(verbs_srq_modify(srq, 2 * DEPTH, 0), NDX_E_INSUFFICIENT_RESOURCES);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&rig, srq, i), NDX_OK);
	assert_int_equal(receive(&rig, srq, 9), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(verbs_srq_modify(srq, 2 * DEPTH, 0), NDX_OK);
	assert_int_equal(receive(&rig, srq, 9), NDX_OK);
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_is_free_when_its_result_was_taken),
		cmocka_unit_test(a_slot_is_free_before_its_result_can_be_taken),
		cmocka_unit_test(a_queue_pair_that_goes_leaves_receives_and_results),
		cmocka_unit_test(a_refused_receive_takes_nothing),
		cmocka_unit_test(a_queue_that_cannot_grow_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
