/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_loop.h"
#include "verbs_path.h"

#include "null_provider.h"

static void nothing(void *arg)
{
	(void)arg;
}

bool verbs_open(struct verbs_path *path)
{
	struct ndx_qp_attr attr = {
		.size = sizeof(attr),
		.receive_depth = NULL_DEPTH,
		.initiator_depth = NULL_DEPTH,
		.max_receive_sge = 4,
		.max_initiator_sge = 4,
	};

	*path = (struct verbs_path){0};
	fake_open(&path->device);
	path->device.runs = true;
	path->adapter.spi.host = &path->host;
	path->adapter.context = &path->device.context;
	path->adapter.pd = &path->device.pd;
	path->adapter.max_transfer = UINT32_C(1) << 30;
	ndxp_list_init(&path->adapter.cqs);
	ndxp_list_init(&path->adapter.windows);
	if (base_loop_create("bench", &path->adapter.spi.loop) != NDX_OK)
		return false;
	if (verbs_cq_create(&path->adapter.spi, &(struct ndx_cq_attr){.depth = 2 * NULL_DEPTH},
	                    &path->cq) != NDX_OK)
		goto destroy_loop;
	attr.receive_cq = &path->cq->pub;
	attr.initiator_cq = &path->cq->pub;
	if (verbs_qp_create(&path->adapter.spi, &attr, &path->qp) != NDX_OK)
		goto destroy_cq;
	verbs_qp_of(path->qp)->conn = &path->conn;
	verbs_qp_of(path->qp)->base.state = NDXP_QP_UP;
	verbs_qp_of(path->qp)->native->state = IBV_QPS_RTS;
	return true;
destroy_cq:
	verbs_cq_destroy(path->cq);
destroy_loop:
	base_loop_destroy(path->adapter.spi.loop, nothing, NULL);
	return false;
}

void verbs_close(struct verbs_path *path)
{
	verbs_qp_destroy(path->qp);
	verbs_cq_destroy(path->cq);
	base_loop_destroy(path->adapter.spi.loop, nothing, NULL);
}

unsigned long bare_pairs(struct ibv_qp *qp, struct ibv_cq *cq, unsigned long count)
{
	static char buffer[64];
	struct ibv_sge sge = {(uintptr_t)buffer, sizeof(buffer), 1};
	struct ibv_wc wc[VERBS_BATCH];
	unsigned long good = 0;

	for (unsigned long i = 0; i < count; i++) {
		struct ibv_send_wr wr = {
			.wr_id = (uintptr_t)qp,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
		struct ibv_send_wr *bad;

		if (ibv_post_send(qp, &wr, &bad) == 0 && ibv_poll_cq(cq, VERBS_BATCH, wc) == 1)
			good += wc[0].wr_id == (uintptr_t)qp;
	}
	return good;
}

unsigned long bare_lists(struct ibv_qp *qp, struct ibv_cq *cq, unsigned long count)
{
	static char buffer[64];
	struct ibv_sge sge = {(uintptr_t)buffer, sizeof(buffer), 1};
	struct ibv_send_wr list[VERBS_PATH_LIST];
	struct ibv_wc wc[VERBS_BATCH];
	unsigned long good = 0;

	for (unsigned long i = 0; i < count; i++) {
		struct ibv_send_wr *bad;

		for (unsigned j = 0; j < VERBS_PATH_LIST; j++)
			list[j] = (struct ibv_send_wr){
				.wr_id = (uintptr_t)qp,
				.next = j + 1 < VERBS_PATH_LIST ? &list[j + 1] : NULL,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
			};
		if (ibv_post_send(qp, list, &bad) == 0 &&
		    ibv_poll_cq(cq, VERBS_BATCH, wc) == VERBS_PATH_LIST)
			good += wc[VERBS_PATH_LIST - 1].wr_id == (uintptr_t)qp;
	}
	return good;
}
