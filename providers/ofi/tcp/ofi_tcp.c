/* SPDX-License-Identifier: BSD-2-Clause */
/* The back end for libfabric's tcp provider: its table, and the functions that only it has. */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi_tcp.h"

/* ---- opening ---- */

static void hint(struct fi_info *hints)
{
	/* on this order rests what an acknowledgement means (docs/design/ofi-tcp.md) */
	const uint64_t order = FI_ORDER_SAS | FI_ORDER_WAS | FI_ORDER_RAS;

	hints->tx_attr->msg_order = order;
	hints->rx_attr->msg_order = order;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	hints->rx_attr->size = OFI_MAX_DEPTH; /* the default is 256 */
}

static bool accept_info(struct fi_info *info)
{
	/* By itself the provider offers mr_mode 0: offsets. Asked for addresses it uses them, and
	 * keys that NDX chooses. */
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
	       info->rx_attr->size >= OFI_MAX_DEPTH;
}

/* A call without flags has those of the endpoint: none, so messages end without a completion. */
static void adapt_info(const struct ofi_qp *qp, struct fi_info *info)
{
	(void)qp;
	info->tx_attr->op_flags = 0;
}

/* Every interface is reachable from the first one's description. */
static enum ndx_status choose(const struct ofi_options *options, struct sockaddr_storage *list,
                              size_t *count, struct fi_info **info)
{
	(void)count;
	return ofi_get_info(options->backend, &list[0], info);
}

static void describe(const struct ifaddrs *i, bool loopback, struct ndx_adapter_entry *entry)
{
	(void)snprintf(entry->uri, sizeof(entry->uri), "ofi:tcp?iface=%s%s", i->ifa_name,
	               loopback ? "" : "&trust=lan");
	(void)snprintf(entry->device, sizeof(entry->device), "tcp");
	(void)snprintf(entry->interface_name, sizeof(entry->interface_name), "%s", i->ifa_name);
}

/* Set what the interface lacks, unless all of them lack something. */
static void describe_state(enum ndx_status state, bool trusted, struct ndx_adapter_entry *entry)
{
	if (entry->state != NDX_OK)
		return;
	entry->state = state;
	if (state != NDX_OK) {
		(void)snprintf(entry->hint, sizeof(entry->hint), "%s", ndx_last_error());
	} else if (!trusted) {
		entry->state = NDX_E_DEVICE_NOT_READY;
		(void)snprintf(
			entry->hint, sizeof(entry->hint),
			"not chosen by itself: this URI works, but its trust=lan is your decision, "
			"because libfabric's tcp provider trusts what peers send");
	}
}

struct listing {
	const struct ofi_options *defaults;
	const struct ifaddrs *all;
	struct ndx_adapter_entry common; /* state and hint of all entries */
	ndx_spi_list_fn *each;
	void *arg;
};

/* Only NDX_E_NO_MEMORY is a failure. */
static enum ndx_status list_interface(const struct listing *l, const struct ifaddrs *i,
                                      bool loopback)
{
	const struct ofi_options options = ofi_options_of_interface(l->defaults, &ofi_tcp, i);
	struct ndx_adapter_entry entry = l->common;
	struct sockaddr_storage *addresses = NULL;
	enum ndx_status st;

	ndxp_fail_hold(true); /* an adapter that cannot be used is no failure of the list */
	st = ofi_find_addresses_in(l->all, &options, &addresses, &entry.address_count);
	ndxp_fail_hold(false);
	if (st == NDX_E_NO_MEMORY)
		return st;
	describe(i, loopback, &entry);
	entry.adapter_id = ofi_adapter_id(&options);
	describe_state(st, loopback || options.lan, &entry);
	if (st == NDX_OK)
		entry.address = addresses[0];
	entry.addresses = addresses;
	l->each(l->arg, &entry);
	free(addresses);
	return NDX_OK;
}

static void ask_libfabric(struct ndx_adapter_entry *common)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in *loopback = (struct sockaddr_in *)(void *)&address;
	struct fi_info *info = NULL;

	loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	common->state = ofi_get_info(&ofi_tcp, &address, &info);
	if (common->state == NDX_OK)
		fi_freeinfo(info);
	else
		(void)snprintf(common->hint, sizeof(common->hint), "%s", ndx_last_error());
}

/* One entry for each interface, with the addresses that ofi_adapter_open() finds for its URI. */
static enum ndx_status list(const struct ofi_options *defaults, ndx_spi_list_fn *each, void *arg)
{
	struct listing l = {.defaults = defaults, .each = each, .arg = arg};
	struct sockaddr_storage first;
	enum ndx_status st = NDX_OK;
	struct ifaddrs *all;

