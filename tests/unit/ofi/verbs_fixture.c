/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_loop.h"
#include "verbs_fixture.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>

#define DEPTH 8u
#define ID 7u

/* ---- the stack ---- */

static ssize_t stack_read(struct fid_cq *native, void *out, size_t count)
{
	struct fixture *f = container_of(native, struct fixture, native);
	struct fi_cq_data_entry *entry = out;

	assert_true(count > 0);
	f->reads++;
	if (f->next == f->delivered)
		return -FI_EAGAIN;
	if (f->error != 0)
		return -FI_EAVAIL;
	*entry = (struct fi_cq_data_entry){.op_context = f->done[f->next++]};
	return 1;
}

static ssize_t stack_read_error(struct fid_cq *native, struct fi_cq_err_entry *entry,
                                uint64_t flags)
{
	struct fixture *f = container_of(native, struct fixture, native);

	(void)flags;
	assert_int_not_equal(f->error, 0);
	*entry = (struct fi_cq_err_entry){
		.op_context = f->done[f->next++], .err = FI_EIO, .prov_errno = f->error};
	f->error = 0;
	return 1;
}

static ssize_t stack_write(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fixture *f = container_of(ep, struct fixture, ep);

	assert_false(f->shut);
	if (f->refusing)
		return -FI_EAGAIN;
	assert_true(f->delivered < FIXTURE_REQUESTS);
	if (flags & FI_REMOTE_CQ_DATA) {
		f->told++;
		f->data = msg->data;
	}
	if (msg->rma_iov->addr == NDXP_RC_CREDITS) {
		memcpy(&f->announced, msg->msg_iov->iov_base, sizeof(f->announced));
		f->announced = be64toh(f->announced);
	}
	if (msg->rma_iov->addr == NDXP_RC_GOODBYE) {
		assert_int_equal(msg->msg_iov->iov_len, sizeof(f->goodbye));
		memcpy(&f->goodbye, msg->msg_iov->iov_base, sizeof(f->goodbye));
		f->goodbye = be64toh(f->goodbye);
	}
	if (!f->unanswered)
		f->done[f->delivered++] = msg->context;
	return 0;
}

static ssize_t stack_read_memory(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fixture *f = container_of(ep, struct fixture, ep);

	(void)flags;
	f->peeks++;
	if (f->delivered < FIXTURE_REQUESTS)
		f->done[f->delivered++] = msg->context;
	return 0;
}

static ssize_t stack_receive(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct fixture *f = container_of(ep, struct fixture, ep);

	(void)flags;
	if (f->posted == f->room)
		return -FI_EAGAIN;
	assert_true(f->posted < FIXTURE_REQUESTS);
	f->receives[f->posted++] = msg->context;
	return 0;
}

/* The peer has not answered yet. */
static ssize_t stack_send(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	(void)msg;
	(void)flags;
	container_of(ep, struct fixture, ep)->sent++;
	return 0;
}

static int stack_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)flags;
	container_of(ep, struct fixture, ep)->shut = true;
	return 0;
}

/* The verbs provider cannot cancel. */
static ssize_t stack_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOSYS;
}

static int stack_close(struct fid *fid)
{
	container_of(fid, struct fixture, ep.fid)->closed = true;
	return 0;
}

static int stack_close_region(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq), .read = stack_read, .readerr = stack_read_error};
static struct fi_ops_rma rma_ops = {
	.size = sizeof(struct fi_ops_rma), .readmsg = stack_read_memory, .writemsg = stack_write};
static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg), .recvmsg = stack_receive, .sendmsg = stack_send};
static struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm), .shutdown = stack_shutdown};
static struct fi_ops_ep endpoint_ops = {.size = sizeof(struct fi_ops_ep), .cancel = stack_cancel};
static struct fi_ops ep_ops = {.size = sizeof(struct fi_ops), .close = stack_close};
static struct fi_ops region_ops = {.size = sizeof(struct fi_ops), .close = stack_close_region};

