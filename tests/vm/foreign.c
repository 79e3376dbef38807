/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: foreign-device URI DEVICE ADDRESS
 *
 * In the guest: a receiver at URI, and a peer at DEVICE, which has ADDRESS. The peer uses ibverbs
 * only: it gets numbers, writes frames with them, and grants no memory of its own. The receiver
 * learns of the peer first by numbers, then by a description, as in a session, then by one that
 * names a key although the device takes no writes, and says so by its policy. Exit status 0: all
 * frames came, also after a pause in which keepalive or a probe was due.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include <ndx/ndx.h>

enum { FRAMES = 8, SLOTS = 16, SLOT = 256, WAIT_MS = 10000, KEEPALIVE_MS = 400, PORT = 1 };
enum { MTU = 2, MTU_BYTES = 512, DEVICE_PSN = 0x123456 };

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index;
	char memory[SLOT];
};

enum meeting { BY_NUMBERS, DESCRIBED, AS_DEVICE };

static const char *const names[] = {"by numbers", "described", "as a device"};

static sem_t arrived;  /* frames */
static unsigned wrong; /* bytes; atomic */

static void must(bool well, const char *what)
{
	if (well)
		return;
	(void)fprintf(stderr, "%s: %s; %s\n", what, strerror(errno), ndx_last_error());
	exit(2);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Does a frame come within so many ms? */
static bool comes(uint32_t ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return sem_timedwait(&arrived, &until) == 0;
}

static bool on_frame(void *context, const struct ndx_frame *frame)
{
	(void)context;
	for (uint32_t i = 0; i < frame->length; i++) {
		if (((const uint8_t *)frame->data)[i] != 0x5a)
			(void)__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	}
	return sem_post(&arrived) == 0;
}

/* ---- the device ---- */

/* The RoCE v2 entry of an IPv4 address. */
static void find_gid(struct device *d, const char *address)
{
	uint8_t wanted[16] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry entry;

	must(inet_pton(AF_INET, address, wanted + 12) == 1, address);
	for (int i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(d->context, PORT, (uint32_t)i, &entry, 0) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entry.gid.raw, wanted, sizeof(wanted)) == 0) {
			d->gid = entry.gid;
			d->gid_index = i;
			return;
		}
	}
	must(false, "no GID of that address");
}

static void open_device(struct device *d, const char *name, const char *address)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
	                                .cap = {.max_send_wr = FRAMES,
	                                        .max_recv_wr = 1,
	                                        .max_send_sge = 1,
	                                        .max_recv_sge = 1}};

	for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			d->context = ibv_open_device(list[i]);
	}
	must(d->context != NULL, name);
	ibv_free_device_list(list);
	d->pd = ibv_alloc_pd(d->context);
	must(d->pd != NULL, "ibv_alloc_pd");
	d->cq = ibv_create_cq(d->context, FRAMES, NULL, NULL, 0);
	must(d->cq != NULL, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = d->cq;
	d->mr = ibv_reg_mr(d->pd, d->memory, sizeof(d->memory), IBV_ACCESS_LOCAL_WRITE);
	must(d->mr != NULL, "ibv_reg_mr");
	d->qp = ibv_create_qp(d->pd, &attr);
	must(d->qp != NULL, "ibv_create_qp");
	find_gid(d, address);
	memset(d->memory, 0x5a, sizeof(d->memory));
}

/* Its access flags are 0: any remote write, even one without data, breaks the connection. */
static void connect_device(struct device *d, const struct ndx_receiver_numbers *n)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.path_mtu = (enum ibv_mtu)MTU,
		.dest_qp_num = n->qpn,
		.rq_psn = n->send_psn,
		.sq_psn = n->receive_psn,
		.min_rnr_timer = 14,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 6,
		.ah_attr = {.is_global = 1,
	                    .port_num = PORT,
	                    .grh = {.hop_limit = 64, .sgid_index = (uint8_t)d->gid_index}}};

	memcpy(attr.ah_attr.grh.dgid.raw, n->gid, sizeof(n->gid));
	must(ibv_modify_qp(d->qp, &attr,
	                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	             0,
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(d->qp, &attr,
	                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	                           IBV_QP_MIN_RNR_TIMER) == 0,
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(d->qp, &attr,
	                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "RTS");
}

/* With the rkey from the numbers, and nothing else. */
static void write_frame(struct device *d, const struct ndx_receiver_numbers *n, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)d->memory, SLOT, d->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
	                         .num_sge = 1,
	                         .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	                         .send_flags = IBV_SEND_SIGNALED,
	                         .imm_data = htonl(at << 8),
	                         .wr.rdma = {n->address + (uint64_t)at * SLOT, n->rkey}};
	const uint64_t until = now_ms() + WAIT_MS;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int got = 0;

	must(ibv_post_send(d->qp, &wr, &bad) == 0, "ibv_post_send");
	while (got == 0 && now_ms() < until)
		got = ibv_poll_cq(d->cq, 1, &wc);
	if (got == 1 && wc.status == IBV_WC_SUCCESS)
		return;
	(void)printf("wrong: frame %u: %s\n", at,
	             got == 1 ? ibv_wc_status_str(wc.status) : "no completion");
	exit(1);
}

