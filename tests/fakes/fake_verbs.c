/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fake_device *device_in_use;

/* ---- counting and refusing ---- */

/* Count the call. Returns 0, or the errno with which the call has to fail. */
static int count_call(enum fake_call call)
{
	device_in_use->count[call]++;
	if (device_in_use->refuse_nth[call] == 0 || --device_in_use->refuse_nth[call] > 0)
		return 0;
	errno = device_in_use->refuse_errno;
	return device_in_use->refuse_errno;
}

/* ---- completions ---- */

/* An arming raises one event. A queue that is armed for all completions stays so when it is armed
 * for solicited ones, too. */
static void raise_cq_event(struct fake_cq *cq, bool solicited)
{
	if (!cq->armed_any && !(cq->armed_solicited && solicited))
		return;
	cq->armed_any = false;
	cq->armed_solicited = false;
	cq->events_pending++;
	device_in_use->cq_with_events = cq;
}

static struct fake_wc *push_completion(struct ibv_cq *native, uint64_t id,
                                       enum ibv_wc_status status, uint32_t number, bool solicited)
{
	struct fake_cq *cq = fake_cq_of(native);
	struct fake_wc *entry = &cq->ring[cq->tail % (uint32_t)cq->pub.cqe];

	if (cq->tail - cq->head == (uint32_t)cq->pub.cqe) {
		if (!cq->overrun)
			fake_raise_event(device_in_use, IBV_EVENT_CQ_ERR, cq);
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
	raise_cq_event(cq,
	               solicited || (status != IBV_WC_SUCCESS && !device_in_use->silent_failures));
	return entry;
}

/* Complete the oldest send. */
static void complete_send(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_wr *wr = &qp->sends[qp->send_head++ % FAKE_WR_MAX];
	struct fake_wc *entry;

	if (device_in_use->frees_at_once)
		qp->send_freed = qp->send_head;
	if (status == IBV_WC_SUCCESS && !(wr->flags & IBV_SEND_SIGNALED))
		return;
	entry = push_completion(qp->pub.send_cq, wr->id, status, qp->pub.qp_num, false);
	if (entry == NULL)
		return;
	entry->wc.opcode = IBV_WC_SEND;
	entry->frees = qp;
	entry->up_to = qp->send_head;
}

static void complete_receive(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_wr *wr = &qp->receives[qp->receive_head++ % FAKE_WR_MAX];

	(void)push_completion(qp->pub.recv_cq, wr->id, status, qp->pub.qp_num, false);
}

static void flush_qp(struct fake_qp *qp)
{
	qp->pub.state = IBV_QPS_ERR;
	while (qp->send_head != qp->send_tail)
		complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->receive_head != qp->receive_tail)
		complete_receive(qp, IBV_WC_WR_FLUSH_ERR);
}

void fake_complete_sends(struct ibv_qp *qp, unsigned count)
{
	struct fake_qp *fake = fake_qp_of(qp);

	for (; count > 0 && fake->send_head != fake->send_tail; count--)
		complete_send(fake, IBV_WC_SUCCESS);
}

void fake_break(struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct fake_qp *fake = fake_qp_of(qp);

	if (fake->send_head != fake->send_tail)
		complete_send(fake, status);
	flush_qp(fake);
}

/* Deliver a message into the oldest receive of the shared receive queue, or of the queue pair. */
static bool deliver_message(struct ibv_qp *qp, uint32_t bytes, bool solicited)
{
	struct fake_qp *fake = fake_qp_of(qp);
	struct fake_srq *srq = (struct fake_srq *)(void *)fake->pub.srq;
	struct fake_wr *wr;
	struct fake_wc *entry;

	if (srq != NULL ? srq->head == srq->tail : fake->receive_head == fake->receive_tail)
		return false;
	wr = srq != NULL ? &srq->ring[srq->head++ % FAKE_WR_MAX]
	                 : &fake->receives[fake->receive_head++ % FAKE_WR_MAX];
	entry = push_completion(fake->pub.recv_cq, wr->id, IBV_WC_SUCCESS, fake->pub.qp_num,
	                        solicited);
	if (entry != NULL) {
		entry->wc.opcode = IBV_WC_RECV;
		entry->wc.byte_len = bytes;
	}
	return true;
}

