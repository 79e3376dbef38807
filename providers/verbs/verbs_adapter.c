/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters over libibverbs: open, close, capabilities. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "verbs_mailbox.h"

#define MAX_REGISTRATION (UINT64_C(1) << 40)
#define QUEUES_PER_CQ 8u /* queue pairs of the largest size */
#define LARGE_REQUEST 65536u
#define SOFTWARE_VENDOR 0xffffffu /* the vendor of rdma_rxe */
#define MAX_READS 128u            /* rdma_cm carries eight bits */

/* ---- opening and closing ---- */

/* The largest inline size: devices do not report it, so try. */
static uint32_t find_inline(struct verbs_adapter *adapter, struct ibv_cq *cq)
{
	static const uint32_t sizes[] = {VERBS_MAX_INLINE, 256, 192, 128, 64, 32};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 1,
		                .max_recv_wr = 1,
		                .max_send_sge = adapter->max_sge,
		                .max_recv_sge = adapter->max_sge,
		                .max_inline_data = sizes[i]},
		};
		struct ibv_qp *qp = ibv_create_qp(adapter->pd, &attr);

		if (qp != NULL) {
			(void)ibv_destroy_qp(qp);
			return sizes[i];
		}
	}
	return 0;
}

static enum ndx_status find_limits(struct verbs_adapter *adapter)
{
	struct ibv_port_attr port;
	struct ibv_cq *cq;
	uint32_t share;

	if (ibv_query_device(adapter->context, &adapter->attr) != 0 ||
	    ibv_query_port(adapter->context, (uint8_t)adapter->options.port, &port) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "verbs:%s: cannot be queried: %s",
		            adapter->options.device, strerror(errno));
	adapter->max_transfer =
		port.max_msg_sz < VERBS_MAX_TRANSFER ? port.max_msg_sz : VERBS_MAX_TRANSFER;
	adapter->max_sge = (uint32_t)adapter->attr.max_sge < VERBS_MAX_SGE
	                           ? (uint32_t)adapter->attr.max_sge
	                           : VERBS_MAX_SGE;
	adapter->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	adapter->soft_roce = (adapter->attr.vendor_id & SOFTWARE_VENDOR) == SOFTWARE_VENDOR;
	adapter->has_windows =
		adapter->attr.max_mw > 0 &&
		(adapter->attr.device_cap_flags &
	         (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
	/* one completion queue has to have room for both sides of several queue pairs */
	share = (uint32_t)adapter->attr.max_cqe / QUEUES_PER_CQ;
	adapter->max_depth = (uint32_t)adapter->attr.max_qp_wr - VERBS_CONTROLS;
	if (adapter->max_depth > share)
		adapter->max_depth = share;
	if (adapter->max_depth > VERBS_MAX_DEPTH)
		adapter->max_depth = VERBS_MAX_DEPTH;
	if (adapter->attr.max_srq > 0 && adapter->attr.max_srq_sge > 0) {
		adapter->max_shared = (uint32_t)adapter->attr.max_srq_wr;
		if (adapter->max_shared > adapter->max_depth)
			adapter->max_shared = adapter->max_depth;
		if (adapter->max_sge > (uint32_t)adapter->attr.max_srq_sge)
			adapter->max_sge = (uint32_t)adapter->attr.max_srq_sge;
	}
	cq = ibv_create_cq(adapter->context, 1, NULL, NULL, 0);
	if (cq == NULL)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "verbs:%s: ibv_create_cq: %s",
		            adapter->options.device, strerror(errno));
	adapter->max_inline = find_inline(adapter, cq);
	adapter->has_dmabuf = verbs_mr_has_dmabuf(adapter);
	(void)ibv_destroy_cq(cq);
	return NDX_OK;
}

static enum ndx_status add_watch(struct verbs_adapter *adapter, struct ndxp_watch *watch, int fd,
                                 void (*fn)(void *arg, uint32_t events))
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return fail(NDX_E_INTERNAL_ERROR, errno, "fcntl: %s", strerror(errno));
	watch->fd = fd;
	watch->fn = fn;
	watch->arg = adapter;
	return ndxp_watch_add(adapter->spi.loop, watch, POLLIN, false);
}

