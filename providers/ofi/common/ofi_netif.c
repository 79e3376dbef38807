/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_netif.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/netif.h>
#include <ndx/spi/sockaddr.h>
#include <ndx/spi/system.h>
#include "ofi.h"

static void report(struct ofi_adapter *adapter, const struct ofi_netif *netif,
                   enum ndx_adapter_event_type type, const char *what)
{
	char text[sizeof(((struct ndx_adapter_event *)NULL)->text)];

	(void)snprintf(text, sizeof(text), "interface %s %s", netif->name, what);
	ofi_host(adapter)->adapter_event(adapter->spi.front, type,
	                                 (uint32_t)(netif - adapter->netifs.list) + 1, 0, text);
}

/* ---- the present state, by getifaddrs() ---- */

static bool is_up(unsigned flags)
{
	return (flags & IFF_UP) && (flags & IFF_RUNNING);
}

/* getifaddrs() has the label of an IPv4 address where it has one, for example "eth0:1". The name of
 * an interface has no colon. */
static size_t name_length(const struct ifaddrs *i)
{
	return strcspn(i->ifa_name, ":");
}

static bool is_of(const struct ifaddrs *i, const struct ofi_netif *netif)
{
	return strlen(netif->name) == name_length(i) &&
	       strncmp(i->ifa_name, netif->name, name_length(i)) == 0;
}

/* The addresses that getifaddrs() has for the interface replace those known. True: others than
 * before. */
static bool take_addresses(struct ofi_netif *netif, const struct ifaddrs *all)
{
	struct sockaddr_storage *list;
	size_t count = 0;
	bool changed;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		count++;
	list = calloc(count + 1, sizeof(*list));
	if (list == NULL)
		return true; /* rather an event too many than one too few */
	count = 0;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr != NULL && is_of(i, netif) &&
		    ndxp_sockaddr_valid(i->ifa_addr, sizeof(struct sockaddr_in6)))
			ndxp_sockaddr_copy(&list[count++], i->ifa_addr,
			                   sizeof(struct sockaddr_in6));
	}
	changed = count != netif->address_count ||
	          (count > 0 && memcmp(list, netif->addresses, count * sizeof(*list)) != 0);
	free(netif->addresses);
	netif->addresses = list;
	netif->address_count = count;
	return changed;
}

static void look_at_addresses(struct ofi_adapter *adapter, struct ofi_netif *netif)
{
	struct ifaddrs *all;

	if (getifaddrs(&all) != 0)
		return;
	if (take_addresses(netif, all))
		report(adapter, netif, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "has other addresses");
	freeifaddrs(all);
}

static void set_up(struct ofi_adapter *adapter, struct ofi_netif *netif, bool up)
{
	if (netif->up == up)
		return;
	netif->up = up;
	if (up)
		report(adapter, netif, NDX_ADAPTER_EVENT_PORT_UP, "is up");
	else
		report(adapter, netif, NDX_ADAPTER_EVENT_PORT_DOWN, "is down");
}

static void set_removed(struct ofi_adapter *adapter, struct ofi_netif *netif)
{
	netif->index = 0;
	netif->up = false;
	report(adapter, netif, NDX_ADAPTER_EVENT_PORT_DOWN, "was removed");
}

/* The kernel has dropped messages, and the rest was read: compare what is known with what is. */
static void look_at_all(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	struct ifaddrs *all;

	if (getifaddrs(&all) != 0)
		return;
	for (size_t n = 0; n < netifs->count; n++) {
		struct ofi_netif *netif = &netifs->list[n];
		const unsigned index = if_nametoindex(netif->name);
		bool up = false;

		for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
			up = up || (is_of(i, netif) && is_up(i->ifa_flags));
		if (index == 0 && netif->index != 0)
			set_removed(adapter, netif);
		netif->index = index;
		set_up(adapter, netif, up);
		if (take_addresses(netif, all))
			report(adapter, netif, NDX_ADAPTER_EVENT_ADDRESS_CHANGE,
			       "has other addresses");
	}
	freeifaddrs(all);
}

/* ---- reports of the kernel ---- */

/* An interface that was removed is found again by its name. */
static struct ofi_netif *find(struct ofi_adapter *adapter, unsigned index, const char *name)
{
	struct ofi_netifs *netifs = &adapter->netifs;

	for (size_t i = 0; i < netifs->count; i++) {
		if (netifs->list[i].index == index)
			return &netifs->list[i];
	}
	for (size_t i = 0; i < netifs->count; i++) {
		if (netifs->list[i].index == 0 && name != NULL &&
		    strcmp(netifs->list[i].name, name) == 0)
			return &netifs->list[i];
	}
	return NULL;
}

