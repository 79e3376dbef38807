/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fake_device *the;

/* ---- counting and refusing ---- */

/* 0, or the errno that this call is to fail with. */
static int enter(enum fake_call call)
{
	the->count[call]++;
	if (the->refuse_nth[call] == 0 || --the->refuse_nth[call] > 0)
		return 0;
	errno = the->refuse_errno;
	return the->refuse_errno;
}

/* ---- completions ---- */

/* One event for each arming. A queue that was armed for all stays so, whatever else it is asked. */
static void raise_event(struct fake_cq *cq, bool solicited)
{
	if (!cq->armed_all && !(cq->armed_solicited && solicited))
		return;
	cq->armed_all = false;
	cq->armed_solicited = false;
	cq->told++;
	the->telling = cq;
}

static struct fake_wc *push(struct ibv_cq *native, uint64_t id, enum ibv_wc_status status,
                            uint32_t number, bool solicited)
{
	struct fake_cq *cq = fake_cq_of(native);
	struct fake_wc *entry = &cq->ring[cq->tail % (uint32_t)cq->pub.cqe];

	if (cq->tail - cq->head == (uint32_t)cq->pub.cqe) {
		if (!cq->overrun)
			fake_tell(the, IBV_EVENT_CQ_ERR, cq);
		cq->overrun = true;
		return NULL;
	}
	cq->tail++;
	entry->wc.wr_id = id;
	entry->wc.status = status;
	entry->wc.qp_num = number;
	entry->wc.wc_flags = 0;
	entry->wc.byte_len = 0;
	entry->frees = NULL;
	raise_event(cq, solicited || (status != IBV_WC_SUCCESS && !the->silent_failures));
	return entry;
}

/* The oldest send has ended. */
static void end_send(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_wr *wr = &qp->sends[qp->send_head++ % FAKE_WR_MAX];
	struct fake_wc *entry;

	if (the->frees_at_once)
		qp->send_freed = qp->send_head;
	if (status == IBV_WC_SUCCESS && !(wr->flags & IBV_SEND_SIGNALED))
		return;
	entry = push(qp->pub.send_cq, wr->id, status, qp->pub.qp_num, false);
	if (entry == NULL)
		return;
	entry->wc.opcode = IBV_WC_SEND;
	entry->frees = qp;
	entry->up_to = qp->send_head;
}

static void end_receive(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_wr *wr = &qp->receives[qp->receive_head++ % FAKE_WR_MAX];

	(void)push(qp->pub.recv_cq, wr->id, status, qp->pub.qp_num, false);
}

static void flush(struct fake_qp *qp)
{
	qp->pub.state = IBV_QPS_ERR;
	while (qp->send_head != qp->send_tail)
		end_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->receive_head != qp->receive_tail)
		end_receive(qp, IBV_WC_WR_FLUSH_ERR);
}

void fake_run(struct ibv_qp *qp, unsigned count)
{
	struct fake_qp *fake = fake_qp_of(qp);

	for (; count > 0 && fake->send_head != fake->send_tail; count--)
		end_send(fake, IBV_WC_SUCCESS);
}

void fake_break(struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct fake_qp *fake = fake_qp_of(qp);

	if (fake->send_head != fake->send_tail)
		end_send(fake, status);
	flush(fake);
}

/* From the shared queue, if there is one. */
static bool arrive(struct ibv_qp *qp, uint32_t bytes, bool solicited)
{
	struct fake_qp *fake = fake_qp_of(qp);
	struct fake_srq *srq = (struct fake_srq *)(void *)fake->pub.srq;
	struct fake_wr *wr;
	struct fake_wc *entry;

	if (srq != NULL ? srq->head == srq->tail : fake->receive_head == fake->receive_tail)
		return false;
	wr = srq != NULL ? &srq->ring[srq->head++ % FAKE_WR_MAX]
	                 : &fake->receives[fake->receive_head++ % FAKE_WR_MAX];
	entry = push(fake->pub.recv_cq, wr->id, IBV_WC_SUCCESS, fake->pub.qp_num, solicited);
	if (entry != NULL) {
		entry->wc.opcode = IBV_WC_RECV;
		entry->wc.byte_len = bytes;
	}
	return true;
}

bool fake_arrive(struct ibv_qp *qp, uint32_t bytes)
{
	return arrive(qp, bytes, false);
}

bool fake_arrive_solicited(struct ibv_qp *qp, uint32_t bytes)
{
	return arrive(qp, bytes, true);
}

/* ---- the data path ---- */

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