bool fake_arrive(struct ibv_qp *qp, uint32_t bytes)
{
	return deliver_message(qp, bytes, false);
}

bool fake_arrive_solicited(struct ibv_qp *qp, uint32_t bytes)
{
	return deliver_message(qp, bytes, true);
}

/* ---- the data path ---- */

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* 0, or why the request, which is the next of a native list, is refused. */
static int count_request(void)
{
	struct fake_device *device = device_in_use;

	if (device->refuse_entry == 0 || --device->refuse_entry > 0)
		return 0;
	return device->refuse_errno;
}

static int take_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	int err = count_request();

	if (err == 0 && qp->send_tail - qp->send_freed >= qp->cap.max_send_wr)
		err = ENOMEM;
	if (err == 0 && qp->pub.state < IBV_QPS_RTS)
		err = EINVAL;
	if (err != 0)
		return err;
	qp->sends[qp->send_tail++ % FAKE_WR_MAX] =
		(struct fake_wr){wr->wr_id, wr->opcode, wr->send_flags, bytes_of(wr)};
	qp->signalled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
	device_in_use->zero_byte_writes += qp->pub.state == IBV_QPS_RTS &&
	                                   wr->opcode == IBV_WR_RDMA_WRITE && bytes_of(wr) == 0;
	if (qp->pub.state == IBV_QPS_ERR && !device_in_use->flushes_late)
		complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	else if (device_in_use->runs)
		complete_send(qp, IBV_WC_SUCCESS);
	return 0;
}

static int post_send(struct ibv_qp *native, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = count_call(FAKE_POST_SEND);

	while (err == 0 && wr != NULL) {
		err = take_send(fake_qp_of(native), wr);
		if (err == 0)
			wr = wr->next;
	}
	if (err != 0)
		*bad = wr;
	return err;
}

static int take_receive(struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
	int err = count_request();

	if (err == 0 && qp->receive_tail - qp->receive_head >= qp->cap.max_recv_wr)
		err = ENOMEM;
	if (err != 0)
		return err;
	qp->receives[qp->receive_tail++ % FAKE_WR_MAX] = (struct fake_wr){.id = wr->wr_id};
	if (qp->pub.state == IBV_QPS_ERR && !device_in_use->drops_late_receives)
		flush_qp(qp);
	return 0;
}

static int post_recv(struct ibv_qp *native, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = count_call(FAKE_POST_RECV);

	while (err == 0 && wr != NULL) {
		err = take_receive(fake_qp_of(native), wr);
		if (err == 0)
			wr = wr->next;
	}
	if (err != 0)
		*bad = wr;
	return err;
}

static int take_shared(struct fake_srq *srq, const struct ibv_recv_wr *wr)
{
	int err = count_request();

	if (err == 0 && srq->tail - srq->head >= srq->room)
		err = ENOMEM;
	if (err == 0)
		srq->ring[srq->tail++ % FAKE_WR_MAX] = (struct fake_wr){.id = wr->wr_id};
	return err;
}

static int post_srq_recv(struct ibv_srq *native, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = count_call(FAKE_POST_SRQ_RECV);

	while (err == 0 && wr != NULL) {
		err = take_shared((struct fake_srq *)(void *)native, wr);
		if (err == 0)
			wr = wr->next;
	}
	if (err != 0)
		*bad = wr;
	return err;
}

/* Call the test's hook if its turn has come. */
static void run_hook(void)
{
	if (device_in_use->hook_nth > 0 && --device_in_use->hook_nth == 0)
		device_in_use->hook(device_in_use->hook_arg);
}