void ofi_netifs_report(void *arg, const struct ndxp_netif_report *r)
{
	struct ofi_adapter *adapter = arg;
	struct ofi_netif *netif = find(adapter, r->index, r->name);

	if (netif == NULL)
		return;
	switch (r->what) {
	case NDXP_NETIF_REMOVED:
		if (netif->index != 0)
			set_removed(adapter, netif);
		break;
	case NDXP_NETIF_STATE:
		netif->index = r->index;
		if (r->name != NULL)
			(void)snprintf(netif->name, sizeof(netif->name), "%s", r->name);
		set_up(adapter, netif, r->up);
		break;
	case NDXP_NETIF_ADDRESSES:
		/* The kernel repeats addresses whose lifetime was renewed. */
		look_at_addresses(adapter, netif);
		break;
	}
}

static void on_readable(void *arg, uint32_t events)
{
	struct ofi_adapter *adapter = arg;
	struct ofi_netifs *netifs = &adapter->netifs;

	(void)events;
	/* The kernel reports first that it dropped messages, then come the older ones. */
	if (!ndxp_netif_read(netifs->watch.fd, ofi_netifs_report, adapter, &netifs->overrun))
		return;
	if (netifs->overrun)
		look_at_all(adapter);
	netifs->overrun = false;
}

/* ---- opening and closing ---- */

static bool has_address(const struct ofi_adapter *adapter, const struct ifaddrs *i)
{
	struct sockaddr_storage address;

	return ofi_usable_address(i, &address) && ofi_is_own(adapter, &address);
}

/* An interface of getifaddrs() joins the list, unless it is there. */
static void add(struct ofi_netifs *netifs, const struct ifaddrs *i, const struct ifaddrs *all)
{
	struct ofi_netif *netif = &netifs->list[netifs->count];

	for (size_t n = 0; n < netifs->count; n++) {
		if (is_of(i, &netifs->list[n]))
			return;
	}
	(void)snprintf(netif->name, sizeof(netif->name), "%.*s", (int)name_length(i), i->ifa_name);
	netif->index = if_nametoindex(netif->name);
	netif->up = is_up(i->ifa_flags);
	(void)take_addresses(netif, all);
	netifs->count++;
}

static enum ndx_status find_all(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	struct ifaddrs *all;
	size_t room = 0;

	if (getifaddrs(&all) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "getifaddrs");
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		room++;
	netifs->list = calloc(room + 1, sizeof(*netifs->list));
	for (const struct ifaddrs *i = all; i != NULL && netifs->list != NULL; i = i->ifa_next) {
		if (has_address(adapter, i))
			add(netifs, i, all);
	}
	freeifaddrs(all);
	return netifs->list != NULL
	               ? NDX_OK
	               : fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a list of interfaces");
}

static void free_list(struct ofi_netifs *netifs)
{
	for (size_t i = 0; i < netifs->count; i++)
		free(netifs->list[i].addresses);
	free(netifs->list);
}

enum ndx_status ofi_netifs_open(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	enum ndx_status st;
	int err;

	/* First the socket, then the state: a change in between is in both. */
	netifs->watch =
		(struct ndxp_watch){.fd = ndxp_netif_open(), .fn = on_readable, .arg = adapter};
	if (netifs->watch.fd < 0) {
		err = errno;
		st = ofi_status_of(err);
		if (st == NDX_E_INSUFFICIENT_RESOURCES || st == NDX_E_NO_MEMORY)
			return fail(st, err,
			            "socket for events of the interfaces: %s; see ulimit -n",
			            strerror(err));
		log_info("no events of interfaces here: a socket for rtnetlink: %s", strerror(err));
		return NDX_OK;
	}
	st = find_all(adapter);
	if (st != NDX_OK)
		goto close_socket;
	st = ndxp_watch_add(adapter->spi.loop, &netifs->watch, POLLIN, false);
	if (st != NDX_OK)
		goto free_list;
	return NDX_OK;

free_list:
	free_list(netifs);
close_socket:
	ndxp_fd_close(netifs->watch.fd);
	return st;
}

void ofi_netifs_close(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;

	if (netifs->watch.fd < 0)
		return;
	ndxp_watch_remove(adapter->spi.loop, &netifs->watch);
	ndxp_fd_close(netifs->watch.fd);
	free_list(netifs);
}
