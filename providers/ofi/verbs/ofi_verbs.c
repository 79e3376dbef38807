/* SPDX-License-Identifier: BSD-2-Clause */
/* The back end for libfabric's verbs provider: how to find its devices, and the table. */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi_verbs.h"

#define CONTROLS 16u                      /* control requests in flight at once */
#define SOFTWARE_VENDOR 0xffffffu         /* the vendor of rdma_rxe */
#define MAX_TRANSFER (UINT32_C(64) << 20) /* ends within the time limit */

/* ---- opening ---- */

static void hint(struct fi_info *hints)
{
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	/* neither XRC nor iWARP, for which there was no device to test with */
	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC;
}

static bool accept_info(struct fi_info *info)
{
	return info->domain_attr->cq_data_size >= sizeof(uint32_t) &&
	       info->tx_attr->size > CONTROLS + 1 && info->rx_attr->size > 2;
}

static bool is_link_local(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;

	if (address->ss_family != AF_INET6)
		return false;
	memcpy(&v6, address, sizeof(v6));
	return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

/* The device that serves an address: NDX_OK and *info. A device that is not found is not logged as
 * a failure. */
static enum ndx_status look_at(const struct sockaddr_storage *address, struct fi_info **info)
{
	enum ndx_status st = NDX_E_NOT_FOUND;

	if (ndxp_sockaddr_is_loopback(address) || is_link_local(address))
		return st;
	ndxp_fail_hold(true);
	st = ofi_get_info(&ofi_verbs, address, info);
	ndxp_fail_hold(false);
	return st;
}

static enum ndx_status fail_no_device(void)
{
	return fail(NDX_E_NOT_FOUND, FI_ENODATA,
	            "ofi:verbs: libfabric %u.%u finds no RDMA device at these addresses; load the "
	            "adapter's driver, or \"rdma link add rxe0 type rxe netdev INTERFACE\" for one "
	            "in software",
	            FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
}

/* Keep those of the addresses that the device of the first one serves. NULL: there is no device. */
static struct fi_info *keep_served(struct sockaddr_storage *list, size_t *count)
{
	struct fi_info *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < *count; i++) {
		struct fi_info *found = NULL;

		if (look_at(&list[i], &found) != NDX_OK)
			continue;
		if (first == NULL ||
		    strcmp(found->domain_attr->name, first->domain_attr->name) == 0)
			list[n++] = list[i];
		if (first == NULL)
			first = found;
		else
			fi_freeinfo(found);
	}
	*count = n;
	return first;
}

static enum ndx_status choose(const struct ofi_options *options, struct sockaddr_storage *list,
                              size_t *count, struct fi_info **info)
{
	struct fi_info *found = keep_served(list, count);

	(void)options;
	if (found == NULL)
		return fail_no_device();
	*info = found;
	return NDX_OK;
}

/*
 * With its cache of regions on, libfabric ignores the rights of a region whose memory is registered
 * already, and closing a region revokes nothing. The cache is off if two regions of the same memory
 * have two keys.
 */
static enum ndx_status check_cache(struct ofi_adapter *adapter)
{
	struct fid_mr *mr[2] = {NULL, NULL};
	uint64_t key[2] = {0, 0};
	char *memory = calloc(1, 64);
	int err = memory == NULL ? ENOMEM : 0;

	for (size_t i = 0; err == 0 && i < 2; i++) {
		err = -fi_mr_reg(adapter->domain, memory, 64, FI_REMOTE_READ, 0, 0, 0, &mr[i],
		                 NULL);
		if (err == 0)
			key[i] = fi_mr_key(mr[i]);
	}
	for (size_t i = 0; i < 2; i++) {
		if (mr[i] != NULL)
			(void)fi_close(&mr[i]->fid);
	}
	free(memory);
	if (err != 0)
		return fail(ofi_status_of(err), err, "fi_mr_reg: %s; see ulimit -l",
		            fi_strerror(err));
	if (key[0] == key[1])
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "ofi:verbs: libfabric's cache of regions is on, which ignores rights; "
		            "set FI_MR_CACHE_MAX_COUNT=0 before anything uses libfabric");
	return NDX_OK;
}

static void limit(struct ofi_adapter *adapter)
{
	size_t depth = adapter->info->tx_attr->size - CONTROLS;

	if (adapter->info->rx_attr->size - 1 < depth)
		depth = adapter->info->rx_attr->size - 1;
	if (adapter->max_depth > depth)
		adapter->max_depth = (uint32_t)depth;
}