/* ---- the fixture ---- */

static void note_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	(void)native;
	(void)cause;
	(void)__atomic_fetch_or(&container_of(conn, struct fixture, conn.spi)->reports, bits,
	                        __ATOMIC_ACQ_REL);
}

static const struct ndx_host host = {.report = note_report};

void fixture_do_nothing(void *arg)
{
	(void)arg;
}

static void make_qp(struct fixture *f, struct ndx_srq *srq)
{
	struct ndx_spi_qp *qp;
	struct ndx_qp_attr attr = {.size = sizeof(attr),
	                           .receive_depth = srq != NULL ? 0 : DEPTH,
	                           .initiator_depth = DEPTH,
	                           .max_receive_sge = 1,
	                           .max_initiator_sge = 1,
	                           .no_receive_timeout_ms = NDX_INFINITE,
	                           .srq = srq};

	attr.receive_cq = &f->cq->base.spi.pub;
	attr.initiator_cq = &f->cq->base.spi.pub;
	assert_int_equal(ofi_qp_create(&f->adapter.spi, &attr, &qp), NDX_OK);
	f->qp = ofi_qp_of(qp);
	f->qp->timer.fn = fixture_do_nothing;
	f->qp->base.state = NDXP_QP_UP;
	f->qp->ncq = &f->ncq;
	f->qp->conn = &f->conn;
	f->qp->link = f->link;
	f->qp->ep = &f->ep;
	f->qp->open = true;
	f->qp->peer_depth = DEPTH;
	f->qp->verbs.area = f->link->area;
	f->link->verbs.want_op = (struct ofi_op){OFI_OP_WANT, 0, f->link};
}

static void make_cq(struct fixture *f)
{
	struct ndx_spi_cq *cq;

	assert_int_equal(ofi_cq_create(&f->adapter.spi, &(struct ndx_cq_attr){.depth = DEPTH}, &cq),
	                 NDX_OK);
	f->cq = (struct ofi_cq *)(void *)cq;
}

void fixture_share(struct fixture *f, struct ndx_spi_srq **srq)
{
	const struct ndx_srq_attr attr = {.depth = DEPTH, .max_sge = 1};

	assert_int_equal(ofi_srq_create(&f->adapter.spi, &attr, srq), NDX_OK);
	f->qp->link = NULL;
	f->qp->ep = NULL;
	ofi_qp_destroy(&f->qp->base.spi);
	make_qp(f, &(*srq)->pub);
	f->link->qp = f->qp;
}

static void make_link(struct fixture *f)
{
	f->ep.fid.ops = &ep_ops;
	f->ep.ops = &endpoint_ops;
	f->ep.rma = &rma_ops;
	f->ep.msg = &msg_ops;
	f->ep.cm = &cm_ops;
	f->control.fid.ops = &region_ops;
	f->conn.adapter = &f->adapter;
	f->conn.link = f->link;
	f->link->adapter = &f->adapter;
	f->link->ncq = &f->ncq;
	f->link->conn = &f->conn;
	f->link->qp = f->qp;
	f->link->ep = &f->ep;
	f->link->control = &f->control;
	f->link->id = ID;
	f->link->stage = OFI_LINK_UP;
	f->link->known = true;
	f->link->open = true;
	f->link->disc_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_DISC, f->link};
	f->link->verbs.ping_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PING, f->link};
	f->link->verbs.watch = (struct ndxp_timer){.fn = fixture_do_nothing};
	f->link->verbs.introduced = true;
	ndxp_list_add(&f->adapter.links, &f->link->node);
	ndxp_table_init(&f->ncq.links, f->ncq.buckets, OFI_NCQ_BUCKETS);
	ndxp_table_add(&f->ncq.links, &f->link->by_id, ID);
}

