/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"

#define API FI_VERSION(1, 17)

void raw_must(const char *call, ssize_t err)
{
	if (err < 0)
		lane_die(call, fi_strerror((int)-err));
}

static struct fi_info *get_info(const char *device, const struct sockaddr *address, socklen_t len,
                                uint64_t flags)
{
	char node[NI_MAXHOST];
	char port[NI_MAXSERV];
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = NULL;

	if (hints == NULL)
		lane_die("no memory", "to ask libfabric");
	if (getnameinfo(address, len, node, sizeof(node), port, sizeof(port),
	                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		lane_die("getnameinfo", "an address cannot be written down");
	/* As NDX asks. */
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->fabric_attr->prov_name = strdup(device);
	raw_must("fi_getinfo", fi_getinfo(API, node, port, flags | FI_NUMERICHOST, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void open_fabric(struct raw_node *node, struct fi_info *info)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};

	node->inject_size = info->tx_attr->inject_size;
	raw_must("fi_fabric", fi_fabric(info->fabric_attr, &node->fabric, NULL));
	raw_must("fi_eq_open", fi_eq_open(node->fabric, &attr, &node->eq, NULL));
	raw_must("fi_domain", fi_domain(node->fabric, info, &node->domain, NULL));
}

static void open_endpoint(struct raw_node *node, struct fi_info *info)
{
	struct fi_cq_attr attr = {
		.size = 1024, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};

	raw_must("fi_cq_open", fi_cq_open(node->domain, &attr, &node->cq, NULL));
	raw_must("fi_endpoint", fi_endpoint(node->domain, info, &node->ep, NULL));
	raw_must("fi_ep_bind", fi_ep_bind(node->ep, &node->eq->fid, 0));
	raw_must("fi_ep_bind",
	         fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	raw_must("fi_ep_bind", fi_ep_bind(node->ep, &node->cq->fid, FI_RECV));
	raw_must("fi_enable", fi_enable(node->ep));
}

/* Read one event; 0 if there is none. */
static uint32_t read_event(struct raw_node *node, struct fi_info **info)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_cm_entry entry = {0};
	uint32_t event = 0;
	ssize_t n = fi_eq_read(node->eq, &event, &entry, sizeof(entry), 0);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_eq_readerr(node->eq, &err, 0) > 0)
		n = -err.err;
	raw_must("connecting", n);
	if (event == FI_CONNREQ)
		*info = entry.info;
	return event;
}

static void handshake(struct raw_node *active, struct raw_node *passive)
{
	struct fi_info *info = NULL;
	int connected = 0;

	while (connected < 2) {
		connected += read_event(active, &info) == FI_CONNECTED;
		switch (read_event(passive, &info)) {
		case FI_CONNREQ:
			open_endpoint(passive, info);
			fi_freeinfo(info);
			raw_must("fi_accept", fi_accept(passive->ep, NULL, 0));
			break;
		case FI_CONNECTED:
			connected++;
			break;
		default:
			break;
		}
	}
}

void raw_connect(struct raw_node *active, struct raw_node *passive, const char *device,
                 const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_storage name;
	size_t name_len = sizeof(name);
	struct fi_info *info = get_info(device, address, len, FI_SOURCE);

	open_fabric(passive, info);
	raw_must("fi_passive_ep", fi_passive_ep(passive->fabric, info, &passive->pep, NULL));
	raw_must("fi_pep_bind", fi_pep_bind(passive->pep, &passive->eq->fid, 0));
	raw_must("fi_listen", fi_listen(passive->pep));
	raw_must("fi_getname", fi_getname(&passive->pep->fid, &name, &name_len));
	fi_freeinfo(info);
	info = get_info(device, (struct sockaddr *)&name, (socklen_t)name_len, 0);
	open_fabric(active, info);
	open_endpoint(active, info);
	raw_must("fi_connect", fi_connect(active->ep, info->dest_addr, NULL, 0));
	handshake(active, passive);
	fi_freeinfo(info);
}

void raw_close(struct raw_node *node)
{
	raw_must("fi_close of an endpoint", fi_close(&node->ep->fid));
	if (node->pep != NULL)
		raw_must("fi_close of a listener", fi_close(&node->pep->fid));
	raw_must("fi_close of a queue", fi_close(&node->cq->fid));
	raw_must("fi_close of a domain", fi_close(&node->domain->fid));
	raw_must("fi_close of a queue", fi_close(&node->eq->fid));
	raw_must("fi_close of a fabric", fi_close(&node->fabric->fid));
}