/* librdmacm has a context of its own for each device, and notices that a device is gone only when
 * it lists all. The kernel waits for that context to be closed before it removes the device. */
static void let_rdma_cm_forget(void)
{
	struct ibv_context **devices = rdma_get_devices(NULL);

	if (devices != NULL)
		rdma_free_devices(devices);
}

/* Close all that was opened; a no-op for the rest. Runs on the control thread, or before that
 * thread knows the adapter. */
static void close_all(struct verbs_adapter *adapter)
{
	struct ndx_loop *loop = adapter->spi.loop;

	if (adapter->async_watch.fn != NULL)
		ndxp_watch_remove(loop, &adapter->async_watch);
	if (adapter->cm_watch.fn != NULL)
		ndxp_watch_remove(loop, &adapter->cm_watch);
	if (adapter->completions_watch.fn != NULL)
		ndxp_watch_remove(loop, &adapter->completions_watch);
	if (adapter->cm != NULL)
		rdma_destroy_event_channel(adapter->cm);
	if (adapter->completions != NULL)
		(void)ibv_destroy_comp_channel(adapter->completions);
	verbs_mailbox_close_all(adapter);
	if (adapter->pd != NULL && ibv_dealloc_pd(adapter->pd) != 0)
		log_warn(errno, "verbs:%s: ibv_dealloc_pd: %s", adapter->options.device,
		         strerror(errno));
	if (adapter->context != NULL)
		(void)ibv_close_device(adapter->context);
	if (adapter->removed)
		let_rdma_cm_forget();
	verbs_counters_close(adapter);
	free(adapter->addresses);
}

static enum ndx_status open_channels(struct verbs_adapter *adapter)
{
	adapter->pd = ibv_alloc_pd(adapter->context);
	if (adapter->pd == NULL)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "verbs:%s: ibv_alloc_pd: %s",
		            adapter->options.device, strerror(errno));
	adapter->completions = ibv_create_comp_channel(adapter->context);
	if (adapter->completions == NULL)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		            "verbs:%s: ibv_create_comp_channel: %s; see ulimit -n",
		            adapter->options.device, strerror(errno));
	return find_limits(adapter);
}

/* A watch can be removed on the loop's thread only, so after a failure that thread closes the rest,
 * too. */
static enum ndx_status watch_all(struct verbs_adapter *adapter)
{
	enum ndx_status st = add_watch(adapter, &adapter->completions_watch,
	                               adapter->completions->fd, verbs_cq_on_event);

	if (st == NDX_OK)
		st = add_watch(adapter, &adapter->cm_watch, adapter->cm->fd, verbs_cm_on_event);
	if (st == NDX_OK)
		st = add_watch(adapter, &adapter->async_watch, adapter->context->async_fd,
		               verbs_async_on_event);
	return st;
}

static void close_on_loop(void *arg)
{
	close_all(arg);
}