int fixture_create(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->link = calloc(1, sizeof(*f->link));
	assert_non_null(f->link);
	f->adapter.spi.host = &host;
	f->adapter.backend = &ofi_verbs;
	f->adapter.max_transfer = 4096;
	f->adapter.max_depth = OFI_MAX_DEPTH;
	f->room = FIXTURE_REQUESTS;
	ndxp_list_init(&f->adapter.qps);
	ndxp_list_init(&f->adapter.links);
	ndxp_list_init(&f->adapter.revokes);
	ndxp_list_init(&f->adapter.ncqs);
	ndxp_list_init(&f->adapter.srqs);
	assert_int_equal(base_loop_create("fixture", &f->adapter.spi.loop), NDX_OK);
	f->native.ops = &cq_ops;
	f->ncq.adapter = &f->adapter;
	f->ncq.cq = &f->native;
	f->ncq.mode = OFI_NCQ_POLLED;
	f->ncq.refs = 2; /* the link's, and one that keeps the queue, which is a part of *f */
	ndxp_list_init(&f->ncq.ties);
	ndxp_list_init(&f->ncq.credit_pending);
	ndxp_list_init(&f->ncq.ack_list);
	make_cq(f);
	make_qp(f, NULL);
	make_link(f);
	*state = f;
	return 0;
}

void fixture_call(struct fixture *f, ndxp_loop_fn *fn)
{
	ndxp_loop_call(f->adapter.spi.loop, fn, f);
}

static void stop_timers(void *arg)
{
	struct fixture *f = arg;

	ndxp_timer_cancel(f->adapter.spi.loop, &f->qp->timer);
	if (f->conn.link == NULL)
		return;
	ndxp_timer_cancel(f->adapter.spi.loop, &f->link->verbs.watch);
	ndxp_timer_cancel(f->adapter.spi.loop, &f->link->timer);
	free(f->link);
}

int fixture_destroy(void **state)
{
	struct fixture *f = *state;

	fixture_call(f, stop_timers);
	f->qp->conn = NULL;
	f->qp->link = NULL;
	ofi_qp_destroy(&f->qp->base.spi);
	ofi_cq_destroy(&f->cq->base.spi);
	base_loop_destroy(f->adapter.spi.loop, fixture_do_nothing, NULL);
	free(f);
	return 0;
}

void fixture_await_report(struct fixture *f)
{
	const uint64_t limit = ndxp_deadline(10000);

	while (__atomic_load_n(&f->reports, __ATOMIC_ACQUIRE) == 0 && ndxp_now_ns() < limit)
		fixture_call(f, fixture_do_nothing);
	fixture_call(f, fixture_do_nothing);
}

/* ---- requests ---- */

struct ofi_tx *fixture_post_write(struct fixture *f)
{
	struct ofi_tx *tx = (struct ofi_tx *)(void *)ndxp_queue_take(&f->qp->base.initiator, NULL,
	                                                             NDX_REQUEST_WRITE, 0);

	assert_non_null(tx);
	tx->op.kind = OFI_OP_TX;
	tx->op.owner = f->qp;
	tx->native = true;
	f->qp->tx_native++;
	f->qp->tx_next++;
	return tx;
}

size_t fixture_take_result(struct fixture *f, enum ndx_status *status)
{
	struct ndx_result result;
	const size_t n = ndxp_cq_take(&f->cq->base, &result, 1);

	if (n > 0)
		*status = result.status;
	return n;
}

/* ---- control thread ---- */

void fixture_read_completions(void *arg)
{
	struct fixture *f = arg;

	ndxp_lock_acquire(&f->ncq.lock);
	ofi_ncq_catch_up_locked(&f->ncq);
	ndxp_lock_release(&f->ncq.lock);
}

void fixture_disconnect(void *arg)
{
	struct fixture *f = arg;
	const struct ofi_cm_event event = {.what = FI_SHUTDOWN, .fid = &f->ep.fid};

	ofi_conn_event(&f->adapter, &event);
}