/* 0: libfabric does not know. */
static uint32_t vendor_of(const struct fi_info *info)
{
	const struct fi_device_attr *device = info->nic != NULL ? info->nic->device_attr : NULL;

	if (device == NULL || device->vendor_id == NULL)
		return 0;
	return (uint32_t)strtoul(device->vendor_id, NULL, 0);
}

static enum ndx_status make_padding(struct ofi_adapter *adapter)
{
	int err;

	adapter->padding = calloc(2, NDXP_RC_FIRST_LENGTH);
	if (adapter->padding == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for first messages");
	err = -fi_mr_reg(adapter->domain, adapter->padding, (size_t)2 * NDXP_RC_FIRST_LENGTH,
	                 FI_SEND | FI_RECV, 0, 0, 0, &adapter->padding_mr, NULL);
	if (err != 0)
		return fail(ofi_status_of(err), err, "no region for first messages: fi_mr_reg: %s",
		            fi_strerror(err));
	return NDX_OK;
}

static enum ndx_status check(struct ofi_adapter *adapter)
{
	/* a refusal uses the event queue */
	const int err = -fi_pep_bind(adapter->refuser, &adapter->eq.eq->fid, 0);
	const uint32_t vendor = vendor_of(adapter->info);
	enum ndx_status st;

	limit(adapter);
	adapter->software = (vendor & SOFTWARE_VENDOR) == SOFTWARE_VENDOR;
	adapter->vendor_id = adapter->software ? 0 : vendor;
	if (err != 0)
		return fail(ofi_status_of(err), err, "fi_pep_bind: %s", fi_strerror(err));
	st = make_padding(adapter);
	return st == NDX_OK ? check_cache(adapter) : st;
}

static void describe(const struct ifaddrs *i, struct ndx_adapter_entry *entry)
{
	(void)snprintf(entry->uri, sizeof(entry->uri), "ofi:verbs?iface=%s", i->ifa_name);
	(void)snprintf(entry->device, sizeof(entry->device), "verbs");
	(void)snprintf(entry->interface_name, sizeof(entry->interface_name), "%s", i->ifa_name);
}

struct listing {
	const struct ofi_options *defaults;
	const struct ifaddrs *all;
	bool any; /* an interface is in the list */
	ndx_spi_list_fn *each;
	void *arg;
};

/* List the interface if a device serves it. Only NDX_E_NO_MEMORY is a failure. */
static enum ndx_status list_interface(struct listing *l, const struct ifaddrs *i)
{
	const struct ofi_options options = ofi_options_of_interface(l->defaults, &ofi_verbs, i);
	struct ndx_adapter_entry entry = {.state = NDX_OK};
	struct sockaddr_storage *addresses;
	struct fi_info *info;
	enum ndx_status st;

	ndxp_fail_hold(true); /* an interface without a device is no failure */
	st = ofi_find_addresses_in(l->all, &options, &addresses, &entry.address_count);
	ndxp_fail_hold(false);
	if (st != NDX_OK)
		return st == NDX_E_NO_MEMORY ? st : NDX_OK;
	info = keep_served(addresses, &entry.address_count);
	if (info != NULL) {
		fi_freeinfo(info);
		describe(i, &entry);
		entry.adapter_id = ofi_adapter_id(&options);
		entry.address = addresses[0];
		entry.addresses = addresses;
		l->each(l->arg, &entry);
		l->any = true;
	}
	free(addresses);
	return NDX_OK;
}

static void list_nothing(ndx_spi_list_fn *each, void *arg)
{
	struct ndx_adapter_entry entry = {.uri = "ofi:verbs", .device = "verbs"};

	ndxp_fail_hold(true);
	entry.state = fail_no_device();
	ndxp_fail_hold(false);
	(void)snprintf(entry.hint, sizeof(entry.hint), "%s", ndx_last_error());
	each(arg, &entry);
}

/* One entry for each interface that a device serves, with the addresses that ofi_adapter_open()
 * finds for its URI. */
static enum ndx_status list(const struct ofi_options *defaults, ndx_spi_list_fn *each, void *arg)
{
	struct listing l = {.defaults = defaults, .each = each, .arg = arg};
	struct sockaddr_storage first;
	enum ndx_status st = NDX_OK;
	struct ifaddrs *all;

