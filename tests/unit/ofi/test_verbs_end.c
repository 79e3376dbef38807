/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair over libfabric's verbs provider is closed when both sides have said goodbye, and not
 * before: what becomes of the link later looks the same after a goodbye and after an abort. The
 * stack below is played: a word is delivered at once, and what the peer writes is put in its place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base_linux.h"
#include "ofi_verbs.h"

#define DEPTH 8u
#define ID 7u
#define WORDS 16u

struct rig {
	struct ofi_adapter adapter;
	struct ofi_ncq ncq;
	struct ofi_conn conn;
	struct ofi_link link;
	struct fid_ep ep;
	struct fid_cq native;
	struct ofi_cq *cq;
	struct ofi_qp *qp;
	void *done[WORDS]; /* contexts of what was delivered, and is to be read */
	unsigned delivered;
	unsigned next;
	uint64_t goodbye; /* as the peer has it */
	uint32_t reports; /* all that the core was told */
	enum ndx_status status;
	bool shut;
	int error;       /* of the next completion, once; 0: success */
	bool unanswered; /* the peer answers no write */
};

/* ---- the stack ---- */

static ssize_t play_read(struct fid_cq *native, void *out, size_t count)
{
	struct rig *rig = container_of(native, struct rig, native);
	struct fi_cq_data_entry *entry = out;

	assert_true(count > 0);
	if (rig->next == rig->delivered)
		return -FI_EAGAIN;
	if (rig->error != 0)
		return -FI_EAVAIL;
	*entry = (struct fi_cq_data_entry){.op_context = rig->done[rig->next++]};
	return 1;
}

static ssize_t play_read_error(struct fid_cq *native, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct rig *rig = container_of(native, struct rig, native);

	(void)flags;
	assert_int_not_equal(rig->error, 0);
	*entry = (struct fi_cq_err_entry){
		.op_context = rig->done[rig->next++], .err = FI_EIO, .prov_errno = rig->error};
	rig->error = 0;
	return 1;
}

static ssize_t play_write(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct rig *rig = container_of(ep, struct rig, ep);

	(void)flags;
	assert_false(rig->shut);
	assert_true(rig->delivered < WORDS);
	if (msg->rma_iov->addr == BASE_RC_GOODBYE) {
		assert_int_equal(msg->msg_iov->iov_len, sizeof(rig->goodbye));
		memcpy(&rig->goodbye, msg->msg_iov->iov_base, sizeof(rig->goodbye));
		rig->goodbye = be64toh(rig->goodbye);
	}
	if (!rig->unanswered)
		rig->done[rig->delivered++] = msg->context;
	return 0;
}

static int play_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)flags;
	container_of(ep, struct rig, ep)->shut = true;
	return 0;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq), .read = play_read, .readerr = play_read_error};
static struct fi_ops_rma rma_ops = {.size = sizeof(struct fi_ops_rma), .writemsg = play_write};
static struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm), .shutdown = play_shutdown};

/* ---- the rig ---- */

static void note_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	(void)native;
	(void)cause;
	(void)__atomic_fetch_or(&container_of(conn, struct rig, conn.spi)->reports, bits,
	                        __ATOMIC_ACQ_REL);
}

static const struct ndx_host host = {.report = note_report};

static void nothing(void *arg)
{
	(void)arg;
}

static void make_queues(struct rig *rig)
{
	struct ndx_spi_cq *cq;
	struct ndx_spi_qp *qp;
	struct ndx_qp_attr attr = {.receive_depth = DEPTH,
	                           .initiator_depth = DEPTH,
	                           .max_receive_sge = 1,
	                           .max_initiator_sge = 1,
	                           .no_receive_timeout_ms = NDX_INFINITE};

	assert_int_equal(ofi_cq_create(&rig->adapter.spi, DEPTH, 0, &cq), NDX_OK);
	rig->cq = (struct ofi_cq *)(void *)cq;
	attr.receive_cq = &cq->pub;
	attr.initiator_cq = &cq->pub;
	assert_int_equal(ofi_qp_create(&rig->adapter.spi, &attr, &qp), NDX_OK);
	rig->qp = ofi_qp_of(qp);
	rig->qp->timer.fn = nothing;
	rig->qp->base.state = BASE_QP_UP;
	rig->qp->ncq = &rig->ncq;
	rig->qp->conn = &rig->conn;
	rig->qp->link = &rig->link;
	rig->qp->ep = &rig->ep;
	rig->qp->open = true;
	rig->qp->peer_depth = DEPTH;
	rig->qp->verbs.area = rig->link.area;
}

