/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_netif.h"

#include <errno.h>
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

#define RETRY_MS 1000

static void report(struct ofi_adapter *adapter, const struct ofi_netif *netif,
                   enum ndx_adapter_event_type type, const char *what)
{
	char text[sizeof(((struct ndx_adapter_event *)NULL)->text)];

	(void)snprintf(text, sizeof(text), "interface %s %s", netif->name, what);
	ofi_host(adapter)->adapter_event(adapter->spi.front, type,
	                                 (uint32_t)(netif - adapter->netifs.list) + 1, 0, text);
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

/* An interface that was removed is found again by its name. */
static struct ofi_netif *find(const struct ofi_netifs *netifs, unsigned index, const char *name)
{
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

static void take_state(struct ofi_adapter *adapter, struct ofi_netif *netif,
                       const struct ndxp_netif_report *r)
{
	netif->index = r->index;
	if (r->name != NULL)
		(void)snprintf(netif->name, sizeof(netif->name), "%s", r->name);
	set_up(adapter, netif, r->up);
}

/* ---- the present state ---- */

static bool add_address(struct ofi_netif_addresses *to, const struct sockaddr_storage *address)
{
	struct sockaddr_storage *list;

	if (address->ss_family == AF_UNSPEC)
		return true;
	list = realloc(to->list, (to->count + 1) * sizeof(*list));
	if (list == NULL)
		return false;
	list[to->count++] = *address;
	to->list = list;
	return true;
}

static void drop_addresses(struct ofi_netif_addresses *a)
{
	free(a->list);
	*a = (struct ofi_netif_addresses){.list = NULL};
}

static bool same_addresses(const struct ofi_netif_addresses *a, const struct ofi_netif_addresses *b)
{
	return a->count == b->count &&
	       (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof(*a->list)) == 0);
}

struct reading {
	struct ofi_adapter *adapter;
	bool no_memory;
};

static void on_present(void *arg, const struct ndxp_netif_report *r)
{
	struct reading *reading = arg;
	struct ofi_netif *netif = find(&reading->adapter->netifs, r->index, r->name);

	if (netif == NULL)
		return;
	if (r->what == NDXP_NETIF_STATE) {
		netif->found = true;
		take_state(reading->adapter, netif, r);
	} else if (r->what == NDXP_NETIF_ADDRESS) {
		reading->no_memory =
			!add_address(&netif->found_addresses, &r->address) || reading->no_memory;
	}
}

/* One reading. `*removed`: an interface is gone; another one may have its name. */
static bool read_present(struct ofi_adapter *adapter, bool *removed)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	struct reading reading = {.adapter = adapter};
	bool done;

	for (size_t i = 0; i < netifs->count; i++) {
		netifs->list[i].found = false;
		drop_addresses(&netifs->list[i].found_addresses);
	}
	done = ndxp_netif_list(on_present, &reading);
	if (done && reading.no_memory) {
		errno = ENOMEM;
		done = false;
	}
	for (size_t i = 0; done && i < netifs->count; i++) {
		if (netifs->list[i].found || netifs->list[i].index == 0)
			continue;
		set_removed(adapter, &netifs->list[i]);
		*removed = true;
	}
	return done;
}

static void take_addresses(struct ofi_adapter *adapter, struct ofi_netif *netif)
{
	const bool same = same_addresses(&netif->addresses, &netif->found_addresses);

	drop_addresses(&netif->addresses);
	netif->addresses = netif->found_addresses;
	netif->found_addresses = (struct ofi_netif_addresses){.list = NULL};
	if (!same)
		report(adapter, netif, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "has other addresses");
}

bool ofi_netifs_compare(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	bool removed = false;

	if (!read_present(adapter, &removed) || (removed && !read_present(adapter, &removed))) {
		if (!netifs->failing)
			log_warn(errno,
			         "events of interfaces: the list of links and addresses could "
			         "not be read: %s; the adapter tries again every second, see "
			         "ulimit -n",
			         strerror(errno));
		netifs->failing = true;
		return false;
	}
	netifs->failing = false;
	for (size_t i = 0; i < netifs->count; i++)
		take_addresses(adapter, &netifs->list[i]);
	return true;
}

/* ---- events of the kernel ---- */

void ofi_netifs_event(void *arg, const struct ndxp_netif_report *r)
{
	struct ofi_adapter *adapter = arg;
	struct ofi_netif *netif = find(&adapter->netifs, r->index, r->name);

	if (netif == NULL)
		return;
	switch (r->what) {
	case NDXP_NETIF_REMOVED:
		if (netif->index != 0)
			set_removed(adapter, netif);
		break;
	case NDXP_NETIF_STATE:
		take_state(adapter, netif, r);
		break;
	case NDXP_NETIF_ADDRESS:
		/* The kernel repeats addresses whose lifetime was renewed, and many may come at
		 * once: look at all of them when there are no more messages. */
		adapter->netifs.compare = true;
		break;
	}
}

static void compare_if_needed(void *arg)
{
	struct ofi_adapter *adapter = arg;
	struct ofi_netifs *netifs = &adapter->netifs;

	if (!netifs->compare)
		return;
	netifs->compare = !ofi_netifs_compare(adapter);
	if (netifs->compare)
		ndxp_timer_set(adapter->spi.loop, &netifs->retry, RETRY_MS);
}