	if (getifaddrs(&all) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "getifaddrs");
	l.all = all;
	for (const struct ifaddrs *i = all; st == NDX_OK && i != NULL; i = i->ifa_next) {
		if (ofi_begins_interface(all, i, &first))
			st = list_interface(&l, i);
	}
	freeifaddrs(all);
	if (st == NDX_OK && !l.any)
		list_nothing(each, arg);
	return st;
}

/* ---- connection management ---- */

size_t ofi_verbs_cm_encode(const struct ofi_cm *cm, uint8_t *out)
{
	struct ndxp_rc_cm rc = {
		.kind = (enum ndxp_rc_kind)cm->kind,
		.inbound_read_limit = cm->inbound_read_limit,
		.outbound_read_limit = cm->outbound_read_limit,
		.private_len = cm->private_len,
	};

	memcpy(rc.private_data, cm->private_data, cm->private_len);
	return ndxp_rc_cm_encode(&rc, out);
}

const char *ofi_verbs_cm_decode(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
                                struct ofi_cm *cm)
{
	struct ndxp_rc_cm rc;
	const char *wrong = ndxp_rc_cm_decode(data, len, (enum ndxp_rc_kind)kind, &rc);

	if (wrong != NULL)
		return wrong;
	memset(cm, 0, sizeof(*cm));
	cm->kind = kind;
	cm->is_verbs = (rc.flags & NDXP_RC_IS_VERBS) != 0;
	cm->inbound_read_limit = rc.inbound_read_limit;
	cm->outbound_read_limit = rc.outbound_read_limit;
	cm->private_len = rc.private_len;
	memcpy(cm->private_data, rc.private_data, rc.private_len);
	return NULL;
}

static void fit(const struct ofi_qp *qp, struct fi_info *info)
{
	info->tx_attr->size = qp->base.initiator.depth + CONTROLS;
	/* a first message, and a WANT */
	info->rx_attr->size = qp->base.receive.depth + 1 + (qp->taker.srq != NULL);
}

const struct ofi_backend ofi_verbs = {
	.device = "verbs",
	.stack = "ofi:verbs",
	.shared_cq_since = UINT32_MAX, /* each queue has the size for one queue pair */
	.native_keys = true,
	.skips_events = true,
	.one_device = true,
	.one_event_queue = true,
	.backlog = 4096,
	.transmit = FI_TRANSMIT, /* failures of unsignaled requests would be lost */
	.flush_ms = 200,
	.credit_ms = 1,
	.controls = CONTROLS + 2,
	.max_transfer = MAX_TRANSFER,
	.max_caller_data = NDXP_RC_CALLER_DATA,
	.max_callee_data = NDXP_RC_CALLER_DATA,
	.capabilities = NDX_CAP_IN_ORDER_DMA | NDX_CAP_LOOPBACK | NDX_CAP_CQ_RESIZE |
                        NDX_CAP_SEND_IMMEDIATE | NDX_CAP_WRITE_IMMEDIATE |
                        NDX_CAP_REMOTE_ACCESS_STATUS | NDX_CAP_DISCONNECT_REASON | NDX_CAP_SRQ,
	.hint = hint,
	.accept_info = accept_info,
	.choose = choose,
	.prepare = ofi_verbs_turn_off_cache,
	.check = check,
	.list = list,
	.neighbours = true,
	.taken_back = 1,
	.proves = true,
	.verbs_retries = true,
	.asks_late = true,
	.cm_encode = ofi_verbs_cm_encode,
	.cm_decode = ofi_verbs_cm_decode,
	.adapt_info = fit,
	.attached = ofi_verbs_attached,
	.send_ready = ofi_verbs_send_ready,
	.send_reject = ofi_verbs_send_reject,
	.send_ctrl = ofi_verbs_send_ctrl,
	.opened = ofi_verbs_opened,
	.up = ofi_verbs_up,
	.peer_shutdown = ofi_verbs_shut,
	.limit_requests = ofi_verbs_limit_requests,
	.detach = ofi_verbs_detach,
	.submit = ofi_verbs_submit,
	.refresh = ofi_verbs_refresh,
	.peeked = ofi_verbs_peeked,
	.send_credits = ofi_verbs_send_credits,
	.send_want = ofi_verbs_send_want,
	.count_sent = ofi_verbs_count_sent,
	.received = ofi_verbs_received,
	.received_shared = ofi_verbs_received,
	.wanted = ofi_verbs_wanted,
	.want_failed = ofi_verbs_want_failed,
	.first = ofi_verbs_first,
	.error_of = ofi_verbs_error_of,
};
