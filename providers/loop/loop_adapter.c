/* SPDX-License-Identifier: BSD-2-Clause */
/* The provider itself, its adapters, and completion queues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base_log.h"
#include "builtin.h"
#include "loop.h"

#define INTERFACE "lo"
#define NO_AFFINITY 0

/* FNV-1a: the same name has the same number at every open. */
static uint64_t id_of(const char *device)
{
	static const char prefix[] = "loop:";
	uint64_t id = UINT64_C(0xcbf29ce484222325);

	for (const char *p = prefix; *p != '\0'; p++)
		id = (id ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
	for (const char *p = device; *p != '\0'; p++)
		id = (id ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
	return id;
}

static enum ndx_status list_adapters(const struct ndx_provider *self,
                                     const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                     void *arg)
{
	struct ndx_adapter_entry entry = {
		.uri = "loop",
		.interface_name = INTERFACE,
		.adapter_id = id_of(""),
		.state = NDX_OK,
	};

	(void)defaults; /* there is one, whatever the options */
	(void)snprintf(entry.provider, sizeof(entry.provider), "%s", self->name);
	loop_address(AF_INET, &entry.address);
	each(arg, &entry);
	return NDX_OK;
}

static enum ndx_status adapter_open(const struct ndx_spi_adapter *head,
                                    const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	struct loop_adapter *a;

	if (strlen(how->device) >= sizeof(a->device))
		return fail(NDX_E_NOT_FOUND, 0, "loop:%s: a device name has at most %zu characters",
		            how->device, sizeof(a->device) - 1);
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "loop adapter: out of memory");
	a->spi = *head;
	a->sw = head->provider->state;
	(void)snprintf(a->device, sizeof(a->device), "%s", how->device);
	base_list_init(&a->pending);
	*out = &a->spi;
	return NDX_OK;
}

static void adapter_close(struct ndx_spi_adapter *spi)
{
	free(loop_adapter_of(spi));
}

static void adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info)
{
	const struct loop_adapter *a = loop_adapter_of(spi);

	(void)snprintf(info->uri, sizeof(info->uri), "loop%s%s", a->device[0] != '\0' ? ":" : "",
	               a->device);
	(void)snprintf(info->device, sizeof(info->device), "%s", a->device);
	info->adapter_id = id_of(a->device);
	info->vendor_id = 0;
	info->device_id = 0;
	info->capabilities = NDX_CAP_IN_ORDER_DMA | NDX_CAP_LOOPBACK | NDX_CAP_CQ_RESIZE |
	                     NDX_CAP_NOTIFY_SOLICITED | NDX_CAP_NOTIFY_AFFINITY |
	                     NDX_CAP_MEMORY_WINDOW | NDX_CAP_SRQ | NDX_CAP_SEND_IMMEDIATE |
	                     NDX_CAP_WRITE_IMMEDIATE | NDX_CAP_REMOTE_ACCESS_STATUS |
	                     NDX_CAP_DISCONNECT_REASON;
	info->max_registration_size = LOOP_MAX_REGION;
	info->max_window_size = LOOP_MAX_REGION;
	info->max_initiator_sge = LOOP_MAX_SGE;
	info->max_receive_sge = LOOP_MAX_SGE;
	info->max_read_sge = LOOP_MAX_SGE;
	info->max_transfer_length = LOOP_MAX_TRANSFER;
	info->max_inline_data_size = LOOP_MAX_INLINE;
	info->inline_request_threshold = 1024;
	info->large_request_threshold = 65536;
	info->max_inbound_read_limit = LOOP_MAX_READS;
	info->max_outbound_read_limit = LOOP_MAX_READS;
	info->max_receive_queue_depth = LOOP_MAX_DEPTH;
	info->max_initiator_queue_depth = LOOP_MAX_DEPTH;
	info->max_shared_receive_queue_depth = LOOP_MAX_DEPTH;
	info->max_completion_queue_depth = LOOP_MAX_CQ_DEPTH;
	info->max_caller_data = NDX_SPI_PRIVATE_DATA_MAX;
	info->max_callee_data = NDX_SPI_PRIVATE_DATA_MAX;
}

static size_t adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                                size_t room)
{
	static const sa_family_t families[] = {AF_INET, AF_INET6};
	const size_t count = sizeof(families) / sizeof(families[0]);

	(void)spi;
	for (size_t i = 0; i < count && i < room; i++)
		loop_address(families[i], &list[i]);
	return count;
}

/* ---- completion queues: the stash of core/queue is all there is ---- */

static struct loop_cq *cq_of(struct ndx_spi_cq *cq)
{
	return container_of(cq, struct loop_cq, base.spi);
}

static const struct ndx_cq_ops cq_ops = {
	.get_results = loop_data_get_results,
};

static enum ndx_status cq_create(struct ndx_spi_adapter *adapter, uint32_t depth, uint64_t affinity,
                                 struct ndx_spi_cq **out)
{
	struct loop_cq *cq = calloc(1, sizeof(*cq));
	enum ndx_status st;

	if (cq == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "completion queue: out of memory");
	st = base_cq_init(&cq->base, &cq_ops, depth);
	if (st != NDX_OK)
		goto free_cq;
	cq->sw = loop_adapter_of(adapter)->sw;
	cq->affinity = affinity;
	base_list_init(&cq->starved);
	*out = &cq->base.spi;
	return NDX_OK;
free_cq:
	free(cq);
	return st;
}

static void cq_destroy(struct ndx_spi_cq *spi)
{
	struct loop_cq *cq = cq_of(spi);

	base_cq_fini(&cq->base);
	free(cq);
}

uint64_t loop_affinity(uint64_t wished)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (wished != NO_AFFINITY)
		return wished;
	return cpus < 1 || cpus >= 64 ? UINT64_MAX : (UINT64_C(1) << cpus) - 1;
}

/* Events are raised by whoever causes them, on any CPU: the wish is all that can be told. */
static enum ndx_status cq_affinity(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity)
{
	*group = 0;
	*affinity = loop_affinity(cq_of(cq)->affinity);
	return NDX_OK;
}

static const struct ndx_provider_ops loop_ops = {
	.list = list_adapters,
	.adapter_open = adapter_open,
	.adapter_close = adapter_close,
	.adapter_query = adapter_query,
	.adapter_addresses = adapter_addresses,
	.cq_create = cq_create,
	.cq_destroy = cq_destroy,
	.cq_notify = base_cq_notify,
	.cq_cancel = base_cq_cancel,
	.cq_get_fd = base_cq_get_fd,
	.cq_resize = base_cq_resize,
	.cq_affinity = cq_affinity,
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
	.cq_get_stats = base_cq_get_stats,
};

/*
 * The meeting place is of the process, as the loopback network is of the host: adapters that were
 * opened independently must find each other, so no object of ours can own it. All of it is reached
 * through ndx_provider.state; a test may make itself a provider with a network of its own.
 */
static struct loop_switch meeting_place;

static const struct ndx_spi_key loop_keys[] = {
	{NULL, NULL},
};

const struct ndx_provider ndx_provider_loop = {
	.abi = NDX_SPI_ABI,
	.name = "loop",
	.ops = &loop_ops,
	.keys = loop_keys,
	.devices = "any name, or none",
	.state = &meeting_place,
};
