/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the adapter that reaches an address: the kernel's route, then the adapter of its local
 * end. And the adapter that the user chose. */
#include <ndx/adapter.h>

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "list.h"
#include "base_thread.h"
#include "select.h"

#define DISCARD_PORT 9 /* any but 0; no packet is sent */

static enum ndx_status status_of(int error)
{
	switch (error) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL: /* no local address of the family */
	case EAFNOSUPPORT:
	case ENETDOWN:
		return NDX_E_NETWORK_UNREACHABLE;
	case EINVAL: /* link-local without scope */
	case EACCES: /* broadcast */
		return NDX_E_INVALID_PARAMETER;
	case ENODEV:
		return NDX_E_NETWORK_UNREACHABLE;
	case EMFILE:
	case ENFILE:
		return NDX_E_INSUFFICIENT_RESOURCES;
	case ENOMEM:
	case ENOBUFS:
		return NDX_E_NO_MEMORY;
	default:
		return NDX_E_UNSUCCESSFUL;
	}
}

/* Query the kernel's route by connecting a datagram socket, which sends nothing. */
static enum ndx_status find_local(const struct sockaddr_storage *remote,
                                  struct sockaddr_storage *local)
{
	char text[NDXP_SOCKADDR_TEXT];
	socklen_t len = sizeof(*local);
	int error = 0;
	const int fd = socket(remote->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(local, 0, sizeof(*local));
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)remote, ndxp_sockaddr_len(remote)) != 0 ||
	    getsockname(fd, (struct sockaddr *)local, &len) != 0)
		error = errno;
	if (fd >= 0)
		(void)close(fd);
	if (error != 0)
		return fail(status_of(error), error,
		            "ndx_resolve: no way to %s; see what \"ip route get\" says to it",
		            ndxp_sockaddr_text(remote, text));
	ndxp_sockaddr_set_port(local, 0);
	return NDX_OK;
}

/* The name of the interface with this address; "" if none. */
static void find_interface(const struct sockaddr_storage *address, char *name, size_t size)
{
	struct sockaddr_storage own;
	struct ifaddrs *all;

	name[0] = '\0';
	if (getifaddrs(&all) != 0)
		return;
	for (const struct ifaddrs *i = all; i != NULL && name[0] == '\0'; i = i->ifa_next) {
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != address->ss_family)
			continue;
		ndxp_sockaddr_copy(&own, i->ifa_addr, sizeof(own));
		/* An address with a label, like "eth0:1", is on the same interface. */
		if (ndxp_sockaddr_same_host(&own, address))
			(void)snprintf(name, size, "%.*s", (int)strcspn(i->ifa_name, ":"),
			               i->ifa_name);
	}
	freeifaddrs(all);
}

struct wanted {
	struct sockaddr_storage local;
	char interface_name[32]; /* for messages */
};

/* 0 where the scope does not matter. */
static uint32_t scope_of(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;

	if (address->ss_family != AF_INET6)
		return 0;
	memcpy(&v6, address, sizeof(v6));
	return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) ? v6.sin6_scope_id : 0;
}

/* Two interfaces may have equal link-local addresses. */
static bool has(const struct sockaddr_storage *addresses, size_t count, const struct wanted *w)
{
	for (size_t i = 0; i < count; i++) {
		if (ndxp_sockaddr_same_host(&addresses[i], &w->local) &&
		    scope_of(&addresses[i]) == scope_of(&w->local))
			return true;
	}
	return false;
}

static bool serves(const struct ndx_adapter_entry *e, const struct wanted *w)
{
	return has(e->addresses, e->address_count, w);
}

/* Whether entry `a` is better than `b`: usable ones first, then in the order of the automatic
 * choice. */
static bool is_better(const struct listing *l, size_t a, size_t b)
{
	if ((l->entries[a].state == NDX_OK) != (l->entries[b].state == NDX_OK))
		return l->entries[a].state == NDX_OK;
	if (l->ranks[a] != l->ranks[b])
		return l->ranks[a] > l->ranks[b];
	return strcmp(l->entries[a].provider, l->entries[b].provider) < 0;
}

/* The index of the best entry that serves the address; `count` if none does. */
static size_t find_entry(const struct listing *l, const struct wanted *w)
{
	size_t best = l->count;

	for (size_t i = 0; i < l->count; i++) {
		if (serves(&l->entries[i], w) && (best == l->count || is_better(l, i, best)))
			best = i;
	}
	return best;
}

static enum ndx_status fail_address(const struct wanted *w, const struct ndx_adapter_entry *found,
                                    size_t count)
{
	char text[NDXP_SOCKADDR_TEXT];
	const char *local = ndxp_sockaddr_text(&w->local, text);

	if (found != NULL)
		return fail(
			NDX_E_INVALID_ADDRESS, 0,
			"ndx_resolve: local address %s on interface \"%s\" is that of %s, which "
			"cannot be used: %s",
			local, w->interface_name, found->uri, found->hint);
	return fail(NDX_E_INVALID_ADDRESS, 0,
	            "ndx_resolve: local address %s on interface \"%s\" is that of none of %zu "
	            "adapters; ndx-info shows them and what they lack",
	            local, w->interface_name, count);
}

