/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Software RoCE may deliver the completion of an answer before the completion of the message that
 * was answered. The test's native queue returns a script of completions, and the test checks the
 * order of the results.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "base_loop.h"
#include "ofi_verbs.h"

#define DEPTH 8u
#define STEPS 16u

/* The outcome of a read of the native queue. */
enum step {
	END, /* no completion in this read and all later ones */
	NOTHING,
	SEND,    /* the completion of the oldest outstanding request ... */
	RECEIVE, /* ... or receive */
	FAILED_SEND,
};

struct rig {
	struct ofi_adapter adapter;
	struct ofi_ncq ncq;
	struct ofi_cq *cq;
	struct ofi_qp *qp;
	struct fid_cq native;
	enum step script[STEPS];
	unsigned next_step; /* index of the next step */
	unsigned reads;
	uint32_t sends; /* completions of sends returned so far */
	uint32_t receives;
};

static struct rig *rig_of(struct fid_cq *native)
{
	return container_of(native, struct rig, native);
}

static ssize_t read_script(struct fid_cq *native, void *out, size_t count)
{
	struct rig *rig = rig_of(native);
	struct fi_cq_data_entry *entry = out;
	const enum step step = rig->script[rig->next_step];

	assert_true(count > 0);
	rig->reads++;
	if (step == FAILED_SEND)
		return -FI_EAVAIL;
	rig->next_step += step != END;
	if (step == END || step == NOTHING)
		return -FI_EAGAIN;
	memset(entry, 0, sizeof(*entry));
	if (step == SEND)
		entry->op_context = &ofi_tx_at(rig->qp, rig->sends++)->op;
	else
		entry->op_context = &ofi_rx_at(rig->qp, rig->receives++)->op;
	return 1;
}

static ssize_t read_script_error(struct fid_cq *native, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct rig *rig = rig_of(native);

	(void)flags;
	assert_int_equal(rig->script[rig->next_step], FAILED_SEND);
	rig->next_step++;
	out->op_context = &ofi_tx_at(rig->qp, rig->sends++)->op;
	out->prov_errno = 5; /* IBV_WC_WR_FLUSH_ERR */
	return 1;
}

static struct fi_ops_cq ops = {
	.size = sizeof(struct fi_ops_cq), .read = read_script, .readerr = read_script_error};

static void ignore_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native,
                          const char *cause)
{
	(void)conn;
	(void)bits;
	(void)native;
	(void)cause;
}

static const struct ndx_host host = {.report = ignore_report};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct ndx_spi_cq *cq;
	struct ndx_spi_qp *qp;
	struct ndx_qp_attr attr = {.receive_depth = DEPTH,
	                           .initiator_depth = DEPTH,
	                           .max_receive_sge = 1,
	                           .max_initiator_sge = 1};

	assert_non_null(rig);
	rig->adapter.spi.host = &host;
	rig->adapter.backend = &ofi_verbs;
	rig->adapter.software = true;
	rig->adapter.max_transfer = 4096;
	ndxp_list_init(&rig->adapter.qps);
	rig->native.ops = &ops;
	rig->ncq.adapter = &rig->adapter;
	rig->ncq.cq = &rig->native;
	assert_int_equal(
		ofi_cq_create(&rig->adapter.spi, &(struct ndx_cq_attr){.depth = 2 * DEPTH}, &cq),
		NDX_OK);
	rig->cq = (struct ofi_cq *)(void *)cq;
	attr.receive_cq = &cq->pub;
	attr.initiator_cq = &cq->pub;
	assert_int_equal(ofi_qp_create(&rig->adapter.spi, &attr, &qp), NDX_OK);
	rig->qp = ofi_qp_of(qp);
	rig->qp->base.state = NDXP_QP_UP;
	rig->qp->ncq = &rig->ncq;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	ofi_qp_destroy(&rig->qp->base.spi);
	ofi_cq_destroy(&rig->cq->base.spi);
	free(rig);
	return 0;
}

/* Mark sends and receives as posted to libfabric. */
static void mark_posted(struct rig *rig, uint32_t sends, uint32_t receives)
{
	struct ofi_qp *qp = rig->qp;

	for (uint32_t i = 0; i < sends; i++) {
		(void)ndxp_queue_take(&qp->base.initiator, NULL, NDX_REQUEST_SEND, 0);
		ofi_tx_at(qp, qp->tx_next++)->native = true;
		qp->tx_native++;
	}
	for (uint32_t i = 0; i < receives; i++) {
		(void)ndxp_queue_take(&qp->base.receive, NULL, NDX_REQUEST_RECEIVE, 0);
		ofi_rx_at(qp, qp->rx_next++)->native = true;
		qp->rx_native++;
	}
}