static void make_link(struct rig *rig)
{
	rig->ep.rma = &rma_ops;
	rig->ep.cm = &cm_ops;
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
	rig->link.disc_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_DISC, &rig->link};
	rig->link.verbs.ping_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PING, &rig->link};
	rig->link.verbs.watch = (struct base_timer){.fn = nothing};
	rig->link.verbs.introduced = true;
	base_list_add(&rig->adapter.links, &rig->link.node);
	base_table_init(&rig->ncq.links, rig->ncq.buckets, OFI_NCQ_BUCKETS);
	base_table_add(&rig->ncq.links, &rig->link.by_id, ID);
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->adapter.spi.host = &host;
	rig->adapter.backend = &ofi_verbs;
	rig->adapter.max_transfer = 4096;
	base_list_init(&rig->adapter.qps);
	base_list_init(&rig->adapter.links);
	assert_int_equal(base_loop_create("rig", &rig->adapter.spi.loop), NDX_OK);
	rig->native.ops = &cq_ops;
	rig->ncq.adapter = &rig->adapter;
	rig->ncq.cq = &rig->native;
	rig->ncq.mode = OFI_NCQ_POLLED;
	base_list_init(&rig->ncq.ties);
	base_list_init(&rig->ncq.credit_pending);
	make_queues(rig);
	make_link(rig);
	*state = rig;
	return 0;
}

static void stop_timers(void *arg)
{
	struct rig *rig = arg;

	base_timer_cancel(rig->adapter.spi.loop, &rig->qp->timer);
	base_timer_cancel(rig->adapter.spi.loop, &rig->link.verbs.watch);
}

static void run(struct rig *rig, base_loop_fn *what)
{
	base_loop_call(rig->adapter.spi.loop, what, rig);
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	run(rig, stop_timers);
	rig->qp->conn = NULL;
	rig->qp->link = NULL;
	ofi_qp_destroy(&rig->qp->base.spi);
	ofi_cq_destroy(&rig->cq->base.spi);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	free(rig);
	return 0;
}

/* ---- what happens; control thread ---- */

static void send_goodbye(void *arg)
{
	struct rig *rig = arg;

	ofi_conn_send_disc(&rig->conn.spi);
}

static void detach(void *arg)
{
	struct rig *rig = arg;

	rig->status = ofi_conn_detach(&rig->conn.spi);
}

static void drain(void *arg)
{
	struct rig *rig = arg;

	ofi_conn_drain(&rig->conn.spi);
}

static void check_goodbye(void *arg)
{
	struct rig *rig = arg;

	base_lock_acquire(&rig->ncq.lock);
	ofi_verbs_check_goodbye(&rig->link);
	base_lock_release(&rig->ncq.lock);
}

static void link_ends(void *arg)
{
	struct rig *rig = arg;
	const struct ofi_cm_event event = {.what = FI_SHUTDOWN, .fid = &rig->ep.fid};

	ofi_conn_event(&rig->adapter, &event);
}

static void peer_writes_goodbye(struct rig *rig, uint64_t value)
{
	const uint64_t word = htobe64(value);

	memcpy(rig->link.area + OFI_VERBS_MAIL + BASE_RC_GOODBYE, &word, sizeof(word));
}

/* A send that the peer has no receive for. */
static void post_send(struct rig *rig)
{
	assert_non_null(base_queue_take(&rig->qp->base.initiator, NULL, NDX_REQUEST_SEND, 0));
}

static void assert_send(struct rig *rig, bool cancelled)
{
	struct ndx_result result;

	assert_int_equal(base_cq_take(&rig->cq->base, &result, 1), cancelled);
	if (cancelled)
		assert_int_equal(result.status, NDX_E_CANCELED);
	assert_int_equal((rig->reports & NDX_REPORT_DRAINED) != 0, cancelled);
}

/* ---- the side that closes ---- */

static void begin_to_close(struct rig *rig)
{
	run(rig, send_goodbye);
	assert_true(rig->goodbye == BASE_RC_SAID);
	run(rig, detach);
	assert_int_equal(rig->status, NDX_PENDING);
	assert_true(rig->goodbye == (BASE_RC_SAID | BASE_RC_LEAVING));
	assert_false(rig->shut);
	assert_int_equal(rig->reports, NDX_REPORT_DISC_ACKED);
}

