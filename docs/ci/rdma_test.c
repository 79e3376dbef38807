/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_test DEVICE: sends a message from one queue pair of the device to another one. Plain
 * libibverbs, as a project of its own has it; exit status 0 if the message arrived.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 1, BYTES = 64, PATIENCE_MS = 60000 };

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rdma_test: %s failed\n", what);
	exit(1);
}

static struct ibv_context *open_device(const char *name)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context = NULL;

	for (int i = 0; list != NULL && i < count; i++) {
		printf("device %s\n", ibv_get_device_name(list[i]));
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return context;
}

/* The index of a GID that is an IPv4 address: the one that software RoCE routes by. */
static int gid_index(struct ibv_context *context, union ibv_gid *gid)
{
	static const unsigned char v4[12] = {[10] = 0xff, [11] = 0xff};

	for (int i = 0; ibv_query_gid(context, PORT, i, gid) == 0; i++) {
		if (memcmp(gid->raw, v4, sizeof(v4)) == 0)
			return i;
	}
	return -1;
}

static void connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, int index)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
	                    .port_num = PORT,
	                    .grh = {.dgid = *gid, .sgid_index = (uint8_t)index, .hop_limit = 1}}};
	/* 4.096 us * 2^18 is a second: a host that has much to do may stop a guest that long. */
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};

	check(ibv_modify_qp(qp, &init,
	                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	              0,
	      "INIT");
	check(ibv_modify_qp(qp, &rtr,
	                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	                            IBV_QP_MIN_RNR_TIMER) == 0,
	      "RTR");
	check(ibv_modify_qp(qp, &rts,
	                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	      "RTS");
}

static void await(struct ibv_cq *cq, int results)
{
	struct ibv_wc wc;

	for (int ms = 0; results > 0 && ms < PATIENCE_MS;) {
		int polled = ibv_poll_cq(cq, 1, &wc);

		check(polled >= 0, "ibv_poll_cq");
		if (polled == 0) {
			(void)poll(NULL, 0, 1);
			ms++;
			continue;
		}
		check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
		results--;
	}
	check(results == 0, "the message in time");
}

int main(int argc, char **argv)
{
	static char memory[2][BYTES];
	struct ibv_context *context = open_device(argc > 1 ? argv[1] : "rxe0");
	struct ibv_qp *qps[2];
	union ibv_gid gid;

	check(context != NULL, "to open the device");
	const int index = gid_index(context, &gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	check(index >= 0 && pd != NULL && cq != NULL, "a GID, a domain and a queue");
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	check(mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < 2; i++) {
		qps[i] = ibv_create_qp(pd, &attr);
		check(qps[i] != NULL, "ibv_create_qp");
	}
	connect_to(qps[0], qps[1]->qp_num, &gid, index);
	connect_to(qps[1], qps[0]->qp_num, &gid, index);

	struct ibv_sge from = {(uintptr_t)memory[0], BYTES, mr->lkey};
	struct ibv_sge to = {(uintptr_t)memory[1], BYTES, mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1};
	struct ibv_send_wr send = {.sg_list = &from,
	                           .num_sge = 1,
	                           .opcode = IBV_WR_SEND,
	                           .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;

	memset(memory[0], 'x', BYTES);
	check(ibv_post_recv(qps[1], &receive, &bad_receive) == 0, "ibv_post_recv");
	check(ibv_post_send(qps[0], &send, &bad_send) == 0, "ibv_post_send");
	await(cq, 2);
	check(memcmp(memory[0], memory[1], BYTES) == 0, "to compare the message");
	printf("%d bytes arrived\n", BYTES);
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(qps[i]);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
