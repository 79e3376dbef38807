/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses behind a URI, libfabric's description of an endpoint, and enumeration. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/hash.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

/* ---- addresses ---- */

static bool is_wanted(const struct ofi_options *options, const struct ifaddrs *i,
                      const struct sockaddr_storage *address)
{
	if (options->iface[0] != '\0' && strcmp(i->ifa_name, options->iface) != 0)
		return false;
	if (options->address.ss_family != AF_UNSPEC)
		return ndxp_sockaddr_same_host(&options->address, address);
	/* without trust=lan an address beyond this host has to be asked for by name */
	return options->iface[0] != '\0' || options->lan || !options->backend->needs_trust ||
	       ndxp_sockaddr_is_loopback(address);
}

/* The address of an interface that is up. False: it has none that can be used. */
bool ofi_usable_address(const struct ifaddrs *i, struct sockaddr_storage *out)
{
	if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) ||
	    !ndxp_sockaddr_valid(i->ifa_addr, sizeof(struct sockaddr_in6)))
		return false;
	ndxp_sockaddr_copy(out, i->ifa_addr, sizeof(struct sockaddr_in6));
	return true;
}

/* The names of all interfaces, for a message. */
static void name_interfaces(const struct ifaddrs *all, char *text, size_t size)
{
	size_t used = 0;
	const char *last = "";

	text[0] = '\0';
	for (const struct ifaddrs *i = all; i != NULL && used < size; i = i->ifa_next) {
		int n;

		/* getifaddrs() lists each interface first, then the addresses */
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_PACKET ||
		    strcmp(last, i->ifa_name) == 0)
			continue;
		last = i->ifa_name;
		n = snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", i->ifa_name);
		used += n > 0 ? (size_t)n : 0;
	}
}

#define WHERE 64 /* room for an address with its scope, or an interface */

/* An address stands without the brackets and the port that ndxp_sockaddr_text() adds. */
static void describe_where(const struct ofi_options *options, char where[WHERE])
{
	(void)snprintf(where, WHERE, "%s", options->iface);
	if (options->address.ss_family != AF_UNSPEC)
		(void)getnameinfo((const struct sockaddr *)&options->address,
		                  ndxp_sockaddr_len(&options->address), where, WHERE, NULL, 0,
		                  NI_NUMERICHOST);
}

static enum ndx_status fail_addresses(const struct ofi_options *options, const struct ifaddrs *all)
{
	char where[WHERE];
	char names[160];

	describe_where(options, where);
	name_interfaces(all, names, sizeof(names));
	if (options->address.ss_family != AF_UNSPEC)
		return fail(NDX_E_NOT_FOUND, 0,
		            "ofi: no interface that is up has address %s; the interfaces are: %s",
		            where, names);
	if (options->iface[0] != '\0' && if_nametoindex(options->iface) == 0)
		return fail(NDX_E_NOT_FOUND, 0, "ofi: no network interface \"%s\"; there are: %s",
		            options->iface, names);
	return fail(NDX_E_DEVICE_NOT_READY, 0,
	            "ofi: interface \"%s\" is down or has no address; ip link set dev %s up, ip "
	            "address add ... dev %s",
	            options->iface, options->iface[0] != '\0' ? options->iface : "lo",
	            options->iface[0] != '\0' ? options->iface : "lo");
}

enum ndx_status ofi_find_addresses_in(const struct ifaddrs *all, const struct ofi_options *options,
                                      struct sockaddr_storage **list, size_t *count)
{
	struct sockaddr_storage *found;
	struct sockaddr_storage address;
	size_t room = 0;
	size_t n = 0;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		room++;
	found = calloc(room + 1, sizeof(*found));
	if (found == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a list of addresses");
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (ofi_usable_address(i, &address) && is_wanted(options, i, &address))
			found[n++] = address;
	}
	if (n == 0) {
		free(found);
		return fail_addresses(options, all);
	}
	*list = found;
	*count = n;
	return NDX_OK;
}

enum ndx_status ofi_find_addresses(const struct ofi_options *options,
                                   struct sockaddr_storage **list, size_t *count)
{
	struct ifaddrs *all;
	enum ndx_status st;

	if (getifaddrs(&all) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "getifaddrs");
	st = ofi_find_addresses_in(all, options, list, count);
	freeifaddrs(all);
	return st;
}

/* ---- libfabric's description ---- */

static struct fi_info *make_hints(const struct ofi_backend *backend)
{
	struct fi_info *hints = fi_allocinfo();

	if (hints == NULL)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	backend->hint(hints);
	hints->fabric_attr->prov_name = strdup(backend->device);
	if (hints->fabric_attr->prov_name == NULL) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

static enum ndx_status fail_getinfo(const struct ofi_backend *backend, int err, const char *node)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (err != FI_ENODATA)
		return fail(ofi_status_of(err), err, "fi_getinfo for %s at %s: %s", backend->device,
		            node, fi_strerror(err));
	return fail(NDX_E_DEVICE_NOT_READY, err,
	            "libfabric %u.%u has no provider \"%s\" for %s%s%s; apt install libfabric1, or "
	            "unset FI_PROVIDER",
	            FI_MAJOR(fi_version()), FI_MINOR(fi_version()), backend->device, node,
	            filter != NULL ? "; FI_PROVIDER is " : "", filter != NULL ? filter : "");
}