static void on_readable(void *arg, uint32_t events)
{
	struct ofi_adapter *adapter = arg;
	struct ofi_netifs *netifs = &adapter->netifs;

	(void)events;
	if (ndxp_netif_read(netifs->watch.fd, ofi_netifs_event, adapter, &netifs->compare))
		compare_if_needed(adapter);
}

/* ---- opening and closing ---- */

/* As ofi_check_own(), but link-local addresses of two interfaces may be equal, those of a VLAN and
 * of the card below for example. */
static bool is_own(const struct ofi_adapter *adapter, const struct sockaddr_storage *address)
{
	for (size_t i = 0; i < adapter->address_count; i++) {
		const struct sockaddr_storage *own = &adapter->addresses[i];

		if (ndxp_sockaddr_same_host(own, address) &&
		    (own->ss_family != AF_INET6 ||
		     ((const struct sockaddr_in6 *)(const void *)own)->sin6_scope_id ==
		             ((const struct sockaddr_in6 *)(const void *)address)->sin6_scope_id))
			return true;
	}
	return false;
}

struct opening {
	struct ofi_adapter *adapter;
	bool no_memory;
};

/* The interfaces that have the adapter's addresses join the list, in the order of the addresses. */
static void on_own_address(void *arg, const struct ndxp_netif_report *r)
{
	struct opening *o = arg;
	struct ofi_netifs *netifs = &o->adapter->netifs;
	struct ofi_netif *list;

	if (r->what != NDXP_NETIF_ADDRESS || !is_own(o->adapter, &r->address) ||
	    find(netifs, r->index, NULL) != NULL)
		return;
	list = realloc(netifs->list, (netifs->count + 1) * sizeof(*list));
	if (list == NULL) {
		o->no_memory = true;
		return;
	}
	list[netifs->count++] = (struct ofi_netif){.index = r->index};
	netifs->list = list;
}

static void on_first_state(void *arg, const struct ndxp_netif_report *r)
{
	struct opening *o = arg;
	struct ofi_netif *netif = find(&o->adapter->netifs, r->index, NULL);

	if (netif == NULL)
		return;
	if (r->what == NDXP_NETIF_STATE) {
		(void)snprintf(netif->name, sizeof(netif->name), "%s",
		               r->name != NULL ? r->name : "?");
		netif->up = r->up;
	} else if (r->what == NDXP_NETIF_ADDRESS) {
		o->no_memory = !add_address(&netif->addresses, &r->address) || o->no_memory;
	}
}

/* False with errno. */
static bool find_all(struct ofi_adapter *adapter)
{
	struct opening o = {.adapter = adapter};

	if (!ndxp_netif_list(on_own_address, &o) || !ndxp_netif_list(on_first_state, &o))
		return false;
	if (o.no_memory)
		errno = ENOMEM;
	return !o.no_memory;
}

/* A sandbox may refuse such sockets; the adapter then lacks the capability. */
static enum ndx_status no_events(const char *what, int err)
{
	const enum ndx_status st = ofi_status_of(err);

	if (st == NDX_E_INSUFFICIENT_RESOURCES || st == NDX_E_NO_MEMORY)
		return fail(st, err, "events of interfaces: %s: %s; see ulimit -n", what,
		            strerror(err));
	log_info("no events of interfaces here: %s: %s", what, strerror(err));
	return NDX_OK;
}

static void free_list(struct ofi_netifs *netifs)
{
	for (size_t i = 0; i < netifs->count; i++) {
		drop_addresses(&netifs->list[i].addresses);
		drop_addresses(&netifs->list[i].found_addresses);
	}
	free(netifs->list);
	netifs->list = NULL;
	netifs->count = 0;
}

enum ndx_status ofi_netifs_open(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;
	enum ndx_status st;
	int err;

	/* First the socket, then the state: a change in between is in both. */
	netifs->retry = (struct ndxp_timer){.fn = compare_if_needed, .arg = adapter};
	netifs->watch =
		(struct ndxp_watch){.fd = ndxp_netif_open(), .fn = on_readable, .arg = adapter};
	if (netifs->watch.fd < 0)
		return no_events("a socket for rtnetlink", errno);
	if (!find_all(adapter)) {
		err = errno;
		free_list(netifs);
		ndxp_fd_close(netifs->watch.fd);
		netifs->watch.fd = -1;
		return no_events("the list of interfaces", err);
	}
	if (netifs->count == 0)
		log_warn(0,
		         "no interface has an address of the adapter any more: it has no events");
	st = ndxp_watch_add(adapter->spi.loop, &netifs->watch, POLLIN, false);
	if (st != NDX_OK) {
		free_list(netifs);
		ndxp_fd_close(netifs->watch.fd);
	}
	return st;
}

void ofi_netifs_close(struct ofi_adapter *adapter)
{
	struct ofi_netifs *netifs = &adapter->netifs;

	if (netifs->watch.fd < 0)
		return;
	ndxp_watch_remove(adapter->spi.loop, &netifs->watch);
	ndxp_timer_cancel(adapter->spi.loop, &netifs->retry);
	ndxp_fd_close(netifs->watch.fd);
	free_list(netifs);
}
