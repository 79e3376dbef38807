/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection whose peer is on ofi:verbs. The bell is the write with immediate data by which such
 * a peer announces its goodbye. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <endian.h>
#include <string.h>

#ifdef NDX_PROVIDER_VERBS

#include "rig.h"
#include "verbs_ofi.h"

#define DEPTH 4u

static struct verbs_conn *conn_of(struct rig *rig)
{
	return &rig->conn;
}

static int set_up(void **state)
{
	static struct rig rig;
	struct verbs_conn *conn = &rig.conn;

	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	verbs_qp_bring_down(rig_qp(&rig));
	conn->spi.qp = rig.qp;
	conn->peer.is_ofi = true;
	assert_int_equal(verbs_ofi_open(conn), NDX_OK);
	assert_int_equal(verbs_qp_bring_up(rig_qp(&rig), conn), 0);
	rig_native(&rig)->state = IBV_QPS_RTS;
	rig_qp(&rig)->base.state = NDXP_QP_UP;
	conn->state = VERBS_CONN_UP;
	*state = &rig;
	return 0;
}

static void close_conn(void *arg)
{
	struct rig *rig = arg;

	verbs_qp_bring_down(rig_qp(rig));
	verbs_ofi_close(conn_of(rig));
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	ndxp_loop_call(rig->adapter.spi.loop, close_conn, rig);
	rig_close(rig);
	return 0;
}

static void write_peer_goodbye(struct rig *rig, uint32_t messages)
{
	const uint64_t field = htobe64(NDXP_RC_SAID | messages);

	memcpy(conn_of(rig)->ofi->area + NDXP_RC_GOODBYE, &field, sizeof(field));
}

/* Complete the oldest receive with the write with immediate data of a goodbye. */
static void deliver_bell(struct rig *rig)
{
	const struct ndxp_queue *q = &rig_qp(rig)->base.receive;
	const struct ibv_wc wc = {.wr_id = (uintptr_t)ndxp_queue_at(q, q->head),
	                          .status = IBV_WC_SUCCESS,
	                          .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
	                          .wc_flags = IBV_WC_WITH_IMM,
	                          .imm_data = htonl(NDXP_RC_BELL),
	                          .byte_len = sizeof(uint64_t)};

	verbs_complete(&wc);
}

static void the_bell_is_no_message(void **state)
{
	struct rig *rig = *state;
	unsigned long posted;

	assert_int_equal(rig_receive(rig, 1), NDX_OK);
	write_peer_goodbye(rig, 0);
	posted = rig->device.count[FAKE_POST_RECV];
	deliver_bell(rig);
	rig_expect_none(rig);
	assert_int_equal(rig->device.count[FAKE_POST_RECV], posted + 1);
}

static void the_same_bytes_without_a_goodbye_are_a_message(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_receive(rig, 1), NDX_OK);
	write_peer_goodbye(rig, 1); /* the goodbye counts one message that has not arrived */
	deliver_bell(rig);
	rig_expect(rig, 1, NDX_OK);
}

/* Without this rule the close would wait for that receive, which no device has, until its time
 * limit. */
static void a_bell_behind_the_end_holds_nothing_up(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_receive(rig, 1), NDX_OK);
	write_peer_goodbye(rig, 0);
	rig->device.flushes_late = true;
	ndxp_lock_acquire(&rig_qp(rig)->base.lock);
	verbs_qp_kill(rig_qp(rig));
	ndxp_lock_release(&rig_qp(rig)->base.lock);
	deliver_bell(rig);
	assert_true(verbs_qp_is_quiet(rig_qp(rig)));
	rig_expect(rig, 1, NDX_E_CANCELED);
}

static void on_disconnected(void *arg)
{
	verbs_end_on_disconnected(conn_of(arg), 0);
}

