/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations, and the provider's state. */
#include "builtin.h"
#include "fault.h"

static const struct ndx_provider_ops fault_ops = {
	.list = fault_list_nothing,
	.adapter_open = fault_adapter_open,
	.adapter_close = fault_adapter_close,
	.adapter_query = fault_adapter_query,
	.adapter_addresses = fault_adapter_addresses,
	.cq_create = fault_cq_create,
	.cq_destroy = fault_cq_destroy,
	.cq_notify = fault_cq_notify,
	.cq_cancel = fault_cq_cancel,
	.cq_get_fd = fault_cq_get_fd,
	.cq_wake = fault_cq_wake,
	.cq_resize = fault_cq_resize,
	.cq_affinity = fault_cq_affinity,
	.mr_create = fault_mr_create,
	.mr_destroy = fault_mr_destroy,
	.mr_register = fault_mr_register,
	.mr_deregister = fault_mr_deregister,
	.mr_wait_idle = fault_mr_wait_idle,
	.mw_create = fault_mw_create,
	.mw_destroy = fault_mw_destroy,
	.srq_create = fault_srq_create,
	.srq_destroy = fault_srq_destroy,
	.srq_modify = fault_srq_modify,
	.srq_notify = fault_srq_notify,
	.srq_cancel = fault_srq_cancel,
	.srq_affinity = fault_srq_affinity,
	.qp_create = fault_qp_create,
	.qp_destroy = fault_qp_destroy,
	.qp_cancel = fault_qp_cancel,
	.conn_create = fault_conn_create,
	.conn_destroy = fault_conn_destroy,
	.conn_bind = fault_conn_bind,
	.conn_connect = fault_conn_connect,
	.conn_complete = fault_conn_complete,
	.conn_take = fault_conn_take,
	.conn_accept = fault_conn_accept,
	.conn_reject = fault_conn_reject,
	.conn_abandon = fault_conn_abandon,
	.conn_drain = fault_conn_drain,
	.conn_cancel_initiator = fault_conn_cancel_initiator,
	.conn_send_disc = fault_conn_send_disc,
	.conn_finish = fault_conn_finish,
	.conn_abort = fault_conn_abort,
	.conn_detach = fault_conn_detach,
	.listener_create = fault_listener_create,
	.listener_destroy = fault_listener_destroy,
	.listener_bind = fault_listener_bind,
	.listener_listen = fault_listener_listen,
	.request_refuse = fault_request_refuse,
};

/* One for the process, because fault_control.h finds an adapter by its public handle alone. */
static struct fault_process process = {
	.adapters = {&process.adapters, &process.adapters},
};

/* The inner provider's keys are allowed, too. */
static const struct ndx_spi_key fault_keys[] = {
	{NDX_SPI_KEY_ANY, "those of fault and of the provider inside"},
	{NULL, NULL},
};

const struct ndx_provider ndx_provider_fault = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_provider),
	.name = "fault",
	.ops = &fault_ops,
	.ops_size = sizeof(fault_ops),
	.keys = fault_keys,
	.devices = "for tests: the URI of another adapter",
	.state = &process,
	.binding = &ndxp_binding,
};
