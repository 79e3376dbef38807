/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations, and the switch of all adapters. */
#include "builtin.h"
#include "loop.h"

static const struct ndx_provider_ops loop_ops = {
	.list = loop_list_adapters,
	.adapter_open = loop_adapter_open,
	.adapter_close = loop_adapter_close,
	.adapter_query = loop_adapter_query,
	.adapter_addresses = loop_adapter_addresses,
	.cq_create = loop_cq_create,
	.cq_destroy = loop_cq_destroy,
	.cq_notify = ndxp_cq_notify,
	.cq_cancel = ndxp_cq_cancel,
	.cq_get_fd = ndxp_cq_get_fd,
	.cq_resize = ndxp_cq_resize,
	.cq_affinity = loop_cq_affinity,
	.mr_create = loop_mr_create,
	.mr_destroy = loop_mr_destroy,
	.mr_register = loop_mr_register,
	.mr_deregister = loop_mr_deregister,
	.mw_create = loop_mw_create,
	.mw_destroy = loop_mw_destroy,
	.srq_create = loop_srq_create,
	.srq_destroy = loop_srq_destroy,
	.srq_modify = loop_srq_modify,
	.srq_notify = loop_srq_notify,
	.srq_cancel = loop_srq_cancel,
	.srq_affinity = loop_srq_affinity,
	.qp_create = loop_qp_create,
	.qp_destroy = loop_qp_destroy,
	.qp_cancel = loop_qp_cancel,
	.conn_create = loop_conn_create,
	.conn_destroy = loop_conn_destroy,
	.conn_bind = loop_conn_bind,
	.conn_connect = loop_conn_connect,
	.conn_complete = loop_conn_complete,
	.conn_take = loop_conn_take,
	.conn_accept = loop_conn_accept,
	.conn_reject = loop_conn_reject,
	.conn_abandon = loop_conn_abandon,
	.conn_drain = loop_conn_drain,
	.conn_cancel_initiator = loop_conn_cancel_initiator,
	.conn_send_disc = loop_conn_send_disc,
	.conn_finish = loop_conn_finish,
	.conn_abort = loop_conn_abort,
	.conn_detach = loop_conn_detach,
	.listener_create = loop_listener_create,
	.listener_destroy = loop_listener_destroy,
	.listener_bind = loop_listener_bind,
	.listener_listen = loop_listener_listen,
	.request_refuse = loop_request_refuse,
	.request_is_stale = loop_request_is_stale,
	.qp_get_stats = loop_qp_get_stats,
	.cq_get_stats = ndxp_cq_get_stats,
};

/*
 * One switch for the process, as there is one loopback network for a host: adapters that were
 * opened independently have to find each other, so no object of the library can own the switch. The
 * provider reaches it through ndx_provider.state only, so a test can make a provider with its own
 * switch.
 */
static struct loop_switch process_switch = {
	.ports = {.buckets = process_switch.buckets, .mask = LOOP_PORT_BUCKETS - 1},
};

static const struct ndx_spi_key loop_keys[] = {
	{NULL, NULL},
};

const struct ndx_provider ndx_provider_loop = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_provider),
	.name = "loop",
	.ops = &loop_ops,
	.ops_size = sizeof(loop_ops),
	.keys = loop_keys,
	.devices = "any name, or none",
	.state = &process_switch,
	.binding = &ndxp_binding,
};