enum ndx_status ofi_get_info(const struct ofi_backend *backend,
                             const struct sockaddr_storage *address, struct fi_info **out)
{
	char node[NI_MAXHOST];
	struct fi_info *hints;
	struct fi_info *found = NULL;
	int err;

	if (FI_VERSION_LT(fi_version(), OFI_API))
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "libfabric %u.%u is older than 1.17; upgrade libfabric1",
		            FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	if (getnameinfo((const struct sockaddr *)address, ndxp_sockaddr_len(address), node,
	                sizeof(node), NULL, 0, NI_NUMERICHOST) != 0)
		return fail(NDX_E_INVALID_ADDRESS, 0, "getnameinfo() fails for a local address");
	hints = make_hints(backend);
	if (hints == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to ask libfabric");
	err = -fi_getinfo(OFI_API, node, "0", FI_SOURCE | FI_NUMERICHOST, hints, &found);
	fi_freeinfo(hints);
	if (err != 0)
		return fail_getinfo(backend, err, node);
	if (found->tx_attr->iov_limit < OFI_MAX_IOV || found->rx_attr->iov_limit < OFI_MAX_IOV ||
	    !backend->accept_info(found)) {
		fi_freeinfo(found);
		return fail(
			NDX_E_DEVICE_NOT_READY, 0,
			"libfabric %u.%u: provider %s offers less than NDX needs; please report it",
			FI_MAJOR(fi_version()), FI_MINOR(fi_version()), backend->device);
	}
	*out = found;
	return NDX_OK;
}

/* NULL with *failed false: there is no address to copy. */
static void *dup_address(const struct sockaddr_storage *address, size_t *len, bool *failed)
{
	void *copy;

	*len = 0;
	if (address == NULL)
		return NULL;
	*len = ndxp_sockaddr_len(address);
	copy = malloc(*len);
	if (copy == NULL)
		*failed = true;
	else
		memcpy(copy, address, *len);
	return copy;
}

struct fi_info *ofi_dup_info(const struct fi_info *info, const struct sockaddr_storage *source,
                             const struct sockaddr_storage *destination)
{
	struct fi_info *copy = fi_dupinfo(info);
	const struct sockaddr_storage *any = source != NULL ? source : destination;
	bool failed = false;

	if (copy == NULL)
		return NULL;
	free(copy->src_addr);
	free(copy->dest_addr);
	copy->src_addr = dup_address(source, &copy->src_addrlen, &failed);
	copy->dest_addr = dup_address(destination, &copy->dest_addrlen, &failed);
	copy->addr_format =
		any != NULL && any->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (failed) {
		fi_freeinfo(copy);
		return NULL;
	}
	return copy;
}

/* ---- enumeration ---- */

bool ofi_begins_interface(const struct ifaddrs *all, const struct ifaddrs *i,
                          struct sockaddr_storage *out)
{
	struct sockaddr_storage earlier;

	if (!ofi_usable_address(i, out))
		return false;
	/* addresses of two families of an interface may stand apart */
	for (const struct ifaddrs *e = all; e != i; e = e->ifa_next) {
		if (strcmp(e->ifa_name, i->ifa_name) == 0 && ofi_usable_address(e, &earlier))
			return false;
	}
	return true;
}

struct ofi_options ofi_options_of_interface(const struct ofi_options *defaults,
                                            const struct ofi_backend *backend,
                                            const struct ifaddrs *i)
{
	struct ofi_options options = *defaults;

	options.backend = backend;
	(void)snprintf(options.iface, sizeof(options.iface), "%s", i->ifa_name);
	return options;
}

uint64_t ofi_adapter_id(const struct ofi_options *options)
{
	char where[WHERE];
	char text[WHERE + 48];

	describe_where(options, where);
	(void)snprintf(text, sizeof(text), "ofi:%s/%s", options->backend->device, where);
	return ndxp_hash_text(text);
}

void ofi_describe(const struct ofi_options *options, struct ndx_adapter_info *info)
{
	static const char *const cq[] = {[OFI_CQ_AUTO] = "",
	                                 [OFI_CQ_PRIVATE] = "&cq=private",
	                                 [OFI_CQ_SHARED] = "&cq=shared"};
	const bool is_address = options->address.ss_family != AF_UNSPEC;
	char where[WHERE];
	char rest[112];

	describe_where(options, where);
	(void)snprintf(rest, sizeof(rest), "%s%s%s%s%s",
	               is_address      ? "&addr="
	               : where[0] != 0 ? "&iface="
	                               : "",
	               where, options->lan ? "&trust=lan" : "",
	               !options->peers_named ? ""
	               : options->any_user   ? "&peers=any"
	                                     : "&peers=user",
	               cq[options->cq]);
	if (rest[0] == '&')
		rest[0] = '?';
	(void)snprintf(info->uri, sizeof(info->uri), "ofi:%s%s", options->backend->device, rest);
	(void)snprintf(info->device, sizeof(info->device), "%s", options->backend->device);
	info->adapter_id = ofi_adapter_id(options);
}
