/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters and completion queues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/hash.h>
#include <ndx/spi/log.h>
#include "builtin.h"
#include "loop.h"

#define INTERFACE "lo"
#define NO_AFFINITY 0
#define ADDRESSES 2u

static void fill_addresses(struct sockaddr_storage *list, size_t room)
{
	static const sa_family_t families[ADDRESSES] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < ADDRESSES && i < room; i++)
		loop_address(families[i], &list[i]);
}

static uint64_t id_of(const char *device)
{
	char text[sizeof("loop:") + sizeof(((struct loop_adapter *)NULL)->device)];

	(void)snprintf(text, sizeof(text), "loop:%s", device);
	return ndxp_hash_text(text);
}

enum ndx_status loop_list_adapters(const struct ndx_provider *self,
                                   const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                   void *arg)
{
	struct sockaddr_storage addresses[ADDRESSES];
	struct ndx_adapter_entry entry = {
		.uri = "loop",
		.interface_name = INTERFACE,
		.adapter_id = id_of(""),
		.state = NDX_OK,
		.addresses = addresses,
		.address_count = ADDRESSES,
	};

	(void)defaults; /* there is one adapter, whatever the options */
	(void)snprintf(entry.provider, sizeof(entry.provider), "%s", self->name);
	fill_addresses(addresses, ADDRESSES);
	entry.address = addresses[0];
	each(arg, &entry);
	return NDX_OK;
}

enum ndx_status loop_adapter_open(const struct ndx_spi_adapter *head,
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
	ndxp_table_init(&a->keys, a->buckets, LOOP_KEY_BUCKETS);
	ndxp_list_init(&a->pending);
	*out = &a->spi;
	return NDX_OK;
}

void loop_adapter_close(struct ndx_spi_adapter *spi)
{
	free(loop_adapter_of(spi));
}

void loop_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info)
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

size_t loop_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                              size_t room)
{
	(void)spi;
	fill_addresses(list, room);
	return ADDRESSES;
}

/* ---- completion queues: core/queue's stash holds all results ---- */

static struct loop_cq *cq_of(struct ndx_spi_cq *cq)
{
	return container_of(cq, struct loop_cq, base.spi);
}

static const struct ndx_cq_ops cq_ops = {
	.size = sizeof(cq_ops),
	.get_results = loop_data_get_results,
};

enum ndx_status loop_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                               struct ndx_spi_cq **out)
{
	struct loop_cq *cq = calloc(1, sizeof(*cq));
	enum ndx_status st;

	if (cq == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "completion queue: out of memory");
	st = ndxp_cq_init(&cq->base, &cq_ops, attr->depth);
	if (st != NDX_OK)
		goto free_cq;
	cq->sw = loop_adapter_of(adapter)->sw;
	cq->affinity = attr->affinity;
	ndxp_list_init(&cq->slot_waiters);
	*out = &cq->base.spi;
	return NDX_OK;
free_cq:
	free(cq);
	return st;
}

void loop_cq_destroy(struct ndx_spi_cq *spi)
{
	struct loop_cq *cq = cq_of(spi);

	ndxp_cq_fini(&cq->base);
	free(cq);
}

uint64_t loop_affinity(uint64_t wished)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (wished != NO_AFFINITY)
		return wished;
	return cpus < 1 || cpus >= 64 ? UINT64_MAX : (UINT64_C(1) << cpus) - 1;
}

/* Whichever thread causes an event raises it, on any CPU: only the caller's request can be
 * reported. */
enum ndx_status loop_cq_affinity(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity)
{
	*group = 0;
	*affinity = loop_affinity(cq_of(cq)->affinity);
	return NDX_OK;
}