static void run_script(struct rig *rig, const enum step *script, size_t count)
{
	memset(rig->script, 0, sizeof(rig->script));
	memcpy(rig->script, script, count * sizeof(*script));
	rig->next_step = 0;
	rig->reads = 0;
	(void)ofi_ncq_progress(&rig->ncq);
}

static void expect_result(struct rig *rig, enum ndx_request_type type, enum ndx_status status)
{
	struct ndx_result result;

	assert_int_equal(ndxp_cq_take(&rig->cq->base, &result, 1), 1);
	assert_int_equal(result.request_type, type);
	assert_int_equal(result.status, status);
}

static void expect_no_result(struct rig *rig)
{
	struct ndx_result result;

	assert_int_equal(ndxp_cq_take(&rig->cq->base, &result, 1), 0);
}

#define RUN_SCRIPT(rig, ...)                              \
	run_script(rig, (const enum step[]){__VA_ARGS__}, \
	           sizeof((const enum step[]){__VA_ARGS__}) / sizeof(enum step))

static void answers_follow_the_messages_that_they_answer(void **state)
{
	struct rig *rig = *state;

	mark_posted(rig, 2, 3);
	RUN_SCRIPT(rig, RECEIVE, NOTHING, SEND, RECEIVE, NOTHING, SEND, RECEIVE);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_no_result(rig);
}

/* The send waits for something else, and the provider cannot know how long. */
static void a_send_that_does_not_complete_is_awaited_once(void **state)
{
	struct rig *rig = *state;

	mark_posted(rig, 1, 2);
	RUN_SCRIPT(rig, RECEIVE);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	assert_true(rig->reads > 3);
	RUN_SCRIPT(rig, RECEIVE);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	assert_int_equal(rig->reads, 2);
	RUN_SCRIPT(rig, SEND);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	/* The provider waits again for the next send. */
	mark_posted(rig, 1, 1);
	RUN_SCRIPT(rig, RECEIVE, NOTHING, SEND);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_no_result(rig);
}

static void held_receives_precede_a_failed_send(void **state)
{
	struct rig *rig = *state;

	mark_posted(rig, 1, 2);
	RUN_SCRIPT(rig, RECEIVE, RECEIVE, FAILED_SEND);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_result(rig, NDX_REQUEST_SEND, NDX_E_CANCELED);
	expect_no_result(rig);
}

static void completions_of_adapters_keep_their_order(void **state)
{
	struct rig *rig = *state;

	rig->adapter.software = false;
	mark_posted(rig, 1, 1);
	RUN_SCRIPT(rig, RECEIVE, SEND);
	expect_result(rig, NDX_REQUEST_RECEIVE, NDX_OK);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	expect_no_result(rig);
}

static void nothing(void *arg)
{
	(void)arg;
}

/*
 * A consumer may take the last result and post more while the control thread waits for the lock to
 * shorten the time limit. The new request completes at once, beyond the last one that was posted to
 * libfabric.
 */
static void posts_after_the_end_do_not_count_as_under_way(void **state)
{
	struct rig *rig = *state;
	struct ofi_link link = {.adapter = &rig->adapter, .qp = rig->qp};

	assert_int_equal(base_loop_create("rig", &rig->adapter.spi.loop), NDX_OK);
	link.verbs.watch = (struct ndxp_timer){.fn = nothing};
	for (uint32_t i = 0; i < DEPTH; i++)
		ofi_tx_at(rig->qp, i)->length = 1000;
	mark_posted(rig, 1, 0);
	RUN_SCRIPT(rig, SEND);
	expect_result(rig, NDX_REQUEST_SEND, NDX_OK);
	rig->qp->base.state = NDXP_QP_CLOSING;
	assert_int_equal(ndx_qp_send(&rig->qp->base.spi.pub, NULL, NULL, 0, 0), NDX_OK);
	expect_result(rig, NDX_REQUEST_SEND, NDX_E_CANCELED);
	assert_true(rig->qp->base.initiator.head > rig->qp->tx_next);
	ofi_verbs_limit_requests(&link);
	assert_true(link.verbs.drain_until_ns <= ndxp_deadline(2000));
	ndxp_timer_cancel(rig->adapter.spi.loop, &link.verbs.watch);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answers_follow_the_messages_that_they_answer),
		CASE(a_send_that_does_not_complete_is_awaited_once),
		CASE(held_receives_precede_a_failed_send),
		CASE(completions_of_adapters_keep_their_order),
		CASE(posts_after_the_end_do_not_count_as_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
