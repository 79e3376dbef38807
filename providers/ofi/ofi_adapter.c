/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters over libfabric: open, close, capabilities. */
#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "ofi.h"
#include "ofi_early.h"

#define MAX_REGISTRATION (UINT64_C(1) << 40)
#define LARGE_REQUEST 65536u

/* ---- opening and closing ---- */

static enum ndx_status fail_open(const char *call, int err)
{
	return fail(ofi_status_of(err), err, "%s: %s", call, fi_strerror(err));
}

static enum ndx_status open_refuser(struct ofi_adapter *adapter)
{
	struct fi_info *info = ofi_dup_info(adapter->info, NULL, NULL);
	int err;

	if (info == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for an adapter");
	err = -fi_passive_ep(adapter->fabric, info, &adapter->refuser, NULL);
	fi_freeinfo(info);
	return err == 0 ? NDX_OK : fail_open("fi_passive_ep", err);
}

/* A program that this process starts must not inherit libfabric's sockets: a peer would not see the
 * end of this process while that program lives, and the port would stay in use. */
static void close_on_exec(void)
{
	if (!ndx_early_close_on_exec((const void *)(uintptr_t)fi_fabric))
		log_warn(0, "programs that this process starts inherit libfabric's descriptors: "
		            "its calls cannot be replaced on this machine");
}

/* On the control thread, which may be reading the event queue. */
static void close_fabric(void *arg)
{
	struct ofi_adapter *adapter = arg;
	int err;

	(void)fi_close(&adapter->refuser->fid);
	ofi_eq_close(&adapter->eq);
	if (adapter->padding_mr != NULL)
		(void)fi_close(&adapter->padding_mr->fid);
	free(adapter->padding);
	err = -fi_close(&adapter->domain->fid);
	if (err != 0)
		log_warn(err, "fi_close of a domain: %s", fi_strerror(err));
	(void)fi_close(&adapter->fabric->fid);
}

static enum ndx_status open_fabric(struct ofi_adapter *adapter)
{
	enum ndx_status st;
	int err;

	close_on_exec();
	if (adapter->backend->prepare != NULL)
		adapter->backend->prepare();
	err = -fi_fabric(adapter->info->fabric_attr, &adapter->fabric, NULL);
	if (err != 0)
		return fail_open("fi_fabric", err);
	err = -fi_domain(adapter->fabric, adapter->info, &adapter->domain, NULL);
	if (err != 0) {
		st = fail_open("fi_domain", err);
		goto close_fabric;
	}
	st = open_refuser(adapter);
	if (st != NDX_OK)
		goto close_domain;
	st = ofi_eq_open(&adapter->eq, adapter);
	if (st != NDX_OK)
		goto close_refuser;
	if (adapter->backend->check != NULL)
		st = adapter->backend->check(adapter);
	if (st != NDX_OK)
		ndxp_loop_call(adapter->spi.loop, close_fabric, adapter);
	return st;

close_refuser:
	(void)fi_close(&adapter->refuser->fid);
close_domain:
	(void)fi_close(&adapter->domain->fid);
close_fabric:
	(void)fi_close(&adapter->fabric->fid);
	return st;
}

static enum ofi_cq_share choose_share(const struct ofi_options *options)
{
	if (options->backend->controls > 0) /* each native queue has the size for one queue pair */
		return OFI_SHARE_NEVER;
	switch (options->cq) {
	case OFI_CQ_PRIVATE:
		return OFI_SHARE_NEVER;
	case OFI_CQ_SHARED:
		return OFI_SHARE_ALWAYS;
	case OFI_CQ_AUTO:
		break;
	}
	if (options->backend->shared_cq_since == UINT32_MAX)
		return OFI_SHARE_NEVER;
	return FI_VERSION_LT(fi_version(), options->backend->shared_cq_since)
	               ? OFI_SHARE_UNLESS_READS
	               : OFI_SHARE_ALWAYS;
}

static void init_adapter(struct ofi_adapter *adapter, const struct ndx_spi_adapter *head)
{
	adapter->spi = *head;
	adapter->spi.stack = adapter->backend->stack;
	adapter->share = choose_share(&adapter->options);
	adapter->silent.kind = OFI_OP_SILENT;
	adapter->eq.event = ofi_conn_event;
	adapter->eq.owner = adapter;
	adapter->max_depth = OFI_MAX_DEPTH;
	adapter->answer_ms = OFI_ANSWER_MS;
	adapter->hello_ms = OFI_HELLO_MS;
	adapter->stall_ms = OFI_STALL_MS;
	adapter->confirm_ms = OFI_CONFIRM_MS;
	adapter->recall_ms = OFI_RECALL_MS;
	adapter->max_transfer = adapter->backend->max_transfer;
	if (adapter->info->ep_attr->max_msg_size < adapter->max_transfer)
		adapter->max_transfer = (uint32_t)adapter->info->ep_attr->max_msg_size;
	ndxp_list_init(&adapter->conns);
	ndxp_list_init(&adapter->qps);
	ndxp_list_init(&adapter->links);
	ndxp_list_init(&adapter->lingering);
	ndxp_list_init(&adapter->ncqs);
	adapter->tick = (struct ndxp_timer){.fn = ofi_ncq_on_tick, .arg = adapter};
	adapter->kick = (struct ndxp_job){.fn = ofi_ncq_on_kick, .arg = adapter};
	adapter->look = (struct ndxp_job){.fn = ofi_ncq_on_look, .arg = adapter};
	ndxp_list_init(&adapter->asked);
	ndxp_list_init(&adapter->revokes);
	ndxp_list_init(&adapter->srqs);
	adapter->serve = (struct ndxp_job){.fn = ofi_srq_serve_all, .arg = adapter};
	adapter->revoke_job = (struct ndxp_job){.fn = ofi_revoke_on_job, .arg = adapter};
	ndxp_table_init(&adapter->keys.by_token, adapter->keys.buckets, OFI_KEY_BUCKETS);
	adapter->revoke_timer = (struct ndxp_timer){.fn = ofi_revoke_on_timer, .arg = adapter};
}

enum ndx_status ofi_adapter_open(const struct ndx_spi_adapter *head, const struct ndx_spi_open *how,
                                 struct ndx_spi_adapter **out)
{
	struct ofi_adapter *adapter = calloc(1, sizeof(*adapter));
	enum ndx_status st;