static void a_closing_end_takes_no_abort_for_a_goodbye(void **state)
{
	struct rig *rig = *state;

	begin_to_close(rig);
	run(rig, link_ends);
	assert_int_equal(rig->reports, NDX_REPORT_DISC_ACKED | NDX_REPORT_ABORT);
	run(rig, detach);
	assert_int_equal(rig->status, NDX_E_DEVICE_BUSY);
}

static void a_closing_end_waits_for_the_peers_goodbye(void **state)
{
	struct rig *rig = *state;

	begin_to_close(rig);
	run(rig, detach);
	assert_int_equal(rig->status, NDX_PENDING);
	peer_writes_goodbye(rig, BASE_RC_SAID);
	run(rig, detach);
	assert_int_equal(rig->status, NDX_OK);
	assert_true(rig->shut);
	run(rig, link_ends); /* the peer closes, too */
	assert_int_equal(rig->reports, NDX_REPORT_DISC_ACKED | NDX_REPORT_PEER_DISC);
}

/* ---- the other one ---- */

static void what_waits_for_a_peer_that_closes_is_cancelled(void **state)
{
	struct rig *rig = *state;

	post_send(rig);
	peer_writes_goodbye(rig, BASE_RC_SAID);
	run(rig, check_goodbye);
	assert_int_equal(rig->reports, NDX_REPORT_PEER_DISC);
	run(rig, drain);
	run(rig, check_goodbye);
	assert_send(rig, false);
	peer_writes_goodbye(rig, BASE_RC_SAID | BASE_RC_LEAVING);
	run(rig, check_goodbye);
	assert_send(rig, true);
	assert_int_equal(rig->reports, NDX_REPORT_PEER_DISC | NDX_REPORT_DRAINED);
}

/* The news is told before anything is cancelled because of it. */
static void what_waits_is_cancelled_by_the_drain_if_that_comes_later(void **state)
{
	struct rig *rig = *state;

	post_send(rig);
	peer_writes_goodbye(rig, BASE_RC_SAID | BASE_RC_LEAVING);
	run(rig, check_goodbye);
	assert_int_equal(rig->reports, NDX_REPORT_PEER_DISC);
	assert_send(rig, false);
	run(rig, drain);
	assert_send(rig, true);
}

/* ---- a link that ends while a request is under way ---- */

#define REMOTE_ACCESS 10  /* the device's status of a request that the peer refused */
#define RETRY_EXCEEDED 12 /* ... of one that had no answer */

/* A write that the device has. */
static struct ofi_tx *post_native_write(struct rig *rig)
{
	struct ofi_tx *tx = (struct ofi_tx *)(void *)base_queue_take(&rig->qp->base.initiator, NULL,
	                                                             NDX_REQUEST_WRITE, 0);

	assert_non_null(tx);
	tx->op.kind = OFI_OP_TX;
	tx->op.owner = rig->qp;
	tx->native = true;
	rig->qp->tx_native++;
	rig->qp->tx_next++;
	return tx;
}

static void read_completions(void *arg)
{
	struct rig *rig = arg;

	base_lock_acquire(&rig->ncq.lock);
	ofi_ncq_catch_up_locked(&rig->ncq);
	base_lock_release(&rig->ncq.lock);
}