static enum ndx_status check_uri_room(const char *call, const char *uri, const size_t *uri_size)
{
	if (uri_size == NULL || (uri == NULL && *uri_size > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: uri or its size is NULL; pass a buffer and its size", call);
	return NDX_OK;
}

static enum ndx_status give_uri(const char *call, const char *found, char *uri, size_t *uri_size)
{
	const size_t room = *uri_size;

	*uri_size = strlen(found) + 1;
	if (*uri_size > room)
		return ndxp_fail_room(call, "bytes of the URI", *uri_size, room);
	memcpy(uri, found, *uri_size);
	return NDX_OK;
}

static bool opened_serves(const char *named, const struct wanted *w)
{
	struct sockaddr_storage *addresses;
	struct ndx_adapter *adapter;
	size_t count = 0;
	bool serves = false;

	if (ndx_adapter_open(named, &adapter) != NDX_OK)
		return false; /* the error was logged; another adapter may serve */
	(void)ndx_adapter_query_addresses(adapter, NULL, &count);
	addresses = calloc(count + 1, sizeof(*addresses));
	if (addresses != NULL && ndx_adapter_query_addresses(adapter, addresses, &count) == NDX_OK)
		serves = has(addresses, count, w);
	free(addresses);
	ndx_adapter_close(adapter);
	return serves;
}

/* Whether the named adapter has this local address. The list of its provider says so if it has the
 * very URI; a URI with other keys may mean other addresses, so open and query that adapter. */
static bool named_serves(const char *named, const struct wanted *w)
{
	const struct ndx_adapter_entry *found = NULL;
	struct listing listing = {0};
	sigset_t before;
	bool yes;

	base_signals_block(&before); /* as in ndx_adapter_list() */
	list_provider_of(named, &listing);
	base_signals_restore(&before);
	for (size_t i = 0; i < listing.count && found == NULL; i++) {
		if (listing.entries[i].state == NDX_OK &&
		    strcmp(listing.entries[i].uri, named) == 0)
			found = &listing.entries[i];
	}
	yes = found != NULL ? serves(found, w) : opened_serves(named, w);
	list_clear(&listing);
	return yes;
}

static enum ndx_status find_uri(const struct wanted *w, char *uri, size_t *uri_size)
{
	const struct ndx_adapter_entry *found;
	struct listing all = {0};
	sigset_t before;
	size_t best;
	char *named;
	enum ndx_status st = select_named(&named);

	if (st != NDX_OK)
		return st;
	if (named != NULL && named_serves(named, w)) {
		st = give_uri("ndx_resolve", named, uri, uri_size);
		free(named);
		return st;
	}
	free(named);
	/* As in ndx_adapter_list(). */
	base_signals_block(&before);
	list_all(&all);
	base_signals_restore(&before);
	best = find_entry(&all, w);
	found = best < all.count ? &all.entries[best] : NULL;
	st = all.status;
	if (st == NDX_OK && (found == NULL || found->state != NDX_OK))
		st = fail_address(w, found, all.count);
	else if (st == NDX_OK)
		st = give_uri("ndx_resolve", found->uri, uri, uri_size);
	list_clear(&all);
	return st;
}

enum ndx_status ndx_resolve(const struct sockaddr *remote, socklen_t remote_len, char *uri,
                            size_t *uri_size, struct sockaddr_storage *local)
{
	struct sockaddr_storage address;
	struct wanted wanted;
	enum ndx_status st = check_uri_room("ndx_resolve", uri, uri_size);

	if (st != NDX_OK)
		return st;
	if (!ndxp_sockaddr_valid(remote, remote_len))
		return fail(
			NDX_E_INVALID_PARAMETER, 0,
			"ndx_resolve: remote is no IPv4 or IPv6 address of its full length; pass "
			"a sockaddr_in or sockaddr_in6");
	ndxp_sockaddr_copy(&address, remote, remote_len);
	if (ndxp_sockaddr_is_any(&address))
		return fail(
			NDX_E_INVALID_PARAMETER, 0,
			"ndx_resolve: remote is the unspecified address, which is nowhere; pass "
			"the address of a host");
	ndxp_sockaddr_set_port(&address, DISCARD_PORT);
	st = find_local(&address, &wanted.local);
	if (st != NDX_OK)
		return st;
	find_interface(&wanted.local, wanted.interface_name, sizeof(wanted.interface_name));
	st = find_uri(&wanted, uri, uri_size);
	if (st == NDX_OK && local != NULL)
		*local = wanted.local;
	return st;
}

enum ndx_status ndx_adapter_default(char *uri, size_t *uri_size)
{
	enum ndx_status st = check_uri_room("ndx_adapter_default", uri, uri_size);
	char *named;

	if (st == NDX_OK)
		st = select_named(&named);
	if (st != NDX_OK)
		return st;
	if (named == NULL) {
		/* An answer, not an error: no log record. */
		ndxp_set_last_error("ndx_adapter_default: neither $NDX_ADAPTER nor an INI file "
		                    "names an adapter; the choice is automatic");
		return NDX_E_NOT_FOUND;
	}
	st = give_uri("ndx_adapter_default", named, uri, uri_size);
	free(named);
	return st;
}