static int post_send(struct ibv_qp *native, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = fake_qp_of(native);
	int err = enter(FAKE_POST_SEND);

	if (err == 0 && qp->send_tail - qp->send_freed >= qp->cap.max_send_wr)
		err = ENOMEM;
	if (err == 0 && qp->pub.state < IBV_QPS_RTS)
		err = EINVAL;
	if (err != 0) {
		*bad = wr;
		return err;
	}
	qp->sends[qp->send_tail++ % FAKE_WR_MAX] =
		(struct fake_wr){wr->wr_id, wr->opcode, wr->send_flags};
	qp->signalled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
	the->empty += qp->pub.state == IBV_QPS_RTS && wr->opcode == IBV_WR_RDMA_WRITE &&
	              bytes_of(wr) == 0;
	if (qp->pub.state == IBV_QPS_ERR && !the->flushes_late)
		end_send(qp, IBV_WC_WR_FLUSH_ERR);
	else if (the->runs)
		end_send(qp, IBV_WC_SUCCESS);
	return 0;
}

static int post_recv(struct ibv_qp *native, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = fake_qp_of(native);
	int err = enter(FAKE_POST_RECV);

	if (err == 0 && qp->receive_tail - qp->receive_head >= qp->cap.max_recv_wr)
		err = ENOMEM;
	if (err != 0) {
		*bad = wr;
		return err;
	}
	qp->receives[qp->receive_tail++ % FAKE_WR_MAX] = (struct fake_wr){.id = wr->wr_id};
	if (qp->pub.state == IBV_QPS_ERR && !the->forgets_late)
		flush(qp);
	return 0;
}

static int post_srq_recv(struct ibv_srq *native, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)(void *)native;
	int err = enter(FAKE_POST_SRQ_RECV);

	if (err == 0 && srq->tail - srq->head >= srq->room)
		err = ENOMEM;
	if (err != 0) {
		*bad = wr;
		return err;
	}
	srq->ring[srq->tail++ % FAKE_WR_MAX] = (struct fake_wr){.id = wr->wr_id};
	return 0;
}

/* What a test has come between two calls. */
static void pass_time(void)
{
	if (the->meanwhile_nth > 0 && --the->meanwhile_nth == 0)
		the->meanwhile(the->meanwhile_arg);
}

static int poll_cq(struct ibv_cq *native, int room, struct ibv_wc *wc)
{
	struct fake_cq *cq = fake_cq_of(native);
	int n = 0;

	pass_time();
	the->count[FAKE_POLL_CQ]++;
	if (the->polls_empty > 0) {
		the->polls_empty--;
		return 0;
	}
	if (cq->tail - cq->head >= the->batch)
		cq->shown = cq->tail;
	for (; n < room && cq->head != cq->shown; n++) {
		const struct fake_wc *entry = &cq->ring[cq->head++ % (uint32_t)cq->pub.cqe];

		wc[n] = entry->wc;
		if (entry->frees != NULL)
			entry->frees->send_freed = entry->up_to;
	}
	return n;
}

static int req_notify_cq(struct ibv_cq *native, int solicited)
{
	struct fake_cq *cq = fake_cq_of(native);

	pass_time();
	cq->narrowed |= solicited && cq->armed_all;
	if (solicited)
		cq->armed_solicited = true;
	else
		cq->armed_all = true;
	return enter(FAKE_ARM_CQ);
}

void fake_open(struct fake_device *device)
{
	memset(device, 0, sizeof(*device));
	the = device;
	device->refuse_errno = ENOMEM;
	device->context.ops.post_send = post_send;
	device->context.ops.post_recv = post_recv;
	device->context.ops.post_srq_recv = post_srq_recv;
	device->context.ops.poll_cq = poll_cq;
	device->context.ops.req_notify_cq = req_notify_cq;
	device->context.num_comp_vectors = 4;
	device->port.state = IBV_PORT_ACTIVE;
	device->pd.context = &device->context;
}

/* ---- libibverbs ---- */

