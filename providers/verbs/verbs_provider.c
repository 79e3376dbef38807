/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations. */
#include "verbs_conn.h"
#include "verbs_srq.h"

static const struct ndx_provider_ops ops = {
	.list = verbs_list,
	.adapter_open = verbs_adapter_open,
	.adapter_close = verbs_adapter_close,
	.adapter_query = verbs_adapter_query,
	.adapter_addresses = verbs_adapter_addresses,
	.cq_create = verbs_cq_create,
	.cq_destroy = verbs_cq_destroy,
	.cq_notify = verbs_cq_notify,
	.cq_cancel = ndxp_cq_cancel,
	.cq_get_fd = ndxp_cq_get_fd,
	.cq_resize = ndxp_cq_resize,
	.mr_create = verbs_mr_create,
	.mr_destroy = verbs_mr_destroy,
	.mr_register = verbs_mr_register,
	.mr_deregister = verbs_mr_deregister,
	.mw_create = verbs_mw_create,
	.mw_destroy = verbs_mw_destroy,
	.srq_create = verbs_srq_create,
	.srq_destroy = verbs_srq_destroy,
	.srq_modify = ndxp_srq_modify,
	.srq_notify = ndxp_srq_notify,
	.srq_cancel = ndxp_srq_cancel,
	.qp_create = verbs_qp_create,
	.qp_destroy = verbs_qp_destroy,
	.qp_cancel = verbs_qp_cancel,
	.conn_create = verbs_conn_create,
	.conn_destroy = verbs_conn_destroy,
	.conn_bind = verbs_conn_bind,
	.conn_connect = verbs_conn_connect,
	.conn_complete = verbs_conn_complete,
	.conn_take = verbs_conn_take,
	.conn_accept = verbs_conn_accept,
	.conn_reject = verbs_conn_reject,
	.conn_abandon = verbs_conn_abandon,
	.conn_drain = verbs_conn_drain,
	.conn_cancel_initiator = verbs_conn_cancel_initiator,
	.conn_send_disc = verbs_conn_send_disc,
	.conn_finish = verbs_conn_finish,
	.conn_abort = verbs_conn_abort,
	.conn_detach = verbs_conn_detach,
	.qp_describe = verbs_qp_describe,
	.qp_connect_peer = verbs_qp_connect_peer,
	.conn_oob_received = verbs_conn_oob_received,
	.listener_create = verbs_listener_create,
	.listener_destroy = verbs_listener_destroy,
	.listener_bind = verbs_listener_bind,
	.listener_listen = verbs_listener_listen,
	.request_refuse = verbs_request_refuse,
	.qp_get_stats = verbs_qp_get_stats,
	.cq_get_stats = ndxp_cq_get_stats,
	.qp_query = verbs_qp_query,
	.mr_register_dmabuf = verbs_mr_register_dmabuf,
	.conn_prove = verbs_conn_prove,
};

static const struct ndx_spi_rank ranks[] = {
	{"", NDX_SPI_RANK_DEVICE},
	{NULL, 0},
};

/* The module exports the constant as ndx_provider. */
extern __attribute__((visibility("default"))) const struct ndx_provider ndx_provider_verbs;

const struct ndx_provider ndx_provider_verbs = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_provider),
	.name = "verbs",
	.ops = &ops,
	.ops_size = sizeof(ops),
	.keys = verbs_keys,
	.devices = "name of an RDMA device, or none for the first that is active",
	.ranks = ranks,
	.binding = &ndxp_binding,
};