/* ---- the receiver ---- */

static struct ndx_receiver *open_receiver(const char *uri)
{
	struct ndx_receiver *r = NULL;
	struct ndx_receiver_attr attr;

	ndx_receiver_attr_init(&attr);
	attr.uri = uri;
	attr.mode = NDX_RECEIVER_WRITE;
	attr.slot_size = SLOT;
	attr.slot_count = SLOTS;
	attr.keepalive_ms = KEEPALIVE_MS;
	attr.probe_ms = KEEPALIVE_MS;
	attr.consumers[0] = (struct ndx_frame_consumer){.fn = on_frame, .channel = NDX_CHANNEL_ANY};
	must(ndx_receiver_create(&attr, &r) == NDX_OK, "receiver");
	return r;
}

static void await_frames(unsigned count)
{
	unsigned came = 0;

	while (came < count && comes(WAIT_MS))
		came++;
	if (came == count && __atomic_load_n(&wrong, __ATOMIC_RELAXED) == 0)
		return;
	(void)printf("wrong: %u of %u frames came, %u wrong bytes\n", came, count, wrong);
	exit(1);
}

/* Connect by numbers. */
static void tell_numbers(struct ndx_receiver *r, const struct device *device,
                         const struct ndx_receiver_numbers *numbers)
{
	struct ndx_receiver_peer peer = {.mtu = MTU_BYTES,
	                                 .qpn = device->qp->qp_num,
	                                 .rq_psn = numbers->send_psn,
	                                 .sq_psn = numbers->receive_psn};

	memcpy(peer.gid, device->gid.raw, sizeof(peer.gid));
	must(ndx_receiver_complete_connection(r, &peer, WAIT_MS) == NDX_OK, "connection");
}

/* Connect by description, as a session does; the description has no mailbox. */
static void describe(struct ndx_receiver *r, struct ndx_receiver_numbers *numbers, enum meeting how)
{
	struct ndx_peer_description own;

	must(ndx_receiver_describe(r, NDX_ROLE_SERVER, &own) == NDX_OK, "description");
	if (how == DESCRIBED) /* else the connection does without for its peer's policy */
		must(ndx_receiver_set_oob_stream(r, NDX_NO_OOB_STREAM) == NDX_OK, "no channel");
	*numbers = (struct ndx_receiver_numbers){.qpn = own.qpn,
	                                         .send_psn = own.psn,
	                                         .receive_psn = DEVICE_PSN,
	                                         .address = own.memory.address,
	                                         .rkey = own.memory.rkey};
	memcpy(numbers->gid, own.gid, sizeof(numbers->gid));
}

static void tell_description(struct ndx_receiver *r, const struct device *device, enum meeting how)
{
	struct ndx_peer_description peer = {.kind = NDX_DESCRIPTION_VERBS_RC,
	                                    .qpn = device->qp->qp_num,
	                                    .psn = DEVICE_PSN,
	                                    .mtu = MTU_BYTES};

	if (how == AS_DEVICE) {
		peer.mailbox_rkey = device->mr->rkey;
		peer.policy = NDX_PEER_DEVICE;
	}
	memcpy(peer.gid, device->gid.raw, sizeof(peer.gid));
	must(ndx_receiver_connect_peer(r, &peer, WAIT_MS) == NDX_OK, "described connection");
}

static void meet(char **argv, enum meeting how)
{
	struct ndx_receiver *r = open_receiver(argv[1]);
	struct ndx_receiver_numbers numbers;
	struct device device;

	memset(&device, 0, sizeof(device));
	open_device(&device, argv[2], argv[3]);
	if (how != BY_NUMBERS)
		describe(r, &numbers, how);
	else
		must(ndx_receiver_get_numbers(r, &numbers) == NDX_OK, "numbers");
	connect_device(&device, &numbers);
	if (how != BY_NUMBERS)
		tell_description(r, &device, how);
	else
		tell_numbers(r, &device, &numbers);
	for (uint32_t i = 0; i < FRAMES / 2; i++)
		write_frame(&device, &numbers, i);
	await_frames(FRAMES / 2);
	must(!comes(4 * KEEPALIVE_MS),
	     "silence"); /* no keepalive and no probe may reach the device */
	for (uint32_t i = FRAMES / 2; i < FRAMES; i++)
		write_frame(&device, &numbers, i);
	await_frames(FRAMES / 2);
	ndx_receiver_close(r);
	(void)ibv_destroy_qp(device.qp);
	(void)ibv_dereg_mr(device.mr);
	(void)ibv_destroy_cq(device.cq);
	(void)ibv_dealloc_pd(device.pd);
	(void)ibv_close_device(device.context);
	(void)printf("%d frames, before and after a silence, %s\n", FRAMES, names[how]);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	must(sem_init(&arrived, 0, 0) == 0, "semaphore");
	meet(argv, BY_NUMBERS);
	meet(argv, DESCRIBED);
	meet(argv, AS_DEVICE);
	return 0;
}