/* In <infiniband/verbs.h> that is a macro, which ends here. */
int(ibv_query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	memcpy(attr, &the->port, sizeof(the->port));
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	the->vector = vector;
	if (enter(FAKE_CREATE_CQ) != 0)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return NULL;
	cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
	if (cq->ring == NULL) {
		free(cq);
		return NULL;
	}
	cq->pub.context = context;
	cq->pub.cq_context = cq_context;
	cq->pub.channel = channel;
	cq->pub.cqe = cqe;
	the->queues++;
	return &cq->pub;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct fake_cq *fake = fake_cq_of(cq);
	struct fake_wc *ring;
	const int err = enter(FAKE_RESIZE_CQ);

	if (err != 0)
		return err;
	ring = calloc((size_t)cqe, sizeof(*ring));
	if (ring == NULL)
		return ENOMEM;
	for (uint32_t i = fake->head; i != fake->tail; i++)
		ring[i % (uint32_t)cqe] = fake->ring[i % (uint32_t)fake->pub.cqe];
	free(fake->ring);
	fake->ring = ring;
	fake->pub.cqe = cqe;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	struct fake_cq *fake = the->telling;

	(void)channel;
	if (fake == NULL || fake->told == 0) {
		errno = EAGAIN;
		return -1;
	}
	fake->told--;
	*cq = &fake->pub;
	*context = fake->pub.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
	(void)cq;
	(void)nevents;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct fake_cq *fake = fake_cq_of(cq);

	if (the->telling == fake)
		the->telling = NULL;
	free(fake->ring);
	free(fake);
	the->queues--;
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq;

	if (enter(FAKE_CREATE_SRQ) != 0)
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (srq == NULL)
		return NULL;
	srq->pub.context = pd->context;
	srq->room = attr->attr.max_wr;
	return &srq->pub;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	const int err = enter(FAKE_MODIFY_SRQ);

	if (err == 0 && (mask & IBV_SRQ_MAX_WR))
		((struct fake_srq *)(void *)srq)->room = attr->max_wr;
	return err;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	static uint32_t number = 16;
	struct fake_qp *qp;

	if (enter(FAKE_CREATE_QP) != 0)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return NULL;
	qp->pub.context = pd->context;
	qp->pub.qp_context = attr->qp_context;
	qp->pub.send_cq = attr->send_cq;
	qp->pub.recv_cq = attr->recv_cq;
	qp->pub.srq = attr->srq;
	qp->pub.qp_num = number++;
	qp->pub.state = IBV_QPS_RESET;
	qp->cap = attr->cap;
	the->pairs++;
	return &qp->pub;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *fake = fake_qp_of(qp);
	const int err = enter(FAKE_MODIFY_QP);

	if (err != 0)
		return err;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		fake->asked.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_PATH_MTU)
		fake->asked.path_mtu = attr->path_mtu;
	if (mask & IBV_QP_PORT)
		fake->asked.port_num = attr->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		fake->asked.pkey_index = attr->pkey_index;
	if (mask & IBV_QP_ACCESS_FLAGS)
		fake->asked.qp_access_flags = attr->qp_access_flags;
	if (!(mask & IBV_QP_STATE))
		return 0;
	fake->pub.state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_ERR && !the->flushes_late)
		flush(fake);
	if (attr->qp_state == IBV_QPS_RESET) {
		fake->send_head = fake->send_freed = fake->send_tail;
		fake->receive_head = fake->receive_tail;
	}
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
	(void)mask;
	*attr = (struct ibv_qp_attr){.qp_state = qp->state};
	*init = (struct ibv_qp_init_attr){.qp_context = qp->qp_context};
	return 0;
}

/* Completions that were not polled must not name it any more. */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct fake_qp *fake = fake_qp_of(qp);
	struct fake_cq *cq = fake_cq_of(fake->pub.send_cq);

	for (uint32_t i = cq->head; i != cq->tail; i++) {
		struct fake_wc *entry = &cq->ring[i % (uint32_t)cq->pub.cqe];

		if (entry->frees == fake)
			entry->frees = NULL;
	}
	free(fake);
	the->pairs--;
	return 0;
}

#undef ibv_reg_mr_iova /* a macro that calls it */
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
	static uint32_t key = 1;
	struct ibv_mr *mr;

	(void)iova;
	(void)access;
	if (enter(FAKE_REG_MR) != 0)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = mr->rkey = key++;
	the->regions++;
	return mr;
}

#undef ibv_reg_mr /* a macro that calls it, too */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova(pd, addr, length, (uintptr_t)addr, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	the->regions--;
	return 0;
}

void fake_tell(struct fake_device *device, enum ibv_event_type what, void *element)
{
	struct ibv_async_event *event;

	if (device->event_count == FAKE_EVENTS)
		return;
	event = &device->events[device->event_count++];
	*event = (struct ibv_async_event){.event_type = what};
	event->element.qp = element;
}

void fake_tell_port(struct fake_device *device, enum ibv_event_type what, int port)
{
	fake_tell(device, what, NULL);
	device->events[device->event_count - 1].element.port_num = port;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	if (the->event_count == 0) {
		errno = EAGAIN;
		return -1;
	}
	*event = the->events[0];
	memmove(the->events, the->events + 1, --the->event_count * sizeof(*event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* ---- librdmacm ---- */

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	if (enter(FAKE_INIT_QP_ATTR) != 0)
		return -1;
	*mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_RTR)
		*mask |= IBV_QP_MIN_RNR_TIMER;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	errno = enter(FAKE_DISCONNECT);
	return errno == 0 ? 0 : -1;
}
