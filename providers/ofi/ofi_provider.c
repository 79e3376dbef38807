/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations. */
#include "ofi.h"
#include "ofi_early.h"

static const struct ndx_provider_ops ops = {
	.list = ofi_list,
	.adapter_open = ofi_adapter_open,
	.adapter_close = ofi_adapter_close,
	.adapter_query = ofi_adapter_query,
	.adapter_addresses = ofi_adapter_addresses,
	.cq_create = ofi_cq_create,
	.cq_destroy = ofi_cq_destroy,
	.cq_notify = ofi_cq_notify,
	.cq_cancel = ndxp_cq_cancel,
	.cq_get_fd = ofi_cq_get_fd,
	.cq_wake = ofi_cq_wake,
	.cq_resize = ndxp_cq_resize,
	.mr_create = ofi_mr_create,
	.mr_destroy = ofi_mr_destroy,
	.mr_register = ofi_mr_register,
	.mr_deregister = ofi_mr_deregister,
	.mr_wait_idle = ofi_mr_wait_idle,
	.mw_create = ofi_mw_create,
	.mw_destroy = ofi_mw_destroy,
	.srq_create = ofi_srq_create,
	.srq_destroy = ofi_srq_destroy,
	.srq_modify = ndxp_srq_modify,
	.srq_notify = ndxp_srq_notify,
	.srq_cancel = ndxp_srq_cancel,
	.qp_create = ofi_qp_create,
	.qp_destroy = ofi_qp_destroy,
	.qp_cancel = ofi_qp_cancel,
	.conn_create = ofi_conn_create,
	.conn_destroy = ofi_conn_destroy,
	.conn_bind = ofi_conn_bind,
	.conn_connect = ofi_conn_connect,
	.conn_complete = ofi_conn_complete,
	.conn_take = ofi_conn_take,
	.conn_accept = ofi_conn_accept,
	.conn_reject = ofi_conn_reject,
	.conn_abandon = ofi_conn_abandon,
	.conn_drain = ofi_conn_drain,
	.conn_cancel_initiator = ofi_conn_cancel_initiator,
	.conn_send_disc = ofi_conn_send_disc,
	.conn_finish = ofi_conn_finish,
	.conn_abort = ofi_conn_abort,
	.conn_detach = ofi_conn_detach,
	.listener_create = ofi_listener_create,
	.listener_destroy = ofi_listener_destroy,
	.listener_bind = ofi_listener_bind,
	.listener_listen = ofi_listener_listen,
	.request_refuse = ofi_request_refuse,
	.request_is_stale = ofi_request_is_stale,
	.qp_get_stats = ofi_qp_get_stats,
	.cq_get_stats = ndxp_cq_get_stats,
	.get_counters = ofi_get_counters,
	.conn_prove = ofi_conn_prove,
};

static const struct ndx_spi_rank ranks[] = {
	{"verbs", NDX_SPI_RANK_LAYERED},
	{"tcp", NDX_SPI_RANK_SOFTWARE},
	{NULL, 0},
};

/* The module exports the constant as ndx_provider. */
extern __attribute__((visibility("default"))) const struct ndx_provider ndx_provider_ofi;

const struct ndx_provider ndx_provider_ofi = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_provider),
	.name = "ofi",
	.ops = &ops,
	.ops_size = sizeof(ops),
	.keys = ofi_keys,
	.devices = "tcp, verbs",
	.ranks = ranks,
	.binding = &ndxp_binding,
};