enum ndx_status verbs_adapter_open(const struct ndx_spi_adapter *head,
                                   const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	struct verbs_adapter *adapter = calloc(1, sizeof(*adapter));
	enum ndx_status st;

	if (adapter == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for an adapter");
	adapter->spi = *head;
	for (size_t i = 0; i < VERBS_COUNTERS; i++)
		adapter->counter_fds[i] = -1;
	ndxp_list_init(&adapter->cqs);
	ndxp_list_init(&adapter->regions);
	ndxp_list_init(&adapter->windows);
	ndxp_list_init(&adapter->conns);
	ndxp_list_init(&adapter->listeners);
	ndxp_list_init(&adapter->mailboxes);
	adapter->port_down = (struct ndxp_timer){.fn = verbs_port_on_timer, .arg = adapter};
	adapter->tick = (struct ndxp_timer){.fn = verbs_cq_on_tick, .arg = adapter};
	st = verbs_parse_options(how, &adapter->options);
	/* rdma_cm first: when a process is killed, the kernel usually closes first what was opened
	 * last, and the queue pairs should be gone before rdma_cm tells the peers. */
	if (st == NDX_OK)
		st = verbs_open_cm(adapter->options.device, &adapter->cm);
	if (st == NDX_OK)
		st = verbs_device_open(&adapter->options, &adapter->context);
	if (st == NDX_OK)
		st = verbs_find_addresses(&adapter->options, adapter->context, &adapter->addresses,
		                          &adapter->address_count);
	if (st == NDX_OK)
		st = open_channels(adapter);
	if (st == NDX_OK) {
		verbs_counters_open(adapter);
		st = watch_all(adapter);
	}
	if (st != NDX_OK) {
		ndxp_loop_call(head->loop, close_on_loop, adapter);
		free(adapter);
		return st;
	}
	*out = &adapter->spi;
	return NDX_OK;
}

static void free_adapter(void *arg)
{
	free(arg);
}

void verbs_adapter_close(struct ndx_spi_adapter *spi)
{
	struct verbs_adapter *adapter = verbs_adapter_of(spi);

	ndxp_timer_cancel(spi->loop, &adapter->tick);
	ndxp_timer_cancel(spi->loop, &adapter->port_down);
	close_all(adapter);
	adapter->last = (struct ndxp_job){.fn = free_adapter, .arg = adapter};
	ndxp_loop_post(spi->loop, &adapter->last);
}

/* ---- properties ---- */

static uint32_t read_limit(int most)
{
	return most > 0 && (uint32_t)most < MAX_READS ? (uint32_t)most : MAX_READS;
}

void verbs_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info)
{
	const struct verbs_adapter *adapter = verbs_adapter_of(spi);

	verbs_describe(adapter, info);
	info->capabilities = NDX_CAP_LOOPBACK | NDX_CAP_CQ_RESIZE | NDX_CAP_NOTIFY_SOLICITED |
	                     NDX_CAP_SEND_IMMEDIATE | NDX_CAP_WRITE_IMMEDIATE |
	                     NDX_CAP_REMOTE_ACCESS_STATUS | NDX_CAP_DISCONNECT_REASON |
	                     NDX_CAP_RNR_TIMER | NDX_CAP_EVENTS;
	/* the kernel's memcpy() may copy backwards */
	if (!adapter->soft_roce)
		info->capabilities |= NDX_CAP_IN_ORDER_DMA;
	info->max_registration_size = adapter->attr.max_mr_size < MAX_REGISTRATION
	                                      ? adapter->attr.max_mr_size
	                                      : MAX_REGISTRATION;
	if (adapter->has_windows) {
		info->capabilities |= NDX_CAP_MEMORY_WINDOW;
		info->max_window_size = info->max_registration_size;
	}
	if (adapter->has_dmabuf)
		info->capabilities |= NDX_CAP_DMABUF;
	if (adapter->max_shared > 0)
		info->capabilities |= NDX_CAP_SRQ;
	info->max_initiator_sge = adapter->max_sge;
	info->max_receive_sge = adapter->max_sge;
	info->max_read_sge = adapter->max_sge;
	info->max_transfer_length = adapter->max_transfer;
	info->max_inline_data_size = adapter->max_inline;
	info->inline_request_threshold = adapter->max_inline;
	info->large_request_threshold = LARGE_REQUEST;
	info->max_inbound_read_limit = read_limit(adapter->attr.max_qp_rd_atom);
	info->max_outbound_read_limit = read_limit(adapter->attr.max_qp_init_rd_atom);
	info->max_receive_queue_depth = adapter->max_depth;
	info->max_initiator_queue_depth = adapter->max_depth;
	info->max_shared_receive_queue_depth = adapter->max_shared;
	info->max_completion_queue_depth = VERBS_MAX_CQ_DEPTH;
	info->max_caller_data = VERBS_CALLER_DATA;
	info->max_callee_data = VERBS_CALLEE_DATA;
}

size_t verbs_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                               size_t room)
{
	const struct verbs_adapter *adapter = verbs_adapter_of(spi);

	for (size_t i = 0; i < adapter->address_count && i < room; i++)
		list[i] = adapter->addresses[i];
	return adapter->address_count;
}
