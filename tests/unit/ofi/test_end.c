/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's last messages and the loss of its link arrive by two queues, and libfabric promises no
 * order between them. The test's native completion queue returns a script of completions that are
 * still unread when the event of the loss comes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base_loop.h"
#include "ofi.h"

#define DEPTH 8u
#define ID 7u
#define REPORTS 8u

struct rig {
	struct ofi_adapter adapter;
	struct ofi_ncq ncq;
	struct ofi_conn conn;
	struct ofi_link link;
	struct fid_ep ep;
	struct fid_cq native;
	struct ofi_cq *cq;
	struct ofi_qp *qp;
	struct fi_cq_data_entry script[2];
	unsigned next_entry;
	uint32_t reports[REPORTS];
	unsigned report_count;
};

static ssize_t read_script(struct fid_cq *native, void *out, size_t count)
{
	struct rig *rig = container_of(native, struct rig, native);

	assert_true(count > 0);
	if (rig->next_entry == sizeof(rig->script) / sizeof(rig->script[0]))
		return -FI_EAGAIN;
	memcpy(out, &rig->script[rig->next_entry++], sizeof(rig->script[0]));
	return 1;
}

static struct fi_ops_cq ops = {.size = sizeof(struct fi_ops_cq), .read = read_script};

static void record_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native,
                          const char *cause)
{
	struct rig *rig = container_of(conn, struct rig, conn.spi);

	(void)native;
	(void)cause;
	assert_true(rig->report_count < REPORTS);
	rig->reports[rig->report_count++] = bits;
}

static const struct ndx_host host = {.report = record_report};

/* A message, and the goodbye after it. */
static void fill_script(struct rig *rig)
{
	(void)ndxp_queue_take(&rig->qp->base.receive, NULL, NDX_REQUEST_RECEIVE, 0);
	ofi_rx_at(rig->qp, rig->qp->rx_next++)->native = true;
	rig->qp->rx_native++;
	rig->script[0] = (struct fi_cq_data_entry){
		.op_context = &ofi_rx_at(rig->qp, 0)->op,
		.flags = FI_RECV | FI_REMOTE_CQ_DATA,
		.data = ofi_ctrl_encode_data(0, 0, 0, 0),
	};
	rig->script[1] = (struct fi_cq_data_entry){
		.flags = FI_REMOTE_CQ_DATA,
		.data = ofi_ctrl_encode(OFI_CTRL_DISC, 0, 0, ID),
	};
}

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
	rig->adapter.backend = &ofi_tcp;
	rig->adapter.max_transfer = 4096;
	ndxp_list_init(&rig->adapter.qps);
	ndxp_list_init(&rig->adapter.links);
	ndxp_list_init(&rig->adapter.ncqs);
	assert_int_equal(base_loop_create("rig", &rig->adapter.spi.loop), NDX_OK);
	rig->native.ops = &ops;
	rig->ncq.adapter = &rig->adapter;
	rig->ncq.cq = &rig->native;
	rig->ncq.mode = OFI_NCQ_POLLED;
	ndxp_list_init(&rig->ncq.ties);
	ndxp_list_init(&rig->ncq.credit_pending);
	ndxp_list_init(&rig->ncq.ack_list);
	assert_int_equal(
		ofi_cq_create(&rig->adapter.spi, &(struct ndx_cq_attr){.depth = DEPTH}, &cq),
		NDX_OK);
	rig->cq = (struct ofi_cq *)(void *)cq;
	attr.receive_cq = &cq->pub;
	attr.initiator_cq = &cq->pub;
	assert_int_equal(ofi_qp_create(&rig->adapter.spi, &attr, &qp), NDX_OK);
	rig->qp = ofi_qp_of(qp);
	rig->qp->base.state = NDXP_QP_UP;
	rig->qp->ncq = &rig->ncq;
	rig->qp->conn = &rig->conn;
	rig->qp->link = &rig->link;
	rig->conn.adapter = &rig->adapter;
	rig->conn.link = &rig->link;
	rig->link.adapter = &rig->adapter;
	rig->link.ncq = &rig->ncq;
	rig->link.conn = &rig->conn;
	rig->link.qp = rig->qp;
	rig->link.ep = &rig->ep;
	rig->link.id = ID;
	rig->link.stage = OFI_LINK_UP;
	rig->link.known = true;
	rig->link.open = true;
	ndxp_list_add(&rig->adapter.links, &rig->link.node);
	ndxp_table_init(&rig->ncq.links, rig->ncq.buckets, OFI_NCQ_BUCKETS);
	ndxp_table_add(&rig->ncq.links, &rig->link.by_id, ID);
	fill_script(rig);
	*state = rig;
	return 0;
}

static void nothing(void *arg)
{
	(void)arg;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig->qp->conn = NULL;
	rig->qp->link = NULL;
	ofi_qp_destroy(&rig->qp->base.spi);
	ofi_cq_destroy(&rig->cq->base.spi);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	free(rig);
	return 0;
}

/* The result of the message is there, and the goodbye was reported before the loss of the link. */
static void expect_data_before_loss(struct rig *rig, const struct ofi_cm_event *event)
{
	struct ndx_result result;

	ofi_conn_event(&rig->adapter, event);
	assert_int_equal(ndxp_cq_take(&rig->cq->base, &result, 1), 1);
	assert_int_equal(result.request_type, NDX_REQUEST_RECEIVE);
	assert_int_equal(result.status, NDX_OK);
	assert_int_equal(rig->report_count, 2);
	assert_int_equal(rig->reports[0], NDX_REPORT_PEER_DISC);
	assert_int_equal(rig->reports[1], NDX_REPORT_ABORT);
}

static void what_came_before_the_shutdown_counts(void **state)
{
	struct rig *rig = *state;
	const struct ofi_cm_event event = {.what = FI_SHUTDOWN, .fid = &rig->ep.fid};

	expect_data_before_loss(rig, &event);
}

static void what_came_before_a_failure_of_the_link_counts(void **state)
{
	struct rig *rig = *state;
	const struct ofi_cm_event event = {.err = ECONNRESET, .fid = &rig->ep.fid};

	expect_data_before_loss(rig, &event);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_came_before_the_shutdown_counts),
		CASE(what_came_before_a_failure_of_the_link_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
