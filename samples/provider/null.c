/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters, completion queues, and the table of the provider. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/completion_queue.h>
#include <ndx/spi/hash.h>
#include <ndx/spi/log.h>
#include "null.h"

#define MAX_REGION (UINT64_C(1) << 40)
#define MAX_READS 16u
#define MAX_DEPTH 4096u

/* ---- adapters ---- */

static enum ndx_status list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                            ndx_spi_list_fn *each, void *arg)
{
	struct ndx_adapter_entry entry = {
		.uri = "null",
		.address = null_address(0),
		.adapter_id = ndxp_hash_text("null"),
	};

	(void)defaults;
	(void)snprintf(entry.provider, sizeof(entry.provider), "%s", self->name);
	each(arg, &entry);
	return NDX_OK;
}

static enum ndx_status adapter_open(const struct ndx_spi_adapter *head,
                                    const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	struct ndx_spi_adapter *adapter;

	if (how->device[0] != '\0')
		return ndxp_fail_here(NDX_E_NOT_FOUND, 0, "null:%s: null has one adapter: \"null\"",
		                      how->device);
	adapter = malloc(sizeof(*adapter));
	if (adapter == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "null adapter: out of memory");
	*adapter = *head;
	*out = adapter;
	return NDX_OK;
}

static void adapter_close(struct ndx_spi_adapter *adapter)
{
	free(adapter);
}

static void adapter_query(struct ndx_spi_adapter *adapter, struct ndx_adapter_info *info)
{
	(void)adapter;
	(void)snprintf(info->uri, sizeof(info->uri), "null");
	info->adapter_id = ndxp_hash_text("null");
	info->capabilities = NDX_CAP_LOOPBACK | NDX_CAP_CQ_RESIZE | NDX_CAP_NOTIFY_SOLICITED |
	                     NDX_CAP_REMOTE_ACCESS_STATUS | NDX_CAP_DISCONNECT_REASON;
	info->max_registration_size = MAX_REGION;
	info->max_initiator_sge = NULL_MAX_SGE;
	info->max_receive_sge = NULL_MAX_SGE;
	info->max_read_sge = NULL_MAX_SGE;
	info->max_transfer_length = NULL_MAX_TRANSFER;
	info->large_request_threshold = 65536;
	info->max_inbound_read_limit = MAX_READS;
	info->max_outbound_read_limit = MAX_READS;
	info->max_receive_queue_depth = MAX_DEPTH;
	info->max_initiator_queue_depth = MAX_DEPTH;
	info->max_completion_queue_depth = UINT32_C(1) << 20;
	info->max_caller_data = NDX_SPI_PRIVATE_DATA_MAX;
	info->max_callee_data = NDX_SPI_PRIVATE_DATA_MAX;
}

static size_t adapter_addresses(struct ndx_spi_adapter *adapter, struct sockaddr_storage *list,
                                size_t room)
{
	(void)adapter;
	if (room > 0)
		list[0] = null_address(0);
	return 1;
}

/* ---- completion queues: the kit's stash holds all results ---- */

static size_t get_results(struct ndx_cq *cq, struct ndx_result *results, size_t count)
{
	return ndxp_cq_take(ndxp_cq_of(cq), results, count);
}

static const struct ndx_cq_ops cq_ops = {.size = sizeof(cq_ops), .get_results = get_results};

static enum ndx_status cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                                 struct ndx_spi_cq **out)
{
	struct ndxp_cq *cq = calloc(1, sizeof(*cq));
	enum ndx_status st;

	(void)adapter;
	if (cq == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "completion queue: out of memory");
	st = ndxp_cq_init(cq, &cq_ops, attr->depth);
	if (st == NDX_OK)
		*out = &cq->spi;
	else
		free(cq);
	return st;
}

static void cq_destroy(struct ndx_spi_cq *spi)
{
	struct ndxp_cq *cq = ndxp_container_of(spi, struct ndxp_cq, spi);

	ndxp_cq_fini(cq);
	free(cq);
}

/* ---- the provider ---- */

static const struct ndx_provider_ops ops = {
	.list = list,
	.adapter_open = adapter_open,
	.adapter_close = adapter_close,
	.adapter_query = adapter_query,
	.adapter_addresses = adapter_addresses,
	.cq_create = cq_create,
	.cq_destroy = cq_destroy,
	.cq_notify = ndxp_cq_notify,
	.cq_cancel = ndxp_cq_cancel,
	.cq_get_fd = ndxp_cq_get_fd,
	.cq_resize = ndxp_cq_resize,
	.cq_get_stats = ndxp_cq_get_stats,
	.mr_create = null_mr_create,
	.mr_destroy = null_mr_destroy,
	.mr_register = null_mr_register,
	.mr_deregister = null_mr_deregister,
	.qp_create = null_qp_create,
	.qp_destroy = null_qp_destroy,
	.qp_cancel = null_qp_cancel,
	.qp_get_stats = null_qp_get_stats,
	.conn_create = null_conn_create,
	.conn_destroy = null_conn_destroy,
	.conn_bind = null_conn_bind,
	.conn_connect = null_conn_connect,
	.conn_complete = null_conn_complete,
	.conn_take = null_conn_take,
	.conn_accept = null_conn_accept,
	.conn_reject = null_conn_reject,
	.conn_abandon = null_conn_abandon,
	.conn_drain = null_conn_drain,
	.conn_cancel_initiator = null_conn_cancel_initiator,
	.conn_send_disc = null_conn_send_disc,
	.conn_finish = null_conn_finish,
	.conn_abort = null_conn_abort,
	.conn_detach = null_conn_detach,
	.listener_create = null_listener_create,
	.listener_destroy = null_listener_destroy,
	.listener_bind = null_listener_bind,
	.listener_listen = null_listener_listen,
	.request_refuse = null_request_refuse,
};

static const struct ndx_spi_key keys[] = {{NULL, NULL}};

const struct ndx_provider ndx_provider = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_provider),
	.name = "null",
	.ops = &ops,
	.ops_size = sizeof(ops),
	.keys = keys,
	.devices = "none",
	.binding = &ndxp_binding,
};