	ask_libfabric(&l.common);
	if (getifaddrs(&all) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "getifaddrs");
	l.all = all;
	for (int pass = 0; pass < 2; pass++) {
		for (const struct ifaddrs *i = all; st == NDX_OK && i != NULL; i = i->ifa_next) {
			if (ofi_begins_interface(all, i, &first) &&
			    ndxp_sockaddr_is_loopback(&first) == (pass == 0))
				st = list_interface(&l, i, pass == 0);
		}
	}
	freeifaddrs(all);
	return st;
}

/* ---- control messages ---- */

static int send_ctrl(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op)
{
	const struct iovec nothing = {0};

	return ofi_link_send_record(link, type, count, op, 0, &nothing);
}

static int send_ready(struct ofi_link *link)
{
	return send_ctrl(link, OFI_CTRL_READY, 0, &link->ready_op);
}

static int send_reject(struct ofi_link *link, const void *data, size_t len)
{
	const struct iovec local = {.iov_base = link->refusal, .iov_len = len};
	const struct fi_rma_iov remote = {
		.addr = link->peer.address, .len = len, .key = link->peer.key};
	const struct fi_msg_rma msg = {
		.msg_iov = &local,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &link->adapter->silent,
	};
	int err = 0;

	if (len > 0) {
		memcpy(link->refusal, data, len);
		err = -(int)fi_writemsg(link->ep, &msg, 0);
	}
	return err != 0 ? err : send_ctrl(link, OFI_CTRL_REJECT, (uint16_t)len, &link->reject_op);
}

/* ---- the end ---- */

/* No other message of this end follows. */
static void send_last_acknowledgement(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	ndxp_lock_acquire(&link->ncq->lock);
	ndxp_lock_acquire(&qp->base.lock);
	if (!link->lost && ofi_acks_owed(qp) > 0 &&
	    ofi_link_send_ctrl(link, OFI_CTRL_CREDIT, 0, &link->adapter->silent) == 0)
		ofi_ack_told(qp);
	ndxp_lock_release(&qp->base.lock);
	ndxp_lock_release(&link->ncq->lock);
}

static enum ndx_status detach(struct ofi_link *link)
{
	const enum ndx_status st = ofi_link_release_later(link);

	if (st == NDX_PENDING)
		return st;
	if (st != NDX_OK)
		return fail(st, 0, "a message is arriving, so its receive cannot be canceled");
	send_last_acknowledgement(link);
	ofi_link_detach(link);
	ofi_liveness_await_goodbye(link);
	return NDX_OK;
}

/* ---- data ---- */

const struct ofi_backend ofi_tcp = {
	.device = "tcp",
	.stack = "ofi:tcp",
	/* libfabric to 1.17 frees a read twice that a local shutdown cuts off, into the pool of its
         * completion queue. That corrupts the operations of all endpoints of the queue. */
	.shared_cq_since = FI_VERSION(1, 18),
	.needs_trust = true,
	.over_tcp = true,
	.answers_late = true,
	.solicited = true,
	.windows = true,
	.tells_sizes = true,
	.tells_always = true,
	.transmit = FI_TRANSMIT | FI_SELECTIVE_COMPLETION, /* credits need no completion */
	.max_transfer = OFI_MAX_TRANSFER,
	.max_caller_data = OFI_CM_PRIVATE,
	.max_callee_data = OFI_CM_PRIVATE,
	/* Not IN_ORDER_DMA: libfabric copies what its receive buffer holds by memcpy(), which may
         * store the first bytes last. */
	.capabilities = NDX_CAP_LOOPBACK | NDX_CAP_CQ_RESIZE | NDX_CAP_NOTIFY_SOLICITED |
                        NDX_CAP_MEMORY_WINDOW | NDX_CAP_SEND_IMMEDIATE | NDX_CAP_WRITE_IMMEDIATE |
                        NDX_CAP_REMOTE_ACCESS_STATUS | NDX_CAP_DISCONNECT_REASON | NDX_CAP_SRQ,
	.hint = hint,
	.accept_info = accept_info,
	.choose = choose,
	.list = list,
	.cm_encode = ofi_cm_encode,
	.cm_decode = ofi_cm_decode,
	.adapt_info = adapt_info,
	.send_ready = send_ready,
	.send_reject = send_reject,
	.send_ctrl = send_ctrl,
	.opened = ofi_link_opened,
	.peer_shutdown = ofi_link_cut,
	.detach = detach,
	.submit = ofi_tcp_submit,
	.send_credits = ofi_tcp_send_credits,
	.send_want = ofi_tcp_send_want,
	.count_sent = ofi_tcp_count_sent,
	.received = ofi_tcp_received,
	.received_shared = ofi_tcp_received_shared,
	.error_of = ofi_tcp_error_of,
};