static int poll_cq(struct ibv_cq *native, int room, struct ibv_wc *wc)
{
	struct fake_cq *cq = fake_cq_of(native);
	int n = 0;

	run_hook();
	device_in_use->count[FAKE_POLL_CQ]++;
	if (device_in_use->empty_polls > 0) {
		device_in_use->empty_polls--;
		return 0;
	}
	if (cq->tail - cq->head >= device_in_use->batch)
		cq->visible = cq->tail;
	for (; n < room && cq->head != cq->visible; n++) {
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

	run_hook();
	cq->narrowed |= solicited && cq->armed_any;
	if (solicited)
		cq->armed_solicited = true;
	else
		cq->armed_any = true;
	return count_call(FAKE_ARM_CQ);
}

void fake_open(struct fake_device *device)
{
	memset(device, 0, sizeof(*device));
	device_in_use = device;
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

/* <infiniband/verbs.h> defines a macro of this name; the parentheses keep it from being used. */
int(ibv_query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	memcpy(attr, &device_in_use->port, sizeof(device_in_use->port));
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	device_in_use->vector = vector;
	if (count_call(FAKE_CREATE_CQ) != 0)
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
	device_in_use->queues++;
	return &cq->pub;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct fake_cq *fake = fake_cq_of(cq);
	struct fake_wc *ring;
	const int err = count_call(FAKE_RESIZE_CQ);

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
	struct fake_cq *fake = device_in_use->cq_with_events;

	(void)channel;
	if (fake == NULL || fake->events_pending == 0) {
		errno = EAGAIN;
		return -1;
	}
	fake->events_pending--;
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

	if (device_in_use->cq_with_events == fake)
		device_in_use->cq_with_events = NULL;
	free(fake->ring);
	free(fake);
	device_in_use->queues--;
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq;

	if (count_call(FAKE_CREATE_SRQ) != 0)
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
	const int err = count_call(FAKE_MODIFY_SRQ);

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

	if (count_call(FAKE_CREATE_QP) != 0)
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
	device_in_use->pairs++;
	return &qp->pub;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *fake = fake_qp_of(qp);
	const int err = count_call(FAKE_MODIFY_QP);

	if (err != 0)
		return err;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		fake->modify_attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_PATH_MTU)
		fake->modify_attr.path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		fake->modify_attr.dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_PORT)
		fake->modify_attr.port_num = attr->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		fake->modify_attr.pkey_index = attr->pkey_index;
	if (mask & IBV_QP_ACCESS_FLAGS)
		fake->modify_attr.qp_access_flags = attr->qp_access_flags;
	if (!(mask & IBV_QP_STATE))
		return 0;
	fake->pub.state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_ERR && !device_in_use->flushes_late)
		flush_qp(fake);
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
	*attr = fake_qp_of(qp)->modify_attr;
	attr->qp_state = qp->state;
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
	device_in_use->pairs--;
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
	if (count_call(FAKE_REG_MR) != 0)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = mr->rkey = key++;
	device_in_use->regions++;
	return mr;
}

#undef ibv_reg_mr /* a macro that calls it, too */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova(pd, addr, length, (uintptr_t)addr, access);
}

/* As rdma-core and the kernel: the address of the region is the offset, and what the device cannot
 * do is found before what the descriptor is not. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
	if (!device_in_use->has_dmabuf)
		errno = EOPNOTSUPP;
	else if (fd < 0)
		errno = EBADF;
	else if ((offset ^ iova) % 4096 != 0)
		errno = EINVAL;
	else
		return ibv_reg_mr_iova(pd, (void *)(uintptr_t)offset, length, iova, access);
	return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	device_in_use->regions--;
	return 0;
}

/* ---- librdmacm ---- */

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	if (count_call(FAKE_INIT_QP_ATTR) != 0)
		return -1;
	*mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_RTR)
		*mask |= IBV_QP_MIN_RNR_TIMER;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	errno = count_call(FAKE_DISCONNECT);
	return errno == 0 ? 0 : -1;
}