/* This end has sent its goodbye and closes its queue pair, so the peer's goodbye is implied. */
static void a_disconnect_during_the_close_is_no_abort(void **state)
{
	struct rig *rig = *state;

	rig->device.flushes_late = true;
	ndxp_lock_acquire(&rig_qp(rig)->base.lock);
	verbs_qp_kill(rig_qp(rig));
	ndxp_lock_release(&rig_qp(rig)->base.lock);
	ndxp_loop_call(rig->adapter.spi.loop, on_disconnected, rig);
	assert_int_equal(rig->reports, NDX_REPORT_PEER_DISC);
}

static void a_disconnect_without_a_goodbye_is_an_abort(void **state)
{
	struct rig *rig = *state;

	ndxp_loop_call(rig->adapter.spi.loop, on_disconnected, rig);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static void note_established(struct ndx_spi_conn *spi, enum ndx_status status, int32_t native,
                             const struct ndx_spi_params *params)
{
	struct rig *rig = container_of(spi, struct rig, conn.spi);

	(void)native;
	(void)params;
	rig->reports |= status == NDX_E_CONNECTION_ABORTED ? NDX_REPORT_ABORT : NDX_REPORT_QUIET;
}

static void on_early_disconnect(void *arg)
{
	const struct verbs_event event = {.what = RDMA_CM_EVENT_DISCONNECTED};

	verbs_conn_on_event(conn_of(arg), &event);
}

/* The consumer has not yet completed the connection, so the queue pair is not ready to receive. */
static void a_peer_may_give_up_before_the_queue_pair_is_ready(void **state)
{
	struct rig *rig = *state;

	rig->host.established = note_established;
	verbs_qp_bring_down(rig_qp(rig));
	conn_of(rig)->state = VERBS_CONN_ANSWERED;
	ndxp_loop_call(rig->adapter.spi.loop, on_early_disconnect, rig);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static uint8_t refusal[256];
static uint8_t refusal_len;

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	memcpy(refusal, data, len);
	refusal_len = len;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	(void)id;
	return 0;
}

static void abandon(void *arg)
{
	verbs_conn_abandon(&conn_of(arg)->spi);
}

/* A refusal without data would be that of a foreign program. */
static void a_request_without_an_answer_is_refused_with_data(void **state)
{
	struct rig *rig = *state;
	struct rdma_cm_id id = {0};

	verbs_qp_bring_down(rig_qp(rig));
	conn_of(rig)->state = VERBS_CONN_REQUESTED;
	conn_of(rig)->id = &id;
	ndxp_list_init(&conn_of(rig)->node);
	refusal_len = 0;
	ndxp_loop_call(rig->adapter.spi.loop, abandon, rig);
	assert_non_null(memmem(refusal, refusal_len, "Nv", 2));
	assert_null(conn_of(rig)->id);
}

static void a_shared_receive_queue_is_refused_with_the_reason(void **state)
{
	struct rig *rig = *state;
	struct verbs_conn other = {.adapter = &rig->adapter, .spi = {.qp = rig->qp}};
	enum ndx_status st;

	rig_qp(rig)->srq = (struct verbs_srq *)(void *)rig; /* any address but NULL */
	st = verbs_ofi_open(&other);
	rig_qp(rig)->srq = NULL;
	verbs_ofi_close(&other);
	assert_int_equal(st, NDX_E_NOT_SUPPORTED);
	assert_non_null(strstr(ndx_last_error(), "shared receive queue"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_bell_is_no_message),
		CASE(the_same_bytes_without_a_goodbye_are_a_message),
		CASE(a_bell_behind_the_end_holds_nothing_up),
		CASE(a_disconnect_during_the_close_is_no_abort),
		CASE(a_disconnect_without_a_goodbye_is_an_abort),
		CASE(a_peer_may_give_up_before_the_queue_pair_is_ready),
		CASE(a_request_without_an_answer_is_refused_with_data),
		CASE(a_shared_receive_queue_is_refused_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77; /* the provider is not in this build */
}

#endif