	if (adapter == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for an adapter");
	st = ofi_parse_options(how, &adapter->options);
	if (st != NDX_OK)
		goto free_adapter;
	st = ofi_find_addresses(&adapter->options, &adapter->addresses, &adapter->address_count);
	if (st != NDX_OK)
		goto free_adapter;
	adapter->backend = adapter->options.backend;
	st = adapter->backend->choose(&adapter->options, adapter->addresses,
	                              &adapter->address_count, &adapter->info);
	if (st != NDX_OK)
		goto free_addresses;
	init_adapter(adapter, head);
	st = ofi_peer_open(adapter);
	if (st != NDX_OK)
		goto free_info;
	st = open_fabric(adapter);
	if (st != NDX_OK)
		goto close_peer;
	st = ofi_netifs_open(adapter);
	if (st != NDX_OK)
		goto close_fabric;
	*out = &adapter->spi;
	return NDX_OK;

close_fabric:
	ndxp_loop_call(adapter->spi.loop, close_fabric, adapter);
close_peer:
	ofi_peer_close(adapter);
free_info:
	fi_freeinfo(adapter->info);
free_addresses:
	free(adapter->addresses);
free_adapter:
	free(adapter);
	return st;
}

static void free_adapter(void *arg)
{
	free(arg);
}

void ofi_adapter_close(struct ndx_spi_adapter *spi)
{
	struct ofi_adapter *adapter = ofi_adapter_of(spi);

	ofi_link_close_all(adapter); /* links that still send their last control message */
	ofi_listener_end_all(adapter);
	ndxp_timer_cancel(spi->loop, &adapter->tick);
	ndxp_timer_cancel(spi->loop, &adapter->revoke_timer);
	ofi_netifs_close(adapter);
	close_fabric(adapter);
	ofi_peer_close(adapter);
	fi_freeinfo(adapter->info);
	free(adapter->addresses);
	ofi_mr_table_fini(&adapter->regions);
	adapter->last = (struct ndxp_job){.fn = free_adapter, .arg = adapter};
	ndxp_loop_post(spi->loop, &adapter->last);
}

/* ---- properties ---- */

void ofi_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info)
{
	const struct ofi_adapter *adapter = ofi_adapter_of(spi);
	const struct ofi_backend *backend = adapter->backend;

	ofi_describe(&adapter->options, info);
	info->vendor_id = adapter->vendor_id;
	info->device_id = 0;
	info->capabilities = backend->capabilities;
	if (adapter->netifs.watch.fd >= 0)
		info->capabilities |= NDX_CAP_EVENTS;
	/* the kernel's memcpy() may copy backwards */
	if (adapter->software)
		info->capabilities &= ~(uint64_t)NDX_CAP_IN_ORDER_DMA;
	info->max_registration_size = MAX_REGISTRATION;
	info->max_window_size = backend->windows ? MAX_REGISTRATION : 0;
	info->max_initiator_sge = OFI_MAX_IOV;
	info->max_receive_sge = OFI_MAX_IOV;
	info->max_read_sge = OFI_MAX_IOV;
	info->max_transfer_length = adapter->max_transfer;
	info->max_inline_data_size = OFI_MAX_INLINE;
	info->inline_request_threshold = 0; /* inline costs one more copy and saves nothing */
	info->large_request_threshold = LARGE_REQUEST;
	info->max_inbound_read_limit = OFI_MAX_READS;
	info->max_outbound_read_limit = OFI_MAX_READS;
	info->max_receive_queue_depth = adapter->max_depth;
	info->max_initiator_queue_depth = adapter->max_depth;
	if (backend->capabilities & NDX_CAP_SRQ)
		info->max_shared_receive_queue_depth = OFI_MAX_DEPTH;
	info->max_completion_queue_depth = OFI_MAX_CQ_DEPTH;
	info->max_caller_data = (uint32_t)backend->max_caller_data;
	info->max_callee_data = (uint32_t)backend->max_callee_data;
}

size_t ofi_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                             size_t room)
{
	const struct ofi_adapter *adapter = ofi_adapter_of(spi);

	for (size_t i = 0; i < adapter->address_count && i < room; i++)
		list[i] = adapter->addresses[i];
	return adapter->address_count;
}