/* The peer closes the link because of the failure, and that is heard of before the failure. */
static void a_link_that_ends_leaves_time_for_the_cause(void **state)
{
	struct rig *rig = *state;
	struct ofi_tx *tx = post_native_write(rig);
	struct ndx_result result;

	run(rig, link_ends);
	assert_int_equal(rig->reports, 0);
	assert_int_equal(base_cq_take(&rig->cq->base, &result, 1), 0);
	rig->error = REMOTE_ACCESS;
	rig->done[rig->delivered++] = &tx->op;
	run(rig, read_completions);
	assert_int_equal(base_cq_take(&rig->cq->base, &result, 1), 1);
	assert_int_equal(result.status, NDX_E_ACCESS_VIOLATION);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static void a_link_that_ends_waits_no_longer_than_its_time(void **state)
{
	struct rig *rig = *state;

	(void)post_native_write(rig);
	run(rig, link_ends);
	assert_int_equal(rig->reports, 0);
	rig->link.verbs.cut_ns = 1; /* the time is over */
	run(rig, link_ends);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static void cancel_initiator(void *arg)
{
	struct rig *rig = arg;

	ofi_conn_cancel_initiator(&rig->conn.spi);
}

/* By the link's own timer: there is no second event. */
static void a_link_that_ends_is_aborted_by_its_timer(void **state)
{
	struct rig *rig = *state;
	const uint64_t limit = base_deadline(10000);

	rig->link.verbs.watch = (struct base_timer){.fn = ofi_verbs_on_watch, .arg = &rig->link};
	(void)post_native_write(rig);
	run(rig, link_ends);
	assert_int_equal(rig->reports, 0);
	while (__atomic_load_n(&rig->reports, __ATOMIC_ACQUIRE) == 0 && base_now_ns() < limit)
		run(rig, nothing);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static void a_drain_that_runs_out_does_not_put_that_off(void **state)
{
	struct rig *rig = *state;

	(void)post_native_write(rig);
	run(rig, link_ends);
	assert_int_equal(rig->link.verbs.watch_ms, 2);
	run(rig, cancel_initiator);
	assert_int_equal(rig->link.verbs.watch_ms, 2);
}

/* ---- the link of a peer on verbs, which may end without a goodbye ---- */

static void peer_is_verbs(struct rig *rig)
{
	rig->link.peer.is_verbs = true;
	rig->link.verbs.introduced = true;
	rig->link.verbs.watch = (struct base_timer){.fn = ofi_verbs_on_watch, .arg = &rig->link};
	rig->link.verbs.ping_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PING, &rig->link};
}

static void await_report(struct rig *rig)
{
	const uint64_t limit = base_deadline(10000);

	while (__atomic_load_n(&rig->reports, __ATOMIC_ACQUIRE) == 0 && base_now_ns() < limit)
		run(rig, nothing);
	run(rig, nothing); /* the timer that reports goes on behind its report */
}

static void verbs_that_answers_has_said_goodbye(void **state)
{
	struct rig *rig = *state;

	peer_is_verbs(rig);
	run(rig, link_ends);
	assert_int_equal(rig->reports, 0);
	assert_int_equal(rig->delivered, 1); /* the write that changes nothing */
	await_report(rig);
	assert_int_equal(rig->reports, NDX_REPORT_PEER_DISC);
	assert_int_equal(rig->delivered, 2); /* and the one that lets the peer go */
	assert_true(rig->shut);
}

static void verbs_that_does_not_answer_has_aborted(void **state)
{
	struct rig *rig = *state;

	peer_is_verbs(rig);
	rig->error = RETRY_EXCEEDED;
	run(rig, link_ends);
	await_report(rig);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
	assert_int_equal(rig->delivered, 1);
}

static void verbs_that_is_silent_is_gone(void **state)
{
	struct rig *rig = *state;

	peer_is_verbs(rig);
	rig->unanswered = true;
	run(rig, link_ends);
	run(rig, link_ends);
	assert_int_equal(rig->link.verbs.probe, OFI_VERBS_TOUCHED);
	rig->link.verbs.probe = OFI_VERBS_PROBED; /* the second write, not answered either */
	run(rig, link_ends);
	assert_int_equal(rig->reports, 0);
	rig->link.verbs.probe_ns = 1; /* the time is over */
	run(rig, link_ends);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

static void verbs_that_says_so_has_aborted(void **state)
{
	struct rig *rig = *state;
	const uint64_t word = htobe64(1);

	peer_is_verbs(rig);
	memcpy(rig->link.area + OFI_VERBS_MAIL + BASE_RC_ABORTED, &word, sizeof(word));
	run(rig, link_ends);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
	assert_int_equal(rig->delivered, 0);
}

static void a_link_that_ends_with_nothing_under_way_ends_at_once(void **state)
{
	struct rig *rig = *state;

	run(rig, link_ends);
	assert_int_equal(rig->reports, NDX_REPORT_ABORT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_closing_end_takes_no_abort_for_a_goodbye),
		CASE(a_closing_end_waits_for_the_peers_goodbye),
		CASE(what_waits_for_a_peer_that_closes_is_cancelled),
		CASE(what_waits_is_cancelled_by_the_drain_if_that_comes_later),
		CASE(a_link_that_ends_leaves_time_for_the_cause),
		CASE(a_link_that_ends_waits_no_longer_than_its_time),
		CASE(a_link_that_ends_is_aborted_by_its_timer),
		CASE(a_drain_that_runs_out_does_not_put_that_off),
		CASE(a_link_that_ends_with_nothing_under_way_ends_at_once),
		CASE(verbs_that_answers_has_said_goodbye),
		CASE(verbs_that_does_not_answer_has_aborted),
		CASE(verbs_that_is_silent_is_gone),
		CASE(verbs_that_says_so_has_aborted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
