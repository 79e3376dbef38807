/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of the native queue pair for a path that both ends describe to each other. */
#include <string.h>

#include "verbs_conn.h"

#define HOPS 64

static const struct {
	uint32_t bytes;
	enum ibv_mtu mtu;
} mtus[] = {{256, IBV_MTU_256},
            {512, IBV_MTU_512},
            {1024, IBV_MTU_1024},
            {2048, IBV_MTU_2048},
            {4096, IBV_MTU_4096}};
#define MTUS (sizeof(mtus) / sizeof(mtus[0]))

uint32_t verbs_oob_path_bytes(enum ibv_mtu mtu)
{
	for (size_t i = 0; i < MTUS; i++)
		if (mtus[i].mtu == mtu)
			return mtus[i].bytes;
	return mtus[0].bytes;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	for (size_t i = MTUS; i > 0; i--)
		if (mtus[i - 1].bytes <= bytes)
			return mtus[i - 1].mtu;
	return IBV_MTU_256;
}

void verbs_oob_path_attr(const struct verbs_conn *conn, struct ibv_qp_attr *attr, int *mask)
{
	const struct verbs_oob_path *oob = &conn->oob;
	static const uint8_t none[sizeof(oob->peer_gid)];
	const uint8_t port = (uint8_t)conn->adapter->options.port;

	switch ((int)attr->qp_state) {
	case IBV_QPS_INIT:
		attr->port_num = port;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		break;
	case IBV_QPS_RTR:
		attr->path_mtu = mtu_of(oob->mtu);
		attr->dest_qp_num = oob->peer_number;
		attr->rq_psn = oob->peer_psn;
		attr->ah_attr.port_num = port;
		attr->ah_attr.dlid = oob->peer_lid;
		attr->ah_attr.is_global = memcmp(oob->peer_gid, none, sizeof(none)) != 0;
		attr->ah_attr.grh.sgid_index = oob->gid_index;
		attr->ah_attr.grh.hop_limit = HOPS;
		memcpy(attr->ah_attr.grh.dgid.raw, oob->peer_gid, sizeof(oob->peer_gid));
		*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		break;
	default:
		attr->sq_psn = oob->psn;
		*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
		break;
	}
}
